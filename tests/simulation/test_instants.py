"""What belongs to one instant, to the end of a run, and to jobs that wait for what never comes."""

from __future__ import annotations

import json
import threading

import msgspec
import numpy as np
import pytest

from simsched.cycles import cyclic_groups
from simsched.errors import ConfigError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.dependency import Dependency
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.jobs.lifecycle import JobState, replay
from simsched.simulation.options.run_config import make_config
from simsched.simulation.outages.outages import Failures
from simsched.simulation.simulate import engine_of, simulate
from simsched.workload.job import Workload
from tests.simulation.simworld import job, machine, results, run, spans, starts, workload


def after(*texts):
    return {"dependencies": tuple(Dependency.parse(text) for text in texts)}


def reasons(result):
    return {n: r for n, r in zip(result.jobs["id"], result.jobs["reason"], strict=True) if r}


# --- dependencies that can never be met ------------------------------------------------------------------


@pytest.mark.parametrize("never", [{"shape": "slot=9/core"}, {"cancel_at": 3}, {"depends": "afternotok:X"}])
def test_who_waits_for_the_start_of_a_job_that_never_starts_waits_in_vain(never):
    depends = after(never.pop("depends")) if "depends" in never else {}
    shape = never.pop("shape", "slot=1/core")
    found = run(
        machine(4),
        job("X", 0, "slot=4/core", 9),
        job("A", 0, shape, 5, **never, **depends),
        job("B", 1, "slot=1/core", 5, **after("after:A")),
        job("C", 20, "slot=1/core", 5, **after("after:A")),
    )
    assert results(found)["B"] == results(found)["C"] == "FAILED"
    assert reasons(found)["B"] == "dependency after:A can never be met"


def test_each_that_says_inout_waits_for_the_one_before_it():
    found = run(
        machine(4),
        *(job(name, 0, "slot=1/core", 5, **after("fluid:x?type=inout")) for name in "ABC"),
        job("D", 0, "slot=1/core", 5, **after("fluid:x?type=in")),
    )
    assert starts(found) == {"A": 0, "B": 5, "C": 10, "D": 15}


def test_jobs_that_wait_for_each_other_in_a_circle_fail_and_say_so():
    found = run(
        machine(4),
        job("A", 0, "slot=1/core", 5, **after("afterok:B")),
        job("B", 2, "slot=1/core", 5, **after("afterany:C")),
        job("C", 2, "slot=1/core", 5, **after("after:A")),
        job("D", 0, "slot=1/core", 5, **after("afterok:D")),
        job("E", 0, "slot=1/core", 5, **after("afterany:B")),
        job("F", 0, "slot=1/core", 5, **after("afterok:E", "afterok:A")),
    )
    assert starts(found) == {"E": 2}
    assert reasons(found)["C"] == "dependencies in a cycle can never be met: A, B, C"
    assert reasons(found)["D"] == "dependencies in a cycle can never be met: D"
    assert reasons(found)["F"] == "dependency afterok:A can never be met"
    assert set(results(found).values()) == {"FAILED", "COMPLETED"}


