"""The state of the machine at any time of a run, rebuilt from its ``allocations.jsonl``."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import RunError, SimschedError
from simsched.match.claims_from_r import ClaimsFromR
from simsched.match.named_targets import targets_of_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simsched.graph.cluster import Cluster
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.simulation.outages.outages import Outage
    from simsched.simulation.record.allocation_reader import AllocationRecord


class MachineReplay:
    """The machine of a run at one time after another, each later than the one before.

    The units of a job are claimed only if the state is asked for while the job holds them.

    Parameters
    ----------
    cluster : the cluster of the run.
    records : the records of the run, ascending in time.
    requests : id → compiled request of the job; it shows the units that a job holds besides those in its R.
    outages : the outages; their targets are down in the states.
    """

    def __init__(
        self,
        cluster: Cluster,
        records: list[AllocationRecord],
        requests: Callable[[str], Request],
        outages: Iterable[Outage] = (),
    ) -> None:
        self._index = cluster.index
        self._records = records
        self._times = [record.time for record in records]
        self._requests = requests
        self._down = ~self._index.up
        self._changes = sorted(
            (time, up, tuple(targets_of_ranks(self._index, outage.ranks)))
            for outage in outages
            for time, up in ((outage.start, False), (outage.end, True))
        )
        self._changed = 0
        self._open = np.zeros(len(self._index), dtype=np.int64)
        """How many outages each target is in."""
        self._claims = ClaimsFromR(self._index)
        self._next = 0
        self._claimed: set[str] = set()

    @property
    def times(self) -> list[float]:
        """The times of all records."""
        return self._times

    def state_at(self, time: float) -> Availability:
        """Return the state after all records up to a time; read-only, and it changes with the next call.

        Raises
        ------
        RunError
            If an R does not belong to the cluster.
        """
        end = bisect_right(self._times, time)
        due: dict[str, list[int]] = {}
        for place in range(self._next, end):
            self._note(place, due)
        self._next = end
        for place in sorted(place for places in due.values() for place in places):
            self._apply(self._records[place])
        return self._with_outages(time)

    def claims(self) -> dict[str, Selection]:
        """Return the claims of the state that was asked for last, by job."""
        return self._claims.by_name()

    def _note(self, place: int, due: dict[str, list[int]]) -> None:
        """Note a record as due, or forget the records of a job that came and went in between."""
        record = self._records[place]
        name = str(record.id)
        waiting = due.setdefault(name, [])
        waiting.append(place)
        whole = len(waiting) == 2 and self._records[waiting[0]].R == record.R
        if record.event == "release" and name not in self._claimed and whole:
            del due[name]

    def _apply(self, record: AllocationRecord) -> None:
        name, granted = str(record.id), record.resources()
        try:
            if record.event == "alloc":
                self._claims.exact(name, granted, self._requests(name), rest=True)
                self._claimed.add(name)
            elif not self._claims.release(name, targets_of_ranks(self._index, granted.ranks)):
                self._claimed.discard(name)
        except SimschedError as error:
            fault = f"the R of job {name} at {record.time:g} s does not belong to the cluster: {error}"
            raise RunError(fault, where="allocations.jsonl") from None

    def _with_outages(self, time: float) -> Availability:
        """Return the state with targets down as the cluster and the outages say."""
        while self._changed < len(self._changes) and self._changes[self._changed][0] <= time:
            _, up, targets = self._changes[self._changed]
            np.add.at(self._open, list(targets), -1 if up else 1)
            self._changed += 1
        down = self._down | (self._open > 0)
        if not down.any():
            return self._claims.left
        state = self._claims.left.copy()
        state.set_status(np.flatnonzero(down), up=False)
        return state
