"""`LimitKeeper`: follows the use of limits in a run, and keeps waiting jobs that are over one out of view.

A job whose start would exceed a limit is barred: the queue policies do not see it, so it blocks no other
job and gets no reservation.  It comes back into view when the use of that limit has fallen.  As a start may
use up a limit for the next job of the same pass, the jobs are looked at again after each start.

A limit may block instead (`LimitRule.blocks`).  Then the jobs behind a barred one in its queue are kept out
of view as well, from the beginning of each pass.
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, Any

from simsched.simulation.environment import SUBMISSION
from simsched.simulation.limits.limit_counters import (
    FIRST_AHEAD,
    FIRST_SPENT,
    MEASURES,
    amount_text,
    scope_text,
)
from simsched.simulation.limits.limit_rules import RUNNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.schedule.queue import WaitingQueue
    from simsched.simulation.engine import Engine
    from simsched.simulation.limits.limit_counters import LimitCounter
    from simsched.simulation.limits.limited_jobs import LimitedJobs
    from simsched.simulation.queue_groups import QueueGroup

NAMED = 3
"""Users that a reason names at most."""


class LimitKeeper:
    """The limits of one run; a part of the engine's state."""

    def __init__(self, engine: Engine, limited: LimitedJobs) -> None:
        self._engine = engine
        self._jobs = limited
        self._demands = limited.demands
        self._barred: dict[int, tuple[int, int]] = {}  # job → its counter, and the place of the limit
        self._behind: set[int] = set()  # jobs out of view in this pass alone, behind a limit that blocks
        self._gone: list[int] = []  # jobs that were barred during the present pass
        self._blocking = 0  # how many barred jobs block others
        self._outside: dict[int, int] = {}  # job that waits to be taken in → the counter that it waits for
        self._inside: set[int] = set()  # the submitted jobs that are counted
        self._wake = inf
        self._queue: WaitingQueue | None = None  # that of the present pass
        engine.future.handle("limit", self._on_wake)

    # -- submission ---------------------------------------------------------------------------

    def submit(self, job: int) -> str | None:
        """Take in a submitted job, or note that it waits outside; return why it is rejected, if it is."""
        mine = self._jobs.submitted.get(job, ())
        full = next((counter for counter in mine if self._is_full(counter)), None)
        if full is None:
            self._take_in(job)
            return None
        assert full.submitted is not None
        if full.submitted.rule.over == "reject":
            return f"rejected: {self._full_text(full)}"
        self._outside[job] = full.number
        self._engine.recorder.reasons[job] = f"limit: {self._full_text(full)}"
        return None

    def is_outside(self, job: int) -> bool:
        """Whether a job waits until fewer jobs are submitted."""
        return job in self._outside

    def leave(self, job: int) -> list[int]:
        """Note that a job ended or never will start; return the jobs that may be taken in now, in order."""
        self._outside.pop(job, None)
        if job not in self._inside:
            return []
        self._inside.discard(job)
        for counter in self._jobs.submitted[job]:
            counter.inside -= 1
        admitted = []
        for waiting in list(self._outside):
            if not any(map(self._is_full, self._jobs.submitted[waiting])):
                del self._outside[waiting]
                self._engine.recorder.reasons.pop(waiting, None)
                self._take_in(waiting)
                admitted.append(waiting)
        return admitted

    def held_reason(self, job: int) -> str | None:
        """Return why no limit can ever allow a job that is held."""
        return self._jobs.held.get(job)

    def _take_in(self, job: int) -> None:
        mine = self._jobs.submitted.get(job, ())
        if mine:
            self._inside.add(job)
        for counter in mine:
            counter.inside += 1

    @staticmethod
    def _is_full(counter: LimitCounter) -> bool:
        return counter.submitted is not None and counter.inside + 1 > counter.submitted.most

    @staticmethod
    def _full_text(counter: LimitCounter) -> str:
        assert counter.submitted is not None
        most = amount_text(counter.submitted.quantity, counter.submitted.most)
        return f"{scope_text(counter.scope)} may have {most} submitted at a time"

    # -- the queue ----------------------------------------------------------------------------

    def add(self, job: int, group: QueueGroup) -> None:
        """Let a job wait in its group, in view or barred."""
        over = self._first_over(job)
        if over is not None:
            group.queue.barred.add(job)
            self._bar(job, *over)
            return
        group.queue.add(job)
        self._watch((job,))

    def forget(self, job: int, group: QueueGroup) -> None:
        """Forget a waiting job that was cancelled or whose queue was stopped."""
        for counter in self._jobs.of[job]:
            counter.waiting.discard(job)
        if job in group.queue.barred:
            group.queue.barred.discard(job)
            self._behind.discard(job)
            if job in self._barred:
                self._unbar(job)

    def open(self, queue: WaitingQueue) -> None:
        """Begin a pass over a queue."""
        self._queue = queue
        if self._blocking:
            self._hide_behind(queue)

    def close(self) -> None:
        """End a pass: jobs behind a blocking limit come back, and policies learn which jobs were barred."""
        queue, self._queue = self._queue, None
        if self._behind and queue is not None:
            behind, free = sorted(self._behind), []
            self._behind.clear()
            for job in behind:  # starts of this pass may have used up a limit of theirs
                over = self._first_over(job)
                if over is None:
                    free.append(job)
                else:
                    self._bar(job, *over)
            queue.unbar(free)
            self._watch(free)
        for job in self._gone:  # a policy withdraws its reservation at the next pass
            self._engine.queues.group_of(job).queue.gone.append(job)
        self._gone.clear()

    def started(self, job: int) -> None:
        """Count a job that a pass started, and bar the waiting jobs for which a limit is used up now."""
        mine = self._jobs.of[job]
        if mine:
            self._count(job, self._engine.now + self._engine.prepared.table.durations[job])
            self._bar_waiting(mine)

    def occupy(self, job: int, end: float | None) -> None:
        """Count a job that runs from the beginning, as in a forecast for a real queue."""
        self._count(job, inf if end is None else end)

    def ended(self, job: int) -> None:
        """Stop counting a job that ran, and let jobs back into view that its limits allow now."""
        mine = self._jobs.of[job]
        if not mine:
            return
        now, demand = self._engine.now, self._demands[job]
        assert demand is not None
        for counter in mine:
            start, _ = counter.running.pop(job)
            for at, _ in counter.limits:
                if at < FIRST_SPENT:
                    counter.used[at] -= demand[at]
                elif at < FIRST_AHEAD:  # hours that were requested become hours that were used
                    counter.used[at] += demand[at - FIRST_SPENT + 1] * (now - start) - demand[at]
        self._release(mine)

    def allows_beside(self, job: int, others: Sequence[int]) -> bool:
        """Whether the limits allow a job if other jobs, which wait as well, start before it.

        None is allowed in a queue that is blocked.
        """
        demand, now = self._demands[job], self._engine.now
        if self._blocking:
            name_of = self._engine.queues.name_of
            if any(name_of(barred) == name_of(job) for barred in self._barred if self._blocks(barred)):
                return False
        for counter in self._jobs.of[job]:
            assert demand is not None
            amounts = [self._demands[other] for other in others if counter in self._jobs.of[other]]
            total = tuple(map(sum, zip(demand, *filter(None, amounts), strict=True)))
            if counter.first_over(total, now, self._demands) is not None:
                return False
        return True

    # -- barring ------------------------------------------------------------------------------

    def _first_over(self, job: int) -> tuple[LimitCounter, int] | None:
        mine = self._jobs.of[job]
        if mine:
            demand, now = self._demands[job], self._engine.now
            assert demand is not None
            for counter in mine:
                at = counter.first_over(demand, now, self._demands)
                if at is not None:
                    return counter, at
        return None

    def _count(self, job: int, end: float) -> None:
        demand = self._demands[job]
        for counter in self._jobs.of[job]:
            assert demand is not None
            counter.waiting.discard(job)
            counter.running[job] = (self._engine.now, end)
            for at, _ in counter.limits:
                if at < FIRST_AHEAD:
                    counter.used[at] += demand[at]

    def _bar_waiting(self, counters: Iterable[LimitCounter]) -> None:
        now = self._engine.now
        found: dict[int, tuple[LimitCounter, int]] = {}
        for counter in counters:
            if counter.waiting and counter.is_tight(now, self._demands):
                for job in counter.waiting:
                    demand = self._demands[job]
                    assert demand is not None
                    at = counter.first_over(demand, now, self._demands)
                    if at is not None:
                        found.setdefault(job, (counter, at))
        if not found:
            return
        for group, jobs in self._by_group(found):
            group.queue.bar(jobs)
        blocking = self._blocking
        for job in sorted(found):
            self._bar(job, *found[job])
            if self._queue is not None:
                self._gone.append(job)
        if self._blocking > blocking and self._queue is not None:
            self._hide_behind(self._queue)

    def _bar(self, job: int, counter: LimitCounter, at: int) -> None:
        for mine in self._jobs.of[job]:
            mine.waiting.discard(job)
        counter.barred.add(job)
        self._barred[job] = (counter.number, at)
        self._engine.queues.barred = len(self._barred)
        self._blocking += counter.rules[at].blocks
        if counter.decays and at >= FIRST_AHEAD:
            self._enter_wake(counter, job, at)

    def _unbar(self, job: int) -> None:
        number, at = self._barred.pop(job)
        self._engine.queues.barred = len(self._barred)
        counter = self._jobs.counters[number]
        counter.barred.discard(job)
        self._blocking -= counter.rules[at].blocks

    def _release(self, counters: Iterable[LimitCounter]) -> None:
        """Let the barred jobs of some counters back into view, if no limit of theirs is used up."""
        waiting = sorted({job for counter in counters for job in counter.barred})
        free = []
        for job in waiting:
            over = self._first_over(job)
            self._unbar(job)
            if over is None:
                free.append(job)
            else:
                self._bar(job, *over)
        for group, jobs in self._by_group(free):
            group.queue.unbar(jobs)
        self._watch(free)

    def _watch(self, jobs: Iterable[int]) -> None:
        """Note that jobs are in view, so that each start under one of their limits looks at them."""
        for job in jobs:
            for counter in self._jobs.of[job]:
                counter.waiting.add(job)

    def _by_group(self, jobs: Iterable[int]) -> Iterable[tuple[QueueGroup, list[int]]]:
        queues = self._engine.queues
        found: dict[int, tuple[QueueGroup, list[int]]] = {}
        for job in sorted(jobs):
            group = queues.group_of(job)
            found.setdefault(id(group), (group, []))[1].append(job)
        return found.values()

    def _hide_behind(self, queue: WaitingQueue) -> None:
        """Take the jobs behind a barred one out of view where its limit blocks."""
        blockers = {job for job in self._barred if job in queue.barred and self._blocks(job)}
        closed: set[str | None] = set()
        behind = []
        name_of = self._engine.queues.name_of
        for job in queue.with_barred(sorted(blockers)):
            if job in blockers:
                closed.add(name_of(job))
            elif name_of(job) in closed:
                behind.append(job)
        queue.bar(sorted(behind))
        for job in behind:
            for counter in self._jobs.of[job]:
                counter.waiting.discard(job)
        self._behind.update(behind)
        self._gone += behind

    def _blocks(self, job: int) -> bool:
        """Whether the limit that a barred job waits for blocks the jobs behind it."""
        number, at = self._barred[job]
        return self._jobs.counters[number].rules[at].blocks

    # -- limits that fall with time -------------------------------------------------------------

    def _enter_wake(self, counter: LimitCounter, job: int, at: int) -> None:
        """Enter a pass for the time at which running jobs have used enough of their hours."""
        time = self._falls_at(counter, job, at)
        if self._engine.now < time < self._wake:
            self._wake = time
            self._engine.future.at(time, SUBMISSION, "limit")

    def _falls_at(self, counter: LimitCounter, job: int, at: int) -> float:
        """Return the first whole second at which a job is below a limit by the passage of time, or inf."""
        now, units = self._engine.now, at - FIRST_AHEAD + 1
        demand = self._demands[job]
        assert demand is not None
        room = dict(counter.limits)[at] - demand[at]
        ends = sorted({end for _, end in counter.running.values() if now < end < inf})
        before = now
        for end in ends:
            left = [(_units(self._demands[run], units), until) for run, (_, until) in counter.running.items()]
            if sum(amount * max(0, until - end) for amount, until in left) <= room:
                rate = sum(amount for amount, until in left if until > before)
                use = sum(amount * max(0, until - before) for amount, until in left)
                return ceil(before + max(0, use - room) / rate) if rate else end
            before = end
        return inf

    def _on_wake(self, _: None) -> None:
        engine = self._engine
        if self._wake <= engine.now:
            self._wake = inf
            decaying = [counter for counter in self._jobs.counters if counter.decays and counter.barred]
            self._release(decaying)
            engine.queues.touch(released=True, moved=False)
            engine.settle()

    # -- reasons ------------------------------------------------------------------------------

    def note_reasons(self) -> None:
        """Record for each job that is barred at present which limit it waits for, and who uses it."""
        reasons = self._engine.recorder.reasons
        for job, (number, at) in self._barred.items():
            reasons[job] = self.reason(job, self._jobs.counters[number], at)

    def reason_of(self, job: int) -> str | None:
        """Return which limit a job waits for and who uses it; None if it waits for none."""
        found = self._barred.get(job)
        return None if found is None else self.reason(job, self._jobs.counters[found[0]], found[1])

    def reason(self, job: int, counter: LimitCounter, at: int) -> str:
        """Return a sentence on a limit that is used up for a job."""
        demand, quantity = self._demands[job], MEASURES[at]
        assert demand is not None
        most = amount_text(quantity, dict(counter.limits)[at])
        verb = "run" if quantity == RUNNING else "use"
        used = counter.in_use(at, self._engine.now, self._demands)
        text = f"limit: {scope_text(counter.scope)} may {verb} {most}, and {amount_text(quantity, used)} "
        text += "run" if quantity == RUNNING else "are used"
        shares: dict[str, float] = {}
        for running in counter.running:
            user = self._jobs.users[running]
            shares[user] = shares.get(user, 0) + _units(self._demands[running], at)
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{user} {amount_text(quantity, amount)}" for user, amount in ranked[:NAMED])
        more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
        return f"{text} ({named}{more})" if named else text

    # -- state --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the use of the limits and the barred jobs, as plain values."""
        return {
            "used": [list(counter.used) for counter in self._jobs.counters],
            "running": [
                [(job, start, end) for job, (start, end) in counter.running.items()]
                for counter in self._jobs.counters
            ],
            "barred": [(job, number, at) for job, (number, at) in self._barred.items()],
            "outside": list(self._outside.items()),
            "inside": sorted(self._inside),
            "wake": self._wake,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part; the queues are restored before."""
        counters, queues = self._jobs.counters, self._engine.queues
        for counter, used, running in zip(counters, state["used"], state["running"], strict=True):
            counter.used = list(used)
            counter.running = {job: (start, end) for job, start, end in running}
        for job, number, at in state["barred"]:
            queues.group_of(job).queue.barred.add(job)
            self._barred[job] = (number, at)
            counters[number].barred.add(job)
            self._blocking += counters[number].rules[at].blocks
        queues.barred = len(self._barred)
        self._outside = dict(state["outside"])
        for job in state["inside"]:
            self._take_in(job)
        self._wake = state["wake"]
        for group in queues:
            self._watch(group.queue)


def _units(demand: Sequence[float] | None, at: int) -> float:
    assert demand is not None
    return demand[at]
