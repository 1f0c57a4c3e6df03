"""Targets of a search as text: ``p95_wait<=1h``, ``p95_wait[queue == debug]<=10m``.

::

    target   = figure relation value
    figure   = NAME [ "[" query "]" ]
    relation = "<=" | ">=" | "<" | ">" | "≤" | "≥"
    value    = a duration (30m, 1.5h) for times; a number or per cent (80%) for shares; else a number

NAME is one of the figures of a report (`summary.METRICS`), or a statistic of a value per
job: ``mean_``, ``median_``, ``min_``, ``max_`` or a percentile such as ``p80_`` before ``wait``,
``turnaround``, ``bounded_slowdown`` (``bsld``), ``slowdown``, ``run_time``, ``expansion_factor``
or ``per_processor_bounded_slowdown``.  The query is that of `parse_query`, in which a single
``=`` may stand for ``==``; the figure is then of those jobs alone.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, FormatError
from simsched.formats.rfc.duration import format_duration, parse_duration
from simsched.formats.text.diagnostics import CaretError, refuse_broken_text
from simsched.study.spec.figure import RISING, Figure, read_figure

if TYPE_CHECKING:
    from collections.abc import Callable

_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SIGNS = {"≤": "<=", "≥": ">="}
_RELATION = re.compile(r"\s*(<=|>=|=<|=>|==|!=|<|>|=|≤|≥)\s*")


@dataclass(frozen=True, slots=True)
class SizingTarget:
    """A figure and the bound that it has to meet.

    >>> target = parse_target("p95_wait[queue=debug] <= 10m")
    >>> str(target), target.bound, target.met_by(599.0), target.eases
    ('p95_wait[queue == debug]<=10m', 600.0, True, True)
    """

    figure: Figure
    relation: str
    bound: float

    def __str__(self) -> str:
        return f"{self.figure}{self.relation}{self.written_bound}"

    @property
    def written_bound(self) -> str:
        """The bound as a target writes it."""
        return format_duration(self.bound) if self.figure.unit == "s" else f"{self.bound:.12g}"

    def met_by(self, value: float) -> bool:
        """Whether a value of the figure meets the bound; NaN does not."""
        return _RELATIONS[self.relation](value, self.bound)

    @property
    def eases(self) -> bool:
        """Whether a larger machine or less load helps: true for waits, false for a use of at least 80 %."""
        return (self.relation[0] == "<") != (self.figure.name in RISING)


def parse_targets(texts: str | SizingTarget | Iterable[str | SizingTarget]) -> tuple[SizingTarget, ...]:
    """Return the targets of one or several texts, in order, without repetitions.

    Raises
    ------
    CaretError
        for a text that is not a target, with the place of the fault.
    ConfigError
        if there is no target.
    """
    if not isinstance(texts, str | SizingTarget | Iterable):
        raise ConfigError(f"{texts!r} is not a target", expected="a text such as p95_wait<=1h, or several")
    given = [texts] if isinstance(texts, str | SizingTarget) else list(texts)
    for item in given:
        if not isinstance(item, str | SizingTarget):
            raise ConfigError(f"{item!r} is not a target", expected="a text such as p95_wait<=1h")
    found = [item if isinstance(item, SizingTarget) else parse_target(item) for item in given]
    if not found:
        raise ConfigError("there is no target", expected="one or more, such as p95_wait<=1h")
    return tuple(dict.fromkeys(found))


def parse_target(text: str) -> SizingTarget:
    """Return the target of a text; the module states the grammar.

    Raises
    ------
    CaretError
        for a text that is not a target, with the place of the fault.
    """
    refuse_broken_text(text)
    figure, at = read_figure(text)
    sign = _RELATION.match(text, at)
    if sign is None:
        raise CaretError("a relation is missing", text=text, position=at, expected="<=, >=, < or >")
    relation = _SIGNS.get(sign[1], sign[1])
    if relation not in _RELATIONS:
        raise CaretError(f"{sign[1]!r} is not a bound", text=text, position=sign.start(1),
                          expected="<=, >=, < or >")  # fmt: skip
    return SizingTarget(figure, relation, _bound(text, sign.end(), figure))


def _bound(text: str, at: int, figure: Figure) -> float:
    written = text[at:].strip()
    if not written:
        raise CaretError(
            "a value is missing", text=text, position=len(text.rstrip()), expected=_example(figure.unit)
        )
    try:
        value = _value(written, figure.unit)
    except (FormatError, ValueError) as error:
        message = error.message if isinstance(error, FormatError) else f"{written!r} is not a number"
        raise CaretError(message, text=text, position=at, expected=_example(figure.unit)) from None
    if not 0 <= value < float("inf"):
        raise CaretError(f"{written!r} is not a bound", text=text, position=at,
                          expected=_example(figure.unit))  # fmt: skip
    if figure.unit == "share" and value > 1:
        raise CaretError(
            f"a share of {written} is out of range", text=text, position=at, expected="0 to 1, or 0% to 100%"
        )
    return value


def _value(written: str, unit: str) -> float:
    if unit == "s":
        return parse_duration(written)
    if unit == "share" and written.endswith("%"):
        return float(written[:-1]) / 100
    return float(written)


def _example(unit: str) -> str:
    return {"s": "a duration such as 90, 30m, 1.5h or 2d", "share": "a share such as 0.8 or 80%"}.get(
        unit, "a number"
    )
