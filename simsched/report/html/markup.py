"""The pieces of a page: its frame, the cards of a run, the panels of charts, tables."""

from __future__ import annotations

import math
from collections import defaultdict
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report.metrics.summary import metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from simsched.report.data.tables import RunTables

#: identifies a page that simsched wrote
GENERATOR = '<meta name="generator" content="simsched">'
#: the behaviour of a page; the last one starts it
SCRIPTS = ("page.js", "room.js", "job.js", "start.js")
#: most rows of a table; the page states the number of the others
MAX_ROWS = 300
#: the cards at the top of a run: label, figure, text below it
CARDS = (
    ("Jobs run", "jobs_run", "of {jobs}"),
    ("Mean wait", "mean_wait", "median {median_wait}"),
    ("95 % wait at most", "p95_wait", "longest {max_wait}"),
    ("Bounded slowdown", "mean_bounded_slowdown", "median {median_bounded_slowdown}"),
    ("Cores in use", "utilisation_core", "over the makespan"),
    ("Gpus in use", "utilisation_gpu", "over the makespan"),
    ("Nodes in use", "utilisation_node", "at least one unit held"),
    ("Goodput", "goodput", "lost {badput}"),
    (
        "Loss of capacity",
        "loss_of_capacity",
        "idle while a job would fit; {loss_of_capacity_any} while any waits",
    ),
    ("Makespan", "makespan", "{throughput}"),
    ("Backfilled", "backfill_share", "of the jobs that ran"),
    ("Fairness of users", "jain_users", "Jain index, 1 is even"),
)


def _asset(name: str) -> str:
    return (files("simsched.report") / "assets" / name).read_text(encoding="utf-8")


def frame(title: str, links: str, body: str, data: str, bokeh: str) -> str:
    """Return a whole page around a body, with its style, its script, BokehJS and the charts' data inside."""
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
{GENERATOR}
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)} - simsched report</title>
<style>{_asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header><strong>simsched report</strong><nav aria-label="Sections">{links}</nav>
<button id="theme" aria-pressed="false" title="Switch between light and dark">Dark</button></header>
<main id="main">
<noscript><p class="sorry">The charts of this page need JavaScript; its tables do not.</p></noscript>
{body}
</main>
<footer>Times count from the first submission, unless they are dates.
The CSV button of a chart or table downloads its data.</footer>
<script type="application/json" id="page-data">{data}</script>
<script>{bokeh}</script>
<script>{"".join(map(_asset, SCRIPTS))}</script>
</body>
</html>
"""


def cards(run: RunTables) -> str:
    """Return the cards at the top of a run, one per known figure."""
    figures = {name: human.quantity(value, metric(name).unit) for name, value in run.summary.items()}
    shown = defaultdict(lambda: human.MISSING, figures)
    ignored = run.summary.get("jobs_dropped", 0.0)
    shown["jobs"] = human.quantity(run.summary.get("jobs", math.nan) - ignored, "jobs")
    made = []
    for label, name, under in CARDS:
        value = shown[name]
        if value != human.MISSING:
            small = under.format_map(shown)
            hint = escape(metric(name).meaning)
            made.append(
                f'<div class="card" title="{hint}"><dt>{label}</dt>'
                f"<dd>{escape(value.removesuffix(' jobs'))}<small>{escape(small)}</small></dd></div>"
            )
    return f'<dl class="cards">{"".join(made)}</dl>'


def panel(
    title: str, place: str, note: str = "", tools: str = "", *, keys: bool = False, above: str = ""
) -> str:
    """Return the frame of one chart: title, tools, download, `above` the chart, and the chart's element."""
    focus = (
        f' tabindex="0" data-keys role="group" aria-label="{escape(title)}: arrows, + and -, 0"'
        if keys
        else f' role="img" aria-label="{escape(title)}; its data is behind CSV"'
    )
    below = f'<p class="note">{note}</p>' if note else ""
    return (
        f'<section class="panel"><div class="head"><h2>{escape(title)}</h2><div class="tools">{tools}'
        f'<button data-save="{place}" title="Download the data of this chart">CSV</button></div></div>{below}'
        f'{above}<div class="plot" id="{place}"{focus}></div></section>'
    )


def colour_key(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the key of a chart: colours, and the names that they stand for."""
    return "".join(
        f'<span class="key"><i style="background:{colour}"></i>{escape(name)}</span>'
        for colour, name in pairs
    )


def zoom_tools(colours: str = "") -> str:
    """Return the buttons that move the linked charts over time."""
    buttons = (
        ("in", "+", "Zoom in"),
        ("out", "−", "Zoom out"),  # noqa: RUF001 - a minus sign
        ("left", "◀", "Earlier"),
        ("right", "▶", "Later"),
        ("all", "All", "Show everything"),
    )
    made = "".join(
        f'<button data-move="{move}" aria-label="{name}" title="{name}">{sign}</button>'
        for move, sign, name in buttons
    )
    return colours + made


def table(
    name: str, title: str, head: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]], note: str = ""
) -> str:
    """Return a sortable table; `head` is (title, unit).

    The unit ``text`` makes a column of words, ``link`` one of pairs: a place of the page, and a text, and
    ``cell`` one of cells that are markup already.
    """
    heads = "".join(
        f'<th scope="col" aria-sort="none"{_class(unit)}><button>{escape(of)}{_unit(unit, of)}</button></th>'
        for of, unit in head
    )
    lines = list(rows)
    body = "".join(
        "<tr>" + "".join(_cell(v, unit) for v, (_, unit) in zip(row, head, strict=True)) + "</tr>"
        for row in lines[:MAX_ROWS]
    )
    if len(lines) > MAX_ROWS:
        note = f"{note} The run has {len(lines) - MAX_ROWS:,} more rows.".lstrip()
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return (
        f'<section class="panel"><div class="head"><h2>{escape(title)}</h2><div class="tools">'
        f'<button data-save-table="{name}" title="Download this table">CSV</button></div></div>{below}'
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(title)}"><table id="{name}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def _class(unit: str) -> str:
    return ' class="text"' if unit in ("text", "link") else ""


def _unit(unit: str, title: str) -> str:
    """Return the unit behind a title, unless the title or the values have it."""
    if unit == "h" and title.endswith("hours"):
        return ""
    return "" if unit in ("", "text", "link", "cell", "s", "share", "ratio") else f" ({unit})"


def _cell(value: Any, unit: str) -> str:
    if unit == "link":
        place, text = value
        return f'<td class="text"><a href="#{escape(place)}">{escape(text)}</a></td>'
    if unit == "text":
        return f'<td class="text">{escape(str(value))}</td>'
    if unit == "cell":
        return str(value)
    number = float(value)
    shown = human.quantity(number, unit if unit in ("s", "share") else "")
    plain = "" if number != number else f"{number:.10g}"  # noqa: PLR0124 - NaN is unlike itself
    return f'<td data-v="{plain}">{escape(shown)}</td>'


def group_rows(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the rows of a `metrics.by` table, the key first."""
    return [[key, *row] for key, row in zip(frame.index, frame.to_numpy().tolist(), strict=True)]


GROUP_HEAD = (
    ("jobs", ""),
    ("mean wait", "s"),
    ("median wait", "s"),
    ("95 % wait", "s"),
    ("mean bounded slowdown", "ratio"),
    ("core hours", "h"),
    ("share of core hours", "share"),
)
