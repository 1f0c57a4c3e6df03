"""Rules of the audit for jobs that were interrupted: suspended, queued again, or gone on from a checkpoint.

The times of all attempts come from the lines of the allocations.  The work that a job keeps is worked out
again from the rules in ``run.json`` and the job:

W1  a job loses and keeps as much work as its interrupted attempts allow, and its last attempt does the rest
V1  a preempted job has a rule that allows it: its mode, its exempt time, and the QoS of the other job; in its
    reservation only jobs that are in it, too, preempt it
V2  a suspended job goes on with the resources that it had
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.simulation.audit.job_life import DONE, wrong_end
from simsched.simulation.audit.limit_use import Attempts
from simsched.simulation.audit.rules.licence_use import LicenceUse
from simsched.simulation.audit.rules.reserved_nodes import ReservedNodes, reservation_named
from simsched.simulation.audit.tolerance import differs, known, later
from simsched.simulation.preemption.checkpoint_rules import ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.simulation.preemption.checkpoint_rules import CheckpointTimes
    from simsched.workload.job import Job

_PREEMPTED = "preempted by "
_CHECKPOINT = ", with a checkpoint"


class InterruptedWork(Attempts):
    """All attempts of all jobs, with the times of their suspensions."""

    def __init__(self, recorded: RecordedRun) -> None:
        super().__init__()
        self._recorded = recorded
        self.ran: dict[str, list[float]] = {}
        """The seconds of each attempt of a job, without suspensions."""
        self.gaps: dict[str, float] = {}
        """The seconds for which the last attempt of a job was suspended."""
        self._last: dict[str, tuple[float, float]] = {}  # the last alloc and the last release
        self._begins: dict[str, float] = {}
        self._units: dict[str, Any] = {}
        self._licences = LicenceUse(recorded.licences)
        self._reserved = ReservedNodes(recorded.reservations, recorded.windows)
        self._placed: tuple[float, Any] = 0, {}
        """The time and the units of the last alloc."""
        self._jobs: dict[str, Job] = {}
        self.faults: list[tuple[str, str, str]] = []
        """(rule, job, fault) of licences, and of jobs that went on with other resources than they had."""

    @property
    def suspends(self) -> bool:
        """Whether the rules of the run suspend jobs."""
        return self._recorded.preemption is not None and self._recorded.preemption.suspends

    def goes_on(self, name: str, start: Any) -> bool:
        """Whether an R that states this start is that of a suspended job."""
        return self.suspends and name in self._last and start == self._begins.get(name)

    def count_licences(self, event: str, name: str, job: Job, document: Mapping[str, Any]) -> None:
        """Count the licences of a line, after `note` or `release`."""
        licences, reserved = self._licences, self._reserved
        self.faults += (("L2", name, fault) for fault in licences.note(event, job, document))
        if event == "release":
            reserved.release(name)
        elif licences.taken:
            faults = reserved.wrong_licences(job, *self._placed, licences.taken, licences.free)
            self.faults += (("R2", name, fault) for fault in faults)

    def note(self, name: str, job: Job, start: float, time: float, units: Any) -> None:
        """Note an alloc; `start` is the start of the job, before `time` if it was suspended."""
        self._jobs[name] = job
        goes_on = start < time and self.suspends
        ran = self.ran[name][-1] if goes_on else None
        if start == time or goes_on:
            self.faults += (("R1", name, fault) for fault in self._reserved.wrong(job, time, units, ran))
            self._placed = time, units
        if goes_on:
            self.gaps[name] = self.gaps.get(name, 0) + time - self._last[name][1]
            if units != self._units[name]:
                self.faults.append(("V2", name, f"goes on at {time:g} with other resources than it had"))
        elif start == time:
            self.ran.setdefault(name, []).append(0)
            self.gaps.pop(name, None)
            self.start(name, time)
        else:
            self.start(name, time)  # a program changed its resources
        self._last[name] = time, inf
        self._begins[name] = start
        if self.suspends:
            self._units[name] = {rank: dict(masks) for rank, masks in units.items()}

    def release(self, name: str, start: float, time: float) -> None:
        """Note that a job released resources; the first release after an alloc ends the attempt."""
        super().release(name, start, time)
        begin, end = self._last.get(name, (time, inf))
        if end == inf and name in self.ran:
            self.ran[name][-1] += time - begin
        self._last[name] = begin, min(end, time)

    def times_of(self, job: Job) -> CheckpointTimes | None:
        """Return the times of a checkpointable job."""
        rules = self._recorded.checkpoints
        if rules is None:
            return None
        return rules.times_of(job.queue, job.jobspec.system.get(ATTRIBUTE), f"job {job.id}")

    def as_ran(self, job: Job, row: Mapping[str, Any]) -> Job:
        """Return the job with the run time of its last attempt; unlimited if it waits for another."""
        if row["start"] is None and row.get("interruptions"):  # it waits again; W1 counts its attempts
            return msgspec.structs.replace(job, runtime=None, duration=None)
        times = self.times_of(job)
        if times is None:
            return job
        length = _length(times, _work(job) - row.get("saved", 0), again=row.get("saved", 0) > 0)
        if job.runtime is None:
            length = min(length, _work(job))
        rules = self._recorded.preemption
        if rules is not None and rules.checkpoints and row["result"] not in DONE:
            length += times.cost  # it may write a checkpoint at its end instead of its last work
        return msgspec.structs.replace(job, runtime=length)

    def wrong_ends(self, name: str, job: Job, row: Mapping[str, Any]) -> Iterator[str]:
        """Yield the faults in the end of a job, which stood still while it was suspended."""
        gaps = self.gaps.get(name, 0)
        if self.suspends:
            cut = self._recorded.cut
            if row["result"] == "RUNNING" and cut is not None and name in self._last:
                last = self._last[name][1]
                gaps += max(0, cut - last) if last < inf else 0
            if row["result"] in ("CANCELED", "FAILED"):
                gaps = row.get("suspended", gaps)  # it may have ended while it was suspended
        yield from wrong_end(self._recorded, job, {**row, "start": row["start"] + gaps} if gaps else row)

    def released_late(self, name: str, row: Mapping[str, Any]) -> bool:
        """Whether a job ended while it was suspended, so that it released its resources before."""
        end, last = row["end"], self._last.get(name, (0, inf))[1]
        if not self.suspends or end is None or last >= end:
            return False
        return not differs(row.get("suspended", 0), self.gaps.get(name, 0) + end - last)

    def wrong_work(
        self, name: str, job: Job, row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, str]]:
        """Yield (rule, fault) for the work that a job kept and lost, and for its preemption."""
        if "saved" not in row:
            return
        ran = self.ran.get(name, [])
        before = ran[:-1] if row["start"] is not None else ran
        if row["interruptions"] != len(before):
            yield "W1", f"was interrupted {len(before)} times, the table has {row['interruptions']}"
        least, most = self._bounds(job, before, row["saved"])
        if later(least, row["saved"]) or later(row["saved"], most):
            yield "W1", f"kept {row['saved']} s of work, possible are {least} to {most} s"
        if differs(sum(before) - row["saved"], row["lost"]):
            yield "W1", f"lost {row['lost']} s of work instead of {sum(before) - row['saved']} s"
        gaps = self.gaps.get(name, 0)
        if row["start"] is not None and differs(row["suspended"], gaps) and not self.released_late(name, row):
            yield "W1", f"was suspended for {gaps} s, the table has {row['suspended']} s"
        for fault in self._wrong_overhead(job, row, ran):
            yield "W1", fault
        for fault in self._wrong_preemption(job, row, ran, before, rows):
            yield "V1", fault

    def _wrong_overhead(self, job: Job, row: Mapping[str, Any], ran: list[float]) -> Iterator[str]:
        """Yield the fault in the seconds in which the last attempt read and wrote checkpoints."""
        overhead, times = row.get("overhead", 0), self.times_of(job)
        least, most = 0.0, ran[-1] if times is not None and ran and row["end"] is not None else 0.0
        if most and row["result"] == "COMPLETED":
            least = most = max(0, most - (_work(job) - row["saved"]))
        if later(least, overhead) or later(overhead, most):
            yield f"read and wrote checkpoints for {overhead} s, possible are {least} to {most} s"

    def _bounds(self, job: Job, before: list[float], saved: float) -> tuple[float, float]:
        """Return the least and the most work that the interrupted attempts of a job can have kept."""
        times = self.times_of(job)
        if times is None:
            return 0, 0
        rules = self._recorded.preemption
        least = most = 0.0
        for seconds in before:
            kept = _kept(times, seconds, _work(job) - least, again=least > 0)
            writes = rules is not None and rules.checkpoints
            least += kept
            most += max(seconds, kept) if writes else kept
        return (min(least, saved) if saved and most > least else least), min(most, _work(job))

    def _wrong_preemption(
        self,
        job: Job,
        row: Mapping[str, Any],
        ran: list[float],
        before: list[float],
        rows: Mapping[str, Mapping[str, Any]],
    ) -> Iterator[str]:
        rules, reason = self._recorded.preemption, row["reason"] or ""
        if rules is None or _PREEMPTED not in reason:
            return
        how, _, other = reason.partition(_PREEMPTED)
        rule = rules.rule_of(job.qos if rules.by == "qos" else job.queue)
        written = other.endswith(_CHECKPOINT)
        mode = (
            "checkpoint"
            if written
            else "suspend"
            if how.startswith("suspended")
            else "requeue"
            if how
            else "cancel"
        )
        allowed = (rule.mode, "requeue") if rule.mode == "checkpoint" else (rule.mode,)
        if mode not in allowed:
            yield f"was preempted with {mode}, its rule is {rule.mode}"
        own, taker = reservation_named(job), self._jobs.get(other.removesuffix(_CHECKPOINT))
        if own and taker is not None and self._reserved.is_kept(own, reservation_named(taker)):
            yield f"was preempted in its reservation {own!r} by {taker.id}, which is not in it"
        after = job.jobspec.system.get("preemptible-after")
        least = (rule.exempt if after is None else float(after)) + (0 if mode == "suspend" else rule.grace)
        last = before[-1] if how and mode != "suspend" and before else ran[-1] if ran else inf
        if mode == "suspend":
            return
        if later(least, last):
            yield f"was preempted after {last} s, and may be only after {least} s"
        began = known(rows.get(other.removesuffix(_CHECKPOINT), {}).get("eligible"))
        ends = [end for _, end in self.attempts_of(str(job.id), row)]
        went = ends[-2:][0] if how and row["start"] is not None else ends[-1] if ends else inf
        if began is not None and later(began + rule.grace, went):
            yield f"went at {went:g}, without {rule.grace:g} s of grace after {began:g}, when {other} came"


def _work(job: Job) -> float:
    if job.runtime is not None:
        return job.runtime
    return inf if job.duration is None else job.duration


def _length(times: CheckpointTimes, work: float, *, again: bool) -> float:
    """Return the seconds for some seconds of work: one checkpoint between each two intervals."""
    intervals = -(-work // times.interval)
    return work + max(0, intervals - 1) * times.cost + (times.restart if again else 0)


def _kept(times: CheckpointTimes, seconds: float, work: float, *, again: bool) -> float:
    """Return the work in the checkpoints that are complete after some seconds of an attempt."""
    left = seconds - (times.restart if again else 0)
    most = max(0, -(-work // times.interval) - 1)
    complete = max(0, left) // (times.interval + times.cost)
    return min(complete, most) * times.interval
