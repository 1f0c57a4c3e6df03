"""The Lublin-Feitelson model of rigid jobs: sizes, run times and arrivals.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", Journal of Parallel and Distributed Computing 63 (2003)
(first as a thesis, 1999), and the authors' program ``m_lublin99.c`` of the Parallel Workloads
Archive.  Three sets of parameters: batch, interactive, and typeless.  With both classes each has an
arrival process of its own, and the next job is that of the process that comes first (`interleaved`).
Workloads have Tsafrir's estimates as limits.
Everything is drawn from a `numpy.random.Generator` that is passed in; the
same state gives the same workload.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import exp, lgamma, log, log2
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar

from simsched.arguments import check_real, check_whole
from simsched.declare.flags import Flags, field, flag
from simsched.declare.kinds import ValueKind, whole
from simsched.errors import ConfigError
from simsched.formats.rfc.duration import parse_duration
from simsched.workload.job import MAX_JOBS, Job, Skips, Workload, assemble
from simsched.workload.mapping import Flat, JobMap

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from simsched.arrays import Floats, Integers


BUCKETS = 48
BUCKET_SECONDS = 1800
DAY = BUCKETS * BUCKET_SECONDS
FIRST_BUCKET = 11  # the cycle of a day is taken from bucket 11, the quietest time, on
START = 8 * 3600  # of a day, where arrivals begin
LONGEST_RUN = 12.0  # log seconds; longer draws are drawn again
LONGEST_GAP = 13.0  # log seconds between two arrivals
MACHINE = 7.0  # log2 of the nodes of the machine that the parameters are for


@dataclass(frozen=True, slots=True, kw_only=True)
class Lublin:
    """The parameters of the model, named as in the paper.

    `serial` and `power2` are the probabilities of one-node and power-of-two sizes; `low`,
    `medium`, `high` (log2 of nodes) and `low_share` shape the two-stage uniform size;
    `a1`, `b1`, `a2`, `b2` and `pa`, `pb` the hyper-gamma run time (log seconds); `aarr`,
    `barr` the gamma of gaps (log seconds, `arar` times), `anum`, `bnum` the daily cycle.
    """

    serial: float
    power2: float
    low: float
    medium: float
    high: float
    low_share: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float

    def for_machine(self, nodes: int) -> Lublin:
        """Return the model for a machine of this size: UHi and UMed move by log2(nodes / 128).

        On 128 nodes the parameters are those of the authors' program, where the largest interactive job
        has 45 nodes.  So interactive jobs take at most 0.35 of any machine, and UMed stays 2.5 below UHi
        (2 for batch jobs).
        """
        if nodes < 1:
            raise ConfigError(f"a machine of {nodes} nodes is too small", expected="1 or more")
        high = max(log2(nodes) - (MACHINE - self.high), 0.0)
        medium = max(high - (self.high - self.medium), 0.0)
        return replace(self, low=min(self.low, medium), medium=medium, high=high)

    def sizes(self, number: int, rng: np.random.Generator) -> Integers:
        """Draw sizes in nodes: serial, a power of two, or anything between."""
        import numpy as np

        kind = rng.random(number)
        low = rng.random(number) <= self.low_share
        begin, end = np.where(low, self.low, self.medium), np.where(low, self.medium, self.high)
        exponent = begin + (end - begin) * rng.random(number)
        is_power = kind <= self.serial + self.power2
        exponent = np.where(is_power, np.floor(exponent + 0.5), exponent)
        size = np.floor(np.exp2(exponent) + 0.5).astype(np.int64)
        size = np.minimum(size, max(1, round(2**self.high)))
        size[kind <= self.serial] = 1
        return size

    def run_times(self, sizes: Integers, rng: np.random.Generator) -> Integers:
        """Draw run times in whole seconds; larger jobs take the second gamma more often."""
        import numpy as np

        share = np.clip(self.pa * sizes + self.pb, 0.0, 1.0)

        def draw(which: npt.NDArray[np.intp]) -> Floats:
            first = rng.random(len(which)) <= share[which]
            shape, scale = np.where(first, self.a1, self.a2), np.where(first, self.b1, self.b2)
            return rng.gamma(shape, scale)

        return np.floor(np.exp(_redrawn(len(sizes), LONGEST_RUN, draw))).astype(np.int64)

    def arrivals(self, number: int, rng: np.random.Generator, *, until: float | None = None) -> Floats:
        """Draw arrival times in seconds after the start, which is at `START` of a day.

        With `until` every gap is scaled by one factor so that the last job arrives then; the
        daily cycle is not scaled.
        """
        points = self.points(number, rng)
        if until is not None and number:
            points *= self.points_of(until) / points[-1]
        return self.times_of(points)

    def points(self, number: int, rng: np.random.Generator) -> Floats:
        """Draw the points at which jobs arrive; a half hour of mean weight is 1,800 points long."""
        import numpy as np

        def draw(which: npt.NDArray[np.intp]) -> Floats:
            return rng.gamma(self.aarr * self.arar, self.barr, len(which))

        points: Floats = np.cumsum(np.exp(_redrawn(number, LONGEST_GAP, draw)))
        return points

    def points_of(self, until: float) -> float:
        """Return the number of points from the start to `until` (s)."""
        import numpy as np

        clock, spent, before = self._cycle()
        days, rest = divmod(START + until, DAY)
        return float(days * spent[-1] + np.interp(rest, clock, spent) - before)

    def times_of(self, points: Floats) -> Floats:
        """Return the times (s after the start) at which the points reach these numbers."""
        import numpy as np

        clock, spent, before = self._cycle()
        days, rest = np.divmod(points + before, spent[-1])
        times: Floats = days * DAY + np.interp(rest, spent, clock) - START
        return times

    def _cycle(self) -> tuple[Floats, Floats, float]:
        """Return the edges of the buckets, the points spent up to each, and those up to the start."""
        import numpy as np

        clock = np.arange(BUCKETS + 1, dtype=np.float64) * BUCKET_SECONDS
        spent = np.append(0.0, np.cumsum(self.weights())).astype(np.float64) * BUCKET_SECONDS
        return clock, spent, float(np.interp(START, clock, spent))

    def weights(self) -> Floats:
        """The weight of each half hour of a day (0 is midnight), mean 1."""
        import numpy as np

        edges = np.array(
            [_gamma_cdf(self.anum, (FIRST_BUCKET - 0.5 + i) / self.bnum) for i in range(BUCKETS + 1)]
        )
        weights = np.roll(np.diff(edges), FIRST_BUCKET - 1)
        mean_one: Floats = weights * (BUCKETS / weights.sum())
        return mean_one


@dataclass(frozen=True, slots=True)
class Interleaved:
    """The first arrivals of several processes together, in order of their own times.

    Attributes
    ----------
    models : one for each process.
    which : the process of each job, as a place in `models`.
    points : the points of the job in its own process.
    """

    models: tuple[Lublin, ...]
    which: Integers
    points: Floats

    def head(self, number: int) -> Interleaved:
        """Return the first jobs only."""
        return Interleaved(self.models, self.which[:number], self.points[:number])

    def times(self, until: float | None = None) -> Floats:
        """Return the arrival times (s), not sorted where `until` is given.

        With `until` all gaps of all processes are scaled by one factor so that the last job arrives then.
        """
        import numpy as np

        found = np.empty(len(self.points))
        places = [self.which == place for place in range(len(self.models))]
        scale = 1.0
        if until is not None:
            last = [self.points[here].max(initial=0.0) for here in places]
            ends = zip(self.models, last, strict=True)
            scale = min((model.points_of(until) / most for model, most in ends if most), default=1.0)
        for model, here in zip(self.models, places, strict=True):
            found[here] = model.times_of(self.points[here] * scale)
        return found


def interleaved(models: tuple[Lublin, ...], number: int, rng: np.random.Generator) -> Interleaved:
    """Draw the first `number` arrivals of processes that run side by side."""
    import numpy as np

    points = [model.points(number, rng) for model in models]
    which = np.repeat(np.arange(len(models)), number)
    times = [model.times_of(drawn) for model, drawn in zip(models, points, strict=True)]
    first = np.argsort(np.concatenate(times), kind="stable")[:number]
    return Interleaved(models, which[first], np.concatenate(points)[first])


def _redrawn(number: int, most: float, draw: object) -> Floats:
    """Draw `number` values, and draw those above `most` again until none is."""
    import numpy as np

    values = np.full(number, np.inf)
    while len(which := np.flatnonzero(values > most)):
        values[which] = draw(which)  # type: ignore[operator]
    return values


def _gamma_cdf(shape: float, x: float) -> float:
    """Regularised lower incomplete gamma function, by its power series.

    >>> round(_gamma_cdf(1.0, 2.0), 6)  # 1 - exp(-2)
    0.864665
    """
    if x <= 0:
        return 0.0
    term = total = 1.0 / shape
    step = shape
    while term > total * 1e-16:
        step += 1.0
        term *= x / step
        total += term
    return min(1.0, total * exp(shape * log(x) - x - lgamma(shape)))


TYPELESS = Lublin(
    serial=0.244, power2=0.576, low=0.8, medium=4.5, high=7, low_share=0.86,
    a1=4.2, b1=0.94, a2=312, b2=0.03, pa=-0.0054, pb=0.78,
    aarr=10.2303, barr=0.4871, anum=8.1737, bnum=3.9631, arar=1.0225,
)  # fmt: skip
BATCH = Lublin(
    serial=0.2927, power2=0.6686, low=1.2, medium=5, high=7, low_share=0.875,
    a1=6.57, b1=0.823, a2=639.1, b2=0.0156, pa=-0.003, pb=0.6986,
    aarr=6.0415, barr=0.8531, anum=6.1271, bnum=5.2740, arar=1.0519,
)  # fmt: skip
INTERACTIVE = Lublin(
    serial=0.1541, power2=0.625, low=1, medium=3, high=5.5, low_share=0.705,
    a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856, pa=-0.0118, pb=0.9156,
    aarr=6.5510, barr=0.6621, anum=8.9186, bnum=3.6680, arar=0.9797,
)  # fmt: skip

MODELS = {"typeless": TYPELESS, "batch": BATCH, "interactive": INTERACTIVE}


_T = TypeVar("_T")

MAX_USERS = 1_000_000
"""The most users of a model."""
MAX_PROCESSORS = 10**9
MOST = 1e15
"""The longest span and run time in seconds, and the greatest load and factor of run times."""
MAX_ESTIMATE = 10**9
"""The longest limit in seconds that Tsafrir's model gives."""
_BLOCK = 4096
_USER_SKEW = 1.1  # exponent of the Zipf law by which jobs fall to users


