"""`LimitKeeper`: follows the use of limits in a run, and keeps waiting jobs that are over one out of view.

A job whose start would exceed a limit is barred: the queue policies do not see it, so it blocks no other
job and gets no reservation.  It comes back into view when the use of that limit has fallen.  As a start may
use up a limit for the next job of the same pass, the jobs are looked at again after each start.

Where the allocation depends on the placement, a job is in view as long as the least that it may get is within
its limits.  Its start decides: if the allocation is too large, the job is barred until a job starts or ends
or something is released, since only then it may get another one.

A limit may block instead (`LimitRule.blocks`).  Then the jobs behind a barred one in its queue are kept out
of view as well, from the beginning of each pass.

`LimitedJobs`: the jobs of a run with the counters that each of them is counted in.

It also finds the jobs that a limit can never allow, which are rejected or held at their submission.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.match.kernel import view
from simsched.simulation.environment import SUBMISSION
from simsched.simulation.limits.limit_counters import (
    Cohort,
    Limit,
    LimitBreach,
    LimitCounter,
    LimitTable,
    Place,
    Scope,
    ScopeLimit,
    scope_text,
)
from simsched.simulation.limits.limit_kinds import KINDS, NAMES, TIME, Amounts
from simsched.simulation.limits.limit_spells import FOR_EVER, LimitSpells
from simsched.simulation.listeners import Listener, Way
from simsched.simulation.record.recorder import FAILED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection
    from simsched.schedule.queue import WaitingQueue
    from simsched.simulation.engine import Engine
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.simulation.queue_groups import QueueGroup
    from simsched.workload.job import Job


NAMELESS = "jobs without a user"


class _LimitsOfNames(NamedTuple):
    """The limits that count jobs with the same names.

    `submitted` are the counters of submitted jobs, each with whether it binds them; `counters` are those of
    running jobs, of which `binding` bind them.
    """

    limits: tuple[ScopeLimit, ...]
    submitted: tuple[tuple[LimitCounter, bool], ...]
    counters: tuple[LimitCounter, ...]
    binding: tuple[LimitCounter, ...]


class _Verdict(NamedTuple):
    """The result for jobs of a group that are alike in all that limits read."""

    cohort: Cohort | None = None
    submitted: tuple[tuple[LimitCounter, bool], ...] = ()
    held: LimitBreach | None = None
    rejected: str | None = None


class _Exceeded(NamedTuple):
    """A limit that an allocation is over, and when (s) its use has fallen, or inf."""

    limit: LimitCounter | LimitBreach
    falls: float


class LimitedJobs:
    """The jobs of a run under limits, by job number; jobs that are alike share a cohort.

    Attributes
    ----------
    counters : all counters; the place of a counter is its number.
    cohorts : the cohort of each job; None if no limit counts it while it runs.
    submitted : job → the counters of submitted jobs that count it, and whether each of them binds it.
    held : job that is held for ever → the limit that it is above.
    """

    def __init__(
        self,
        rules: Sequence[LimitRule],
        prepared: Prepared,
        index: Index,
        groups: Sequence[int] | None,
        *,
        whole: bool = False,
    ) -> None:
        """Begin without jobs.

        `groups` is the group of queues in which each job waits; None: there is one.  `whole` states that jobs
        get whole targets.  ConfigError for an amount of memory that the cluster has no unit for.
        """
        self._limits = LimitTable(rules, index, whole=whole)
        self._prepared, self._groups = prepared, groups
        self.counters: list[LimitCounter] = []
        self.cohorts: list[Cohort | None] = []
        self.submitted: dict[int, tuple[tuple[LimitCounter, bool], ...]] = {}
        self.held: dict[int, LimitBreach] = {}
        self._by_place: dict[Place, LimitCounter] = {}
        self._by_names: dict[tuple[str | None, ...], _LimitsOfNames] = {}
        kinds = (KINDS[quantity] for rule in rules for quantity in rule.most)
        self._reads = max((kind.reads for kind in kinds), default=NAMES)
        self._verdicts: dict[tuple[object, ...], _Verdict] = {}
        self._alike: dict[tuple[object, ...], Cohort] = {}

    def join(self, jobs: Sequence[Job]) -> None:
        """Add the next jobs, whose columns are prepared; note which of them a limit rejects or holds."""
        prepared, groups, limits = self._prepared, self._groups, self._limits
        table, cohorts, verdicts, rejected = prepared.table, self.cohorts, self._verdicts, prepared.rejected
        kinds = table.kinds if self._reads else None
        durations = table.durations if self._reads == TIME else None
        for number, job in enumerate(jobs, len(cohorts)):
            if number in rejected:
                cohorts.append(None)
                continue
            names, group = limits.names_of(job), 0 if groups is None else groups[number]
            kind = 0 if kinds is None else kinds[number]
            key = (names, group, kind, 0 if durations is None else durations[number])
            verdict = verdicts.get(key)
            if verdict is None:
                verdict = verdicts[key] = self._judge(number, names, group)
            cohort, submitted, held, refusal = verdict
            cohorts.append(cohort)
            if submitted:
                self.submitted[number] = submitted
                prepared.special.add(number)
            if refusal is not None:
                rejected[number] = (FAILED, f"rejected: {refusal}")
                prepared.special.add(number)
            elif held is not None:
                prepared.holds[number] = f"{FOR_EVER}: {held.text}"
                self.held[number] = held
                prepared.special.add(number)

    def of(self, job: int) -> Cohort | None:
        """Return the cohort of a job."""
        return self.cohorts[job]

    def user_of(self, job: int) -> str:
        """Return the name of a job's user, for messages."""
        return self._prepared.jobs[job].user or NAMELESS

    def _limits_of(self, limits: tuple[ScopeLimit, ...]) -> _LimitsOfNames:
        pairs = [(self._counter(one), one.binds) for one in limits if not one.per_job]
        running = [one for one in pairs if not one[0].kind.while_submitted]
        return _LimitsOfNames(
            limits,
            tuple(one for one in pairs if one[0].kind.while_submitted),
            tuple(counter for counter, _ in running),
            tuple(counter for counter, binds in running if binds),
        )

    def _judge(self, number: int, names: tuple[str | None, ...], group: int) -> _Verdict:
        """Return the cohort of a job, or why a limit can never allow it."""
        mine = self._by_names.get(names)
        if mine is None:
            mine = self._by_names[names] = self._limits_of(self._limits.of(names))
        limits, counters = mine.limits, mine.counters
        if not limits:
            return _Verdict()
        request: Any = self._prepared.table.requests[number]
        amounts = self._limits.amounts(request, self._prepared.table.durations[number])
        breaches = list(self._limits.breaches(limits, request, amounts))
        for breach in breaches:
            if breach.limit.rule.over == "reject":
                return _Verdict(rejected=breach.text)
        if breaches:
            return _Verdict(submitted=mine.submitted, held=breaches[0])
        own = tuple[tuple[Scope, Limit], ...]()
        if varies := self._limits.varies(request):
            single = (one for one in limits if one.per_job and one.limit.kind.unit in varies)
            own = tuple((one.scope, one.limit) for one in single)
            varies &= {*(counter.kind.unit for counter in counters), *(limit.kind.unit for _, limit in own)}
        if not counters and not own:
            return _Verdict(submitted=mine.submitted)
        asks = {one: float(one.kind.asks(amounts)) for one in counters}
        rates = [one.kind.rate(amounts) for one in counters]
        key = (*asks.items(), *rates, mine.binding, varies, own, group)
        cohort = self._alike.get(key)
        if cohort is None:
            cohort = self._alike[key] = Cohort(len(self._alike), asks, mine.binding, amounts, varies, own)
        return _Verdict(cohort, mine.submitted)

    def _counter(self, found: ScopeLimit) -> LimitCounter:
        counter = self._by_place.get(found.place)
        if counter is None:
            counter = self._by_place[found.place] = LimitCounter(len(self.counters), found)
            self.counters.append(counter)
        return counter


