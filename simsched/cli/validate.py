"""``simsched validate``: every fault of files of any kind, with its place."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from simsched.cli.support.messages import text_of
from simsched.cli.support.output import answer
from simsched.cli.support.verbs import add_verb
from simsched.declare.answers import extended
from simsched.declare.flags import Flags, field, flag
from simsched.declare.kinds import choice
from simsched.errors import ConfigError, FormatError, InputWarning, SimschedError
from simsched.formats.text.diagnostics import Fault
from simsched.formats.text.documents import load_document, name_of, read_text
from simsched.formats.validate import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.cli.support.parser import Arguments, Subparsers

REQUEST_KINDS = ("jobspec", "v1", "shape", "constraint")
OTHER_KINDS = ("r", "jgf", "cluster", "sss", "swf", "workload", "queue")


class ValidateFlags(Flags, frozen=True, kw_only=True):
    """Check jobspecs, clusters and workloads; print every fault with its place.

    Print every fault of files with file, line, column and JSON path.

    files : file to check, or - for standard input.
    kind : kind of the files (default auto: detect it).
    format : text (default) or json.
    lenient : treat a task without a slot, or with an unknown one, as a warning.
    quiet : print only faults.
    cluster : resolve host patterns of Job Objects on this cluster.

    Exit status: 0 no fault, 2 some faults.
    """

    files: Annotated[tuple[str, ...], flag("FILE", positional=True, nargs="*")] = ()
    kind: Annotated[str, choice(*REQUEST_KINDS, *OTHER_KINDS, "auto")] = field(name="as", default="auto")
    format: Literal["text", "json"] = "text"
    lenient: bool = False
    quiet: Annotated[bool, flag("", "-q")] = False
    cluster: Annotated[str | None, flag("CLUSTER")] = None


def register(subparsers: Subparsers) -> None:
    """Add the parser of the verb."""
    add_verb(subparsers, "validate", validate, ValidateFlags, answers=["validate-reports"])


def validate(args: Arguments) -> int:
    """Print every fault of every file; return 0 if no file has a fault, else 2."""
    if not args.files:
        raise ConfigError(
            "there is no file to check", where="validate", expected="FILE…, or - for standard input"
        )
    reports = [_report(path, args) for path in args.files]
    answer(
        args.format,
        lambda: _documents(reports),
        lambda: _lines(reports, args),
        ensure_ascii=True,
    )
    return 0 if all(report.is_valid for report in reports) else 2


FaultAnswer: Any = extended("FaultAnswer", Fault, path=str)


class FileReport(TypedDict):
    """The result for one file.

    kind : kind of its documents.
    """

    file: str
    kind: str
    valid: bool
    faults: list[FaultAnswer]
    notes: list[str]


FileReports = list[FileReport]


def _documents(reports: list[Report]) -> FileReports:
    from dataclasses import asdict

    from simsched.formats.text.excerpts import format_path

    return [
        {
            "file": report.where,
            "kind": report.kind,
            "valid": report.is_valid,
            "faults": [{**asdict(fault), "path": format_path(fault.path)} for fault in report.faults],
            "notes": list(report.notes),
        }
        for report in reports
    ]


def _lines(reports: list[Report], args: Arguments) -> Iterator[str]:
    for report in reports:
        yield from map(str, report.faults)
        if report.is_valid and not args.quiet:
            plural = "" if report.documents == 1 else "s"
            countless = not report.documents and report.kind != "job"
            counted = report.kind if countless else f"{report.documents} {report.kind}{plural}"
            yield f"{report.where}: valid ({'; '.join((counted, *report.notes))})"


def _report(path: str, args: Arguments) -> Report:
    """Check one file; a file that cannot be read is a fault as well."""
    where = name_of(path)
    try:
        return _checked(path, where, args)
    except (SimschedError, OSError, RecursionError, MemoryError) as error:
        if not isinstance(error, SimschedError):
            error = SimschedError(text_of(error))
        faults = [
            Fault((), one.message, one.expected or "", where=_place(one.where, where))
            for one in (error, *error.others)
        ]
        return Report(where, args.kind, 0, tuple(faults))


def _place(place: str | None, where: str) -> str:
    """Return a place that begins with the user's name of the file."""
    name = Path(where).name
    if not place or place.startswith(where):
        return place or where
    return where + place[len(name) :] if place.startswith(name) else f"{where}: {place}"


