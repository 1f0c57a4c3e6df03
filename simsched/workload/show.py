"""The text of ``workload show``: the data of `describe` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.human import seconds
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BAR = 40
_MOST_WEEKS = 60


def as_text(data: Mapping[str, Any]) -> str:
    """Return the whole description as text, sections separated by blank lines."""
    return "\n".join(_lines(data)) + "\n"


def skip_text(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of ignored records, one reason per line, with the first places."""
    rows = [[f"{row['count']:,}", row["reason"], str(row["first"])] for row in table]
    return table_lines(rows, right=[0], least=[9], indent="  ")


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    name = data["name"] or data["source"]
    yield f"{name}: {data['jobs']:,} jobs of {data['records']:,} records ({data['kind']})"
    for key in ("Computer", "Installation", "Acknowledge", "Map"):
        if key in data["header"]:
            yield f"  {key}: {data['header'][key].splitlines()[0]}"
    yield from (f"  {line}" for line in data["history"])
    if data["skipped"]:
        yield ""
        yield "ignored:"
        yield from skip_text(data["skipped"])
    if data["jobs"]:
        yield from _body(data)


def _body(data: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"submitted over   {seconds(data['span_seconds'])}"
    if "clock" in data:
        yield f"dates            {data['first']} to {data['last']}, {data['clock']['zone_text']}"
    yield f"work             {data['work_processor_hours']:,.0f} processor hours"
    if data["load"] is not None:
        yield f"offered load     {data['load']:.3f} of {data['capacity']:,} processors"
    yield f"processors       {_spread(data['size'], lambda value: f'{value:,.0f}')}"
    yield f"run time         {_spread(data['runtime'], seconds)}"
    yield f"requests         {data['shapes']:,} different"
    yield f"users            {data['users']['number']:,}      queues {data['queues']['number']:,}"
    statuses = ", ".join(f"{name} {count:,}" for name, count in data["statuses"].items())
    yield f"in the trace     {statuses}"
    yield from _section("jobs by processors", [(_range(row), row["jobs"]) for row in data["sizes"]])
    yield from _section("jobs by run time", [(_times(row), row["jobs"]) for row in data["run_times"]])
    yield from _section(
        "jobs by hour of day", [(f"{hour:02d}", n) for hour, n in enumerate(data["hours_of_day"])]
    )
    yield from _weeks(data)
    yield from _estimates(data)
    for key in ("users", "queues"):
        if data[key]["number"] > 1:
            rows = [(row["name"], row["jobs"]) for row in data[key]["top"]]
            yield from _section(f"jobs by {key[:-1]}", rows)


def _weeks(data: Mapping[str, Any]) -> Iterator[str]:
    weeks = data["weeks"][:_MOST_WEEKS]
    if data["load"] is None:
        yield from _section(
            "processor hours by week", [(_week(w), round(w["processor_hours"])) for w in weeks]
        )
    else:
        yield from _section("load by week, %", [(_week(w), round(100 * w["load"], 1)) for w in weeks])
    if len(data["weeks"]) > _MOST_WEEKS:
        yield f"  … and {len(data['weeks']) - _MOST_WEEKS} weeks more"


def _week(row: Mapping[str, Any]) -> str:
    """Return the number of a week, or the date on which it begins."""
    return str(row.get("begin", row["week"]))[:10]


def _estimates(data: Mapping[str, Any]) -> Iterator[str]:
    found = data["estimates"]
    yield ""
    if found is None:
        yield "no job has a limit"
        return
    yield (
        f"limits: {found['distinct']:,} different, the 20 most popular hold {found['top20_share']:.0%}; "
        f"run time / limit {found['mean_accuracy']:.2f} in the mean, {found['median_accuracy']:.2f} median; "
        f"{found['over_limit']:,} jobs ran longer, {data['unlimited']:,} have none"
    )
    yield from _section("popular limits", [(seconds(p["seconds"]), p["jobs"]) for p in found["popular"]])
    accuracy = found["accuracy_histogram"]
    rows = [(f"{index / 10:.1f}-{(index + 1) / 10:.1f}", count) for index, count in enumerate(accuracy)]
    yield from _section("run time / limit", rows)


def _section(title: str, rows: Sequence[tuple[str, float]]) -> Iterator[str]:
    """A title and one bar per row; leading and trailing empty rows are omitted."""
    filled = [index for index, (_, value) in enumerate(rows) if value]
    if not filled:
        return
    rows = rows[filled[0] : filled[-1] + 1]
    most = max(value for _, value in rows)
    yield ""
    yield f"{title}:"
    bars = [[label, f"{value:,}", "#" * round(BAR * value / most)] for label, value in rows]
    yield from table_lines(bars, right=[0, 1], least=[0, 9], indent="  ")


def _spread(found: Mapping[str, float], form: Any) -> str:
    return ", ".join(f"{name} {form(found[name])}" for name in ("min", "median", "mean", "p95", "max"))


def _range(row: Mapping[str, Any]) -> str:
    return str(row["to"]) if row["from"] == row["to"] else f"{row['from']}-{row['to']}"


def _times(row: Mapping[str, Any]) -> str:
    return (
        f"from {seconds(row['from'])}"
        if row["to"] is None
        else f"{seconds(row['from'])} - {seconds(row['to'])}"
    )
