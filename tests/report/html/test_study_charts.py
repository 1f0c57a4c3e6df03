"""The chart of a study: lines over numbers, dots over names."""

from __future__ import annotations

import pytest

from simsched.report.html.charts import ChartLine, lines_chart


def glyphs(at):
    lines = [ChartLine(name, at, (1.0, 2.0), (0.5, 1.5), (1.5, 2.5)) for name in ("one", "two")]
    chart = lines_chart(lines, "x", "mean wait (s)", ["red", "blue"])
    return [type(renderer.glyph).__name__ for renderer in chart.renderers], chart


@pytest.mark.parametrize(("at", "joined"), [((1.0, 1.2), True), (("fcfs", "easy"), False)])
def test_names_are_not_joined_by_a_line(at, joined):
    kinds, _ = glyphs(at)
    assert ("Line" in kinds) == joined
    assert kinds.count("Scatter") == 2


def test_dots_of_several_lines_stand_side_by_side():
    _, chart = glyphs(("fcfs", "easy"))
    places = {renderer.data_source.data["x"][0] for renderer in chart.renderers}
    assert len(places) == 2
    assert {name for name, _ in places} == {"fcfs"}
