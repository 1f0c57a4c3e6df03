"""What notebooks show of a value: small HTML tables and preformatted text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a table with a caption; the first cell of each row is its label.

    >>> html_table("tiny", [("node", "4")])
    '<table><caption>tiny</caption><tr><th scope="row">node</th><td>4</td></tr></table>'
    """
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
    return f"<div><strong>{escape(title)}</strong><pre>{escape(text)}</pre></div>"
