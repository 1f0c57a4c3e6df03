"""Conservative backfilling keeps its promises: a promised start only ever moves earlier."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import ConfigError
from simsched.formats.rfc.dependency import Dependency
from simsched.schedule.policies import registry
from simsched.schedule.policies.conservative import Conservative
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.forecast.start_times import forecast
from tests.reference import promises
from tests.reference.naive import read_swf
from tests.simulation.simworld import job, machine, run, starts, workload
from tests.simulation.test_against_naive import FLAT, NEVER, TRACES, cluster_of, random_jobs, workload_of

KEPT = ("queue", "start", "none")


def kept(cluster, *jobs, compress="queue", policy="conservative", **options):
    rule = {"compress": compress, **options.pop("queue_options", {})}
    return run(cluster, *jobs, policy=policy, queue_options=rule, **options)


def promised(result):
    """{id: promised start} of the jobs that were promised one."""
    rows = zip(result.jobs["id"], result.jobs["promised"], strict=True)
    return {name: start for name, start in rows if not math.isnan(start)}


def late(result):
    rows = zip(*(result.jobs[name] for name in ("id", "promised", "start")), strict=True)
    return {name: (promise, start) for name, promise, start in rows if start > promise}


# --- stories ---------------------------------------------------------------------------------------------

#: submit, cores, run time, limit: at 4 the third ends 8 s early, and the fourth would like to take its place
STORY = (
    job("A", 0, "slot=3/core", 4, 4),
    job("B", 0, "slot=1/core", 3, 3),
    job("C", 0, "slot=1/core", 1, 9),
    job("D", 2, "slot=4/core", 2, 2),
    job("E", 3, "slot=3/core", 3, 3),
)


@pytest.mark.parametrize(
    ("compress", "expected"),
    [
        ("queue", {"A": 0, "B": 0, "C": 3, "D": 7, "E": 4}),
        ("start", {"A": 0, "B": 0, "C": 3, "D": 7, "E": 4}),
        ("none", {"A": 0, "B": 0, "C": 3, "D": 12, "E": 4}),
        ("replan", {"A": 0, "B": 0, "C": 3, "D": 4, "E": 6}),
    ],
)
def test_a_job_that_was_promised_4_starts_at_4_unless_the_plan_is_made_anew(compress, expected):
    found = kept(machine(4), *STORY, compress=compress)
    assert starts(found) == expected
    if compress == "replan":
        assert promised(found) == {}
    else:
        assert promised(found) == {"A": 0, "B": 0, "C": 3, "D": 12, "E": 4}


def test_a_forecast_is_the_promise():
    found = {f.id: f.start for f in forecast(machine(4), workload(*STORY), 3.5, queue_policy="conservative")}
    assert found == {"D": 12, "E": 4}
    options = {"queue_policy": "conservative", "queue_options": {"compress": "none"}}
    assert {f.id: f.start for f in forecast(machine(4), workload(*STORY), 4.5, **options)} == {"D": 12}


#: X leaves 6 s early.  P (5 s) is planned at 10 and Q (2 s) at 15; only one of them can move to 4.
CHOICE = (
    job("W", 0, "slot=2/core", 20),
    job("X", 0, "slot=2/core", 4, 10),
    job("Q", 2, "slot=2/core", 5, urgency=16),
    job("P", 3, "slot=2/core", 2, urgency=20),
)


@pytest.mark.parametrize(
    ("compress", "expected"),
    [("queue", {"P": 4, "Q": 6}), ("start", {"Q": 4, "P": 9}), ("none", {"Q": 10, "P": 15})],
)
def test_the_order_says_who_is_tried_first_and_takes_nothing_away(compress, expected):
    """Q came first and was promised 10; P goes before it in the queue and was promised 15."""
    found = kept(machine(4), *CHOICE, compress=compress, order="priority")
    assert promised(found) == {"W": 0, "X": 0, "Q": 10, "P": 15}
    assert {name: start for name, start in starts(found).items() if name in "PQ"} == expected


def test_an_end_on_time_compresses_nothing():
    """N takes the place that D left when it was cancelled at 5; that is compression.  X ends on time at 6."""
    jobs = [
        job("A", 0, "slot=3/core", 10),
        job("X", 0, "slot=1/core", 6),
        job("D", 1, "slot=4/core", 5, cancel_at=5),
        job("N", 2, "slot=1/core", 20),
    ]
    found = kept(machine(4), *jobs)
    assert promised(found) == {"A": 0, "X": 0, "D": 10, "N": 15}
    assert starts(found) == {"A": 0, "X": 0, "N": 6}


def test_a_planned_start_needs_no_other_event():
    """Nothing happens at 10, where B is planned, since A ended at 2."""
    found = kept(
        machine(1), job("A", 0, "slot=1/core", 2, 10), job("B", 1, "slot=1/core", 3), compress="none"
    )
    assert starts(found) == {"A": 0, "B": 10}


def test_hybrid_keeps_the_promises_of_as_many_as_its_depth():
    """D is promised 12 at 3, when C starts and leaves the one reservation to it; E follows when D starts."""
    found = kept(machine(4), *STORY, policy="hybrid", queue_options={"depth": 1})
    assert promised(found) == {"A": 0, "B": 0, "C": 3, "D": 12, "E": 6}
    assert starts(found) == {"A": 0, "B": 0, "C": 3, "D": 4, "E": 6}
    assert not late(found)


SHARED = ("core=2", "core=1", "node=2", "node=1/core=1", "core{x}", "gpu")
"""Requests outside a slot are shared: they take units that others share."""
ALONE = ("slot=1/core=2", "slot=2/core", "slot=1/node", "node{x}", "node=2{x}", "slot=1/[core=2;gpu]")


@pytest.mark.quick(3)
@pytest.mark.parametrize("match_policy", ["first", "hinode", "bestfit", "worstfit", "locality", "random"])
@pytest.mark.parametrize("policy", ["conservative", "hybrid"])
def test_units_that_are_shared_now_are_not_shared_beyond_a_reservation_for_them(policy, match_policy):
    machine_ = machine(4, cores=2, gpus=1, properties={"ssd": "0-1"})
    rng = random.Random(f"{policy} {match_policy} shared")
    for seed in range(6):
        jobs = [
            job(
                number,
                rng.randint(0, 40),
                rng.choice((*SHARED, *ALONE)),
                rng.choice([0, 1, rng.randint(1, 30)]),
                rng.choice([5, 20, 60, math.inf]),
                constraint=rng.choice([None, None, "ssd", "-ssd"]),
            )
            for number in range(40)
        ]
        found = kept(machine_, *jobs, policy=policy, match_policy=match_policy, seed=seed)
        assert late(found) == {}


def test_what_maintenance_closes_is_planned_around():
    """Both nodes are closed from 10 to 14: B is promised 14 at 1, and again at 11 while they are closed."""
    outage = [{"ranks": "0-1", "start": 10, "end": 14, "kind": "maintenance"}]
    jobs = [job("A", 0, "slot=2/core", 9), job("B", 1, "slot=2/core", 5), job("C", 11, "slot=2/core", 2)]
    found = kept(machine(2), *jobs, outages=outage)
    assert promised(found) == {"A": 0, "B": 14, "C": 19}
    assert not late(found)


# --- against the naive scheduler ---------------------------------------------------------------------------


def recorded_run(result):
    rows = zip(*(result.jobs[name] for name in ("id", "promised", "start", "result")), strict=True)
    return {int(name): None if result in NEVER else (p, s) for name, p, s, result in rows}


def compare(jobs, found, processors, compress):
    expected = promises.schedule(jobs, processors, compress)
    ours = recorded_run(found)
    differ = [(j, ours[j.id], expected[j.id]) for j in jobs if ours[j.id] != expected[j.id]]
    assert not differ, f"{len(differ)} of {len(jobs)} jobs differ, first (job, ours, naive): {differ[:3]}"


def compare_trace(traces, name, compress, limit):
    file, processors = TRACES[name]
    jobs, dropped = read_swf(traces / file, limit)
    records = ss.load_workload(traces / file, map="slot={procs}/core", limit=limit + dropped)
    rule = {"queue_policy": "conservative", "queue_options": {"compress": compress}}
    found = ss.simulate(cluster_of([(1, 0)] * processors), records, allocations=False, **rule)
    assert len(jobs) == limit
    compare(jobs, found, processors, compress)
    assert not late(found)


@pytest.mark.quick(2)
@pytest.mark.parametrize("compress", KEPT)
@pytest.mark.parametrize("name", ["KTH-SP2", "SDSC-SP2"])
def test_the_first_1500_jobs(traces, name, compress):
    compare_trace(traces, name, compress, 1500)


@pytest.mark.slow
@pytest.mark.parametrize("compress", KEPT)
@pytest.mark.parametrize("name", ["KTH-SP2", "SDSC-SP2"])
def test_the_first_6000_jobs(traces, name, compress):
    compare_trace(traces, name, compress, 6_000 if compress != "none" else 4_000)


@pytest.mark.parametrize("compress", KEPT)
def test_made_jobs(compress):
    for seed in range(60):
        jobs = random_jobs(random.Random(f"{compress} {seed}"), most_copies=9)
        rule = {"queue_policy": "conservative", "queue_options": {"compress": compress}}
        compare(jobs, ss.simulate(cluster_of(FLAT), workload_of(jobs), **rule), 8, compress)


# --- nobody starts after its promise ---------------------------------------------------------------------

PLAIN = ("slot=1/core", "slot=2/core", "slot=5/core", "slot=7/core")
MIXED = (
    *("slot=1/core", "slot=3/core=2", "slot=2/node", "slot=1/[core=2;gpu]", "node=2/slot=1/core", "core=3"),
    *("slot=1-3/core=2", "slot=1/core{id:'1'}", "slot=2/gpu"),
)
QUEUES = {"a": {"requires": ["a"], "priority": 1}, "b": {"requires": ["b"]}}
OUTAGE = {"ranks": "1", "start": 30, "end": 50, "kind": "maintenance"}


@st.composite
def configurations(draw):
    """A workload of early ends, cancelled and dependent jobs, and any rules that keep promises."""
    mixed, queues = draw(st.booleans()), draw(st.booleans())
    jobs = []
    for number in range(draw(st.integers(2, 20))):
        runtime = draw(st.integers(0, 20))
        limit = draw(st.sampled_from([runtime, runtime + 1, 2 * runtime + 5, 40, math.inf]))
        more = {"urgency": draw(st.sampled_from([16, 16, 20]))}
        if draw(st.integers(0, 9)) == 0:
            more["cancel_at"] = draw(st.integers(0, 60))
        if number and draw(st.integers(0, 9)) == 0:
            name = f"j{draw(st.integers(0, number - 1))}"
            more["dependencies"] = (Dependency("afterany", name, {}),)
        if queues:
            more["queue"] = draw(st.sampled_from(["a", "b"]))
        shape = draw(st.sampled_from(MIXED if mixed else PLAIN))
        jobs.append(job(f"j{number}", draw(st.integers(0, 40)), shape, runtime, max(limit, 1), **more))
    rule = {"compress": draw(st.sampled_from(KEPT))}
    if draw(st.integers(0, 3)) == 0:
        rule["queue_depth"] = draw(st.integers(1, 4))
    policy = draw(st.sampled_from(["conservative", "conservative", "hybrid"]))
    if policy == "hybrid":
        rule["depth"] = draw(st.integers(0, 4))
    options = {
        "order": draw(st.sampled_from(["fifo", "priority", "sjf", "largest-area", "wfp3", "fairshare"])),
        "match_policy": draw(st.sampled_from(["first", "high", "bestfit", "locality", "random", "lonodex"])),
        "queues": QUEUES if queues else None,
        "outages": [OUTAGE] if draw(st.booleans()) else [],
    }
    return jobs, policy, rule, options


@settings(max_examples=120, deadline=None)
@given(configurations())
def test_nobody_starts_after_its_promise(made):
    jobs, policy, rule, options = made
    cluster = machine(4, cores=4, gpus=1, properties={"a": "0-2", "b": "2-3"})
    found = run(cluster, *jobs, policy=policy, queue_options=rule, **options)
    assert not late(found)
    if policy == "conservative" and "queue_depth" not in rule:
        assert promised(found).keys() >= starts(found).keys()


@pytest.mark.quick(1)
@pytest.mark.parametrize("shapes", [PLAIN, MIXED], ids=["counts", "graph"])
@pytest.mark.parametrize("compress", KEPT)
def test_what_is_free_over_time_can_be_worked_out_again_at_any_pass(shapes, compress, monkeypatch):
    """Law: reservations are all the state there is; what is kept of the last pass changes no start."""

    class Forgetful(Conservative):
        def profile(self, context):
            context.reservations = None
            return super().profile(context)

    for seed in range(12):
        rng = random.Random(seed)
        jobs = [
            job(n, rng.randint(0, 60), rng.choice(shapes), rng.randint(0, 15), rng.choice([15, 20, 40]))
            for n in range(50)
        ]
        cluster, order = machine(3, cores=4, gpus=1), rng.choice(["fifo", "sjf", "wfp3"])
        found = kept(cluster, *jobs, compress=compress, order=order)
        with monkeypatch.context() as patch:
            patch.setattr(registry, "Conservative", Forgetful)
            again = kept(cluster, *jobs, compress=compress, order=order)
        assert starts(found) == starts(again)
        assert promised(found) == promised(again)


# --- promises that are broken ------------------------------------------------------------------------------

DRAIN = {"ranks": "0", "start": 5, "end": 40, "kind": "drain"}
WAITS = (job("A", 0, "slot=2/core", 10), job("B", 1, "slot=2/core", 5))


@pytest.mark.parametrize(
    ("jobs", "options", "cause"),
    [
        (WAITS, {"outages": [DRAIN]}, "drain from 5 until 40"),
        (WAITS, {"outages": [{**DRAIN, "kind": "failure", "start": 9}]}, "failure from 9 until 40"),
        (
            (job("A", 0, "slot=2/core", 30, 10), WAITS[1]),
            {"overrun": "allow"},
            "job A ran beyond its limit at 10",
        ),
        (WAITS, {"epilog": "3s"}, "job A was cleaned up after its end at 10"),
        (
            tuple(job(j.id, j.submit, "slot=2/core", j.runtime, queue="q") for j in WAITS),
            {"queues": {"q": {"closed": [[8, 30]]}}},
            "queue q stopped from 8 until 30",
        ),
    ],
    ids=["drain", "failure", "overrun", "epilog", "stopped queue"],
)
def test_what_breaks_a_promise_is_named(jobs, options, cause, tmp_path):
    found = kept(machine(2), *jobs, **options)
    assert "B" in late(found)
    found.save(tmp_path / "run")
    report = audit_run(tmp_path / "run", machine(2), found.workload)
    assert report
    assert [late.cause for late in report.explained if late.job == "B"] == [cause]
    assert f"job B was promised 10 and started at {starts(found)['B']:g}: {cause}" in str(report)


@pytest.mark.parametrize(
    ("compress", "promises", "faults"),
    [
        (
            "queue",
            {3: 6.0, 4: 3.5},
            ["D: was promised 6 and started at 7", "E: was promised 3.5 and started at 4"],
        ),
        (
            "queue",
            {3: 1.0},
            ["D: was promised 1 before it was eligible", "D: was promised 1 and started at 7"],
        ),
        ("replan", {3: 8.0}, ["D: was promised 8 by a policy that promises no start"]),
        ("replan", {}, []),
    ],
)
def test_the_audit_finds_promises_that_were_broken_or_never_made(compress, promises, faults, tmp_path):
    found = kept(machine(4), *STORY, compress=compress)
    for row, promise in promises.items():
        found.jobs["promised"][row] = promise
    found.save(tmp_path / "run")
    report = audit_run(tmp_path / "run", machine(4), found.workload)
    assert [str(fault) for fault in report.faults] == [f"P1 job {fault}" for fault in faults]


@pytest.mark.parametrize("policy", ["conservative", "hybrid"])
@pytest.mark.parametrize("compress", ["never", True, 3])
def test_rules_that_do_not_exist(policy, compress):
    with pytest.raises(ConfigError, match=r"policy-options\.compress: .*expected queue, start, none, replan"):
        kept(machine(1), policy=policy, compress=compress)
