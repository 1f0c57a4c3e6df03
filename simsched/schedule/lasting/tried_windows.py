"""`TriedWindows`: why no reservation could start earlier, for each waiting job and each step of a `Room`.

A try of a reservation at an earlier start looks at a window of the job's requested time from each step on.
The number of copies that were missing there is remembered. Claims only add to it, and a release takes
away the copies that it adds to the windows that overlap it: at most so many as it adds to any step, and where
that could be enough, they are counted. So a window is looked at again only once nothing may be missing in
it any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.graph.index.types import Bools, Ints

    Floats = npt.NDArray[np.float64]

UNKNOWN = -np.inf
"""Stands for the missing copies of a window that was not tried yet."""

REFUSED = 0.5
"""Stands for the missing copies where counts suffice and the matcher refuses: less than one copy."""


class Windows(NamedTuple):
    """Some windows of some jobs.

    For each of them its step; the column, gauge and requested seconds of the job, the copies that it needs
    and the start of its reservation in seconds; and the copies that are missing. Steps ascend.
    """

    steps: Ints
    columns: Ints
    gauges: Ints
    durations: Floats
    wanted: Floats
    starts: Floats
    missing: Floats

    def part(self, some: Ints) -> Windows:
        """Return some of the windows."""
        steps, columns, gauges, durations, wanted, starts, missing = self
        return Windows(
            *(steps[some], columns[some], gauges[some]),
            *(durations[some], wanted[some], starts[some], missing[some]),
        )


class Added(NamedTuple):
    """What a release adds at most to windows: copies for each job, by columns.

    `gauges` are those of which the matcher may find now what it did not find before, and the `job` is the
    one whose own reservation was freed: to its windows nothing is added.
    """

    copies: Floats
    gauges: Bools
    job: int


class TriedWindows:
    """The copies of its gauge that each job lacks at least in the window from each step on.

    A window with nothing missing is open. Steps are given by their slots, which they keep. The jobs are
    those of which one gauge decides whether a release can help them (`Gauges.concerns`).
    """

    def __init__(self, slots: int, targets: int) -> None:
        self._missing = np.zeros((slots, 32))
        """Missing copies; one row per slot, and one column per job."""
        self._gauge = np.zeros(32, dtype=np.int64)
        self._duration = np.zeros(32)
        self._wanted = np.zeros(32)
        self._start = np.zeros(32)
        """The start of each job's reservation in seconds; only windows before it count."""
        self._own = np.zeros((32, targets), dtype=np.bool_)
        """The targets of each job's reservation."""
        self._column: dict[int, int] = {}
        self._spare = list(range(31, -1, -1))

    def __bool__(self) -> bool:
        return bool(self._column)

    def __contains__(self, job: int) -> bool:
        return job in self._column

    def add(self, job: int, gauge: int, copies: int, duration: float) -> None:
        """Begin with a job, all of whose windows are open; `duration` is in seconds."""
        if not self._spare:
            size = len(self._gauge)
            self._missing = np.concatenate([self._missing, np.zeros_like(self._missing)], axis=1)
            self._gauge, self._duration, self._wanted, self._start, self._own = (
                np.concatenate([row, np.zeros_like(row)])
                for row in (self._gauge, self._duration, self._wanted, self._start, self._own)
            )
            self._spare.extend(range(2 * size - 1, size - 1, -1))
        at = self._column[job] = self._spare.pop()
        self._missing[:, at] = UNKNOWN
        self._gauge[at], self._duration[at], self._wanted[at] = gauge, duration, copies

    def place(self, job: int, start: float, targets: Ints) -> None:
        """Note when the reservation of a job begins, in seconds, and on which targets it is."""
        at = self._column[job]
        self._start[at] = start
        self._own[at] = False
        self._own[at, targets] = True

    def drop(self, job: int) -> None:
        """Forget a job, if it is known: it starts, or has no reservation any more."""
        at = self._column.pop(job, None)
        if at is not None:
            self._spare.append(at)
            self._start[at] = 0.0
            self._own[at] = False

    # -- the state changes ------------------------------------------------------------------------

    def grow(self) -> None:
        """Double the number of slots."""
        self._missing = np.concatenate([self._missing, np.zeros_like(self._missing)])

    def split(self, slot: int, before: int, *, first: bool) -> None:
        """Take over the windows of a new step from the step before it: those from later on are no better.

        With `first` that is the first step, where the matcher refuses more than at later ones.
        """
        self._missing[slot] = self._missing[before]
        if first:
            self.reopen(slot)

    def reopen(self, slot: int) -> None:
        """Open the windows from a step on that only the matcher refused."""
        row = self._missing[slot]
        row[row == REFUSED] = UNKNOWN

    def gain(self, slots: Ints, times: Floats, begin: int, added: Added) -> Windows:
        """Take over a release from the step `begin` on, and return the windows that it may open.

        `slots` and `times` (seconds) are those of the steps until its end.
        """
        more = added.copies
        if added.job in self._column:
            more[self._column[added.job]] = 0.0
        before = self._missing[slots]
        again = (before == REFUSED) & added.gauges[self._gauge]
        if added.job in self._column:
            again[:, self._column[added.job]] = False
        after = np.where(again, 0.0, before - more)
        if begin:
            earlier = times[:begin, None] + self._duration <= times[begin]  # and over by then
            after[:begin][earlier] = before[:begin][earlier]
        self._missing[slots] = after
        opened = (after <= 0.0) & (before > 0.0) & (times[:, None] < self._start)
        steps, columns = np.divmod(opened.ravel().nonzero()[0], opened.shape[1])
        return Windows(
            *(steps, columns, self._gauge[columns], self._duration[columns]),
            *(self._wanted[columns], self._start[columns], before[steps, columns]),
        )

    def put(self, slots: Ints, windows: Windows, missing: Floats) -> None:
        """Note how many copies are missing at least in the windows that a release may open."""
        self._missing[slots[windows.steps], windows.columns] = missing

    def of_gauges(self, values: Floats) -> Floats:
        """Return for each job, by columns, the value of its gauge."""
        found: Floats = values[self._gauge]
        return found

    def owners(self, targets: Ints) -> Bools:
        """Return which jobs, by columns, have their reservations on any of some targets."""
        found: Bools = np.logical_or.reduce(self._own[:, targets], axis=1)
        return found

    # -- tries --------------------------------------------------------------------------------------

    def columns(self, jobs: Sequence[int]) -> Ints:
        """Return the column of each job; -1 where it has none."""
        return np.array([self._column.get(job, -1) for job in jobs], dtype=np.int64)

    def first_open(self, slots: Ints) -> Ints:
        """Return for each column the first of some steps with an open window; else the number of steps."""
        is_open: Bools = self._missing[slots] <= 0.0
        first: Ints = is_open.argmax(axis=0)
        first[~is_open[first, np.arange(len(first))]] = len(slots)
        return first

    def open_steps(self, job: int, slots: Ints) -> Ints:
        """Return the numbers of those steps from which the window of a job is open."""
        found: Ints = (self._missing[slots, self._column[job]] <= 0.0).nonzero()[0]
        return found

    def missing(self, job: int, slot: int) -> float:
        """Return the noted number of copies that a job lacks at least in one window."""
        return float(self._missing[slot, self._column[job]])

    def note(self, job: int, slots: Ints, missing: Floats) -> None:
        """Note the copies that are missing in some windows of a job."""
        self._missing[slots, self._column[job]] = missing

    def refuse(self, job: int, slot: int) -> None:
        """Note that the matcher refused a window of a job."""
        at = self._column.get(job)
        if at is not None:
            self._missing[slot, at] = REFUSED
