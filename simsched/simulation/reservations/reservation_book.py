"""`ReservationBook`: the advance reservations of one run, and which of them have their nodes.

When a reservation is announced, it gets its targets, cores and licences (`ReservedPlaces`), or is refused.
From then on a window is a closure for all other jobs: they may not run into it.  The jobs of a reservation
form a group with a queue of their own; for them everything is closed but their targets in their windows.

`ReservedPlaces`: the targets, cores and licences that advance reservations may get, and from when on.

A reservation gets targets, or cores, such that no running job may still hold them by its limit and no other
reservation or maintenance has them in one of its windows.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.rfc.idset import Idset, encode_ids
from simsched.match.requests.compile import compile_request
from simsched.match.state.masks import listed, lowest_bits
from simsched.schedule.maintenance import Calendar, Closure
from simsched.schedule.profiles.plan import first_fit
from simsched.simulation.environment import DISRUPTION
from simsched.simulation.listeners import Listener
from simsched.simulation.reservations.reservation_rules import (
    AdvanceReservation,
    constraint_of,
    reservation_of,
)
from simsched.simulation.reservations.reserved_closures import CORE, Cores, ReservedClosures, Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.arrays import Bools, Integers
    from simsched.graph.index.index import Index
    from simsched.simulation.engine import Engine


class Place(NamedTuple):
    """The targets of a reservation, and its cores on them if it has not all."""

    targets: Integers
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
        known = self._engine.config.licenses or {}
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

    def _by_shape(self, one: AdvanceReservation, free: Bools) -> Integers | None:
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
        known = self._engine.config.licenses or {}
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


class ReservationBook(Listener):
    """The reservations of one run."""

    def __init__(
        self,
        engine: Engine,
        found: Sequence[AdvanceReservation],
        closures: Sequence[Closure],
    ) -> None:
        self._engine = engine
        self._jobs = engine.prepared.jobs
        self._reservations = found
        self._closures = tuple(closures)
        self._places = ReservedPlaces(engine, found, closures)
        self._reserved = ReservedClosures(engine.plan.available.index, found, self._used)
        self._refused: dict[int, str] = {}
        self._around: list[Calendar] = []
        for one in found:
            self._places.refuse_impossible(one)
            self._refuse_together(one)
        future = engine.future
        future.handle("reserve", self._on_reserve)
        future.handle("reserved", self._on_border)
        for at, one in enumerate(found):
            future.at(one.seconds("announced"), DISRUPTION, "reserve", at)
        self._plan()

    @property
    def _ordinary(self) -> int:
        """The number of groups of queues before those of the reservations."""
        return len(self._engine.queues.groups) - len(self._reservations)

    # -- the calendar ---------------------------------------------------------------------------

    def _plan(self) -> None:
        """Give each group its closures, those that are over left out."""
        groups, now = self._engine.queues.groups, self._engine.now
        windows = self._places.windows
        lasting = {at: [w for w in found if w.end > now] for at, found in windows.items()}
        closures = self._reserved
        shared = Calendar((*self._closures, *closures.to(None, lasting)), always=True)
        for group in groups[: self._ordinary]:
            group.context.supply.calendar = shared
        self._around = [
            Calendar((*self._closures, *closures.beside(at, lasting)), always=True)
            for at in range(len(self._reservations))
        ]
        for at, group in enumerate(groups[self._ordinary :]):
            closed = (*self._closures, *closures.to(at, lasting))
            group.context.supply.calendar = Calendar(closed, always=True)
        self._open_magnets()

    def _used(self, at: int, name: str, time: float) -> int:
        """Return how many units of a licence the running jobs of a reservation have at a time (s)."""
        plan, now, queues = self._engine.plan, self._engine.now, self._engine.queues
        return sum(
            selection.counts.get(name, 0)
            for job, selection in plan.held.items()
            if queues.inside(job) == self._ordinary + at and (time <= now or plan.until[job] > time)
        )

    # -- magnetic reservations --------------------------------------------------------------------

    def _refuse_together(self, one: AdvanceReservation) -> None:
        """Raise a `ConfigError` for a reservation that this run could not follow."""
        engine = self._engine
        if one.magnetic and (engine.queues.limits is not None or engine.config.preempts):
            text = "magnetic with limits or preemption is not simulated"
            raise ConfigError(text, where=f"{one.where}.magnetic", expected="jobs that name the reservation")
        if one.cores is not None:
            engine.plan.keeps_ids, engine.plan.counts_only = True, False

    def _open_magnets(self) -> None:
        """Let jobs that may use a magnetic reservation wait for it, too, while one of its windows lasts."""
        queues, now = self._engine.queues, self._engine.now
        for at, one in enumerate(self._reservations):
            if one.magnetic:
                lasts = any(w.start <= now < w.end for w in self._places.windows.get(at, ()))
                queues.magnetize(self._ordinary + at, partial(self._attracts, at) if lasts else None)

    def _attracts(self, at: int, job: int) -> bool:
        """Whether a job that names no reservation may use a magnetic one."""
        found = self._jobs[job]
        return reservation_of(found) is None and self._reservations[at].fault_of(found) is None

    # -- borders ----------------------------------------------------------------------------------

    def _on_border(self, at: int) -> None:
        """Make a pass as a window begins or ends; after the last one its waiting jobs stay behind."""
        engine, now = self._engine, self._engine.now
        if engine.is_over:
            return  # no row of the timeline for a reservation without waiting jobs
        if self._places.windows[at][-1].end <= now:
            group = engine.queues.groups[self._ordinary + at]
            mine = [job for job in group.queue if engine.queues.group_of(job) is group]
            for job in mine if not self._reservations[at].flex else ():
                engine.queues.remove(job)
                engine.recorder.reasons[job] = self._ended(at)
        self._plan()
        for hear in engine.on.border:
            hear()
        engine.queues.expect_later()
        engine.settle()

    def calendar_around(self, job: int) -> Calendar | None:
        """Return the closures for a job of a reservation that may run beyond its windows; None for others."""
        groups, own = self._engine.queues.groups, self._engine.queues.group_of(job)
        found = [at for at, group in enumerate(groups[self._ordinary :]) if group is own]
        return self._around[found[0]] if found else None

    def begun_for(self, job: int) -> Integers:
        """Return the targets of the reservations whose windows have begun, that of the job left out."""
        now, own = self._engine.now, self._engine.queues.group_of(job)
        groups = self._engine.queues.groups[self._ordinary :]
        found = [
            window.targets
            for at, windows in self._places.windows.items()
            for window in windows
            if groups[at] is not own and window.start <= now < window.end
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)

    # -- announcements ----------------------------------------------------------------------------

    def _on_reserve(self, at: int) -> None:
        """Choose the targets of a reservation, or refuse it."""
        engine, one, windows = self._engine, self._reservations[at], self._places.windows
        for start in self._places.starts(one):
            place = self._places.place(one, start)
            if place is not None:
                now, ahead = engine.now, one.ahead or 0
                spans = ((begin - ahead, end - ahead) for begin, end in one.spans(start))
                windows[at] = [Window(begin, end, *place) for begin, end in spans if end > now]
                for window in windows[at]:
                    engine.future.at(max(window.start, now), DISRUPTION, "reserved", at)
                    if window.end < inf:
                        engine.future.at(window.end, DISRUPTION, "reserved", at)
                break
        else:
            what = "nodes" if one.has_nodes and not one.licenses else "nodes and licences"
            self._refused[at] = f"the reservation {one.name!r} was refused: its {what} are not free in time"
        self._plan()
        engine.queues.expect_later()
        engine.settle()

    # -- reasons and records ------------------------------------------------------------------------

    def _ended(self, at: int) -> str:
        name, end = self._reservations[at].name, self._places.windows[at][-1].end
        return f"the reservation {name!r} ended at {end:g} s, before the job could start"

    def reasons(self) -> dict[int, str]:
        """Return for each job that waits for a reservation why it waits."""
        engine, found = self._engine, dict[int, str]()
        for at, group in enumerate(engine.queues.groups[self._ordinary :]):
            windows = self._places.windows.get(at)
            name = self._reservations[at].name
            if at in self._refused:
                reason = self._refused[at]
            elif windows is None:
                reason = f"the reservation {name!r} is not announced yet"
            elif windows[-1].end <= engine.now and not self._reservations[at].flex:
                reason = self._ended(at)
            else:
                reason = f"waits for resources of the reservation {name!r}"
            mine = [job for job in group.queue if engine.queues.group_of(job) is group]
            found.update(dict.fromkeys(mine, reason))
        return found

    def described(self) -> dict[str, Any]:
        """Return the windows of all reservations."""
        index = self._engine.plan.available.index
        found = []
        for at, one in enumerate(self._reservations):
            row: dict[str, Any] = {"name": one.name, "windows": []}
            row |= {key: True for key in ("overlaps", "flex", "magnetic") if getattr(one, key)}
            row |= {"licenses": dict(one.licenses)} if one.licenses else {}
            row |= {} if one.ahead is None else {"longer": one.ahead}
            for start, end, targets, cores in self._places.windows.get(at, []):
                ranks = sorted(index.ranks[targets].tolist())
                hosts = encode_hosts([index.hosts[target] for target in targets.tolist()])
                ends = end if end < inf else None
                window = {"start": start, "end": ends, "ranks": encode_ids(ranks), "hosts": hosts}
                row["windows"].append(window | ({} if cores is None else {"cores": _by_rank(cores, index)}))
            if one.seconds("announced") > 0:
                row["announced"] = one.seconds("announced")
            if at in self._refused:
                row["refused"] = self._refused[at]
            found.append(row)
        return {"reservations": found}

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the windows so far, and the jobs that run in a reservation that they did not name."""
        windows = {
            at: [
                (*window[:3], window.cores and [(leaf, hex(mask)) for leaf, mask in window.cores])
                for window in found
            ]
            for at, found in self._places.windows.items()
        }
        return {"windows": windows, "refused": self._refused, "taken": self._engine.queues.taken}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._places.windows = {
            at: [_window(*window) for window in found] for at, found in state["windows"].items()
        }
        self._refused = state["refused"]
        self._engine.queues.taken = state["taken"]
        self._plan()


def _window(start: float, end: float, targets: Integers, cores: Sequence[tuple[int, str]] | None) -> Window:
    """Return a window from its saved values."""
    found = None if cores is None else tuple((leaf, int(mask, 16)) for leaf, mask in cores)
    return Window(start, end, targets, found)


def _by_rank(cores: Cores, index: Index) -> dict[str, str]:
    """Return rank → idset of cores."""
    pool, found = index.pool_types[CORE], dict[str, list[int]]()
    for leaf, mask in cores:
        ids = [id_ for unit, id_ in enumerate(pool.ids[leaf]) if mask >> unit & 1]
        found.setdefault(str(index.ranks[pool.target[leaf]]), []).extend(ids)
    return {rank: encode_ids(sorted(ids)) for rank, ids in found.items()}
