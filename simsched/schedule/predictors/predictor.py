"""The predictors of run times by name: each learns from the ends of jobs and predicts the next of a user.

Jobs without a user share one user. A prediction is made when the job begins to wait for resources and is
capped by the job's limit. A user's first jobs are predicted to run to their limit. The last argument of a
predictor names the rule by which predictions that were too short are corrected.
"""

from __future__ import annotations

from copy import deepcopy
from math import ceil, floor, inf, isfinite
from typing import TYPE_CHECKING, Any, Protocol

from simsched.arguments import wrong
from simsched.errors import ConfigError
from simsched.formats.rfc.calls import CallText
from simsched.plugins.plugin_errors import failed, number_of, shown, unknown
from simsched.plugins.plugin_kind import PluginKind
from simsched.schedule.job_table import JobTable, ShownTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMIT = "limit"
"""The default: a job is expected to run to its limit."""
MOST_RUNS = 1000
"""The greatest number of run times of a user that a predictor looks at."""
STEPS_RULE = "steps"
"""The rule of predictors that do not name one."""
STEPS = (60, 300, 900, 1800, *(3600 * hours for hours in (1, 2, 5, 10, 20, 50, 100)))
"""Seconds that the first, second, … correction adds under the rule ``steps``; the last one is repeated."""
GROWTH = 0.1
"""The part of a prediction that a further correction adds at least: there are never millions of them."""
CORRECTIONS: dict[str, Callable[[float, int], float]] = {
    STEPS_RULE: lambda seconds, times: (
        seconds + (STEPS[times] if times < len(STEPS) else max(STEPS[-1], GROWTH * seconds))
    ),
    "doubling": lambda seconds, _times: 2 * seconds,
    "limit": lambda _seconds, _times: inf,
}
"""Rule → the longer prediction from the last one, in seconds, and the number of corrections before.

A job's limit caps it (Tsafrir, Etsion & Feitelson 2007; Gaussier, Glesser, Reis & Trystram 2015).
"""


class RunTimePredictor(Protocol):
    """Predicts run times (seconds) from the ends of jobs; users are numbers, as in `JobTable.users`.

    If it has a method ``begin(table)``, that is called once with the `JobTable` before the first job.
    """

    def learn(self, user: int, seconds: float) -> None:
        """Note that a job of a user ran for some seconds."""

    def predict(self, job: int, user: int) -> float | None:
        """Return the predicted seconds of a job that begins to wait; None: its limit."""

    def state(self) -> Any:
        """Return all that it has learnt, as plain values: a checkpoint keeps it."""

    def restore(self, state: Any) -> None:
        """Take over what an equal predictor has learnt."""


KIND = PluginKind("predictor", "simsched.predictors", RunTimePredictor)


class CheckedPredictor:
    """A predictor of another package, whose failures and answers name it."""

    def __init__(self, inner: RunTimePredictor, name: str | None = None) -> None:
        self.inner = inner
        self._name = name

    def begin(self, table: JobTable) -> None:
        """Let the predictor see the jobs, if it wants to."""
        begin = getattr(self.inner, "begin", None)
        if begin is not None:
            with KIND.named(self.inner, self._name):
                begin(ShownTable(table))

    def learn(self, user: int, seconds: float) -> None:
        """Note that a job of a user ran for some seconds."""
        with KIND.named(self.inner, self._name):
            self.inner.learn(user, seconds)

    def predict(self, job: int, user: int) -> float | None:
        """Return the predicted seconds of a job; PluginError for a value that is not a number."""
        with KIND.named(self.inner, self._name):
            found = self.inner.predict(job, user)
            if found is None:
                return None
            seconds = None if isinstance(found, bool) else number_of(found)
            if seconds is None or not isfinite(seconds) or seconds < 0:
                problem = f"predicted {shown(found)}, not seconds from 0 on"
                raise failed(KIND.word, self.inner, problem, self._name)
            return seconds

    def state(self) -> Any:
        """Return all that it has learnt."""
        with KIND.named(self.inner, self._name):
            return self.inner.state()

    def restore(self, state: Any) -> None:
        """Take over what an equal predictor has learnt."""
        with KIND.named(self.inner, self._name):
            self.inner.restore(state)


class RecentRuns:
    """Predicts from the last run times of the same user.

    Attributes
    ----------
    most : how many run times of a user are remembered.
    least : how many are needed for a prediction.
    correction : the rule by which a prediction that was too short is corrected, one of `CORRECTIONS`.
    """

    def __init__(
        self, most: int, least: int, combine: Callable[[Sequence[float]], float], correction: str
    ) -> None:
        self.most, self.least, self.correction = most, least, correction
        self._combine = combine
        self._runs: dict[int, list[float]] = {}

    def learn(self, user: int, seconds: float) -> None:
        """Note that a job of a user ran for some seconds."""
        runs = self._runs.setdefault(user, [])
        runs.append(seconds)
        del runs[: -self.most]

    def predict(self, job: int, user: int) -> float | None:  # noqa: ARG002
        """Return the predicted seconds of a job; None: its limit."""
        runs = self._runs.get(user, ())
        return self._combine(runs) if len(runs) >= self.least else None

    def state(self) -> dict[int, list[float]]:
        """Return the remembered run times of each user."""
        return self._runs

    def restore(self, state: dict[int, list[float]]) -> None:
        """Take over remembered run times."""
        self._runs = {user: list(runs) for user, runs in state.items()}


