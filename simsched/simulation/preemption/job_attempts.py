"""`JobAttempts`: how much of its work each job has kept, lost and suspended, over all its attempts.

A checkpointable job has work W: its run time in the log.  An attempt reads the last checkpoint (if there is
one), works, and writes checkpoints; an attempt that is interrupted keeps the work in its complete ones.  Each
attempt may last for the limit of the job.  The run times of the prepared jobs are those of their next
attempts, so that nothing changes for the engine.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.errors import ConfigError
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.simulation.listeners import Listener, Way
from simsched.simulation.preemption.checkpoint_rules import ATTRIBUTE, CheckpointTimes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.simulation.engine import Engine
    from simsched.workload.job import Job


class CheckpointedJob(NamedTuple):
    """A checkpointable job: its times, and its work in seconds; `known`: whether the log has it."""

    times: CheckpointTimes
    work: float
    known: bool


class JobAttempts(Listener):
    """The attempts of the jobs of one run."""

    def __init__(self, engine: Engine) -> None:
        self.jobs: dict[int, CheckpointedJob] = {}
        config = engine.config
        self._rules = config.job_checkpoints
        self._parsed: dict[tuple[int, str | None], tuple[Any, CheckpointTimes | None]] = {}
        """Identity of a jobspec, and queue → the jobspec, and the times of checkpoints of jobs with both."""
        self._engine, self._prepared = engine, engine.prepared
        self._grace = inf if config.overrun == "allow" else config.kill_grace
        self._saved: dict[int, float] = {}
        self._lost: dict[int, float] = {}
        self._counts: dict[int, int] = {}
        self._stopped: dict[int, float] = {}  # job that writes a checkpoint before it goes → s of its attempt
        self._written: set[int] = set()  # jobs whose last checkpoint is complete

    def joined(self, first: int, jobs: Sequence[Job]) -> None:
        """Note which jobs write checkpoints; errors as `offered`."""
        for number, job in enumerate(jobs, first):
            found = self._checkpointed(job, self._prepared.runtimes[number])
            if found is not None:
                self.jobs[number] = found
                self._prepare(number)

    def offered(self, job: Job) -> None:
        """Raise the ConfigError or FormatError for an attribute of a job that is not valid."""
        self._checkpointed(job, 0)

    def _checkpointed(self, job: Job, runtime: float) -> CheckpointedJob | None:
        """Return a job that writes checkpoints, None for any other; `runtime` is that of a run."""
        if self._rules is None:
            return None
        key = (id(job.jobspec), job.queue)
        if key not in self._parsed:
            own = job.jobspec.system.get(ATTRIBUTE)
            place = f"job {job.id}: attributes.system.{ATTRIBUTE}"
            # The jobspec stays with its times, so that no other one gets its identity.
            self._parsed[key] = job.jobspec, self._rules.times_of(job.queue, own, place)
        times = self._parsed[key][1]
        work = runtime if job.runtime is None else job.runtime
        if times is None or not 0 < work <= MAX_SECONDS:
            return None
        if times.number(work) > 10**9:
            raise ConfigError(
                f"more than {10**9:,} checkpoints of job {job.id}",
                where="job-checkpoints.interval",
                expected="a longer interval",
            )
        return CheckpointedJob(times, work, job.runtime is not None)

    def cost_of(self, job: int) -> float | None:
        """Return the seconds in which a job writes a checkpoint; None if it writes none."""
        found = self.jobs.get(job)
        return None if found is None else found.times.cost

    def stop(self, job: int, seconds: float) -> None:
        """Note that a job works no more after `seconds` of its attempt, because it writes a checkpoint."""
        self._stopped[job] = seconds

    def write(self, job: int) -> None:
        """Note that the checkpoint of a job that works no more is complete."""
        self._written.add(job)

    def released(self, job: int, now: float, way: Way) -> None:
        """Note what a job that is queued again keeps and loses of its attempt."""
        if way is not Way.REQUEUE:
            return
        found, seconds = self.jobs.get(job), self._engine.ran(job, now)
        self._counts[job] = self._counts.get(job, 0) + 1
        self._engine.suspended.pop(job, None)
        kept = 0.0
        if found is not None:
            saved = self._saved.get(job, 0)
            worked = min(seconds, self._stopped.pop(job, seconds))
            law = found.times.done if job in self._written else found.times.kept
            kept = law(worked, found.work - saved, restarted=saved > 0)
            self._written.discard(job)
            if kept:
                self._saved[job] = saved + kept
                self._prepare(job)
        self._lost[job] = self._lost.get(job, 0) + seconds - kept

    def _prepare(self, job: int) -> None:
        """Give the job the run time of its next attempt."""
        times, work, known = self.jobs[job]
        saved = self._saved.get(job, 0)
        runtime = times.length(work - saved, restarted=saved > 0)
        limit = self._prepared.table.limits[job] + self._grace
        over = runtime > limit
        self._prepared.timeouts[job] = 1 if over and known else 0
        self._prepared.runtimes[job] = limit if over else runtime

    def columns(self, jobs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns that the table of `jobs` has besides the others."""
        rows = len(jobs["id"])

        def column(values: Mapping[int, float], kind: type = float) -> Any:
            made: Any = np.zeros(rows, dtype=kind)
            for job, value in values.items():
                made[job] = value
            return made

        suspended = column(self._engine.suspended)
        ran = jobs["end"] - jobs["start"] - suspended
        return {
            "interruptions": column(self._counts, np.int32),
            "saved": column(self._saved),
            "lost": column(self._lost),
            "overhead": column({job: self._overhead(job, ran[job]) for job in self.jobs if ran[job] >= 0}),
            "suspended": suspended,
        }

    def _overhead(self, job: int, seconds: float) -> float:
        """Return the seconds of the last attempt in which a job read and wrote checkpoints."""
        times, work, _ = self.jobs[job]
        saved = self._saved.get(job, 0)
        return seconds - times.done(seconds, work - saved, restarted=saved > 0)

    def state(self) -> dict[str, Any]:
        """Return the work that the attempts so far have kept and lost."""
        return {
            "saved": self._saved,
            "lost": self._lost,
            "counts": self._counts,
            "stopped": self._stopped,
            "written": self._written,
            "suspended": self._engine.suspended,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._saved, self._lost, self._counts = state["saved"], state["lost"], state["counts"]
        self._stopped, self._written = state["stopped"], state["written"]
        self._engine.suspended = state["suspended"]
        for job in self._saved:
            self._prepare(job)
