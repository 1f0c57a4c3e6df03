"""`ReservedPlaces`: the targets, cores and licences that advance reservations may get, and from when on.

A reservation gets targets, or cores, such that no running job may still hold them by its limit and no other
reservation or maintenance has them in one of its windows.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.match.requests.compile import compile_request
from simsched.match.state.masks import listed, lowest_bits
from simsched.schedule.profiles.plan import first_fit
from simsched.simulation.reservations.reservation_rules import AdvanceReservation, constraint_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Bools, Ints
    from simsched.schedule.maintenance import Closure
    from simsched.simulation.engine import Engine

CORE = "core"
Cores = tuple[tuple[int, int], ...]
"""(leaf pool of cores, mask over its units) of each leaf pool."""


class Window(NamedTuple):
    """One time (s) in which targets are reserved, or only some of their `cores`.

    That of a start that moves with the time is the time in which it keeps longer jobs away.
    """

    start: float
    end: float
    targets: Ints
    cores: Cores | None = None


class Place(NamedTuple):
    """The targets of a reservation, and its cores on them if it has not all."""

    targets: Ints
    cores: Cores | None = None


class ReservedPlaces:
    """What reservations may get beside running jobs, maintenance, and the windows of other reservations."""

    def __init__(
        self, engine: Engine, reservations: Sequence[AdvanceReservation], closures: Sequence[Closure]
    ) -> None:
        self._engine = engine
        self._reservations = reservations
        self._closures = tuple(closures)
        self.windows: dict[int, list[Window]] = {}
        """Number of a reservation → its windows, once it is announced."""

    @property
    def _index(self) -> Index:
        return self._engine.plan.available.index

    # -- what the cluster has -------------------------------------------------------------------

    def refuse_impossible(self, one: AdvanceReservation) -> None:
        """Raise a `ConfigError` for targets, cores and licences that the cluster does not have."""
        index = self._index
        eligible = index.targets_matching(constraint_of(one)) & index.up
        text = self._fault_of_licences(one)
        if one.hosts is not None and one.hosts != "all":
            missing = next((host for host in Hostlist.parse(one.hosts) if host not in index.hosts), None)
            text = text if missing is None else f"the cluster has no node {missing!r}"
        elif one.nodes is not None and one.nodes > eligible.sum():
            text = f"it needs {one.nodes} nodes, the cluster has {eligible.sum()} of them"
        elif one.shape is not None and self._by_shape(one, eligible) is None:
            text = "its shape does not fit on the cluster"
        if text is not None:
            raise ConfigError(text, where=one.where, expected="nodes that are up")
        if one.cores is not None:
            fault = self._fault_of_cores(one, eligible)
            if fault is not None:
                raise ConfigError(fault, where=f"{one.where}.cores", expected="cores of its nodes")

    def _fault_of_licences(self, one: AdvanceReservation) -> str | None:
        known = {} if self._engine.config.licenses is None else self._engine.config.licenses.to_dict()
        for name, number in one.licenses:
            if name not in known:
                return f"there is no licence {name!r}{did_you_mean(name, known)}"
            if number > known[name]:
                return f"it needs {number} of the licence {name!r}, there are {known[name]}"
        return None

    def _fault_of_cores(self, one: AdvanceReservation, eligible: Bools) -> str | None:
        """Return why its cores are not on the cluster, or None."""
        pool = self._index.pool_types.get(CORE)
        if pool is None or not pool.named:
            return "the cores of the cluster have no ids"
        cores = self._cores_among(one, eligible, dict(enumerate(pool.full)))
        wanted = int(eligible.sum()) if one.hosts is not None else one.nodes or 0
        if cores is None or len(cores) < wanted:
            return f"its nodes have fewer cores than it needs: {one.to_dict()['cores']}"
        return None

    # -- when, and what -------------------------------------------------------------------------

    def starts(self, one: AdvanceReservation) -> list[float]:
        """Return the times at which a reservation could begin, in order."""
        now = self._engine.now
        if one.ahead is not None:
            return [now]
        if one.start is not None:
            return [one.seconds("start")]
        first, last = max(now, one.seconds("earliest")), one.seconds("latest")
        ends = {*self._until().tolist(), *(w.end for ws in self.windows.values() for w in ws)}
        if one.cores is not None or one.licenses:
            ends.update(end for end, _ in self._claims(-inf))
        ends.update(closure.end for closure in self._closures)
        return [first, *sorted(end for end in ends if first < end <= last and end < inf)]

    def place(self, one: AdvanceReservation, start: float) -> Place | None:
        """Return the targets of a reservation that begins at a time; None if it cannot."""
        begin = one.spans(start)[0][0]
        if not self._licences_left(one, start):
            return None
        if not one.has_nodes:
            return Place(np.empty(0, dtype=np.int64))
        if one.cores is not None:
            return self._cores_of(one, start)
        if not one.ignore_jobs:
            return self._chosen(one, start, self._until() <= begin)
        # Targets without running jobs come first.
        idle = None if one.hosts is not None else self._chosen(one, start, self._until() <= begin)
        everything = np.ones(len(self._engine.plan.available.use), dtype=np.bool_)
        return self._chosen(one, start, everything) if idle is None else idle

    def _claims(self, time: float) -> Iterator[tuple[float, Any]]:
        """Yield (end, claim) of the running jobs that may still run after a time, by their limits."""
        engine = self._engine
        durations = engine.prepared.table.durations
        for job, selection in engine.plan.held.items():
            end = max(engine.recorder.start[job] + durations[job], engine.now + 1e-6)
            if end > time:
                yield end, selection

    def _until(self) -> Any:
        """Return until when running jobs may hold each target, by their limits."""
        until = np.full(len(self._engine.plan.available.use), -inf)
        for end, selection in self._claims(-inf):
            until[selection.targets] = np.maximum(until[selection.targets], end)
        return until

    def _open(self, one: AdvanceReservation, start: float, free: Bools) -> Bools:
        """Return the targets among the `free` ones that are neither closed nor reserved in its windows."""
        index, spans = self._index, one.spans(start)
        free = free & index.targets_matching(constraint_of(one)) & index.up
        taken = ((*found[:3], found.cores) for found in self._taken(one))
        for begin, end, targets, cores in (*((*c[:3], None) for c in self._closures), *taken):
            shares = cores is not None and one.cores is not None
            if not shares and any(begin < last and first < end for first, last in spans):
                free[targets] = False
        return free

    def _chosen(self, one: AdvanceReservation, start: float, free: Bools) -> Place | None:
        """Return the targets of a reservation among those that are `free` of running jobs, or None."""
        free = self._open(one, start, free)
        if one.hosts is not None:
            wanted = np.flatnonzero(self._index.targets_matching(constraint_of(one)))
            return Place(wanted) if len(wanted) and free[wanted].all() else None
        if one.nodes is not None:
            found = np.flatnonzero(free)[: one.nodes]
            return Place(found) if len(found) == one.nodes else None
        shaped = self._by_shape(one, free)
        return None if shaped is None else Place(shaped)

    def _taken(self, one: AdvanceReservation) -> Iterator[Window]:
        """Yield the windows whose targets a reservation may not have.

        Where a reservation overlaps another, their order does not matter: that of names may have been made
        before or after it.  One of a number of nodes avoids all others.
        """
        for other, windows in self.windows.items():
            apart = one.hosts is None or not self._reservations[other].overlaps
            if apart and not one.overlaps:
                ahead = self._reservations[other].ahead or 0
                for window in windows:
                    yield window._replace(start=window.start + ahead, end=window.end + ahead)

    def _by_shape(self, one: AdvanceReservation, free: Bools) -> Ints | None:
        """Return the targets that a request takes, as a whole, among those that are free."""
        from simsched.formats.jobspec.jobspec import Jobspec
        from simsched.match.state.availability import Availability

        assert one.shape is not None
        state = Availability(self._index)
        state.set_status(np.flatnonzero(~free), up=False)
        selection = first_fit(compile_request(Jobspec.from_shape(one.shape), self._index), state)
        return None if selection is None else np.sort(selection.targets)

    # -- cores ------------------------------------------------------------------------------------

    def _cores_of(self, one: AdvanceReservation, start: float) -> Place | None:
        """Return the cores of a reservation on its targets; those without running jobs first."""
        begin = one.spans(start)[0][0]
        open_ = self._open(one, start, np.ones(len(self._index), dtype=np.bool_))
        found = self._free_cores(one, start, begin, open_)
        if found is None and one.ignore_jobs:
            found = self._free_cores(one, start, inf, open_)
        return found

    def _free_cores(self, one: AdvanceReservation, start: float, begin: float, open_: Bools) -> Place | None:
        """Return its cores among those that no job may hold from `begin` on and no reservation has."""
        index = self._index
        pool, open_ = index.pool_types[CORE], open_.copy()
        free = dict(enumerate(pool.full))
        for _, selection in self._claims(begin):
            for hold in selection.holds:
                target = index.vertex_types[hold.type].target[hold.ordinals]
                if hold.exclusive:
                    open_[target[target >= 0]] = False
            for draw in (*selection.held, *selection.shared):
                if draw.type == CORE:
                    leaves = draw.pools.tolist()
                    masks = [pool.full[leaf] for leaf in leaves] if draw.masks is None else listed(draw.masks)
                    for leaf, mask in zip(leaves, masks, strict=True):
                        free[leaf] &= ~mask
        spans = one.spans(start)
        for window in self._taken(one):
            if any(window.start < last and first < window.end for first, last in spans):
                for leaf, mask in window.cores or ():
                    free[leaf] &= ~mask
        found = self._cores_among(one, open_, free)
        number = int(index.targets_matching(constraint_of(one)).sum()) if one.nodes is None else one.nodes
        if found is None or len(found) < number:
            return None
        chosen = list(found)[:number]
        cores = tuple(pair for target in chosen for pair in found[target])
        return Place(np.array(chosen, dtype=np.int64), cores)

    def _cores_among(
        self, one: AdvanceReservation, targets: Bools, free: Mapping[int, int]
    ) -> dict[int, Cores] | None:
        """Return target → its cores for the targets that have enough of them; None if a named one has not."""
        index = self._index
        pool = index.pool_types[CORE]
        leaves: dict[int, list[int]] = {}
        for leaf, target in enumerate(pool.target.tolist()):
            leaves.setdefault(target, []).append(leaf)
        named = None if isinstance(one.cores, int | None) else dict(one.cores)
        found: dict[int, Cores] = {}
        for target in np.flatnonzero(targets).tolist():
            mine = [(leaf, free[leaf]) for leaf in leaves.get(target, ())]
            if named is not None:
                ids = Idset.parse(named[index.hosts[target]])
                exact = [(leaf, _mask(pool.ids[leaf], ids)) for leaf, _ in mine]
                lacking = sum(mask.bit_count() for _, mask in exact) < len(ids)
                if lacking or any(mask & ~free[leaf] for leaf, mask in exact):
                    return None
                found[target] = tuple(pair for pair in exact if pair[1])
                continue
            assert isinstance(one.cores, int)
            lowest = _lowest(mine, one.cores)
            if lowest is not None:
                found[target] = lowest
        return found

    # -- licences ---------------------------------------------------------------------------------

    def _licences_left(self, one: AdvanceReservation, start: float) -> bool:
        """Whether its licences are not those of running jobs or of other reservations."""
        known = {} if self._engine.config.licenses is None else self._engine.config.licenses.to_dict()
        spans = one.spans(start)
        for name, number in one.licenses:
            left = known[name]
            for at, windows in self.windows.items():
                other = dict(self._reservations[at].licenses).get(name, 0)
                if other and any(w.start < last and first < w.end for w in windows for first, last in spans):
                    left -= other
            if not one.ignore_jobs:
                claims = self._claims(spans[0][0])
                left -= sum(selection.counts.get(name, 0) for _, selection in claims)
            if number > left:
                return False
        return True


def _mask(ids: Idset, wanted: Idset) -> int:
    """Return the units with some ids as a mask over unit ordinals."""
    return sum(1 << unit for unit, id_ in enumerate(ids) if id_ in wanted)


def _lowest(masks: Sequence[tuple[int, int]], number: int) -> Cores | None:
    """Return the first units of leaf pools, in order; None if there are fewer than this number."""
    found: list[tuple[int, int]] = []
    for leaf, mask in masks:
        some = min(number, mask.bit_count())
        if some:
            found.append((leaf, lowest_bits(mask, some)))
            number -= some
    return None if number else tuple(found)
