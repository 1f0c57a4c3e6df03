"""``simsched convert`` and ``simsched shape``: requests in other formats.

The module is named after the more general of its two verbs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from simsched.cli.support.output import print_lines, write
from simsched.cli.support.parser import Parser
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, field, flag
from simsched.declare.kinds import choice
from simsched.errors import ConfigError, FormatError, RequestError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from simsched.cli.support.parser import Subparsers
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex

T = TypeVar("T")

TARGETS = ("shape", "jobspec", "v1", "json", "yaml", "rfc31", "rfc35", "jobs", "jsonl", "sss")


class _WithCommand(Parser):
    """A parser that keeps everything after ``--`` as the command of the jobspec."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = list(sys.argv[1:] if args is None else args)
        at = words.index("--") if "--" in words else len(words)
        found, rest = super().parse_known_args(words[:at], namespace)
        found.command = words[at + 1 :] or None
        return found, rest


class JobFlags(Flags, frozen=True, kw_only=True):
    """Attributes of requests.

    duration : duration of the jobspec (RFC 23): 90, 30m, 1.5h, inf.
    constraint : constraint of the jobspec (RFC 35): 'ssd and not host:node[0-3]'.
    queue : queue of the jobspec.
    """

    duration: Annotated[str | None, flag("D")] = None
    constraint: Annotated[str | None, flag("C")] = None
    queue: Annotated[str | None, flag("NAME")] = None


class ShapeFlags(Flags, frozen=True, kw_only=True):
    """Expand an RFC 46 shape into the resources of a jobspec.

    Expand an RFC 46 shape into the resources of a jobspec or, with --from, print the shortest shape of the
    resources of a file.

    shape : a shape such as slot=4/[core=2;gpu], or - for standard input.
    format : yaml (default), json or shape (default with --from).
    source : read jobspecs, resources or shapes from FILE.
    jobspec : print a whole jobspec instead of its resources.

    JSON Schema of a jobspec: simsched schema rfc14.
    """

    shape: Annotated[str | None, flag("SHAPE", positional=True, nargs="?")] = None
    format: Literal["yaml", "json", "shape"] | None = None
    source: Annotated[str | None, flag("FILE")] = field(name="from", default=None)
    jobspec: bool = False


class ConvertFlags(Flags, frozen=True, kw_only=True):
    """Convert requests between jobspec, shape, Job Object and constraint formats.

    Convert jobspecs, shapes and SSS Job Objects (sss), or constraints (rfc31: JSON, rfc35: text). The target
    jobspec is version 1, which Flux takes, or 999 with a note if V1 cannot express the request. The targets
    json and yaml only change the syntax of a jobspec; jobs (jobs.yaml) and jsonl make a workload of Job
    Objects.

    file : jobspecs, shapes, Job Objects or a constraint, or - for standard input.
    to : format to write.
    cluster : resolve host patterns of Job Objects on this cluster.
    format : syntax of jobspec and v1 (default yaml).

    JSON Schema of a jobspec: simsched schema rfc14 or v1.
    """

    file: Annotated[str, flag("FILE", positional=True)]
    to: Annotated[str, choice(*TARGETS)]
    cluster: Annotated[str | None, flag("CLUSTER")] = None
    format: Literal["yaml", "json"] | None = None


def register(subparsers: Subparsers) -> None:
    """Add the verbs `shape` and `convert`."""
    usage = "simsched shape [options] (SHAPE | --from FILE) [-- COMMAND…]"
    add_verb(subparsers, "shape", shape, ShapeFlags, JobFlags, usage=usage).__class__ = _WithCommand
    usage = "simsched convert [options] FILE --to TARGET [-- COMMAND…]"
    add_verb(subparsers, "convert", convert, ConvertFlags, JobFlags, usage=usage).__class__ = _WithCommand


# ---------------------------------------------------------------- shape


def shape(args: argparse.Namespace) -> int:
    """Expand shapes, or shorten resources."""
    if (args.shape is None) == (args.source is None):
        raise ConfigError(
            "there has to be exactly one source", where="shape", expected="SHAPE or --from FILE"
        )
    if not args.jobspec and any(option is not None for option in _job_options(args).values()):
        raise ConfigError(
            "a duration, constraint, queue or command needs a jobspec",
            where="shape",
            expected="--jobspec",
        )
    if args.jobspec:
        jobs = _jobs(args)
        if args.format == "shape":
            print_lines(job.to_shape() for job in jobs)
        else:
            _emit([job.to_dict() for job in jobs], args.format or "yaml")
        return 0
    form = args.format or ("shape" if args.source else "yaml")
    lists = _resources(args)
    if form == "shape":
        from simsched.formats.jobspec.shape import format_shape

        print_lines(format_shape(resources) for resources in lists)
    else:
        _emit([[vertex.to_dict() for vertex in resources] for resources in lists], form)
    return 0


