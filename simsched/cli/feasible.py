"""``simsched feasible``: whether a cluster could ever run a request, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from simsched.cli.options.requests import (
    AS_CLUSTER,
    REFUSALS,
    NamedRequest,
    QueueFlags,
    add_common,
    as_text,
    configured_text,
    note_clusters,
    note_sharing,
    outcome_of,
    queue_question,
    read_requests,
    split,
)
from simsched.cli.options.site_options import site_of
from simsched.cli.support.output import print_lines
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, field, flag
from simsched.errors import ConfigError
from simsched.garbage import seldom_collected
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.cli.options.request_answers import Yes
    from simsched.cli.options.requests import Answers, QueueQuestion
    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.match.outcome import Outcome


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


def register(subparsers: Subparsers) -> None:
    """Add the verb ``feasible``."""
    add_verb(
        subparsers,
        "feasible",
        run_feasible,
        add_common,
        FeasibleFlags,
        QueueFlags,
        answers=["feasible-answers"],
    )


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
