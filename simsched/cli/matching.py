"""``simsched feasible`` and ``simsched match``: would this request run here, and what would it get."""

from __future__ import annotations

import gc
import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from simsched.errors import ConfigError, SimschedError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from simsched.cli import Subparsers
    from simsched.formats.jobspec import Jobspec
    from simsched.formats.rset import ResourceSet
    from simsched.graph.index import Index
    from simsched.match.outcome import Outcome
    from simsched.match.selection import Selection

    Answers: TypeAlias = Sequence[tuple["Asked", Outcome]]

STANDS_FIRST = "would stand first, alone"
FILE_ENDINGS = (".yaml", ".yml", ".json", ".jsonl", ".xml", ".gz")


class Asked(NamedTuple):
    """One request of the command line and how it is called in the answer."""

    label: str
    jobspec: Jobspec


def register(subparsers: Subparsers) -> None:
    """Add the verbs ``feasible`` and ``match``."""
    feasible = subparsers.add_parser(
        "feasible",
        help="could this request ever run on this cluster, and if not, why",
        description="Say for each request whether the cluster could ever run it. Exit status 0: all of them; "
        "1: not all, with the reasons; 2: the input is wrong.",
    )
    _add_common(feasible)
    feasible.add_argument(
        "--cluster",
        dest="clusters",
        metavar="CLUSTER",
        action="append",
        help="ask about several clusters (repeat it; then every other argument is a REQUEST); exit status 0: "
        "each request is feasible on one of them at least",
    )
    feasible.add_argument(
        "--now", action="store_true", help="count what is down or taken as not there: could it start now"
    )
    feasible.add_argument(
        "--running",
        metavar="REQUEST",
        action="append",
        default=[],
        help="as if this ran already, placed in the order given (implies --now; may be repeated)",
    )
    feasible.add_argument(
        "--format",
        choices=("text", "table", "json"),
        default="text",
        help="text with the reasons (the default), a table of the answers alone (much quicker), or json",
    )
    feasible.set_defaults(run=run_feasible)

    match = subparsers.add_parser(
        "match",
        help="what would these requests get, one R each",
        description="Match the requests one after another, each on what the earlier ones left, and print what"
        " each gets. Exit status 0: all were matched; 1: not all, with the reasons on stderr.",
    )
    _add_common(match)
    match.add_argument(
        "--policy", default="first", help="match policy (default: first; an unknown one lists all)"
    )
    match.add_argument(
        "--format", choices=tuple(WRITERS), default="r", help="r (the default), jgf, tree, table or json"
    )
    match.add_argument("--seed", type=_seed, default=0, help="of the policies that draw lots (default 0)")
    match.set_defaults(run=run_match)


def _seed(text: str) -> int:
    import argparse

    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [-h] [options] CLUSTER REQUEST [REQUEST ...]"
    parser.add_argument(
        "words",
        metavar="CLUSTER REQUEST",
        nargs="+",
        help="a cluster's file or bundled name; then shapes (RFC 46), files of jobspecs, or - for stdin",
    )
    parser.add_argument(
        "--constraint", metavar="C", help="RFC 35 constraint for every request, and-ed to its own"
    )


# --- requests --------------------------------------------------------------------------------------------


def read_requests(arguments: Sequence[str], constraint: str | None) -> Iterator[Asked]:
    """Yield the requests of the command line: files in their order, shapes as they are.

    Raises
    ------
    SimschedError
        naming the argument, for what is neither.
    """
    for argument in arguments:
        for asked in _from_file(argument) if _is_file(argument) else [_from_shape(argument)]:
            yield asked._replace(jobspec=_constrained(asked.jobspec, constraint))


def _is_file(argument: str) -> bool:
    try:
        return argument == "-" or argument.endswith(FILE_ENDINGS) or _exists(Path(argument))
    except (OSError, ValueError):  # a shape may be longer than any file name
        return False


def _exists(path: Path) -> bool:
    """Whether this is a file or a pipe (a directory may have the name of a shape)."""
    return path.exists() and not path.is_dir()


def _from_file(argument: str) -> list[Asked]:
    from simsched.cli.job_objects import tell
    from simsched.formats.jobspec import load_jobspecs

    jobspecs = load_jobspecs(argument, warn=tell)
    name = "stdin" if argument == "-" else argument
    if not jobspecs:
        raise ConfigError("there is no jobspec in this file", where=name)
    if len(jobspecs) == 1:
        return [Asked(name, jobspecs[0])]
    return [Asked(f"{name}[{number}]", jobspec) for number, jobspec in enumerate(jobspecs)]


