"""Requests from files in any of their forms: shapes, jobspecs, bare resources lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.jobspec.reader import Jobspec, jobspecs_of
from simsched.formats.jobspec.shape import parse_shape
from simsched.formats.text.request_forms import is_xml, looks_like_shapes, read_shapes

if TYPE_CHECKING:
    from pathlib import Path

    from simsched.formats.jobspec.vertex import ResourceVertex


def load_resources(path: str | Path) -> list[tuple[ResourceVertex, ...]]:
    """Return the resources lists of a file; ``-`` reads stdin.

    The file holds jobspecs, bare resources lists, or dictionaries with at least `resources`, in
    YAML or JSON, or shapes, one a line, or SSS Job Objects.  Raises `FormatError`.
    """
    from simsched.formats.sss import job_objects
    from simsched.formats.text.documents import detect_kind, name_of, read_text

    text, where = read_text(path), name_of(path)
    if is_xml(text):
        return [record.jobspec.resources for record in job_objects(text, where)]
    if looks_like_shapes(text) or detect_kind(text) == "text":
        return [parse_shape(shape, place) for shape, place in read_shapes(text, where)]
    return [_resources(document, text, where, i) for i, document in enumerate(_documents(text, where))]


def _documents(text: str, where: str) -> list[Any]:
    from simsched.formats.text.documents import detect_kind, load_documents, load_json_line

    if detect_kind(text) == "jsonl":
        lines = enumerate(text.splitlines(), 1)
        return [load_json_line(line, where, i) for i, line in lines if line.strip()]
    return load_documents(text, where)


def _resources(document: Any, text: str, where: str, number: int) -> tuple[ResourceVertex, ...]:
    from dataclasses import replace

    from simsched.formats.jobspec.parts import build_resources
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
        raise joined(located(faults, text, where, number), None)
    return build_resources(resources)


def load_requests(path: str | Path, **options: Any) -> list[Jobspec]:
    """Return the jobspecs of a file, as `requests_of` does with its text.  Raises `FormatError`."""
    from simsched.formats.text.documents import name_of, read_text

    return requests_of(read_text(path), name_of(path), **options)


def requests_of(text: str, where: str, **options: Any) -> list[Jobspec]:
    """Return the jobspecs of a text of jobspecs or shapes; `options` are those of `from_shape`.

    Options with a value override what a jobspec of the text says.  Raises `FormatError`.
    """
    from simsched.formats.text.documents import detect_kind

    given = {key: value for key, value in options.items() if value is not None}
    if looks_like_shapes(text) or detect_kind(text) == "text":
        shapes = read_shapes(text, where)
        return [_from_shape(shape, place, given) for shape, place in shapes]
    return overridden(jobspecs_of(text, where), given)


def overridden(jobs: list[Jobspec], given: dict[str, Any]) -> list[Jobspec]:
    """Return jobspecs with what is given (options of `from_shape`) in place of what they say."""
    if not given:
        return jobs
    donor = Jobspec.from_shape("slot/core", **given)
    keys = {key: value for key, value in donor.system.items() if key != "duration" or "duration" in given}
    tasks = donor.tasks[0].command if "command" in given else None
    return [_overridden(job.with_system(**keys), tasks) for job in jobs]


def _from_shape(shape: str, place: str, options: dict[str, Any]) -> Jobspec:
    try:
        return Jobspec.from_shape(shape, **options)
    except FormatError as error:
        raise error.at(place) from None


def _overridden(job: Jobspec, command: tuple[str, ...] | None) -> Jobspec:
    from dataclasses import replace

    if command is None:
        return job
    return replace(job, tasks=tuple(replace(task, command=command) for task in job.tasks))
