"""Transforms and queries: pure, composable, and what each of them promises."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.text.diagnostics import CaretError
from simsched.workload.job import Job, Skip, Skips, assemble
from simsched.workload.readers.jobs import read_jobs_yaml
from simsched.workload.transforms import transforms as tr
from simsched.workload.transforms.query import parse_query
from simsched.workload.transforms.steps import STEPS, apply_steps


def job(id_, submit, runtime=10, duration=20, procs=2, **more):
    spec = Jobspec.from_shape(f"slot={procs}/core")
    return Job(id=id_, submit=submit, runtime=runtime, duration=duration, procs=procs, jobspec=spec, **more)


def workload(*jobs):
    return assemble(jobs, Skips(), source="s", name="w", kind="test")


@pytest.fixture
def three():
    """Three jobs; the last waits for the first and follows the second."""
    return workload(
        job(1, 100, user="ann", queue="debug"),
        job(2, 150, runtime=40, duration=None, procs=8, user="bob", status="FAILED"),
        job(3, 300, dependencies=(Dependency("afterok", "1"),), preceding=2, think_time=5),
    )


def ids(found):
    return [j.id for j in found]


def test_slice_counts_from_the_first_submission(three):
    assert ids(tr.time_slice(three, 0, 50)) == [1]
    assert ids(tr.time_slice(three, 50)) == [2, 3]
    assert ids(tr.time_slice(three, 50, 51)) == [2]
    with pytest.raises(ConfigError, match="earlier time first"):
        tr.time_slice(three, 5, 4)


def test_slice_leaves_out_ignored_records_of_other_times(three):
    skips = [Skip("a:1", "odd", submit=three.span[0] + at) for at in (0, 60)] + [Skip("a:9", "odd")]
    whole = replace(three, skipped=tuple(skips), skipped_counts={"odd": 3, "step": 4})
    assert tr.time_slice(whole, 50).skipped == tuple(skips[1:])
    assert tr.time_slice(whole, 50).skipped_counts == {"odd": 2, "step": 4}
    assert tr.time_slice(whole, 0).skipped == tuple(skips)


def test_what_depends_on_a_job_that_is_gone_loses_that_dependency(three):
    assert tr.time_slice(three, 50).jobs[-1].dependencies == ()
    assert tr.time_slice(three, 50).jobs[-1].preceding == 2
    last = tr.time_slice(three, 150).jobs[-1]
    assert (last.preceding, last.think_time) == (None, None)
    assert tr.time_slice(three, 0).jobs == three.jobs


def test_load_by_arrivals_and_by_run_time(three):
    assert [j.submit for j in tr.scale_arrivals(three, 2)] == [100, 125, 200]
    assert [(j.runtime, j.duration) for j in tr.scale_run_times(three, 0.5)] == [(5, 10), (20, None), (5, 10)]
    assert next((j.runtime, j.duration) for j in tr.scale_run_times(three, 0.01)) == (0, 1)
    for bad in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ConfigError):
            tr.scale_arrivals(three, bad)
        with pytest.raises(ConfigError):
            tr.scale_run_times(three, bad)


def test_a_cancellation_moves_with_its_job():
    one = workload(job(1, 0), job(2, 100, cancel_at=130.0))
    assert tr.shift(one, 7).jobs[1].cancel_at == 137.0
    assert tr.scale_arrivals(one, 2).jobs[1].cancel_at == 80.0


def test_shift_and_rebase(three):
    assert [j.submit for j in tr.rebase(three)] == [0, 50, 200]
    assert tr.shift(tr.rebase(three), 100).jobs == three.jobs
    with pytest.raises(ConfigError, match="before 0"):
        tr.shift(three, -101)


def test_repeat_and_merge_make_ids_unique_and_follow_references(three):
    twice = tr.repeat(three, 2, 1000)
    assert [(j.id, j.submit) for j in twice] == [
        (1, 100),
        (2, 150),
        (3, 300),
        (4, 1100),
        (5, 1150),
        (6, 1300),
    ]
    assert [str(d) for d in twice.jobs[-1].dependencies] == ["afterok:4"]
    assert twice.jobs[-1].preceding == 5
    named = workload(job("a", 0), job("b", 1))
    assert ids(tr.merge([named, named, three])) == ["a", "a.2", "b", "b.2", 1, 2, 3]
    assert tr.merge([three]).jobs == three.jobs
    assert tr.merge([]).jobs == ()
    assert [j.submit for j in tr.repeat(three, 2)][3:] == [400, 450, 600]  # span 200, mean gap 100


def test_merge_adds_up_the_records(three):
    from simsched.workload.readers.swf import read_swf

    partial = read_swf("1 0 0 -1 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1\n2 0 0 5 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1")
    both = tr.merge([partial, partial])
    assert both.total_records == 4 == len(both) + sum(both.skipped_counts.values())


def test_release_lifts_holds(three):
    held = workload(job(1, 0, hold=True), job(2, 1))
    assert [j.hold for j in tr.release(held)] == [False, False]


def test_anonymise_keeps_who_is_the_same():
    people = [
        job(i, i, user=u, name=n) for i, (u, n) in enumerate([("zoe", "x"), ("al", None), ("zoe", "y")])
    ]
    masked = tr.anonymise(workload(*people))
    assert [(j.user, j.name) for j in masked] == [("user1", "name1"), ("user2", None), ("user1", "name2")]


def test_thin_and_first(three):
    many = workload(*(job(i, i) for i in range(2000)))
    kept = tr.thin(many, 0.25, np.random.default_rng(1))
    assert len(kept) == pytest.approx(500, abs=60)
    assert kept.jobs == tr.thin(many, 0.25, np.random.default_rng(1)).jobs
    assert ids(tr.first(three, 2)) == [1, 2]
    with pytest.raises(ConfigError):
        tr.thin(three, 1.1, np.random.default_rng(1))


def test_estimates(three):
    assert [j.duration for j in tr.factor_estimates(three, 1)] == [10, 40, 10]
    assert [j.duration for j in tr.factor_estimates(three, 2.5)] == [25, 100, 25]
    model = tr.tsafrir_estimates(three, 3600, np.random.default_rng(1))
    assert all(j.duration >= j.runtime and j.duration % 60 == 0 for j in model)
    assert tr.factor_estimates(workload(job(1, 0, runtime=0)), 1).jobs[0].duration == 1
    drawn = tr.uniform_estimates(
        workload(*(job(n, 0, runtime=100) for n in range(2000))), 3, np.random.default_rng(1)
    )
    limits = np.array([j.duration for j in drawn.jobs])
    assert (limits.min(), limits.max()) == (100, 300)
    assert limits.mean() == pytest.approx(200, abs=4)


def test_history_tells_what_was_done(three):
    done = tr.rebase(tr.scale_arrivals(tr.factor_estimates(three, 1), 2))
    assert done.history == (
        "exact estimates",
        "arrivals 2 times as dense: a day takes 12 h",
        "shifted by -100 s",
    )
    assert three.history == ()


# ------------------------------------------------------------ laws

drafts = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), min_size=1, max_size=12)
cut = st.integers(0, 1100)


def drawn(pairs):
    return workload(*(job(i, s, runtime=r, duration=r + 1) for i, (s, r) in enumerate(pairs)))


@given(drafts, cut, cut)
def test_two_slices_make_the_whole(pairs, one, two):
    """slice(0, c) and slice(c, inf) part the jobs; slices intersect as their intervals do."""
    whole = drawn(pairs)
    assert tr.time_slice(whole, 0, one).jobs + tr.time_slice(whole, one).jobs == whole.jobs
    low, high = sorted((one, two))
    both = [j for j in tr.time_slice(whole, low) if j in tr.time_slice(whole, 0, high).jobs]
    assert both == list(tr.time_slice(whole, low, high))


@given(drafts, st.sampled_from([0.5, 2.0, 4.0]))
def test_scaling_arrivals_scales_the_span_and_keeps_the_work(pairs, factor):
    """span' = span / factor (to a rounded second), work' = work."""
    whole = drawn(pairs)
    scaled = tr.scale_arrivals(whole, factor)
    first, last = whole.span
    assert scaled.span[1] - scaled.span[0] == pytest.approx((last - first) / factor, abs=1)
    assert tr.offered_work(scaled) == tr.offered_work(whole)
    assert ids(scaled) == ids(whole)


@given(drafts, st.integers(1, 4))
def test_repeating_multiplies_work_and_jobs(pairs, times):
    """len' = times * len, work' = times * work, ids are unique."""
    whole = drawn(pairs)
    again = tr.repeat(whole, times)
    assert len(set(ids(again))) == len(again) == times * len(whole)
    assert tr.offered_work(again) == times * tr.offered_work(whole)


# ------------------------------------------------------------ queries


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("procs >= 8", [2]),
        ("procs < 8 and user == ann", [1]),
        ("user == ann or user == bob", [1, 2]),
        ("not user == ann", [2, 3]),
        ("user != ann", [2, 3]),
        ("user = ann", [1]),
        ("user ~ a*", [1]),
        ("not (user == ann or procs == 8)", [3]),
        ("runtime >= 40s", [2]),
        ("duration > 1h", [2]),  # no limit counts as endless
        ("queue == debug", [1]),
        ("status == FAILED", [2]),
        ("shape == 'slot=8/core'", [2]),
        ("cores == 2 and gpus == 0 and slots == 2", [1, 3]),
        ("id == 3", [3]),
        ("submit <= 2.5m", [1, 2]),
        ("urgency == 16", [1, 2, 3]),
        ("not not user == ann and procs == 2 or id == 2", [1, 2]),
    ],
)
def test_queries(three, query, expected):
    assert ids(tr.where(three, query)) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "found 'the end'.*one of the fields"),
        ("colour == red", "found 'colour'"),
        ("user ! ann", "cannot read"),
        ("user == ", "found 'the end'.*a value"),
        ("procs >= many", "'many' is not a value of procs"),
        ("runtime < soon", "'soon' is not a value of runtime"),
        ("(user == ann", r"unclosed '\(' \(expected '\)'\)\n  \(user == ann\n  \^"),
        ("user == ann bob", "found 'bob'.*and, or, or the end"),
        ("(" * 500, "nested too deeply"),
    ],
)
def test_what_is_no_query(query, message):
    with pytest.raises(CaretError, match=message):
        parse_query(query)


@given(st.text(max_size=30))
def test_no_text_breaks_the_query_parser(text):
    with contextlib.suppress(CaretError):
        parse_query(text)


# ------------------------------------------------------------ as text


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (["slice(50s)"], [2, 3]),
        (["slice(0, 51)"], [1, 2]),
        (["first(1)"], [1]),
        (["where(procs >= 4 and (user == bob))"], [2]),
        (["rebase", "where(submit == 50)"], [2]),
        (["shift(10)", "where(submit == 310)"], [3]),
        (["load(2)", "where(submit == 200)"], [3]),
        (["runtime(2)", "where(runtime == 80)"], [2]),
        (["estimates(exact)", "where(duration == 40)"], [2]),
        (["estimates(3)", "where(duration == 120)"], [2]),
        (["estimates(uniform, 1)", "where(duration == 40)"], [2]),
        (["estimates(tsafrir, 1h)", "where(duration <= 1h)"], [1, 2, 3]),
        (["release", "where(id == 2)"], [2]),
        (["anonymise", "where(user == user2)"], [2]),
        (["repeat(2, 10m)", "where(submit > 600)"], [4, 5, 6]),
        (["resample", "first(0)"], []),
        (["thin(1)"], [1, 2, 3]),
        ([], [1, 2, 3]),
    ],
)
def test_steps(three, steps, expected):
    assert ids(apply_steps(three, steps, np.random.default_rng(0))) == expected


def test_every_step_is_tried_above():
    import inspect
    import re

    source = inspect.getsource(inspect.getmodule(test_steps))
    source += (Path(__file__).parent / "test_rescale.py").read_text(encoding="utf-8")
    for name in ("test_flurries.py", "test_sessions.py"):
        source += (Path(__file__).parent / name).read_text(encoding="utf-8")
    assert set(STEPS) <= set(re.findall(r'"([a-z]+)[("]', source))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("sort", "unknown transform 'sort'"),
        ("frist(3)", r"unknown transform 'frist\(3\)'; did you mean first\(N\)\?"),
        ("first(two)", r"first\(two\): 'two' is not a valid count"),
        ("first()", r"first has 0 arguments \(expected 1 to 1\)|first has 0 arguments"),
        ("load(x)", r"'x' is not a number \(expected load\(FACTOR\)\)"),
        ("slice(200d..231d)", r"'200d\.\.231d' is not a duration \(.*, in the form slice\(BEGIN, END\)\)"),
        ("load=2", r"unknown transform 'load=2'; did you mean load\(FACTOR\)\?"),
        ("slice(a)", "slice"),
        ("estimates(exact, 3)", "too many arguments"),
        ("estimates(uniform)", "the greatest factor is missing"),
        ("estimates(uniform, 0.5)", "a factor of 0.5 is out of range"),
        ("where(x)", "where"),
        ("", "unknown transform ''"),
    ],
)
def test_bad_steps_are_named(three, step, message):
    with pytest.raises(ConfigError, match=message):
        apply_steps(three, [step], np.random.default_rng(0))


def test_begin_times_keep_their_distance_when_arrivals_are_scaled():
    """A job that may start a minute after its submission may do so when the load is doubled, too."""
    from simsched.formats.rfc.dependency import Dependency

    spec = Jobspec.from_shape("slot=1/core")
    waits = (Dependency("begin-time", "160"), Dependency("afterok", "1"))
    jobs = [Job(id=1, submit=0, runtime=5, jobspec=spec)]
    jobs.append(Job(id=2, submit=100, runtime=5, jobspec=spec, dependencies=waits))
    scaled = tr.scale_arrivals(assemble(jobs, Skips(), source="s", name="n", kind="jobs"), 2).jobs[1]
    assert (scaled.submit, list(map(str, scaled.dependencies))) == (50, ["begin-time:110", "afterok:1"])


LONG = """
- {id: 1, shape: slot=1/core, runtime: 30h, duration: 72h, user: u}
- {id: 2, shape: slot=1/core, runtime: 50h, duration: 50h, depends: ["afterok:1"]}
- {id: 3, shape: slot=1/core, runtime: 1h, duration: 24h, depends: ["after:2"]}
- {id: 4, shape: slot=1/core, runtime: 1h}
- {id: 5, shape: slot=1/core, runtime: 1h, duration: 30h, preceding: 2, think_time: 60}
"""


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("", {"1": (30, 24), "2": (50, 24), "3": (1, 24), "4": (1, 24), "5": (1, 24)}),
        (", cut", {"1": (30, 24), "2": (50, 24), "3": (1, 24), "4": (1, 24), "5": (1, 24)}),
        (", drop", {"3": (1, 24)}),
        (", split", {"1.1": (24, 24), "1.2": (6, 24), "2.1": (24, 24), "2.2": (24, 24), "2.3": (2, 2),
                     "3": (1, 24), "4": (1, 24), "5": (1, 24)}),
    ],
)  # fmt: skip
def test_longest_limits_are_cut_split_or_dropped(way, expected):
    found = apply_steps(read_jobs_yaml(LONG), [f"cap(24h{way})"], np.random.default_rng(0))
    assert {str(job.id): (job.runtime / 3600, job.duration / 3600) for job in found} == expected
    assert found.history[-1].startswith("limits of at most 1d: 4 jobs above were")
    after = {str(job.id): [str(item) for item in job.dependencies] for job in found}
    if way == ", split":
        assert after["1.2"] == ["afterany:1.1"]
        assert after["2.1"] == ["afterok:1.2"]
        assert after["3"] == ["after:2.1"]
        assert next(job.preceding for job in found if job.id == 5) == "2.3"
    run = ss.simulate("tiny", found)
    ends = run.jobs.set_index("id")["end"].to_dict()
    if way == ", split":
        assert ends["2.3"] == (30 + 50) * 3600


@pytest.mark.parametrize("step", ["cap(0)", "cap(24h, shorten)", "cap(inf)", "cap(1ms, split)"])
def test_caps_that_make_no_sense(step):
    with pytest.raises(ConfigError, match="cap"):
        apply_steps(read_jobs_yaml(LONG), [step], np.random.default_rng(0))
