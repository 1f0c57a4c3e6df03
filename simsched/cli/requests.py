"""The verbs that read and write requests: shape, validate, convert."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from simsched.errors import ConfigError, FormatError, SimschedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from simsched.cli import Subparsers
    from simsched.formats.jobspec import Jobspec
    from simsched.formats.validate import Report
    from simsched.formats.vertex import ResourceVertex

T = TypeVar("T")

REQUEST_KINDS = ("jobspec", "v1", "shape", "constraint")
OTHER_KINDS = ("r", "jgf", "cluster", "sss", "swf", "workload")
TARGETS = ("shape", "jobspec", "v1", "json", "yaml", "rfc31", "rfc35", "jobs", "jsonl", "sss")


class _WithCommand(argparse.ArgumentParser):
    """A parser that leaves everything behind ``--`` alone: it is the command of the jobspec."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = list(sys.argv[1:] if args is None else args)
        at = words.index("--") if "--" in words else len(words)
        found, rest = super().parse_known_args(words[:at], namespace)
        found.command = words[at + 1 :] or None
        return found, rest


def register(subparsers: Subparsers) -> None:
    """Add the parsers of the three verbs."""
    _register_shape(subparsers)
    _register_validate(subparsers)
    _register_convert(subparsers)


def _job_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--duration", metavar="D", help="RFC 23 duration: 90, 30m, 1.5h, inf")
    parser.add_argument("--constraint", metavar="C", help="RFC 35 constraint: 'ssd and not host:node[0-3]'")
    parser.add_argument("--queue", metavar="NAME", help="queue of the jobspec")


def _register_shape(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "shape",
        help="expand an RFC 46 shape into jobspec resources",
        description="Expand an RFC 46 shape into the resources of a jobspec, or write the shortest shape "
        "of a file's resources (--from).",
        usage="simsched shape [options] (SHAPE | --from FILE) [-- COMMAND…]",
    )
    parser.__class__ = _WithCommand
    parser.add_argument(
        "shape", nargs="?", metavar="SHAPE", help="such as slot=4/[core=2;gpu]; - reads stdin"
    )
    parser.add_argument(
        "--format", choices=("yaml", "json", "shape"), help="default: yaml; with --from, shape"
    )
    parser.add_argument("--from", dest="source", metavar="FILE", help="jobspecs, resources or shapes to read")
    parser.add_argument("--jobspec", action="store_true", help="a whole jobspec and not its resources alone")
    _job_options(parser)
    parser.set_defaults(run=shape)


