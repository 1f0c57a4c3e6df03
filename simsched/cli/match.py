"""``simsched match``: the allocations that requests would get."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Literal, cast

from simsched.cli.options.requests import (
    AS_CLUSTER,
    REFUSALS,
    NamedRequest,
    add_common,
    as_text,
    note_clusters,
    note_sharing,
    outcome_of,
    read_requests,
    split,
)
from simsched.cli.options.site_options import site_of
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.cli.options.requests import Answers
    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.formats.cluster.rset import ResourceSet, WrittenR
    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection


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
    """Add the verb ``match``."""
    add_verb(subparsers, "match", run_match, add_common, MatchFlags, answers=["match-answers", "r"])


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
