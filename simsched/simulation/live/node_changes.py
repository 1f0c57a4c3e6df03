"""`NodeChanges`: execution targets that a program drains, fails, adds and removes while the clock runs.

Targets that are absent are down until they are added, and one that is removed is drained for good.  Targets
that nobody knew at the beginning make the cluster larger (`grown_run`), and count as absent until then.  The
records have each change as an outage.
"""

from __future__ import annotations

from operator import index as index_of
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.errors import ConfigError
from simsched.formats.rfc.idset import Idset
from simsched.match.named_targets import targets_of_ranks
from simsched.simulation.listeners import Listener
from simsched.simulation.outages.outages import DRAIN, Outage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.graph.index.index import Index
    from simsched.simulation.engine import Engine
    from simsched.simulation.live.grown_run import Places
    from simsched.simulation.live.growth import Growth
    from simsched.simulation.outages.disruption import Disruption

ABSENT, REMOVED = "absent", "removed"
RUN = "run"
LEAVING = (RUN, "requeue", "fail")
"""What may happen to the jobs on targets that are removed."""


class Absence(NamedTuple):
    """Why a target is out, and since when (seconds)."""

    kind: str
    start: float
    note: str


class NodeChanges(Listener):
    """The targets that are out because a program says so."""

    def __init__(self, engine: Engine, index: Index, growth: Growth, disruption: Disruption) -> None:
        self._engine, self._index = engine, index
        self._growth, self._disruption = growth, disruption
        self._out: dict[int, Absence] = {}
        self._past: list[tuple[int, Absence, float]] = []
        engine.future.handle("take-out", self._on_take_out)
        engine.future.handle("bring-back", self._on_bring_back)

    def state(self) -> dict[str, Any]:
        """Return the targets that are out, and those that were, as plain values."""
        out = [(rank, *change) for rank, change in self._out.items()]
        return {"out": out, "past": [(rank, *change, end) for rank, change, end in self._past]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._out = {rank: Absence(*change) for rank, *change in state["out"]}
        self._past = [(rank, Absence(*change), end) for rank, *change, end in state["past"]]
        self._note_removed()

    def state_on(self, state: dict[str, Any], places: Places) -> dict[str, Any]:
        """Return a state as one on a larger cluster, whose new targets were absent until now."""
        new = places.after.ranks[places.new].tolist()
        past = [(rank, DRAIN, 0, ABSENT, self._engine.now) for rank in new]
        return {**state, "past": [*state["past"], *past]}

    def ranks(self, given: Any, index: Index) -> list[int]:
        """Return ranks of a cluster that are given as a number, an idset as text, or several numbers.

        ConfigError for a rank that the cluster does not have, FormatError for a text that is not an idset.
        """
        some: Idset | Iterable[int]
        if isinstance(given, int) and not isinstance(given, bool):
            some = (given,)
        elif isinstance(given, str):
            some = Idset.parse(given, where="ranks")
        else:
            some = given
        found: list[int] = []
        try:
            for rank in some:
                found.append(index_of(rank))  # no other number is rounded to a rank
                if found[-1] not in index.ordinal_of_rank:  # before a billion others are written out
                    break
        except TypeError:
            raise ConfigError(
                f"ranks are {given!r}", expected="a rank, ranks, or an idset such as 0-3"
            ) from None
        targets_of_ranks(index, found)
        return found

    def refuse_others(self, ranks: list[int], *, absent: bool) -> None:
        """Raise a ConfigError unless all ranks are out: absent ones, or drained and failed ones."""
        for rank in ranks:
            change = self._out.get(rank)
            gone = change is not None and change.note in (ABSENT, REMOVED)
            if change is None or gone != absent:
                state = "absent" if absent else "drained"
                known = sorted(r for r, c in self._out.items() if (c.note in (ABSENT, REMOVED)) == absent)
                expected = str(Idset.from_ids(known)) if known else f"a rank that was {state}"
                raise ConfigError(f"rank {rank} is not {state}", expected=expected)

    def _on_take_out(self, change: tuple[list[int], str, str, str]) -> None:
        """Take targets out; one that is out already stays out for its reason, unless it is removed."""
        ranks, kind, note, jobs = change
        now = self._engine.now
        if jobs != RUN:
            self._disruption.interrupt(self._targets(ranks), note, requeue=jobs == "requeue")
        new = []
        for rank in ranks:
            if rank not in self._out:
                self._out[rank] = Absence(kind, now, note)
                new.append(rank)
            elif note == REMOVED:
                self._out[rank] = self._out[rank]._replace(note=REMOVED)
        if new:
            if kind == DRAIN:
                self._growth.decide_on_graph()
            self._disruption.take_down(kind, self._targets(new), note)
        self._note_removed()
        if new or jobs != RUN:
            self._engine.settle()

    def _on_bring_back(self, ranks: list[int]) -> None:
        """Bring targets back that are still out."""
        back = [rank for rank in ranks if rank in self._out]
        for rank in back:
            self._past.append((rank, self._out.pop(rank), self._engine.now))
        if back:
            self._note_removed()
            self._disruption.bring_up(self._targets(back))
            self._engine.settle()

    def _note_removed(self) -> None:
        """Let jobs that come be refused if they fit only on targets that are removed."""
        removed = [rank for rank, change in self._out.items() if change.note == REMOVED]
        self._growth.prepared.judge.leave_out(self._index, self._targets(removed))

    def _targets(self, ranks: list[int]) -> Any:
        return np.array(targets_of_ranks(self._index, ranks), dtype=np.int64)

    def outages(self) -> tuple[Outage, ...]:
        """Return all changes so far as outages, those of equal times and reasons together."""
        endless = float("inf")
        spans = [*self._past, *((rank, change, endless) for rank, change in self._out.items())]
        together: dict[tuple[Absence, float], list[int]] = {}
        for rank, change, end in spans:
            if end > change.start:
                together.setdefault((change, end), []).append(rank)
        return tuple(
            Outage(Idset.from_ids(sorted(ranks)), change.start, end, change.kind, change.note)
            for (change, end), ranks in together.items()
        )
