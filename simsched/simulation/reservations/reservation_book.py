"""`ReservationBook`: the advance reservations of one run, and which of them have their nodes.

When a reservation is announced, the book chooses its targets: such that no running job may still hold them
and no other reservation has them in one of its windows.  A flexible one begins at the first time with enough
of them.  If there is no such time the reservation is refused.  From then on a window is a closure for all
other jobs: they may not run into it.  The jobs of a reservation form a group of their own with its own queue;
for them everything is closed but their targets in their windows.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.errors import ConfigError
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.rfc.idset import encode_ids
from simsched.match.requests.compile import compile_request
from simsched.schedule.maintenance import Calendar, Closure
from simsched.schedule.profiles.plan import first_fit
from simsched.simulation.admission import Admission, rejection_text
from simsched.simulation.environment import DISRUPTION
from simsched.simulation.reservations.reservation_rules import (
    AdvanceReservation,
    constraint_of,
    reservation_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simsched.graph.index.types import Bools, Ints
    from simsched.simulation.engine import Engine
    from simsched.workload.job import Job


class Window(NamedTuple):
    """One time (s) in which targets are reserved."""

    start: float
    end: float
    targets: Ints


class ReservationBook:
    """The reservations of one run; a part of the engine's state."""

    def __init__(
        self, engine: Engine, found: Sequence[AdvanceReservation], closures: Sequence[Closure]
    ) -> None:
        self._engine = engine
        self._reservations = found
        self._closures = tuple(closures)
        self._windows: dict[int, list[Window]] = {}
        self._refused: dict[int, str] = {}
        self._around: list[Calendar] = []
        self.on_border: list[Callable[[], None]] = []
        """What is called when a window begins or ends."""
        for one in found:
            self._refuse_impossible(one)
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

    def group_of(self, name: str) -> int:
        """Return the group of the jobs that name a reservation."""
        names = [one.name for one in self._reservations]
        return self._ordinary + names.index(name)

    def _refuse_impossible(self, one: AdvanceReservation) -> None:
        """Raise a `ConfigError` for targets that the cluster does not have."""
        index = self._engine.plan.available.index
        eligible = index.targets_matching(constraint_of(one)) & index.up
        text = None
        if one.hosts is not None and one.hosts != "all":
            missing = next((host for host in Hostlist.parse(one.hosts) if host not in index.hosts), None)
            text = None if missing is None else f"the cluster has no node {missing!r}"
        elif one.nodes is not None and one.nodes > eligible.sum():
            text = f"it needs {one.nodes} nodes, the cluster has {eligible.sum()} of them"
        elif one.shape is not None and self._by_shape(one, eligible) is None:
            text = "its shape does not fit on the cluster"
        if text is not None:
            raise ConfigError(text, where=one.where, expected="nodes that are up")

    # -- the calendar ---------------------------------------------------------------------------

    def _plan(self) -> None:
        """Give each group its closures, those that are over left out."""
        groups, now = self._engine.queues.groups, self._engine.now
        lasting = {at: [w for w in windows if w.end > now] for at, windows in self._windows.items()}
        kept = [Closure(*window, down=False) for windows in lasting.values() for window in windows]
        shared = Calendar((*self._closures, *kept), always=True)
        for group in groups[: self._ordinary]:
            group.context.supply.calendar = shared
        self._around = [
            Calendar((*self._closures, *self._beside(at, lasting)), always=True)
            for at in range(len(self._reservations))
        ]
        for at, group in enumerate(groups[self._ordinary :]):
            outside = self._beside if self._reservations[at].flex else self._outside
            closed = (*self._closures, *outside(at, lasting))
            group.context.supply.calendar = Calendar(closed, always=True)

    def _outside(self, at: int, lasting: Mapping[int, list[Window]]) -> Iterator[Closure]:
        """Yield the closures for the jobs of a reservation: all times but its windows.

        The windows of reservations that overlap it are closed, too, unless it overlaps others itself.
        """
        everything = np.arange(len(self._engine.plan.available.use), dtype=np.int64)
        windows = lasting.get(at)
        if not windows:
            yield Closure(-inf, inf, everything, down=False)
            return
        others = np.setdiff1d(everything, windows[0].targets)
        if len(others):
            yield Closure(-inf, inf, others, down=False)
        begin = -inf
        for window in windows:
            if begin < window.start:
                yield Closure(begin, window.start, everything, down=False)
            begin = window.end
        yield Closure(begin, inf, everything, down=False)
        if not self._reservations[at].overlaps:
            for other, found in lasting.items():
                if other != at and self._reservations[other].overlaps:
                    yield from (Closure(*window, down=False) for window in found)

    def _beside(self, at: int, lasting: Mapping[int, list[Window]]) -> Iterator[Closure]:
        """Yield the closures for the jobs of a flexible reservation: the windows of the others.

        Within its own windows it has those of its nodes that others have, too, if it overlaps them.
        """
        own = lasting.get(at, []) if self._reservations[at].overlaps else []
        for other, windows in lasting.items():
            for start, end, targets in windows if other != at else ():
                if not own:
                    yield Closure(start, end, targets, down=False)
                    continue
                yield Closure(start, end, np.setdiff1d(targets, own[0].targets), down=False)
                shared, begin = np.intersect1d(targets, own[0].targets), start
                for window in own:
                    if begin < min(window.start, end):
                        yield Closure(begin, min(window.start, end), shared, down=False)
                    begin = max(begin, window.end)
                if begin < end:
                    yield Closure(begin, end, shared, down=False)

    def _on_border(self, at: int) -> None:
        """Make a pass as a window begins or ends; after the last one its waiting jobs stay behind."""
        engine, now = self._engine, self._engine.now
        if engine.is_over:
            return  # no row of the timeline for a reservation without waiting jobs
        if self._windows[at][-1].end <= now:
            group = engine.queues.groups[self._ordinary + at]
            for job in list(group.queue) if not self._reservations[at].flex else ():
                engine.queues.remove(job)
                engine.recorder.reasons[job] = self._ended(at)
        self._plan()
        for listener in self.on_border:
            listener()
        engine.queues.expect_later()
        engine.settle()

    def calendar_around(self, job: int) -> Calendar | None:
        """Return the closures for a job of a reservation that may run beyond its windows; None for others."""
        groups, own = self._engine.queues.groups, self._engine.queues.group_of(job)
        found = [at for at, group in enumerate(groups[self._ordinary :]) if group is own]
        return self._around[found[0]] if found else None

    def begun_for(self, job: int) -> Ints:
        """Return the targets of the reservations whose windows have begun, that of the job left out."""
        now, own = self._engine.now, self._engine.queues.group_of(job)
        groups = self._engine.queues.groups[self._ordinary :]
        found = [
            window.targets
            for at, windows in self._windows.items()
            for window in windows
            if groups[at] is not own and window.start <= now < window.end
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)

    # -- announcements ----------------------------------------------------------------------------

    def _on_reserve(self, at: int) -> None:
        """Choose the targets of a reservation, or refuse it."""
        engine, one = self._engine, self._reservations[at]
        for start in self._starts(one):
            targets = self._targets(one, start)
            if targets is not None:
                spans, now = _spans(one, start), engine.now
                self._windows[at] = [Window(begin, end, targets) for begin, end in spans if end > now]
                for window in self._windows[at]:
                    engine.future.at(max(window.start, now), DISRUPTION, "reserved", at)
                    engine.future.at(window.end, DISRUPTION, "reserved", at)
                break
        else:
            self._refused[at] = f"the reservation {one.name!r} was refused: its nodes are not free in time"
        self._plan()
        engine.queues.expect_later()
        engine.settle()

    def _starts(self, one: AdvanceReservation) -> list[float]:
        """Return the times at which a reservation could begin, in order."""
        now = self._engine.now
        if one.start is not None:
            return [one.seconds("start")]
        first, last = max(now, one.seconds("earliest")), one.seconds("latest")
        ends = {*self._until().tolist(), *(w.end for ws in self._windows.values() for w in ws)}
        ends.update(closure.end for closure in self._closures)
        return [first, *sorted(end for end in ends if first < end <= last and end < inf)]

    def _until(self) -> Any:
        """Return until when running jobs may hold each target, by their limits."""
        engine = self._engine
        until = np.full(len(engine.plan.available.use), -inf)
        durations = engine.prepared.table.durations
        for job, selection in engine.plan.held.items():
            end = engine.recorder.start[job] + durations[job]
            until[selection.targets] = np.maximum(until[selection.targets], max(end, engine.now + 1e-6))
        return until

    def _targets(self, one: AdvanceReservation, start: float) -> Ints | None:
        """Return the targets of a reservation that begins at a time; None if there are too few."""
        if not one.ignore_jobs:
            return self._chosen(one, start, self._until() <= start)
        # Targets without running jobs come first.
        idle = None if one.hosts is not None else self._chosen(one, start, self._until() <= start)
        everything = np.ones(len(self._engine.plan.available.use), dtype=np.bool_)
        return self._chosen(one, start, everything) if idle is None else idle

    def _chosen(self, one: AdvanceReservation, start: float, free: Bools) -> Ints | None:
        """Return the targets of a reservation among those that are `free` of running jobs, or None."""
        index = self._engine.plan.available.index
        free = free & index.targets_matching(constraint_of(one)) & index.up
        taken = (Closure(*window) for window in self._taken(one))
        for closed in (*self._closures, *taken):
            if any(closed.start < end and begin < closed.end for begin, end in _spans(one, start)):
                free[closed.targets] = False
        if one.hosts is not None:
            wanted = np.flatnonzero(index.targets_matching(constraint_of(one)))
            return wanted if len(wanted) and free[wanted].all() else None
        if one.nodes is not None:
            found = np.flatnonzero(free)[: one.nodes]
            return found if len(found) == one.nodes else None
        return self._by_shape(one, free)

    def _taken(self, one: AdvanceReservation) -> Iterator[Window]:
        """Yield the windows whose targets a reservation may not have.

        Where a reservation overlaps another, their order does not matter: that of names may have been made
        before or after it.  One of a number of nodes avoids all others.
        """
        for other, windows in self._windows.items():
            apart = one.hosts is None or not self._reservations[other].overlaps
            if apart and not one.overlaps:
                yield from windows

    def _by_shape(self, one: AdvanceReservation, free: Bools) -> Ints | None:
        """Return the targets that a request takes, as a whole, among those that are free."""
        from simsched.formats.jobspec.jobspec import Jobspec
        from simsched.match.state.availability import Availability

        assert one.shape is not None
        index = self._engine.plan.available.index
        state = Availability(index)
        state.set_status(np.flatnonzero(~free), up=False)
        selection = first_fit(compile_request(Jobspec.from_shape(one.shape), index), state)
        return None if selection is None else np.sort(selection.targets)

    # -- reasons and records ------------------------------------------------------------------------

    def _ended(self, at: int) -> str:
        name, end = self._reservations[at].name, self._windows[at][-1].end
        return f"the reservation {name!r} ended at {end:g} s, before the job could start"

    def reasons(self) -> dict[int, str]:
        """Return for each job that waits for a reservation why it waits."""
        engine, found = self._engine, dict[int, str]()
        for at, group in enumerate(engine.queues.groups[self._ordinary :]):
            windows = self._windows.get(at)
            name = self._reservations[at].name
            if at in self._refused:
                reason = self._refused[at]
            elif windows is None:
                reason = f"the reservation {name!r} is not announced yet"
            elif windows[-1].end <= engine.now and not self._reservations[at].flex:
                reason = self._ended(at)
            else:
                reason = f"waits for resources of the reservation {name!r}"
            found.update(dict.fromkeys(group.queue, reason))
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return the windows of all reservations, for ``run.json``."""
        index = self._engine.plan.available.index
        found = []
        for at, one in enumerate(self._reservations):
            row: dict[str, Any] = {"name": one.name, "windows": []}
            row |= {key: True for key in ("overlaps", "flex") if getattr(one, key)}
            for start, end, targets in self._windows.get(at, []):
                ranks = sorted(index.ranks[targets].tolist())
                hosts = encode_hosts([index.hosts[target] for target in targets.tolist()])
                row["windows"].append(
                    {"start": start, "end": end, "ranks": encode_ids(ranks), "hosts": hosts}
                )
            if at in self._refused:
                row["refused"] = self._refused[at]
            found.append(row)
        return found

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the windows so far."""
        windows = {at: [tuple(window) for window in found] for at, found in self._windows.items()}
        return {"windows": windows, "refused": self._refused}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._windows = {at: [Window(*window) for window in found] for at, found in state["windows"].items()}
        self._refused = state["refused"]
        self._plan()


