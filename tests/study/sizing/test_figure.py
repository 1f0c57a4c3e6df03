"""The picture of an answer, and the directory that it is kept in."""

from __future__ import annotations

import math

import pytest

from simsched.errors import ConfigError
from simsched.report.figures.sizing import SizingFigure, SizingPanel, SizingPoint, save

CONTENT = SizingFigure(
    "p95_wait<=1h: 12 nodes",
    "nodes",
    (
        SizingPanel(
            "p95_wait",
            "s",
            "<=",
            3600.0,
            (
                SizingPoint(8, (90_000.0, 120_000.0), 105_000.0, 90_000.0, 120_000.0, False),
                SizingPoint(12, (0.0, 1800.0), 900.0, 0.0, 1800.0, True),
                SizingPoint(400, (0.0, 0.0), 0.0, 0.0, 0.0, True),
            ),
        ),
        SizingPanel(
            "utilisation", "share", ">=", 0.5, (SizingPoint(8, (0.9,), 0.9, math.nan, math.nan, True),)
        ),
        SizingPanel(
            "mean_bounded_slowdown",
            "ratio",
            "<=",
            4,
            (SizingPoint(8, (math.nan,), math.nan, math.nan, math.nan, False),),
        ),
    ),
    12.0,
    8.0,
    (2.0, 4.0),
)


@pytest.mark.quick(1)
@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_equal_figures_give_equal_bytes(tmp_path, ending):
    for name in "ab":
        save(CONTENT, tmp_path / f"{name}{ending}", dpi=60)
    first, second = ((tmp_path / f"{name}{ending}").read_bytes() for name in "ab")
    assert first == second
    assert len(first) > 5000


def test_what_is_drawn_is_said(tmp_path):
    save(CONTENT, tmp_path / "a.svg", dark=True)
    text = (tmp_path / "a.svg").read_text()
    for word in (
        "p95_wait (hours)",
        "utilisation (%)",
        "target: at most 1 h",
        "answer: 12 nodes",
        "some job never fits",
    ):
        assert word in text.replace("&lt;", "<")


def test_a_figure_of_nothing_but_machines_that_do_not_fit(tmp_path):
    nothing = SizingFigure(
        "no", "nodes", (SizingPanel("p95_wait", "s", "<=", 60.0, ()),), None, 1.0, (1.0, 2.0)
    )
    save(nothing, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be written as '\.gif'"):
        save(CONTENT, tmp_path / "a.gif")
    with pytest.raises(ConfigError, match="0 dots per inch"):
        save(CONTENT, tmp_path / "a.png", dpi=0)
