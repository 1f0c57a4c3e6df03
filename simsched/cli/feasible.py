"""``simsched feasible``: would this request ever run here, and if not, why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from simsched.cli.options.requests import (
    STANDS_FIRST,
    WORDS,
    Asked,
    about,
    add_common,
    as_json,
    as_text,
    read_requests,
    split,
    tell_clusters,
)
from simsched.cli.support.output import print_lines
from simsched.errors import ConfigError
from simsched.garbage import seldom_collected
from simsched.text_table import table_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from simsched.cli import Subparsers
    from simsched.cli.options.requests import Answers
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.match.outcome import Outcome


def register(subparsers: Subparsers) -> None:
    """Add the verb ``feasible``."""
    feasible = subparsers.add_parser(
        "feasible",
        help="could this request ever run on this cluster, and if not, why",
        description="Say for each request whether the cluster could ever run it. Exit status 0: all of them; "
        "1: not all, with the reasons; 2: the input is wrong.",
    )
    add_common(feasible)
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


def run_feasible(args: argparse.Namespace) -> int:
    """Answer each request on each cluster; 0 if each is feasible somewhere, else 1."""
    with seldom_collected():  # 100,000 answers stay
        return _answer_each(args)


def _answer_each(args: argparse.Namespace) -> int:
    clusters, words = (args.clusters, args.words) if args.clusters else split(args.words)
    answers: dict[str, list[tuple[Asked, Outcome]]] = {}
    requests = list(read_requests(words, args.constraint, lenient=args.lenient))
    for cluster in clusters:
        question = _question(cluster, args)
        answers[cluster] = [(asked, about(asked, question)) for asked in requests]
    yes = "now" if args.now or args.running else "yes"
    print_lines(FEASIBLE_WRITERS[args.format](answers, yes), "json" if args.format == "json" else "text")
    found = [any(outcomes) for outcomes in _by_request(answers)]
    refused = (asked for asked, one in zip(requests, found, strict=True) if not one)
    tell_clusters(refused, "is asked with --cluster {}" if args.clusters else STANDS_FIRST)
    return 0 if all(found) else 1


def _question(cluster: str, args: argparse.Namespace) -> Callable[[Jobspec], Outcome]:
    """Return what is asked of one cluster about each request."""
    from simsched.graph.cluster import load_cluster
    from simsched.match.matcher import Matcher

    matcher = Matcher(load_cluster(cluster))
    for asked in read_requests(args.running, None, lenient=args.lenient):
        if not about(asked, matcher.match):
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
            yield as_text(asked, outcome, yes)


def _feasible_table(answers: Mapping[str, Answers], yes: str) -> Iterator[str]:
    """One line a request, one column a cluster, without reasons."""
    labels = [asked.label for asked, _ in next(iter(answers.values()))]
    rows = [["request", *answers]]
    for label, outcomes in zip(labels, _by_request(answers), strict=True):
        rows.append([label, *(yes if outcome else WORDS[outcome.status] for outcome in outcomes)])
    yield from table_lines(rows)


def _feasible_json(answers: Mapping[str, Answers], yes: str) -> Iterator[str]:
    several = len(answers) > 1
    rows = [
        {**({"cluster": cluster} if several else {}), **as_json(asked, outcome, yes)}
        for cluster, column in answers.items()
        for asked, outcome in column
    ]
    yield json.dumps(rows, indent=2)


FEASIBLE_WRITERS = {"text": _feasible_text, "table": _feasible_table, "json": _feasible_json}
