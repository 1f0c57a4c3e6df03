"""`Plan`: who holds what until when, and when a request could start at the earliest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import count_nonzero

from simsched.errors import ConfigError
from simsched.match.requests.request import SLOT
from simsched.match.search.counts import capacity
from simsched.match.search.select import select
from simsched.match.state.masks import highest_bits
from simsched.match.state.selection import Draw, changed, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Content, Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection

    Seek = Callable[["Request", "Availability"], "Selection | None"]


_NONE = np.empty(0, dtype=np.int64)


class Shadow(NamedTuple):
    """The earliest start of a request, and what is available then if nothing else starts."""

    start: float
    available: Availability
    selection: Selection


class Plan:
    """The running jobs with their expected ends, over the availability of now.

    `whole` promises that every claim takes whole idle targets, so that none need be looked at.
    The ends are sorted, so that what is free at a later time is the availability of now and
    the releases up to then.  An expected end that has passed counts as now.
    """

    __slots__ = (
        *("_content", "_ends", "_jobs", "_until", "_whole"),
        *("all_up", "available", "copies", "counts_only", "held", "idle"),
    )

    def __init__(self, available: Availability, *, whole: bool = False) -> None:
        self._whole = whole
        self._content: Content | None = None
        self.copies = 0
        """How many more copies would fit of the one slot that all ask for (see `count_copies`)."""
        self.counts_only = False
        """Whether what-ifs need only know how many units are free, never which (see `Availability.copy`)."""
        self.available = available
        self.all_up = bool(available.up.all())
        self.recount()
        self.held: dict[int, Selection] = {}
        self._until: dict[int, float] = {}
        self._ends: list[float] = []
        self._jobs: list[int] = []

    def __len__(self) -> int:
        return len(self._ends)

    def count_copies(self, content: Content) -> None:
        """Keep count of the free copies of a slot; every claim takes some, and gives them back at once."""
        self._content = content
        self.recount()

    def recount(self) -> None:
        """Count anew what is kept count of: targets went down or up, or something came back in part."""
        self.idle = idle_targets(self.available)
        if self._content is not None:
            self.copies = capacity(self._content, self.available).total

    def claim(self, job: int, selection: Selection, end: float) -> None:
        """Start a job on `selection`, expected to end at `end` (seconds; inf: nobody knows)."""
        self.idle -= self.available.claim(selection, alone=self._whole)
        self.copies -= selection.slots
        self.held[job] = selection
        self._until[job] = end
        at = bisect_right(self._ends, end)
        self._ends.insert(at, end)
        self._jobs.insert(at, job)

    def release(self, job: int) -> Selection:
        """End a job: give back what it held, and return it."""
        selection = self.held.pop(job)
        self.idle += self.available.release(selection, alone=self._whole)
        self.copies += selection.slots
        if not self.all_up:
            self.recount()
        end = self._until.pop(job)
        at = bisect_left(self._ends, end)
        while self._jobs[at] != job:
            at += 1
        del self._ends[at]
        del self._jobs[at]
        return selection

    def free(self, type_: str) -> int:
        """Return the free units of a pool type, the idle execution targets, or the free copies of the slot.

        Raises
        ------
        ConfigError
            for any other type, and for ``slot`` where the jobs do not all ask for one slot.
        """
        free = self.available.total.get(type_)
        if free is not None:
            return free
        if type_ == SLOT and self._content is not None:
            return self.copies
        _check_is_target(self.available, type_)
        return self.idle

    def expected_end(self, job: int) -> float:
        """Return the expected end of a running job."""
        return self._until[job]

    def expected_ends(self) -> dict[int, float]:
        """Return job → expected end of the running jobs; not to be changed."""
        return self._until

    def release_part(self, job: int, targets: Ints) -> Selection:
        """Give back what a job holds on some targets, and return that; with the last of them it is gone."""
        parts = split(self.held[job], targets, self.available.index)
        if parts.kept is None:
            return self.release(job)
        self.available.release(parts.given)
        self.held[job] = parts.kept
        self.recount()
        return parts.given

    def ends(self) -> tuple[list[float], list[int]]:
        """Return the sorted expected ends and the jobs that they belong to; not to be changed."""
        return self._ends, self._jobs

    def overrun(self, now: float) -> bool:
        """Whether the expected end of a running job has passed."""
        return bool(self._ends) and self._ends[0] <= now

    def running(self) -> Iterator[tuple[float, int]]:
        """Yield (expected end, job), the next end first."""
        return zip(self._ends, self._jobs, strict=True)

    def earliest_count(self, units: list[int], free: int, need: int, now: float) -> tuple[float, int]:
        """Return when `need` units of the one counted type are free, and how many are left over then.

        `units` are the units of each job by number.  (inf, 0) if the releases never suffice.
        O(running jobs); most often a few of the first ends suffice.
        """
        start, left = now, free - need
        if left >= 0:
            return start, left
        for end, job in zip(self._ends, self._jobs, strict=True):
            if left < 0:
                start = max(start, end)
            elif end > start:
                break
            left += units[job]
        return (start, left) if left >= 0 else (float("inf"), 0)

    def shadow(self, request: Request, now: float, seek: Seek) -> Shadow | None:
        """Return the earliest start of `request` when nothing else starts before it, or None if never.

        More releases never hurt, so it gallops and then bisects over the releases; the sums
        of free units tell how many are needed at the least.
        """
        moments = self.moments(now)
        at = self._least(request, moments)
        state = self.available.copy(counts_only=self.counts_only)
        self._advance(state, moments, 0, at)
        found = seek(request, state)
        step = 1
        low, low_at = state, at
        while found is None:
            if at == len(moments):
                return None
            low, low_at = state, at
            at, step = min(at + step, len(moments)), step * 2
            state = low.copy(counts_only=self.counts_only)
            self._advance(state, moments, low_at, at)
            found = seek(request, state)
        while at - low_at > 1:
            middle = (low_at + at) // 2
            trial = low.copy(counts_only=self.counts_only)
            self._advance(trial, moments, low_at, middle)
            chosen = seek(request, trial)
            if chosen is None:
                low, low_at = trial, middle
            else:
                state, at, found = trial, middle, chosen
        return Shadow(moments[at - 1][0] if at else now, state, found)

    def shadow_in_turn(
        self, now: float, others: Iterable[float], seek: Callable[[Availability, float], Selection | None]
    ) -> Shadow | None:
        """Do the same where more time may mean less: try every release, and the `others`, in turn."""
        moments = self.moments(now)
        times = sorted({now, *(end for end, _ in moments), *others} - {float("inf")})
        state = self.available.copy(counts_only=self.counts_only)
        done = 0
        for time in times:
            upto = done
            while upto < len(moments) and moments[upto][0] <= time:
                upto += 1
            self._advance(state, moments, done, upto)
            done = upto
            found = seek(state, time)
            if found is not None:
                return Shadow(time, state, found)
        return None

    def set_status(self, targets: Ints, *, up: bool) -> None:
        """Mark execution targets up or down; what runs on them is not touched."""
        self.available.set_status(targets, up=up)
        self.all_up = bool(self.available.up.all())
        self.recount()

    def moments(self, now: float) -> list[tuple[float, list[int]]]:
        """Return the distinct expected ends, each with the jobs that end then."""
        moments: list[tuple[float, list[int]]] = []
        for end, job in zip(self._ends, self._jobs, strict=True):
            when = max(end, now)
            if moments and moments[-1][0] == when:
                moments[-1][1].append(job)
            else:
                moments.append((when, [job]))
        return moments

    def _least(self, request: Request, moments: list[tuple[float, list[int]]]) -> int:
        """Return how many moments must pass before the sums of free units could suffice."""
        least = 0
        for type_, need in request.demand.items():
            free = self.free(type_)
            at = 0
            while free < need and at < len(moments):
                free += sum(self.held[job].counts.get(type_, 0) for job in moments[at][1])
                at += 1
            least = max(least, at)
        return least

    def _advance(
        self, state: Availability, moments: list[tuple[float, list[int]]], begin: int, end: int
    ) -> None:
        """Release what ends in the moments from `begin` up to `end`."""
        for _, jobs in moments[begin:end]:
            for job in jobs:
                state.release(self.held[job])

    def _check(self) -> None:
        assert self._ends == sorted(self._ends)
        assert len(self._ends) == len(self._jobs) == len(self.held) == len(self._until)
        assert set(self._jobs) == set(self.held)
        assert all(self._until[job] == end for end, job in self.running())
        assert self.idle == idle_targets(self.available)
        assert self._content is None or self.copies == capacity(self._content, self.available).total
        self.available._check()


def idle_targets(available: Availability) -> int:
    """Return how many execution targets are up and touched by no claim."""
    return int(count_nonzero((available.use == 0) & available.up))


def first_fit(request: Request, available: Availability) -> Selection | None:
    """Seek with the plainest policy: whether it fits does not depend on the policy (M8)."""
    return select(request, available, "first", None)


def units_in(available: Availability, type_: str) -> int:
    """Return the free units of a pool type, or the idle execution targets; ConfigError for any other type."""
    total = available.total
    if type_ in total:
        return total[type_]
    _check_is_target(available, type_)
    return idle_targets(available)


def _check_is_target(available: Availability, type_: str) -> None:
    """Refuse a type that is neither a pool type nor that of the execution targets: nothing counts it."""
    target_type = available.index.target_type
    if type_ != target_type:
        known = ", ".join([*available.total, target_type])
        raise ConfigError(f"free units of type {type_!r} are not counted", expected=f"one of {known}")


def beside(available: Availability, then: Availability, selection: Selection) -> Availability:
    """Return what is available now and is left over at a later time once `selection` is claimed then.

    Units of one bank stand for one another: of a bank with four free units then, of which
    the selection takes three, any one may be used now.
    """
    keep = {type_: np.minimum(free, then.free[type_]) for type_, free in available.free.items()}
    for draw in selection.held:
        left = then.free[draw.type][draw.pools] - draw.units
        keep[draw.type][draw.pools] = np.minimum(keep[draw.type][draw.pools], left)
    return set_aside(available, (selection,), keep, counts_only=then.partial is None)


def set_aside(
    available: Availability,
    selections: Iterable[Selection],
    keep: Mapping[str, Ints],
    *,
    counts_only: bool = False,
    units: Mapping[str, Mapping[int, int]] | None = None,
) -> Availability:
    """Return what is available with only `keep` units of each bank free, and these selections' vertices held.

    The selections may name what is already taken: a reservation lies on resources that
    others hold until then.  With `units` (pool type -> bank -> mask) these units are set aside of
    pools whose units have ids, whatever `keep` says of them.
    """
    left = available.copy(counts_only=counts_only)
    given = tuple(selections)
    for selection in given:
        holds = [
            changed(hold, ordinals=hold.ordinals[~left.held[hold.type][hold.ordinals]])
            for hold in selection.holds
            if hold.exclusive
        ]
        some = tuple(hold for hold in holds if len(hold.ordinals))
        left.claim(changed(selection, held=(), holds=some, shared=()))
    pools = left.index.pool_types
    draws = tuple(
        _over(left, type_, free)
        if units is None or not pools[type_].named
        else _exactly(left, type_, units.get(type_, {}))
        for type_, free in keep.items()
    )
    left.claim(changed(given[-1], targets=_touched(left, draws), held=draws, holds=(), shared=()))
    return left


def _touched(available: Availability, draws: Iterable[Draw]) -> Ints:
    """Return the targets on which some units are set aside: nobody has them whole."""
    pools = available.index.pool_types
    targets = np.unique(np.concatenate([pools[draw.type].target[draw.pools] for draw in draws] or [_NONE]))
    return targets[targets >= 0]


def _exactly(available: Availability, type_: str, units: Mapping[int, int]) -> Draw:
    """Return a draw of the free ones among some units (bank -> mask)."""
    pool = available.index.pool_types[type_]
    free = {bank: mask & available.free_mask(pool, bank) for bank, mask in sorted(units.items())}
    masks = {bank: mask for bank, mask in free.items() if mask}
    numbers = np.array([mask.bit_count() for mask in masks.values()], dtype=np.int64)
    banks = np.array(list(masks), dtype=np.int64)
    return Draw(type_, banks, numbers, int(numbers.sum()), list(masks.values()))


def _over(available: Availability, type_: str, keep: Ints) -> Draw:
    """Return a draw of what is free beyond `keep` units of each bank: the highest ids."""
    pool = available.index.pool_types[type_]
    over = available.free[type_] - np.maximum(keep, 0)  # more may be reserved than there is, after an overrun
    banks = np.flatnonzero(over > 0)
    numbers = over[banks]
    masks = None
    if pool.named and available.partial is not None:
        masks = [
            highest_bits(available.free_mask(pool, bank), number)
            for bank, number in zip(banks.tolist(), numbers.tolist(), strict=True)
        ]
    return Draw(type_, banks, numbers, int(numbers.sum()), masks)
