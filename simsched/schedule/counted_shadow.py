"""`CountedShadow`: the shadow time where one count decides whether the first job fits.

The state at the shadow time is not a copy of the machine: it is the rows of the targets now and the changes
that the releases until then make to them (`match.search.count_table`). The shadow is kept from pass to pass.
It stays right as long as the first job fits at the shadow time and does not fit just before it, since a
release never makes a request fit less. So after an early end the two states take over the change, and most
often one look at one of them suffices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from simsched.match.search.counts import MANY
from simsched.match.search.placements import with_changes
from simsched.schedule.graph_shadow import GraphShadow, need_at_most
from simsched.schedule.profiles.earliest import EarliestStart
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from simsched.graph.index.index import Index
    from simsched.match.search.placements import Change, RowPlacement
    from simsched.match.state.selection import Selection
    from simsched.schedule.counting_supply import CountingSupply
    from simsched.schedule.supply import Supply

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


STEP = 8
"""Releases that the search for a shadow time looks at first; each further step is twice as long."""


class _SharedUnitsError(Exception):
    """A claim shares units, which the rows of targets do not describe."""


class CountedShadow:
    """The shadow time of the first job, as counts of the rows of two states.

    Attributes
    ----------
    start : the shadow time in seconds; inf if the first job does not fit even when all jobs have ended.
    extra : whether other jobs may run beyond the shadow time.
    refused : which kinds of requests are in the first job's way.
    """

    __slots__ = (
        *("_claims", "_copies", "_era", "_exact", "_known", "_never", "_of_rest", "_read", "_rest", "_room"),
        *("_short", "_spare", "_stale", "_surely_spare", "_taken", "_then", "_unsure"),
        *("extra", "job", "refused", "start", "unsettled"),
    )

    def __init__(self, job: int, *, extra: bool) -> None:
        self.job = job
        self.extra = extra
        self.start = NEVER
        self.unsettled = False
        self.refused: Bools | None = None
        self._unsure: set[int] = set()
        """Kinds among these that may be admitted after a start, which changes the vertices that they get."""
        self._stale = True
        """Whether the shadow time must be looked at again before it is used."""
        self._known = NEVER
        """The shadow time in seconds as jobs were last judged by it; inf: all are judged again anyway."""
        self._never = False
        """Whether the first job has no shadow time, so that every job may pass it."""
        self._then: Integers | None = None
        """The rows at the shadow time, beside the claims of jobs that were started since."""
        self._copies: Integers | None = None
        """The copies of the first job's kind in these rows; None: to be counted."""
        self._spare = 0
        """By how much these copies exceed the count that the first job needs."""
        self._surely_spare = 0
        """The same, at least, without counting them again after each claim that is taken over."""
        self._room: Bools | None = None
        """Which kinds need no more units than these rows have beyond the first job's; None: to be summed."""
        self._short = 0
        """The least count that the first job lacks just before the shadow time; 0: to be counted."""
        self._era = self._read = -1
        """The place in the plan's log up to which the rows have taken over changes."""
        self._taken: set[int] = set()
        """Jobs whose claims the rows at the shadow time have taken over ahead of the log."""
        self._rest: Integers | None = None
        """The rows at the shadow time that the first job leaves; None: not known."""
        self._claims = 0
        """How many claims these rows have taken over since they were made."""
        self._of_rest: dict[int, tuple[Integers, int, int]] = {}
        """Place of a count → the copies on each target of these rows, the count, and `_claims` then."""
        self._exact: GraphShadow | None = None
        """The state of the cluster at the shadow time, where the rows do not suffice."""

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Return the state for a checkpoint: what is free at the shadow time follows from the running jobs.

        The time itself does not: once it has passed while a job overruns, all jobs are considered again.
        """
        state = {"job": self.job, "extra": self.extra, "unsettled": self.unsettled}
        known = None if self._known == NEVER else self._known
        return None, state | {"unsure": sorted(self._unsure), "known": known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the state of a checkpoint."""
        self.__init__(state["job"], extra=state["extra"])  # type: ignore[misc]
        # Checkpoints of older versions do not have the unsure kinds: all jobs are considered again.
        self.unsettled = state["unsettled"] or "unsure" not in state
        self._unsure = set(state.get("unsure", ()))
        known = state.get("known")
        self._known = NEVER if known is None else known

    # --- the interface of shadows --------------------------------------------------------------

    def time(self, supply: CountingSupply) -> float:
        """Return the shadow time, in seconds."""
        if self._stale:
            self._renew(supply)
        return self.start

    def is_past(self, now: float) -> bool:
        """Whether the shadow time has passed; one that is to be looked at again has not."""
        return self._known < now

    def note_start(self) -> None:
        """Note that a job was started: jobs that were refused for their vertices may now get others.

        A kind that is in the first job's way wherever it is placed remains so, since less is free.
        """
        if self._unsure:
            self.unsettled = True
            if self.refused is not None:
                self.refused[list(self._unsure)] = False
            self._unsure.clear()
        if self._exact is not None:
            self._exact.note_start()

    def forget(self) -> None:
        """Forget which jobs were refused, before all jobs are considered again."""
        self.unsettled = False
        self.refused = None
        self._unsure.clear()
        if self._exact is not None:
            self._exact.forget()

    def expire(self) -> None:
        """Look at the shadow time again before it is used: jobs have started or ended."""
        self._stale, self._known = True, NEVER

    def lets_all_pass(self, supply: CountingSupply) -> bool:
        """Whether sums rule out no job.

        Where counts decide for all kinds, sums are not taken: nearly every kind that they rule out is refused
        by counts, and that once for all of its jobs.
        """
        return self.extra and (self._never or supply.kinds.all_decided)

    def leaves_room(self, supply: CountingSupply, jobs: Integers) -> Bools:
        """Return which jobs are not ruled out, by sums, beside the first job at the shadow time."""
        if not self.extra:
            return np.zeros(len(jobs), dtype=np.bool_)
        if self._then is None or self.lets_all_pass(supply):
            return np.ones(len(jobs), dtype=np.bool_)
        kinds, table = supply.kinds, supply.table
        if self._room is None:
            sums, demand = kinds.counts.sums(self._then), table.demand[:, self.job].tolist()
            room = [sums.get(type_, MANY) - need for type_, need in zip(table.types, demand, strict=True)]
            self._room = need_at_most(kinds.least, np.array(room, dtype=np.int64))
        within: Bools = self._room[kinds.of[jobs]]
        return within

    def fit_beside(self, supply: CountingSupply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start.

        If the match policy's first choice delays the first job, the job is matched once more, on the
        resources that the reservation leaves. Equal requests share a refusal.
        """
        if self._never:
            return supply.fit(job)
        kinds = supply.kinds
        kind = supply.table.kinds[job]
        if not self.extra or (self.refused is not None and self.refused[kind]):
            return None
        if not kinds.fits(kind):
            return None
        selection = None
        if not self._is_in_the_way(supply, kind):
            selection = self._first_choice(supply, job)
            if kind in supply.failed:
                return None
            if selection is None:
                selection = self._second_choice(supply, job)
            if selection is None:
                self._unsure.add(kind)
        if selection is None:
            if self.refused is None:
                self.refused = np.zeros(len(kinds.numbers), dtype=np.bool_)
            self.refused[kind] = True
        return selection

    def _is_in_the_way(self, supply: CountingSupply, kind: int) -> bool:
        """Whether a kind delays the first job wherever it is placed, so that no place need be chosen.

        If the first job needs all copies that targets can host at the shadow time, no target may lose one. So
        a kind has to do with what is left over beside them.
        """
        then = self._then
        if then is None or self._surely_spare:
            return False
        self._copies_then(supply, then)
        return self._spare == 0 and not self._may_have_rest(supply, kind)

    def _second_choice(self, supply: CountingSupply, job: int) -> Selection | None:
        """Return resources for a job among those that the first one leaves at the shadow time."""
        kinds, kind = supply.kinds, supply.table.kinds[job]
        if not self._may_have_rest(supply, kind):
            return None
        selection = self._exactly(supply).on_the_rest(cast("Supply", supply), job)
        if selection is not None:
            self._surely_spare = 0
            self._take(job, kinds.counts.change(selection))
        return selection

    # --- later jobs ----------------------------------------------------------------------------

    def _first_choice(self, supply: CountingSupply, job: int) -> Selection | None:
        """Return the resources that the match policy chooses for a job, if the first job still fits then."""
        kinds, kind, then = supply.kinds, supply.table.kinds[job], self._then
        placed = change = None
        lost: int | None = MANY
        if then is not None and kinds.numbers[kind] >= 0:
            # The targets follow from the counts; whether they are in the way is known without their units.
            placed = kinds.placed_now(kind)
            if placed is not None:
                lost = self._lost(supply, then, placed)
                if lost is None:
                    return None
        selection = supply.fit(job)
        if selection is None:
            return None
        if placed is not None:
            change = placed.change(kinds.counts.rows)
            supply.note_change(job, selection, change)
        elif then is not None:
            change, self._surely_spare = kinds.counts.change(selection), 0
            if change is not None and not self._suffices(supply, with_changes(then, [change], sign=-1)):
                return None
        inexact = change is None or self._exact is not None
        if inexact and not self._exactly(supply).leaves_start(cast("Supply", supply), selection):
            return None
        self._take(job, change, costs_first=lost != 0)
        return selection

    def _lost(self, supply: CountingSupply, then: Integers, placed: RowPlacement) -> int | None:
        """Return an upper bound of the copies that a placement takes from the first job at the shadow time.

        None if the first job no longer fits.
        """
        kinds, first = supply.kinds, supply.table.kinds[self.job]
        most = len(placed.targets) * kinds.most_on_a_target(first)
        if most <= self._surely_spare:
            self._surely_spare -= most
            return most
        copies, now = self._copies_then(supply, then), kinds.counts.rows
        lost = placed.lost(kinds.demand(first), copies, then, now)
        if lost is None:
            self._surely_spare = 0
            fits = self._suffices(supply, with_changes(then, [placed.change(now)], sign=-1))
            return most if fits else None
        number = lost[0 if kinds.counts_copies(first) else 1]
        self._surely_spare = max(0, self._spare - number)
        return lost[0] if number <= self._spare else None

    def _copies_then(self, supply: CountingSupply, then: Integers) -> Integers:
        """Return the copies of the first job's kind on each target at the shadow time."""
        if self._copies is None:
            kinds, kind = supply.kinds, supply.table.kinds[self.job]
            self._copies = kinds.copies(kind, then)
            self._spare = kinds.spare(kind, self._copies)
            self._surely_spare = max(0, self._spare)
        return self._copies

    def _take(self, job: int, change: Change | None, *, costs_first: bool = True) -> None:
        """Take over the claim of a job that starts beside the first one, in the rows.

        A claim that costs the first job no copy changes neither the copies nor the place of the first job.
        """
        self._taken.add(job)
        then, rest = self._then, self._rest
        if then is not None and change is not None:
            np.subtract.at(then.reshape(-1), change.places, change.amounts)
            if not costs_first:
                self._room = None
                if rest is not None and rest is not then:
                    np.subtract.at(rest.reshape(-1), change.places, change.amounts)
                self._claims += 1
                return
        if change is None:
            self._then = None
        self._forget_then()

    def _forget_then(self) -> None:
        """Forget what follows from the rows at the shadow time: they change."""
        self._copies = self._rest = self._room = None
        self._of_rest.clear()

    def _may_have_rest(self, supply: CountingSupply, kind: int) -> bool:
        """Whether a kind may fit on the resources that are free now and that the first job leaves.

        The rows have sums over a target, so the answer may be yes although units are on the wrong sockets.
        """
        kinds, then = supply.kinds, self._then
        place = kinds.places[kind]
        if place < 0 or then is None:
            return True
        if self._rest is None:
            placed = kinds.placed(supply.table.kinds[self.job], self._copies_then(supply, then))
            self._rest = then if placed is None else with_changes(then, [placed.change(then)], sign=-1)
        amount, known = kinds.amount(kind), self._of_rest.get(place)
        # Claims only take away: a count that did not suffice before them does not suffice now.
        if known is None or (known[2] != self._claims and known[1] >= amount):
            copies = kinds.copies(kind, self._rest)
            known = self._of_rest[place] = copies, kinds.count(kind, copies), self._claims
        copies, count, _ = known
        if count < amount:
            return False  # whatever is free now
        return kinds.suffice(kind, np.minimum(kinds.copies_now(kind), copies))

    def _exactly(self, supply: CountingSupply) -> GraphShadow:
        """Return the state of the cluster at the shadow time, with the claims of jobs started beside it."""
        if self._exact is None:
            plan = supply.plan
            state = plan.available.copy(counts_only=plan.counts_only)
            for end, job in plan.running():
                if end > self.start:
                    break
                state.release(plan.held[job])
            selection = supply.seek(supply.request(self.job), state)
            assert selection is not None, "the first job fits at its shadow time"
            self._exact = GraphShadow(
                self.job, EarliestStart(self.start, state, selection), extra=self.extra, fixed=False
            )
        return self._exact

    # --- the shadow time -------------------------------------------------------------------------

    def _renew(self, supply: CountingSupply) -> None:
        """Bring the shadow time and the states to the present."""
        plan = supply.plan
        self._exact = None
        if not self._follows(supply):
            self._forget_then()
            try:
                self._search(supply)
            except _SharedUnitsError:
                self._search_states(supply)
        self._taken.clear()
        self._stale, self._known = False, self.start
        if plan.log is None:
            plan.log = []
        self._era, self._read = plan.era, len(plan.log)

    def _suffices(self, supply: CountingSupply, rows: Integers) -> bool:
        """Whether the first job fits in a state of these rows."""
        kinds, kind = supply.kinds, supply.table.kinds[self.job]
        return kinds.suffice(kind, kinds.copies(kind, rows))

    def _suffices_then(self, supply: CountingSupply, then: Integers) -> bool:
        """Whether the first job fits in the rows of the shadow time, whose copies are kept."""
        self._copies_then(supply, then)
        return self._spare >= 0

    def _follows(self, supply: CountingSupply) -> bool:
        """Take over the changes since the last time; return False if the shadow time may have moved."""
        plan, then = supply.plan, self._then
        if then is None or plan.log is None:
            return False
        if self._era != plan.era or self.start <= supply.now:
            return False
        less, freed = False, 0
        flat = then.reshape(-1)
        for entry in plan.log[self._read :]:
            released = entry.released
            if entry.end < self.start:
                continue  # released by then, before and after
            if entry.job in self._taken and not released:
                self._taken.discard(entry.job)  # once: a job that was preempted may start again
                continue
            change = supply.change_of(entry.job, entry.selection)
            if change is None:
                return False
            if released:
                freed += _touched(entry.selection, plan.index)
            if entry.end > self.start:
                (np.add if released else np.subtract).at(flat, change.places, change.amounts)
                self._forget_then()
                less = less or not released
        if freed and self._would_fit_before(supply, then, freed):
            return False
        return not less or self._suffices_then(supply, then)

    def _would_fit_before(self, supply: CountingSupply, then: Integers, freed: int) -> bool:
        """Whether the first job fits just before the shadow time, where something was freed.

        It is not counted as long as the number of `freed` targets, each with all of its units, is too small.
        The rows then are those of the shadow time without the releases at that very time.
        """
        kinds, kind = supply.kinds, supply.table.kinds[self.job]
        self._short -= freed * kinds.most_on_a_target(kind)
        if self._short <= 0:
            ends, jobs = supply.plan.ends()
            last = jobs[bisect_left(ends, self.start) : bisect_right(ends, self.start)]
            before = with_changes(then, self._changes(supply, last), sign=-1)
            self._short = -kinds.spare(kind, kinds.copies(kind, before))
        return self._short <= 0

    def _too_early(self, supply: CountingSupply, jobs: list[int], short: int) -> int:
        """Return how many releases, of jobs in the order of their ends, cannot free this number of copies."""
        plan, most = supply.plan, supply.kinds.most_on_a_target(supply.table.kinds[self.job])
        held, index = plan.held, plan.index
        for at, job in enumerate(jobs):
            selection = held[job]
            short -= (_touched(selection, index) if selection.holds else len(selection.targets)) * most
            if short <= 0:
                return at
        return len(jobs)

    def _search(self, supply: CountingSupply) -> None:
        """Compute the shadow time from the running jobs.

        A release never makes a request fit less, so the search gallops over the releases and then bisects
        them, as `earliest_by_bisection` does on states.
        """
        kinds, kind, now = supply.kinds, supply.table.kinds[self.job], supply.now
        ends, jobs = supply.plan.ends()
        rows = kinds.counts.rows_now()
        self._never, self._short, self._surely_spare = False, 0, 0
        spare = kinds.spare_now(kind)
        if spare >= 0:
            self.start, self._then = now, rows
            return
        low, step = self._too_early(supply, jobs, -spare), STEP
        if low:
            rows = with_changes(rows, self._changes(supply, jobs[:low]))
        while True:
            if low == len(jobs):
                self._never, self.start, self._then = True, NEVER, None
                return
            high = min(low + step, len(jobs))
            later = with_changes(rows, self._changes(supply, jobs[low:high]))
            if self._suffices(supply, later):
                break
            rows, low, step = later, high, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            trial = with_changes(rows, self._changes(supply, jobs[low:middle]))
            if self._suffices(supply, trial):
                high, later = middle, trial
            else:
                rows, low = trial, middle
        self.start = max(ends[low], now)
        # All jobs that end at the shadow time have ended then.
        self._then = with_changes(later, self._changes(supply, jobs[high : bisect_right(ends, self.start)]))

    def _search_states(self, supply: CountingSupply) -> None:
        """Compute the shadow time where rows do not describe the claims of the running jobs."""
        found = supply.earliest(self.job)
        self._then = None
        self._never = found is None
        self.start = NEVER if found is None else found.start
        if found is not None:
            self._exact = GraphShadow(self.job, found, extra=self.extra, fixed=False)

    def _changes(self, supply: CountingSupply, jobs: Iterable[int]) -> list[Change]:
        """Return the differences that the releases of some running jobs make."""
        found = supply.changes_of(jobs)
        if None in found:
            raise _SharedUnitsError
        return cast("list[Change]", found)


def _touched(selection: Selection, index: Index) -> int:
    """Return the number of targets that a claim touches or holds."""
    count = len(selection.targets)
    for hold in selection.holds:
        if hold.type == index.target_type and hold.ordinals is not selection.targets:
            count += len(hold.ordinals)
    return count
