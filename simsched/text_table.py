"""Tables: the one printer of aligned columns for a terminal, Markdown, and HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import clip
from simsched.visible import visible

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

#: characters of a line without a terminal
PAGE_WIDTH = 96
#: the first column of a table that must become narrower keeps this many characters
LEAST_FIRST = 12


def table_lines(
    rows: Iterable[Sequence[str]],
    right: Container[int] = (),
    *,
    least: Sequence[int] = (),
    gap: str = "  ",
    indent: str = "",
) -> list[str]:
    """Return one line per row, without blanks at its end.

    Parameters
    ----------
    rows : texts, the same number in each row; the first row may be a head.
    right : numbers of the columns that are aligned to the right; the others are aligned to the left.
    least : least width of the first columns, in characters.
    gap : what separates two columns.
    indent : what each line begins with.

    >>> table_lines([["job", "nodes"], ["a", "1,024"]], right=[1], gap=" | ")
    ['job | nodes', 'a   | 1,024']
    """
    table = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    widths = [max(pair) for pair in zip(widths, [*least, *[0] * len(widths)], strict=False)]
    return [indent + gap.join(_cells(row, widths, right)).rstrip() for row in table]


def _cells(row: Sequence[str], widths: Sequence[int], right: Container[int]) -> list[str]:
    return [
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def fitted_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], width: int, spare: Sequence[str] = ()
) -> str:
    """Return a table of at most `width` characters: the first column to the left, the others to the right.

    A table that is too wide loses the columns whose heads are in `spare`, one after another; then its
    first column becomes narrower.  If that is not enough, lines are longer than `width`.

    >>> print(fitted_table(["", "easy", "fcfs"], [["mean wait", "2 h", "3 h 20 min"]], width=80))
               easy        fcfs
    mean wait   2 h  3 h 20 min
    >>> rows = [["month-easy-1st", "2 h"], ["month-easy-2nd", "3 h"]]
    >>> print(fitted_table(["run", "mean wait"], rows, width=23))
    run          mean wait
    mont...-1st        2 h
    mont...-2nd        3 h
    """
    table = [list(head), *map(list, rows)]
    for title in spare:
        if _width(table) <= width:
            break
        kept = [at for at, name in enumerate(table[0]) if name != title]
        table = [[row[at] for at in kept] for row in table]
    over = _width(table) - width
    if over > 0:
        first = max(max(len(row[0]) for row in table) - over, LEAST_FIRST)
        whole = {row[0] for row in table}
        # names that differ only at their ends, as those of runs often do, stay different
        shorter = clip if len({clip_end(text, first) for text in whole}) < len(whole) else clip_end
        table = [[shorter(row[0], first), *row[1:]] for row in table]
    return "\n".join(table_lines(table, range(1, len(table[0]))))


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column to the left and the others to the right.

    >>> print(markdown_table(["", "easy"], [["mean wait", "2 h"]]))
    |  | easy |
    | :-- | --: |
    | mean wait | 2 h |
    """
    lines = [list(head), [":--", *["--:"] * (len(head) - 1)], *map(list, rows)]
    escaped = [[visible(c).replace("|", "\\|").replace("\n", " ") for c in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped)


def _width(table: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + 2 for column in zip(*table, strict=True)) - 2


def clip_end(text: str, width: int) -> str:
    """Return `text`, its end replaced by ``…`` if it is longer than `width` characters."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def html_table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a table with a caption; the first cell of each row is its label.

    >>> html_table("tiny", [("node", "4")])
    '<table><caption>tiny</caption><tr><th scope="row">node</th><td>4</td></tr></table>'
    """
    from html import escape  # 7 ms that most commands need not wait for

    names = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    lines = [f"<tr>{names}</tr>"] if head else []
    for label, *cells in rows:
        rest = "".join(f"<td>{escape(text)}</td>" for text in cells)
        lines.append(f'<tr><th scope="row">{escape(label)}</th>{rest}</tr>')
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def html_text(title: str, text: str) -> str:
    """Return a title and a text whose lines and spaces are kept.

    >>> html_text("never", "node: 4 exist")
    '<div><strong>never</strong><pre>node: 4 exist</pre></div>'
    """
    from html import escape  # 7 ms that most commands need not wait for

    return f"<div><strong>{escape(title)}</strong><pre>{escape(text)}</pre></div>"
