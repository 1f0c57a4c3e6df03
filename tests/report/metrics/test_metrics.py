"""Metrics against hand-worked cases and against naive computation on random schedules."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.formats.rfc.clock import Clock
from simsched.report.metrics import metrics as m
from simsched.report.metrics.classes import day, run_time_class, size_class, weekday_hour, weekdays

NODES, CORES = 4, 16
TOTALS = {"node": NODES, "core": CORES}

seeds = st.integers(0, 10_000)


# ---- the story, by hand -----------------------------------------------------------------
# a: submit 0, runs 0-100 on 16 cores;  b: submit 10, runs 100-110 on 8;  c: submit 20, runs 100-140 on 4


def test_only_jobs_with_start_and_end_ran(story):
    assert m.ran(story)["id"].tolist() == ["a", "b", "c"]


def test_times_of_each_job(story):
    done = m.measured(story)
    assert done["wait"].tolist() == [0, 90, 80]
    assert done["run_time"].tolist() == [100, 10, 40]
    assert done["turnaround"].tolist() == [100, 100, 120]
    assert done["slowdown"].tolist() == [1, 10, 3]
    assert done["bounded_slowdown"].tolist() == [1, 10, 3]
    # 100 / (16·100) and 100 / (8·10) are bounded by 1; 120 / (4·40) is too
    assert done["per_processor_bounded_slowdown"].tolist() == [1, 1.25, 1]


def test_slowdown_of_very_short_jobs(make_jobs):
    jobs = make_jobs(
        [
            {"submit": 0, "start": 0, "end": 0},
            {"submit": 0, "start": 30, "end": 30},
            {"submit": 0, "start": 99, "end": 100},
        ]
    )
    assert m.slowdown(jobs).tolist() == [1, math.inf, 100]
    assert m.bounded_slowdown(jobs).tolist() == [1, 3, 10]
    assert m.bounded_slowdown(jobs, tau=1).tolist() == [1, 30, 100]


def test_use_of_the_machine(story, make_timeline):
    # 16·100 + 8·10 + 4·40 = 1840 core-seconds in 140 s of 16 cores
    assert m.makespan(story) == 140
    assert m.throughput(story) == pytest.approx(3 * 3600 / 140)
    assert m.utilisation(story, CORES) == pytest.approx(1840 / (16 * 140))
    assert m.utilisation_over_time(make_timeline(story, TOTALS), "core", CORES) == pytest.approx(1840 / 2240)
    assert m.goodput(story, CORES) == pytest.approx(1680 / 2240)
    assert m.badput(story, CORES) == pytest.approx(160 / 2240)
    assert m.utilisation(story, CORES, window=(100, 110)) == pytest.approx(12 / 16)
    assert m.utilisation(story, NODES, "node") == pytest.approx((4 * 100 + 2 * 10 + 1 * 40) / (4 * 140))


def test_weights_shares_and_queue(story):
    assert m.area_weighted_response(story) == pytest.approx((1600 * 100 + 80 * 100 + 160 * 120) / 1840)
    assert m.backfill_share(story) == pytest.approx(1 / 3)
    assert m.queue_length(story) == pytest.approx(170 / 140)
    assert m.estimate_accuracy(m.ran(story)).tolist() == [0.5, 1, 1]
    assert m.expansion_factor(m.ran(story)).tolist() == [1, 10, 3]


def test_loss_of_capacity_counts_only_what_a_queued_job_could_have_used(make_jobs, make_timeline):
    # 0-100: 10 of 16 cores are idle while a job of 8 waits from 20 on: 80 s · 10 idle are lost;
    # 100-150 the job of 8 runs and nobody waits: 8 cores are idle, none is lost
    jobs = make_jobs(
        [
            {"submit": 0, "start": 0, "end": 100, "cores": 6},
            {"submit": 20, "start": 100, "end": 150, "cores": 8},
        ]
    )
    timeline = make_timeline(jobs, {"core": 16})
    assert m.loss_of_capacity(jobs, timeline, 16) == pytest.approx(80 * 10 / (16 * 150))


def test_zhangs_loss_of_capacity_counts_whatever_waits(make_jobs, make_timeline):
    # 10 of 16 cores idle from 20 to 100 while a job of 11 waits: only Zhang et al. call that a loss
    jobs = make_jobs(
        [
            {"submit": 0, "start": 0, "end": 100, "cores": 6},
            {"submit": 20, "start": 100, "end": 150, "cores": 11},
        ]
    )
    timeline = make_timeline(jobs, {"core": 16})
    assert m.loss_of_capacity_any(jobs, timeline, 16) == pytest.approx(80 * 10 / (16 * 150))
    assert m.loss_of_capacity(jobs, timeline, 16) == 0


def test_work_is_good_if_the_trace_says_so_as_well(make_jobs):
    # core-seconds: 100 complete, 20 failed in the trace, 40 ended at the limit and complete in the trace,
    # 10 ended at the limit with nothing recorded, 30 complete with nothing recorded; 200 in all
    jobs = make_jobs(
        [
            {"submit": 0, "start": 0, "end": 100, "cores": 1, "recorded_state": "COMPLETED"},
            {"submit": 0, "start": 0, "end": 20, "cores": 1, "recorded_state": "FAILED"},
            {
                "submit": 0,
                "start": 0,
                "end": 40,
                "cores": 1,
                "result": "TIMEOUT",
                "recorded_state": "COMPLETED",
            },
            {"submit": 0, "start": 0, "end": 10, "cores": 1, "result": "TIMEOUT", "recorded_state": None},
            {"submit": 0, "start": 0, "end": 30, "cores": 1, "recorded_state": None},
        ]
    )
    assert m.worth(jobs).tolist() == ["good", "bad", "cut", "bad", "good"]
    capacity = 2  # 2 cores · 100 s
    assert m.goodput(jobs, capacity) == pytest.approx(130 / 200)
    assert m.badput(jobs, capacity) == pytest.approx(30 / 200)
    assert m.cut_share(jobs, capacity) == pytest.approx(40 / 200)


def test_nothing_is_lost_while_only_wider_jobs_wait(make_jobs, make_timeline):
    jobs = make_jobs(
        [
            {"submit": 0, "start": 0, "end": 100, "cores": 6},
            {"submit": 20, "start": 100, "end": 150, "cores": 11},
        ]
    )
    assert m.loss_of_capacity(jobs, make_timeline(jobs, {"core": 16}), 16) == 0


def test_a_job_that_was_cancelled_in_the_queue_waited_until_then(make_jobs):
    jobs = make_jobs([{"submit": 10, "end": 30, "cores": 0, "nodes": 0, "procs": 3, "result": "CANCELED"}])
    time = np.array([0.0, 10.0, 20.0, 30.0])
    assert m.smallest_queued(jobs, time).tolist() == [math.inf, 3, 3, math.inf]


def test_a_job_that_still_waits_at_the_end_waits_on(make_jobs):
    jobs = make_jobs([{"submit": 10, "cores": 0, "nodes": 0, "procs": 3, "result": "PENDING"}])
    assert m.smallest_queued(jobs, np.array([0.0, 10.0, 20.0])).tolist() == [math.inf, 3, 3]


def test_fragmentation_is_the_share_of_free_cores_on_used_nodes():
    # 10 s with 8 of 16 cores free on 2 whole nodes, 30 s with 8 free on 1, 10 s with nothing free
    timeline = pd.DataFrame({"time": [0, 10, 40, 50], "free_core": [8, 8, 0, 16], "free_node": [2, 1, 0, 4]})
    assert m.fragmentation(timeline, TOTALS) == pytest.approx((0 * 10 + 0.5 * 30) / 40)
    assert math.isnan(m.fragmentation(timeline, {"core": 16}))


def test_down_share():
    timeline = pd.DataFrame({"time": [0, 10, 40], "down_core": [0, 8, 0]})
    assert m.down_share(timeline, "core", 16) == pytest.approx(8 * 30 / (16 * 40))
    assert math.isnan(m.down_share(timeline, "gpu", 16))


def test_no_job_ran(make_jobs):
    jobs = make_jobs([{"submit": 5, "result": "INFEASIBLE"}])
    assert m.makespan(jobs) == 0
    for value in (m.throughput(jobs), m.utilisation(jobs, 16), m.queue_length(jobs), m.backfill_share(jobs)):
        assert math.isnan(value)
    assert m.describe(m.wait(jobs))["count"] == 0
    assert len(m.by(jobs, "queue")) == 0


def test_tables_by_group(story):
    table = m.by(story, "queue")
    assert table.index.tolist() == ["batch", "debug"]
    assert table["jobs"].tolist() == [2, 1]
    assert table["mean_wait"].tolist() == [40, 90]
    assert table["core_hours"].sum() == pytest.approx(1840 / 3600)
    assert table["share"].sum() == pytest.approx(1)


def test_jobs_of_no_queue_are_listed_under_a_dash(make_jobs):
    jobs = make_jobs([{"start": 0, "end": 1, "queue": None}, {"start": 0, "end": 1, "queue": "q"}])
    assert m.by(jobs, "queue").index.tolist() == ["-", "q"]


def test_reasons_commonest_first(story, make_jobs):
    more = make_jobs([{"id": str(i), "result": "DROPPED", "reason": "0 processors"} for i in range(3)])
    table = m.reasons(pd.concat([story, more], ignore_index=True))
    assert table["jobs"].tolist() == [4, 1]
    assert table["reason"].tolist() == ["0 processors", "needs 5 nodes of 4"]
    assert table["example"].tolist() == ["e", "d"]


def test_trim_takes_warm_up_and_drain_away(story):
    assert m.trim(story, warm_up=10, drain=10)["id"].tolist() == ["b", "c", "d"]


def test_describe_gives_interpolated_percentiles():
    d = m.describe(pd.Series([1.0, 2.0, 3.0, 4.0, math.inf]))
    assert (d["count"], d["mean"], d["p50"], d["p75"], d["max"]) == (4, 2.5, 2.5, 3.25, 4)
    assert d["std"] == pytest.approx(1.2909944)


# ---- classes ----------------------------------------------------------------------------


def test_size_classes_are_powers_of_two(make_jobs):
    sizes = [0, 1, 2, 3, 4, 5, 8, 9, 64, 65]
    jobs = make_jobs([{"cores": s, "nodes": 0, "procs": 0.0, "start": 0, "end": 1} for s in sizes])
    classes = size_class(jobs).tolist()
    assert classes == ["0", "1", "2", "3-4", "3-4", "5-8", "5-8", "9-16", "33-64", "65-128"]
    assert size_class(jobs).cat.ordered


def test_run_time_classes(make_jobs):
    jobs = make_jobs([{"start": 0, "end": e} for e in (0, 60, 61, 3600, 86400, 86401)])
    names = ["≤ 1 min", "≤ 1 min", "≤ 10 min", "≤ 1 h", "≤ 1 d", "> 1 d"]
    assert run_time_class(jobs).tolist() == names


def test_days_and_hours(make_jobs):
    jobs = make_jobs([{"submit": s} for s in (100, 86399, 86500, 200000)])
    assert day(jobs).tolist() == [0, 0, 1, 2]
    # by a trace's own clock day 0 is its first; 1,577,836,800 s is Wednesday, 1 January 2020
    assert weekday_hour(pd.Series([0.0, 8 * 86400.0 + 3600]), None).values.tolist() == [[0, 0], [1, 1]]
    new_year = 1_577_836_800
    assert weekday_hour(pd.Series([7200.0]), Clock(new_year)).values.tolist() == [[2, 2]]
    assert weekday_hour(pd.Series([7200.0]), Clock(new_year, "US/Pacific")).values.tolist() == [[1, 18]]
    assert weekday_hour(pd.Series([new_year + 7200.0]), Clock(0)).values.tolist() == [[2, 2]]
    assert weekdays(None)[0] == "day 1"
    assert weekdays(Clock(0))[2] == "Wed"


# ---- against naive computation ----------------------------------------------------------


@settings(max_examples=25)
@given(seeds)
def test_utilisation_equals_counting_second_by_second(make_schedule, make_timeline, seed):
    """Integer times: the sum over whole seconds of the cores in use is the integral."""
    jobs = make_schedule(seed, count=20)
    first, last = int(jobs["submit"].min()), int(jobs["end"].max())
    busy = 0
    for job in jobs.itertuples():
        for t in range(int(job.start), int(job.end)):
            busy += job.cores if first <= t < last else 0
    expected = busy / (CORES * (last - first))
    assert m.utilisation(jobs, CORES) == pytest.approx(expected)
    timeline = make_timeline(jobs, TOTALS)
    assert m.utilisation_over_time(timeline, "core", CORES, m.span(jobs)) == pytest.approx(expected)
    assert m.goodput(jobs, CORES) + m.badput(jobs, CORES) == pytest.approx(expected)


@pytest.mark.slow
@settings(max_examples=25)
@given(seeds)
def test_loss_of_capacity_equals_the_definition_instant_by_instant(make_schedule, make_timeline, seed):
    """Zhang 2000: idle capacity counts while some queued job's size is at most the idle count."""
    jobs = make_schedule(seed, count=30)
    timeline = make_timeline(jobs, TOTALS)
    lost = total = 0.0
    times = timeline["time"].tolist()
    for t, following, idle in zip(times, times[1:], timeline["free_core"], strict=False):
        queued = [j.cores for j in jobs.itertuples() if j.submit <= t < j.start]
        lost += idle * (following - t) if any(q <= idle for q in queued) else 0
        total += following - t
    assert m.loss_of_capacity(jobs, timeline, CORES) == pytest.approx(lost / (CORES * total))


