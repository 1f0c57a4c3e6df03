"""`WaitCauses`: why jobs of a run waited, the one computation behind the answer on one job and on all.

The time of a run is cut at every change of the machine, of a queue and of the nodes that are closed.  In each
piece the state is known, and so is the cause for a waiting job: its queue was stopped, a limit was used up, a
type was short, the free resources were not arranged as it requests, or it fitted and the queue policy held it
back.  Jobs that differ in nothing that matters to this are one class, and share the answer of a piece.

Where the timeline has the numbers that decide, the pieces of a class are one comparison of arrays.  The rest
is asked of the machine, rebuilt from the allocations in one sweep over the time.

A run whose allocations or inputs are not available has only its tables.  Then sums over the whole machine
decide, and everything else is one cause, `Cause.POLICY`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.errors import RunError
from simsched.graph.index.types import BELOW
from simsched.match.requests.request import POOL, VERTEX
from simsched.match.search.counts import is_idle
from simsched.match.search.select import can_match
from simsched.report.columns import HELD
from simsched.report.metrics.causes import NEVER, REJECTED
from simsched.report.waiting.job_answer import Cause
from simsched.report.waiting.noted_limits import NOTHING, LimitTimes, NotedLimits
from simsched.report.waiting.reserved_times import ReservedTimes
from simsched.report.waiting.run_facts import RunFacts
from simsched.simulation.options.run_config import RECORDED
from simsched.simulation.outages.disruption import closures_of
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from simsched.arrays import Bools, Floats, Integers
    from simsched.graph.cluster import Cluster
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability
    from simsched.report.data.tables import RunTables
    from simsched.workload.job import Job, Workload


NOTED_LIMITS = 3
"""The first format of run directories with ``limits.parquet``."""
ONE_QUEUE = ("fcfs", "easy", "easy+", "easy++", "conservative", "hybrid", "selective", "slack")
"""Policies that look at each waiting job at each instant: the order or a reservation is in the way of a job
that fits.  Other policies may also look at it later."""
_WHOLE_NODE = re.compile(r"\bnode(?:=[^/;\]{]*)?(?:\{x|\Z|[;\]])")
"""A node of a shape (RFC 46) that is exclusive, because it says so or has nothing in it."""
_OPEN = -1


class WaitPieces(NamedTuple):
    """The wait of one job: starts and ends of its pieces (s), and the code of the cause of each."""

    row: int
    starts: Floats
    ends: Floats
    codes: Integers

    def joined(self) -> WaitPieces:
        """Return the pieces with neighbours of one cause as one."""
        if len(self.codes) < 2:
            return self
        first = np.concatenate(([True], self.codes[1:] != self.codes[:-1]))
        last = np.concatenate((first[1:], [True]))
        return WaitPieces(self.row, self.starts[first], self.ends[last], self.codes[first])


class RequestPart(NamedTuple):
    """Units of a type that a request takes: of a pool, or whole vertices; `need` says which may serve.

    `within` are units inside of nodes that are taken whole: they have to be on idle nodes.
    """

    type: str
    units: int
    need: Need
    within: bool


class WaitCauses(RunFacts):
    """The causes of the waits of a run.

    Attributes
    ----------
    waiting : the rows of the jobs that were submitted and could wait.
    submit, eligible, end : of each row: submission, eligibility and the end of the wait, in seconds.

    Raises
    ------
    RunError
        if the timeline of the run does not have the free units of the types of the cluster.
    """

    def __init__(self, run: RunTables, inputs: tuple[Cluster, Workload] | None) -> None:
        super().__init__(run, inputs)
        table = self.table
        self.timeline = run.timeline_arrays()
        self.times = self.timeline["time"]
        rejected = [isinstance(reason, str) and reason.startswith(REJECTED) for reason in table["reason"]]
        self.waiting: Integers = np.flatnonzero(~(np.isin(table["result"], NEVER) | np.array(rejected, bool)))
        last = float(self.times[-1]) if len(self.times) else 0.0
        end = np.where(np.isfinite(table["start"]), table["start"], table["end"])
        self.submit: Floats = table["submit"].astype(np.float64)
        self.end: Floats = np.maximum(np.where(np.isfinite(end), end, last), self.submit)
        eligible = np.nan_to_num(table["eligible"].astype(np.float64), nan=inf)
        self.eligible: Floats = np.clip(eligible, self.submit, self.end)
        self.types = [type_ for type_ in HELD if f"free_{type_}" in self.timeline and run.totals.get(type_)]
        if self.cluster is None:
            if not self.types:
                raise RunError("the timeline of this run has no free units of any type", where=run.name)
            return
        plays_log = self.config.get("queue_policy") == RECORDED
        limited = self.config.get("limits") or (not plays_log and has_array_limits(self.jobs.values()))
        if limited and run.meta.get("format", 1) < NOTED_LIMITS:
            raise RunError("this run does not record which limits its jobs waited for", where=run.name,
                           expected=f"a run of format {NOTED_LIMITS}")  # fmt: skip
        self.limits = NotedLimits(self)
        self._windows: dict[str | None, ReservedTimes] = {}
        self._places: dict[bytes, int] = {}
        self.parts = cache(self._parts)
        """The units that a request takes, type by type and place by place."""
        self._sums_of = cache(self._find_sums)

    # --- facts on jobs ---------------------------------------------------------------------------

    def reserved_for(self, job: Job) -> ReservedTimes:
        """Return the windows of advance reservations as a job sees them."""
        own = job.jobspec.system.get("reservation")
        if own not in self._windows:
            self._windows[own] = ReservedTimes(self, closures_of(self.outages, self.index), own)
        return self._windows[own]

    def is_held(self, row: int) -> bool:
        """Whether a job is held for ever: as it was submitted, or above a limit whatever others use."""
        if self.cluster is None or np.isfinite(self.table["start"][row]):
            return False
        job = self.job(row)
        return job.hold or job.urgency == 0 or self.limits.holds_for_ever(row)

    def in_queue(self, times: Floats) -> Integers:
        """Return how many jobs wait at each time, eligible and not held."""
        begin, end = self._queued
        return np.searchsorted(begin, times, side="right") - np.searchsorted(end, times, side="right")

    @cached_property
    def _queued(self) -> tuple[Floats, Floats]:
        rows = self.waiting[self.end[self.waiting] > self.eligible[self.waiting]]
        held = np.array([self.is_held(row) for row in rows.tolist()], dtype=np.bool_)
        rows = rows[~held]
        return np.sort(self.eligible[rows]), np.sort(self.end[rows])

    @cached_property
    def changes(self) -> Floats:
        """The times at which the machine, a queue, a reservation or an outage changes, ascending."""
        stops = (window for found in self.run.meta.get("queue_stops", {}).values() for window in found)
        times = [time for window in stops for time in window if time is not None]
        if self.cluster is not None:
            times += [time for one in self.outages for time in (one.start, one.end) if time < inf]
            times += ReservedTimes(self, (), None).edges
        return np.unique(np.concatenate((self.times, np.array(times, dtype=np.float64))))

    def before(self, row: int) -> tuple[str, str | None]:
        """Return the cause of the time before a job was eligible, and the job in the way."""
        if self.cluster is None:
            return Cause.NOT_ELIGIBLE, None
        job, eligible = self.job(row), self.eligible[row]
        schemes = {dependency.scheme for dependency in job.dependencies}
        for name in (*(str(dependency.value) for dependency in job.dependencies), str(job.preceding)):
            other = self.row_of.get(name)
            if other is not None and eligible in (self.table["end"][other], self.table["start"][other]):
                return Cause.DEPENDENCY, name
        return Cause.BEGIN if schemes == {"begin-time"} else Cause.DEPENDENCY, None

    # --- the answer ------------------------------------------------------------------------------

    @cached_property
    def waits(self) -> list[WaitPieces]:
        """The waits of all jobs that waited, joined."""
        return [wait.joined() for wait in self.pieces(self.waiting.tolist())]

    @property
    def causes(self) -> list[str]:
        """The causes of all waits, and the shortages that there could be."""
        short = [f"{Cause.SHORT} of {type_}" for type_ in self.types]
        names = [*short, *(self.names[code] for wait in self.waits for code in wait.codes.tolist())]
        if self.cluster is None:
            names = [Cause.NOT_ELIGIBLE, *(name for name in names if name != Cause.POLICY), Cause.POLICY]
        return list(dict.fromkeys(names))

    def pieces(self, rows: Iterable[int]) -> Iterator[WaitPieces]:
        """Yield the wait of each job that waited: pieces without gaps, from submission to its end."""
        held_back = {self.code(cause) for cause in (Cause.RESERVATION, Cause.ORDER, Cause.UNDECIDED)}
        for wait in self._pieces(rows):
            codes = wait.codes.copy()
            for at in np.flatnonzero(np.isin(codes, [*held_back])).tolist():
                if self.blocker(wait.row, float(wait.starts[at])) is not None:
                    codes[at] = self.code(Cause.BLOCKED)
            yield wait._replace(codes=codes)

    def blocker(self, row: int, time: float) -> int | None:
        """Return the row of the job before another in its queue that waits for a limit that blocks."""
        if not self._blockers:
            return None
        mine, queue = self._place_in_queue(row), self._queue_of(row)
        known = self.config.get("order") == "fifo"  # else any of them may be before it
        for of, place, other, start, end in self._blockers:
            if of == queue and start <= time < end and other != row and (place < mine or not known):
                if any(begin <= time < until for begin, until in self.earlier.get(other, ())):
                    continue  # it ran, and waited again later
                return other
        return None

    @cached_property
    def _blockers(self) -> list[tuple[str, tuple[float, ...], int, float, float]]:
        """Queue, place, row, start and end of each wait for a limit that blocks."""
        if self.cluster is None or not self.limits.blocks:
            return []
        found = []
        for row in self.waiting.tolist():
            starts, ends, _, blocks, _ = self.limits.of_group(row)
            held = (starts < self.end[row]) & (ends > self.eligible[row]) & blocks
            for start, end in zip(starts[held].tolist(), ends[held].tolist(), strict=True):
                times = max(start, self.eligible[row]), min(end, self.end[row])
                found.append((self._queue_of(row), self._place_in_queue(row), row, *times))
        return found

    def _queue_of(self, row: int) -> str:
        return self.table["queue"][row] or "" if self.config.get("queues") else ""

    def _place_in_queue(self, row: int) -> tuple[float, ...]:
        """Return the place of a job under the order fifo."""
        return -float(self.table["urgency"][row]), float(self.submit[row]), row

    def _pieces(self, rows: Iterable[int]) -> Iterator[WaitPieces]:
        whole: dict[int, int] = {}
        classes: dict[object, _Class] = {}
        for row in rows:
            if self.end[row] <= self.submit[row]:
                continue
            if self.is_held(row):  # for a limit it has a time of its own
                whole[row] = self.code(Cause.HELD_BACK)
            elif self.end[row] > self.eligible[row]:
                self._classify(row, classes)
            else:
                whole[row] = self.code(self.before(row)[0])
        for row, code in whole.items():
            yield self._with_own(WaitPieces(row, self.submit[[row]], self.end[[row]], np.array([code])))
        for one in classes.values():
            one.sweep()
        self._ask_the_machine([*classes.values()])
        for one in classes.values():
            yield from map(self._with_own, one.pieces())

    def _with_own(self, wait: WaitPieces) -> WaitPieces:
        """Return a wait with the limits that kept this very job waiting."""
        own = NOTHING if self.cluster is None else self.limits.of_job(wait.row)
        if not len(own.codes):
            return wait
        last = wait.ends[-1]
        times = np.union1d(wait.starts, np.concatenate((own.starts, own.ends)))
        starts = times[(times >= wait.starts[0]) & (times < last)]
        codes = wait.codes[np.searchsorted(wait.starts, starts, side="right") - 1]
        own.fill(codes, starts)
        return WaitPieces(wait.row, starts, np.append(starts[1:], last), codes)

    def _classify(self, row: int, classes: dict[object, _Class]) -> None:
        """Add an eligible job to its class."""
        queue = self.table["queue"][row] or ""
        if queue not in self.run.meta.get("queue_stops", {}):
            queue = ""  # that it is in this queue does not matter
        if self.cluster is None:
            needs = self._held_by_row[row]
            key: object = (tuple(needs), queue)
            if key not in classes:
                units = dict(zip(self.types, needs.tolist(), strict=True))
                classes[key] = _Class(self, units, decided=True, queue=queue)
        else:
            job, duration = self.job(row), float(self.table["duration"][row])
            request = self.request_of(self.table["id"][row])
            reserved = self.reserved_for(job)
            timed = duration if reserved.closures else None
            key = (request, int(self.limits.group_of[row]), timed, queue, id(reserved))
            if key not in classes:
                needs, decided = self._sums(request)
                limits = self.limits.of_group(row)
                classes[key] = _Class(self, needs, decided, queue, request, duration, reserved, limits)
        classes[key].rows.append(row)

    @cached_property
    def _held_by_row(self) -> Floats:
        """The units of each type (column) that must be free for each job (row), by the tables of the run.

        Jobs that get whole nodes request nodes, the others units in them.
        """
        needs = np.stack([self.table[HELD[type_]].astype(np.float64) for type_ in self.types], axis=1)
        if "node" in self.types:
            shapes = [str(shape) for shape in self.table["shape"]]
            known = {shape: _WHOLE_NODE.search(shape) is not None for shape in set(shapes)}
            all_whole = bool(self.run.meta.get("whole_nodes"))
            whole = np.array([all_whole or known[shape] for shape in shapes], dtype=bool)
            nodes = np.array(self.types) == "node"
            needs[whole[:, None] != nodes] = 0
        return needs

    def _sums(self, request: Request) -> tuple[dict[str, float], bool]:
        """Return the units of each type that the timeline counts and the request takes; whether they decide.

        Where the constraint excludes nodes, the sums of the timeline are of too many.
        """
        if not request.every:
            return {}, False
        found: dict[str, float] = {}
        for part in self.parts(request):
            if not part.within and f"free_{part.type}" in self.timeline:
                found[part.type] = found.get(part.type, 0) + part.units
        simple = request.plain is not None and request.plain.unit is not None and not request.alone
        return found, bool(found) and (simple or (request.whole > 0 and not request.alone))

    def _parts(self, request: Request) -> list[RequestPart]:
        found = []
        if request.alone:  # whatever it asks for, it gets whole nodes
            found.append(RequestPart(self.index.target_type, request.nodes, request.needs[0], False))
        self._add_parts(request.needs, 1, found, within=request.alone)
        return found

    def _add_parts(
        self, needs: Sequence[Need], times: int, found: list[RequestPart], *, within: bool
    ) -> None:
        for need in needs:
            number = times * need.amount
            taken = need.kind == VERTEX and need.exclusive
            if (taken or (need.kind == POOL and need.exclusive)) and not (taken and within):
                found.append(RequestPart(need.type, number, need, within))
            self._add_parts(need.children, number, found, within=within or taken)

    # --- pieces of a class that the timeline does not decide ---------------------------------------

    def _ask_the_machine(self, swept: Sequence[_Class]) -> None:
        """Find the causes of the open pieces of all classes, in one sweep over the time."""
        places = [np.flatnonzero(one.codes == _OPEN) for one in swept]
        number = np.repeat(np.arange(len(swept)), [len(at) for at in places])
        if not len(number):
            return
        place = np.concatenate(places)
        times = np.concatenate([one.starts[at] for one, at in zip(swept, places, strict=True)])
        replay = self.replay()
        view: MachineView | None = None
        for at in np.argsort(times, kind="stable").tolist():
            time, one = float(times[at]), swept[number[at]]
            if view is None or view.time != time:
                view = MachineView(time, replay.state_at(time))
            here = int(place[at])
            one.codes[here] = self._cause_in(view, one, here)

    def _cause_in(self, view: MachineView, jobs: _Class, at: int) -> int:
        """Return the cause of a piece of a class in the state of the machine then."""
        request, reserved = jobs.request, jobs.reserved
        assert request is not None
        assert reserved is not None
        if request not in view.refusals:
            view.refusals[request] = self._refusal(view, request)
        refusal = view.refusals[request]
        if refusal is not None:
            return self.code(refusal)
        middle = float(jobs.starts[at] + jobs.ends[at]) / 2
        if not reserved.fits(request, view.state, middle, jobs.duration, around_all=False):
            return self.code(Cause.MAINTENANCE)
        if not reserved.fits(request, view.state, middle, jobs.duration):
            return self.code(Cause.ADVANCE)
        return int(jobs.held_back[at])

    def _refusal(self, view: MachineView, request: Request) -> str | None:
        """Return why a request does not fit, or None if it does."""
        if not view.all_up:
            if view.fits(request):
                return None
            if view.fits_up(request):
                return Cause.UNAVAILABLE
        type_ = self.short_type(request, view)  # a sum tells without a search
        if type_ is not None:
            return f"{Cause.SHORT} of {type_}"
        return None if view.fits(request) else Cause.PLACEMENT

    def short_type(self, request: Request, view: MachineView) -> str | None:
        """Return the scarcest type of which fewer units are free than requested, on nodes that may serve.

        Units within nodes that are taken whole count only on idle nodes, and only if enough of these are.
        """
        for sums in self._sums_of(request):
            lacking = {one.type: lack for one in sums if (lack := one.units - view.free(one)) > 0}
            totals, target = view.state.index.totals, view.state.index.target_type
            share = {type_: round(lack / max(totals.get(type_, 1), 1), 9) for type_, lack in lacking.items()}
            if share:
                return max(share, key=lambda type_: (share[type_], type_ == target))
        return None

    def _find_sums(self, request: Request) -> tuple[list[FreeSum], list[FreeSum]]:
        """Return the sums of free units that a request needs at least: anywhere, and within idle nodes.

        Parts of a request may be for different nodes, so each part has a sum, and all together have one.
        """
        found: tuple[list[FreeSum], list[FreeSum]] = [], []
        for within, sums in enumerate(found):
            groups: dict[str, dict[int, FreeSum]] = {}
            for part in self.parts(request):
                if part.within == within:
                    one = self._sum(part, request)
                    alike = groups.setdefault(part.type, {})
                    units = one.units + (alike[one.place].units if one.place in alike else 0)
                    alike[one.place] = one._replace(units=units)
            for alike in groups.values():
                sums.extend(alike.values())
                if len(alike) > 1:
                    union = np.logical_or.reduce([one.may for one in alike.values()])
                    units = sum(one.units for one in alike.values())
                    one = next(iter(alike.values()))
                    sums.append(one._replace(units=units, may=union, place=self._place(union)))
        return found

    def _sum(self, part: RequestPart, request: Request) -> FreeSum:
        index, need = self.index, part.need
        eligible = need.eligible if need.content is None else need.content.eligible
        if part.type == index.target_type:
            may = request.eligible if request.alone else eligible
        elif part.type in index.vertex_types:
            vertices = index.vertex_types[part.type]
            below = vertices.level == BELOW
            may = eligible[vertices.target] if below else np.ones(len(vertices), dtype=np.bool_)
        else:
            target = index.pool_types[part.type].target
            may = (target < 0) | eligible[target]
        return FreeSum(part.type, part.units, part.within, may, self._place(may))

    def _place(self, may: Bools) -> int:
        """Return a number for some vertices or leaf pools; equal ones have the same."""
        return self._places.setdefault(may.tobytes(), len(self._places))


class FreeSum(NamedTuple):
    """Units of a type that must be free, or vertices that must be idle, among those that `may` serve.

    `place` is a number for these.  `within` counts units on idle nodes only.
    """

    type: str
    units: int
    within: bool
    may: Bools
    place: int


class MachineView:
    """The machine at one instant, and the answers on it so far."""

    def __init__(self, time: float, state: Availability) -> None:
        self.time, self.state = time, state
        self.refusals: dict[Request, str | None] = {}
        """Request → why it does not fit; None: it does."""
        self._free: dict[tuple[str, int, bool], int] = {}
        self.idle = cache(lambda kind: is_idle(kind, None, state) & state.is_up(kind))
        """Which vertices of a type are up and have nothing claimed in them."""
        self.fits = cache(lambda request: can_match(request, state))
        """Whether a request fits."""
        down = np.flatnonzero(~state.up)
        self.all_up = not len(down)
        if not self.all_up:
            self._up = state.copy()
            self._up.set_status(down, up=True)

    def free(self, wanted: FreeSum) -> int:
        """Return how many units are free, or how many vertices are idle and up, where they may serve."""
        key = wanted.type, wanted.place, wanted.within
        if key not in self._free:
            pool, may = self.state.index.pool_types.get(wanted.type), wanted.may
            if pool is None:
                self._free[key] = int(np.count_nonzero(self.idle(wanted.type) & may))
            else:
                if wanted.within:
                    may = may & ((pool.target < 0) | self.idle(self.state.index.target_type)[pool.target])
                self._free[key] = int(self.state.free[wanted.type][may].sum())
        return self._free[key]

    def fits_up(self, request: Request) -> bool:
        """Whether the request would fit if all nodes were up."""
        return not self.all_up and can_match(request, self._up)


@dataclass(eq=False)
class _Class:
    """Jobs that wait for the same cause at the same time, and the pieces of the time in which they wait.

    Attributes
    ----------
    needs, decided : units by type, as the timeline counts them, and whether they decide.
    codes : the cause of each piece; `_OPEN` if not known yet.
    held_back : the cause of each piece if the jobs fit in it.
    """

    causes: WaitCauses
    needs: dict[str, float]
    decided: bool
    queue: str
    request: Request | None = None
    duration: float = inf
    reserved: ReservedTimes | None = None
    limits: LimitTimes = NOTHING
    rows: list[int] = field(default_factory=list)

    def sweep(self) -> None:
        """Cut the time into pieces, and find the causes that the timeline, stops and limits tell."""
        causes, rows = self.causes, np.array(self.rows)
        begin, end = causes.eligible[rows], causes.end[rows]
        grid = self._grid(float(begin.min()), float(end.max()))
        self.first = np.searchsorted(grid, begin, side="right") - 1
        self.last = np.searchsorted(grid, end, side="left")
        self.kept = _union(self.first, self.last)
        self.starts, self.ends = grid[self.kept], grid[self.kept + 1]
        self.codes = np.full(len(self.kept), _OPEN)
        self.held_back = self._held_back()
        for stop, start in causes.run.meta.get("queue_stops", {}).get(self.queue, ()):
            until = inf if start is None else start
            self.codes[(self.starts >= stop) & (self.starts < until)] = causes.code(Cause.STOPPED)
        self.limits.fill(self.codes, self.starts, self.codes == _OPEN)
        self._short()

    def pieces(self) -> Iterator[WaitPieces]:
        """Yield the wait of each job of the class, with the time before it was eligible."""
        causes = self.causes
        low, high = np.searchsorted(self.kept, self.first), np.searchsorted(self.kept, self.last)
        for row, first, last in zip(self.rows, low.tolist(), high.tolist(), strict=True):
            starts, ends = self.starts[first:last].copy(), self.ends[first:last].copy()
            codes = self.codes[first:last]
            starts[0], ends[-1] = causes.eligible[row], causes.end[row]
            if causes.cluster is not None and row in causes.earlier:
                codes = codes.copy()
                for begin, until in causes.earlier[row]:
                    codes[(starts >= begin) & (starts < until)] = causes.code(Cause.INTERRUPTED)
            if causes.eligible[row] > causes.submit[row]:
                code = causes.code(causes.before(row)[0])
                starts = np.concatenate(([causes.submit[row]], starts))
                ends = np.concatenate(([causes.eligible[row]], ends))
                codes = np.concatenate(([code], codes))
            yield WaitPieces(row, starts, ends, codes)

    def _grid(self, begin: float, end: float) -> Floats:
        """Return the times at which the cause may change, from `begin` or before to `end` or later."""
        causes = self.causes
        times = causes.changes
        low = max(int(np.searchsorted(times, begin, side="right")) - 1, 0)
        high = int(np.searchsorted(times, end, side="left"))
        more = [begin, end]
        more += [time for edges in self.limits[:2] for time in edges.tolist() if begin < time < end]
        if self.reserved is not None:
            more += [time for edge in self.reserved.begins if begin < (time := edge - self.duration) < end]
        return np.union1d(times[low : high + 1], more)

    def _held_back(self) -> Any:
        """Return the cause of each piece, if the jobs fit: it is the queue policy."""
        causes = self.causes
        if causes.cluster is None:
            return np.full(len(self.kept), causes.code(Cause.POLICY))
        policy = str(causes.config.get("queue_policy", ""))
        if policy == RECORDED:
            return np.full(len(self.kept), causes.code(Cause.IN_LOG))
        known = policy in ONE_QUEUE
        cause = causes.code(
            Cause.ORDER if policy == "fcfs" else Cause.RESERVATION if known else Cause.UNDECIDED
        )
        alone = causes.in_queue(self.starts) <= 1
        return np.where(alone, causes.code(Cause.UNDECIDED), cause)

    def _short(self) -> None:
        """Find the pieces in which sums over the machine decide."""
        causes, needs = self.causes, self.needs
        if not needs:
            return
        at = np.clip(np.searchsorted(causes.times, self.starts, side="right") - 1, 0, None)
        free = {type_: causes.timeline[f"free_{type_}"][at] for type_ in needs}
        down = {type_: causes.timeline.get(f"down_{type_}", causes.times * 0)[at] for type_ in needs}
        totals = causes.run.totals
        lacking = np.stack([(needs[t] - free[t]) / max(totals.get(t, 1), 1) for t in needs]).round(9)
        short = (lacking > 0).any(axis=0)
        missing = np.any([units > 0 for units in down.values()], axis=0)
        types = [*needs]
        order = sorted(range(len(types)), key=lambda n: types[n] != "node")  # nodes before their units
        worst = np.array(order)[lacking[order].argmax(axis=0)]
        codes = np.array([causes.code(f"{Cause.SHORT} of {type_}") for type_ in types])[worst]
        open_ = self.codes == _OPEN
        if causes.cluster is None:
            up = np.all([free[t] + down[t] >= needs[t] for t in needs], axis=0)
            codes = np.where(up & missing, causes.code(Cause.UNAVAILABLE), codes)
            missing[:] = False
        known = open_ & short & ~missing  # with nodes down, it may be them that are missing
        self.codes[known] = codes[known]
        if self.decided:
            fits = open_ & ~short & ~self._closed()
            self.codes[fits] = self.held_back[fits]

    def _closed(self) -> Any:
        """Return the pieces in which some nodes are closed to the jobs of the class, or will be."""
        found = np.zeros(len(self.kept), dtype=np.bool_)
        middle = (self.starts + self.ends) / 2
        for one in () if self.reserved is None else self.reserved.closures:
            found |= (one.start < middle + self.duration) & (middle < one.end)
        return found


def _union(first: Integers, last: Integers) -> Integers:
    """Return the numbers from `first` up to `last` of each pair, ascending and each once."""
    order = np.argsort(first, kind="stable")
    reach, found = 0, []
    for low, high in zip(first[order].tolist(), last[order].tolist(), strict=True):
        if high > reach:
            found.append(np.arange(max(low, reach), high))
            reach = high
    return np.concatenate(found)
