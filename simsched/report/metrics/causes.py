"""Causes of refused and failed jobs: reasons that differ only in their numbers are one cause."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NUMBER = re.compile(r"(?<![\w.])\d{1,18}(?!\w)(?!\.\w)", re.ASCII)
_HOST = re.compile(r"(?<= of )[A-Za-z][\w.-]*\d[\w.-]*$", re.ASCII)
"""The name of a node at the end of a reason, as in ``node failure of n17``; a number or a time is none."""
#: Results of jobs that never ran because of their request; rejected jobs are FAILED.
NEVER = ("INFEASIBLE", "DROPPED")
REJECTED = "rejected: "
#: Causes that one line names at most.
MOST = 3


def by_cause(reasons: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return (cause, positions of its reasons), the most frequent first; numbers that differ are a range.

    >>> by_cause(["5 needed, 4 there", "7 needed, 4 there", "no gpu"])
    [('5-7 needed, 4 there', [0, 1]), ('no gpu', [2])]
    >>> by_cause(["failure of n1", "failure of n2", "failure of n2"])
    [('failure of one of 2 nodes', [0, 1, 2])]
    >>> by_cause(["above the limit of 64", "above the limit of 128"])
    [('above the limit of 64-128', [0, 1])]
    """
    groups: dict[str, dict[str, list[int]]] = {}
    for at, reason in enumerate(reasons):
        groups.setdefault(_NUMBER.sub("#", _HOST.sub("@", reason)), {}).setdefault(reason, []).append(at)
    found = [(_span(list(texts)), sorted(chain(*texts.values()))) for texts in groups.values()]
    return sorted(found, key=lambda item: -len(item[1]))


def _span(texts: Sequence[str]) -> str:
    """Return texts that differ only in numbers and a host as one, with ranges and the number of hosts."""
    hosts = len({host[0] for host in map(_HOST.search, texts) if host})
    if hosts > 1:
        texts = [_HOST.sub("one of several", text) for text in texts]
        return f"{_span(texts).removesuffix('several')}{hosts:,} nodes"
    columns = list(zip(*([int(n) for n in _NUMBER.findall(text)] for text in texts), strict=True))
    spans = iter([str(min(c)) if min(c) == max(c) else f"{min(c)}-{max(c)}" for c in columns])
    return _NUMBER.sub(lambda _: next(spans), texts[0])


def left_out(rows: Iterable[tuple[str, str | None]], counts: Mapping[str, int], skipped: int) -> str | None:
    """Return one line about the jobs that can never run because of their request, or None.

    `rows` are (result, reason) of each job.  The reader has reported the `skipped` records already.
    """
    reasons = [
        reason
        for result, reason in rows
        if reason and (result in NEVER or (result == "FAILED" and reason.startswith(REJECTED)))
    ]
    total = counts["jobs"] - skipped
    if not reasons:
        return None
    causes = by_cause(reasons)
    named = "; ".join(f"{cause} ({len(places):,})" for cause, places in causes[:MOST])
    rest = len(causes) - MOST
    more = f"; {rest} more cause{'s' * (rest > 1)}" if rest > 0 else ""
    return f"{len(reasons):,} of {total:,} jobs can never run: {named}{more}"
