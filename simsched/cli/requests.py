"""``simsched feasible`` and ``match``: whether a cluster could run requests, and what they would get.

Both read the same requests: shapes, files and commands.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias, cast

from simsched.cli.options.site_options import add_site, refuse_words, site_of
from simsched.cli.support.messages import note, warn
from simsched.cli.support.output import print_lines
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, field, flag
from simsched.errors import ConfigError, FormatError, SimschedError
from simsched.garbage import seldom_collected
from simsched.text_table import table_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.match.matcher import Matcher
    from simsched.match.outcome import Outcome
    from simsched.site.site import Site

    Answers: TypeAlias = Sequence[tuple["NamedRequest", Outcome]]
    QueueQuestion: TypeAlias = Callable[[Matcher, bool], Callable[[Jobspec], Outcome]]
    from collections.abc import Callable, Mapping

    from simsched.cli.options.request_answers import Yes
    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.formats.cluster.rset import ResourceSet, WrittenR
    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection


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
    from simsched.match.explain.suggestions import notes_on_sharing

    for text in notes_on_sharing((request.jobspec for request in requests), "request"):
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


class FeasibleFlags(Flags, frozen=True, kw_only=True):
    """Check whether a cluster could ever run a request, and why not.

    Check whether the cluster could ever run each request, and print the reasons if not.

    clusters : check this cluster (may be repeated); every other argument is then a REQUEST, and exit
        status 0 means that each request is feasible on at least one cluster.
    now : check whether the request could start now, without unavailable and allocated resources.
    format : text with the reasons (default), a table without them (much faster), or json.
    running : treat this request as running; may be repeated, in the order of placement (implies --now).

    Exit status: 0 all requests are feasible, 1 some are not, 2 the input is wrong.
    """

    clusters: Annotated[tuple[str, ...] | None, flag("CLUSTER")] = field(name="cluster", default=None)
    now: bool = False
    format: Literal["text", "table", "json"] = "text"
    running: Annotated[tuple[str, ...], flag("REQUEST")] = ()


class MatchFlags(Flags, frozen=True, kw_only=True):
    """Print the allocation that each request would get, as R.

    Match requests one after another, each on the resources that the earlier ones left, and print the
    allocations.

    policy : match policy (default first; an unknown name lists all).
    format : r (default), jgf, tree, table or json.
    seed : seed of random policies (default 0).

    Exit status: 0 all requests matched, 1 some did not (the reasons are on standard error), 2 the input is
    wrong.
    """

    policy: str = "first"
    format: Literal["r", "jgf", "tree", "table", "json"] = "r"
    seed: int = 0


def register(subparsers: Subparsers) -> None:
    """Add the verbs `feasible` and `match`."""
    parts = (add_common, FeasibleFlags, QueueFlags)
    add_verb(subparsers, "feasible", run_feasible, *parts, answers=["feasible-answers"])
    add_verb(subparsers, "match", run_match, add_common, MatchFlags, answers=["match-answers", "r"])


def run_feasible(args: Arguments) -> int:
    """Answer each request on each cluster; 0 if each is feasible somewhere, else 1."""
    with seldom_collected():  # 100,000 answers stay
        return _answer_each(args)


def _answer_each(args: Arguments) -> int:
    site = site_of(args)
    clusters, words = (args.clusters, args.words) if args.clusters else split(args.words, site)
    ask = queue_question(args, site)
    answers: dict[str, list[tuple[NamedRequest, Outcome]]] = {}
    requests = list(read_requests(words, args.constraint, site, lenient=args.lenient))
    for cluster in clusters:
        question = _question(cluster, args, ask)
        answers[cluster] = [(request, outcome_of(request, question)) for request in requests]
    yes: Yes = "now" if args.now or args.running else "yes"
    print_lines(FEASIBLE_WRITERS[args.format](answers, yes), "json" if args.format == "json" else "text")
    found = [any(outcomes) for outcomes in _by_request(answers)]
    refused = (request for request, one in zip(requests, found, strict=True) if not one)
    note_sharing(request for request, one in zip(requests, found, strict=True) if one)
    note_clusters(refused, "use --cluster {}" if args.clusters else AS_CLUSTER)
    return 0 if all(found) else 1


def _question(cluster: str, args: Arguments, ask: QueueQuestion | None) -> Callable[[Jobspec], Outcome]:
    """Return the question about one cluster: jobspec → outcome; `ask` puts it to queues, if there are any."""
    from simsched.graph.cluster import load_cluster
    from simsched.match.matcher import Matcher

    matcher = Matcher(load_cluster(cluster))
    for request in read_requests(args.running, None, lenient=args.lenient):
        if not outcome_of(request, matcher.match):
            raise ConfigError(
                "the request does not fit, so it cannot be running", where=f"--running {request.label}"
            )
    now = bool(args.now or args.running)
    if ask is not None:
        return ask(matcher, now)
    return _remembered(matcher.feasible_now if now else matcher.satisfiable)


def _remembered(question: Callable[[Jobspec], Outcome]) -> Callable[[Jobspec], Outcome]:
    """Answer a question once for all jobspecs that have equal resources and constraints."""
    known: dict[tuple[object, object], Outcome] = {}

    def answer(jobspec: Jobspec) -> Outcome:
        key = (jobspec.resources, jobspec.constraint)
        if key not in known:
            known[key] = question(jobspec)
        return known[key]

    return answer


def _by_request(answers: Mapping[str, Answers]) -> Iterator[tuple[Outcome, ...]]:
    """Yield the outcomes of each request, cluster by cluster."""
    return zip(*([outcome for _, outcome in column] for column in answers.values()), strict=True)


def _feasible_text(answers: Mapping[str, Answers], yes: Yes) -> Iterator[str]:
    for cluster, column in answers.items():
        if len(answers) > 1:
            yield f"{cluster}:"
        for request, outcome in column:
            if outcome.placement is None:
                yield as_text(request, outcome, yes)
            else:
                yield configured_text(request, outcome, yes)


def _feasible_table(answers: Mapping[str, Answers], yes: Yes) -> Iterator[str]:
    """Yield a table with one line per request and one column per cluster, without reasons."""
    labels = [request.label for request, _ in next(iter(answers.values()))]
    rows = [["request", *answers]]
    for label, outcomes in zip(labels, _by_request(answers), strict=True):
        rows.append([label, *(yes if outcome else REFUSALS[outcome.status] for outcome in outcomes)])
    yield from table_lines(rows)


def _feasible_json(answers: Mapping[str, Answers], yes: Yes) -> Iterator[str]:
    from simsched.cli.options.request_answers import answer_of
    from simsched.declare.answers import json_text

    several = len(answers) > 1
    rows = [
        answer_of(request, outcome, yes, cluster if several else None)
        for cluster, column in answers.items()
        for request, outcome in column
    ]
    yield json_text(rows)


FEASIBLE_WRITERS = {"text": _feasible_text, "table": _feasible_table, "json": _feasible_json}


def run_match(args: Arguments) -> int:
    """Match requests one after another and print their allocations; 0 if all matched, else 1."""
    from simsched.graph.cluster import load_cluster
    from simsched.match.matcher import Matcher
    from simsched.match.policies.policy import find_policy

    site = site_of(args)
    (cluster,), words = split(args.words, site)
    matcher = Matcher(load_cluster(cluster), policy=args.policy, seed=args.seed)
    outcomes = [
        (request, outcome_of(request, matcher.match))
        for request in read_requests(words, args.constraint, site, lenient=args.lenient)
    ]
    for request, outcome in outcomes:
        if not outcome:
            sys.stderr.write(as_text(request, outcome, "now") + "\n")
    note_clusters((request for request, outcome in outcomes if not outcome), AS_CLUSTER)
    if not find_policy(args.policy).whole_nodes:
        note_sharing(request for request, outcome in outcomes if outcome)
    text = WRITERS[args.format](outcomes, matcher.index)
    if text:
        print(text)
    return 0 if all(outcome for _, outcome in outcomes) else 1


def as_r(outcomes: Answers, _: Index) -> str:
    """Return one R document per line (RFC 20)."""
    return "\n".join(json.dumps(r.to_dict()) for _, r in _rsets(outcomes))


def as_jgf(outcomes: Answers, index: Index) -> str:
    """Return one JGF document per line (RFC 40)."""
    from simsched.match.emit_graph import jgf_of

    return "\n".join(json.dumps(jgf_of(selection, index)) for _, selection in _selections(outcomes))


def as_document(outcomes: Answers, _: Index) -> str:
    """Return all answers as one JSON document; refusals have their reasons."""
    from simsched.cli.options.request_answers import MatchAnswer
    from simsched.declare.answers import json_text

    answers = [
        MatchAnswer(
            version=1,
            request=request.label,
            answer="matched" if outcome else REFUSALS[outcome.status],
            reasons=None if outcome else outcome.reasons.answer(),
            id=outcome.id,
            R=None if outcome.R is None else cast("WrittenR", outcome.R.to_dict()),
        )
        for request, outcome in outcomes
    ]
    return json_text(answers)


def as_tree(outcomes: Answers, index: Index) -> str:
    """Return each allocation as a tree; equal subtrees are folded."""
    from simsched.match.emit_graph import tree_of

    lines = []
    for request, selection in _selections(outcomes):
        lines += [request.label, *(f"  {line}" for line in tree_of(selection, index))]
    return "\n".join(lines)


def as_table(outcomes: Answers, _: Index) -> str:
    """Return a table with one line per request: units of each type, and hosts."""
    rsets = list(_rsets(outcomes))
    kinds = sorted({kind for _, r in rsets for group in r.groups for kind in group.children})
    rows = [["request", "nodes", *kinds, "hosts"]]
    for request, r in rsets:
        rows.append([request.label, str(len(r.ranks)), *(str(r.count(kind)) for kind in kinds), str(r.hosts)])
    return "\n".join(table_lines(rows))


def _rsets(outcomes: Answers) -> Iterator[tuple[NamedRequest, ResourceSet]]:
    return ((request, r) for request, outcome in outcomes if (r := outcome.R) is not None)


def _selections(outcomes: Answers) -> Iterator[tuple[NamedRequest, Selection]]:
    return ((request, outcome.selection) for request, outcome in outcomes if outcome.selection is not None)


WRITERS: dict[str, Callable[[Answers, Index], str]] = {
    "r": as_r,
    "jgf": as_jgf,
    "tree": as_tree,
    "table": as_table,
    "json": as_document,
}
