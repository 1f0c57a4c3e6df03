"""All faults of a file at once, each with its line, column and JSON path."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from simsched.errors import FormatError, SimschedError, did_you_mean
from simsched.formats.jobspec.validation_rules import SYSTEM_KEYS, faults_of
from simsched.formats.text.diagnostics import CaretError, Fault, located, located_in_all
from simsched.formats.text.sniffing import looks_like_shapes

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from simsched.formats.text.excerpts import Path

RequestKind: TypeAlias = Literal["jobspec", "v1", "shape", "constraint", "auto"]

MOST_NOTES = 5
"""The most notes of a report."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result for one text: the number and kind of its documents, all faults, and notes."""

    where: str
    kind: str
    documents: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the text has no faults (a text without a document has one)."""
        return not self.faults


# ---------------------------------------------------------------- texts


def validate_file(path: str | FilePath, kind: RequestKind = "auto", *, lenient: bool = False) -> Report:
    """Return the report of a file of jobspecs, shapes or constraints; ``-`` is standard input.

    Raises `FormatError` only where the file cannot be read at all.
    """
    from simsched.formats.text.documents import name_of, read_text

    return validate_text(read_text(path), name_of(path), kind, lenient=lenient)


def validate_text(text: str, where: str, kind: RequestKind = "auto", *, lenient: bool = False) -> Report:
    """Return the report of a text of jobspecs, shapes or constraints.

    With `lenient`, mild faults of jobspecs (see `Fault`) are notes.
    """
    if kind == "shape":
        return _lines(text, where, "shape")
    if kind == "constraint":
        return _constraint(text, where)
    from simsched.formats.text.sniffing import detect_kind

    form = detect_kind(text)
    if kind == "auto" and form == "text":
        from simsched.formats.submit_commands import command_requests

        found = command_requests(text, where)
        if found is not None:
            notes = [f"note: {request.label}: {text}" for request in found for text in request.notes]
            return Report(where, "request", len(found), (), tuple(notes))
    if kind == "auto" and (form == "text" or looks_like_shapes(text)):
        return _lines(text, where, "shape")
    if form == "jsonl":
        return _json_lines(text, where, kind, lenient=lenient)
    return _documents(text, where, kind, lenient=lenient)


KNOWN = "a jobspec, a constraint, shapes (one per line), a cluster or a workload; --as KIND insists"


def not_recognised(text: str, where: str) -> FormatError | None:
    """Return the error for a text that is not a request by its whole content; None if it may be one."""
    from simsched.formats.machines.recognition import REQUEST, look_of, unrecognised

    look = look_of(text, first=REQUEST)
    if look.role == REQUEST if look is not None else _may_be_request(text, where):
        return None
    return unrecognised(text, where, REQUEST, KNOWN) or FormatError(
        "the format is not recognised", where=where, expected=KNOWN
    )


def _may_be_request(text: str, where: str) -> bool:
    """Whether a document has a key of jobspecs at its top, or at most half of the lines are no shapes."""
    from simsched.formats.jobspec.shape import parse_shape
    from simsched.formats.submit_commands import command_requests
    from simsched.formats.text.sniffing import detect_kind, outline, read_shapes

    form = detect_kind(text)
    if form != "text" and not looks_like_shapes(text):
        keys = set(outline(text)) if form != "yaml" else {*_TOP_KEY.findall(text)}
        inner = outline(text).get("", ("", frozenset()))[1]  # of a list
        return not _JOBSPEC_KEYS.isdisjoint(keys | inner) or not text.strip("[] \t\r\n")
    if command_requests(text, where) is not None:
        return True
    lines = [line for line, _ in read_shapes(text, where)]
    faulty = 0
    for line in lines:
        try:
            parse_shape(line)
        except FormatError:
            faulty += 1
    return len(lines) < 2 or not faulty or (2 * faulty <= len(lines) and not _is_toml(text))


def _is_toml(text: str) -> bool:
    import tomllib

    try:
        return bool(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return False


_JOBSPEC_KEYS = frozenset(("version", "resources", "tasks", "attributes"))
_TOP_KEY = re.compile(r"(?m)^(?:- *+)?[\"']?(\w+)[\"']?[ \t]*:")


def _checked_document(document: Any, kind: RequestKind, *, lenient: bool) -> tuple[list[Fault], list[str]]:
    """Return the faults of a document after RFC 25 or RFC 14, as `kind` requests, and notes on it.

    One of version 1 may fit either.
    """
    first = isinstance(document, dict) and document.get("version") == 1
    found = faults_of(document, v1=kind == "v1" or (kind == "auto" and first))
    notes: list[str] = []
    if kind == "auto" and first and found:
        general = faults_of(document)
        misfit = next((fault for fault in found if fault not in general), None)
        good = all(lenient and fault.mild for fault in general)
        if misfit is not None and (misfit.path[:1] == ("resources",) or good):
            found, notes = general, [f"note: not a V1 jobspec (RFC 25): {misfit}"]
    notes = [f"warning: {fault}" for fault in found if lenient and fault.mild] + notes
    return [fault for fault in found if not (lenient and fault.mild)], notes


def _documents(text: str, where: str, kind: RequestKind, *, lenient: bool) -> Report:
    """Check YAML documents or one JSON document; each is a jobspec or a list of jobspecs."""
    from simsched.formats.text.documents import load_documents

    try:
        documents = load_documents(text, where)
    except SimschedError as error:
        return Report(where, "jobspec", 0, (as_fault(error, where),))
    faulty: dict[int, list[Fault]] = {}
    notes: list[str] = []
    count = 0
    for i, document in enumerate(documents):
        faulty[i] = []
        for path, item in _items(document):
            count += 1
            found, more = _checked_document(item, kind, lenient=lenient)
            faulty[i] += [replace(fault, path=path + fault.path) for fault in found]
            notes += more
    faults = located_in_all(faulty, text, where)
    if not count:
        faults = [Fault((), "the text has no document", "a jobspec", where=where)]
    for item in () if faults else (item for document in documents for _, item in _items(document)):
        # RFC 14 allows keys that it does not define
        for key in (item.get("attributes") or {}).get("system") or {}:
            if key not in SYSTEM_KEYS:
                hint = did_you_mean(key, SYSTEM_KEYS)
                notes.append(f"note: attributes.system has the unknown key {key!r}{hint}")
    return Report(where, "jobspec", count, tuple(faults), tuple(dict.fromkeys(notes))[:MOST_NOTES])


def _items(document: Any) -> list[tuple[Path, Any]]:
    """Return the jobspecs of a document with their paths: itself, or the items of a list."""
    return (
        [((i,), item) for i, item in enumerate(document)] if isinstance(document, list) else [((), document)]
    )


def _json_lines(text: str, where: str, kind: RequestKind, *, lenient: bool) -> Report:
    """Check JSON Lines; a line that the fast reader does not accept is checked in detail."""
    from simsched.formats.jobspec.fast import Reader

    reader, v1 = Reader(), {"v1": True, "auto": None}.get(kind, False)
    faults: list[Fault] = []
    notes: list[str] = []
    count = 0
    for number, line in enumerate(text.encode("utf-8", "surrogatepass").split(b"\n"), 1):
        if line.strip():
            count += 1
            if not reader.passes(line, v1=v1):
                plain = line.decode("utf-8", "replace")
                found, more = _checked_line(plain, where, number, kind, lenient=lenient)
                faults += found
                notes += more
    return Report(where, "jobspec", count, tuple(faults), tuple(dict.fromkeys(notes))[:MOST_NOTES])


def _checked_line(
    line: str, where: str, number: int, kind: RequestKind, *, lenient: bool
) -> tuple[list[Fault], list[str]]:
    from simsched.formats.text.json_text import load_json

    try:
        document = load_json(line, where)
    except FormatError as error:
        return [replace(as_fault(error, where), line=number)], []
    found, notes = _checked_document(document, kind, lenient=lenient)
    return [replace(fault, line=number) for fault in located(found, line, where)], notes


def as_fault(error: SimschedError, where: str) -> Fault:
    """Return an error of a text as a fault, with its line and column if the error names them."""
    place = re.fullmatch(rf"{re.escape(where)}:(\d+)(?::(\d+))?", error.where or "")
    line, column = (int(place[1]), int(place[2] or 1)) if place else (0, 0)
    return Fault((), error.message, error.expected or "", line=line, column=column, where=where)


def _lines(text: str, where: str, kind: str) -> Report:
    """Check a text of one shape per line; blank lines and lines that begin with # are ignored."""
    from simsched.formats.jobspec.shape import parse_shape

    faults = []
    count = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        count += 1
        try:
            parse_shape(line.rstrip("\r"))
        except FormatError as error:
            faults.append(_caret_fault(error, where, number))
    if not count:
        faults.append(Fault((), "the text has no shape", "one shape per line", where=where))
    return Report(where, kind, count, tuple(faults))


def _caret_fault(error: FormatError, where: str, number: int) -> Fault:
    position = error.position if isinstance(error, CaretError) else 0
    return Fault((), error.message, error.expected or "", line=number, column=position + 1, where=where)


def _constraint(text: str, where: str) -> Report:
    """Check a constraint: an RFC 31 object in JSON or YAML, or the text of RFC 35."""
    from simsched.formats.jobspec.validation_rules import constraint_faults
    from simsched.formats.rfc.constraint import parse_constraint
    from simsched.formats.text.documents import load_document
    from simsched.formats.text.sniffing import is_constraint_document

    try:
        if is_constraint_document(text):
            found = constraint_faults(load_document(text, where))
            return Report(where, "constraint", 1, tuple(located(found, text, where)))
        parse_constraint(text.strip())
    except CaretError as error:
        return Report(where, "constraint", 1, (_caret_fault(error, where, 1),))
    except FormatError as error:
        return Report(where, "constraint", 1, (as_fault(error, where),))
    return Report(where, "constraint", 1, ())