def _checked(path: str, where: str, args: Arguments) -> Report:
    from simsched.formats.validate import not_recognised, validate_text

    kind = args.kind
    if kind in _LOADERS and path != "-":
        return _LOADERS[kind](path, where)
    text = read_text(path, lenient=kind == "swf")
    if kind == "auto":
        kind = guess_kind(text)
        if kind == "auto" and (error := not_recognised(text, where)) is not None:
            raise error
    if kind == "sss":
        from simsched.cli.options.job_objects import judge

        return judge(text, where, args.cluster)
    if kind in _LOADERS:
        return _LOADERS[kind](path, where) if path != "-" else _from_stdin(text, where, kind)
    return validate_text(text, where, kind, lenient=args.lenient)


def _from_stdin(text: str, where: str, kind: str) -> Report:
    """Check standard input with a loader that needs a file."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as noted:
        path = Path(folder) / "stdin"
        xml = text.lstrip()[:1] == "<"  # may declare an encoding; a byte order mark goes before that
        path.write_text(text, encoding="utf-16" if xml else "utf-8")
        try:
            found = _LOADERS[kind](str(path), where)
        except SimschedError as error:
            raise error.renamed(str(path), where) from None
    for one in noted:
        if isinstance(one.message, InputWarning):
            lines = [line.replace(str(path), where) for line in one.message.lines]
            warnings.warn(InputWarning(where, lines), stacklevel=1)
    return found


def guess_kind(text: str) -> str:
    """Return the probable kind of a text, one of the kinds of ``--as``; auto for a request.

    >>> guess_kind('{"version": 1, "execution": {}}'), guess_kind("; Version: 2.2"), guess_kind("core=4")
    ('r', 'swf', 'auto')
    """
    from simsched.formats.machines.recognition import (
        CONSTRAINT,
        QUEUE_SNAPSHOT,
        REQUEST,
        R,
        look_of,
        table_columns,
    )
    from simsched.formats.text.sniffing import HEAD, is_xml, outline
    from simsched.workload.readers.tables.column_map import presets_for

    look = look_of(text)
    if look is not None and look.role:
        if look.role == REQUEST:
            return "constraint" if look == CONSTRAINT else "auto"
        if look.reader in ("swf", "sss"):
            return look.reader
        return "r" if look.what == R else look.role
    if look == QUEUE_SNAPSHOT:
        return "queue"
    names, form = table_columns(text[:HEAD])
    if names and presets_for(names, form):
        return "workload"
    # Jobs that are no list are still meant as such: their reader says what it expects.
    if "jobs" in outline(text) or re.search(r"(?m)^jobs\s*:", text[:HEAD]):
        return "workload"
    return "sss" if is_xml(text) else "auto"


def _r(path: str, where: str) -> Report:
    from simsched.formats.cluster.rset import ResourceSet

    found = ResourceSet.from_dict(load_document(read_text(path), where), where)
    if found.scheduling:
        _cluster(path, where)
    return Report(where, "r", 1, ())


def _cluster(path: str, where: str) -> Report:
    from simsched.graph.cluster import load_cluster

    load_cluster(path)
    return Report(where, "graph", 1, ())


#: Reasons to ignore a record that are not faults of a trace: these jobs never ran.
_NO_JOBS = {
    "partial execution record",
    "cancelled before it started",
    "never started",
    "no processors",
    "no run time",
    "still waiting when the queue was listed",
}


def _workload(kind: str | None) -> Callable[[str, str], Report]:
    def check(path: str, where: str) -> Report:
        from simsched.workload.load import load_workload

        loaded = load_workload(path, as_=kind)
        faults = tuple(
            Fault(
                (),
                f"{skip.reason}: {skip.text}" if skip.text else skip.reason,
                where=_place(skip.where, where),
            )
            for skip in loaded.skipped
            if skip.reason not in _NO_JOBS
        )
        counts = loaded.skipped_counts.items()
        notes = tuple(f"ignored {count} records: {reason}" for reason, count in counts if reason in _NO_JOBS)
        return Report(where, "job", len(loaded.jobs), faults, notes)

    return check


def _queue(path: str, where: str) -> Report:
    from simsched.workload.queue_snapshot import load_queue_snapshot

    found = load_queue_snapshot(path)
    if found is None:
        raise FormatError("not a queue snapshot", where=where, expected="kind: simsched queue")
    return Report(where, "job", len(found.running) + len(found.waiting), ())


_LOADERS: dict[str, Callable[[str, str], Report]] = {
    "r": _r,
    "jgf": _cluster,
    "cluster": _cluster,
    "swf": _workload("swf"),
    "workload": _workload(None),
    "queue": _queue,
}
