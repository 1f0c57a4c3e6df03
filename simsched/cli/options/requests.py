"""The requests of ``feasible`` and ``match``: options, reading, and their answers as text and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias

from simsched.cli.options.site_options import add_site, refuse_words
from simsched.cli.support.messages import note, warn
from simsched.declare.flags import Flags, add_flags, flag
from simsched.errors import ConfigError, FormatError, SimschedError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.match.matcher import Matcher
    from simsched.match.outcome import Outcome
    from simsched.site.site import Site

    Answers: TypeAlias = Sequence[tuple["NamedRequest", Outcome]]
    QueueQuestion: TypeAlias = Callable[[Matcher, bool], Callable[[Jobspec], Outcome]]

AS_CLUSTER = "the cluster has to be the first argument"
FILE_ENDINGS = (".yaml", ".yml", ".json", ".jsonl", ".xml", ".gz")
PATH_BEGINNINGS = ("/", "./", "../", "~/")  # no shape begins with a slash or a dot


class NamedRequest(NamedTuple):
    """A request of the command line and its name in the answer."""

    label: str
    jobspec: Jobspec


class RequestFlags(Flags, frozen=True, kw_only=True):
    """Requests.

    words : a cluster (a file or a bundled name), then requests: shapes (RFC 46), files of jobspecs or of
        shapes (one per line), or - for standard input.
    constraint : RFC 35 constraint that every request has to meet besides its own.
    lenient : accept, with a warning, jobspecs whose tasks name no slot or an unknown one.
    """

    words: Annotated[tuple[str, ...], flag("CLUSTER REQUEST", positional=True, nargs="+")]
    constraint: Annotated[str | None, flag("C")] = None
    lenient: bool = False


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both verbs: the cluster, the requests, a constraint."""
    parser.usage = "%(prog)s [-h] [options] CLUSTER REQUEST [REQUEST ...]"
    add_flags(parser, RequestFlags)
    add_site(parser, runs=False)


def split(words: Sequence[str], site: Site | None = None) -> tuple[list[str], Sequence[str]]:
    """Split the arguments into the cluster and the requests; with a site, all of them are requests."""
    if site is not None:
        refuse_words(str(site.path), words)
        return [str(site.cluster_file)], words
    if len(words) < 2:
        raise ConfigError("there is no request", where=words[0], expected="CLUSTER REQUEST…")
    return [words[0]], words[1:]


def read_requests(
    arguments: Sequence[str], constraint: str | None, site: Site | None = None, *, lenient: bool = False
) -> Iterator[NamedRequest]:
    """Yield the requests of the command line: files in their order, shapes as they are.

    Commands of Slurm count the CPUs and gpus of the site.  `lenient` accepts tasks without a slot, with a
    warning.

    Raises
    ------
    SimschedError
        for an argument that is neither a file nor a shape; the message names it.
    """
    for argument in arguments:
        found = (
            _from_file(argument, site, lenient=lenient)
            if is_request_file(argument)
            else from_command(argument, argument, site) or [_from_shape(argument)]
        )
        for request in found:
            yield NamedRequest(request.label, _constrained(request.jobspec, constraint))


def is_request_file(argument: str) -> bool:
    """Return whether an argument names a file or standard input; otherwise it is a shape or a command."""
    from simsched.formats.submit_commands import is_command

    if is_command(argument):  # its last word may be a file
        return False
    try:
        written_as_file = argument.endswith(FILE_ENDINGS) or argument.startswith(PATH_BEGINNINGS)
        path = Path(argument)  # a directory may have the name of a shape
        return argument == "-" or written_as_file or (path.exists() and not path.is_dir())
    except (OSError, ValueError):  # a shape may be longer than any file name
        return False


def _from_file(argument: str, site: Site | None, *, lenient: bool) -> list[NamedRequest]:
    from simsched.formats.request_files import jobspecs_of
    from simsched.formats.text.documents import name_of, read_text
    from simsched.formats.text.sniffing import looks_like_shapes, read_shapes

    text, where = read_text(argument), name_of(argument)
    if not text.strip():
        raise ConfigError("the file has no request", where=where, expected="jobspecs, or shapes one per line")
    commands = from_command(text, where, site)
    if commands is not None:
        return commands
    if looks_like_shapes(text):
        return [_from_shape(shape, place) for shape, place in read_shapes(text, where)]
    jobspecs = jobspecs_of(text, where, warn=warn, lenient=warn if lenient else None)
    name = "stdin" if argument == "-" else argument
    if not jobspecs:
        raise ConfigError("the file has no jobspec", where=name, expected="one or more jobspecs, or shapes")
    if len(jobspecs) == 1:
        return [NamedRequest(name, jobspecs[0])]
    return [NamedRequest(f"{name}[{number}]", jobspec) for number, jobspec in enumerate(jobspecs)]


