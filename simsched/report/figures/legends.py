"""Legends above the charts, where they cover no data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Axes = Any
LETTER, KEY, LINE = 0.6, 4.0, 1.5
"""Width of a letter, and of a key with its margins, and height of a line, in sizes of the font."""


def legend_above(axes: Axes, handles: Sequence[Any] | None = None, **style: Any) -> None:
    """Draw the legend of a chart above it, in as many columns as fit the figure, which grows by more lines.

    `handles` are its entries (default: what has a label in the chart), `style` is for matplotlib.
    """
    entries = axes.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not entries:
        return
    letters = max(len(str(one.get_label())) for one in entries)
    size = axes.xaxis.label.get_size() / 72
    width, height = axes.figure.get_size_inches()
    columns = max(1, min(len(entries), int(width / (size * (LETTER * letters + KEY)))))
    lines = -(-len(entries) // columns)
    axes.figure.set_size_inches(width, height + (lines - 1) * LINE * size)
    axes.figure.legend(handles=entries, loc="outside upper right", ncols=columns, **style)
