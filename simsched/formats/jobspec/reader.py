"""Jobspecs: RFC 14 in general, RFC 25 (version 1) where it fits, RFC 46 shapes as a short way in.

The value is `jobspec_value`'s; here are the files of them: YAML documents, a JSON document or list,
JSON Lines, Job Objects.  What only some of these need is imported where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.jobspec.jobspec import Jobspec, as_jobspec, v1_misfit
from simsched.formats.jobspec.tasks import Task
from simsched.formats.jobspec.vertex import ResourceVertex
from simsched.formats.rfc.count import Count
from simsched.formats.text.garbage import collector_paused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simsched.formats.jobspec.parts import Warn
    from simsched.formats.text.diagnostics import Fault

__all__ = [
    "Count",
    "Jobspec",
    "ResourceVertex",
    "Task",
    "as_jobspec",
    "jobspecs_of",
    "load_jobspec",
    "load_jobspecs",
    "v1_misfit",
]


def load_jobspec(path: str | Path, *, lenient: Warn | None = None) -> Jobspec:
    """Return the one jobspec of a YAML or JSON file; ``-`` reads stdin.

    `lenient` is that of `Jobspec.from_dict`.  Raises `FormatError` where the file holds none, several
    or a faulty one.
    """
    jobs = load_jobspecs(path, lenient=lenient)
    if len(jobs) != 1:
        raise FormatError(f"{len(jobs)} documents", where=str(path), expected="exactly one jobspec")
    return jobs[0]


def load_jobspecs(
    path: str | Path, *, warn: Callable[[FormatError], None] | None = None, lenient: Warn | None = None
) -> list[Jobspec]:
    """Return the jobspecs of a file: YAML with one document or several, JSON, JSON Lines, Job Objects.

    `warn` is told what Job Objects say under the awareness policy Warn and nobody here can do;
    `lenient` is that of `Jobspec.from_dict`.  Raises `FormatError`: the first fault of the file with its
    place, and how many more there are.
    """
    from simsched.formats.text.documents import name_of, read_text

    return jobspecs_of(read_text(path), name_of(path), warn=warn, lenient=lenient)


def jobspecs_of(
    text: str,
    where: str,
    *,
    warn: Callable[[FormatError], None] | None = None,
    lenient: Warn | None = None,
) -> list[Jobspec]:
    """Return the jobspecs of a text, as `load_jobspecs` does of a file."""
    from simsched.formats.text.documents import detect_kind

    kind = detect_kind(text)
    if kind == "xml":
        from simsched.formats.sss import job_objects

        return [record.jobspec for record in job_objects(text, where, warn=warn)]
    if kind not in {"json", "jsonl", "yaml"}:
        raise FormatError("this is no jobspec", where=where, expected="YAML, JSON or Job Objects")
    with collector_paused():
        jobs = _from_lines(text, lenient) if kind == "jsonl" else _from_documents(text, where, lenient)
    if jobs is None:
        from simsched.formats.jobspec.validate import validate_text

        report = validate_text(text, where, "jobspec", lenient=lenient is not None)
        raise _joined(report.faults, where)
    return jobs


def _joined(faults: tuple[Fault, ...], where: str) -> FormatError:
    from simsched.formats.text.diagnostics import joined

    return joined(faults, None) if faults else FormatError("no jobspec", where=where)


def _from_lines(text: str, lenient: Warn | None) -> list[Jobspec] | None:
    """Return the jobspecs of JSON Lines, None where one of them is in doubt and then found faulty."""
    from simsched.formats.jobspec.fast import Reader
    from simsched.formats.text.documents import load_json

    reader = Reader()
    jobs = []
    for line in text.encode("utf-8", "surrogatepass").split(b"\n"):
        job = reader.read(line)
        if job is None:
            if not line.strip():
                continue
            try:
                job = Jobspec.from_dict(load_json(line.decode()), lenient=lenient)
            except FormatError:
                return None
        jobs.append(job)
    return jobs


def _from_documents(text: str, where: str, lenient: Warn | None) -> list[Jobspec] | None:
    from simsched.formats.text.documents import load_documents

    documents = load_documents(text, where)
    flat = [d for document in documents for d in (document if isinstance(document, list) else [document])]
    try:
        return [Jobspec.from_dict(document, lenient=lenient) for document in flat]
    except FormatError:
        return None