class Perfect:
    """Predicts the actual run time, which no scheduler knows: a bound for all predictors."""

    correction = STEPS_RULE
    """Never used: no job runs longer."""

    def __init__(self, runtimes: Sequence[float]) -> None:
        self._runtimes = runtimes

    def learn(self, user: int, seconds: float) -> None:
        """Learn nothing."""

    def predict(self, job: int, user: int) -> float | None:  # noqa: ARG002
        """Return the run time of a job, in seconds."""
        return self._runtimes[job]

    def state(self) -> dict[int, list[float]]:
        """Return nothing: the run times are those of the workload."""
        return {}

    def restore(self, state: dict[int, list[float]]) -> None:
        """Do nothing."""


def _last_two(inside: str | None) -> Any:
    """The mean of the last two run times of the same user (Tsafrir, Etsion & Feitelson 2007)."""
    _, correction = _given("last-two", inside, 0)
    return lambda _runtimes: RecentRuns(2, 2, _whole_mean, correction)


def _quantile(inside: str | None) -> Any:
    """``quantile(P, N)``: quantile P of the user's last N run times, by default 0.9 of 10 (simsched).

    It is the least of the run times that at least the share P of them does not exceed.
    """
    parts, correction = _given("quantile", inside, 2)
    try:
        share = float(parts[0]) if parts else 0.9
        most = int(parts[1]) if len(parts) > 1 else 10
    except ValueError:
        share, most = -1.0, 0
    if not (0 < share <= 1 and 1 <= most <= MOST_RUNS):
        expected = f"quantile(P, N) with P above 0 and at most 1, and N from 1 to {MOST_RUNS}"
        raise ConfigError(f"quantile({inside or ''}) is not a predictor", expected=expected)

    def combine(runs: Sequence[float]) -> float:
        # Rounded, because 0.9 * 10 is not exactly 9 in all such products.
        return sorted(runs)[max(ceil(round(share * len(runs), 9)), 1) - 1]

    return lambda _runtimes: RecentRuns(most, 1, combine, correction)


def _given(name: str, inside: str | None, most: int) -> tuple[list[str], str]:
    """Return up to `most` arguments of a predictor, and the rule of correction, its last argument if any.

    Raises `ConfigError` for further arguments, and for a word that is not a rule.
    """
    call = CallText(f"{name}({inside or ''})", name, inside)
    parts = call.arguments(0, most + 1)
    if parts and parts[-1] in CORRECTIONS:
        return parts[:-1], parts[-1]
    if len(parts) > most:
        raise unknown("correction", parts[-1], list(CORRECTIONS))
    return parts, STEPS_RULE


def _perfect(inside: str | None) -> Any:
    """The actual run time, as a bound for all predictors (Tsafrir, Etsion & Feitelson 2007)."""
    if inside is not None:
        raise ConfigError("perfect takes no arguments", expected="perfect")
    return Perfect


def _whole_mean(runs: Sequence[float]) -> float:
    """Return the mean in whole seconds, rounded down: the times of a log stay whole."""
    return floor(sum(runs) / len(runs))


PREDICTORS: dict[str, Callable[[str | None], Any]] = {
    "last-two": _last_two,
    "quantile": _quantile,
    "perfect": _perfect,
}
"""Name → a function from the text in parentheses (None without) to a maker, which gets the run times."""


def find_predictor(given: str | RunTimePredictor) -> Callable[[Sequence[float]], RunTimePredictor] | None:
    """Return a function that makes the given predictor from the run times; None for ``limit``.

    Predictors of other packages get no run times; an object is copied, so that no run changes it.

    Raises
    ------
    ConfigError
        If there is no predictor of this name, or it does not take its arguments.
    PluginError
        If the predictor of another package cannot be made.

    >>> find_predictor("limit") is None, find_predictor("quantile(0.5, 4)")([]).most
    (True, 4)
    """
    if not isinstance(given, str):
        if not KIND.fits(given):
            raise wrong("predictor", given, "the name of a predictor, or an object that learns and predicts")
        mine: RunTimePredictor = KIND.checked(given)
        return lambda _runtimes: CheckedPredictor(deepcopy(mine))
    name = given
    if name == LIMIT:
        return None
    plain, bracket, rest = name.partition("(")
    known = PREDICTORS.get(plain.strip())
    if known is not None and (not bracket or rest.endswith(")")):
        made: Callable[[Sequence[float]], RunTimePredictor] = known(rest[:-1] if bracket else None)
        return made
    own: RunTimePredictor | None = KIND.installed(name)
    if own is None:
        raise KIND.unknown(name, [LIMIT, "last-two", "quantile(P, N)", "perfect"])
    return lambda _runtimes: CheckedPredictor(deepcopy(own), name)