def _from_shape(argument: str) -> Asked:
    from simsched.formats.jobspec import Jobspec

    return Asked(argument, Jobspec.from_shape(argument))


def _constrained(jobspec: Jobspec, text: str | None) -> Jobspec:
    if text is None:
        return jobspec
    from simsched.formats.constraint import to_json
    from simsched.formats.constraint_text import parse_constraint

    more, own = to_json(parse_constraint(text)), jobspec.constraint
    return jobspec.with_system(constraints=more if own is None else {"and": [to_json(own), more]})


# --- feasible --------------------------------------------------------------------------------------------


def run_feasible(args: argparse.Namespace) -> int:
    """Answer each request on each cluster; 0 if each is feasible somewhere, else 1."""
    with _seldom_collected():
        return _answer_each(args)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Let the garbage collector run seldom: 100,000 answers stay, and it would walk them again and again."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _answer_each(args: argparse.Namespace) -> int:
    clusters, words = (args.clusters, args.words) if args.clusters else _split(args.words)
    answers: dict[str, list[tuple[Asked, Outcome]]] = {}
    requests = list(read_requests(words, args.constraint))
    for cluster in clusters:
        question = _question(cluster, args)
        answers[cluster] = [(asked, _about(asked, question)) for asked in requests]
    yes = "now" if args.now or args.running else "yes"
    for line in FEASIBLE_WRITERS[args.format](answers, yes):
        print(line)
    found = [any(outcomes) for outcomes in _by_request(answers)]
    refused = (asked for asked, one in zip(requests, found, strict=True) if not one)
    _tell_clusters(refused, "is asked with --cluster {}" if args.clusters else STANDS_FIRST)
    return 0 if all(found) else 1


def _tell_clusters(refused: Iterable[Asked], hint: str) -> None:
    """Say which requests that came to nothing are names of clusters: they may stand in the wrong place."""
    from simsched.bundled import bundled

    clusters = bundled("clusters")
    for name in dict.fromkeys(asked.label for asked in refused if asked.label in clusters):
        meant = hint.format(name)
        sys.stderr.write(f"note: {name} was read as a request; the bundled cluster of that name {meant}\n")