@settings(max_examples=25)
@given(seeds)
def test_means_equal_sums_over_the_jobs(make_schedule, make_timeline, seed):
    jobs = make_schedule(seed)
    rows = list(jobs.itertuples())
    slow = [max(1.0, (j.end - j.submit) / max(j.end - j.start, 10.0)) for j in rows]
    assert m.describe(m.bounded_slowdown(jobs))["mean"] == pytest.approx(sum(slow) / len(slow))
    per = [max(1.0, (j.end - j.submit) / (j.cores * max(j.end - j.start, 10.0))) for j in rows]
    assert m.per_processor_bounded_slowdown(jobs).mean() == pytest.approx(sum(per) / len(per))
    work = [(j.end - j.start) * j.cores for j in rows]
    response = sum(w * (j.end - j.submit) for w, j in zip(work, rows, strict=True)) / sum(work)
    assert m.area_weighted_response(jobs) == pytest.approx(response)


@settings(max_examples=25)
@given(seeds)
def test_littles_law_holds(make_schedule, make_timeline, seed):
    """Mean queue length by Little's law = time average of the queue that the timeline counts."""
    jobs = make_schedule(seed)
    counted = m.time_average(make_timeline(jobs, TOTALS), "queued_jobs", m.span(jobs))
    assert m.queue_length(jobs) == pytest.approx(counted)


@settings(max_examples=25)
@given(seeds)
def test_groups_add_up_to_the_whole(make_schedule, seed):
    jobs = make_schedule(seed)
    for key in ("user", "queue", size_class(jobs), run_time_class(jobs), day(jobs)):
        table = m.by(jobs, key)
        assert table["jobs"].sum() == len(jobs)
        assert (table["mean_wait"] * table["jobs"]).sum() == pytest.approx(m.wait(jobs).sum())
        assert table["core_hours"].sum() * 3600 == pytest.approx(m.area(jobs).sum())
