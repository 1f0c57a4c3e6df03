"""Figures of a run by name and targets for them, as text: ``p95_wait``, ``p95_wait[queue == debug]<=10m``.

::

    figure   = NAME [ "[" query "]" ]
    target   = figure relation value
    relation = "<=" | ">=" | "<" | ">" | "≤" | "≥"
    value    = a duration (30m, 1.5h) for times; a number or per cent (80%) for shares; else a number

NAME is one of the figures of a report (`simsched.report.metrics.summary.METRICS`), or a statistic over
jobs: ``mean_``, ``median_``, ``min_``, ``max_`` or a percentile such as ``p80_`` before ``wait``,
``turnaround``, ``bounded_slowdown`` (``bsld``), ``slowdown``, ``run_time``, ``expansion_factor``
or ``per_processor_bounded_slowdown``.  The query is that of `simsched.workload.transforms.query`; it
restricts the figure to the jobs that match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from simsched.errors import ConfigError, FormatError, did_you_mean
from simsched.formats.rfc.duration import format_duration, parse_duration
from simsched.formats.text.diagnostics import CaretError, refuse_broken_text
from simsched.workload.transforms.query import COMPARE, query_in

_NAME = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*)?\s*")
_STATISTIC = re.compile(r"(mean|median|min|max|p(\d{1,2}(?:\.\d{1,3})?))_(.+)")
_RELATION = re.compile(r"\s*(<=|>=|=<|=>|==|!=|<|>|=|≤|≥)\s*")
_BOUNDS = {**{sign: sign for sign in ("<=", ">=", "<", ">")}, "≤": "<=", "≥": ">="}
_EXPECTED = "<=, >=, < or >"
_EXAMPLES = {"s": "a duration such as 90, 30m, 1.5h or 2d", "share": "a share such as 0.8 or 80%"}

#: measure of a job → unit
MEASURES = {
    "wait": "s",
    "turnaround": "s",
    "run_time": "s",
    "bounded_slowdown": "ratio",
    "slowdown": "ratio",
    "per_processor_bounded_slowdown": "ratio",
    "expansion_factor": "ratio",
}
#: figures that can be restricted to the jobs of a query
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
#: figures that rise with the machine and fall with the load; all others fall and rise
RISING = ("throughput", "jobs_run", "jobs_completed", "jain_users")
#: other spelling of a part of a name → our spelling
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
    """A figure of a run: name, unit (``s``, ``share``, ``ratio``, ``jobs`` …) and query of its jobs.

    `query` is empty for the whole run.  ``str()`` gives the text that `parse_figure` reads.
    """

    name: str
    unit: str
    query: str = ""

    def __str__(self) -> str:
        return f"{self.name}[{self.query}]" if self.query else self.name

    @property
    def statistic(self) -> tuple[str, str] | None:
        """Statistic and measure, such as ``p80`` and ``wait``; None for a figure without such parts."""
        found = _STATISTIC.fullmatch(self.name)
        return (found[1], found[3]) if found and found[3] in MEASURES else None


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
        return COMPARE[self.relation](value, self.bound)

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


def parse_figure(text: str) -> Figure:
    """Return the figure that a text names: ``p95_wait``, ``mean_wait[user == alice]``.

    Raises
    ------
    CaretError
        for a text that is not a figure, with the place of the fault.
    """
    figure, at = _figure(text)
    if text[at:].strip():
        raise CaretError("text after the figure", text=text, position=at, expected="the end")
    return figure


def parse_target(text: str) -> SizingTarget:
    """Return the target of a text; the module states the grammar.

    Raises
    ------
    CaretError
        for a text that is not a target, with the place of the fault.
    """
    figure, at = _figure(text)
    sign = _RELATION.match(text, at)
    if sign is None:
        raise CaretError("a relation is missing", text=text, position=at, expected=_EXPECTED)
    if sign[1] not in _BOUNDS:
        position = sign.start(1)
        raise CaretError(f"{sign[1]!r} is not a bound", text=text, position=position, expected=_EXPECTED)
    return SizingTarget(figure, _BOUNDS[sign[1]], _bound(text, sign.end(), figure.unit))


def _bound(text: str, at: int, unit: str) -> float:
    written = text[at:].strip()

    def fault(
        message: str, position: int = at, expected: str = _EXAMPLES.get(unit, "a number")
    ) -> CaretError:
        return CaretError(message, text=text, position=position, expected=expected)

    if not written:
        raise fault("a value is missing", len(text.rstrip()))
    try:
        if unit == "s":
            value = parse_duration(written)
        else:
            per_cent = unit == "share" and written.endswith("%")
            value = float(written[:-1]) / 100 if per_cent else float(written)
    except FormatError as error:
        raise fault(error.message) from None
    except ValueError:
        raise fault(f"{written!r} is not a number") from None
    if not 0 <= value < float("inf"):
        raise fault(f"{written!r} is not a bound")
    if unit == "share" and value > 1:
        raise fault(f"a share of {written} is out of range", expected="0 to 1, or 0% to 100%")
    return value


def _figure(text: str) -> tuple[Figure, int]:
    """Read the figure at the beginning of a text; return it and the position after it."""
    refuse_broken_text(text)
    head = _NAME.match(text)
    assert head is not None  # it matches the empty text
    at = head.end()
    if head[1] is None:
        expected = "a name such as p95_wait"
        raise CaretError("the name of a figure is missing", text=text, position=at, expected=expected)
    query, end = query_in(text, at) if text.startswith("[", at) else ("", at)
    name, unit = _known(head[1], text, head.start(1))
    figure = Figure(name, unit, query)
    if query and not (figure.statistic or name in OF_JOBS):
        raise CaretError(f"{name} is a figure of the whole machine and takes no query", text=text,
                          position=at, expected="no query, or a figure such as p95_wait")  # fmt: skip
    return figure, end


def _known(given: str, text: str, at: int) -> tuple[str, str]:
    """Return our name and the unit of a figure; `given` may be another spelling."""
    from simsched.report.metrics.summary import known_metrics

    name = given
    for word, ours in WORDS:
        name = re.sub(rf"(?<![a-z]){re.escape(word)}", ours, name)
    name = name.replace("bounded_bounded", "bounded")
    units = {m.name: m.unit for m in known_metrics()}
    if given in units:
        return given, units[given]
    if name in units:
        return name, units[name]
    if name == "utilisation" or re.fullmatch(r"(utilisation|down)_[A-Za-z][\w.-]*", name):
        return name, "share"
    found = _STATISTIC.fullmatch(name)
    if found and found[3] in MEASURES and (found[2] is None or 0 < float(found[2]) < 100):
        return name, MEASURES[found[3]]
    # a mistyped name is compared with examples of names that have a free part
    statistics = ("mean", "median", "min", "max", "p50", "p90", "p95", "p99")
    free = [f"{statistic}_{measure}" for measure in MEASURES for statistic in statistics]
    meant = did_you_mean(name, [*free, "utilisation", *units], cutoff=0.75)
    rest = [name for name in figure_names() if not name.startswith("mean|")]
    expected = ", ".join([f"(mean|median|min|max|pNN)_({'|'.join(MEASURES)})", *rest])
    raise CaretError(f"unknown figure {given!r}{meant}", text=text, position=at, expected=expected)


def figure_names() -> list[str]:
    """Return the names of figures; names with a free part appear as patterns."""
    from simsched.report.metrics.summary import known_metrics

    free = [f"mean|median|min|max|pNN_{measure}" for measure in MEASURES]
    plain = [m.name for m in known_metrics() if not _STATISTIC.fullmatch(m.name)]
    return [*free, "utilisation", "utilisation_TYPE", "down_TYPE", *plain]