def from_command(text: str, where: str, site: Site | None = None) -> list[NamedRequest] | None:
    """Return the requests of a batch script or of commands that submit jobs; None for other texts."""
    from simsched.formats.submit_commands import command_requests

    found = command_requests(text, where)
    if found is not None and site is not None:
        from simsched.site.log_use import slurm_units

        found = command_requests(text, where, slurm_units(site))
    for request in found or ():
        note(f"{request.label}: read as {request.jobspec.to_shape()}")
        for text_of_note in request.notes:
            note(f"{request.label}: {text_of_note}")
    return None if found is None else [NamedRequest(one.label, one.jobspec) for one in found]


def _from_shape(text: str, place: str | None = None) -> NamedRequest:
    from simsched.formats.jobspec.jobspec import Jobspec

    try:
        return NamedRequest(text, Jobspec.from_shape(text))
    except FormatError as error:
        raise error.at(place) if place else error from None


def _constrained(jobspec: Jobspec, text: str | None) -> Jobspec:
    if text is None:
        return jobspec
    from simsched.formats.rfc.constraint import parse_constraint, to_json

    more, own = to_json(parse_constraint(text)), jobspec.constraint
    return jobspec.with_system(constraints=more if own is None else {"and": [to_json(own), more]})


def outcome_of(request: NamedRequest, question: Callable[[Jobspec], Outcome]) -> Outcome:
    """Return the outcome of one request; an error names the request."""
    try:
        return question(request.jobspec)
    except SimschedError as error:
        raise error.at(request.label) from None


Refusal = Literal["later", "never", "undecided"]
REFUSALS: dict[str, Refusal] = {"busy": "later", "infeasible": "never", "undecided": "undecided"}
"""Status of a refusal → the word in the answer."""


def as_text(request: NamedRequest, outcome: Outcome, yes: str) -> str:
    """Return an answer as text; a refusal has its reasons."""
    if outcome:
        return f"{request.label}: {yes}"
    reasons = str(outcome.reasons).splitlines()
    return "\n".join([f"{request.label}: {REFUSALS[outcome.status]}", *(f"  {line}" for line in reasons)])


def note_clusters(refused: Iterable[NamedRequest], hint: str) -> None:
    """Note refused requests that are names of bundled clusters: they may be in the wrong place."""
    from simsched.bundled import bundled

    clusters = bundled("clusters")
    for name in dict.fromkeys(request.label for request in refused if request.label in clusters):
        note(f"{name} was read as a request, but it is the name of a bundled cluster; {hint.format(name)}")


def note_sharing(requests: Iterable[NamedRequest]) -> None:
    """Note requests that claim nothing, and the shapes that would."""
    from simsched.formats.jobspec.sharing_notes import notes_on_sharing

    for text in notes_on_sharing((request.jobspec.resources for request in requests), "request"):
        note(text)


# --- the queues of a configuration


class QueueFlags(Flags, frozen=True, kw_only=True):
    """Queues of requests.

    config : check also the queues of this configuration (TOML, YAML, JSON): constraints, limits,
        defaults.
    queue : queue of every request, instead of its own or the default.
    duration : duration of requests that state none, such as 2h.
    """

    config: Annotated[str | None, flag("FILE")] = None
    queue: Annotated[str | None, flag("NAME")] = None
    duration: Annotated[str | None, flag("D")] = None


def queue_question(args: argparse.Namespace, site: Site | None = None) -> QueueQuestion | None:
    """Return the question to the queues of a configuration (matcher, now → jobspec → outcome), or None.

    Raises
    ------
    ConfigError, FormatError
        for options without a configuration, or one that cannot be read.
    """
    if args.config is None and site is None:
        for option in ("queue", "duration"):
            if getattr(args, option) is not None:
                raise ConfigError(
                    f"--{option} needs a configuration",
                    where=f"--{option}",
                    expected="--config FILE or --site DIR",
                )
        return None
    from simsched.formats.rfc.duration import parse_duration
    from simsched.simulation.feasibility import QueueFeasibility, queue_rules

    rules = queue_rules(args.config) if site is None else queue_rules(site.config, str(site.path))
    duration = None if args.duration is None else parse_duration(args.duration, "--duration")

    def question(matcher: Matcher, now: bool) -> Callable[[Jobspec], Outcome]:
        queues = QueueFeasibility(matcher, rules)
        return lambda jobspec: queues.answer(jobspec, queue=args.queue, duration=duration, now=now)

    return question


def configured_text(request: NamedRequest, outcome: Outcome, yes: str) -> str:
    """Return an answer with its queue as text: notes, the reasons with their codes, the queues that fit."""
    placement = outcome.placement
    assert placement is not None
    queue = "" if placement.queue is None else f" in queue {placement.queue}"
    lines = [f"{request.label}: {yes if outcome else REFUSALS[outcome.status]}{queue}"]
    lines += [f"  note: {note}" for note in placement.notes]
    if not outcome:
        lines += [f"  {line}" for line in outcome.reasons.with_codes()]
        lines += [f"  queues that would take it: {', '.join(placement.takers) or 'none'}"]
    return "\n".join(lines)
