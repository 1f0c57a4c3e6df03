"""Every figure against a second computation: plain loops over rows, written from the definitions alone."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.report import compare
from simsched.report.metrics import fairness, machine_use, spread
from simsched.report.metrics import metrics as m
from simsched.report.metrics.classes import RUN_TIME_CLASSES, day, run_time_class, size_class
from simsched.report.metrics.plain_columns import PlainColumns
from simsched.report.metrics.summary import summarise

CORES, NODES = 16, 4
TOTALS = {"node": NODES, "core": CORES}
few = settings(max_examples=6, deadline=None)
seeds = st.integers(0, 10_000)


def rows_of(frame):
    return list(frame.itertuples())


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def percentile(values, share):
    """Linear interpolation between the two values next to (n - 1)·share."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def bounded(job):
    return max(1.0, (job.end - job.submit) / max(job.end - job.start, 10.0))


@few
@given(seeds)
def test_distributions(make_schedule, seed):
    jobs = make_schedule(seed, count=25)
    for values in (m.wait(jobs), m.turnaround(jobs), m.bounded_slowdown(jobs)):
        found, plain = m.describe(values), values.tolist()
        assert found["mean"] == pytest.approx(mean(plain))
        centre = mean(plain)
        spread_ = math.sqrt(sum((v - centre) ** 2 for v in plain) / (len(plain) - 1))
        assert found["std"] == pytest.approx(spread_)
        for share in m.PERCENTILES:
            assert found[f"p{share}"] == pytest.approx(percentile(plain, share))
        assert (found["min"], found["max"], found["count"]) == (min(plain), max(plain), len(plain))


@few
@given(seeds)
def test_figures_of_a_whole_run(make_schedule, make_timeline, seed):
    jobs = make_schedule(seed, count=25)
    rows = rows_of(jobs)
    found = summarise(jobs, make_timeline(jobs, TOTALS), TOTALS)
    makespan = max(j.end for j in rows) - min(j.submit for j in rows)
    assert found["makespan"] == makespan
    assert found["throughput"] == pytest.approx(len(rows) / makespan * 3600)
    assert found["backfill_share"] == mean(j.backfilled for j in rows)
    asked = [min(1.0, (j.end - j.start) / j.duration) for j in rows if 0 < j.duration < math.inf]
    assert found["estimate_accuracy"] == pytest.approx(mean(asked))
    factors = [(j.start - j.submit + j.duration) / j.duration for j in rows if 0 < j.duration < math.inf]
    assert m.expansion_factor(jobs).mean() == pytest.approx(mean(factors))
    assert found["share_waited"] == mean(j.start > j.submit for j in rows)
    good = sum((j.end - j.start) * j.cores for j in rows if j.result == "COMPLETED")
    bad = sum((j.end - j.start) * j.cores for j in rows if j.result != "COMPLETED")
    assert found["goodput"] == pytest.approx(good / (CORES * makespan))
    assert found["badput"] == pytest.approx(bad / (CORES * makespan), abs=1e-9)
    for result in ("COMPLETED", "TIMEOUT", "FAILED"):
        assert found[f"jobs_{result.lower()}"] == sum(j.result == result for j in rows)
    users = {j.user: mean(bounded(k) for k in rows if k.user == j.user) for j in rows}
    index = sum(users.values()) ** 2 / (len(users) * sum(v * v for v in users.values()))
    assert found["jain_users"] == pytest.approx(index)


@few
@given(seeds)
def test_slowdown_of_every_job(make_schedule, seed):
    jobs = make_schedule(seed, count=25)
    for job, value in zip(rows_of(jobs), m.slowdown(jobs), strict=True):
        if job.end > job.start:
            assert value == pytest.approx((job.end - job.submit) / (job.end - job.start))
        else:
            assert value == (math.inf if job.start > job.submit else 1)


