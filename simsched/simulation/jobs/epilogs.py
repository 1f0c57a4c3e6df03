"""`Epilogs`: the targets of a job that ended clean up before they are free again."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.simulation.environment import END
from simsched.simulation.jobs.lifecycle import ENDED, step
from simsched.simulation.listeners import Listener
from simsched.simulation.record.recorder import FAILED

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.simulation.engine import Engine


class Epilogs(Listener):
    """Each target takes its time; a job keeps those that are not done yet."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rng = engine.generators["epilogs"] = np.random.default_rng([engine.config.seed, 2])
        engine.future.handle("clean", self._on_clean)

    def keeps(self, job: int, now: float, result: int) -> bool:
        """Let each target of a job that ended clean up, unless the job failed or has none."""
        engine = self._engine
        listed = engine.plan.held[job].listed
        if result == FAILED or not len(listed):
            return False
        states = engine.progress.states
        states[job] = step(states[job], "finish")
        targets = np.sort(listed)
        seconds = draw_epilogs(self._rng, engine.config.epilog, len(targets))
        for wait in np.unique(seconds).tolist():
            engine.future.at(now + wait, END, "clean", (job, targets[seconds == wait]))
        return True

    def _on_clean(self, done: tuple[int, Any]) -> None:
        """Release the shard of the targets that are done."""
        engine, (job, targets) = self._engine, done
        now = engine.now
        shard = engine.plan.release_part(job, targets)
        engine.queues.touch(released=True)
        last = job not in engine.plan.held
        engine.recorder.shard(job, now, shard, last=last)
        if last:
            engine.progress.states[job] = ENDED
        for hear in engine.on.cleaned:
            hear(job, now, last=last)
        engine.settle()
        for hear in engine.on.changed:
            hear(job)


def draw_epilogs(rng: np.random.Generator, bounds: tuple[float, float], count: int) -> npt.NDArray[Any]:
    """Return the seconds that each of `count` targets takes: one time for all, or whole seconds drawn."""
    least, most = bounds
    if least == most:
        return np.full(count, int(least) if least == int(least) else least)
    return rng.integers(ceil(least), floor(most), size=count, endpoint=True)
