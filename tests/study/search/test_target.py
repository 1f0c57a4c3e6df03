"""Targets: their grammar, their faults, and the figures that they are held against."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import ConfigError
from simsched.formats.text.diagnostics import CaretError
from simsched.report.metrics.summary import METRICS, summarise
from simsched.study.runs.single_run import figures_of
from simsched.study.spec.target import (
    MEASURES,
    OF_JOBS,
    figure_names,
    parse_figure,
    parse_target,
    parse_targets,
)


@pytest.mark.parametrize(
    ("text", "canonical", "bound"),
    [
        ("p95_wait<=1h", "p95_wait<=1h", 3600),
        (" p95_wait <= 3600 ", "p95_wait<=1h", 3600),
        ("p95_wait≤1h", "p95_wait<=1h", 3600),
        ("utilization>=0.8", "utilisation>=0.8", 0.8),
        ("utilisation_gpu >= 80%", "utilisation_gpu>=0.8", 0.8),
        ("mean_bsld<=10", "mean_bounded_slowdown<=10", 10),
        ("mean_bounded_slowdown<10", "mean_bounded_slowdown<10", 10),
        ("avg_wait<30m", "mean_wait<30m", 1800),
        ("p99.9_turnaround<=2d", "p99.9_turnaround<=2d", 172800),
        ("max_slowdown<=100", "max_slowdown<=100", 100),
        ("throughput>12.5", "throughput>12.5", 12.5),
        ("p95_wait[queue=debug]<=10m", "p95_wait[queue == debug]<=10m", 600),
        ("p95_wait[queue == debug] <= 10m", "p95_wait[queue == debug]<=10m", 600),
        ("mean_wait[procs>=64 and not user='a]<=b']<=1h",
         "mean_wait[procs >= 64 and not user == 'a]<=b']<=1h", 3600),
        ("share_waited[runtime<1h]<=5%", "share_waited[runtime < 1h]<=0.05", 0.05),
        ("mean_wait[queue ~ gpu*]<=0", "mean_wait[queue ~ gpu*]<=0d", 0),
    ],
)  # fmt: skip
def test_targets_read_and_written(text, canonical, bound):
    target = parse_target(text)
    assert str(target) == canonical
    assert target.bound == bound
    assert parse_target(canonical) == target


FAULTS = {
    "": "the name of a figure is missing (expected a name such as p95_wait)",
    "p95_wait": "a relation is missing (expected <=, >=, < or >)\n  p95_wait\n          ^",
    "p95_wait=1h": "'=' is not a bound (expected <=, >=, < or >)\n  p95_wait=1h\n          ^",
    "p95_wait<=": "a value is missing (expected a duration such as 90, 30m, 1.5h or 2d)\n"
    "  p95_wait<=\n            ^",
    "p95_wait<=soon": "'soon' is not a duration (expected a duration such as 90, 30m, 1.5h or 2d)\n"
    "  p95_wait<=soon\n            ^",
    "p95_wait<=inf": "'inf' is not a bound (expected a duration such as 90, 30m, 1.5h or 2d)\n"
    "  p95_wait<=inf\n            ^",
    "utilisation>=80": "a share of 80 is out of range (expected 0 to 1, or 0% to 100%)\n  utilisation>=80\n"
    "               ^",
    "mean_bsld<=ten": "'ten' is not a number (expected a number)\n  mean_bsld<=ten\n             ^",
    "utilisation[queue=a]>=0.5": "utilisation is a figure of the whole machine and takes no query "
    "(expected no query, or a figure such as p95_wait)\n  utilisation[queue=a]>=0.5\n             ^",
    "p95_wait[queue=a<=1h": "unclosed '[' (expected ']')\n  p95_wait[queue=a<=1h\n          ^",
    "p95_wait[]<=1h": "found 'the end' (expected one of the fields",
    "p95_wait[colour=red]<=1h": "found 'colour' (expected one of the fields",
    "p95_wait<=1h extra": "'1h extra' is not a duration",
    "p95_wait\udc80<=1h": "a byte that is not UTF-8",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_are_shown_at_their_place(text):
    with pytest.raises(CaretError) as caught:
        parse_target(text)
    assert str(caught.value).startswith(FAULTS[text])


@pytest.mark.parametrize("name", ["p95", "wait", "p0_wait", "p100_wait", "p95_weight", "utilisation_"])
def test_an_unknown_figure_lists_the_known_ones(name):
    with pytest.raises(CaretError) as caught:
        parse_target(f"{name}<=1")
    text = str(caught.value)
    for known in ("(mean|median|min|max|pNN)_(wait|turn", "utilisation_TYPE", "throughput", "goodput"):
        assert known in text


@given(st.text(max_size=40))
@settings(max_examples=300)
def test_any_text_is_a_target_or_a_marked_fault(text):
    try:
        target = parse_target(text)
    except CaretError:
        return
    assert parse_target(str(target)) == target


@given(
    st.sampled_from(["wait", "turnaround", "slowdown", "run_time"]),
    st.sampled_from(["mean", "median", "min", "max", "p5", "p95", "p99.9"]),
    st.sampled_from(["<=", ">=", "<", ">"]),
    st.floats(0, 1e9).map(lambda v: float(f"{v:.6g}")),
)
def test_what_is_written_is_read_again(measure, statistic, relation, bound):
    target = parse_target(f"{statistic}_{measure}{relation}{bound!r}")
    assert parse_target(str(target)) == target
    assert target.bound == bound


def test_every_name_that_an_error_lists_is_a_figure():
    for name in figure_names():
        for statistic in ("mean", "p80"):
            real = name.replace("mean|median|min|max|pNN", statistic).replace("TYPE", "gpu")
            assert parse_figure(real).name == real
    assert all(parse_figure(m.name).unit == m.unit for m in METRICS)


def test_several_targets():
    both = parse_targets(["p95_wait<=1h", "utilization>=0.8", "p95_wait <= 60m"])
    assert [str(t) for t in both] == ["p95_wait<=1h", "utilisation>=0.8"]
    assert parse_targets("p95_wait<=1h") == both[:1]
    assert parse_targets(both) == both
    with pytest.raises(ConfigError, match="no target"):
        parse_targets([])


def test_bounds_are_kept_or_broken_and_nan_keeps_none():
    for relation, kept in {"<=": (1, 2), "<": (1,), ">=": (2, 3), ">": (3,)}.items():
        target = parse_target(f"mean_bsld{relation}2")
        assert tuple(v for v in (1, 2, 3) if target.met_by(v)) == kept
        assert not target.met_by(math.nan)


def test_which_targets_a_larger_machine_eases():
    eased = {t: parse_target(t).eases for t in ("p95_wait<=1h", "throughput>=5", "jobs_run>=5")}
    hardened = {t: parse_target(t).eases for t in ("utilisation>=0.8", "goodput>=0.5", "mean_wait>=1h")}
    assert all(eased.values())
    assert not any(hardened.values())


@pytest.fixture(scope="module")
def small():
    cluster = ss.load_cluster("tiny")
    workload = ss.load_workload("first-steps")
    return ss.simulate(cluster, workload, allocations=False), workload


def test_figures_of_the_whole_are_those_of_the_summary(small):
    run, workload = small
    figures = [parse_figure(name) for name in run.summary]
    found = figures_of(figures, run, workload.jobs)
    for name, value in run.summary.items():
        assert found[name] == pytest.approx(value, rel=1e-9, nan_ok=True), name


def test_figures_of_some_jobs_are_those_of_a_run_of_them_alone(small):
    """Law: every figure of OF_JOBS, and every statistic, is `summarise` of the frame of those jobs."""
    run, workload = small
    chosen = [str(job.id) for job in workload.jobs[::2]]
    query = " or ".join(f"id == '{id_}'" for id_ in chosen)
    frame = run.jobs[run.jobs["id"].isin(chosen)]
    wanted = summarise(frame, run.timeline, run.totals)
    names = [*OF_JOBS, "mean_wait", "p95_wait", "median_turnaround", "max_wait", "p95_bounded_slowdown"]
    found = figures_of([parse_figure(f"{name}[{query}]") for name in names], run, workload.jobs)
    for name, value in zip(names, found.values(), strict=True):
        assert value == pytest.approx(wanted[name], nan_ok=True), name
    assert found[f"jobs[{query}]"] == len(chosen) > 1


def test_statistics_that_no_summary_has(small):
    run, workload = small
    wait = run.jobs["start"] - run.jobs["submit"]
    found = figures_of([parse_figure(n) for n in ("p80_wait", "p12.5_wait", "min_wait")], run, workload.jobs)
    assert found["p80_wait"] == pytest.approx(wait.quantile(0.8))
    assert found["p12.5_wait"] == pytest.approx(wait.quantile(0.125))
    assert found["min_wait"] == wait.min()
    for measure in MEASURES:
        assert math.isfinite(
            figures_of([parse_figure(f"p80_{measure}")], run, workload.jobs)[f"p80_{measure}"]
        )


def test_utilisation_alone_is_of_cores_or_of_nodes(small):
    run, workload = small
    found = figures_of([parse_figure("utilisation")], run, workload.jobs)
    assert found["utilisation"] == pytest.approx(run.summary["utilisation_core"])


def test_nothing_ran_is_nan(small):
    run, workload = small
    found = figures_of([parse_figure("p95_wait[user == nobody]"), parse_figure("jobs[user == nobody]")],
                       run, workload.jobs)  # fmt: skip
    assert math.isnan(found["p95_wait[user == nobody]"])
    assert found["jobs[user == nobody]"] == 0


def test_warm_up_and_drain_leave_jobs_out(small):
    run, workload = small
    first, last = run.jobs["submit"].min(), run.jobs["submit"].max()
    cut = (last - first) / 2
    found = figures_of([parse_figure("jobs"), parse_figure("p80_wait")], run, workload.jobs, warm_up=cut)
    late = run.jobs[run.jobs["submit"] >= first + cut]
    assert found["jobs"] == len(late) < len(run.jobs)
    assert found["p80_wait"] == pytest.approx(pd.Series(late["start"] - late["submit"]).quantile(0.8))
