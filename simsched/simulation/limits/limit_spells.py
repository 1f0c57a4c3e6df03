"""`LimitSpells`: which limit kept which jobs waiting, from when to when, noted when it changes.

Limits allow all jobs of a group or none (`limit_counters.Cohort`), so a group has one row, however many of
its jobs wait.  A job has rows of its own while it waits to be taken in, is held for ever, or was refused with
the allocation that was found for it.
"""

from __future__ import annotations

from array import array
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

FOR_EVER = "held for ever"
"""Begins the reason of a job that is above a limit whatever others use."""

LimitName = tuple[str, bool]
"""The kind and the scope of a limit as text, and whether it blocks the jobs behind."""


class LimitSpells:
    """The spells so far; a holder is the number of a group, or ~ the number of a job."""

    def __init__(self) -> None:
        self._limits: dict[LimitName, int] = {}
        self._over = array("d")  # holder, limit, start, end, row after row
        self._reasons: dict[int, str] = {}  # row → sentence
        self._last: dict[int, tuple[int, float, float, str]] = {}
        """Holder → limit, start, end (inf while it lasts) and sentence of its last spell."""

    def hold(self, holder: int, limit: LimitName, now: float, reason: str = "") -> None:
        """Note that a limit keeps jobs waiting from now on.

        One that let them go in this very instant has kept them all the time.
        """
        number = self._limits.setdefault(limit, len(self._limits))
        last = self._last.get(holder)
        if last is not None:
            if last[0] == number and last[2] >= now:
                self._last[holder] = (number, last[1], inf, last[3])
                return
            self._end(holder, last, now)
        self._last[holder] = (number, now, inf, reason)

    def free(self, holder: int, now: float) -> None:
        """Note that no limit keeps jobs waiting from now on."""
        last = self._last.get(holder)
        if last is not None and last[2] == inf:
            self._last[holder] = (*last[:2], now, last[3])

    def _end(self, holder: int, last: tuple[int, float, float, str], now: float) -> None:
        number, start, end, reason = last
        if min(end, now) > start:
            if reason:
                self._reasons[len(self._over) // 4] = reason
            self._over.extend((holder, number, start, min(end, now)))

    @property
    def of_groups(self) -> bool:
        """Whether a limit kept jobs of a group waiting."""
        return any(holder >= 0 for holder in self._last)

    def columns(self, ids: Sequence[int | str]) -> dict[str, Any]:
        """Return the columns of ``limits.parquet``, ascending in time; `ids` are those of the jobs.

        ``group`` (NaN in the row of a job), ``job`` (None in the row of a group), ``limit``, ``blocks``,
        ``start`` and ``end`` (s, NaN: it lasted to the end of the run), and ``reason``, a sentence on the
        limit in the row of a job.  No columns without a row.
        """
        lasting = [(holder, *last) for holder, last in self._last.items() if last[2] > last[1]]
        if not lasting and not self._over:
            return {}
        rows = np.array(self._over).reshape(-1, 4)
        rows = np.concatenate((rows, np.array([one[:4] for one in lasting]).reshape(-1, 4)))
        holder, number = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
        reasons = [self._reasons.get(row) for row in range(len(rows) - len(lasting))]
        reasons += [one[4] or None for one in lasting]
        names = [*self._limits]
        columns = {
            "group": np.where(holder < 0, np.nan, holder),
            "job": np.array([str(ids[~one]) if one < 0 else None for one in holder.tolist()], dtype=object),
            "limit": np.array([name for name, _ in names], dtype=object)[number],
            "blocks": np.array([blocks for _, blocks in names], dtype=np.bool_)[number],
            "start": rows[:, 2],
            "end": np.where(rows[:, 3] == inf, np.nan, rows[:, 3]),
            "reason": np.array(reasons, dtype=object),
        }
        order = np.lexsort((holder, rows[:, 2]))
        return {name: column[order] for name, column in columns.items()}

    def state(self) -> dict[str, Any]:
        """Return the spells as plain values."""
        return {
            "limits": [*self._limits],
            "over": self._over,
            "reasons": self._reasons,
            "last": [(holder, *last) for holder, last in self._last.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of others."""
        self._limits = {(name, blocks): number for number, (name, blocks) in enumerate(state["limits"])}
        self._over = array("d", state["over"])
        self._reasons = dict(state["reasons"])
        self._last = {holder: (*last,) for holder, *last in state["last"]}
