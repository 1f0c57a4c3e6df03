"""What pages of results share: a page that a program writes, with sections, tables and figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import simsched as ss
from simsched.report.export import markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, VIOLET, GREY = (
    "#1c7fc4", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7b61c4", "#8a8f98")  # fmt: skip
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, VIOLET, GREY)


class ResultPage:
    """A page of results, written into a folder when its program is done.

    Parameters
    ----------
    name : the name of the file, and of its figures.
    output : the folder.
    command : the command that writes the page again.
    """

    def __init__(self, name: str, title: str, output: Path, command: str) -> None:
        self.name, self.output, self.command = name, Path(output), command
        self.parts = [f"# {title}"]
        self.started, self.used = time.perf_counter(), time.process_time()
        (self.output / "figures").mkdir(parents=True, exist_ok=True)

    def section(self, title: str, *paragraphs: str) -> None:
        """Add a section of paragraphs."""
        self.parts.append(f"## {title}")
        self.text(*paragraphs)

    def text(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        self.parts += [" ".join(p.split()) for p in paragraphs]

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table."""
        self.parts.append(markdown_table(head, list(rows)))

    def figure(self, figure, name: str, caption: str) -> None:
        """Save a matplotlib figure and show it with its caption."""
        file = self.output / "figures" / f"{self.name}-{name}.png"
        figure.savefig(file, dpi=110, metadata={"Software": "simsched"})
        self.parts.append(f"![{caption}](figures/{file.name})\n\n*{caption}*")

    def write(self, *, timed: bool = False) -> None:
        """Write the page; `timed` states how much processor time its program used."""
        took, used = time.perf_counter() - self.started, time.process_time() - self.used
        last = f"Made by `{self.command}` with simsched {ss.__version__}"
        last += f" in {max(1, round(used / 60))} min of processor time." if timed else "."
        self.parts.append(f"---\n\n{last}")
        file = self.output / f"{self.name}.md"
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
