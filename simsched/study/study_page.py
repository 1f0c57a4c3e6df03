"""``report.html`` of a study: figures over its axes, with intervals over the seeds.

Runs are not drawn one by one: figures are averaged over the seeds, differences are computed seed by
seed, and only a few runs are compared job by job.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, RunError
from simsched.extras import needs
from simsched.files import write_file
from simsched.report import palette
from simsched.report.html import markup
from simsched.report.metrics.summary import metric
from simsched.study.grid import NOISE, Grid, best_setting, reality_notes

if TYPE_CHECKING:
    from simsched.report.data.tables import RunTables
    from simsched.study.grid import BestSetting, SettingPair
    from simsched.study.study_folder import StudyResult


#: figures in charts and tables, if the study has them
FIGURES = ("mean_wait", "p95_wait", "mean_bounded_slowdown", "utilisation_core", "utilisation_gpu")
#: number of charts per figure at most: one for each combination of the axes that it does not show
MAX_FACETS = 4
#: number of runs that are compared job by job
MAX_RUNS = 4


def write_page(result: StudyResult) -> bool:
    """Write ``report.html``; return false if Bokeh (the extra ``plot``) is not installed."""
    try:
        text = page(result)
    except ConfigError:
        return False
    write_file(result.path / "report.html", text)
    return True


def page(result: StudyResult) -> str:
    """Return the page.

    Raises
    ------
    ConfigError
        if Bokeh is not installed.
    """
    try:
        from simsched.report.html import charts as plot_bokeh
        from simsched.report.html import compare_section as plot_compare
    except ModuleNotFoundError as error:
        raise needs("an HTML page", error, extra="plot") from None
    grid = Grid(result)
    charts: list[dict[str, Any]] = []
    few = _few(result, grid)
    parts = [
        _lead(result),
        _answer(grid),
        _in_words(grid),
        _charts(grid, charts),
        _table(grid),
        _failures(result),
    ]
    body = f'<section class="run" id="study">{"".join(parts)}</section>'
    links = '<a href="#study">Study</a>'
    if len(few) > 1:
        named = "; ".join(f"{run.name}: {settings}" for run, settings in few)
        which = f"{len(few)} of the {result.record['counts']['runs']:,} runs of the study: {named}."
        body += plot_compare.comparison([run for run, _ in few], charts, which)
        links += '<a href="#comparison">Job by job</a>'
    return plot_bokeh.whole_page(result.name, links, body, charts)


def _lead(result: StudyResult) -> str:
    counts, seeds = result.record["counts"], len(result.record["seeds"])
    facts = [f"{counts['done']:,} of {counts['runs']:,} runs"]
    facts += [f"{seeds} seeds"] if seeds > 1 else []
    facts += [
        f"{axis}: {', '.join(map(str, labels))}" for axis, labels in result.axes.items() if len(labels) < 10
    ]
    text = f"<p>{escape(result.record['description'])}</p>" if result.record["description"] else ""
    text += "".join(f"<p class='note'>{escape(line)}</p>" for line in reality_notes(result.record))
    return f"<h1>{escape(result.name)}</h1><p class='lead'>{escape(' · '.join(facts))}</p>{text}"


def _answer(grid: Grid) -> str:
    """Return the best setting by the first figure, all settings, and all pairs of them compared."""
    name = next((name for name in FIGURES if grid.has(name)), None)
    best = best_setting(grid, name) if name else None
    if best is None:
        return ""
    unit = metric(best.figure).unit
    title = best.figure.replace("_", " ")
    over = f"Means over {best.combinations:,} combinations of the other axes" if best.combinations > 1 else ""
    seeds = f"Differences are computed seed by seed, over {best.seeds} seeds; " if best.seeds > 1 else ""
    noise = f"each interval is that of one pair of settings. {best.noise.capitalize()}: it contains 0."
    note = ". ".join(filter(None, (over, f"{seeds}{noise}" if seeds else "")))
    head = [(best.axis, "text"), (title, unit), ("95 % from", unit), ("95 % to", unit)]
    rows = [[label, found.estimate, found.low, found.high] for label, found in best.means.items()]
    pairs = [
        [one.better, one.worse, one.difference.interval.estimate, one.difference.interval.low,
         one.difference.interval.high, _verdict(one, best)]
        for one in best.pairs
    ]  # fmt: skip
    columns = [("setting", "text"), ("against", "text"), ("difference", unit), ("95 % from", unit),
               ("95 % to", unit), ("verdict", "text")]  # fmt: skip
    if best.seeds < 2:  # there are no intervals
        del head[2:], columns[3:5]
        rows, pairs = [row[:2] for row in rows], [[*row[:3], row[-1]] for row in pairs]
    return (
        f'<section class="panel"><h2>Answer</h2><p><strong>{escape(best.sentence)}.</strong></p></section>'
        '<div class="pair uneven">'
        + markup.table("settings", f"Settings by {title}", head, rows)
        + markup.table("pairs", "All pairs of settings", columns, pairs, note)
        + "</div>"
    )


def _verdict(pair: SettingPair, best: BestSetting) -> str:
    """Return whether the first setting of a pair is better, or the difference may be chance."""
    if best.seeds < 2:
        return "chance is unknown"
    verdict = pair.difference.verdict
    return {"same": "the same", NOISE: best.noise}.get(verdict, f"{pair.better} is better")


def _in_words(grid: Grid) -> str:
    """Return the comparison of each setting of the series with the first one."""
    lines = [
        f"<li><strong>{escape(one.label)}</strong> against {escape(one.base)}: the mean wait is "
        f"{escape(one.counted)}.</li>"
        for one in grid.verdicts("mean_wait")
    ]
    if not lines:
        return ""
    note = f"{grid.one_seed}: the effect of chance is unknown, and any of these may be noise."
    if grid.several:
        note = f"Seed by seed, so that shared chance cancels; {grid.noise}: the 95 % interval contains 0."
    return (
        f'<section class="panel"><h2>In words</h2><p class="note">{note}</p>'
        f'<ul class="verdicts">{"".join(lines)}</ul></section>'
    )


def _charts(grid: Grid, charts: list[dict[str, Any]]) -> str:
    from simsched.report.html.charts import Charts, lines_chart

    if grid.x is None:
        return ""
    drawn, panels = Charts(), []
    names = [name for name in FIGURES if grid.has(name)]
    for number, name in enumerate(names):
        unit = metric(name).unit
        for place, (title, lines, scale) in enumerate(grid.facets(name)[:MAX_FACETS]):
            colours = palette.cycle(len(lines))
            shown = "%" if unit == "share" else "" if unit == "ratio" else scale
            label = name.replace("_", " ") + (f" ({shown})" if shown else "")
            spot = f"study-{number}-{place}"
            drawn.add(spot, lines_chart(lines, grid.x, label, colours))
            keys = markup.colour_key((colour, line.name) for line, colour in zip(lines, colours, strict=True))
            heading = name.replace("_", " ").capitalize() + (f" — {title}" if title else "")
            panels.append(markup.panel(heading, spot, keys if len(lines) > 1 else ""))
    charts.append(drawn.as_json("study"))
    left = len(grid.facets(names[0])) - MAX_FACETS if names else 0
    more = f'<p class="note">{left} more combinations are in the table.</p>' if left > 0 else ""
    return f'<div class="pair">{"".join(panels)}</div>{more}'


def _table(grid: Grid) -> str:
    names = [name for name in FIGURES if grid.has(name)]
    head: list[tuple[str, str]] = [(axis, "text") for axis in grid.axes] + [("runs", "")]
    for name in names:
        head.append((name.replace("_", " "), metric(name).unit))
        head += [("±", metric(name).unit)] if grid.several else []
    note = "Means over the seeds; ± is half the 95 % interval of the mean." if grid.several else ""
    return markup.table("grid", "All combinations", head, grid.rows(names, markup.MAX_ROWS), note)


def _failures(result: StudyResult) -> str:
    failed = result.failures
    if not failed:
        return ""
    head = (("run", ""), ("settings", "text"), ("reason", "text"))
    rows = [
        [f["run"], ", ".join(f"{axis} {label}" for axis, label in f["settings"].items()), f["reason"]]
        for f in failed
    ]
    return markup.table("failures", "Runs without a result", head, rows)


def _few(result: StudyResult, grid: Grid) -> list[tuple[RunTables, str]]:
    """Return the runs that are compared job by job, one per setting of the series, and their settings."""
    found = []
    for number in grid.handful(MAX_RUNS):
        try:
            run = result.run(number)
            settings = result.record["plan"][number]["settings"]
            run.name = str(settings.get(grid.series, run.name)) if grid.series else run.name
            len(run.jobs)
        except RunError:  # its tables were not kept
            continue
        found.append(
            (run, f"run {number}, " + ", ".join(f"{axis} {label}" for axis, label in settings.items()))
        )
    return found