def _resources(args: argparse.Namespace) -> list[tuple[ResourceVertex, ...]]:
    if args.source is not None or args.shape == "-":
        from simsched.formats.request_files import load_resources

        return _some(load_resources(args.source or "-"), args.source or "-")
    from simsched.formats.jobspec.shape import parse_shape

    return [parse_shape(args.shape)]


def _some(found: list[T], path: str) -> list[T]:
    """Return the requests of a file; FormatError if there are none."""
    if not found:
        from simsched.formats.text.documents import name_of

        expected = "jobspecs, shapes or Job Objects"
        raise FormatError("the file has no request", where=name_of(path), expected=expected)
    return found


def _job_options(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in (*JobFlags.__struct_fields__, "command")}


def _jobs(args: argparse.Namespace) -> list[Jobspec]:
    options = _job_options(args)
    if args.source is not None or args.shape == "-":
        from simsched.formats.request_files import load_requests

        return _some(load_requests(args.source or "-", **options), args.source or "-")
    from simsched.formats.jobspec.jobspec import Jobspec

    return [Jobspec.from_shape(args.shape, **options)]


def _emit(documents: list[Any], form: str) -> None:
    """Print documents as YAML with separators, or as JSON (JSON Lines if several)."""
    if form == "json":
        import json

        indent = 2 if len(documents) == 1 else None
        lines = (json.dumps(document, indent=indent, ensure_ascii=False) for document in documents)
        print_lines(lines, "json")
    else:
        from simsched.formats.text.yaml_text import to_yaml

        write("---\n".join(map(to_yaml, documents)), "other")


# ---------------------------------------------------------------- convert


def convert(args: argparse.Namespace) -> int:
    """Write the requests of a file in another format."""
    if args.to in {"rfc31", "rfc35"}:
        return _convert_constraint(args)
    from simsched.cli.options.requests import is_request_file
    from simsched.formats.text.documents import name_of, read_text

    # as for other verbs, a request is a shape or a file; a single word is more likely a misspelt file
    is_shape = any(sign in args.file for sign in "=[{;") and not is_request_file(args.file)
    text, where = (args.file, "FILE") if is_shape else (read_text(args.file), name_of(args.file))
    if args.to in {"jobs", "jsonl"}:
        from simsched.cli.options.job_objects import workload_lines

        print_lines(workload_lines(args, text, where, args.to))
        return 0
    if args.to == "sss":
        from simsched.cli.options.job_objects import as_objects

        write(as_objects(args, text, where, _requests), "xml")
        return 0
    jobs = _requests(args, text, where)
    if args.to == "shape":
        print_lines(job.to_shape() for job in jobs)
        return 0
    if args.to == "v1":
        jobs = [job.to_v1() for job in jobs]
    elif args.to == "jobspec":
        jobs = [
            _submittable(job, f"{where}[{at}]" if len(jobs) > 1 else where) for at, job in enumerate(jobs)
        ]
    form = args.to if args.to in {"json", "yaml"} else args.format or "yaml"
    _emit([job.to_dict() for job in jobs], form)
    return 0


def _submittable(job: Jobspec, where: str) -> Jobspec:
    """Return a request by RFC 25, as Flux takes it; by RFC 14, with a note, if V1 cannot express it."""
    from simsched.cli.support.messages import note

    timed = job if job.duration is not None or "duration" in job.system else job.with_system(duration=0.0)
    try:
        return timed.to_v1()
    except RequestError as error:
        reason = str(error).replace("this is not a V1 jobspec: ", "")
        note(f"{where}: version 999 (RFC 14), which Flux does not take: {reason}")
        return job.to_canonical()


def _requests(args: argparse.Namespace, text: str, where: str) -> list[Jobspec]:
    """Return the jobspecs of a text; FormatError if there are none."""
    from simsched.cli.options.requests import from_command
    from simsched.formats.request_files import overridden, requests_of
    from simsched.formats.text.sniffing import is_xml

    options = _job_options(args)
    if is_xml(text):
        from simsched.cli.options.job_objects import note_losses, records_of

        records = records_of(args, text, where)
        note_losses(records)
        found = [record.jobspec for record in records]
    elif (commands := from_command(text, where)) is not None:
        found = [request.jobspec for request in commands]
    else:
        return _some(requests_of(text, where, **options), args.file)
    given = {key: value for key, value in options.items() if value is not None}
    return _some(overridden(found, given), args.file)


def _convert_constraint(args: argparse.Namespace) -> int:
    import json

    from simsched.formats.rfc.constraint import from_json, parse_constraint, to_json
    from simsched.formats.text.documents import load_document, name_of, read_text
    from simsched.formats.text.sniffing import is_constraint_document

    text, where = read_text(args.file), name_of(args.file)
    if is_constraint_document(text):
        document = load_document(text, where)
        try:
            constraint = from_json(document)
        except FormatError as error:
            raise error.at(where) from None
    else:
        constraint = parse_constraint(text.strip(), where)
    print_lines([json.dumps(to_json(constraint)) if args.to == "rfc31" else str(constraint)])
    return 0
