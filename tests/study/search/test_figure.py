"""The picture of an answer, and the directory that it is kept in."""

from __future__ import annotations

import math

import pytest

from simsched.errors import ConfigError
from simsched.study.search.answer import Answer
from simsched.study.search.evaluation import AcceptanceRule, Evaluation
from simsched.study.search.seeds import Seeds
from simsched.study.search.size_axis import SizeAxis
from simsched.study.search.threshold import smallest
from simsched.study.spec.target import parse_targets

TARGETS = WAIT, USE, SLOWDOWN = parse_targets(["p95_wait<=1h", "utilisation>=50%", "mean_bsld<=4"])
RULE = AcceptanceRule(TARGETS)
NAN = (math.nan, math.nan)
TRIALS = (
    Evaluation(400, {WAIT: (0.0, 0.0), USE: (0.9, 0.1), SLOWDOWN: NAN}, ()),
    Evaluation(8, {WAIT: (90_000.0, 120_000.0), USE: (0.9, 0.9), SLOWDOWN: NAN}, (WAIT, SLOWDOWN)),
    Evaluation(12, {WAIT: (0.0, 1800.0), USE: (0.4, 0.6), SLOWDOWN: NAN}, (USE,)),
    Evaluation(4, {}, (), infeasible=2, refused=True),
    Evaluation(2, {}, (), infeasible=2, refused=True),
)
AXIS = SizeAxis("nodes", "nodes", 8, ())


def draw(path, trials=TRIALS, answer=12, **options):
    search = smallest(lambda _: False, 1, 1)
    tried = {trial.value: trial for trial in trials}
    Answer("size", AXIS, RULE, Seeds(2, 0), answer, None, None, search, tried, 8, {}).plot(path, **options)


@pytest.mark.quick(1)
@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_equal_figures_give_equal_bytes(tmp_path, ending):
    for name in "ab":
        draw(tmp_path / f"{name}{ending}", dpi=60)
    first, second = ((tmp_path / f"{name}{ending}").read_bytes() for name in "ab")
    assert first == second
    assert len(first) > 5000


def test_what_is_drawn_is_said(tmp_path):
    draw(tmp_path / "a.svg", dark=True)
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
    draw(tmp_path / "a.png", TRIALS[3:], None)
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be written as '\.gif'"):
        draw(tmp_path / "a.gif")
    with pytest.raises(ConfigError, match="0 dots per inch"):
        draw(tmp_path / "a.png", dpi=0)