def _split(words: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """Split ``CLUSTER REQUEST…`` into both."""
    if len(words) < 2:
        raise ConfigError("no request is given", where=words[0], expected="CLUSTER REQUEST…")
    return [words[0]], words[1:]


def _question(cluster: str, args: argparse.Namespace) -> Callable[[Jobspec], Outcome]:
    """Return what is asked of one cluster about each request."""
    from simsched.graph.cluster import load_cluster
    from simsched.match.matcher import Matcher

    matcher = Matcher(load_cluster(cluster))
    for asked in read_requests(args.running, None):
        if not _about(asked, matcher.match):
            raise ConfigError("this does not fit, so it cannot be running", where=f"--running {asked.label}")
    return _asked_once(matcher.feasible_now if args.now or args.running else matcher.satisfiable)


def _asked_once(question: Callable[[Jobspec], Outcome]) -> Callable[[Jobspec], Outcome]:
    """Ask the question once for all jobspecs that differ in nothing that is matched."""
    known: dict[tuple[object, object], Outcome] = {}

    def answer(jobspec: Jobspec) -> Outcome:
        key = (jobspec.resources, jobspec.constraint)
        if key not in known:
            known[key] = question(jobspec)
        return known[key]

    return answer


def _by_request(answers: Mapping[str, Answers]) -> Iterator[tuple[Outcome, ...]]:
    """Yield each request's outcomes, cluster by cluster."""
    return zip(*([outcome for _, outcome in column] for column in answers.values()), strict=True)


def _feasible_text(answers: Mapping[str, Answers], yes: str) -> Iterator[str]:
    for cluster, column in answers.items():
        if len(answers) > 1:
            yield f"{cluster}:"
        for asked, outcome in column:
            yield _as_text(asked, outcome, yes)


def _feasible_table(answers: Mapping[str, Answers], yes: str) -> Iterator[str]:
    """One line a request, one column a cluster, without reasons."""
    labels = [asked.label for asked, _ in next(iter(answers.values()))]
    width = max(map(len, [*labels, "request"]))
    yield "  ".join(["request".ljust(width), *answers])
    for label, outcomes in zip(labels, _by_request(answers), strict=True):
        words = [
            (yes if o else WORDS[o.status]).ljust(len(c)) for c, o in zip(answers, outcomes, strict=True)
        ]
        yield "  ".join([label.ljust(width), *words]).rstrip()


def _feasible_json(answers: Mapping[str, Answers], yes: str) -> Iterator[str]:
    several = len(answers) > 1
    rows = [
        {**({"cluster": cluster} if several else {}), **_as_json(asked, outcome, yes)}
        for cluster, column in answers.items()
        for asked, outcome in column
    ]
    yield json.dumps(rows, indent=2)


FEASIBLE_WRITERS = {"text": _feasible_text, "table": _feasible_table, "json": _feasible_json}


def _about(asked: Asked, question: Callable[[Jobspec], Outcome]) -> Outcome:
    """Ask about one request; an error says about which."""
    try:
        return question(asked.jobspec)
    except SimschedError as error:
        raise error.at(asked.label) from None


#: status of a no → the word that people read
WORDS = {"busy": "later", "infeasible": "never", "undecided": "undecided"}


def _as_text(asked: Asked, outcome: Outcome, yes: str) -> str:
    if outcome:
        return f"{asked.label}: {yes}"
    reasons = str(outcome.reasons).splitlines()
    return "\n".join([f"{asked.label}: {WORDS[outcome.status]}", *(f"  {line}" for line in reasons)])


def _as_json(asked: Asked, outcome: Outcome, yes: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"request": asked.label, "answer": yes if outcome else WORDS[outcome.status]}
    if not outcome:
        answer["reasons"] = outcome.reasons.to_dict()
    return answer


# --- match -----------------------------------------------------------------------------------------------


def run_match(args: argparse.Namespace) -> int:
    """Match the requests one after another and print what each gets; 0 if all were matched, else 1."""
    from simsched.graph.cluster import load_cluster
    from simsched.match.matcher import Matcher

    (cluster,), words = _split(args.words)
    matcher = Matcher(load_cluster(cluster), policy=args.policy, seed=args.seed)
    outcomes = [(asked, _about(asked, matcher.match)) for asked in read_requests(words, args.constraint)]
    for asked, outcome in outcomes:
        if not outcome:
            sys.stderr.write(_as_text(asked, outcome, "now") + "\n")
    _tell_clusters((asked for asked, outcome in outcomes if not outcome), STANDS_FIRST)
    text = WRITERS[args.format](outcomes, matcher.index)
    if text:
        print(text)
    return 0 if all(outcome for _, outcome in outcomes) else 1


def as_r(outcomes: Answers, _: Index) -> str:
    """One R document a line (RFC 20)."""
    return "\n".join(json.dumps(r.to_dict()) for _, r in _rsets(outcomes))


def as_jgf(outcomes: Answers, index: Index) -> str:
    """One JGF document a line (RFC 40)."""
    from simsched.match.emit_graph import jgf_of

    return "\n".join(json.dumps(jgf_of(selection, index)) for _, selection in _selections(outcomes))


def as_json(outcomes: Answers, _: Index) -> str:
    """All answers as one document, the failed ones with their reasons."""
    answers = []
    for asked, outcome in outcomes:
        answer = _as_json(asked, outcome, "matched")
        if outcome.R is not None:
            answer |= {"id": outcome.id, "R": outcome.R.to_dict()}
        answers.append(answer)
    return json.dumps(answers, indent=2)


def as_tree(outcomes: Answers, index: Index) -> str:
    """What each request got, as a tree with like subtrees folded into one."""
    from simsched.match.emit_graph import tree_of

    lines = []
    for asked, selection in _selections(outcomes):
        lines += [asked.label, *(f"  {line}" for line in tree_of(selection, index))]
    return "\n".join(lines)


def as_table(outcomes: Answers, _: Index) -> str:
    """One line a request: how much of each type, and where."""
    rsets = list(_rsets(outcomes))
    kinds = sorted({kind for _, r in rsets for group in r.groups for kind in group.children})
    rows = [["request", "nodes", *kinds, "hosts"]]
    for asked, r in rsets:
        rows.append([asked.label, str(len(r.ranks)), *(str(r.count(kind)) for kind in kinds), str(r.hosts)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _rsets(outcomes: Answers) -> Iterator[tuple[Asked, ResourceSet]]:
    return ((asked, r) for asked, outcome in outcomes if (r := outcome.R) is not None)


def _selections(outcomes: Answers) -> Iterator[tuple[Asked, Selection]]:
    return ((asked, outcome.selection) for asked, outcome in outcomes if outcome.selection is not None)


WRITERS: dict[str, Callable[[Answers, Index], str]] = {
    "r": as_r,
    "jgf": as_jgf,
    "tree": as_tree,
    "table": as_table,
    "json": as_json,
}
