"""Files of requests in any of their forms: jobspecs, lists of resources, shapes and SSS Job Objects.

A file of jobspecs is YAML with one document or several, a JSON document or list, JSON Lines, or Job
Objects.  Where a command also takes shapes, they are one per line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.shape import parse_shape
from simsched.formats.text.sniffing import detect_kind, is_xml, looks_like_shapes, read_shapes
from simsched.garbage import collector_paused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simsched.formats.jobspec.jobspec import Warn
    from simsched.formats.jobspec.vertex import ResourceVertex


def load_jobspec(path: str | Path, *, lenient: Warn | None = None) -> Jobspec:
    """Return the one jobspec of a YAML or JSON file; ``-`` is standard input.

    `lenient` is that of `Jobspec.from_dict`.  Raises `FormatError` for a file of none or several, and for
    a faulty one.
    """
    jobs = load_jobspecs(path, lenient=lenient)
    if len(jobs) != 1:
        raise FormatError(f"there are {len(jobs)} documents", where=str(path), expected="exactly one jobspec")
    return jobs[0]


def load_jobspecs(
    path: str | Path, *, warn: Callable[[FormatError], None] | None = None, lenient: Warn | None = None
) -> list[Jobspec]:
    """Return the jobspecs of a file: YAML with one document or several, JSON, JSON Lines, Job Objects.

    `warn` is called with each part of a Job Object that is not supported and has the awareness policy Warn;
    `lenient` is that of `Jobspec.from_dict`.  Raises `FormatError` with the first fault of the file, its
    place, and the number of the others.
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
    kind = detect_kind(text)
    if kind == "xml":
        from simsched.formats.sss.records import job_objects

        return [record.jobspec for record in job_objects(text, where, warn=warn)]
    if kind not in {"json", "jsonl", "yaml"}:
        from simsched.formats.submit_commands import command_requests

        if command_requests(text, where) is not None:
            message, expected = "this is a batch script or a command", "a jobspec: simsched convert makes one"
            raise FormatError(message, where=where, expected=expected)
        raise FormatError("this is not a jobspec", where=where, expected="YAML, JSON or Job Objects")
    with collector_paused():
        jobs = _from_lines(text, lenient) if kind == "jsonl" else _from_documents(text, where, lenient)
    if jobs is None:
        from simsched.formats.text.diagnostics import joined
        from simsched.formats.validate import validate_text

        report = validate_text(text, where, "jobspec", lenient=lenient is not None)
        raise (
            joined(report.faults, None) if report.faults else FormatError("there is no jobspec", where=where)
        )
    return jobs


def _from_lines(text: str, lenient: Warn | None) -> list[Jobspec] | None:
    """Return the jobspecs of JSON Lines; None if one of them is faulty."""
    from simsched.formats.jobspec.fast import Reader
    from simsched.formats.text.json_text import load_json

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


def load_resources(path: str | Path) -> list[tuple[ResourceVertex, ...]]:
    """Return the resources lists of a file; ``-`` is standard input.

    The file holds jobspecs, bare resources lists, or dictionaries with at least `resources`, in
    YAML or JSON, or shapes, one per line, or SSS Job Objects.  Raises `FormatError`.
    """
    from simsched.formats.sss.records import job_objects
    from simsched.formats.text.documents import load_documents, name_of, read_text
    from simsched.formats.text.json_text import load_json_line

    text, where = read_text(path), name_of(path)
    if is_xml(text):
        return [record.jobspec.resources for record in job_objects(text, where)]
    if looks_like_shapes(text) or detect_kind(text) == "text":
        return [parse_shape(shape, place) for shape, place in read_shapes(text, where)]
    if detect_kind(text) == "jsonl":
        lines = enumerate(text.splitlines(), 1)
        return [
            _resources(load_json_line(line, where, at), line, where, line=at)
            for at, line in lines
            if line.strip()
        ]
    documents = load_documents(text, where)
    return [_resources(document, text, where, number) for number, document in enumerate(documents)]


def _resources(
    document: Any, text: str, where: str, number: int = 0, *, line: int = 1
) -> tuple[ResourceVertex, ...]:
    """Return the resources of a document in a text that begins at a line of the file."""
    from simsched.formats.jobspec.jobspec import build_resources
    from simsched.formats.jobspec.validation_rules import resources_faults
    from simsched.formats.text.diagnostics import joined, located

    bare = isinstance(document, list)
    if not bare and (not isinstance(document, dict) or "resources" not in document):
        raise FormatError("there are no resources", where=where, expected="a jobspec or a list of resources")
    resources = document if bare else document["resources"]
    faults = resources_faults(resources)
    if bare:
        faults = [replace(fault, path=fault.path[1:]) for fault in faults]
    if faults:
        found = located(faults, text, where, number)
        raise joined([replace(fault, line=fault.line + line - 1) for fault in found], None)
    return build_resources(resources)


def load_requests(path: str | Path, **options: Any) -> list[Jobspec]:
    """Return the jobspecs of a file, as `requests_of` does with its text.  Raises `FormatError`."""
    from simsched.formats.text.documents import name_of, read_text

    return requests_of(read_text(path), name_of(path), **options)


def requests_of(text: str, where: str, **options: Any) -> list[Jobspec]:
    """Return the jobspecs of a text of jobspecs or shapes; `options` are those of `from_shape`.

    Options with a value override those of the jobspecs.  Raises `FormatError`.
    """
    given = {key: value for key, value in options.items() if value is not None}
    if looks_like_shapes(text) or detect_kind(text) == "text":
        jobs = []
        for shape, place in read_shapes(text, where):
            try:
                jobs.append(Jobspec.from_shape(shape, **given))
            except FormatError as error:
                raise error.at(place) from None
        return jobs
    return overridden(jobspecs_of(text, where), given)


def overridden(jobs: list[Jobspec], given: dict[str, Any]) -> list[Jobspec]:
    """Return jobspecs with the given options of `from_shape` in place of their own."""
    if not given:
        return jobs
    donor = Jobspec.from_shape("slot/core", **given)
    keys = {key: value for key, value in donor.system.items() if key != "duration" or "duration" in given}
    found = [job.with_system(**keys) for job in jobs]
    if "command" not in given:
        return found
    command = donor.tasks[0].command
    return [replace(job, tasks=tuple(replace(task, command=command) for task in job.tasks)) for job in found]
