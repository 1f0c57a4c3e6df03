"""Reservations that last from pass to pass, job by job: on counts where these decide, and in general.

A policy whose reservations last asks the same questions in both cases:

- When could a job start beside all others (`earliest`), and may its reservation move earlier (`move`)?
- On which resources does a job start now (`begin`)? These are chosen when it starts: until then a reservation
  is so many units of each pool of its targets (see `Profile`).

`CountedReservations` are those of the `Profile`. Requests that no count decides have `GeneralReservations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.match.counted_kinds import CountedKinds
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.profile import Profile


class Reservations(Protocol):
    """The running jobs over time, and the reservations of waiting jobs beside them. Times are in seconds."""

    def open(self, now: float) -> bool:
        """Come to the present; return False if a reservation may no longer have what it was made for."""

    def restore(self, starts: dict[int, float]) -> dict[int, float]:
        """Make the reservations again, the oldest first; return the starts of those that hold."""

    def earliest(self, job: int, before: float = NEVER) -> float:
        """Return the first start before a time, from which the job could run to its end, or `NEVER`."""

    def reserve(self, job: int, start: float) -> None:
        """Reserve for a job what was found last, for this start."""

    def reserve_targets(self, job: int, start: float, until: float) -> None:
        """Take the targets found last for a job as a whole, for good, from its start until a time."""

    def withdraw(self, job: int) -> None:
        """Take back a reservation."""

    def turns(self, jobs: list[int], barred: set[int], starts: dict[int, float] | None) -> Iterator[int]:
        """Yield each job that is due or has no reservation, when it is its turn.

        A job that is `barred` by then gets none. With `starts` the reservations move, in turn, to the
        earliest starts before their own, which are noted there.
        """

    def start_of(self, job: int) -> float:
        """Return the start of a reservation."""

    def could_now(self, job: int) -> bool:
        """Whether nothing that is quickly seen rules out that a job starts now.

        Once it is ruled out, it stays so while nothing is freed.
        """

    def begin(self, job: int) -> Selection | None:
        """Return resources with which a job may start now, or None.

        Its reservation, if it has one, is gone, unless it begins later and the job may not start.
        Without a reservation these are what was found last. With one they are chosen again, since more may be
        free than was expected.
        """

    def started(self, job: int) -> None:
        """Note that a job has started on these resources."""

    def places(self) -> dict[int, Any]:
        """Return job → what is reserved, as plain values."""

    def put(self, job: int, start: float, place: Any) -> bool:
        """Reserve what was reserved for a job on the same machine before; return whether that is possible."""

    def adopt(self, plan: Reservations) -> None:
        """Take over the reservations of a plan that was tried, in place of all others."""


class Turns:
    """The turns of jobs with reservations on a profile (see `Reservations.turns`)."""

    def __init__(
        self,
        profile: Profile,
        table: JobTable,
        jobs: list[int],
        barred: set[int],
        starts: dict[int, float] | None,
    ) -> None:
        self._profile, self._table, self._jobs, self._at = profile, table, jobs, 0
        self._barred, self._starts = barred, starts

    def __iter__(self) -> Turns:
        return self

    def __next__(self) -> int:
        if self._has_next():
            return self._jobs[self._at - 1]
        raise StopIteration

    def _has_next(self) -> bool:
        profile, table, jobs = self._profile, self._table, self._jobs
        while self._at < len(jobs):
            job = jobs[self._at]
            self._at += 1
            if self._barred and job in self._barred:
                continue
            claim = profile.reserved.get(job)
            if claim is None:
                return True
            if self._starts is not None and claim.begin > profile.now:
                number = job  # of a C type where this is compiled
                if profile.move(claim, table.kind_of[number], table.duration_of[number], NEVER) < NEVER:
                    self._starts[job] = claim.begin
            if claim.begin <= profile.now:
                return True
        return False


class CountedReservations:
    """Reservations as copies on targets, on a profile that follows the running jobs.

    A given profile of the present is for a plan of one pass, and does not follow them.
    """

    def __init__(self, supply: Any, profile: Profile | None = None) -> None:
        self._supply = supply
        self._follows = profile is None
        self._places: dict[int, Any] = {}
        """Job → its reserved copies, from when another profile takes the place of one until `restore`."""
        self._begin(profile)

    def _begin(self, profile: Profile | None = None) -> None:
        """Begin on the present kinds and targets."""
        self._table, self._kinds = self._supply.table, self._supply.kinds()
        self._profile = profile or self._supply.follow()

    def open(self, now: float) -> bool:
        """Come to the present; return False if something else took what was reserved."""
        if self._profile not in self._supply.plan.profiles:
            # Other targets are up, there are more kinds, or other closures.
            self._places = self.places()
            self._begin()
            return False
        self._profile.advance(now)
        return not self._profile.short

    def restore(self, starts: dict[int, float]) -> dict[int, float]:
        """Keep the starts that still fit; one that has passed is now, or a moment later behind an overrun.

        They are kept in the order in which they were made: an older promise counts more. Each keeps its
        targets, if it can; else it gets others at that time.
        """
        profile, table, now = self._profile, self._table, self._supply.now
        places, self._places = {**self._places, **self.places()}, {}
        for job in list(profile.reserved):
            profile.withdraw(job)
        kept = {}
        for job, start in starts.items():
            kind, seconds, place = table.kind_of[job], table.duration_of[job], places.get(job)
            begin = found = max(start, now)
            if place is not None and profile.has(kind, place, begin, end_of(begin, seconds)):
                profile.put(kind, place)
            else:
                found = profile.earliest(kind, seconds, begin, end_of(end_of(begin, 0), 0))
            if found < NEVER:
                self.reserve(job, found)
                kept[job] = found
        profile.short = False
        return kept

    def earliest(self, job: int, before: float = NEVER) -> float:
        """Return the first start before a time, or `NEVER`."""
        table = self._table
        return self._profile.earliest(table.kind_of[job], table.duration_of[job], self._supply.now, before)

    def reserve(self, job: int, start: float) -> None:
        """Reserve the placement that was found last.

        A start a moment after now is behind a job that is about to end; it will be now, and so is the end.
        """
        now = self._supply.now
        begin = now if start == end_of(now, 0) else start
        end = max(end_of(begin, self._table.duration_of[job]), end_of(start, 0))
        self._profile.reserve(job, start, end)

    def reserve_targets(self, job: int, start: float, until: float) -> None:  # noqa: ARG002
        """Shut the targets of the placement that was found last."""
        if self._kinds.on_targets:
            self._profile.take_targets(start, until)
        else:  # where counts decide for `slurm`, an execution target has one unit at most
            self._profile.take(start, until)

    def withdraw(self, job: int) -> None:
        """Take back a reservation."""
        self._profile.withdraw(job)

    def turns(self, jobs: list[int], barred: set[int], starts: dict[int, float] | None) -> Iterator[int]:
        """Yield jobs that are due or have no reservation, in turn; with `starts` reservations move."""
        return Turns(self._profile, self._table, jobs, barred, starts)

    def start_of(self, job: int) -> float:
        """Return the start of a reservation."""
        start: float = self._profile.reserved[job].begin
        return start

    def could_now(self, job: int) -> bool:
        """Whether totals do not rule out that a job starts now."""
        return self._profile.may_now(self._table.kind_of[job], self._table.duration_of[job])

    def begin(self, job: int) -> Selection | None:
        """Choose targets again if there was a reservation, and draw units on them."""
        profile, kind, now = self._profile, self._table.kind_of[job], self._supply.now
        seconds = self._table.duration_of[job]
        mine = profile.reserved.get(job)
        if mine is not None:
            if mine.begin > now and profile.move(mine, kind, seconds, end_of(now, 0)) == NEVER:
                return None
            profile.withdraw(job)
            if profile.earliest(kind, seconds, now, end_of(now, 0)) > now:
                return None
        if self._kinds.placed[kind]:
            return self._kinds.selection(kind, job) if profile.place(kind) else None
        # There are copies enough, and the matcher chooses among all that no reservation needs.
        least = profile.least(now, end_of(now, seconds))
        left = cast("CountedKinds", self._kinds).less(least)
        selection: Selection | None = self._supply.seek(job, left)
        return selection

    def started(self, job: int) -> None:
        """Take what the job has claimed, unless the profile follows the claims."""
        if not self._follows:
            self._profile.start(job, end_of(self._supply.now, self._table.duration_of[job]))

    def places(self) -> dict[int, Any]:
        """Return job → targets, copies on each, and units of each of their pools."""
        profile = self._profile
        return {job: profile.place_of(job) for job in profile.reserved}

    def put(self, job: int, start: float, place: Any) -> bool:
        """Reserve copies on given targets."""
        if not isinstance(place, tuple):
            return False
        if not self._profile.put(self._table.kind_of[job], place):
            return False
        self.reserve(job, start)
        return True

    def adopt(self, plan: Reservations) -> None:
        """Reserve what a plan reserves, and nothing else."""
        for job in list(self._profile.reserved):
            self.withdraw(job)
        for job, place in plan.places().items():
            self.put(job, plan.start_of(job), place)
