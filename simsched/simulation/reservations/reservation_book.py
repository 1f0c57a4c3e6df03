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
    from collections.abc import Sequence

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
        self._ordinary = len(engine.queues.groups) - len(found)
        for one in found:
            self._refuse_impossible(one)
        future = engine.future
        future.handle("reserve", self._on_reserve)
        future.handle("reserved", self._on_border)
        for at, one in enumerate(found):
            future.at(one.seconds("announced"), DISRUPTION, "reserve", at)
        self._plan()

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
        """Give each group its closures."""
        groups = self._engine.queues.groups
        kept = [Closure(*window, down=False) for windows in self._windows.values() for window in windows]
        shared = Calendar((*self._closures, *kept), always=True)
        for group in groups[: self._ordinary]:
            group.context.supply.calendar = shared
        for at, group in enumerate(groups[self._ordinary :]):
            group.context.supply.calendar = Calendar((*self._closures, *self._outside(at)), always=True)

    def _outside(self, at: int) -> list[Closure]:
        """Return the closures for the jobs of a reservation: all times but its windows."""
        everything = np.arange(len(self._engine.plan.available.use), dtype=np.int64)
        windows = self._windows.get(at)
        if not windows:
            return [Closure(-inf, inf, everything, down=False)]
        others = np.setdiff1d(everything, windows[0].targets)
        found = [Closure(-inf, inf, others, down=False)] if len(others) else []
        begin = -inf
        for window in windows:
            if begin < window.start:
                found.append(Closure(begin, window.start, everything, down=False))
            begin = window.end
        return [*found, Closure(begin, inf, everything, down=False)]

    def _on_border(self, at: int) -> None:
        """Make a pass as a window begins or ends; after the last one its waiting jobs stay behind."""
        engine, now = self._engine, self._engine.now
        if engine.is_over:
            return  # no row of the timeline for a reservation without waiting jobs
        if self._windows[at][-1].end <= now:
            group = engine.queues.groups[self._ordinary + at]
            for job in list(group.queue):
                engine.queues.remove(job)
                engine.recorder.reasons[job] = self._ended(at)
        engine.queues.expect_later()
        engine.settle()

    # -- announcements ----------------------------------------------------------------------------

    def _on_reserve(self, at: int) -> None:
        """Choose the targets of a reservation, or refuse it."""
        engine, one = self._engine, self._reservations[at]
        for start in self._starts(one):
            targets = self._targets(one, start)
            if targets is not None:
                ends = [start + turn * one.repeat for turn in range(one.times)]
                self._windows[at] = [Window(begin, begin + one.duration, targets) for begin in ends]
                for window in self._windows[at]:
                    engine.future.at(window.start, DISRUPTION, "reserved", at)
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
        engine = self._engine
        index = engine.plan.available.index
        spans = [(start + n * one.repeat, start + n * one.repeat + one.duration) for n in range(one.times)]
        free: Bools = (self._until() <= start) & index.targets_matching(constraint_of(one)) & index.up
        taken = [Closure(*window) for windows in self._windows.values() for window in windows]
        for closed in (*self._closures, *taken):
            if any(closed.start < end and begin < closed.end for begin, end in spans):
                free[closed.targets] = False
        if one.hosts is not None:
            wanted = np.flatnonzero(index.targets_matching(constraint_of(one)))
            return wanted if len(wanted) and free[wanted].all() else None
        if one.nodes is not None:
            found = np.flatnonzero(free)[: one.nodes]
            return found if len(found) == one.nodes else None
        return self._by_shape(one, free)

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

    def note_reasons(self) -> None:
        """Record for the jobs that still wait for a reservation why they wait."""
        engine = self._engine
        for at, group in enumerate(engine.queues.groups[self._ordinary :]):
            windows = self._windows.get(at)
            name = self._reservations[at].name
            if at in self._refused:
                reason = self._refused[at]
            elif windows is None:
                reason = f"the reservation {name!r} is not announced yet"
            elif windows[-1].end <= engine.now:
                reason = self._ended(at)
            else:
                reason = f"waits for resources of the reservation {name!r}"
            for job in group.queue:
                engine.recorder.reasons[job] = reason

    def records(self) -> list[dict[str, Any]]:
        """Return the windows of all reservations, for ``run.json``."""
        index = self._engine.plan.available.index
        found = []
        for at, one in enumerate(self._reservations):
            row: dict[str, Any] = {"name": one.name, "windows": []}
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
        if name is None:
            continue
        if name not in numbers:
            rejected.setdefault(at, rejection_text(f"there is no reservation {name!r}"))
            continue
        fault = reservations[numbers[name]].fault_of(job)
        if fault is not None:
            rejected.setdefault(at, rejection_text(fault))
        groups[at] = admission.group_count + numbers[name]
    return replace(
        admission, rejected=rejected, groups=groups, group_count=admission.group_count + len(reservations)
    )
