"""`Disruption`: outages in a running engine.

A target may be out for several reasons at once; it is up again when the last of them ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simsched.errors import ConfigError
from simsched.match.named_targets import targets_of
from simsched.schedule.maintenance import Closure
from simsched.simulation.environment import DISRUPTION
from simsched.simulation.listeners import Listener
from simsched.simulation.outages.outages import FAILURE, MAINTENANCE
from simsched.simulation.record.recorder import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.simulation.engine import Engine
    from simsched.simulation.outages.outages import Failures, Outage

#: A job that was requeued this often is not requeued again.
MOST_REQUEUES = 100


def closures_of(outages: Sequence[Outage], index: Index) -> list[Closure]:
    """Return the closures of the targets in announced maintenance.

    Raises
    ------
    ConfigError
        If an outage names a rank that the cluster does not have.
    """
    found = [outage for outage in outages if outage.kind == MAINTENANCE]
    return [Closure(outage.start, outage.end, _targets(outage, index)) for outage in found]


def _targets(outage: Outage, index: Index) -> Integers:
    return np.array(targets_of(index, outage.ranks, outage.hosts), dtype=np.int64)


#: Most random failures that a run may be expected to draw.
MOST_FAILURES = 10_000_000


def refuse_endless_failures(failures: Failures, targets: int, begin: float, end: float) -> None:
    """Refuse failures that would take hours to draw: failures are drawn until the last job has ended.

    `end` (seconds) is the last time known beforehand: the end of an outage, a queue stop or a job.

    Raises
    ------
    ConfigError
        If more than `MOST_FAILURES` are expected until then.
    """
    expected = targets * max(0.0, end - begin) / (failures.mtbf + failures.mttr)
    if expected > MOST_FAILURES:
        raise ConfigError(
            f"about {expected:,.0f} random failures until {end:g} s, the last known end of a job, an outage "
            f"or a queue stop",
            where="failures",
            expected=f"at most {MOST_FAILURES:,}: a longer mtbf, or an earlier end",
        )


class TargetPlaces(Protocol):
    """The ordinals of the targets of a cluster in a larger one, and the ordinals of those that are new."""

    targets: Integers
    new: Integers


class Disruption(Listener):
    """Takes targets down and up again, and interrupts the jobs on targets that fail.

    `on_failure` is ``requeue`` or ``fail``.  The times between failures are drawn with a
    generator of their own, one target after the other.
    """

    def __init__(
        self,
        engine: Engine,
        index: Index,
        outages: Sequence[Outage],
        failures: Failures | None,
        on_failure: str,
        seed: int,
    ) -> None:
        self._engine = engine
        self._index = index
        self._outages = [(outage, _targets(outage, index)) for outage in outages]
        self._failures = failures
        self._requeue = on_failure == "requeue"
        self._rng = np.random.default_rng([seed, 1])
        self._out = engine.plan.outages
        self._may_wake = False
        self.asleep: list[int] = []
        """Targets that do not fail while there are no jobs."""
        self._reserved = ~index.up  # down from the beginning, for good
        engine.generators["failures"] = self._rng
        handle = engine.future.handle
        handle("failure", self._on_failure)
        handle("repair", self._on_repair)
        handle("down", self._on_down)
        handle("up", self._on_up)

    def schedule(self, begin: float, *, later: bool = False) -> None:
        """Enter all outages into the engine's events; random failures begin at `begin` (seconds).

        Those that begin `later` do so at the first `wake`.
        """
        future, self._may_wake = self._engine.future, later
        for outage, targets in self._outages:
            future.at(max(outage.start, 0), DISRUPTION, "down", (outage.kind, targets, outage.note))
            if outage.end != float("inf"):
                future.at(max(outage.end, 0), DISRUPTION, "up", targets)
        if self._failures is not None:
            self.asleep = list(range(len(self._index)))
            if not later:
                self.wake(begin)

    def wake(self, now: float) -> None:
        """Let targets fail from now on (seconds) that did not while there were no jobs."""
        for target in self.asleep:
            self._draw_failure(target, now)
        self.asleep = []

    def state(self) -> dict[str, Any]:
        """Return how many outages each target is in."""
        return {"out": self._out} | ({"asleep": self.asleep} if self.asleep else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._out[:] = state["out"]
        self.asleep = state.get("asleep", [])

    def state_on(self, state: dict[str, Any], places: TargetPlaces) -> dict[str, Any]:
        """Return a state as one on a larger cluster, whose new targets begin to fail at the next `wake`."""
        out = np.zeros(len(places.targets) + len(places.new), dtype=np.int64)
        out[places.targets] = state["out"]
        asleep = places.targets[state.get("asleep", [])].tolist()
        if self._failures is not None:
            asleep += places.new.tolist()
        return {"out": out} | ({"asleep": asleep} if asleep else {})

    def _draw_failure(self, target: int, now: float) -> None:
        assert self._failures is not None
        when = now + self._failures.lifetime(self._rng)
        self._engine.future.at(when, DISRUPTION, "failure", np.array([target], dtype=np.int64))

    def _on_failure(self, targets: Integers) -> None:
        """Let one target fail, and draw when it will be repaired."""
        assert self._failures is not None
        engine = self._engine
        # Failures end with the run: otherwise they would be drawn for ever.
        if engine.is_over or self._is_hopeless():
            if self._may_wake:
                self.asleep.append(int(targets[0]))
            return
        repaired = engine.now + self._failures.repair(self._rng)
        engine.future.at(repaired, DISRUPTION, "repair", targets)
        engine.recorder.failures.append((int(self._index.ranks[targets[0]]), engine.now, repaired))
        self.take_down(FAILURE, targets, "node failure")
        self._engine.settle()

    def _is_hopeless(self) -> bool:
        """Whether jobs wait that no event to come can start: only further failures are left."""
        engine = self._engine
        if engine.progress.due is not None or engine.plan.held:
            return False
        return engine.future.only("failure")

    def _on_repair(self, targets: Integers) -> None:
        self.bring_up(targets)
        self._draw_failure(int(targets[0]), self._engine.now)
        self._engine.settle()

    def _on_down(self, outage: tuple[str, Integers, str]) -> None:
        kind, targets, note = outage
        self.take_down(kind, targets, note or kind)
        self._engine.settle()

    def _on_up(self, targets: Integers) -> None:
        self.bring_up(targets)
        self._engine.settle()

    def take_down(self, kind: str, targets: Integers, note: str) -> None:
        """Take targets down, for one reason more for each time that they are named.

        Jobs on targets that fail are interrupted.
        """
        engine = self._engine
        if kind == FAILURE:
            self.interrupt(targets, note, requeue=self._requeue)
        gone = targets[(self._out[targets] == 0) & ~self._reserved[targets]]
        np.add.at(self._out, targets, 1)
        engine.plan.set_status(np.unique(gone), up=False)
        engine.queues.touch(released=False)

    def bring_up(self, targets: Integers) -> None:
        """Let targets be down for one reason less for each time that they are named; then they may be up."""
        np.subtract.at(self._out, targets, 1)
        back = targets[(self._out[targets] == 0) & ~self._reserved[targets]]
        self._engine.plan.set_status(np.unique(back), up=True)
        self._engine.queues.touch(released=True)

    def interrupt(self, targets: Integers, note: str, *, requeue: bool) -> None:
        """End or requeue the jobs that run on the targets."""
        engine = self._engine
        failed = np.zeros(len(self._index), dtype=np.bool_)
        failed[targets] = True
        hit = [job for job, selection in engine.plan.held.items() if failed[selection.targets].any()]
        stopped = {job: found for hears in engine.on.hit for job, found in hears(failed).items()}
        for job in sorted([*stopped, *(job for job in hit if engine.is_running(job))]):
            selection = stopped[job] if job in stopped else engine.plan.held[job]
            hosts = self._hosts(selection.targets, failed)
            reason = f"{note} of {hosts}"
            if requeue and engine.progress.requeues.get(job, 0) < MOST_REQUEUES:
                engine.requeue(job, engine.now, reason)
            else:
                engine.interrupt(job, engine.now, FAILED, reason)

    def _hosts(self, targets: Integers, failed: Any) -> str:
        names = [self._index.hosts[target] for target in targets[failed[targets]].tolist()]
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
