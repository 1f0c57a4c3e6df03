"""The expansion of a study: laws over random axes, zips and rules."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import ConfigError
from simsched.study.spec.run_task import RunTask, TaskInput
from simsched.study.spec.study import RunFilter, Setting, Study, StudyAxis, TaskChange, column, merged
from tests.study.studyworld import small

BASE = RunTask(TaskInput.of_text("c", "c"), TaskInput.of_text("w", "w"))


def axis(name, labels):
    return StudyAxis(name, tuple(Setting(label, TaskChange(options={name: label})) for label in labels))


AXES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), min_size=0, max_size=3).map(
    lambda each: tuple(axis(f"a{n}", labels) for n, labels in enumerate(each))
)
SEEDS = st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True).map(tuple)


@given(AXES, SEEDS)
def test_the_runs_are_the_product_in_the_order_written(axes, seeds):
    """The first axis varies slowest, seeds fastest; nothing is left out or twice."""
    study = Study("s", BASE, axes, seeds=seeds)
    labels = [[setting.label for setting in one.settings] for one in axes]
    expected = [(*combination, seed) for combination in product(*labels) for seed in seeds]
    found = [(*(t.options[a.name] for a in axes), t.seed) for t in study.tasks]
    assert found == expected


@given(AXES, SEEDS)
def test_labels_tell_the_runs_apart(axes, seeds):
    """No two runs have the same labels; the columns are the axes, and the seed if there are several."""
    study = Study("s", BASE, axes, seeds=seeds)
    told = [tuple(t.settings[name] for name in study.axis_names) for t in study.tasks]
    assert len(set(told)) == len(told)


@given(AXES, SEEDS, st.data())
def test_include_and_exclude_divide_the_runs(axes, seeds, data):
    """runs(include R) and runs(exclude R) are disjoint, together all, each in the order of all."""
    if not axes:
        return
    chosen = data.draw(st.sampled_from(axes))
    rule = RunFilter({chosen.name: data.draw(st.integers(0, 9).map(lambda n: f"<= {n}") | st.integers(0, 9))})
    every = [t.key for t in Study("s", BASE, axes, seeds=seeds).tasks]

    def keys(**rules):
        try:
            return [t.key for t in Study("s", BASE, axes, seeds=seeds, **rules).tasks]
        except ConfigError:
            return []

    kept, rest = keys(include=(rule,)), keys(exclude=(rule,))
    assert sorted(kept + rest) == sorted(every)
    assert [key for key in every if key in set(kept)] == kept


@given(st.integers(1, 4), SEEDS)
def test_zipped_axes_vary_together(length, seeds):
    """A zip of n settings stands for n combinations, in the place of its first axis."""
    first, middle, last = axis("x", range(length)), axis("m", [7, 8]), axis("y", range(10, 10 + length))
    study = Study("s", BASE, (first, middle, last), zipped=(("x", "y"),), seeds=seeds)
    found = [(t.options["x"], t.options["m"], t.options["y"], t.seed) for t in study.tasks]
    assert found == [(n, m, 10 + n, s) for n in range(length) for m in (7, 8) for s in seeds]


@given(AXES)
def test_keys_do_not_depend_on_the_order_of_the_axes(axes):
    """The same set of runs, whatever the order in which the axes are written."""
    there, back = Study("s", BASE, axes), Study("s", BASE, axes[::-1])
    assert {t.key for t in there.tasks} == {t.key for t in back.tasks}


@pytest.mark.parametrize(
    ("label", "wanted", "met"),
    [
        (0.9, "<= 0.9", True),
        (0.9, "< 0.9", False),
        (1, ">0.5", True),
        (1, "!= 1", False),
        ("easy", "!= easy", False),
        ("easy", ["fcfs", "easy"], True),
        ("easy", "< 3", False),
        (1, [2, "> 0"], True),
        ("yes", "yes", True),
        (1, True, False),
    ],
)
def test_conditions(label, wanted, met):
    assert RunFilter({"axis": wanted}).holds({"axis": label}) is met


def test_a_study_without_runs_is_refused():
    with pytest.raises(ConfigError, match="leave no run"):
        Study("s", BASE, exclude=(RunFilter({"seed": ">= 0"}),)).tasks  # noqa: B018 - they are made


def test_a_study_of_too_many_runs_is_refused_at_once():
    wide = tuple(axis(f"a{n}", range(1000)) for n in range(4))
    with pytest.raises(ConfigError, match=r"1,000,000,000,000 runs \(expected at most 1,000,000\)"):
        Study("s", BASE, wide).tasks  # noqa: B018


def test_another_input_comes_before_what_is_made_of_it():
    """Edits and transforms apply to the inputs of their run, in whatever order the axes are written."""
    axes = {
        "load": [1.1],
        "workload": ["month", {"label": "short", "file": "month", "transforms": ["first(9)"]}],
        "edits": ["resize(all, 3)"],
        "cluster": ["tiny"],
    }
    steps = [(t.transforms, t.edits, t.cluster.name) for t in small(axes=axes, seeds=None).tasks]
    assert steps == [
        (("load(1.1)",), ("resize(all, 3)",), "tiny"),
        (("first(9)", "load(1.1)"), ("resize(all, 3)",), "tiny"),
    ]


def test_options_of_a_policy_are_merged():
    base = {"policy-options": {"extra": False}, "order": "sjf"}
    assert merged(base, {"policy-options": {"refresh": "always"}})["policy-options"] == {
        "extra": False,
        "refresh": "always",
    }


@pytest.mark.parametrize(
    ("name", "said"), [("queue-policy", "queue_policy"), ("a.b c", "a_b_c"), ("--", "axis")]
)
def test_columns_need_no_quotes(name, said):
    assert column(name) == said
