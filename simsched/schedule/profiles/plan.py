"""`Plan`: the claims of the running jobs and their expected ends.

`earliest` searches a plan for the earliest start of a request. The profiles begin from a plan and add
reservations to it.
"""

from __future__ import annotations

from math import nextafter
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from simsched.errors import ConfigError
from simsched.match.search.select import select
from simsched.match.state.free_runs import FreeRuns
from simsched.match.state.run_selection import RunSelection
from simsched.match.state.selection import split, with_arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, KeysView, Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.kernel import Kernel
    from simsched.match.kernel_kinds import KernelKinds
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.run_selection import UnitKind
    from simsched.match.state.selection import Selection
    from simsched.schedule.profile import Profile

Moment: TypeAlias = "tuple[float, list[int]]"
"""A time in seconds, and the jobs that are expected to end then."""


class Plan:
    """The running jobs with their claims and expected ends, over the availability of now.

    The ends are sorted. The availability at a later time is the availability of now without the claims
    that end by then. An expected end that has passed is a moment after now.

    The state of a flat machine is its free units as runs (`keep_runs`), until something asks for the arrays
    of `available`: they are made then, and kept from then on.

    A claim and a release are one call each, which tells all that follows them. Like the kernel this file is
    plain Python, and is compiled where there is a compiler.

    Parameters
    ----------
    available : the idle cluster; the plan changes it as jobs start and end.

    Attributes
    ----------
    index : the cluster.
    total : pool type → free units.
    until : running job → its expected end, in seconds; callers must not change it.
    held : running job → the selection that it has claimed; callers must not change it.
    idle : execution targets that are up and not touched by a claim.
    all_up : whether every execution target is up.
    outages : how many outages each execution target is in.
    counts_only : whether a what-if needs only numbers of free units, not their ids (`Availability.copy`).
    keeps_ids : whether ids are always needed, because a calendar closes units by id.
    runs : the free units as runs, where that is the state of the cluster; else None.
    kinds : the kinds of requests of the run, once a supply counts them (`count`); else None.
    kernel : counts them, and follows the claims; else None.
    profiles : follow the claims and the expected ends (`follow`), until the status of targets changes.
    """

    def __init__(self, available: Availability) -> None:
        self.counts_only = False
        self.keeps_ids = False
        self.index: Index = available.index
        self.total = available.total
        self._available = available
        self.runs: FreeRuns | None = None
        self.kinds: KernelKinds | None = None
        self.kernel: Kernel | None = None
        self.held: dict[int, Selection] = {}
        self.all_up = bool(available.up.all())
        self.outages: Integers = np.zeros(len(available.index), dtype=np.int64)
        self.recount()
        self.until: dict[int, float] = {}
        self._ends: list[float] = []
        self._jobs: list[int] = []
        self.profiles: list[Profile] = []

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def available(self) -> Availability:
        """The state of the cluster now, as arrays."""
        available = self._available
        if self.runs is None:
            return available
        self.runs = None
        for job, selection in self.held.items():
            full = self.held[job] = with_arrays(selection)
            for type_, units in full.counts.items():  # are claimed already, in number
                available.total[type_] += units
            available.claim(full)
        return available

    @property
    def claimants(self) -> KeysView[int]:
        """The jobs that have claims, in the order of the claims."""
        return self.held.keys()

    def claims(self) -> list[tuple[int, float, Selection]]:
        """Return (job, expected end, selection) of each claim, in the order of the claims."""
        return [(job, self.until[job], with_arrays(selection)) for job, selection in self.held.items()]

    def keep_runs(self, kind: UnitKind) -> None:
        """Keep the free units as runs, if all units of the machine are of this kind and free."""
        if self.runs is not None and self.runs.kind == kind:
            return
        total, targets = self.available.total, len(self.index)
        free = all(total[name] == each * kind.each * targets for name, each in kind.content.items())
        if free and self.all_up and not self.held and self.idle == targets:
            self.runs = FreeRuns(kind, targets, total)

    def count(self, kinds: KernelKinds) -> None:
        """Let a kernel that counts the kinds of requests follow the claims from now on."""
        self.kinds, self.kernel = kinds, kinds.kernel
        for job, selection in self.held.items():
            self.kernel.start(job, selection)
        kinds.recount()

    def forget_counts(self) -> None:
        """Count the requests of the run anew when they are asked for: there are others."""
        self.kinds = self.kernel = self._available.kinds = None
        self.profiles.clear()

    def follow(self, profile: Profile, now: float) -> None:
        """Let a profile of idle targets follow the claims, as of now and from now on."""
        profile.advance(now)
        for job, end in self.until.items():
            profile.start(job, end)
        self.profiles.append(profile)

    def forget_ids(self) -> None:
        """Keep numbers of free units only, if that suffices: nothing will read which units a job has."""
        if self.runs is None and self.counts_only and not self.held:
            self.available.count_only()

    def recount(self) -> None:
        """Recount what is counted after targets went down or up, or part of a claim was released."""
        self.idle = idle_targets(self.available)
        if self.kinds is not None:
            self.kinds.recount()

    def claim(self, job: int, selection: Selection, end: float) -> None:
        """Start a job on `selection`; its expected end is `end` (seconds; inf if unknown)."""
        if self.runs is not None and isinstance(selection, RunSelection):
            self.idle -= self.runs.claim(selection)
        else:
            if isinstance(selection, RunSelection):
                selection = selection.full()
            self.idle -= self.available.claim(selection)
        self.held[job] = selection
        self._enter(job, end)
        if self.kernel is not None:
            self.kernel.start(job, selection)
            for profile in self.profiles:
                profile.start(job, end)

    def release(self, job: int) -> Selection:
        """End a job, release its claim and return the selection."""
        selection = self.held.pop(job)
        if self.runs is not None:
            self.idle += self.runs.release(selection)  # type: ignore[arg-type]
        else:
            self.idle += self._available.release(selection)
        self._leave(job, self.until.pop(job))
        if self.kernel is not None:
            self.kernel.end(job)
            for profile in self.profiles:
                profile.end(job)
        if not self.all_up:
            # Units on a target that is down come back hidden, so the differences above are wrong.
            self.recount()
        return selection

    def _enter(self, job: int, end: float) -> None:
        """Put a job among the running ones by its expected end, behind equal ones."""
        self.until[job] = end
        at = place_of(self._ends, end, True)
        self._ends.insert(at, end)
        self._jobs.insert(at, job)

    def _leave(self, job: int, end: float) -> None:
        """Remove a job whose expected end this is."""
        ends, jobs = self._ends, self._jobs
        at = place_of(ends, end, False)
        while jobs[at] != job:
            at += 1
        del ends[at], jobs[at]

    def free(self, type_: str) -> int:
        """Return the free units of a pool type, or the idle execution targets.

        Raises
        ------
        ConfigError
            For any other type.
        """
        free = self.total.get(type_)
        if free is not None:
            return free
        _check_is_target(self._available, type_)
        return self.idle

    def move_end(self, job: int, end: float) -> None:
        """Give a running job another expected end, in seconds: of a new prediction or limit."""
        self._leave(job, self.until[job])
        self._enter(job, end)
        for profile in self.profiles:
            profile.move_end(job, end)

    def expected_end(self, job: int) -> float:
        """Return the expected end of a running job."""
        return self.until[job]

    def expected_ends(self) -> dict[int, float]:
        """Return job → expected end of the running jobs; callers must not change it."""
        return self.until

    def release_part(self, job: int, targets: Integers) -> Selection:
        """Release and return the part of a job's claim on some targets; without any left, the job ends."""
        available = self.available
        parts = split(self.held[job], targets, self.index)
        if parts.kept is None:
            self.release(job)
            return parts.given
        available.release(parts.given)
        self.replace(job, parts.kept)
        return parts.given

    def replace(self, job: int, selection: Selection) -> None:
        """Let a running job hold another selection, which is claimed already."""
        self.held[job] = selection
        if self.kernel is not None:
            self.kernel.end(job)
            self.kernel.start(job, selection)
            for profile in self.profiles:
                profile.end(job)
                profile.start(job, self.until[job])
        self.recount()

    def ends(self) -> tuple[list[float], list[int]]:
        """Return the sorted expected ends and their jobs; callers must not change them."""
        return self._ends, self._jobs

    def overrun(self, now: float) -> bool:
        """Whether the expected end of a running job has passed."""
        return bool(self._ends) and self._ends[0] <= now

    def running(self) -> Iterator[tuple[float, int]]:
        """Yield (expected end, job) in the order of the ends."""
        return zip(self._ends, self._jobs, strict=True)

    def set_status(self, targets: Integers, *, up: bool) -> None:
        """Mark execution targets up or down; jobs on them keep their claims."""
        self.available.set_status(targets, up=up)
        self.profiles.clear()
        self.all_up = bool(self.available.up.all())
        self.recount()

    def moments(self, now: float) -> list[Moment]:
        """Return the distinct expected ends with their jobs; one that has passed is a moment after now."""
        moments: list[Moment] = []
        for end, job in zip(self._ends, self._jobs, strict=True):
            when = end if end > now else nextafter(now, float("inf"))
            if moments and moments[len(moments) - 1][0] == when:
                moments[len(moments) - 1][1].append(job)
            else:
                moments.append((when, [job]))
        return moments

    def release_moments(self, state: Availability, moments: Sequence[Moment]) -> None:
        """Release in `state` the claims of all jobs that end in these moments."""
        for _, jobs in moments:
            for job in jobs:
                state.release(self.held[job])

    def check(self) -> None:
        """Assert that all that is counted agrees with the claims."""
        assert self._ends == sorted(self._ends)
        assert len(self._ends) == len(self._jobs) == len(self.held) == len(self.until)
        assert set(self._jobs) == set(self.held)
        assert all(self.until[job] == end for end, job in self.running())
        if self.kinds is not None:
            kernel = self.kinds.kernel
            assert kernel.running().tolist() == sorted(self.held)
            assert kernel.shared == sum(bool(selection.shared) for selection in self.held.values())
            self.kinds.check()
        if self.runs is not None:
            claims = cast("Iterable[RunSelection]", self.held.values())
            assert self.idle == self.runs.check(claims, len(self.index))
            return
        assert self.idle == idle_targets(self.available)
        self.available.check()


def place_of(ends: list[float], end: float, behind: bool) -> int:
    """Return where an end belongs in sorted ones, in front of or `behind` equal ones: a compiled `bisect`."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        each = ends[middle]
        if each < end or (behind and each == end):
            low = middle + 1
        else:
            high = middle
    return low


def idle_targets(available: Availability) -> int:
    """Return the number of execution targets that are up and not touched by a claim."""
    return int(np.count_nonzero((available.use == 0) & available.up))


def first_fit(request: Request, available: Availability) -> Selection | None:
    """Match in graph order: whether a request fits does not depend on the match policy (M8)."""
    return select(request, available, "first", None)


def units_in(available: Availability, type_: str) -> int:
    """Return the free units of a pool type, or the idle execution targets.

    Raises
    ------
    ConfigError
        For any other type.
    """
    total = available.total
    if type_ in total:
        return total[type_]
    _check_is_target(available, type_)
    return idle_targets(available)


def _check_is_target(available: Availability, type_: str) -> None:
    """Refuse a type that is neither a pool type nor the type of the execution targets."""
    target_type = available.index.target_type
    if type_ != target_type:
        known = ", ".join([*available.total, target_type])
        raise ConfigError(f"free units of type {type_!r} are not counted", expected=f"one of {known}")
