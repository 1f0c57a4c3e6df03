"""SSS Job Objects in ``convert`` and ``validate``: from and to jobspecs, shapes and workloads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, FormatError, SimschedError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.sss import Element, JobRecord, Names
    from simsched.formats.validate import Report


def records_of(args: argparse.Namespace, text: str, where: str) -> tuple[JobRecord, ...]:
    """Return the jobs of a text, patterns matched against ``--cluster``; warnings go to stderr."""
    from simsched.formats.sss import job_objects

    return job_objects(text, where, names=_names(args.cluster), warn=tell)


def _names(cluster: str | None) -> Callable[[], Names] | None:
    """Return what gives the names of a cluster, which is loaded only when they are asked for."""
    if cluster is None:
        return None

    def names() -> Names:
        from simsched.cli.options.workloads import names_of
        from simsched.graph.cluster import load_cluster

        return names_of(load_cluster(cluster))

    return names


def judge(text: str, where: str, cluster: str | None) -> Report:
    """Return every fault of a document of Job Objects, and as notes what is only warned about.

    Patterns are matched against the cluster, if one is named; else a note says that they are not.
    """
    from simsched.formats.sss import check_document, has_patterns, job_records, read_document
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
        several = "patterns are" if len(unexpanded) > 1 else "pattern is"
        notes.append(f"{len(unexpanded)} {several} matched against no cluster: name one with --cluster")
    return Report(where, "job", len(records), tuple(faults), tuple(notes))


def tell(warning: SimschedError) -> None:
    """Print a warning."""
    sys.stderr.write(f"simsched: warning: {warning}\n")


def tell_losses(records: Sequence[JobRecord]) -> None:
    """Say what the jobs say and a jobspec does not hold."""
    from simsched.formats.sss.records import not_in_jobspec

    lost = not_in_jobspec(record.element for record in records)
    if lost:
        several = len(records) > 1
        words = (f"{name} ({count})" if several else name for name, count in lost.items())
        sys.stderr.write(f"note: not in the jobspec: {', '.join(words)}\n")


def _refuse_options(args: argparse.Namespace) -> None:
    """Raise ConfigError for an option that changes requests, where Job Objects are taken whole."""
    given = [name for name in ("duration", "constraint", "queue") if getattr(args, name) is not None]
    given += ["command"] if args.command else []
    if given:
        raise ConfigError(
            f"the {given[0]} is for requests: Job Objects become {args.to} as they are",
            where="convert",
            expected="--to jobspec, v1 or shape",
        )


def workload_lines(args: argparse.Namespace, text: str, where: str, kind: str) -> Iterator[str]:
    """Return the lines of the workload that Job Objects are, in a format that workloads are written in.

    Raises
    ------
    ConfigError
        if the text holds requests without times, or an option is for requests.
    """
    from pathlib import Path

    from simsched.bundled import plain_name
    from simsched.cli.options.workloads import tell_warnings
    from simsched.formats.text.sniffing import is_xml
    from simsched.workload.mapping import Reading
    from simsched.workload.readers.sss_jobs import read_sss
    from simsched.workload.writers.save import lines_of

    if not is_xml(text):
        raise ConfigError(
            f"only Job Objects become a workload ({kind}) here", where=where, expected="workload convert"
        )
    _refuse_options(args)
    name = "" if args.file == "-" else plain_name(Path(args.file))
    workload = read_sss(text, Reading(source=where, name=name, names=_names(args.cluster)))
    tell_warnings(workload)
    for reason, count, places in workload.skip_table():
        sys.stderr.write(f"left out: {count} records, {reason} ({places})\n")
    return lines_of(workload, kind)


def as_objects(
    args: argparse.Namespace,
    text: str,
    where: str,
    requests: Callable[[argparse.Namespace, str, str], list[Jobspec]],
) -> str:
    """Return a document of Job Objects: the one that the text is, or made of its requests, numbered from 1.

    Raises
    ------
    RequestError
        that names what a Job Object cannot say, and in which of several requests.
    ConfigError
        if the text is one and an option is for requests.
    """
    from simsched.formats.sss import Element, read_document, write_xml
    from simsched.formats.text.sniffing import is_xml

    if is_xml(text):
        _refuse_options(args)
        document = read_document(text, where)
        for warning in document.warnings:
            tell(warning)
        return document.to_xml()
    jobs = requests(args, text, where)
    made = [_numbered(job, number, len(jobs)) for number, job in enumerate(jobs, 1)]
    _tell_missing(jobs)
    return write_xml(made[0] if len(made) == 1 else Element("Data", (), "", tuple(made)))


def _numbered(job: Jobspec, number: int, count: int) -> Element:
    """Return a request as a Job with this number for an Id."""
    from simsched.formats.sss import job_element

    try:
        return job_element(job, str(number))
    except SimschedError as error:
        raise (error.at(f"request {number} of {count}") if count > 1 else error) from None


def _tell_missing(jobs: Sequence[Jobspec]) -> None:
    """Say which jobs are waited for and not there: jobspecs have no ids, so the Jobs are numbered."""
    from simsched.workload.dependencies import JOB_SCHEMES

    there = {str(number) for number in range(1, len(jobs) + 1)}
    waited = (item for job in jobs for item in job.dependencies if item.scheme in JOB_SCHEMES)
    lost = dict.fromkeys(item.value for item in waited if item.value not in there)
    if lost:
        sys.stderr.write(f"note: the jobs are numbered; a dependency is on none of them: {', '.join(lost)}\n")
