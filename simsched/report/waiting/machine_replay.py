"""The state of the machine at any time of a run, rebuilt from its ``allocations.jsonl``."""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain
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
        self._records, self._requests = records, requests
        self._times = [record.time for record in records]
        rows = [(one.start, one.end, targets_of_ranks(self._index, one.ranks)) for one in outages]
        self._starts, self._ends = (np.array([row[at] for row in rows], dtype=np.float64) for at in (0, 1))
        self._out_of_service = [row[2] for row in rows]
        self._claims = ClaimsFromR(self._index)
        self._next = 0
        self._claimed: set[str] = set()

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
            record = self._records[place]
            name = str(record.id)
            waiting = due.setdefault(name, [])
            waiting.append(place)
            whole = len(waiting) == 2 and self._records[waiting[0]].R == record.R
            if record.event == "release" and name not in self._claimed and whole:
                del due[name]  # it came and went in between
        self._next = end
        for place in sorted(chain.from_iterable(due.values())):
            self._apply(self._records[place])
        down = ~self._index.up
        for at in np.flatnonzero((self._starts <= time) & (time < self._ends)).tolist():
            down[self._out_of_service[at]] = True
        if not down.any():
            return self._claims.left
        state = self._claims.left.copy()
        state.set_status(np.flatnonzero(down), up=False)
        return state

    def claims(self) -> dict[str, Selection]:
        """Return the claims of the state that was asked for last, by job."""
        return self._claims.by_name()

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
