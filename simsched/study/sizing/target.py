"""Targets: what a machine has to do, as text: ``p95_wait<=1h``, ``p95_wait[queue == debug]<=10m``.

::

    target   = figure relation value
    figure   = NAME [ "[" query "]" ]
    relation = "<=" | ">=" | "<" | ">" | "≤" | "≥"
    value    = a duration (30m, 1.5h) for times; a number or per cent (80%) for shares; else a number

NAME is one of the figures of a report (`report.summary.METRICS`), or a statistic of what each job
has: ``mean_``, ``median_``, ``min_``, ``max_`` or a percentile such as ``p80_`` before ``wait``,
``turnaround``, ``bounded_slowdown`` (``bsld``), ``slowdown``, ``run_time``, ``expansion_factor``
or ``per_processor_bounded_slowdown``.  The query is that of `workload.query`, in which a single
``=`` may stand for ``==``; the figure is then of those jobs alone.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, FormatError, SimschedError
from simsched.formats.rfc.duration import format_duration, parse_duration
from simsched.formats.text.diagnostics import CaretError, refuse_broken_text
from simsched.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SIGNS = {"≤": "<=", "≥": ">="}
_TEXT = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*)?\s*")
_RELATION = re.compile(r"\s*(<=|>=|=<|=>|==|!=|<|>|=|≤|≥)\s*")
_SINGLE = re.compile(r"(?<![=!<>])=(?!=)")
_QUOTED = re.compile(r"""("[^"]*"|'[^']*')""")
_SIGN = re.compile(r"\s*(==|!=|<=|>=|(?<![=!<>])[<>](?!=)|~)\s*")
_STATISTIC = re.compile(r"(mean|median|min|max|p(\d{1,2}(?:\.\d{1,3})?))_(.+)")

