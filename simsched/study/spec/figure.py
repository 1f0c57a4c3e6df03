"""Figures of a run by name: ``p95_wait``, ``mean_wait[user == alice]``.

::

    figure = NAME [ "[" query "]" ]

NAME is one of the figures of a report (`simsched.report.metrics.summary.METRICS`), or a statistic over
jobs: ``mean_``, ``median_``, ``min_``, ``max_`` or a percentile such as ``p80_`` before ``wait``,
``turnaround``, ``bounded_slowdown`` (``bsld``), ``slowdown``, ``run_time``, ``expansion_factor``
or ``per_processor_bounded_slowdown``.  The query is that of `simsched.workload.transforms.query`, in
which a single ``=`` may stand for ``==``; it restricts the figure to the jobs that match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from simsched.errors import SimschedError, did_you_mean
from simsched.formats.text.diagnostics import CaretError, refuse_broken_text

_NAME = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*)?\s*")
_SINGLE = re.compile(r"(?<![=!<>])=(?!=)")
_QUOTED = re.compile(r"""("[^"]*"|'[^']*')""")
_SIGN = re.compile(r"\s*(==|!=|<=|>=|(?<![=!<>])[<>](?!=)|~)\s*")
_STATISTIC = re.compile(r"(mean|median|min|max|p(\d{1,2}(?:\.\d{1,3})?))_(.+)")

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


def parse_figure(text: str) -> Figure:
    """Return the figure that a text names: ``p95_wait``, ``mean_wait[user == alice]``.

    Raises
    ------
    CaretError
        for a text that is not a figure, with the place of the fault.
    """
    refuse_broken_text(text)
    figure, at = read_figure(text)
    if text[at:].strip():
        raise CaretError("text after the figure", text=text, position=at, expected="the end")
    return figure


def read_figure(text: str) -> tuple[Figure, int]:
    """Read the figure at the beginning of a text; return it and the position after it."""
    head = _NAME.match(text)
    assert head is not None  # it matches the empty text
    if head[1] is None:
        raise CaretError(
            "the name of a figure is missing",
            text=text,
            position=head.end(),
            expected="a name such as p95_wait",
        )
    query, at = _query(text, head.end())
    name, unit = _known(head[1], text, head.start(1))
    figure = Figure(name, unit, query)
    if query and not (figure.statistic or name in OF_JOBS):
        raise CaretError(f"{name} is a figure of the whole machine and takes no query", text=text,
                          position=head.end(), expected="no query, or a figure such as p95_wait")  # fmt: skip
    return figure, at


def _query(text: str, at: int) -> tuple[str, int]:
    """Read ``[query]`` if it is there; return it, checked and normalized, and the position after it."""
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
    """Write ``==`` for ``=`` and one blank around every sign outside quotes."""
    parts = _QUOTED.split(query)
    for place in range(0, len(parts), 2):
        signed = _SIGN.sub(r" \1 ", _SINGLE.sub("==", parts[place]))
        parts[place] = re.sub(r"\s+", " ", signed)
    return "".join(parts).strip()


def _closing(text: str, at: int) -> int:
    """Return the position of the bracket that closes the one at `at`; quoted brackets do not count."""
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
    meant = did_you_mean(name, _examples(), cutoff=0.75)
    raise CaretError(f"unknown figure {given!r}{meant}", text=text, position=at, expected=_expected())


def _examples() -> list[str]:
    """Return names that a mistyped one is compared with; names with a free part appear by example."""
    from simsched.report.metrics.summary import known_metrics

    statistics = ("mean", "median", "min", "max", "p50", "p90", "p95", "p99")
    free = [f"{statistic}_{measure}" for measure in MEASURES for statistic in statistics]
    return [*free, "utilisation", *(m.name for m in known_metrics())]


def figure_names() -> list[str]:
    """Return the names of figures; names with a free part appear as patterns."""
    from simsched.report.metrics.summary import known_metrics

    free = [f"mean|median|min|max|pNN_{measure}" for measure in MEASURES]
    plain = [m.name for m in known_metrics() if not _STATISTIC.fullmatch(m.name)]
    return [*free, "utilisation", "utilisation_TYPE", "down_TYPE", *plain]


def _expected() -> str:
    """Return the names for an error message, the statistics folded into one pattern."""
    rest = [name for name in figure_names() if not name.startswith("mean|")]
    return ", ".join([f"(mean|median|min|max|pNN)_({'|'.join(MEASURES)})", *rest])
