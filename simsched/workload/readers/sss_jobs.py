"""SSS Job Objects (3.1.0) as a workload, and back.

The document and its mapping to jobspecs are `simsched.formats.sss`; this module puts its
jobs on one clock.  SubmitTime is the submission (where a job has none: its StartTime, else the
earliest time of the document), EligibleTime a ``begin-time`` dependency on the same clock,
Deadline the deadline of the order ``edf``, Duration the limit, EndTime - StartTime (or Delivered's
Duration) the run time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simsched.errors import SimschedError, WorkloadError
from simsched.workload.dependencies import begin_moved, refuse_cycles
from simsched.workload.job import Job, Skip, Skips, Workload, assemble, bare
from simsched.workload.mapping import ReadOptions
from simsched.workload.readers.gather import EARLY, moved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.sss.document import Document
    from simsched.formats.sss.records import JobRecord
    from simsched.formats.text.xml_tree import Element

_BEFORE_RUNNING = frozenset(("Deferred", "Hold", "Staged", "Idle", "Queued", ""))


def read_sss(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read a document of Job Objects: Job, JobGroup or Data.

    Warnings (awareness policy Warn) are in the header under ``Note``.

    Raises
    ------
    FormatError
        If the text is not a document of Job Objects, or holds an element that its policy Reject refuses.
    WorkloadError
        When jobs wait for each other; at the first ignored record under `strict`.
    """
    from simsched.formats.sss.document import read_document
    from simsched.formats.sss.records import has_patterns, job_records

    reading = reading or ReadOptions(source="jobs.xml")
    names = reading.names() if reading.names is not None and has_patterns(text) else None
    document = read_document(text, reading.source)
    records, warnings = job_records(document, reading.source, cluster=names)
    records = records[: reading.limit]
    base = second_zero(document)
    skips = Skips(strict=reading.strict)
    shared: dict[Jobspec, Jobspec] = {}
    jobs = []
    for record in records:
        reason = fault_of(record)
        if reason is None:
            request = bare(record.jobspec)
            jobs.append(_job(record, base, shared.setdefault(request, request)))
        else:
            skips.add(Skip(f"{reading.source}:{record.line}", reason, f"job {record.id}", record.id))
    refuse_cycles(jobs)
    header = {"UnixStartTime": str(base)}
    if warnings:
        header["Note"] = "\n".join(str(warning) for warning in warnings)
    return assemble(jobs, skips, source=reading.source, name=reading.name, kind="sss", header=header)


def second_zero(document: Document) -> int:
    """Return the epoch second that a workload of this document begins at.

    That is its earliest submission; of a job without SubmitTime its StartTime counts; 0 without any.
    """
    return min(_times(document.root, None), default=0)


def _times(element: Element, inherited: str | None) -> Iterator[int]:
    """Yield the time at which each Job below an element is submitted, where it is known."""
    if element.name == "Job" and not element.is_reference:
        at = element.value("SubmitTime") or inherited or element.value("StartTime")
        if at:
            yield int(at)
    elif element.name in {"JobGroup", "Data"}:
        defaults = element.first("JobDefaults")
        said = defaults.value("SubmitTime") if defaults is not None else None
        for child in element.children:
            yield from _times(child, said or inherited)


def fault_of(record: JobRecord) -> str | None:
    """Return why a record cannot be a job of a workload, or None."""
    if record.start is not None and record.submit is not None and record.start < record.submit:
        return EARLY
    return "ends before it starts" if record.runtime is not None and record.runtime < 0 else None


