"""Static figures of runs: PNG, SVG or PDF, by matplotlib.

Each kind of figure is an entry of `KINDS`: a summary, the function that draws it, and whether it
takes several runs.  Drawing needs no display.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from simsched.errors import ConfigError, did_you_mean
from simsched.extras import needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.report.data.gantt_view import GanttView
    from simsched.report.data.tables import RunTables
    from simsched.report.waiting.job_answer import JobWait

ENDINGS = (".png", ".svg", ".pdf")
MAX_DPI = 1200


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of figure: its content, the function that draws it, its size in inches.

    A kind with `several` compares any number of runs, another kind shows one.  The function of a kind
    `in_part` is in `gantt_figure` and takes a `GanttView` besides, that of another is in `run_figures`.  A
    `wide` kind has more than fits one column of a paper.
    """

    summary: str
    drawn_by: str
    several: bool = False
    size: tuple[float, float] = (9.0, 4.5)
    in_part: bool = False
    wide: bool = False


PAPERS = {"single": 3.5, "double": 7.16}
"""Widths in inches of figures over one and two columns of text, as IEEE's journals have them."""
_UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
"""Unit of a width → inches; a point is that of TeX, in which LaTeX prints ``\\columnwidth``."""
NARROW = 5.0
"""A figure of fewer inches counts as one for a single column."""


def inches(paper: str) -> float:
    """Return the width of a figure in a paper: a name of `PAPERS`, or a width such as ``8.5cm``.

    Raises
    ------
    ConfigError : the text is neither, or the width is not between 1 and 40 inches.

    >>> round(inches("8.5cm"), 2), inches("double")
    (3.35, 7.16)
    """
    if paper in PAPERS:
        return PAPERS[paper]
    found = re.fullmatch(r"\s*(\d{1,4}(?:\.\d{0,6})?)\s*(in|cm|mm|pt)\s*", paper)
    width = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 1 <= width <= 40:
        expected = f"{', '.join(PAPERS)}, or a width of 1 to 40 in such as 8.5cm (in, cm, mm, pt)"
        raise ConfigError(f"{paper!r} is not the width of a figure", expected=expected)
    return width


KINDS: dict[str, Kind] = {
    "gantt": Kind(
        "which job held which node when; without allocations, how many cores",
        "gantt",
        size=(11, 6),
        in_part=True,
    ),
    "utilisation": Kind("share of each resource type in use over time", "utilisation", True),
    "queue": Kind("queued and running jobs over time", "queue", True),
    "calendar": Kind("use of the machine by day, one column per week", "calendar", size=(11, 3)),
    "map": Kind("the cluster's nodes, coloured by how much they were used", "cluster_map"),
    "room": Kind(
        "racks, switches … (or blocks of nodes) over time: use, outages, fragmentation",
        "room",
        size=(11, 6),
        wide=True,
    ),
    "waits": Kind("jobs that wait over time, by the cause of the wait", "waits", wide=True),
    "wait": Kind("distribution of waits", "wait_curves", True, (7, 4.5)),
    "slowdown": Kind("distribution of bounded slowdowns", "slowdown_curves", True, (7, 4.5)),
    "heatmap": Kind("mean wait by size and run time of jobs", "heatmap", size=(7, 4.5), wide=True),
    "users": Kind("core hours and waits of the heaviest users", "users", size=(9, 5.5), wide=True),
    "reasons": Kind("why jobs did not run", "reasons"),
    "compare": Kind("several runs by their main figures", "comparison", True, (10, 4.5), wide=True),
}

_LIGHT = {"text.color": "#1b1f24", "axes.edgecolor": "#8a8f98", "figure.facecolor": "#ffffff"}
_DARK = {"text.color": "#e8ebef", "axes.edgecolor": "#6b7480", "figure.facecolor": "#1d2127"}


def _style(dark: bool, paper: bool) -> dict[str, Any]:
    colours = _DARK if dark else _LIGHT
    ink = colours["text.color"]
    letters = 8.0 if paper else 9.5
    return {
        **colours,
        "axes.facecolor": colours["figure.facecolor"],
        "savefig.facecolor": colours["figure.facecolor"],
        "axes.labelcolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#8a8f98",
        "grid.alpha": 0.25,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "font.size": letters,
        "axes.titlesize": letters + (0 if paper else 1),
        "axes.titlelocation": "left",
        "figure.constrained_layout.use": True,
        "svg.hashsalt": "simsched",
        "pdf.fonttype": 42,  # journals refuse the bitmap-like fonts of type 3
    }


@contextmanager
def matplotlib_figures(dark: bool, *, paper: bool = False) -> Iterator[Any]:
    """Yield the function that makes figures in our style; ConfigError without matplotlib."""
    try:
        import matplotlib as mpl

        from simsched.report.figures.shown_figure import ShownFigure
    except ModuleNotFoundError as error:
        raise needs("a figure", error, extra="plot") from None
    style = _style(dark, paper)
    with mpl.rc_context(cast("Any", style)):
        yield partial(ShownFigure, style=style)