def _register_validate(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "validate",
        help="check jobspecs, shapes, constraints, R and JGF; every fault with its place",
        description="Print every fault with file, line, column and JSON path; exit status 2 if there is any.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="- reads stdin")
    kinds = (*REQUEST_KINDS, *OTHER_KINDS, "auto")
    parser.add_argument("--as", dest="kind", choices=kinds, default="auto", help="what the files should be")
    parser.add_argument("--print-schema", choices=("v1", "rfc14"), help="print the JSON Schema and exit")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--quiet", "-q", action="store_true", help="print faults only")
    parser.add_argument(
        "--cluster", metavar="CLUSTER", help="what patterns in Job Objects are matched against"
    )
    parser.set_defaults(run=validate)


def _register_convert(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "convert",
        help="turn one job format into another",
        description="Convert jobspecs, shapes and SSS Job Objects (sss), and constraints (rfc31: JSON, "
        "rfc35: text). json and yaml keep what the file holds and change its syntax; jobs (jobs.yaml) and "
        "jsonl are workloads, made of Job Objects.",
        usage="simsched convert [options] FILE --to TARGET [-- COMMAND…]",
    )
    parser.__class__ = _WithCommand
    parser.add_argument(
        "file", metavar="FILE", help="jobspecs, shapes, Job Objects or a constraint; - reads stdin"
    )
    parser.add_argument("--to", required=True, choices=TARGETS)
    parser.add_argument(
        "--cluster", metavar="CLUSTER", help="what patterns in Job Objects are matched against"
    )
    parser.add_argument("--format", choices=("yaml", "json"), help="syntax of jobspec and v1; default: yaml")
    _job_options(parser)
    parser.set_defaults(run=convert)


# ---------------------------------------------------------------- shape


def shape(args: argparse.Namespace) -> int:
    """Expand shapes, or shorten resources."""
    if (args.shape is None) == (args.source is None):
        raise ConfigError(
            "one of them is needed and one only", where="shape", expected="SHAPE or --from FILE"
        )
    job_options = (args.duration, args.constraint, args.queue, args.command)
    if not args.jobspec and any(option is not None for option in job_options):
        raise ConfigError(
            "a duration, constraint, queue or command belongs to a jobspec",
            where="shape",
            expected="--jobspec",
        )
    if args.jobspec:
        _emit([job.to_dict() for job in _jobs(args)], args.format or "yaml", _document_shape)
        return 0
    form = args.format or ("shape" if args.source else "yaml")
    lists = _resources(args)
    if form == "shape":
        from simsched.formats.shape import format_shape

        _print_lines(format_shape(resources) for resources in lists)
    else:
        _emit([[vertex.to_dict() for vertex in resources] for resources in lists], form, str)
    return 0


def _resources(args: argparse.Namespace) -> list[tuple[ResourceVertex, ...]]:
    if args.source is not None or args.shape == "-":
        from simsched.formats.requests import load_resources

        return _some(load_resources(args.source or "-"), args.source or "-")
    from simsched.formats.shape import parse_shape

    return [parse_shape(args.shape)]


def _some(found: list[T], path: str) -> list[T]:
    """Return what was found in a file; `SimschedError` if that is nothing."""
    if not found:
        where = "standard input" if path == "-" else path
        raise FormatError(
            "there is no request in it", where=where, expected="jobspecs, shapes or Job Objects"
        )
    return found


def _jobs(args: argparse.Namespace) -> list[Jobspec]:
    options = {name: getattr(args, name) for name in ("duration", "constraint", "queue", "command")}
    if args.source is not None or args.shape == "-":
        from simsched.formats.requests import load_requests

        return _some(load_requests(args.source or "-", **options), args.source or "-")
    from simsched.formats.jobspec import Jobspec

    return [Jobspec.from_shape(args.shape, **options)]


def _document_shape(document: Any) -> str:
    from simsched.formats.jobspec import Jobspec

    return Jobspec.from_dict(document).to_shape()


def _emit(documents: list[Any], form: str, to_shape: Callable[[Any], str]) -> None:
    """Print documents: YAML with separators between them, JSON (Lines if several), or shapes."""
    if form == "shape":
        _print_lines(map(to_shape, documents))
    elif form == "json":
        import json

        indent = 2 if len(documents) == 1 else None
        _print_lines(json.dumps(document, indent=indent, ensure_ascii=False) for document in documents)
    else:
        from simsched.formats.yaml_out import to_yaml

        _write("---\n".join(map(to_yaml, documents)))


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        _write(f"{line}\n")


def _write(text: str) -> None:
    """Write an answer; `SimschedError` where the terminal's encoding has no such characters."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise SimschedError(
            f"the character {bad!a} cannot be written in {error.encoding}", expected="UTF-8 text"
        ) from None


# ---------------------------------------------------------------- validate


def validate(args: argparse.Namespace) -> int:
    """Print every fault of every file; 0 if there is none, else 2."""
    if args.print_schema:
        from simsched.formats.validate import schema_text

        sys.stdout.write(schema_text(args.print_schema))
        return 0
    if not args.files:
        raise ConfigError("no file is named", where="validate", expected="FILE…, or - for stdin")
    reports = [_report(path, args.kind, args.cluster) for path in args.files]
    if args.format == "json":
        _print_json(reports)
    else:
        for report in reports:
            _print_lines(_printable(str(fault)) for fault in report.faults)
            if report.is_valid and not args.quiet:
                _print_lines([_printable(f"{report.where}: valid ({_counted(report)})")])
    return 0 if all(report.is_valid for report in reports) else 2


def _printable(text: str) -> str:
    """Return a message without what standard output cannot show; it quotes what the file holds."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _counted(report: Report) -> str:
    many = "" if report.documents == 1 else "s"
    countless = not report.documents and report.kind != "job"
    counted = report.kind if countless else f"{report.documents} {report.kind}{many}"
    return "; ".join((counted, *report.notes))


def _print_json(reports: list[Report]) -> None:
    import json
    from dataclasses import asdict

    from simsched.formats.lexical import format_path

    documents = []
    for report in reports:
        faults = [{**asdict(fault), "path": format_path(fault.path)} for fault in report.faults]
        documents.append(
            {"file": report.where, "kind": report.kind, "valid": report.is_valid, "faults": faults}
        )
    _write(json.dumps(documents, indent=2) + "\n")


def _report(path: str, kind: str, cluster: str | None) -> Report:
    """Judge one file, a fault of reading it included."""
    from simsched.formats.faults import Fault
    from simsched.formats.validate import Report

    where = "standard input" if path == "-" else path
    try:
        return _judge(path, where, kind, cluster)
    except (SimschedError, OSError, RecursionError, MemoryError) as error:
        from simsched.cli import _text_of

        message, expected, place = _text_of(error), "", where
        if isinstance(error, SimschedError):
            message, expected, place = error.message, error.expected or "", _place(error.where, where)
        return Report(where, kind, 0, (Fault((), message, expected, where=place),))


def _place(place: str | None, where: str) -> str:
    """Return a place that begins with the file as the user named it."""
    from pathlib import Path

    name = Path(where).name
    if not place or place.startswith(where):
        return place or where
    return where + place[len(name) :] if place.startswith(name) else f"{where}: {place}"


def _judge(path: str, where: str, kind: str, cluster: str | None) -> Report:
    from simsched.formats.text import read_text
    from simsched.formats.validate import validate_text

    if kind in _LOADERS and path != "-":
        return _LOADERS[kind](path, where)
    text = read_text(path, lenient=kind == "swf")
    if kind == "auto":
        kind = guess_kind(text)
    if kind == "sss":
        from simsched.cli.job_objects import judge

        return judge(text, where, cluster)
    if kind in _LOADERS:
        return _LOADERS[kind](path, where) if path != "-" else _from_stdin(text, where, kind)
    return validate_text(text, where, kind)  # type: ignore[arg-type]


def _from_stdin(text: str, where: str, kind: str) -> Report:
    """Judge what came from standard input with a loader that wants a file."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        xml = text.lstrip()[:1] == "<"  # may declare an encoding; a byte order mark goes before that
        path.write_text(text, encoding="utf-16" if xml else "utf-8")
        try:
            return _LOADERS[kind](str(path), where)
        except SimschedError as error:
            place = (error.where or where).replace(str(path), where)
            raise type(error)(error.message, where=place, expected=error.expected) from None


def guess_kind(text: str) -> str:
    """Return what a text seems to be: one of the kinds of ``--as``, or auto for a request.

    >>> guess_kind('{"version": 1, "execution": {}}'), guess_kind("; Version: 2.2"), guess_kind("core=4")
    ('r', 'swf', 'auto')
    """
    head = text[:100_000].lstrip("\ufeff \t\r\n")
    if re.match(r"<[?!\w]", head):
        return "jgf" if "<graphml" in head else "sss"
    if head.startswith(";") or re.match(r"-?\d+(?:[ \t]+-?\d+(?:\.\d+)?){10}", head):
        return "swf"
    if re.match(r"[^\n]*\|", head) and "JobID" in head[:200]:
        return "workload"
    keys = set(re.findall(r"""(?m)(?:^|[{,\s])["']?(\w+)["']?\s*:(?=\s|["'\[{\d]|$)""", head[:20_000]))
    top = set(re.findall(r"(?m)^(\w+):", head))  # of a YAML text; in JSON anything may stand anywhere
    for needed, kind in _KEYS:
        if needed <= top or (needed <= keys and "resources" not in keys):
            return kind
    first = re.match(r"""\{?\s*["']?(\w+)["']?\s*:""", head)
    operators = {"properties", "hostlist", "ranks", "and", "or", "not"}
    return "constraint" if first and first[1] in operators else "auto"


#: Keys that tell a kind of document, looked for in this order.
_KEYS = (
    ({"execution"}, "r"),
    ({"R_lite"}, "r"),
    ({"graph", "nodes"}, "jgf"),
    ({"groups"}, "cluster"),
    ({"jobs"}, "workload"),
    ({"shape"}, "workload"),
)


def _r(path: str, where: str) -> Report:
    from simsched.formats.rset import ResourceSet
    from simsched.formats.text import load_document, read_text
    from simsched.formats.validate import Report

    found = ResourceSet.from_dict(load_document(read_text(path), where), where)
    if found.scheduling:
        _cluster(path, where)
    return Report(where, "r", 1, ())


def _cluster(path: str, where: str) -> Report:
    from simsched.formats.validate import Report
    from simsched.graph.cluster import load_cluster

    load_cluster(path)
    return Report(where, "graph", 1, ())


#: Reasons to leave a record out that are no faults of a trace: it says that these jobs never ran.
_NO_JOBS = {
    "partial execution record",
    "cancelled before it started",
    "never started",
    "no processors",
    "no run time",
}


def _workload(kind: str | None) -> Callable[[str, str], Report]:
    def judge(path: str, where: str) -> Report:
        from simsched.formats.faults import Fault
        from simsched.formats.validate import Report
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
        notes = tuple(f"{count} records left out: {reason}" for reason, count in counts if reason in _NO_JOBS)
        return Report(where, "job", len(loaded.jobs), faults, notes)

    return judge


_LOADERS: dict[str, Callable[[str, str], Report]] = {
    "r": _r,
    "jgf": _cluster,
    "cluster": _cluster,
    "swf": _workload("swf"),
    "workload": _workload(None),
}


# ---------------------------------------------------------------- convert


def convert(args: argparse.Namespace) -> int:
    """Write the requests of a file in another form."""
    if args.to in {"rfc31", "rfc35"}:
        return _convert_constraint(args)
    from simsched.formats.text import read_text

    where = "standard input" if args.file == "-" else args.file
    text = read_text(args.file)
    if args.to in {"jobs", "jsonl"}:
        from simsched.cli.job_objects import workload_lines

        _print_lines(workload_lines(args, text, where, args.to))
        return 0
    if args.to == "sss":
        from simsched.cli.job_objects import as_objects

        _write(as_objects(args, text, where, _requests))
        return 0
    jobs = _requests(args, text, where)
    if args.to == "shape":
        _print_lines(job.to_shape() for job in jobs)
        return 0
    if args.to == "v1":
        jobs = [job.to_v1() for job in jobs]
    elif args.to == "jobspec":
        jobs = [job.to_canonical() for job in jobs]
    form = args.to if args.to in {"json", "yaml"} else args.format or "yaml"
    _emit([job.to_dict() for job in jobs], form, str)
    return 0


def _requests(args: argparse.Namespace, text: str, where: str) -> list[Jobspec]:
    """Return the jobspecs of a text; `SimschedError` where it has none."""
    from simsched.formats.forms import is_xml
    from simsched.formats.requests import overridden, requests_of

    options = {name: getattr(args, name) for name in ("duration", "constraint", "queue", "command")}
    if is_xml(text):
        from simsched.cli.job_objects import records_of, tell_losses

        records = records_of(args, text, where)
        tell_losses(records)
        given = {key: value for key, value in options.items() if value is not None}
        jobs = overridden([record.jobspec for record in records], given)
    else:
        jobs = requests_of(text, where, **options)
    return _some(jobs, args.file)


def _convert_constraint(args: argparse.Namespace) -> int:
    import json

    from simsched.formats.constraint import from_json, to_json
    from simsched.formats.constraint_text import parse_constraint
    from simsched.formats.text import load_document, read_text

    text = read_text(args.file)
    is_json = text.lstrip().startswith("{")
    constraint = from_json(load_document(text, args.file)) if is_json else parse_constraint(text.strip())
    _print_lines([json.dumps(to_json(constraint)) if args.to == "rfc31" else str(constraint)])
    return 0
