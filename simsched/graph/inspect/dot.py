"""Pictures of a cluster: a folded graph as Graphviz text or as an SVG of our own.

Columns are depths, left to right; a box is a class of equal vertices (see `fold`), with a
second outline if it contains several.  The SVG is laid out here, so that it needs no other program.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from simsched.errors import ConfigError
from simsched.graph.inspect.fold import ALIKE, APART, SIBLINGS, Fold, fold
from simsched.graph.inspect.view import which
from simsched.graph.pool import UP
from simsched.graph.resource_graph import CONTAINMENT, ResourceGraph, pool_of

if TYPE_CHECKING:
    from collections.abc import Sequence

FEW = 48
"""Up to this number of vertices, each gets a box of its own."""

MAX_BOXES = 2_000

MAX_FOLDED_FINELY = 200_000
"""A larger graph is folded the coarsest way at once."""

_COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#777777")
_FIXED = {"node": 0, "gpu": 4, "core": 2, "memory": 3, "rack": 6, "cluster": 6, "socket": 1, "numa": 1}
_ROW, _HEIGHT, _GAP, _MARGIN, _CHAR = 58, 46, 60, 16, 6.6


def dot(graph: ResourceGraph, subsystem: str = CONTAINMENT, *, apart: bool | None = None) -> str:
    """Return the folded subsystem in Graphviz's language.

    Raises
    ------
    ConfigError
        if the graph has no such subsystem, or the picture would have more than 2,000 boxes.
    """
    classes, lines = _classes(graph, subsystem, apart), []
    for number, one in enumerate(classes):
        words = r"\n".join(_quoted(line) for line in _lines(graph, one))
        lines.append(f'  v{number} [label="{words}"];')
    for number, one in enumerate(classes):
        for count, below in one.below:
            many = f' [label="{count} ×"]' if count > 1 else ""
            lines.append(f"  v{number} -> v{below}{many};")
    name = _quoted(str(graph.graph.get("name", "cluster")))
    head = f'digraph "{name}" {{\n  rankdir=LR;\n  node [shape=box, fontname="sans-serif"];\n'
    return head + "\n".join(lines) + "\n}\n"


def svg(graph: ResourceGraph, subsystem: str = CONTAINMENT, *, apart: bool | None = None) -> str:
    """Return the folded subsystem as a standalone SVG document; errors as `dot`."""
    classes = _classes(graph, subsystem, apart)
    boxes = _laid_out(graph, classes)
    width = max(box.x + box.width for box in boxes) + _MARGIN + 6
    height = max(box.y for box in boxes) + _HEIGHT + _MARGIN + 6
    title = escape(f"{graph.graph.get('name', 'cluster')}: {subsystem}")
    size = f'width="{width:.0f}" height="{height:.0f}"'
    view = f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view}>', f"<title>{title}</title>"]
    parts.append(f'<rect {size} fill="white"/>')
    for box, one in zip(boxes, classes, strict=True):
        parts += [_curve(box, boxes[below], count) for count, below in one.below]
    parts += [_drawn(box) for box in boxes]
    return "\n".join([*parts, "</svg>", ""])


def _classes(graph: ResourceGraph, subsystem: str, apart: bool | None) -> list[Fold]:
    """Return the boxes: single vertices if they are few, else equal siblings or equal vertices folded."""
    if apart and len(graph) > MAX_FOLDED_FINELY:
        raise ConfigError(
            f"{len(graph):,} vertices are too many for boxes of their own", expected=f"at most {MAX_BOXES:,}"
        )
    if apart:
        ways = [APART]
    elif apart is None and len(graph) <= MAX_FOLDED_FINELY:
        ways = [APART, SIBLINGS, ALIKE]
    else:
        ways = [ALIKE]
    for how in ways:
        classes = fold(graph, subsystem, how=how)
        if len(classes) <= FEW:
            break
    if not classes:
        raise ConfigError(f"no subsystem {subsystem!r} in this cluster")
    if len(classes) > MAX_BOXES:
        raise ConfigError(
            f"{len(classes):,} boxes are too many for a picture", expected=f"at most {MAX_BOXES:,}"
        )
    return classes


def _lines(graph: ResourceGraph, one: Fold) -> list[str]:
    """Return the lines in a box: type and number, then names, then properties and status."""
    found = [pool_of(graph, vertex) for vertex in one.vertices]
    first = found[0]
    head = first.type
    if first.unit:
        head += f"  {first.size:,} {first.unit}"
    elif first.size != 1 or first.ids is not None:
        head = f"{first.size:,} {first.type}"
    if len(found) > 1:
        head = f"{len(found):,} × {head}"
    status = [f"({first.status})"] if first.status != UP else []
    marks = " ".join([*status, *first.properties])
    return [line for line in (head, which(found), marks if len(marks) <= 40 else f"{marks[:37]}…") if line]


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


# --- layout --------------------------------------------------------------------------


@dataclass(slots=True)
class _Box:
    lines: list[str]
    colour: str
    many: bool
    width: float
    x: float = 0.0
    y: float = 0.0


def _laid_out(graph: ResourceGraph, classes: Sequence[Fold]) -> list[_Box]:
    """Place boxes: x by depth, y in the middle of the boxes below."""
    places = dict(_FIXED)  # colours by type: fixed for the usual ones, in turn for others
    boxes = []
    for one in classes:
        lines = _lines(graph, one)
        turn = len(places) - len(_FIXED)
        place = places.setdefault(pool_of(graph, one.vertices[0]).type, 5 - turn % 6)
        width = 20 + _CHAR * max(len(line) for line in lines)
        boxes.append(_Box(lines, _COLOURS[place], len(one.vertices) > 1, width))
    x = float(_MARGIN)
    for depth in range(max(one.depth for one in classes) + 1):
        column = [box for box, one in zip(boxes, classes, strict=True) if one.depth == depth]
        widest = max((box.width for box in column), default=0)
        for box in column:
            box.x, box.width = x, widest
        x += widest + _GAP
    _place_rows(classes, boxes)
    return boxes


def _place_rows(classes: Sequence[Fold], boxes: Sequence[_Box]) -> None:
    """Give each leaf the next row, in depth-first order; others get the middle of the boxes below."""
    owned: list[list[int]] = [[] for _ in classes]
    seen: set[int] = set()
    for number, one in enumerate(classes):
        for _, below in one.below:
            if below not in seen and classes[below].depth == one.depth + 1:
                seen.add(below)
                owned[number].append(below)
    row = 0
    stack = [number for number in reversed(range(len(classes))) if number not in seen]
    while stack:
        number = stack.pop()
        stack.extend(reversed(owned[number]))
        if not classes[number].below:
            boxes[number].y = _MARGIN + row * _ROW
            row += 1
    for one, box in zip(reversed(classes), reversed(boxes), strict=True):
        if one.below:
            rows = [boxes[below].y for _, below in one.below]
            box.y = (min(rows) + max(rows)) / 2
    for depth in {one.depth for one in classes}:
        _spread([box for box, one in zip(boxes, classes, strict=True) if one.depth == depth])


def _spread(column: Sequence[_Box]) -> None:
    """Move overlapping boxes of one column apart, around their middle."""
    ordered = sorted(column, key=lambda box: box.y)
    start = 0
    for end in range(1, len(ordered) + 1):
        if end < len(ordered) and ordered[end].y - ordered[end - 1].y < _HEIGHT:
            continue
        group = ordered[start:end]
        middle = sum(box.y for box in group) / len(group)
        for turn, box in enumerate(group if len(group) > 1 else ()):
            box.y = max(_MARGIN + turn * _ROW, middle + (turn - (len(group) - 1) / 2) * _ROW)
        start = end


def _curve(source: _Box, target: _Box, count: int) -> str:
    x1, y1 = source.x + source.width, source.y + _HEIGHT / 2
    x2, y2 = target.x, target.y + _HEIGHT / 2
    middle = (x1 + x2) / 2
    bend = f"M{x1:.0f},{y1:.0f} C{middle:.0f},{y1:.0f} {middle:.0f},{y2:.0f} {x2:.0f},{y2:.0f}"
    path = f'<path d="{bend}" fill="none" stroke="#999"/>'
    if count < 2:
        return path
    place = f'x="{x2 - 6:.0f}" y="{y2 - 4:.0f}"'
    halo = 'stroke="white" stroke-width="4" paint-order="stroke"'
    return f'{path}<text {place} text-anchor="end" fill="#555" font-size="11" {halo}>{count:,}×</text>'


def _drawn(box: _Box) -> str:
    shape = f'width="{box.width:.0f}" height="{_HEIGHT}" rx="4" stroke="{box.colour}" stroke-width="1.5"'
    parts = []
    if box.many:
        parts.append(f'<rect x="{box.x + 4:.0f}" y="{box.y + 4:.0f}" {shape} fill="#f4f4f4"/>')
    parts.append(f'<rect x="{box.x:.0f}" y="{box.y:.0f}" {shape} fill="white"/>')
    start = box.y + _HEIGHT / 2 + 4 - 6.5 * (len(box.lines) - 1)
    for turn, line in enumerate(box.lines):
        style = 'font-weight="bold"' if turn == 0 else 'fill="#444" font-size="11"'
        y = start + 13 * turn
        parts.append(f'<text x="{box.x + 8:.0f}" y="{y:.0f}" {style}>{escape(line)}</text>')
    return "".join(parts)
