"""``simsched match``: what would these requests get."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from simsched.cli.options.requests import (
    STANDS_FIRST,
    Asked,
    about,
    add_common,
    as_json,
    as_text,
    read_requests,
    split,
    tell_clusters,
)
from simsched.text_table import table_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from simsched.cli import Subparsers
    from simsched.cli.options.requests import Answers
    from simsched.formats.cluster.rset import ResourceSet
    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection


def register(subparsers: Subparsers) -> None:
    """Add the verb ``match``."""
    match = subparsers.add_parser(
        "match",
        help="what would these requests get, one R each",
        description="Match the requests one after another, each on what the earlier ones left, and print what"
        " each gets. Exit status 0: all were matched; 1: not all, with the reasons on stderr.",
    )
    add_common(match)
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


def run_match(args: argparse.Namespace) -> int:
    """Match the requests one after another and print what each gets; 0 if all were matched, else 1."""
    from simsched.graph.cluster import load_cluster
    from simsched.match.matcher import Matcher

    (cluster,), words = split(args.words)
    matcher = Matcher(load_cluster(cluster), policy=args.policy, seed=args.seed)
    outcomes = [
        (asked, about(asked, matcher.match))
        for asked in read_requests(words, args.constraint, lenient=args.lenient)
    ]
    for asked, outcome in outcomes:
        if not outcome:
            sys.stderr.write(as_text(asked, outcome, "now") + "\n")
    tell_clusters((asked for asked, outcome in outcomes if not outcome), STANDS_FIRST)
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


def as_document(outcomes: Answers, _: Index) -> str:
    """All answers as one document, the failed ones with their reasons."""
    answers = []
    for asked, outcome in outcomes:
        answer = as_json(asked, outcome, "matched")
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
    return "\n".join(table_lines(rows))


def _rsets(outcomes: Answers) -> Iterator[tuple[Asked, ResourceSet]]:
    return ((asked, r) for asked, outcome in outcomes if (r := outcome.R) is not None)


def _selections(outcomes: Answers) -> Iterator[tuple[Asked, Selection]]:
    return ((asked, outcome.selection) for asked, outcome in outcomes if outcome.selection is not None)


WRITERS: dict[str, Callable[[Answers, Index], str]] = {
    "r": as_r,
    "jgf": as_jgf,
    "tree": as_tree,
    "table": as_table,
    "json": as_document,
}
