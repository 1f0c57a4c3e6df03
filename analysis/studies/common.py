"""What the studies share: inputs made by the command line, a page written, pictures saved."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import simsched as ss
from simsched.cli import main
from simsched.report.export import markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).resolve().parent
OUTPUT = Path(os.environ.get("SIMSCHED_STUDIES") or HERE)
#: SIMSCHED_STUDIES_QUICK=1 runs every study on a small part of its workload, to see that it works
QUICK = bool(os.environ.get("SIMSCHED_STUDIES_QUICK"))
BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, VIOLET, GREY = (
    "#1c7fc4", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7b61c4", "#8a8f98")  # fmt: skip
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, VIOLET, GREY)


def simsched(*arguments: str) -> None:
    """Run one command line of simsched in this process; stop the study if it fails."""
    print("$ simsched", *arguments, flush=True)
    if main(list(arguments)) != 0:
        raise SystemExit(f"failed: simsched {' '.join(arguments)}")


@contextmanager
def scratch():
    """A directory for inputs and runs, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="simsched-study-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Page:
    """The page of one study: question, method, result, figures; written when the study is done."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.parts = [f"# {title}"]
        self.started = time.perf_counter()
        (OUTPUT / "figures").mkdir(parents=True, exist_ok=True)

    def section(self, title: str, *paragraphs: str) -> None:
        """Add a section of paragraphs."""
        self.parts += [
            f"## {title}",
            *(" ".join(p.split()) for p in paragraphs),
        ]

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table."""
        self.parts.append(markdown_table(head, list(rows)))

    def figure(self, figure, name: str, caption: str) -> None:
        """Save a matplotlib figure and show it with its caption."""
        file = OUTPUT / "figures" / f"{self.name}-{name}.png"
        figure.savefig(file, dpi=110, metadata={"Software": "simsched"})
        self.parts.append(f"![{caption}](figures/{file.name})\n\n*{caption}*")

    def write(self) -> None:
        """Write the page."""
        took = time.perf_counter() - self.started
        again = f"`python -m analysis.studies.{self.name}`"
        self.parts.append(f"---\n\nMade by {again} with simsched {ss.__version__}.")
        file = OUTPUT / f"{self.name}.md"
        file.write_text("\n\n".join(self.parts) + "\n", encoding="utf-8")
        print(f"written: {file} ({took:.0f} s)", flush=True)


def new_figure(width: float = 8.0, height: float = 4.0):
    """A matplotlib figure that needs no display, laid out so that nothing overlaps."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def key(axes, columns: int = 4) -> None:
    """Say above the axes what the lines are, where nothing can lie beneath."""
    axes.legend(frameon=False, fontsize=8, ncols=columns, loc="lower left", bbox_to_anchor=(0, 1))


def tidy(axes, x: str, y: str, title: str = "") -> None:
    """Label the axes with their units and take away what is not needed."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