def test_circles_are_those_of_every_pair_of_walks():
    """Against the definition: two jobs are in one circle if each is reached from the other."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(1, 9))
        links = {
            job: rng.choice(n, int(rng.integers(0, 3))).tolist() for job in range(n) if rng.random() < 0.9
        }
        reach = np.zeros((n, n), dtype=bool)
        for job_, others in links.items():
            reach[job_, others] = True
        for k in range(n):
            reach |= np.outer(reach[:, k], reach[k])
        groups = {tuple(np.flatnonzero(reach[i] & reach[:, i]).tolist()) for i in range(n) if reach[i, i]}
        assert cyclic_groups(links) == [list(group) for group in sorted(groups)]
    assert cyclic_groups({n: [n + 1] for n in range(50_000)}) == []


@pytest.mark.parametrize(("text", "expected"), [("afterok:A", 3), ("after:A", 4)])
def test_only_a_start_that_somebody_waits_for_makes_a_second_pass(text, expected):
    """A second pass might let somebody in whom the first refused."""
    jobs = workload(job("A", 0, "slot=1/core", 3), job("B", 0, "slot=1/core", 1, **after(text)))
    engine, _, _ = engine_of(machine(4), jobs, make_config())
    engine.run()
    assert engine.progress.passes == expected


# --- the end of a run ------------------------------------------------------------------------------------


def test_what_a_pass_brings_about_at_the_last_instant_belongs_to_it():
    found = run(
        machine(4),
        job("A", 3, "slot=4/core", 0),
        job("B", 3, "slot=4/core", 0, **after("after:A")),
        job("C", 3, "slot=4/core", 9),
        until=3,
    )
    assert results(found) == {"A": "COMPLETED", "B": "COMPLETED", "C": "RUNNING"}
    assert spans(found)["B"] == (3, 3)


@pytest.mark.parametrize("order", ["wfp3", "unicef"])
def test_ending_a_run_at_a_time_makes_no_pass_of_its_own(order):
    """Orders that change with time might start somebody at 6, where nothing happens in the whole run."""
    jobs = [
        job("A", 0, "slot=3/core", 20),
        job("B", 1, "slot=2/core", 100),
        job("C", 2, "slot=1/core", 2),
        job("D", 9, "slot=1/core", 2),
    ]
    whole = starts(run(machine(4), *jobs, policy="fcfs", order=order))
    for until in np.arange(0, 20, 0.5):
        part = starts(run(machine(4), *jobs, policy="fcfs", order=order, until=float(until)))
        assert part == {name: start for name, start in whole.items() if start <= until}


class SoonSet(threading.Event):
    """A stop that somebody asks for during the third pass."""

    def __init__(self):
        super().__init__()
        self.asked = 0

    def is_set(self):
        self.asked += 1
        return self.asked >= 3


def test_a_run_that_is_stopped_ends_with_the_pass_at_hand():
    found = run(machine(4), *(job(str(n), n, "slot=1/core", 1) for n in range(300)), stop=SoonSet())
    assert not found.meta["complete"]
    assert np.isfinite(found.jobs["start"]).sum() == 3


# --- failures --------------------------------------------------------------------------------------------


def test_a_failure_at_the_instant_of_an_end_loses_no_pass():
    """A ends at the very second in which the node fails: B starts as soon as it is repaired."""
    failures = Failures(mtbf=1000, mttr=10)
    first = failures.lifetime(np.random.default_rng([0, 1]))
    found = run(
        machine(1), job("A", 0, "slot=1/core", first), job("B", 1, "slot=1/core", 1), failures=failures
    )
    assert results(found) == {"A": "COMPLETED", "B": "COMPLETED"}
    last = run(machine(1), job("A", 0, "slot=1/core", first), failures=failures)
    assert last.timeline["time"][-1] == first
    assert last.timeline["used_core"][-1] == 0


def test_a_checkpoint_after_the_end_changes_nothing_of_a_run_that_only_failures_go_on_in(tmp_path):
    jobs = [job("A", 2, "slot=2/node", 5)]
    options = {"failures": "mtbf=100,mttr=1", "outages": [{"ranks": "0", "start": 1, "kind": "drain"}]}
    plain = run(machine(2), *jobs, **options)
    saved = run(machine(2), *jobs, **options, checkpoints={5000: tmp_path / "late.json"})
    assert saved.timeline["time"].tolist() == plain.timeline["time"].tolist()


# --- epilogs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epilog", "start"), [("500ms", 5.5), (1.5, 6.5), ("2s", 7), ("1.5s..2.5s", 7)])
def test_an_epilog_takes_as_long_as_it_says(epilog, start):
    found = run(machine(4), *(job(name, 0, "slot=4/core", 5) for name in "AB"), epilog=epilog)
    assert starts(found)["B"] == start


def test_an_epilog_without_a_whole_second_in_it_cannot_be_drawn():
    with pytest.raises(ConfigError, match="no whole second"):
        run(machine(4), job("A", 0, "slot=1/core", 5), epilog="200ms..800ms")


def test_a_cancelled_job_cleans_up_and_one_whose_node_fails_does_not(tmp_path):
    jobs = [
        job("A", 0, "slot=4/core", 9, cancel_at=3),
        job("B", 1, "slot=4/core", 9),
        job("C", 2, "slot=3/core", 1),
    ]
    outages = [{"ranks": "0", "start": 7, "end": 20, "kind": "failure"}]
    found = run(machine(4), *jobs, epilog="2s", outages=outages, on_failure="fail", eventlog=True)
    assert starts(found) == {"A": 0, "B": 5, "C": 7}
    assert results(found) == {"A": "CANCELED", "B": "FAILED", "C": "COMPLETED"}
    found.save(tmp_path / "run")
    assert not audit_run(tmp_path / "run", machine(4), found.workload).faults


# --- queue hours -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "closed", [[[0, 10], [5, 15]], [[10, 20], [0, 10]], [[0, 15], [2, 3]], [[5, 7], [0, 15], [7, 9]]]
)
def test_windows_of_a_queue_may_overlap_and_stand_in_any_order(closed):
    queues = {"night": {"closed": closed}}
    found = run(machine(4), job("A", 1, "slot=1/core", 1, queue="night"), queues=queues)
    assert starts(found)["A"] == max(end for _, end in closed)


# --- jobs of zero seconds --------------------------------------------------------------------------------


@pytest.mark.parametrize("drained", [[], [{"ranks": "0", "start": 1000, "end": 1001, "kind": "drain"}]])
@pytest.mark.parametrize("unit", ["core", "node"])
@pytest.mark.parametrize("policy", ["easy", "conservative", "hybrid"])
def test_a_reservation_of_zero_seconds_is_kept(policy, unit, drained):
    """B asks for both nodes at 10, for no time: C (20 s) would be in its way, however it is counted."""
    found = run(
        machine(2),
        job("A", 0, f"slot=1/{unit}", 10),
        job("B", 1, f"slot=2/{unit}", 0),
        job("C", 2, f"slot=1/{unit}", 20),
        policy=policy,
        outages=drained,
    )
    assert starts(found) == {"A": 0, "B": 10, "C": 10}


# --- what runs on beyond its expected end ----------------------------------------------------------------


@pytest.mark.parametrize("policy", ["conservative", "hybrid"])
def test_who_is_planned_where_another_runs_on_does_not_start_in_a_reservation(policy):
    """J would fit on n1, where O ought to be done; n0 is free, but R will need it at 10."""
    found = run(
        machine(3, properties={"r": "0,2", "o": "1", "y": "2"}),
        job("O", 0, "slot=1/node", 20, 2, constraint="o"),
        job("Y", 0, "slot=1/node", 10, constraint="y"),
        job("R", 1, "slot=2/node", 5, constraint="r"),
        job("J", 3, "slot=1/node", 30),
        policy=policy,
        overrun="allow",
    )
    assert starts(found) == {"O": 0, "Y": 0, "R": 10, "J": 15}


@pytest.mark.parametrize("policy", ["conservative", "hybrid"])
def test_a_pass_plans_anew_once_an_expected_end_has_passed(policy):
    """At 6 B ought to be done, and A long before: H is planned for the next moment, and J fits beside it."""
    found = run(
        machine(4),
        job("A", 0, "slot=2/core", 30, 2),
        job("B", 0, "slot=1/core", 12, 6),
        job("H", 1, "slot=3/core", 8),
        job("J", 3, "slot=1/core", 15),
        job("X", 7, "slot=9/core", 1),
        policy=policy,
        overrun="allow",
    )
    assert starts(found)["J"] == 6


# --- what a run writes of it -----------------------------------------------------------------------------


def test_who_waited_for_a_job_whose_node_failed_is_ended_in_the_eventlog_too():
    outages = [{"ranks": "0", "start": 3, "end": 9, "kind": "failure"}]
    found = run(
        machine(2),
        job("A", 0, "slot=1/node", 5),
        job("B", 1, "slot=1/node", 5, **after("afterok:A")),
        outages=outages,
        on_failure="fail",
        eventlog=True,
    )
    events = [json.loads(line) for line in found.events.text().splitlines()]
    names = {name: [event["name"] for event in events if event["id"] == name] for name in "AB"}
    assert names["A"][-4:] == ["exception", "release", "free", "clean"]
    assert names["B"] == ["submit", "validate", "exception", "clean"]
    assert all(replay(said) is JobState.INACTIVE for said in names.values())


def test_the_last_instant_of_a_run_is_written_as_in_the_whole_run():
    """`until` may be 21.0 where the workload says 21, and the other way round."""
    for submit, until in ((3, 3.0), (3.0, 3)):
        jobs = [job("A", submit, "slot=1/node", 5)]
        whole = run(machine(2), *jobs, eventlog=True).events.text().splitlines()
        part = run(machine(2), *jobs, eventlog=True, until=until).events.text().splitlines()
        assert part == whole[: len(part)]


def test_r_of_a_job_of_zero_seconds_is_an_r(tmp_path):
    """RFC 20: the expiration must be greater than the starttime; in a checkpoint, too."""
    jobs = [job("A", 0, "slot=1/core", 0), job("B", 2, "slot=1/node", 0)]
    file = tmp_path / "state.json"
    found = run(machine(2), *jobs, epilog="3s", checkpoints={4: file})
    lines = [json.loads(line) for line in found.log.text().splitlines()]
    held = [entry["R"] for entry in json.loads(file.read_text())["running"]]
    assert len(lines) == 4
    assert len(held) == 1
    for document in [*(line["R"] for line in lines if line["event"] == "alloc"), *held]:
        read = ResourceSet.from_dict(document)
        assert read.expiration > read.starttime
    found.save(tmp_path / "run")
    assert audit_run(tmp_path / "run", machine(2), found.workload)


@pytest.mark.parametrize("policy", ["conservative", "hybrid", "easy", "fcfs"])
def test_who_was_planned_behind_a_job_of_zero_seconds_starts_at_that_instant(policy):
    found = run(
        machine(2),
        job("A", 0, "slot=2/core", 3),
        job("B", 1, "slot=1/core", 0),
        job("C", 2, "slot=2/core", 4),
        policy=policy,
    )
    assert starts(found) == {"A": 0, "B": 3, "C": 3}


@pytest.mark.parametrize("refresh", ["when-blocked", "always"])
def test_a_candidate_that_was_refused_is_tried_again_once_something_is_free(refresh):
    """K would delay F on n0, and n1 is full until B ends early, at 10."""
    found = run(
        machine(2, 4, properties={"first": "0"}),
        job("A", 0, "slot=3/core", 100, constraint="first"),
        job("B", 0, "slot=1/node", 10, 50),
        job("F", 1, "slot=1/node", 10, constraint="first"),
        job("K", 2, "slot=1/core", 200),
        queue_options={"refresh": refresh},
    )
    assert starts(found) == {"A": 0, "B": 0, "F": 100, "K": 10}


@pytest.mark.parametrize("behind", [0, 60])
@pytest.mark.parametrize("refresh", ["when-blocked", "always"])
def test_a_reservation_that_stays_stays_however_long_the_queue_is(refresh, behind):
    """H gets 100 when it is first blocked. A ends at 10, so 20 would do; C ends before 100 and after 20."""
    found = run(
        machine(4),
        job("A", 0, "slot=2/core", 10, 100),
        job("B", 0, "slot=2/core", 20),
        job("H", 1, "slot=4/core", 1),
        job("D", 3, "slot=2/core", 200),
        *(job(f"L{number}", 2, "slot=4/core", 1) for number in range(behind)),
        job("C", 12, "slot=2/core", 50),
        queue_options={"refresh": refresh},
    )
    assert starts(found)["C"] == (12 if refresh == "when-blocked" else 21 + behind)


def test_a_long_queue_is_looked_at_like_a_short_one():
    """The same jobs, small and large, with 60 behind them that nobody can let in before the end."""
    rng = np.random.default_rng(3)
    jobs = [
        job(f"j{n}", int(rng.integers(0, 40)), f"slot={rng.integers(1, 5)}/core", int(rng.integers(1, 9)), 12)
        for n in range(25)
    ]
    last = [job(f"L{n}", 41, "slot=4/core", 500, urgency=1) for n in range(60)]
    for options in ({}, {"refresh": "when-blocked"}, {"extra": False}, {"reservation": "none"}):
        short = starts(run(machine(4), *jobs, order="priority", queue_options=options))
        long = starts(run(machine(4), *jobs, *last, order="priority", queue_options=options))
        assert {name: long[name] for name in short} == short


def test_what_a_reservation_that_stays_has_set_aside_is_no_whole_node(tmp_path):
    """n3 was down when H was first blocked, and is not left over then: W must not get it empty."""
    cluster = machine(4, cores=2)
    found = run(
        cluster,
        job("A", 0, "slot=4/core", 50),
        job("H", 6, "slot=6/core", 5),
        job("W", 10, "slot=1/node", 100),
        outages=[{"ranks": "3", "start": 5, "end": 10, "kind": "failure"}],
        queue_options={"refresh": "when-blocked"},
        match_policy="bestfit",
    )
    found.save(tmp_path / "run")
    assert audit_run(tmp_path / "run", cluster, found.workload)
    assert starts(found)["W"] == 50


# --- jobs that Python callers may make -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"submit": float("nan")}, "job B: submit is nan"),
        ({"submit": float("inf")}, "job B: submit is inf"),
        ({"submit": -1}, "job B: submit is -1"),
        ({"runtime": float("nan")}, "job B: runtime is nan"),
        ({"duration": -3}, "job B: duration is -3"),
        ({"cancel_at": float("nan")}, "job B: cancel_at is nan"),
        ({"preceding": "A", "think_time": float("inf")}, "job B: think_time is inf"),
        ({"id": "A"}, "job A: its id occurs twice"),
        ({"submit": 0}, "job B: it is submitted before the previous job"),
    ],
)
def test_jobs_that_cannot_be_played_are_one_clear_error(odd, message):
    """One of them would never come to an end: no time is ever equal to nan."""
    first = job("A", 1, "slot=1/core", 5)
    second = msgspec.structs.replace(job("B", 2, "slot=1/core", 5), **odd)
    with pytest.raises(WorkloadError, match=message):
        simulate(machine(2), Workload(jobs=(first, second), total_records=2))
