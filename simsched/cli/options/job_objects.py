"""SSS Job Objects for ``convert`` and ``validate``: to and from jobspecs, shapes and workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.cli.support.messages import note, warn
from simsched.errors import ConfigError, FormatError, SimschedError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.sss.expressions import Names
    from simsched.formats.sss.records import JobRecord
    from simsched.formats.text.xml_tree import Element
    from simsched.formats.validate import Report


def records_of(args: argparse.Namespace, text: str, where: str) -> tuple[JobRecord, ...]:
    """Return the jobs of a text; ``--cluster`` resolves patterns, warnings go to standard error."""
    from simsched.formats.sss.records import job_objects

    return job_objects(text, where, names=_names(args.cluster), warn=warn)


def _names(cluster: str | None) -> Callable[[], Names] | None:
    """Return a function that gives the names of a cluster and loads it at the first call."""
    if cluster is None:
        return None

    def names() -> Names:
        from simsched.cli.options.workloads import names_of
        from simsched.graph.cluster import load_cluster

        return names_of(load_cluster(cluster))

    return names


def judge(text: str, where: str, cluster: str | None) -> Report:
    """Return every fault of a document of Job Objects, with warnings as notes.

    Patterns are matched against the cluster, if there is one; otherwise a note reports that they are not.
    """
    from simsched.formats.sss.document import check_document, read_document
    from simsched.formats.sss.records import has_patterns, job_records
    from simsched.formats.validate import Report, as_fault
    from simsched.workload.readers.sss_jobs import fault_of

    faults = [as_fault(error, where) for error in check_document(text, where)]
    if faults:
        return Report(where, "job", 0, tuple(faults))
    names = _names(cluster) if has_patterns(text) else None
    unexpanded: list[FormatError] = []
    try:
        records, warnings = job_records(
            read_document(text, where), where, cluster=names and names(), unexpanded=unexpanded
        )
    except FormatError as error:
        return Report(where, "job", 0, (as_fault(error, where),))
    faults += [
        as_fault(FormatError(reason, where=f"{where}:{record.line}"), where)
        for record in records
        if (reason := fault_of(record))
    ]
    notes = [f"warning: {warning}" for warning in warnings]
    if unexpanded:
        several = "patterns were" if len(unexpanded) > 1 else "pattern was"
        notes.append(f"{len(unexpanded)} {several} not checked, which needs --cluster")
    return Report(where, "job", len(records), tuple(faults), tuple(notes))


def note_losses(records: Sequence[JobRecord]) -> None:
    """Note the elements of jobs that a jobspec cannot represent."""
    from simsched.formats.sss.records import not_in_jobspec

    lost = not_in_jobspec(record.element for record in records)
    if lost:
        several = len(records) > 1
        words = (f"{name} ({count})" if several else name for name, count in lost.items())
        note(f"not in the jobspec: {', '.join(words)}")


def _refuse_options(args: argparse.Namespace) -> None:
    """Raise ConfigError for an option that changes requests if Job Objects are converted as they are."""
    given = [name for name in ("duration", "constraint", "queue") if getattr(args, name) is not None]
    given += ["command"] if args.command else []
    if given:
        raise ConfigError(
            f"--{given[0]} applies to requests, but --to {args.to} converts Job Objects as they are",
            where="convert",
            expected="--to jobspec, v1 or shape",
        )


def workload_lines(args: argparse.Namespace, text: str, where: str, kind: str) -> Iterator[str]:
    """Return the lines of a workload made of Job Objects.

    Raises
    ------
    ConfigError
        if the text has requests without times, or an option applies to requests.
    """
    from pathlib import Path

    from simsched.bundled import plain_name
    from simsched.cli.options.workloads import write_ignored, write_notes
    from simsched.formats.text.sniffing import is_xml
    from simsched.workload.mapping import ReadOptions
    from simsched.workload.readers.sss_jobs import read_sss
    from simsched.workload.save import lines_of

    if not is_xml(text):
        raise ConfigError(
            f"only Job Objects can be converted to a workload ({kind}) here",
            where=where,
            expected="simsched workload convert",
        )
    _refuse_options(args)
    name = "" if args.file == "-" else plain_name(Path(args.file))
    workload = read_sss(text, ReadOptions(source=where, name=name, names=_names(args.cluster)))
    write_notes(workload)
    write_ignored(workload)
    return lines_of(workload, kind)


def as_objects(
    args: argparse.Namespace,
    text: str,
    where: str,
    requests: Callable[[argparse.Namespace, str, str], list[Jobspec]],
) -> str:
    """Return a document of Job Objects: the text itself, or one made of its requests, numbered from 1.

    Raises
    ------
    RequestError
        for a request that a Job Object cannot represent.
    ConfigError
        if the text has Job Objects and an option applies to requests.
    """
    from simsched.formats.sss.document import read_document
    from simsched.formats.text.sniffing import is_xml
    from simsched.formats.text.xml_tree import Element, write_xml

    if is_xml(text):
        _refuse_options(args)
        document = read_document(text, where)
        for warning in document.warnings:
            warn(warning)
        return document.to_xml()
    jobs = requests(args, text, where)
    made = [_numbered(job, number, len(jobs)) for number, job in enumerate(jobs, 1)]
    _note_missing(jobs)
    return write_xml(made[0] if len(made) == 1 else Element("Data", (), "", tuple(made)))


def _numbered(job: Jobspec, number: int, count: int) -> Element:
    """Return a request as a Job whose Id is this number."""
    from simsched.formats.sss.writer import job_element

    try:
        return job_element(job, str(number))
    except SimschedError as error:
        raise (error.at(f"request {number} of {count}") if count > 1 else error) from None


def _note_missing(jobs: Sequence[Jobspec]) -> None:
    """Note dependencies on jobs that are missing: jobspecs have no ids, so the Jobs are numbered."""
    from simsched.formats.rfc.dependency import JOB_SCHEMES

    there = {str(number) for number in range(1, len(jobs) + 1)}
    waited = (item for job in jobs for item in job.dependencies if item.scheme in JOB_SCHEMES)
    lost = dict.fromkeys(item.value for item in waited if item.value not in there)
    if lost:
        note(f"jobs are numbered from 1; these dependencies match none of them: {', '.join(lost)}")
