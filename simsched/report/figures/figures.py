"""Static figures of runs: PNG, SVG or PDF, by matplotlib.

Each kind of figure is an entry of `KINDS`: a summary, the function that draws it, and whether it
takes several runs.  Drawing needs no display.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from simsched.errors import ConfigError
from simsched.extras import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simsched.report.data.tables import Run

ENDINGS = (".png", ".svg", ".pdf")
MAX_DPI = 1200


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of figure: its content, the function that draws it (``module:function``), its size in inches.

    A kind with `several` compares any number of runs, another kind shows one.
    """

    summary: str
    drawn_by: str
    several: bool = False
    size: tuple[float, float] = (9.0, 4.5)


KINDS: dict[str, Kind] = {
    "gantt": Kind(
        "which job held which node when; without allocations, how many cores", "over_time:gantt", size=(11, 6)
    ),
    "utilisation": Kind("share of each resource type in use over time", "over_time:utilisation", True),
    "queue": Kind("queued and running jobs over time", "over_time:queue", True),
    "calendar": Kind("use of the machine by day, one column per week", "over_time:calendar", size=(11, 3)),
    "map": Kind("the cluster's nodes, coloured by how much they were used", "over_time:cluster_map"),
    "wait": Kind("distribution of waits", "jobs:waits", True, (7, 4.5)),
    "slowdown": Kind("distribution of bounded slowdowns", "jobs:slowdowns", True, (7, 4.5)),
    "heatmap": Kind("mean wait by size and run time of jobs", "jobs:heatmap", size=(7, 4.5)),
    "users": Kind("core hours and waits of the heaviest users", "jobs:users", size=(9, 5.5)),
    "reasons": Kind("why jobs did not run", "jobs:reasons"),
    "compare": Kind("several runs by their main figures", "jobs:comparison", True, (10, 4.5)),
}

_LIGHT = {"text.color": "#1b1f24", "axes.edgecolor": "#8a8f98", "figure.facecolor": "#ffffff"}
_DARK = {"text.color": "#e8ebef", "axes.edgecolor": "#6b7480", "figure.facecolor": "#1d2127"}


def _style(dark: bool) -> dict[str, Any]:
    colours = _DARK if dark else _LIGHT
    ink = colours["text.color"]
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
        "font.size": 9.5,
        "axes.titlesize": 10.5,
        "axes.titlelocation": "left",
        "figure.constrained_layout.use": True,
        "svg.hashsalt": "simsched",
    }


@contextmanager
def matplotlib_figures(dark: bool) -> Iterator[Any]:
    """Yield matplotlib's class of figures, in our style; ConfigError without matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise needs("a figure", error, extra="plot") from None
    with mpl.rc_context(cast("Any", _style(dark))):
        yield Figure


def draw(kind: str, runs: Sequence[Run], *, dark: bool = False) -> Any:
    """Draw a kind of figure and return it as a matplotlib Figure.

    Raises
    ------
    ConfigError : there is no such kind, it takes one run and got several, or matplotlib is not installed.
    RunError : the run lacks data that the figure needs, such as allocations.
    """
    if kind not in KINDS:
        raise ConfigError(f"unknown kind of figure {kind!r}", expected=", ".join(KINDS))
    known = KINDS[kind]
    if len(runs) > 1 and not known.several:
        raise ConfigError(f"{kind} shows one run, not {len(runs)}", expected="one run directory")
    with matplotlib_figures(dark) as figure_class:
        figure = figure_class(figsize=known.size)
        _function(known.drawn_by)(figure, runs)
    return figure


def _function(name: str) -> Callable[[Any, Sequence[Run]], None]:
    from importlib import import_module

    module, function = name.split(":")
    found: Callable[[Any, Sequence[Run]], None] = getattr(
        import_module(f"simsched.report.figures.{module}"), function
    )
    return found


def save(kind: str, runs: Sequence[Run], target: str | Path, *, dpi: int = 144, dark: bool = False) -> None:
    """Draw a kind of figure into a .png, .svg or .pdf file; the same runs give the same bytes."""
    path = Path(target)
    stamp = stamp_of(path, dpi)
    figure = draw(kind, runs, dark=dark)
    with matplotlib_figures(dark):
        save_figure(figure, path, dpi, stamp)


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