def draw(
    kind: str,
    runs: Sequence[RunTables],
    *,
    dark: bool = False,
    view: GanttView | None = None,
    paper: str | None = None,
    grey: bool = False,
) -> Any:
    """Draw a kind of figure and return it as a matplotlib Figure.

    `view` is the part of a Gantt chart that is drawn.  `paper` is the width of a column of text, as
    `inches` reads it; `grey` replaces colours by shades of grey and lets lines differ by dashes.

    Raises
    ------
    ConfigError : there is no such kind, it takes one run and got several, it has no parts, the view does
        not fit the run, or matplotlib is not installed.
    RunError : the run lacks data that the figure needs, such as allocations.
    """
    if kind not in KINDS:
        raise ConfigError(
            f"unknown kind of figure {kind!r}{did_you_mean(kind, KINDS)}", expected=", ".join(KINDS)
        )
    known = KINDS[kind]
    content: list[Any] = [runs]
    if len(runs) > 1 and not known.several:
        raise ConfigError(f"{kind} shows one run, not {len(runs)}", expected="one run directory")
    if known.in_part:
        from simsched.report.data.gantt_view import GanttView

        content.append(view or GanttView())
    elif view is not None:
        parts = [name for name, one in KINDS.items() if one.in_part]
        raise ConfigError(f"a part of a run cannot be chosen for {kind}", expected=", ".join(parts))
    figure = _drawn(kind, known, content, dark=dark, paper=paper, grey=grey)
    if paper is not None and len(figure.axes) == 1 + len(figure.axes[0].images):
        figure.axes[0].set_title("", loc="left")  # in a paper the caption says it
    return figure


def draw_job(
    run: RunTables, answer: JobWait, *, dark: bool = False, paper: str | None = None, grey: bool = False
) -> Any:
    """Draw the wait of one job of a run, by cause over time; a matplotlib Figure.

    Raises
    ------
    ConfigError : the width of the paper is unknown, or matplotlib is not installed.
    RunError : the job did not wait.
    """
    rows = len({period.cause for period in answer.periods}) + len(answer.holders)
    kind = Kind("", "job_wait", size=(9.0, 1.6 + 0.32 * rows))
    return _drawn("the wait of a job", kind, [run, answer], dark=dark, paper=paper, grey=grey)


def _drawn(
    name: str, kind: Kind, content: Sequence[Any], *, dark: bool, paper: str | None, grey: bool
) -> Any:
    """Return the figure that the function of a kind draws of its content."""
    if paper is not None and inches(paper) < NARROW and kind.wide:
        wide = f"double, or {NARROW:g} in and more"
        raise ConfigError(f"{name} does not fit into one column", where="paper", expected=wide)
    with matplotlib_figures(dark, paper=paper is not None) as figure_class:
        figure = figure_class(figsize=_size(kind, paper))
        from simsched.report.figures import gantt_figure, run_figures

        getattr(gantt_figure if kind.in_part else run_figures, kind.drawn_by)(figure, *content)
        if grey:
            from simsched.report.figures.paper import in_grey

            in_grey(figure)
    return figure


def _size(kind: Kind, paper: str | None) -> tuple[float, float]:
    """Return the inches of a figure; narrow ones are taller for their width, so that letters fit."""
    if paper is None:
        return kind.size
    wanted, (width, height) = inches(paper), kind.size
    return wanted, wanted * max(height / width, 0.62 if wanted < NARROW else 0.45)


def save(
    kind: str,
    runs: Sequence[RunTables],
    target: str | Path,
    *,
    dpi: int = 144,
    dark: bool = False,
    view: GanttView | None = None,
    paper: str | None = None,
    grey: bool = False,
) -> None:
    """Draw a kind of figure into a .png, .svg or .pdf file; the same runs give the same bytes."""
    path = Path(target)
    stamp = stamp_of(path, dpi)
    save_figure(draw(kind, runs, dark=dark, view=view, paper=paper, grey=grey), path, dpi, stamp)


def save_figure(figure: Any, path: Path, dpi: int, stamp: Mapping[str, Any]) -> None:
    """Write a matplotlib Figure as a whole or not at all; RunError if it cannot be written."""
    from simsched.files import replacing

    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix.lower()[1:], dpi=dpi, metadata=dict(stamp))


def stamp_of(path: Path, dpi: int) -> dict[str, Any]:
    """Return metadata without the date, so that equal figures are equal files.

    Raises
    ------
    ConfigError : the ending or the resolution is not supported.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(
            f"a figure cannot be written as {ending!r}" if ending else "the file name has no ending",
            where=str(path),
            expected=", ".join(ENDINGS),
        )
    if not 1 <= dpi <= MAX_DPI:
        raise ConfigError(f"{dpi} dots per inch", expected=f"1 to {MAX_DPI}")
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {"Software": "simsched"})


def plain_log_axis(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_formatter(NullFormatter())
