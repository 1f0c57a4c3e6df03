"""The trained example, ``analysis/rl.py``: it learns, and its curve and table can be repeated."""

from __future__ import annotations

import re

import pytest

from analysis import rl

gymnasium = pytest.importorskip("gymnasium")

SMALL = ["--rounds", "2", "--jobs", "64", "--episodes", "2"]


@pytest.mark.slow
def test_the_curve_and_the_table_are_printed_and_repeatable(capsys):
    rl.main(SMALL)
    first = capsys.readouterr().out
    rl.main(SMALL)
    assert capsys.readouterr().out == first
    lines = first.splitlines()
    curve = [float(re.search(r"return +(-?[\d.]+)", line)[1]) for line in lines[:2]]
    assert all(value < -1 for value in curve)  # minus a mean bounded slowdown
    rows = {row.split("|")[1].strip(): [float(cell) for cell in row.split("|")[2:5]] for row in lines[4:]}
    assert list(rows) == ["fcfs", "sjf", "f1", "random", "trained"]
    assert all(slowdown >= 1 and 0 < use <= 1 for slowdown, _, use in rows.values())


@pytest.mark.slow
def test_training_improves_on_episodes_that_were_not_trained_on():
    env = gymnasium.make(
        "simsched/Backfill-v0", cluster="flat240", workload="month", jobs=128, visible=64,
        actions="next-easy", disable_env_checker=True,
    )  # fmt: skip
    weights, curve = rl.train(env, rounds=8)
    assert len(curve) == 8
    unseen = [rl.UNSEEN + number for number in range(12)]
    untrained = rl.mean_return(env, rl.np.zeros(4), unseen)  # the first job that is allowed: FCFS with EASY
    assert rl.mean_return(env, weights, unseen) > untrained
