"""Model files, from which a workload is drawn: a mix of a few shapes, or the model of a log.

A mix (``parts``) has shapes, each with its share of the jobs and its run times.

`LogModel`, the model of a log as `workload fit` writes it, has ``classes`` of jobs with users and arrivals.
Each class submits *batches*, jobs of one user in quick succession.  Batches arrive at random at a rate that
follows the hour and the weekday of local time, varies from week to week, and grows.  The size, the limit and
the share of the limit that a job runs are drawn from the empirical distributions of the class with the rank
correlations of the log (a Gaussian copula).  Jobs of a batch often repeat the request of the job before.

Distributions are texts: ``exp(1h)``, ``lognormal(30m, 1.2)``, ``uniform(10m, 2h)``, ``45m``.
Times inside are RFC 23 durations; plain numbers are seconds.  The whole table:

=========================  =====================================================
``constant(T)`` or ``T``   always T
``uniform(A, B)``          between A and B
``loguniform(A, B)``       uniform in the logarithm
``exp(MEAN)``              exponential
``lognormal(MEDIAN, S)``   S is the standard deviation of the natural logarithm
``gamma(SHAPE, SCALE)``    mean SHAPE * SCALE
``weibull(SHAPE, SCALE)``  heavy-tailed below shape 1
``choice(A, B, …)``        one of these, equally likely
``quantiles(A, B, …)``     values at equal steps of probability from 0 to 1, ascending
=========================  =====================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erf, inf, isfinite, log
from operator import mul
from typing import TYPE_CHECKING, Annotated, Any, Generic, Self, TypeVar

import numpy as np

from simsched.declare.kinds import ANYTHING, ValueKind, kind_of, listed, number, scalar, unread, whole
from simsched.declare.table import Declared
from simsched.errors import ConfigError, SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.calls import parse_call
from simsched.formats.rfc.clock import Clock, is_date, parse_date, zone_name
from simsched.formats.rfc.declared import DURATION
from simsched.formats.rfc.duration import MAX_SECONDS, format_duration, parse_duration
from simsched.formats.rfc.duration import whole as plain
from simsched.workload.job import MAX_JOBS, Job, Skips, Workload, assemble, change, demand
from simsched.workload.models.lublin import users

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from simsched.arrays import Floats, Integers
    from simsched.workload.mapping import ReadOptions

    Draw = Callable[[tuple[float, ...], int, np.random.Generator], Floats]


def at_quantiles(values: tuple[float, ...], levels: Floats) -> Floats:
    """Return the values at levels (0 to 1) of ``quantiles``, linear in the logarithm between them.

    >>> import numpy as np
    >>> at_quantiles((1.0, 100.0), np.array([0.0, 0.5, 1.0])).round(6).tolist()
    [1.0, 10.0, 100.0]
    """
    steps = np.linspace(0, 1, len(values))
    # 0 has no logarithm: it counts as a value that is far smaller than any other.
    small = min((value for value in values if value > 0), default=1.0) * 1e-3
    logs = np.log(np.maximum(values, small))
    found = np.exp(np.interp(levels, steps, logs))
    return np.where(found < 2 * small, 0.0, np.clip(found, min(values), max(values)))


#: Name → (fewest arguments, most arguments, the draw).
KINDS: dict[str, tuple[int, int, Draw]] = {
    "constant": (1, 1, lambda given, number, _: np.full(number, given[0])),
    "uniform": (2, 2, lambda given, number, rng: rng.uniform(given[0], given[1], number)),
    "loguniform": (
        2,
        2,
        lambda given, number, rng: np.exp(rng.uniform(log(given[0]), log(given[1]), number)),
    ),
    "exp": (1, 1, lambda given, number, rng: rng.exponential(given[0], number)),
    "lognormal": (2, 2, lambda given, number, rng: rng.lognormal(log(given[0]), given[1], number)),
    "gamma": (2, 2, lambda given, number, rng: rng.gamma(given[0], given[1], number)),
    "weibull": (2, 2, lambda given, number, rng: given[1] * rng.weibull(given[0], number)),
    "choice": (1, 1000, lambda given, number, rng: rng.choice(given, number)),
    "quantiles": (2, 1000, lambda given, number, rng: at_quantiles(given, rng.random(number))),
}


@dataclass(frozen=True, slots=True)
class Distribution:
    """A named distribution with its arguments, in seconds."""

    kind: str
    given: tuple[float, ...]

    @classmethod
    def parse(cls, text: Any, where: str | None = None) -> Distribution:
        """Read a distribution, or a plain time that is always taken.

        >>> Distribution.parse("exp(1h)")
        Distribution(kind='exp', given=(3600.0,))

        Raises
        ------
        ConfigError
            On an unknown name, a wrong number of arguments, or arguments that are not above 0.
        """
        call = parse_call(text) if isinstance(text, str) else None
        if call is None or (call.inside is None and call.name not in KINDS):
            return cls("constant", (_argument(text, "constant", where),))
        if call.name not in KINDS:
            raise ConfigError(f"unknown distribution {call.name!r}", where=where, expected=", ".join(KINDS))
        kind = call.name
        fewest, most, _ = KINDS[kind]
        try:
            arguments = call.arguments(fewest, most)
        except ConfigError as error:
            raise ConfigError(error.message, where=where, expected=error.expected) from None
        given = tuple(_argument(argument, kind, where) for argument in arguments)
        if kind in {"uniform", "loguniform"} and given[0] > given[1]:
            raise ConfigError(
                f"{text!r} is not an ascending range", where=where, expected="the smaller first"
            )
        if kind == "quantiles" and list(given) != sorted(given):
            raise ConfigError(
                "the values of quantiles do not ascend", where=where, expected="the smallest first"
            )
        return cls(kind, given)

    def draw(self, number: int, rng: np.random.Generator) -> Floats:
        """Draw `number` values in seconds, at most `MAX_SECONDS`."""
        with np.errstate(over="ignore", invalid="ignore"):
            values: Floats = np.fmin(KINDS[self.kind][2](self.given, number, rng), MAX_SECONDS)
        return values

    def __str__(self) -> str:
        arguments = ", ".join(f"{value:.12g}" for value in self.given)
        return arguments if self.kind == "constant" else f"{self.kind}({arguments})"


def _argument(argument: Any, kind: str, where: str | None) -> float:
    try:
        value = parse_duration(argument.strip() if isinstance(argument, str) else argument, where)
    except SimschedError as error:
        raise ConfigError(f"{kind}: {error.message}", where=where, expected=error.expected) from None
    if not (isfinite(value) and (value > 0 or kind in {"constant", "uniform", "quantiles"})):
        raise ConfigError(
            f"{argument!r} is not valid for {kind}", where=where, expected="finite numbers above 0"
        )
    return value


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shares(Generic[T]):
    """Values, ascending, and their weights, of which at least one is above 0."""

    values: tuple[T, ...]
    weights: tuple[float, ...]

    @classmethod
    def parse(cls, document: Any, read: Callable[[Any], T], where: str) -> Shares[T]:
        """Read a mapping from values to weights, or one value alone; `read` reads a value.

        Raises
        ------
        ConfigError
            for weights that are not numbers of 0 or more, or all 0.
        """
        if not isinstance(document, dict):
            return cls((read(document),), (1.0,))
        weights = []
        for value, weight in document.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e15:
                raise ConfigError(
                    f"the weight of {value!r} is {weight!r}", where=where, expected="a number of 0 or more"
                )
            weights.append(float(weight))
        if not sum(weights) > 0 or not isfinite(sum(weights)):
            raise ConfigError("all weights are 0", where=where, expected="values with weights above 0")
        return cls(tuple(map(read, document)), tuple(weights))

    def places(self, levels: Floats) -> Integers:
        """Return the index of the value at each level of probability (0 to 1)."""
        ends = np.cumsum(self.weights)
        found = np.searchsorted(ends / ends[-1], levels, side="right")
        last = max(place for place, weight in enumerate(self.weights) if weight > 0)
        return np.minimum(found, last).astype(np.int64)

    def mean(self: Shares[int]) -> float:
        """Return the mean of numbers."""
        return float(sum(map(mul, self.values, self.weights)) / sum(self.weights))

    def sorted_by(self, key: Callable[[T], Any]) -> Shares[T]:
        """Return the same shares with the values ascending by a key."""
        pairs = sorted(zip(self.values, self.weights, strict=True), key=lambda pair: key(pair[0]))
        return Shares(tuple(value for value, _ in pairs), tuple(weight for _, weight in pairs))


def frequent(values: Floats, most: int) -> tuple[Floats, Integers]:
    """Return at most `most` of the values, ascending, and how often each occurs.

    The most frequent values and the largest one are kept; each other value counts as the nearest of them
    by ratio.
    """
    known, counts = np.unique(values, return_counts=True)
    if len(known) > most:
        order = np.argsort(-counts, kind="stable")
        chosen = np.unique(np.append(order[: most - 1], len(known) - 1))
        logs = np.log(np.maximum(known, 1e-9))
        middles = (logs[chosen][1:] + logs[chosen][:-1]) / 2
        nearest = np.searchsorted(middles, logs)
        counts = np.bincount(nearest, weights=counts, minlength=len(chosen))
        known = known[chosen]
    return known.astype(float), counts.astype(np.int64)


HOUR, DAY, WEEK = 3600, 86_400, 604_800
MONTH = 30 * DAY
"""The time (s) to which the factor of growth applies."""
MAX_HOURS = 24 * 366 * 30
"""The most hours of a model."""


def _placed(read: Any, where: str) -> Any:
    try:
        return read()
    except SimschedError as error:
        raise ConfigError(error.message, where=where, expected=error.expected) from None


def _count(value: Any, where: str) -> int:
    """Return a number of jobs; a key of JSON is a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**9:
        raise ConfigError(f"{value!r} is not valid as a number of jobs", where=where, expected="1 or more")
    return value