BOTH = ("batch", "interactive")


class DrawnJobs(NamedTuple):
    """Drawn jobs: submit times, sizes in processors, run times, and classes if the model has two."""

    submit: Floats
    size: Integers
    run: Integers
    which: Integers | None = None


def _longest(value: Any, where: str) -> int:
    found = parse_duration(value, where)
    if not 60 <= found < MAX_ESTIMATE:
        raise ConfigError(f"the longest limit is {found:g} s", where=where, expected="a minute or more")
    return int(found)


def _count(metavar: str, least: int, most: int) -> ValueKind:
    return replace(whole(least, most), flag={"metavar": metavar, "type": int})


_TIME = {"type": ["string", "number"]}
_SPAN = ValueKind(parse_duration, _TIME, flag={"metavar": "D"})


class LublinWorkload(Flags, frozen=True, kw_only=True):
    """Make jobs by the Lublin-Feitelson model of rigid jobs.

    machine : processors of the largest job.
    jobs : number of jobs.
    span : time in which jobs are submitted, such as 30d.
    load : offered load, such as 0.8.
    capacity : processors of the machine (default: --machine).
    model : typeless (default), batch, interactive or both.
    run_time_factor : multiply run times by F.
    max_estimate : add limits by Tsafrir's model, up to this time.
    users : number of users (default: no names).

    A number of jobs and a span are both reached by gaps that are scaled.  The load sets the number from the
    span, or the span from the number.  ``both`` are two arrival processes side by side, as in the authors'
    program; the class of a job is then the name of its queue.  Few users submit most jobs.
    """

    nullable: ClassVar[bool] = False

    machine: Annotated[int, _count("P", 1, MAX_PROCESSORS)]
    jobs: Annotated[int | None, _count("N", 0, MAX_JOBS)] = None
    span: Annotated[float | None, _SPAN] = None
    load: float | None = None
    capacity: Annotated[int | None, _count("P", 1, MAX_PROCESSORS)] = None
    model: Annotated[str, flag("T")] = field(name="type", default="typeless")
    run_time_factor: Annotated[float, flag("F")] = 1.0
    max_estimate: Annotated[int | None, ValueKind(_longest, _TIME, flag={"metavar": "D"})] = field(
        name="estimates", default=None
    )
    users: Annotated[int, _count("N", 0, MAX_USERS)] = 0

    def make(self, rng: np.random.Generator, job_map: JobMap | None = None) -> Workload:
        """Draw the jobs; ConfigError on an unknown model or on numbers that do not describe a workload."""
        import numpy as np

        self._check()
        draft = self._both(rng) if self.model == "both" else self._one(rng)
        limits: list[Any] = [None] * len(draft.submit)
        if self.max_estimate is not None:
            from simsched.workload.models.tsafrir import assign, estimates

            drawn = estimates(len(limits), self.max_estimate, rng).draw(len(limits), rng)
            limits = assign(draft.run, drawn, rng).tolist()
        job_map = job_map or JobMap.parse(None)
        names = users(len(limits), self.users, rng)
        size, submit = draft.size.tolist(), np.floor(draft.submit).astype(np.int64).tolist()
        specs = {procs: job_map.jobspec(Flat(procs=procs)) for procs in dict.fromkeys(size)}
        classes = itertools.repeat(None) if draft.which is None else (BOTH[at] for at in draft.which.tolist())
        columns = zip(submit, size, draft.run.tolist(), limits, names, classes, strict=False)
        jobs = [
            Job(number, at, specs[procs], runtime=run, duration=limit, user=user, queue=queue, procs=procs)
            for number, (at, procs, run, limit, user, queue) in enumerate(columns, 1)
        ]
        name = f"lublin-{self.model}"
        header = {
            "UnixStartTime": str(START),  # so that hours of the day come out right
            "MaxProcs": str(self.capacity or self.machine),
            "Map": job_map.default.text,
        }
        return assemble(jobs, Skips(), source=name, name=name, kind="model", header=header)

    def _check(self) -> None:
        if self.model != "both" and self.model not in MODELS:
            raise ConfigError(f"unknown model {self.model!r}", expected=", ".join((*MODELS, "both")))
        if self.jobs is None and self.span is None:
            raise ConfigError("neither a number of jobs nor a span is given", expected="one of them")
        check_whole("machine", self.machine, 1, MAX_PROCESSORS)
        for name, most in (("jobs", MAX_JOBS), ("capacity", MAX_PROCESSORS), ("users", MAX_USERS)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 0, most)
        if self.max_estimate is not None:
            check_real("max_estimate", self.max_estimate, 60, MAX_ESTIMATE)
        if self.load is not None and self.jobs is not None and self.span is not None:
            raise ConfigError("jobs, span and load are all given", expected="at most two of them")
        for name in ("span", "load", "capacity", "run_time_factor"):
            value = getattr(self, name)
            if value is not None:
                check_real(name, value, most=MOST)
                if value <= 0:
                    raise ConfigError(f"{name} is {value}", expected="a number above 0")

    def _work_to_do(self) -> float | None:
        """Return the processor-seconds for a load over a span; None without both."""
        if self.load is None or self.span is None:
            return None
        return self.span * (self.capacity or self.machine) * self.load

    def _until(self, size: Integers, run: Integers) -> float | None:
        """Return when the last of these jobs is to arrive; None: at the model's own rate."""
        if self.jobs is None and self.load is None:
            return None
        if self.load is None or self.span is not None:
            return self.span
        return float((size * run).sum()) / ((self.capacity or self.machine) * self.load)

    def _one(self, rng: np.random.Generator) -> DrawnJobs:
        """Draw the jobs of one class."""
        model = MODELS[self.model].for_machine(self.machine)
        work = self._work_to_do()
        if self.jobs is not None:
            size, run = self._work(model, self.jobs, rng)
        elif work is not None:
            size, run = self._work_of(model, work, rng)
        else:
            span = self.span or 0.0
            submit = _grown(lambda n: model.arrivals(n, rng), lambda made: made[-1] / span, rng)
            submit = submit[submit <= span]
            return DrawnJobs(submit, *self._work(model, len(submit), rng))
        return DrawnJobs(model.arrivals(len(size), rng, until=self._until(size, run)), size, run)

    def _both(self, rng: np.random.Generator) -> DrawnJobs:
        """Draw batch and interactive jobs in the shares in which the two processes bring them."""
        import numpy as np

        models = tuple(MODELS[name].for_machine(self.machine) for name in BOTH)
        work = self._work_to_do()
        kept = self.jobs or 0

        def draw(number: int) -> tuple[Interleaved, Integers, Integers]:
            flow = interleaved(models, number, rng)
            size, run = np.zeros_like(flow.which), np.zeros_like(flow.which)
            for place, model in enumerate(models):  # class by class
                here = np.flatnonzero(flow.which == place)
                size[here], run[here] = self._work(model, len(here), rng)
            return flow, size, run

        if self.jobs is not None:
            flow, size, run = draw(self.jobs)
        elif work is not None:
            flow, size, run = _grown(draw, lambda made: float((made[1] * made[2]).sum()) / work, rng)
            kept = int(np.searchsorted(np.cumsum(size * run), work)) + 1
        else:
            span = self.span or 0.0
            flow, size, run = _grown(draw, lambda made: float(made[0].times()[-1]) / span, rng)
            kept = int((flow.times() <= span).sum())
        flow, size, run = flow.head(kept), size[:kept], run[:kept]
        submit = flow.times(self._until(size, run))
        order = np.argsort(submit, kind="stable")
        return DrawnJobs(submit[order], size[order], run[order], flow.which[order])

    def _work(self, model: Lublin, number: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
        import numpy as np

        size = model.sizes(number, rng)
        run = np.clip(model.run_times(size, rng) * self.run_time_factor, 1, MOST).astype(np.int64)
        return size, run

    def _work_of(self, model: Lublin, work: float, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Draw jobs until their processor-seconds reach `work`."""
        import numpy as np

        sizes, runs, done, number = [], [], 0.0, 0
        while done < work:
            size, run = self._work(model, _BLOCK, rng)
            total = done + np.cumsum(size * run)
            keep = int(np.searchsorted(total, work)) + 1
            sizes.append(size[:keep])
            runs.append(run[:keep])
            done = float(total[-1])
            number += keep
            if number > MAX_JOBS:
                raise ConfigError(
                    f"this load and span need more than {MAX_JOBS:,} jobs", expected="less of either"
                )
        return np.concatenate(sizes), np.concatenate(runs)


def _grown(draw: Callable[[int], _T], reached: Callable[[_T], float], rng: np.random.Generator) -> _T:
    """Draw jobs from the same state, doubling their number until they reach the requested work or span.

    Raises
    ------
    ConfigError
        when that takes more than `MAX_JOBS`.
    """
    number = _BLOCK
    while number <= MAX_JOBS:
        state = rng.bit_generator.state
        made = draw(number)
        share = reached(made)
        if share >= 1:
            return made
        if number > 2 * MAX_JOBS * share:
            break
        rng.bit_generator.state = state
        number *= 2
    raise ConfigError(f"this span or load needs more than {MAX_JOBS:,} jobs", expected="less of either")


def users(jobs: int, number: int, rng: np.random.Generator) -> list[str | None]:
    """Return a user number per job; user k submits in proportion to 1 / k**1.1 (ours, not Lublin's).

    Raises
    ------
    ConfigError
        Beyond `MAX_USERS`.
    """
    import numpy as np

    check_whole("users", number, 0, MAX_USERS)

    if not number:
        return [None] * jobs
    weight = np.arange(1, number + 1, dtype=float) ** -_USER_SKEW
    names = [str(index + 1) for index in range(number)]
    return [names[index] for index in rng.choice(number, jobs, p=weight / weight.sum()).tolist()]
