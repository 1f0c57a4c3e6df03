"""`LogModel`: the model of a log, as `workload fit` writes it: classes of jobs with users and arrivals.

Each class submits *batches*, jobs of one user in quick succession.  Batches arrive at random at a rate that
follows the hour and the weekday of local time, varies from week to week, and grows.  The size, the limit and
the share of the limit that a job runs are drawn from the empirical distributions of the class with the rank
correlations of the log (a Gaussian copula).  Jobs of a batch often repeat the request of the job before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simsched.errors import ConfigError
from simsched.workload.flat_counts import demand
from simsched.workload.job import MAX_JOBS, Job, Skips, Workload, assemble
from simsched.workload.models.distribution import Distribution, at_quantiles

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.models.shares import Shares

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

HOUR, DAY, WEEK = 3600, 86_400, 604_800
MONTH = 30 * DAY
"""The time (s) to which the factor of growth applies."""
MAX_HOURS = 24 * 366 * 30
"""The most hours of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobClass:
    """One class of jobs.

    Attributes
    ----------
    name : name of the class.
    factor : times the users, and the batches that they submit, of the log.
    batches : batches per week at second 0.
    users, skew : number of users, and the exponent of the Zipf law by which batches fall to them.
    hours, weekdays : relative rates of the 24 hours and of Monday to Sunday.
    variation : coefficient of variation of the rate from week to week.
    jobs : jobs of a batch.
    gap : seconds between two jobs of a batch.
    repeat : probability that a job of a batch has the request and the limit of the one before.
    alike : correlation of the run times (as shares of the limit) of such jobs.
    requests : resource requests by their size.
    limits : limits in seconds; None without limits.
    runtime : the run time in seconds, or the run time as a share of the limit if there are limits.
    correlation : rank correlations of size and limit, size and run time, limit and run time.
    memory : KB per processor; None if it is not known.
    queues : names of queues; None without.
    """

    name: str
    factor: float = 1.0
    batches: float
    users: int = 0
    skew: float = 1.0
    hours: tuple[float, ...] = (1.0,) * 24
    weekdays: tuple[float, ...] = (1.0,) * 7
    variation: float = 0.0
    jobs: Shares[int]
    gap: Distribution
    repeat: float = 0.0
    alike: float = 0.0
    requests: Shares[Jobspec]
    limits: Shares[float] | None = None
    runtime: Distribution
    correlation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    memory: Distribution | None = None
    queues: Shares[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogModel:
    """Classes of jobs on a common time line.

    `span` (s) is the time in which jobs are submitted, `start` the local seconds after 1970-01-01T00:00 at
    second 0 (4 days later is a Monday), `growth` the factor by which the rate grows in 30 days, and
    `population` the number of users from whom the classes draw theirs.
    """

    classes: tuple[JobClass, ...]
    span: float
    start: float = 4 * DAY
    growth: float = 1.0
    population: int = 0
    jobs: int | None = None
    name: str = "model"
    header: dict[str, str] = field(default_factory=dict)

    def make(self, rng: np.random.Generator) -> Workload:
        """Draw the jobs.

        Raises
        ------
        ConfigError
            for more than `MAX_JOBS` jobs, or a span that is too long.
        """
        if not 0 < self.span <= MAX_HOURS * HOUR:
            raise ConfigError(f"a span of {self.span:g} s is out of range", expected="1 s to 30 years")
        expected = sum(one.factor * one.batches * _mean(one.jobs) for one in self.classes) * self.span / WEEK
        if expected * max(1.0, self.growth ** (self.span / MONTH)) > MAX_JOBS:
            raise ConfigError(f"the model makes more than {MAX_JOBS:,} jobs", expected="a shorter span")
        # Each class has a stream of its own, so that a change of one class leaves the others as they are.
        streams = rng.spawn(len(self.classes))
        population = self._population()
        found: list[Job] = []
        for one, stream in zip(self.classes, streams, strict=True):
            found += _jobs_of(one, self, population, stream)
        found.sort(key=lambda job: job.submit)
        kept = (_numbered(job, number) for number, job in enumerate(found[: self.jobs], 1))
        return assemble(
            kept, Skips(), source=self.name, name=self.name, kind="model", header=dict(self.header)
        )

    def _population(self) -> int:
        """Return the number of users; the users that a factor adds are new ones."""
        more = sum(max(0, round(one.users * one.factor) - one.users) for one in self.classes)
        fewest = max((round(one.users * one.factor) for one in self.classes), default=0)
        return max(self.population + more, fewest)


def _mean(shares: Shares[int]) -> float:
    total = sum(value * weight for value, weight in zip(shares.values, shares.weights, strict=True))
    return total / sum(shares.weights)


def _numbered(job: Job, number: int) -> Job:
    import msgspec

    return msgspec.structs.replace(job, id=number)


def _jobs_of(one: JobClass, model: LogModel, population: int, rng: np.random.Generator) -> list[Job]:
    """Draw the jobs of a class, not yet numbered."""
    import numpy as np

    begins = _arrivals(one, model, rng)
    counts = np.asarray(one.jobs.values, dtype=np.int64)[one.jobs.places(rng.random(len(begins)))]
    total = int(counts.sum())
    if total > MAX_JOBS:
        raise ConfigError(f"the model makes more than {MAX_JOBS:,} jobs", expected="a shorter span")
    batch = np.repeat(np.arange(len(begins)), counts)
    first = np.zeros(total, dtype=bool)
    first[np.cumsum(counts)[:-1]] = True
    first[:1] = True
    # Users have a stream of their own: a factor of another class, which adds users, changes no job.
    users = _users_of_batches(one, population, len(begins), rng.spawn(1)[0])
    submit = begins[batch] + _offsets(one.gap, first, rng)
    levels = _levels(one, first, rng)
    places, limits, run = _requests(one, levels, rng)
    memory = None if one.memory is None else one.memory.draw(total, rng)
    queues = None if one.queues is None else one.queues.places(rng.random(len(begins)))[batch]
    at, runs = np.floor(submit).astype(np.int64).tolist(), np.floor(run).astype(np.int64).tolist()
    sizes = [demand(spec).procs for spec in one.requests.values]
    return [
        Job(
            id=0,
            submit=at[index],
            jobspec=one.requests.values[place],
            procs=sizes[place],
            runtime=runs[index],
            duration=None if limits is None else _plain(float(limits[index])),
            user=None if users is None else users[int(batch[index])],
            name=one.name,
            queue=None if queues is None or one.queues is None else one.queues.values[int(queues[index])],
            memory=None if memory is None else max(1, round(float(memory[index]))),
        )
        for index, place in enumerate(places.tolist())
        if at[index] <= model.span
    ]


def _plain(value: float) -> float:
    return int(value) if value.is_integer() else value


def _arrivals(one: JobClass, model: LogModel, rng: np.random.Generator) -> Floats:
    """Draw the times of batches: a Poisson process whose rate is constant within each hour."""
    import numpy as np

    # Hours begin at full hours of local time; the first and the last of them are cut.
    early = model.start % HOUR
    edges = np.append(np.arange(-early, model.span, HOUR), model.span)
    edges[0] = 0.0
    hour = np.floor((model.start + edges[:-1]) / HOUR).astype(np.int64)
    days = hour // 24
    hours = np.asarray(one.hours) / np.mean(one.hours)
    weekdays = np.asarray(one.weekdays) / np.mean(one.weekdays)
    rate = hours[hour % 24] * weekdays[(days + 3) % 7]  # 1970-01-01 was a Thursday
    week = (edges[:-1] // WEEK).astype(np.int64)
    if one.variation > 0 and len(week):
        shape = 1 / one.variation**2
        rate *= rng.gamma(shape, 1 / shape, int(week[-1]) + 1)[week]
    rate *= model.growth ** (edges[:-1] / MONTH)
    expected = rate * one.factor * one.batches / WEEK * np.diff(edges)
    number = rng.poisson(np.minimum(expected, MAX_JOBS))
    if number.sum() > MAX_JOBS:
        raise ConfigError(f"the model makes more than {MAX_JOBS:,} jobs", expected="a shorter span")
    begin, length = np.repeat(edges[:-1], number), np.repeat(np.diff(edges), number)
    return np.sort(begin + length * rng.random(len(begin)))


def _users_of_batches(
    one: JobClass, population: int, batches: int, rng: np.random.Generator
) -> list[str] | None:
    """Draw the user of each batch: the users of the class are some of the population."""
    import numpy as np

    number = round(one.users * one.factor)
    if one.users == 0:
        return None
    # Users with low numbers are active in more classes, and more in each of them.
    race = rng.exponential(size=population) * np.arange(1, population + 1)
    names = np.argsort(race, kind="stable")[: max(1, number)] + 1
    # Users that a factor adds are like those of the log, not less active ones.
    rank = np.arange(len(names)) % one.users + 1
    weight = rank.astype(float) ** -one.skew
    return [str(name) for name in names[rng.choice(len(names), batches, p=weight / weight.sum())].tolist()]


def _offsets(gap: Distribution, first: npt.NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Draw how long after the first job of its batch each job is submitted."""
    import numpy as np

    gaps = np.where(first, 0.0, gap.draw(len(first), rng))
    total = np.cumsum(gaps)
    begin = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    return total - total[begin] if len(first) else total


def _levels(one: JobClass, first: npt.NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Draw correlated levels (0 to 1) of size, limit and run time, one row per job."""
    import numpy as np

    total = len(first)
    if not total:
        return np.zeros((0, 3))
    normal = rng.standard_normal((total, 3)) @ _root(one.correlation).T
    fresh = first | (rng.random(total) >= one.repeat)
    source = np.maximum.accumulate(np.where(fresh, np.arange(total), 0))
    own = normal[:, 2].copy()
    normal = normal[source]
    again = one.alike * normal[:, 2] + (1 - one.alike**2) ** 0.5 * own
    normal[:, 2] = np.where(fresh, normal[:, 2], again)
    return _normal_cdf(normal)


def _root(correlation: tuple[float, float, float]) -> Floats:
    """Return a matrix R with R Rᵀ the correlations of normals that have these correlations of ranks."""
    import numpy as np

    size_limit, size_run, limit_run = (2 * np.sin(np.pi * rank / 6) for rank in correlation)
    matrix = np.array([[1, size_limit, size_run], [size_limit, 1, limit_run], [size_run, limit_run, 1]])
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0))
    scaled: Floats = root / np.linalg.norm(root, axis=1, keepdims=True)
    return scaled


def _normal_cdf(values: Floats) -> Floats:
    from math import erf

    import numpy as np

    flat = (values / 2**0.5).ravel()
    return (0.5 + 0.5 * np.fromiter(map(erf, flat.tolist()), float, len(flat))).reshape(values.shape)


def _requests(
    one: JobClass, levels: Floats, rng: np.random.Generator
) -> tuple[Integers, Floats | None, Floats]:
    """Return the place of each request, the limits, and the run times."""
    import numpy as np

    places = one.requests.places(levels[:, 0])
    if one.runtime.kind == "quantiles":
        run = at_quantiles(one.runtime.given, levels[:, 2])
    else:
        run = one.runtime.draw(len(levels), rng)
    if one.limits is None:
        return places, None, run
    limits = np.asarray(one.limits.values, dtype=float)[one.limits.places(levels[:, 1])]
    return places, limits, run * limits