def _seconds(value: Any, where: str) -> float:
    found = _placed(lambda: parse_duration(value, where), where)
    if not (isfinite(found) and found > 0):
        raise ConfigError(f"{value!r} is out of range", where=where, expected="a time above 0")
    return float(found)


def _request(value: Any, where: str) -> Jobspec:
    if not isinstance(value, str):
        raise ConfigError(f"{value!r} is not a shape", where=where, expected="slot=4/core")
    found: Jobspec = _placed(lambda: Jobspec.from_shape(value), where)
    return found


def _numbers(value: Any, where: str) -> list[float]:
    """Return the numbers of a list, or of a text with blanks between them."""
    given = value.split() if isinstance(value, str) else value if isinstance(value, list) else [value]
    try:
        return [float(item) for item in given]
    except OverflowError:
        raise ConfigError("a number is too large", where=where, expected="less than 1e308") from None
    except (TypeError, ValueError):
        raise ConfigError(f"{value!r} has a part that is not a number", where=where) from None


def _rates(count: int) -> ValueKind:
    """Return the kind of relative rates."""

    def read(value: Any, where: str) -> tuple[float, ...]:
        found = _numbers(value, where)
        if len(found) != count or not all(0 <= rate < 1e9 for rate in found) or not sum(found) > 0:
            text = f"{len(found)} values are given that are not valid as rates"
            expected = f"{count} numbers of 0 or more, at least one above 0"
            raise ConfigError(text, where=where, expected=expected)
        return tuple(found)

    return ValueKind(read, {"type": ["string", "array"]}, _text)