#: measure of each job → unit
MEASURES = {
    "wait": "s",
    "turnaround": "s",
    "run_time": "s",
    "bounded_slowdown": "ratio",
    "slowdown": "ratio",
    "per_processor_bounded_slowdown": "ratio",
    "expansion_factor": "ratio",
}
#: figures that are taken of some jobs alone just as of all
OF_JOBS = (
    "jobs",
    "jobs_run",
    "jobs_completed",
    "jobs_timeout",
    "jobs_failed",
    "jobs_infeasible",
    "throughput",
    "share_waited",
    "area_weighted_response",
    "backfill_share",
    "mean_queue_length",
    "jain_users",
)
#: figures that grow with the machine and shrink with its load; all others shrink and grow
RISING = ("throughput", "jobs_run", "jobs_completed", "jain_users")
#: other words for figures, as people write them
WORDS = (
    ("utilization", "utilisation"),
    ("avg_", "mean_"),
    ("average_", "mean_"),
    ("bsld", "bounded_slowdown"),
    ("response_time", "turnaround"),
    ("runtime", "run_time"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of a run: its name, its unit (``s``, ``share``, ``ratio``, ``jobs`` …), of which jobs.

    `query` is empty for the whole run.  ``str()`` is the text that `parse_figure` reads.
    """

    name: str
    unit: str
    query: str = ""

    def __str__(self) -> str:
        return f"{self.name}[{self.query}]" if self.query else self.name

    @property
    def statistic(self) -> tuple[str, str] | None:
        """The statistic and the measure of ``p80_wait``; None for a figure that has no such parts."""
        found = _STATISTIC.fullmatch(self.name)
        return (found[1], found[3]) if found and found[3] in MEASURES else None


@dataclass(frozen=True, slots=True)
class Target:
    """A figure and the bound that it has to keep.

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
        """The bound as it is written in a target."""
        return format_duration(self.bound) if self.figure.unit == "s" else f"{self.bound:.12g}"

    def met_by(self, value: float) -> bool:
        """Whether a value of the figure keeps the bound; NaN does not."""
        return _RELATIONS[self.relation](value, self.bound)

    @property
    def eases(self) -> bool:
        """Whether a larger machine (or less load) helps: waits, slowdowns; not so a use of at least 80 %."""
        return (self.relation[0] == "<") != (self.figure.name in RISING)


def parse_targets(texts: str | Target | Iterable[str | Target]) -> tuple[Target, ...]:
    """Return the targets of one or several texts, in order, without repetitions.

    Raises
    ------
    CaretError
        with the place of the fault.
    ConfigError
        without any target.
    """
    if not isinstance(texts, str | Target | Iterable):
        raise ConfigError(f"{texts!r} is no target", expected="a text such as p95_wait<=1h, or several")
    given = [texts] if isinstance(texts, str | Target) else list(texts)
    for item in given:
        if not isinstance(item, str | Target):
            raise ConfigError(f"{item!r} is no target", expected="a text such as p95_wait<=1h")
    found = [item if isinstance(item, Target) else parse_target(item) for item in given]
    if not found:
        raise ConfigError("no target", expected="one or more, such as p95_wait<=1h")
    return tuple(dict.fromkeys(found))


def parse_target(text: str) -> Target:
    """Return the target that a text says; see the module for the grammar.

    Raises
    ------
    CaretError
        with the place of the fault, and what was expected there.
    """
    refuse_broken_text(text)
    figure, at = _figure(text)
    sign = _RELATION.match(text, at)
    if sign is None:
        raise CaretError("no relation", text=text, position=at, expected="<=, >=, < or >")
    relation = _SIGNS.get(sign[1], sign[1])
    if relation not in _RELATIONS:
        raise CaretError(f"{sign[1]!r} bounds nothing", text=text, position=sign.start(1),
                          expected="<=, >=, < or >")  # fmt: skip
    return Target(figure, relation, _bound(text, sign.end(), figure))


def parse_figure(text: str) -> Figure:
    """Return the figure that a text names: ``p95_wait``, ``mean_wait[user == alice]``.

    Raises
    ------
    CaretError
        with the place of the fault.
    """
    refuse_broken_text(text)
    figure, at = _figure(text)
    if text[at:].strip():
        raise CaretError("more than a figure", text=text, position=at, expected="the end")
    return figure


def _figure(text: str) -> tuple[Figure, int]:
    """Read the figure at the beginning of a text; return it and where it ends."""
    head = _TEXT.match(text)
    assert head is not None  # it matches the empty text
    if head[1] is None:
        raise CaretError("no figure", text=text, position=head.end(), expected="a name such as p95_wait")
    query, at = _query(text, head.end())
    name, unit = _known(head[1], text, head.start(1))
    figure = Figure(name, unit, query)
    if query and not (figure.statistic or name in OF_JOBS):
        raise CaretError(f"{name} is of the whole machine and not of some jobs", text=text,
                          position=head.end(), expected="no query, or a figure such as p95_wait")  # fmt: skip
    return figure, at


def _query(text: str, at: int) -> tuple[str, int]:
    """Read ``[query]`` if it is there: return it, checked and with blanks in order, and where it ends."""
    if not text.startswith("[", at):
        return "", at
    end = _closing(text, at)
    inside = _tidy(text[at + 1 : end])
    from simsched.workload.transforms.query import parse_query

    try:
        parse_query(inside)
    except SimschedError as error:
        raise CaretError(f"in the query: {error.message}", text=text, position=at + 1,
                          expected=error.expected) from None  # fmt: skip
    return inside, end + 1


def _tidy(query: str) -> str:
    """Write ``==`` for ``=`` and one blank around every sign, but for what is in quotes."""
    parts = _QUOTED.split(query)
    for place in range(0, len(parts), 2):
        signed = _SIGN.sub(r" \1 ", _SINGLE.sub("==", parts[place]))
        parts[place] = re.sub(r"\s+", " ", signed)
    return "".join(parts).strip()


def _closing(text: str, at: int) -> int:
    """Return the place of the bracket that closes the one at `at`; those in quotes do not count."""
    quote = ""
    for place in range(at + 1, len(text)):
        sign = text[place]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "]":
            return place
    raise CaretError("unclosed '['", text=text, position=at, expected="']'")


def _known(given: str, text: str, at: int) -> tuple[str, str]:
    """Return the name and the unit of a figure as it was written."""
    from simsched.report.metrics.summary import METRICS

    name = given
    for word, ours in WORDS:
        name = re.sub(rf"(?<![a-z]){re.escape(word)}", ours, name)
    name = name.replace("bounded_bounded", "bounded")
    units = {m.name: m.unit for m in METRICS}
    if name in units:
        return name, units[name]
    if name == "utilisation" or re.fullmatch(r"(utilisation|down)_[A-Za-z][\w.-]*", name):
        return name, "share"
    found = _STATISTIC.fullmatch(name)
    if found and found[3] in MEASURES and (found[2] is None or 0 < float(found[2]) < 100):
        return name, MEASURES[found[3]]
    meant = did_you_mean(name, _examples(), cutoff=0.75)
    raise CaretError(f"unknown figure {given!r}{meant}", text=text, position=at, expected=_expected())


def _examples() -> list[str]:
    """Return names of figures to compare a mistyped one with, those with a free part by example."""
    from simsched.report.metrics.summary import METRICS

    statistics = ("mean", "median", "min", "max", "p50", "p90", "p95", "p99")
    free = [f"{statistic}_{measure}" for measure in MEASURES for statistic in statistics]
    return [*free, "utilisation", *(m.name for m in METRICS)]


def figure_names() -> list[str]:
    """Return the names that targets may have, those with a free part as patterns."""
    from simsched.report.metrics.summary import METRICS

    free = [f"mean|median|min|max|pNN_{measure}" for measure in MEASURES]
    plain = [m.name for m in METRICS if not _STATISTIC.fullmatch(m.name)]
    return [*free, "utilisation", "utilisation_TYPE", "down_TYPE", *plain]


def _expected() -> str:
    """Return the names in an error, those of statistics in one."""
    rest = [name for name in figure_names() if not name.startswith("mean|")]
    return ", ".join([f"(mean|median|min|max|pNN)_({'|'.join(MEASURES)})", *rest])


def _bound(text: str, at: int, figure: Figure) -> float:
    written = text[at:].strip()
    if not written:
        raise CaretError("no value", text=text, position=len(text.rstrip()), expected=_example(figure.unit))
    try:
        value = _value(written, figure.unit)
    except (FormatError, ValueError) as error:
        message = error.message if isinstance(error, FormatError) else f"{written!r} is no number"
        raise CaretError(message, text=text, position=at, expected=_example(figure.unit)) from None
    if not 0 <= value < float("inf"):
        raise CaretError(f"{written!r} bounds nothing", text=text, position=at,
                          expected=_example(figure.unit))  # fmt: skip
    if figure.unit == "share" and value > 1:
        raise CaretError(f"a share of {written}", text=text, position=at, expected="0 to 1, or 0% to 100%")
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