class LimitKeeper(Listener):
    """The limits of one run."""

    def __init__(self, engine: Engine, limited: LimitedJobs) -> None:
        self._engine = engine
        self._jobs = limited
        self._behind: set[int] = set()  # jobs out of view in this pass alone, behind a limit that blocks
        self.gone: set[int] = set()
        """The jobs that were barred during the present pass."""
        self._allocated: dict[int, Amounts] = {}  # running job → amounts, where they depend on the placement
        self.refused: dict[int, tuple[str, float]] = {}
        """Barred job → why its allocation is too large, and when the use has fallen enough (or inf)."""
        self._changed = True  # whether a job has started or left since refused jobs were looked at
        self._running: dict[int, tuple[float, float]] = {}  # running job → (start, expected end)
        self._durations = engine.prepared.table.durations
        self.blocks = any(rule.blocks for rule in engine.config.limits)
        self._outside: dict[int, int] = {}  # job that waits to be taken in → the counter that it waits for
        self.inside: set[int] = set()
        """The submitted jobs of which the number is limited."""
        self._spells = LimitSpells()
        self._wake = inf
        self._queue: WaitingQueue | None = None  # that of the present pass
        engine.future.handle("limit", self._on_wake)
        engine.queues.limit(self)

    def joined(self, first: int, jobs: Sequence[Job]) -> None:
        """Find the counters of the next jobs of the run."""
        self._jobs.join(jobs)

    # -- submission ---------------------------------------------------------------------------

    def may_enter(self, job: int, now: float) -> bool:
        """Take in a submitted job; return whether that is allowed, or it is rejected or waits outside."""
        full = self._first_full(job)
        if full is None:
            self._take_in(job)
            return True
        if full.limit.rule.over == "reject":
            self._engine.give_up(job, now, FAILED, f"rejected: {self._full_text(full)}")
        else:
            self._outside[job] = full.number
            self._spells.note(~job, now, full.name, self._full_text(full))
            self._engine.recorder.reasons[job] = f"limit: {self._full_text(full)}"
            self._engine.enter_cancel(job, now)
        return False

    def ended(self, job: int, now: float, result: int, reason: str | None) -> None:
        """Take in the jobs that waited until fewer are submitted, in order: a job ended, started or not."""
        if job in self._outside or job in self._jobs.held:
            self._outside.pop(job, None)
            self._spells.note(~job, now)
        if job not in self.inside:
            return
        self.inside.discard(job)
        for counter, _ in self._jobs.submitted[job]:
            counter.used -= 1
        admitted = []
        for waiting in list(self._outside):
            if self._first_full(waiting) is None:
                del self._outside[waiting]
                self._engine.recorder.reasons.pop(waiting, None)
                self._spells.note(~waiting, now)
                self._take_in(waiting)
                admitted.append(waiting)
        for waiting in admitted:
            self._engine.let_in(waiting, now)

    def _take_in(self, job: int) -> None:
        held = self._jobs.held.get(job)
        if held is not None:
            self._spells.note(~job, self._engine.now, held.name, self._engine.prepared.holds[job])
        mine = self._jobs.submitted.get(job, ())
        if mine:
            self.inside.add(job)
        for counter, _ in mine:
            counter.used += 1

    def _first_full(self, job: int) -> LimitCounter | None:
        """Return a counter of submitted jobs that has no place for a job."""
        for counter, binds in self._jobs.submitted.get(job, ()):
            if binds and counter.used + 1 > counter.most:
                return counter
        return None

    @staticmethod
    def _full_text(counter: LimitCounter) -> str:
        return counter.kind.used_up(scope_text(counter.scope), counter.most, counter.used)

    # -- the queue ----------------------------------------------------------------------------

    def add(self, job: int, group: QueueGroup) -> None:
        """Let a job wait in its group, in view or barred."""
        cohort = self._jobs.of(job)
        if cohort is None:
            group.queue.add(job)
            return
        if not cohort.entered:
            cohort.enter(group.queue, self._first_over(cohort))
            self._note(cohort)
        cohort.jobs.add(job)
        if cohort.over is None:
            group.queue.add(job)
        else:
            group.queue.barred.add(job)
            self._engine.queues.barred += 1
            self._expect_fall(cohort)

    def forget(self, job: int, group: QueueGroup) -> None:
        """Forget a waiting job that was cancelled or whose queue was stopped."""
        cohort = self._jobs.of(job)
        if cohort is not None:
            cohort.remove(job)
            if not cohort.jobs:
                self._spells.note(cohort.number, self._engine.now)
            if self.refused.pop(job, None) is not None:
                self._spells.note(~job, self._engine.now)
            if job in group.queue.barred:
                group.queue.barred.discard(job)
                self._engine.queues.barred -= 1

    def open(self, queue: WaitingQueue) -> None:
        """Begin a pass over a queue."""
        self._queue = queue
        if self.blocks and queue.barred:
            self._hide_behind(queue)

    def close(self) -> None:
        """End a pass: jobs behind a blocking limit come back, and policies learn which jobs were barred."""
        queue, self._queue = self._queue, None
        if self.gone:
            groups = self._engine.queues.groups
            for group in groups:  # a policy withdraws their reservations at its next pass
                group.queue.gone.extend(self.gone if len(groups) == 1 else self.gone & group.queue.barred)
            self.gone.clear()
        if self._behind and queue is not None:
            queue.unbar({job for job in self._behind if not self._is_over(job)})
            self._behind.clear()
            self._engine.queues.barred = sum(len(group.queue.barred) for group in self._engine.queues)

    def allows(self, job: int, selection: Selection, now: float) -> bool:
        """Whether the limits allow a job with this allocation; if not, bar it until it may get another."""
        cohort = self._jobs.of(job)
        if cohort is None or not cohort.varies:
            return True
        amounts = self._amounts(cohort, job, selection)
        found = self._first_exceeded(cohort, amounts, now)
        if found is None:
            self._allocated[job] = amounts
            return True
        over = found.limit
        reason = self._sentence(over) if isinstance(over, LimitCounter) else f"limit: {over.may}"
        kind = over.limit.kind
        text = f"{reason}, the free resources for the job have {kind.text(kind.asks(amounts))}"
        self.refused[job] = text, found.falls
        self._spells.note(~job, now, over.name, text.removeprefix("limit: "))
        self.gone.add(job)
        self._engine.queues.group_of(job).queue.bar({job})
        self._engine.queues.barred += 1
        self._wake_at(found.falls)
        return False

    def over_until(
        self,
        job: int,
        selection: Selection,
        time: float,
        gone: Collection[int] = (),
        before: Iterable[tuple[int, Selection]] = (),
    ) -> float | None:
        """Return until when (s) the use of a limit is too much for a waiting job with this allocation.

        At the time (s) of its start running jobs are `gone`, and others that wait have started `before` it.
        inf: until something else happens; None: the job is over no limit.  Nothing changes.
        """
        cohort = self._jobs.of(job)
        if cohort is None:
            return None
        found = self._first_exceeded(cohort, self._amounts(cohort, job, selection), time, gone, before)
        return None if found is None else found.falls

    def _first_exceeded(
        self,
        cohort: Cohort,
        amounts: Amounts,
        time: float,
        gone: Collection[int] = (),
        before: Iterable[tuple[int, Selection]] = (),
    ) -> _Exceeded | None:
        """Return the first limit that a job of a cohort with these amounts is over, as `over_until`."""
        for counter in cohort.binding:
            kind, asked = counter.kind, counter.kind.asks(amounts)
            for other, room in before:
                more = self._jobs.of(other)
                if more is not None and counter in more.asks:
                    asked += kind.asks(self._amounts(more, other, room))
            for other in () if counter.falls else gone:
                less = self._jobs.of(other)
                if less is not None and counter in less.asks:
                    mine = self._allocated.get(other, less.amounts)
                    asked += kind.leaves(mine, time - self._running[other][0]) - kind.asks(mine)
            if counter.is_over(asked, time, gone):
                return _Exceeded(counter, counter.falls_at(asked, time, gone))
        for scope, limit in cohort.own:
            if limit.kind.asks(amounts) > limit.most + limit.kind.slack:
                return _Exceeded(LimitBreach(scope, limit, limit.most, per_job=True), inf)
        return None

    def _amounts(self, cohort: Cohort, job: int, selection: Selection) -> Amounts:
        """Return the amounts of a job of a cohort with an allocation."""
        if not cohort.varies:
            return cohort.amounts
        nodes, cores, gpus, _ = selection.sizes()
        memory = selection.counts.get("memory", 0) if "memory" in cohort.varies else 0
        given = Amounts(nodes, cores, gpus, memory, self._durations[job])
        least = cohort.amounts._replace(seconds=given.seconds)
        return least._replace(**{unit: getattr(given, unit) for unit in cohort.varies})

    def repeats(self) -> bool:
        """Whether starts leave other resources to jobs whose allocation was too large."""
        return bool(self.refused)

    def before_pass(self, now: float) -> None:
        """Let jobs whose allocation was too large back into view if they may get another one now."""
        if not self.refused:
            return
        changed, self._changed = self._changed, False
        for queue, context, _ in self._engine.queues.groups:
            jobs = set[int]()
            if changed or context.released or context.moved:
                jobs = {job for job in self.refused if job in queue.barred}
            for job in jobs:
                del self.refused[job]
                self._spells.note(~job, now)
            queue.unbar(jobs)
            self._engine.queues.barred -= len(jobs)

    def started(self, job: int, now: float) -> None:
        """Count a job that a pass started, and bar the waiting jobs for which a limit is used up now."""
        cohort, self._changed = self._jobs.of(job), True
        if cohort is None:
            return
        cohort.remove(job)
        for counter in self._count(job, cohort, now, now + self._durations[job]):
            self._bar_over(counter, now)

    def _bar_over(self, counter: LimitCounter, now: float) -> None:
        """Bar the waiting jobs in view that are over a limit of a counter."""
        over = []
        for other in list(counter.shown):
            if not other.jobs:
                other.leave()
            elif counter.is_over(other.asks[counter], now):
                over.append(other)
        if over:
            self._bar(over, counter)

    def occupied(self, job: int, end: float | None) -> None:
        """Count a job that runs from the beginning, as in a forecast for a real queue."""
        cohort = self._jobs.of(job)
        if cohort is not None:
            if cohort.varies:
                self._allocated[job] = self._amounts(cohort, job, self._engine.plan.held[job])
            self._count(job, cohort, self._engine.now, inf if end is None else end)

    def _count(self, job: int, cohort: Cohort, now: float, end: float) -> list[LimitCounter]:
        """Count a job that runs; return the counters in which others may be over a limit now."""
        self._running[job] = (now, end)
        mine = self._allocated.get(job) if cohort.varies else None
        near = []
        for counter, asked in cohort.counted:
            if mine is not None:
                asked = counter.kind.asks(mine)  # noqa: PLW2901
            if counter.falls:
                counter.running[job] = (mine or cohort.amounts, now, end)
                if end == inf or end - now > self._durations[job]:
                    counter.free = -inf  # it may use more than it requested, which is no bound then
            if asked == inf:
                counter.endless += 1
            else:
                counter.used += asked
            if counter.endless or counter.used > counter.free:
                near.append(counter)
        return near

    def released(self, job: int, now: float, way: Way) -> None:
        """Stop counting a job that ran, and let jobs back into view that its limits allow now."""
        cohort, self._changed = self._jobs.of(job), True
        if cohort is None:
            return
        start, _ = self._running.pop(job)
        mine = self._allocated.pop(job, None) if cohort.varies else None
        for counter, asked in cohort.counted:
            if mine is not None:
                asked = counter.kind.asks(mine)  # noqa: PLW2901
            if counter.falls:
                del counter.running[job]
            more = -asked
            if asked == inf:
                counter.endless -= 1
                more = 0
            if counter.lasts:
                more += counter.kind.leaves(mine or cohort.amounts, now - start)
            counter.used += more
            if more > 0:  # it used more hours than it had requested
                self._bar_over(counter, now)
        for counter in cohort.asks:
            if counter.held:
                self._release(counter)

    def is_blocked(self, job: int) -> bool:
        """Whether a job of the same queue waits for a limit that blocks the jobs behind it."""
        if not self.blocks:
            return False
        name_of = self._engine.queues.name_of
        barred = self._engine.queues.group_of(job).queue.barred
        return any(name_of(other) == name_of(job) for other in barred if self._is_blocking(other))

    # -- barring ------------------------------------------------------------------------------

    def _first_over(self, cohort: Cohort) -> LimitCounter | None:
        for counter in cohort.binding:
            near = counter.endless or counter.used > counter.free  # else no cohort is over its limit
            if near and counter.is_over(cohort.asks[counter], self._engine.now):
                return counter
        return None

    def _bar(self, cohorts: Sequence[Cohort], counter: LimitCounter) -> None:
        """Take all jobs of cohorts that are over a limit out of view."""
        for cohort in cohorts:
            cohort.wait_for(counter)
            self._note(cohort)
            self.gone |= cohort.jobs
            self._expect_fall(cohort)
        for queue, jobs in _by_queue(cohorts):
            shown = jobs - self._behind if self._behind else jobs
            for job in self.refused.keys() & shown:
                del self.refused[job]
                self._spells.note(~job, self._engine.now)
                self._engine.queues.barred -= 1
            queue.bar(shown)
            self._engine.queues.barred += len(shown)
        if self._queue is not None and counter.limit.rule.blocks:
            self._hide_behind(self._queue)

    def _release(self, counter: LimitCounter) -> bool:
        """Let the barred jobs of a counter back into view that are over no limit; return whether any are."""
        free = []
        for cohort in list(counter.held):
            over = self._first_over(cohort)
            if over != cohort.over:
                cohort.wait_for(over)
                self._note(cohort)
            if over is None:
                free.append(cohort)
            else:
                self._expect_fall(cohort)
        for queue, jobs in _by_queue(free):
            queue.unbar(jobs)
            self._engine.queues.barred -= len(jobs)
        return bool(free)

    def _note(self, cohort: Cohort) -> None:
        """Note which limit the jobs of a cohort wait for from now on."""
        over = cohort.over
        self._spells.note(cohort.number, self._engine.now, None if over is None else over.name)

    def _is_over(self, job: int) -> bool:
        cohort = self._jobs.of(job)
        return cohort is not None and cohort.over is not None

    def _is_blocking(self, job: int) -> bool:
        """Whether a barred job waits for a limit that blocks the jobs behind it."""
        cohort = self._jobs.of(job)
        if cohort is None or cohort.over is None:
            return False
        return cohort.over.limit.rule.blocks

    def _hide_behind(self, queue: WaitingQueue) -> None:
        """Take the jobs behind a barred one out of view where its limit blocks."""
        blockers = set(filter(self._is_blocking, queue.barred))
        closed: set[str | None] = set()
        behind = set()
        name_of = self._engine.queues.name_of
        for job in queue.with_barred(sorted(blockers)):
            if job in blockers:
                closed.add(name_of(job))
            elif name_of(job) in closed:
                behind.add(job)
        queue.bar(behind)
        self._behind |= behind
        self.gone |= behind

    # -- limits that fall with time -------------------------------------------------------------

    def _expect_fall(self, cohort: Cohort) -> None:
        """Enter a pass for the time at which running jobs have used enough of their hours."""
        assert cohort.over is not None
        if cohort.over.falls:
            self._wake_at(cohort.over.falls_at(cohort.asks[cohort.over], self._engine.now))

    def _wake_at(self, time: float) -> None:
        if self._engine.now < time < self._wake:
            self._wake = time
            self._engine.future.at(time, SUBMISSION, "limit")

    def _on_wake(self, _: None) -> None:
        engine = self._engine
        if self._wake <= engine.now:
            self._wake = inf
            falling = [counter for counter in self._jobs.counters if counter.falls and counter.held]
            let_in = [self._release(counter) for counter in falling]
            again = [falls for _, falls in self.refused.values() if falls <= engine.now]
            if any(let_in) or again:  # else nothing has changed for a pass
                engine.queues.touch(released=True, moved=False)
                engine.settle()

    # -- reasons ------------------------------------------------------------------------------

    def reasons(self) -> dict[int, str]:
        """Return for each job that is barred at present which limit it waits for, and who uses it."""
        barred = (job for group in self._engine.queues for job in group.queue.barred)
        found = ((job, self.reason_of(job)) for job in barred)
        return {job: reason for job, reason in found if reason is not None}

    def reason_of(self, job: int) -> str | None:
        """Return which limit a job waits for and who uses it; None if it waits for none."""
        cohort = self._jobs.of(job)
        if job in self.refused:
            return self.refused[job][0]
        if cohort is None or cohort.over is None or job not in cohort.jobs:
            return None
        return self._sentence(cohort.over)

    def _sentence(self, counter: LimitCounter) -> str:
        """Return a sentence on a limit that is used up, and on who uses it."""
        running = (
            (job, self._allocated.get(job, cohort.amounts))
            for job in self._running
            if (cohort := self._jobs.of(job)) is not None and counter in cohort.asks
        )
        return counter.reason(self._engine.now, self._jobs.user_of, running)

    # -- records ------------------------------------------------------------------------------

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the times in which limits kept jobs waiting."""
        return {"limits": self._spells.columns(self._engine.recorder.ids)}

    def columns(self, jobs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the group of each job in the table of limits."""
        found = np.full(len(jobs["id"]), np.nan)
        groups = view(found)
        for at, cohort in enumerate(self._jobs.cohorts):
            if cohort is not None:
                groups[at] = cohort.number
        return {"limit_group": found}

    # -- state --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the use of the limits and the barred jobs, as plain values."""
        counters = self._jobs.counters
        over: dict[int, int] = {}
        for group in self._engine.queues:
            for job in group.queue.barred:
                cohort = self._jobs.of(job)
                if cohort is not None and cohort.over is not None:
                    over[job] = cohort.over.number
        return {
            "used": [counter.used for counter in counters],
            "running": [(job, *times) for job, times in self._running.items()],
            "barred": sorted(over.items()),
            "outside": list(self._outside.items()),
            "inside": sorted(self.inside),
            "wake": self._wake,
            "changed": self._changed,
            "allocated": [(job, tuple(amounts)) for job, amounts in self._allocated.items()],
            "refused": [(job, *why) for job, why in self.refused.items()],
            "spells": self._spells.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part; the queues are restored before."""
        counters, queues = self._jobs.counters, self._engine.queues
        self._allocated = {job: Amounts(*amounts) for job, amounts in state.get("allocated", ())}
        self._changed = state["changed"]
        for job, start, end in state["running"]:
            cohort = self._jobs.of(job)
            assert cohort is not None
            self._count(job, cohort, start, end)
        for counter, used in zip(counters, state["used"], strict=True):
            counter.used = used
        for job, number in state["barred"]:
            queues.group_of(job).queue.barred.add(job)
            self._enter_waiting(job, counters[number])
        for group in queues:
            for job in group.queue:
                self._enter_waiting(job, None)
        for job, text, falls in state.get("refused", ()):
            self.refused[job] = text, falls
            queues.group_of(job).queue.barred.add(job)
            self._enter_waiting(job, None)
        queues.barred = len(state["barred"]) + len(self.refused)
        self._outside = dict(state["outside"])
        self.inside = set(state["inside"])
        self._wake = state["wake"]
        self._spells.restore(state["spells"])

    def _enter_waiting(self, job: int, over: LimitCounter | None) -> None:
        cohort = self._jobs.of(job)
        if cohort is not None:
            if not cohort.entered:
                cohort.enter(self._engine.queues.group_of(job).queue, over)
            cohort.jobs.add(job)


def _by_queue(cohorts: Sequence[Cohort]) -> list[tuple[WaitingQueue, set[int]]]:
    """Return each queue in which jobs of these cohorts wait, with these jobs."""
    if len(cohorts) == 1:
        (cohort,) = cohorts
        assert cohort.queue is not None
        return [(cohort.queue, cohort.jobs)]
    found: dict[int, tuple[WaitingQueue, set[int]]] = {}
    for cohort in cohorts:
        assert cohort.queue is not None
        found.setdefault(id(cohort.queue), (cohort.queue, set()))[1].update(cohort.jobs)
    return list(found.values())