def _spans(one: AdvanceReservation, start: float) -> list[tuple[float, float]]:
    """Return the begins and ends of the windows of a reservation whose first one begins at a time."""
    begins = [start + turn * one.repeat for turn in range(one.times)]
    return [(begin, begin + one.duration) for begin in begins]


def rejection_by(name: str | None, job: Job, reservations: Sequence[AdvanceReservation]) -> str | None:
    """Return why a job that names a reservation is rejected, or None."""
    if name is None:
        return None
    one = next((one for one in reservations if one.name == name), None)
    fault = f"there is no reservation {name!r}" if one is None else one.fault_of(job)
    return None if fault is None else rejection_text(fault)


def admit_reserved(
    jobs: Sequence[Job], reservations: Sequence[AdvanceReservation], admission: Admission | None
) -> Admission:
    """Put the jobs of each reservation into a group of their own, behind those of the queues.

    Raises
    ------
    ConfigError
        for an attribute of a job that is not a name.
    """
    if admission is None:
        none = [None] * len(jobs)
        admission = Admission(tuple(jobs), {}, [0] * len(jobs), [0] * len(jobs), 1, list(none))
    numbers = {one.name: at for at, one in enumerate(reservations)}
    rejected, groups = dict(admission.rejected), list(admission.groups)
    for at, job in enumerate(jobs):
        name = reservation_of(job)
        fault = rejection_by(name, job, reservations)
        if fault is not None:
            rejected.setdefault(at, fault)
        if name in numbers:
            groups[at] = admission.group_count + numbers[name]
    return replace(
        admission, rejected=rejected, groups=groups, group_count=admission.group_count + len(reservations)
    )