@few
@given(seeds)
def test_fragmentation_and_what_is_down_instant_by_instant(seed):
    """Of what is free, the part that is not on wholly free nodes; time with nothing free counts nothing."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.integers(1, 50, 30)).astype(float)
    idle = rng.integers(0, NODES + 1, 30)
    free = np.minimum(idle * 4 + rng.integers(0, 9, 30), CORES)
    down = rng.integers(0, 3, 30)
    frame = pd.DataFrame({"time": time, "free_core": free, "free_node": idle, "down_core": down})
    broken = known = lost = 0.0
    for i in range(29):
        long = time[i + 1] - time[i]
        if free[i]:
            broken += long * (1 - idle[i] * 4 / free[i])
            known += long
        lost += long * down[i]
    assert m.fragmentation(frame, TOTALS) == pytest.approx(broken / known)
    assert m.down_share(frame, "core", CORES) == pytest.approx(lost / (CORES * (time[-1] - time[0])))


def class_of_size(job):
    power = math.ceil(math.log2(job.cores))
    return {0: "1", 1: "2"}.get(power, f"{2 ** (power - 1) + 1}-{2**power}")


def class_of_run_time(job):
    return next(name for bound, name in RUN_TIME_CLASSES if job.end - job.start <= bound)


@few
@given(seeds)
def test_tables_by_queue_user_size_run_time_and_day(make_schedule, seed):
    jobs = make_schedule(seed, count=25).assign(submit=lambda f: f["submit"] * 100)
    jobs = jobs.assign(start=jobs["start"] + jobs["submit"], end=jobs["end"] + jobs["submit"])
    rows, first = rows_of(jobs), jobs["submit"].min()
    keys = {
        "queue": ("queue", lambda j: j.queue),
        "user": ("user", lambda j: j.user),
        "size": (size_class(jobs), class_of_size),
        "run time": (run_time_class(jobs), class_of_run_time),
        "day": (day(jobs), lambda j: int((j.submit - first) // 86400)),
    }
    whole = sum((j.end - j.start) * j.cores for j in rows)
    texts = m.by_text(PlainColumns({name: jobs[name].to_numpy() for name in jobs}), "user")
    frame = m.by(jobs, "user")
    assert texts.labels == frame.index.tolist()
    assert all(texts.figures[name].tolist() == frame[name].tolist() for name in frame)
    for key, of in keys.values():
        table = m.by(jobs, key)
        assert {str(k) for k in table.index} == {str(of(j)) for j in rows}
        for name, row in table.iterrows():
            mine = [j for j in rows if str(of(j)) == str(name)]
            waits = [j.start - j.submit for j in mine]
            work = sum((j.end - j.start) * j.cores for j in mine)
            assert row["jobs"] == len(mine)
            assert row["mean_wait"] == pytest.approx(mean(waits))
            assert row["median_wait"] == pytest.approx(percentile(waits, 50))
            assert row["p95_wait"] == pytest.approx(percentile(waits, 95))
            assert row["mean_bounded_slowdown"] == pytest.approx(mean(map(bounded, mine)))
            assert row["core_hours"] == pytest.approx(work / 3600)
            assert row["share"] == pytest.approx(work / whole)


@few
@given(seeds, st.integers(1, 900), st.integers(0, 900))
def test_without_warm_up_and_drain(make_schedule, make_timeline, seed, warm_up, drain):
    jobs = make_schedule(seed, count=25)
    low, high = jobs["submit"].min() + warm_up, jobs["submit"].max() - drain
    kept = [j for j in rows_of(jobs) if low <= j.submit <= high]
    found = summarise(jobs, make_timeline(jobs, TOTALS), TOTALS, warm_up=warm_up, drain=drain)
    assert found["jobs"] == len(kept)
    if kept:
        assert found["mean_wait"] == pytest.approx(mean(j.start - j.submit for j in kept))
    if high > low:
        inside = sum(max(0, min(j.end, high) - max(j.start, low)) * j.cores for j in rows_of(jobs))
        assert found["utilisation_core"] == pytest.approx(inside / (CORES * (high - low)))


@few
@given(seeds)
def test_two_runs_job_by_job(make_schedule, seed):
    one = make_schedule(seed, count=25)
    rng = np.random.default_rng(seed)
    late = rng.integers(-50, 200, len(one))
    other = one.assign(start=one["start"] + late, end=one["end"] + late).sample(frac=0.8, random_state=seed)
    both = {j.id: (j, next((k for k in rows_of(other) if k.id == j.id), None)) for j in rows_of(one)}
    pairs = [(a, b) for a, b in both.values() if b is not None]
    found = compare.compare(one, other)
    assert found.jobs == len(pairs)
    assert found.wait.estimate == pytest.approx(mean(b.start - a.start for a, b in pairs))
    assert found.slowdown.estimate == pytest.approx(mean(bounded(b) - bounded(a) for a, b in pairs))
    assert found.sooner == pytest.approx(mean(b.start < a.start for a, b in pairs))
    assert found.later == pytest.approx(mean(b.start > a.start for a, b in pairs))
    miss = fairness.fair_start_miss(other, one)
    assert miss.missed == sum(b.start > a.start for a, b in pairs)
    assert miss.mean_miss == pytest.approx(mean(max(b.start - a.start, 0) for a, b in pairs))


def held_at_random(seed):
    """Pools that 15 jobs held, some of them started a second time, on 8 nodes in 3 racks."""
    rng = np.random.default_rng(seed)
    rows = []
    for job in range(15):
        start = 0
        for attempt in range(int(rng.integers(1, 3))):
            start += int(rng.integers(0, 30))
            end = start + int(rng.integers(1, 40))
            ranks = rng.choice(8, int(rng.integers(1, 5)), replace=False).tolist()
            rows += [(str(job), attempt, r, "core", int(rng.integers(1, 5)), start, end) for r in ranks]
            start = end
    names = ["id", "attempt", "rank", "type", "units", "alloc", "release"]
    return pd.DataFrame(rows, columns=names).astype({"alloc": float, "release": float})


RACKS = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "c", 7: "c"}


@few
@given(seeds)
def test_balance_and_failures_over_the_nodes(make_jobs, seed):
    held = held_at_random(seed)
    rows = rows_of(held)
    loads = [sum((h.release - h.alloc) * h.units for h in rows if h.rank == rank) for rank in range(8)]
    found = spread.node_balance(held, 8)
    assert found.jain == pytest.approx(sum(loads) ** 2 / (8 * sum(v * v for v in loads)))
    variance = mean((v - mean(loads)) ** 2 for v in loads)
    assert found.variation == pytest.approx(math.sqrt(variance) / mean(loads))
    assert found.unused == loads.count(0)
    last = {h.id: max(k.attempt for k in rows if k.id == h.id) for h in rows}
    early = [h for h in rows if h.attempt < last[h.id]]
    cost = spread.failure_cost(make_jobs([{"start": 0, "end": 7, "cores": 3, "result": "FAILED"}]), held)
    assert cost.lost_by_restarts == sum((h.release - h.alloc) * h.units for h in early)
    assert cost.jobs_restarted == len({h.id for h in early})
    assert (cost.jobs_failed, cost.lost_by_failed_jobs) == (1, 21)


@few
@given(seeds)
def test_racks_that_jobs_span(seed):
    """The fewest racks for n nodes: the largest racks first."""
    held = held_at_random(seed)
    nodes = pd.DataFrame({"rank": range(8), "in_rack": [RACKS[r] for r in range(8)]})
    spans, excess = [], []
    for job in sorted(set(held["id"])):
        mine = [h for h in rows_of(held) if h.id == job]
        ranks = {h.rank for h in mine if h.attempt == max(k.attempt for k in mine)}
        if len(ranks) > 1:
            spans.append(len({RACKS[r] for r in ranks}))
            excess.append(spans[-1] / (1 if len(ranks) <= 3 else 2))
    found = machine_use.locality(nodes, held).loc["rack"]
    assert found["jobs"] == len(spans)
    if spans:
        assert found["mean_spanned"] == pytest.approx(mean(spans))
        assert found["mean_excess"] == pytest.approx(mean(excess))
        assert found["share_local"] == pytest.approx(mean(e == 1 for e in excess))