def _job(record: JobRecord, base: int, jobspec: Jobspec) -> Job:
    submit = next((at for at in (record.submit, record.start) if at is not None), base)
    return Job(
        id=record.id,
        submit=submit - base,
        jobspec=jobspec,
        runtime=record.runtime,
        duration=record.duration,
        user=record.user,
        group=record.unix_group,
        queue=record.queue,
        qos=record.qos,
        bank=record.project,
        name=record.name,
        priority=record.priority,
        deadline=None if record.deadline is None else max(0, record.deadline - base),
        hold=record.hold,
        procs=record.processors,
        dependencies=tuple(begin_moved(item, lambda at: moved(at, base)) for item in record.dependencies),
        wait=None if record.start is None or record.submit is None else record.start - record.submit,
        status=_status(record),
    )


def _status(record: JobRecord) -> str | None:
    if record.runtime is None or (record.state or "") in _BEFORE_RUNNING:
        return None
    code = record.element.value("ExitCode")
    return "FAILED" if code and code.strip() not in {"", "0"} else "COMPLETED"


def write_sss(workload: Workload, skips: Skips | None = None) -> Iterator[str]:
    """Yield the lines of a Data document with one Job for each job.

    A job with a request that no Job Object can express is left out and noted in `skips`, and so are
    the dependencies of other jobs on it.

    Raises
    ------
    WorkloadError
        Naming the first such job, if there are no `skips` or they are strict; when no job is left.
    """
    from simsched.formats.text.xml_tree import Element, write_xml

    base = workload.stated("UnixStartTime") or 0
    skips = skips or Skips(strict=True)
    made = {str(job.id): found for job in workload.jobs if (found := _element(job, base, skips)) is not None}
    if workload.jobs and not made:
        raise WorkloadError("none of the jobs can be written", expected=skips.records[0].reason)
    if len(made) < len(workload.jobs):
        made = _without_missing(made, skips)
    yield from write_xml(Element("Data", (), "", tuple(made.values()))).splitlines()


def _without_missing(made: dict[str, Element], skips: Skips) -> dict[str, Element]:
    """Drop the dependencies on jobs that are not among these: a document may not name them."""
    kept = {}
    for name, job in made.items():
        lost = {child for child in job.all("Dependency") if child.text not in made}
        skips.count("a dependency on such a job", len(lost))
        kept[name] = replace(job, children=tuple(child for child in job.children if child not in lost))
    return kept


def _element(job: Job, base: int, skips: Skips) -> Element | None:
    """Return the Job Object of a job; None, noted in `skips`, for one that cannot be written."""
    from simsched.formats.sss.writer import job_element

    waits = [begin_moved(item, lambda at: base + int(at)).to_json() for item in job.dependencies]
    jobspec = job.jobspec.with_system(
        duration=job.duration or 0,
        queue=job.queue,
        bank=job.bank,
        job={"name": job.name} if job.name else None,
        dependencies=waits or None,
    )
    try:
        made = job_element(
            jobspec,
            str(job.id),
            submit=base + job.submit,
            user=job.user,
            group=job.group,
            qos=job.qos,
            priority=job.priority,
            deadline=None if job.deadline is None else base + job.deadline,
            hold=job.hold,
        )
    except SimschedError as error:
        if skips.strict:
            raise WorkloadError(
                f"job {job.id} cannot be written: {error.message}", where=error.where, expected=error.expected
            ) from None
        skips.add(Skip(f"job {job.id}", error.message, job.jobspec.to_shape(), job.id, job.submit))
        return None
    return replace(made, children=(*made.children, *_outcome(job, base)))


def _outcome(job: Job, base: int) -> Iterator[Element]:
    """Yield the recorded outcome of the job: when it ran, or for how long."""
    from simsched.formats.text.xml_tree import Element

    if job.runtime is None:
        return
    if job.status is not None:
        yield Element("State", (), "Completed")
        yield Element("ExitCode", (), "0" if job.status == "COMPLETED" else "1")
    if job.wait is None:
        yield Element("Delivered", (), "", (Element("Duration", (), str(round(job.runtime))),))
        return
    start = base + job.submit + job.wait
    yield Element("StartTime", (), str(round(start)))
    yield Element("EndTime", (), str(round(start + job.runtime)))
