"""`LimitSpells`: which limit kept which jobs waiting, from when to when, noted when it changes.

Limits allow all jobs of a group or none (`limit_counters.Cohort`), so a group has one row, however many of
its jobs wait.  A job has rows of its own while it waits to be taken in, is held for ever, or was refused with
the allocation that was found for it.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

FOR_EVER = "held for ever"
"""Begins the reason of a job that is above a limit whatever others use."""

NAN = float("nan")

LimitName = tuple[str, bool]
"""The kind and the scope of a limit as text, and whether it blocks the jobs behind."""


class Spell(NamedTuple):
    """A time (s) in which a limit kept jobs waiting; `reason` is a sentence on it, for a single job."""

    holder: int
    limit: LimitName
    start: float
    end: float
    reason: str | None


LIMIT, START, END = (Spell._fields.index(name) for name in ("limit", "start", "end"))


class LimitSpells:
    """The spells so far; a holder is the number of a group, or ~ the number of a job."""

    def __init__(self) -> None:
        self._over: list[Spell] = []
        # Holder → the values of its last spell, whose end is inf while it lasts: a list, changed in place.
        self._last: dict[int, list[Any]] = {}

    def note(
        self, holder: int, now: float, limit: LimitName | None = None, reason: str | None = None
    ) -> None:
        """Note which limit keeps jobs waiting from now on; None: none does.

        One that let them go in this very instant has kept them all the time.
        """
        last = self._last.get(holder)
        if last is not None and last[END] == inf and last[LIMIT] != limit:
            last[END] = now
        if limit is None:
            return
        if last is not None and last[LIMIT] == limit and last[END] >= now:
            last[END] = inf
            return
        if last is not None and last[END] > last[START]:
            self._over.append(Spell(*last))
        self._last[holder] = [holder, limit, now, inf, reason]

    def columns(self, ids: Sequence[int | str]) -> dict[str, Any]:
        """Return the columns of ``limits.parquet``, ascending in time; `ids` are those of the jobs.

        ``group`` (NaN in the row of a job), ``job`` (None in the row of a group), ``limit``, ``blocks``,
        ``start`` and ``end`` (s, NaN: it lasted to the end of the run), and ``reason``, a sentence on the
        limit in the row of a job.  No columns without a row.
        """
        spells = [*self._over, *(Spell(*last) for last in self._last.values() if last[END] > last[START])]
        if not spells:
            return {}
        spells.sort(key=lambda one: (one.holder, one.start))
        joined = spells[:1]
        for one in spells[1:]:
            before = joined[-1]
            if (one.holder, one.limit, one.start) == (before.holder, before.limit, before.end):
                joined[-1] = before._replace(end=one.end)  # another limit came between them in no time
            else:
                joined.append(one)
        spells = sorted(joined, key=lambda one: (one.start, one.holder))
        return {
            "group": np.array([NAN if one.holder < 0 else one.holder for one in spells], dtype=np.float64),
            "job": _texts([str(ids[~one.holder]) if one.holder < 0 else None for one in spells]),
            "limit": _texts([one.limit[0] for one in spells]),
            "blocks": np.array([one.limit[1] for one in spells], dtype=np.bool_),
            "start": np.array([one.start for one in spells], dtype=np.float64),
            "end": np.array([NAN if one.end == inf else one.end for one in spells], dtype=np.float64),
            "reason": _texts([one.reason for one in spells]),
        }

    def state(self) -> list[list[tuple[Any, ...]]]:
        """Return the spells that are over, and the last ones, as plain values."""
        return [[*map(tuple, spells)] for spells in (self._over, self._last.values())]

    def restore(self, state: list[list[Sequence[Any]]]) -> None:
        """Take over the state of others."""
        self._over, last = ([Spell(one[0], tuple(one[1]), *one[2:]) for one in spells] for spells in state)
        self._last = {one.holder: [*one] for one in last}


_texts = partial(np.array, dtype=object)
