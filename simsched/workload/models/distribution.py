"""Distributions as text: ``exp(1h)``, ``lognormal(30m, 1.2)``, ``uniform(10m, 2h)``, ``45m``.

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

from dataclasses import dataclass
from math import isfinite, log
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.calls import parse_call
from simsched.formats.rfc.duration import MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.arrays import Floats

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
            return cls("constant", (_seconds(text, "constant", where),))
        if call.name not in KINDS:
            raise ConfigError(f"unknown distribution {call.name!r}", where=where, expected=", ".join(KINDS))
        kind = call.name
        fewest, most, _ = KINDS[kind]
        try:
            arguments = call.arguments(fewest, most)
        except ConfigError as error:
            raise ConfigError(error.message, where=where, expected=error.expected) from None
        given = tuple(_seconds(argument, kind, where) for argument in arguments)
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


def _seconds(argument: Any, kind: str, where: str | None) -> float:
    from simsched.formats.rfc.duration import parse_duration

    try:
        value = parse_duration(argument.strip() if isinstance(argument, str) else argument, where)
    except SimschedError as error:
        raise ConfigError(f"{kind}: {error.message}", where=where, expected=error.expected) from None
    if not (isfinite(value) and (value > 0 or kind in {"constant", "uniform", "quantiles"})):
        raise ConfigError(
            f"{argument!r} is not valid for {kind}", where=where, expected="finite numbers above 0"
        )
    return value
