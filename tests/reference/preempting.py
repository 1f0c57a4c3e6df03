"""A first-come first-served scheduler with preemption and checkpoints over equal units, by the manual alone.

Urgent jobs go before the others and preempt them: the job that started last first, and only those that are
needed.  A victim is cancelled, or queued again with its place, and goes on from its last checkpoint.  Time
goes on second by second.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PlainJob:
    """A job of some units; the fields behind `work` change."""

    number: int
    submit: int
    units: int
    work: int
    urgent: bool
    saved: int = 0
    start: int | None = None
    end: int | None = None
    canceled: bool = False
    done: int = 0  # work of the present attempt
    kept: int = 0  # the part of it in complete checkpoints
    busy: int = 0  # seconds of reading or writing that are left
    writes: bool = False

    def begin(self, now: int, restart: int) -> None:
        """Start an attempt."""
        self.start, self.done, self.kept, self.writes = now, 0, 0, False
        self.busy = restart if self.saved else 0

    def tick(self, interval: int, cost: int) -> None:
        """Spend a second; a checkpoint without cost takes none."""
        if self.busy:
            self.busy -= 1
        else:
            self.done += 1
            if self.done - self.kept == interval and not self.is_done:
                self.busy, self.writes = cost, True
        if self.writes and not self.busy:
            self.kept, self.writes = self.done, False

    @property
    def is_done(self) -> bool:
        """Whether no work is left."""
        return self.saved + self.done >= self.work


def schedule(
    jobs: list[PlainJob], units: int, *, cancel: bool, interval: int, cost: int, restart: int
) -> list[PlainJob]:
    """Run the jobs to their ends and return them."""
    waiting: list[PlainJob] = []
    running: list[PlainJob] = []
    now = 0
    while any(job.end is None for job in jobs):
        for job in [job for job in running if job.is_done]:
            job.end = now
            running.remove(job)
        waiting += [job for job in jobs if job.submit == now]
        free = units - sum(job.units for job in running)
        for job in sorted((job for job in waiting if job.urgent), key=lambda job: (job.submit, job.number)):
            if job.units > free:
                victims = _victims(running, job.units - free)
                if victims is None:
                    break
                for victim in victims:
                    running.remove(victim)
                    free += victim.units
                    victim.saved += victim.kept
                    if cancel:
                        victim.canceled, victim.end = True, now
                    else:
                        victim.start = None
                        waiting.append(victim)
            free -= job.units
            _start(job, now, restart, waiting, running)
        for job in sorted(waiting, key=lambda job: (not job.urgent, job.submit, job.number)):
            if job.units > free:
                break
            free -= job.units
            _start(job, now, restart, waiting, running)
        for job in running:
            job.tick(interval, cost)
        now += 1
    return jobs


def _start(job: PlainJob, now: int, restart: int, waiting: list[PlainJob], running: list[PlainJob]) -> None:
    job.begin(now, restart)
    waiting.remove(job)
    running.append(job)


def _victims(running: list[PlainJob], short: int) -> list[PlainJob] | None:
    """Return the jobs whose units are needed, the latest first, without those that are not needed."""
    order = sorted((job for job in running if not job.urgent), key=lambda job: (job.start or 0, job.number))
    chosen: list[PlainJob] = []
    while sum(job.units for job in chosen) < short:
        if not order:
            return None
        chosen.append(order.pop())
    for job in chosen[-2::-1]:
        if sum(other.units for other in chosen) - job.units >= short:
            chosen.remove(job)
    return chosen
