"""`JobChanges`: running jobs that shrink, grow, or get another duration while the clock runs.

A job is malleable if the outermost count of its request is a range or a set (RFC 14), and each counted unit
is one execution target: ``slot=2-8/node`` or ``node=2-8/slot/core=4``.  Its work is that of its run time on
the targets that it started on.  With fewer or more targets the rest takes longer or shorter, in proportion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from simsched.errors import ConfigError, RunError
from simsched.match.requests.compile import with_amount
from simsched.match.search.exact import SearchLimitError
from simsched.match.search.select import select
from simsched.match.state.draws import with_units
from simsched.match.state.selection import joined

if TYPE_CHECKING:
    from simpy import Event

    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.state.selection import Selection
    from simsched.simulation.engine import Engine
    from simsched.simulation.live.growth import Growth
    from simsched.simulation.options.run_config import RunConfig


def refuse_changes(config: RunConfig, change: str) -> None:
    """Raise a RunError for a change of a job if a rule of the run goes by jobs as they were submitted."""
    for given, rule in (
        (config.limits, "limits"),
        (config.preemption, "preemption"),
        (config.job_checkpoints, "job-checkpoints"),
        (config.reservations, "reservations"),
    ):
        if given:
            text = f"in a run with {rule} a job stays as it was submitted, and {change}"
            raise RunError(text, expected=f"a run without {rule}")


class JobChanges:
    """Changes the resources of running jobs at the present instant."""

    def __init__(self, engine: Engine, index: Index, growth: Growth, policy: MatchPolicy) -> None:
        self._engine, self._index, self._growth, self._policy = engine, index, growth, policy
        engine.future.handle("resize", self._on_resize)
        engine.future.handle("new-duration", self._on_new_duration)

    # -- size ---------------------------------------------------------------------------------------

    def check_size(self, number: int, size: int) -> None:
        """Raise an error unless a running job may have this many execution targets.

        RunError for a job that does not run or is not malleable, ConfigError for a size out of its range.
        """
        engine = self._engine
        name = engine.name_of(number)
        if not engine.is_running(number):
            raise RunError(f"job {name} does not run", expected="a running job")
        request = self._growth.request_of(number)
        held = engine.plan.held[number]
        count = request.jobspec.resources[0].count
        one_each = len(held.targets) == len(held.listed) == self._amount(held)
        if request.ranged[:1] != (0,) or len(request.ranged) > 1 or not one_each:
            expected = "a count that is a range, one execution target each: slot=2-8/node"
            raise RunError(f"job {name} is not malleable", expected=expected)
        if size not in count:
            raise ConfigError(f"job {name} cannot have {size} execution targets", expected=str(count))

    def _amount(self, held: Selection) -> int:
        return held.request.chosen.get(0, 0)

    def _on_resize(self, change: tuple[int, int, bool, Event]) -> None:
        number, size, beside, event = change
        engine = self._engine
        if engine.is_running(number):
            have = len(engine.plan.held[number].targets)
            if size != have:
                self._growth.decide_on_graph()
            if size < have:
                self._shrink(number, size)
            elif size > have and (beside or not engine.queued):
                self._grow(number, size)
            event.succeed(len(engine.plan.held[number].targets))
            engine.settle()
        else:  # it ended at this instant, before
            event.succeed(0)

    def _shrink(self, number: int, size: int) -> None:
        """Release the targets that the match policy took last."""
        plan = self._engine.plan
        before = plan.held[number]
        plan.release_part(number, np.sort(before.targets[size:]))
        kept = plan.held[number]
        base = self._growth.request_of(number)
        request = with_amount(base, 0, size, self._index)
        slots = before.slots * size // len(before.targets)
        self._replace(number, before, replace(kept, request=request, slots=slots))

    def _grow(self, number: int, size: int) -> None:
        """Claim free targets, as far as the job then has an acceptable number."""
        plan = self._engine.plan
        draws = self._engine.queues.groups[0].context.supply.draws(number)
        before = plan.held[number]
        have, base = len(before.targets), self._growth.request_of(number)
        state = plan.available.copy()
        state.set_status(before.targets, up=False)
        count = base.jobspec.resources[0].count
        for total in range(size, have, -1):
            if total in count:
                more = self._match(with_amount(base, 0, total - have, self._index), state, draws)
                if more is not None:
                    request = with_amount(base, 0, total, self._index)
                    plan.available.claim(more)
                    self._replace(number, before, joined(before, more, request, self._index))
                    return

    def _match(self, request: Any, state: Any, draws: np.random.Generator | None) -> Selection | None:
        try:
            found = select(request, state, self._policy, draws)
        except SearchLimitError:
            return None
        if found is not None and found.counted:
            found = with_units(found, state, highest=self._policy.highest)
        return found

    def _replace(self, number: int, before: Selection, after: Selection) -> None:
        """Let a job run on with other resources, which are claimed already; its rest takes another time."""
        engine = self._engine
        now, recorder, plan = engine.now, engine.recorder, engine.plan
        plan.replace(number, after)
        engine.queues.touch(released=True)
        self._growth.note_renewal()
        start = recorder.start[number]
        recorder.resize(number, now, after, start)
        left = (engine.progress.ends[number] - now) * len(before.targets) / len(after.targets)
        if self._growth.prepared.timeouts[number]:
            full = self._growth.jobs[number].runtime
            assert full is not None
            left = (start + full - now) * len(before.targets) / len(after.targets)
        self._growth.change(number, runtime=_whole(now - start + left))
        self._move_end(number)
        for hear in engine.on.resized:
            hear(number, after)

    def _move_end(self, job: int) -> None:
        """Let a running job end when its run time, which has changed, is over; now at the earliest."""
        engine = self._engine
        end = max(engine.now, engine.recorder.start[job] + engine.prepared.runtimes[job])
        if engine.progress.ends[job] != end:
            engine.enter_end(job, end)

    # -- duration -------------------------------------------------------------------------------------

    def _on_new_duration(self, change: tuple[int, float]) -> None:
        """Give a job another duration; a job that runs ends at its new limit at the latest."""
        number, duration = change
        engine = self._engine
        if engine.progress.states[number].name == "INACTIVE":
            return
        self._growth.change_duration(number, duration)
        if engine.is_running(number):
            start = engine.recorder.start[number]
            engine.plan.move_end(number, start + self._growth.planned_seconds(number))
            held = engine.plan.held[number]
            engine.recorder.resize(number, engine.now, held, start)
            self._move_end(number)
            if engine.predictions is not None:
                expected: Any = engine.parts["expected"]
                expected.enter(number)
        engine.queues.touch(released=True)
        engine.settle()


def _whole(seconds: float) -> float:
    """Return a whole number as an int, so that times keep the spelling of the workload."""
    return int(seconds) if float(seconds).is_integer() else seconds