def _ranks(value: Any, where: str) -> tuple[float, ...]:
    found = _numbers(value, where)
    if len(found) != 3 or not all(-1 <= rank <= 1 for rank in found):
        expected = "three numbers from -1 to 1: size and limit, size and run time, limit and run time"
        raise ConfigError(f"{value!r} is out of range", where=where, expected=expected)
    return tuple(found)


def _shares(
    read: Callable[[Any, str], Any],
    write: Callable[[Any], str],
    key: Callable[[Any], Any] = lambda item: item,
) -> ValueKind:
    """Return the kind of shares of values; the order of the keys in the document does not matter."""

    def parse(value: Any, where: str) -> Shares[Any]:
        return Shares.parse(value, lambda one: read(one, where), where).sorted_by(key)

    weights = {
        "type": ["object", "string", "number"],
        "additionalProperties": {"type": "number", "minimum": 0},
    }
    return ValueKind(parse, weights, lambda one: _weighted(list(map(write, one.values)), one.weights))


def _text(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def _short(value: float) -> float:
    return plain(float(f"{value:.4g}"))


def _weighted(names: list[str], weights: tuple[float, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, weight in zip(names, weights, strict=True):
        found[name] = found.get(name, 0) + int(weight)
    return found


def _real(most: float, least: float = 0) -> ValueKind:
    inner = number(least, most)
    return ValueKind(inner.read, inner.schema, _short)


_NAME = scalar("a name")
Text = Annotated[str, ValueKind(lambda value, where: str(_NAME.read(value, where)), _NAME.schema)]
Share = Annotated[float, _real(1)]
Drawn = ValueKind(Distribution.parse, {"type": ["string", "number"]}, str)
Ranks = ValueKind(_ranks, {"type": ["string", "array"]}, _text)
Requests = _shares(_request, Jobspec.to_shape, lambda spec: (demand(spec).procs, spec.to_shape()))
Queues = _shares(lambda value, _: str(value), str)


class JobClass(Declared, frozen=True, kw_only=True):
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

    complete = True

    name: Text
    factor: Annotated[float, _real(1e6)] = 1.0
    batches: Annotated[float, _real(1e15)]
    users: Annotated[int, whole(0, 10**6)] = 0
    skew: Annotated[float, _real(100)] = 1.0
    hours: Annotated[tuple[float, ...], _rates(24)] = (1.0,) * 24
    weekdays: Annotated[tuple[float, ...], _rates(7)] = (1.0,) * 7
    variation: Annotated[float, _real(100)] = 0.0
    jobs: Annotated[Shares[int], _shares(_count, str)] = Shares((1,), (1.0,))
    gap: Annotated[Distribution, Drawn] = Distribution("constant", (0.0,))
    repeat: Share = 0.0
    alike: Share = 0.0
    requests: Annotated[Shares[Jobspec], Requests]
    limits: Annotated[Shares[float] | None, _shares(_seconds, format_duration)] = None
    runtime: Annotated[Distribution, Drawn]
    correlation: Annotated[tuple[float, ...], Ranks] = (0.0,) * 3
    memory: Annotated[Distribution | None, Drawn] = None
    queues: Annotated[Shares[str] | None, Queues] = None

    def to_dict(self) -> dict[str, Any]:
        """Return the class as a document has it."""
        found = super().to_dict()
        return {key: one for key, one in found.items() if self.users or key not in ("users", "skew")}


def _jobs_of(one: JobClass, model: LogModel, population: int, rng: np.random.Generator) -> list[Job]:
    """Draw the jobs of a class, not yet numbered."""
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
            duration=None if limits is None else plain(float(limits[index])),
            user=None if users is None else users[int(batch[index])],
            name=one.name,
            queue=None if queues is None or one.queues is None else one.queues.values[int(queues[index])],
            memory=None if memory is None else max(1, round(float(memory[index]))),
        )
        for index, place in enumerate(places.tolist())
        if at[index] <= model.span
    ]


def _arrivals(one: JobClass, model: LogModel, rng: np.random.Generator) -> Floats:
    """Draw the times of batches: a Poisson process whose rate is constant within each hour."""
    # Hours begin at full hours of local time; the first and the last of them are cut.
    early = model.local % HOUR
    edges = np.append(np.arange(-early, model.span, HOUR), model.span)
    edges[0] = 0.0
    hour = np.floor((model.local + edges[:-1]) / HOUR).astype(np.int64)
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
    gaps = np.where(first, 0.0, gap.draw(len(first), rng))
    total = np.cumsum(gaps)
    begin = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    return total - total[begin] if len(first) else total


def _levels(one: JobClass, first: npt.NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Draw correlated levels (0 to 1) of size, limit and run time, one row per job."""
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


def _root(correlation: tuple[float, ...]) -> Floats:
    """Return a matrix R with R Rᵀ the correlations of normals that have these correlations of ranks."""
    size_limit, size_run, limit_run = (2 * np.sin(np.pi * rank / 6) for rank in correlation)
    matrix = np.array([[1, size_limit, size_run], [size_limit, 1, limit_run], [size_run, limit_run, 1]])
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0))
    scaled: Floats = root / np.linalg.norm(root, axis=1, keepdims=True)
    return scaled


def _normal_cdf(values: Floats) -> Floats:
    flat = (values / 2**0.5).ravel()
    return (0.5 + 0.5 * np.fromiter(map(erf, flat.tolist()), float, len(flat))).reshape(values.shape)


def _requests(
    one: JobClass, levels: Floats, rng: np.random.Generator
) -> tuple[Integers, Floats | None, Floats]:
    """Return the place of each request, the limits, and the run times."""
    places = one.requests.places(levels[:, 0])
    if one.runtime.kind == "quantiles":
        run = at_quantiles(one.runtime.given, levels[:, 2])
    else:
        run = one.runtime.draw(len(levels), rng)
    if one.limits is None:
        return places, None, run
    limits = np.asarray(one.limits.values, dtype=float)[one.limits.places(levels[:, 1])]
    return places, limits, run * limits


Span = ValueKind(_seconds, DURATION, lambda seconds: format_duration(round(seconds)))


def _date(value: Any, where: str) -> Any:
    if value is not None and not is_date(value):
        raise ConfigError(f"{value!r} is not a date", where=where, expected="such as 2024-03-01T08:00")
    return value


_CLASSES = listed(kind_of(JobClass), "a list of classes", one_alone=False)
_CLASSES = replace(_CLASSES, described={**_CLASSES.schema, "minItems": 1})


class LogModel(Declared, frozen=True, kw_only=True):
    """Classes of jobs on a common time line: the model of a log.

    name : name of the workload.
    description : a text for people.
    start : date of second 0, such as 2024-03-01T08:00; a Monday without it.
    zone : time zone of the hours and weekdays; UTC.
    span : time in which jobs are submitted, such as 30d.
    jobs : the most jobs.
    growth : factor by which the rate grows in 30 days.
    users : number of users from whom the classes draw theirs.
    processors : processors of the machine.
    classes : the classes of jobs.

    The value `start` is in seconds after 1970 (UTC), without a `zone` those of a log without dates.
    """

    complete, join, nullable = True, ": ", False

    name: Text = "model"
    description: Annotated[Any, ANYTHING] = None
    start: Annotated[Any, ValueKind(_date, {"type": "string"})] = None
    zone: Annotated[Any, unread(type="string")] = None
    span: Annotated[float, Span] = inf
    jobs: int | None = None
    growth: Annotated[float, _real(1e3, 1e-3)] = 1.0
    users: int | None = None
    processors: Annotated[int | None, whole(1)] = None
    classes: Annotated[tuple[JobClass, ...], _CLASSES] = ()

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """See `Declared`; that classes and an end are given is for `checked`, which says more."""
        return super().schema() | {"required": ["span", "classes"]}

    def checked(self, where: str) -> Self:
        """Return the model; ConfigError without classes or an end, and for a name that occurs twice."""
        if not self.classes:
            raise ConfigError("the model has no classes", where=where, expected="classes: a list")
        if self.span == inf:
            raise ConfigError("the model has no end", where=where, expected="span: such as 30d")
        names = [one.name for one in self.classes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            fault = f"two classes have the name {twice!r}"
            raise ConfigError(fault, where=where, expected="different names")
        if self.start is None:
            return self
        zone = zone_name("UTC" if self.zone is None else str(self.zone), f"{where}: zone")
        begin = Clock(0, zone).seconds(parse_date(self.start, f"{where}: start"), f"{where}: start")
        return self.replace(start=begin, zone=zone)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as a document has it."""
        found = super().to_dict()
        if self.start is not None and self.zone is None:
            del found["start"]
        elif self.start is not None:
            found["start"] = Clock(self.start, self.zone).text(0)
        return found

    @property
    def local(self) -> float:
        """The local time of second 0, in seconds after 1970-01-01T00:00."""
        if self.start is None:
            return 4.0 * DAY  # 1970-01-05 was a Monday
        return float(Clock(self.start, self.zone or "UTC").local_seconds(np.zeros(1))[0])

    @property
    def header(self) -> dict[str, str]:
        """The machine, and the date of second 0."""
        dated = self.start is not None and self.zone is not None
        found = {"UnixStartTime": f"{self.start:.15g}", "TimeZoneString": self.zone} if dated else {}
        return found if self.processors is None else {**found, "MaxProcs": str(self.processors)}

    def make(self, rng: np.random.Generator) -> Workload:
        """Draw the jobs.

        Raises
        ------
        ConfigError
            for more than `MAX_JOBS` jobs, or a span that is too long.
        """
        if not 0 < self.span <= MAX_HOURS * HOUR:
            raise ConfigError(f"a span of {self.span:g} s is out of range", expected="1 s to 30 years")
        expected = sum(one.factor * one.batches * one.jobs.mean() for one in self.classes) * self.span / WEEK
        if expected * max(1.0, self.growth ** (self.span / MONTH)) > MAX_JOBS:
            raise ConfigError(f"the model makes more than {MAX_JOBS:,} jobs", expected="a shorter span")
        # Each class has a stream of its own, so that a change of one class leaves the others as they are.
        streams = rng.spawn(len(self.classes))
        more = sum(max(0, round(one.users * one.factor) - one.users) for one in self.classes)
        fewest = max((round(one.users * one.factor) for one in self.classes), default=0)
        population = max((self.users or 0) + more, fewest)  # the users that a factor adds are new ones
        found: list[Job] = []
        for one, stream in zip(self.classes, streams, strict=True):
            found += _jobs_of(one, self, population, stream)
        found.sort(key=lambda job: job.submit)
        kept = (change(job, id=number) for number, job in enumerate(found[: self.jobs], 1))
        return assemble(kept, Skips(), source=self.name, name=self.name, kind="model", header=self.header)


_BLOCK = 4096


def _limit(value: Any, where: str) -> Distribution | float:
    """Return a distribution, or the factor of ``x1.5``."""
    if not isinstance(value, str) or not value.strip().startswith("x"):
        return Distribution.parse(value, where)
    try:
        factor = float(value.strip()[1:])
    except ValueError:
        factor = 0.0
    if not 0 < factor < 1e9:
        raise ConfigError(f"bad factor {value!r}", where=where, expected="such as x1.5")
    return factor


Limit = ValueKind(
    _limit, Drawn.schema, lambda limit: f"x{limit:g}" if isinstance(limit, float) else str(limit)
)
_EndOfMix = ValueKind(lambda value, where: Distribution.parse(value, where).given[0], Drawn.schema)


class Part(Declared, frozen=True, kw_only=True):
    """One line of a mix: a shape, how often it comes, and how long it takes.

    shape : the request (RFC 46).
    weight : its share of the jobs, beside the weights of the other parts.
    runtime : the distribution of the run times.
    duration : the limit: None leaves it open, ``x1.5`` is a factor on the run time, a distribution is drawn
        on its own (and raised to the run time).
    name, queue : those of the jobs.
    """

    shape: str
    weight: Annotated[float, number(most=1e18)] = 1.0
    runtime: Annotated[Distribution, Drawn]
    duration: Annotated[Distribution | float | None, Limit] = None
    name: str | None = None
    queue: str | None = None


_PARTS = listed(kind_of(Part))
_PARTS = replace(_PARTS, described={**_PARTS.schema, "minItems": 1})


class Mix(Declared, frozen=True, kw_only=True):
    """A Poisson (or other) stream of jobs from weighted parts, for quick studies.

    parts : the shapes with their weights.
    gap : the distribution of the time between two submissions.
    jobs, span : the number of jobs and the seconds, which end the stream.
    users : the number of users; 0: jobs without users.
    name : the name of the workload.
    description : a text for people.
    """

    join = ": "

    parts: Annotated[tuple[Part, ...], _PARTS] = ()
    gap: Annotated[Distribution, Drawn] = Distribution("exp", (60.0,))
    jobs: int | None = None
    span: Annotated[float | None, _EndOfMix] = None
    users: int = 0
    name: Text = "mix"
    description: Annotated[Any, ANYTHING] = None

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """See `Declared`; that parts are given is for `checked`, which says more."""
        return super().schema() | {"required": ["parts"]}

    def checked(self, where: str) -> Self:
        """Return the mix; ConfigError for one without parts."""
        if not self.parts:
            raise ConfigError("the mix has no parts", where=where, expected="parts: a list")
        return self

    def make(self, rng: np.random.Generator) -> Workload:
        """Draw the jobs of the mix.

        Raises
        ------
        ConfigError
            When neither jobs nor span end the stream, a weight is negative, or all weights are 0.
        """
        submit = self._submits(rng)
        weights = np.array([part.weight for part in self.parts], dtype=float)
        if not len(weights) or (weights < 0).any() or not 0 < weights.sum() < np.inf:
            raise ConfigError(
                "invalid weights in the mix", expected="weights of 0 or more, at least one above 0"
            )
        which = rng.choice(len(self.parts), len(submit), p=weights / weights.sum())
        run = np.zeros(len(submit))
        limit = np.full(len(submit), np.inf)
        for index, part in enumerate(self.parts):
            here = np.flatnonzero(which == index)
            run[here] = np.maximum(1, np.floor(part.runtime.draw(len(here), rng)))
            if isinstance(part.duration, Distribution):
                limit[here] = np.maximum(run[here], np.ceil(part.duration.draw(len(here), rng)))
            elif part.duration is not None:
                limit[here] = np.ceil(run[here] * part.duration)
        names = users(len(submit), self.users, rng)
        specs = [Jobspec.from_shape(part.shape) for part in self.parts]
        columns = (np.floor(submit).tolist(), which.tolist(), run.tolist(), limit.tolist(), names)
        jobs = [
            Job(
                id=number,
                submit=int(at),
                jobspec=specs[index],
                runtime=int(took),
                duration=None if most == float("inf") else int(most),
                user=user,
                name=self.parts[index].name,
                queue=self.parts[index].queue,
            )
            for number, (at, index, took, most, user) in enumerate(zip(*columns, strict=True), 1)
        ]
        return assemble(jobs, Skips(), source=self.name, name=self.name, kind="model")

    def _submits(self, rng: np.random.Generator) -> Floats:
        if self.jobs is None and self.span is None:
            raise ConfigError("the mix has no end", expected="a number of jobs or a span")
        number = self.jobs if self.jobs is not None else _BLOCK
        while True:
            if number > MAX_JOBS:
                raise ConfigError(
                    f"the mix has more than {MAX_JOBS:,} jobs", expected="fewer, or longer gaps"
                )
            submit = np.cumsum(self.gap.draw(number, rng))
            if self.span is None:
                return submit
            if self.jobs is not None or (number and submit[-1] > self.span):
                kept: Floats = submit[submit <= self.span]
                return kept
            number *= 2


def model_of(document: Any, where: str = "mix") -> Mix | LogModel:
    """Return the mix or the log's model of a document.

    Raises
    ------
    ConfigError
        With the place, when a key is unknown or a value is invalid.
    """
    if isinstance(document, dict) and "classes" in document:
        return LogModel.read(document, where)
    return Mix.read(document, where)


def read_model(text: str, reading: ReadOptions) -> Workload:
    """Draw the jobs of a model file with the seed of the reading."""
    from simsched.formats.text.documents import load_document

    model = model_of(load_document(text, reading.source), reading.source)
    workload = model.make(np.random.default_rng(reading.seed))
    jobs = workload.jobs if reading.limit is None else workload.jobs[: reading.limit]
    return replace(workload, jobs=jobs, source=reading.source, total_records=len(jobs))
