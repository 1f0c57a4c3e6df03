"""The audit finds nothing in honest runs, and every fault that is planted."""

from __future__ import annotations

import json
import random

import pytest

import simsched as ss
from simsched.errors import RunError
from simsched.formats.rfc.dependency import Dependency
from simsched.graph.cluster import load_cluster
from simsched.simulation.audit.auditor import audit_run
from tests.simulation.audit.tampering import audited, recorded, saved, sealed_again
from tests.simulation.simworld import job, machine, run, workload

MACHINE = machine(4, cores=2, gpus=1, properties={"ssd": "0-1"})
JOBS = (
    job("A", 0, "slot=2/[core=1;gpu]", 5),
    job("B", 0, "slot=3/core=2", 9, 4),
    job("C", 1, "slot=1/node", 3, constraint="ssd"),
    job("D", 2, "node=2/slot=1/core=2", 3),
    job("E", 3, "slot=9/node", 3),
)


@pytest.fixture
def honest():
    """(lines as records, rows of the table) of a run without a fault."""
    return recorded(run(MACHINE, *JOBS))


@pytest.fixture
def check(tmp_path):
    """Audits the run with other lines and rows."""
    return lambda lines, rows: audited(run(MACHINE, *JOBS), MACHINE, tmp_path, lines, rows)


def of(lines, name, event):
    return next(line for line in lines if line["id"] == name and line["event"] == event)


def test_an_honest_run_is_clean(check, honest):
    report = check(*honest)
    assert report, str(report)
    assert (report.jobs, report.allocations, report.releases) == (5, 4, 4)
    assert str(report).splitlines()[0] == "audit: clean (5 jobs, 4 allocations, 4 releases)"


def lite(line):
    return line["R"]["execution"]["R_lite"]


def double_booking(lines, rows):
    """D gets the nodes that A is on."""
    for event in ("alloc", "release"):
        execution = of(lines, "D", event)["R"]["execution"]
        execution.update(R_lite=[{"rank": "0-1", "children": {"core": "0-1"}}], nodelist=["n[0-1]"])


def backwards(lines, rows):
    lines[-1]["time"] = -1


def unknown_job(lines, rows):
    lines[0]["id"] = "nobody"


def no_such_rank(lines, rows):
    lite(of(lines, "A", "alloc"))[0]["rank"] = "7-8"


def no_such_core(lines, rows):
    lite(of(lines, "A", "alloc"))[0]["children"]["core"] = "5"


def wrong_hosts(lines, rows):
    of(lines, "A", "alloc")["R"]["execution"]["nodelist"] = ["n[2-3]"]


def part_never_released(lines, rows):
    release = lite(of(lines, "A", "release"))[0]
    release["rank"] = "0"
    of(lines, "A", "release")["R"]["execution"]["nodelist"] = ["n0"]


def released_twice(lines, rows):
    lines.append(dict(lines[-1]))


def released_what_another_holds(lines, rows):
    for entry in lite(of(lines, "A", "release")):
        entry["children"] = {"core": "0-1"}


def too_little(lines, rows):
    for event in ("alloc", "release"):
        of(lines, "A", event)["R"]["execution"].update(
            R_lite=[{"rank": "0", "children": {"core": "0", "gpu": "0"}}], nodelist=["n0"]
        )


def no_gpu(lines, rows):
    for event in ("alloc", "release"):
        for entry in lite(of(lines, "A", event)):
            del entry["children"]["gpu"]


def half_a_node(lines, rows):
    for event in ("alloc", "release"):
        lite(of(lines, "C", event))[0]["children"] = {"core": "0"}


def constraint_broken(lines, rows):
    for event in ("alloc", "release"):
        execution = of(lines, "C", event)["R"]["execution"]
        execution["R_lite"][0]["rank"] = "3"
        execution["nodelist"] = ["n3"]


def wrong_expiration(lines, rows):
    of(lines, "A", "alloc")["R"]["execution"]["expiration"] += 1


def ran_too_long(lines, rows):
    row = next(row for row in rows if row["id"] == "B")
    late = of(lines, "B", "release")
    row["end"] = late["time"] = late["time"] + 1
    lines.sort(key=lambda line: line["time"])


def row_missing(lines, rows):
    rows.pop(0)


def row_twice(lines, rows):
    rows.append(dict(rows[0]))


def row_tells_another_start(lines, rows):
    rows[0]["start"] += 1


def row_tells_more_cores(lines, rows):
    rows[0]["cores"] += 1


def infeasible_without_reason(lines, rows):
    next(row for row in rows if row["id"] == "E")["reason"] = None


def infeasible_and_ran(lines, rows):
    rows[0].update(result="INFEASIBLE", reason="never")


def never_allocated(lines, rows):
    lines[:] = [line for line in lines if line["id"] != "D"]


PLANTED = [
    (double_booking, "A3"),
    (backwards, "A1"),
    (unknown_job, "A1"),
    (no_such_rank, "A2"),
    (no_such_core, "A2"),
    (wrong_hosts, "A2"),
    (part_never_released, "A4"),
    (released_twice, "A4"),
    (released_what_another_holds, "A4"),
    (too_little, "A5"),
    (no_gpu, "A5"),
    (half_a_node, "A5"),
    (constraint_broken, "A6"),
    (wrong_expiration, "A8"),
    (ran_too_long, "A8"),
    (row_missing, "A7"),
    (row_twice, "A7"),
    (row_tells_another_start, "A7"),
    (row_tells_more_cores, "A7"),
    (infeasible_without_reason, "A7"),
    (infeasible_and_ran, "A7"),
    (never_allocated, "A7"),
]


@pytest.mark.quick(8)
@pytest.mark.parametrize(("plant", "law"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_a_planted_fault_is_found(check, honest, plant, law):
    lines, rows = honest
    plant(lines, rows)
    report = check(lines, rows)
    assert not report
    assert law in report.counts, str(report)
    assert f"{law} job" in str(report)


def test_units_of_another_kind_are_found(tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "NodeName=a CPUs=4 Gres=gpu:old:1,gpu:new:1\nPartitionName=p Nodes=a\n"
    )
    cluster = ss.import_site(tmp_path / "slurm.conf").cluster
    jobs = [
        job("A", 0, "slot=1/gpu", 5, constraint="new@gpu"),
        job("B", 0, "slot=1/gpu", 5, constraint="old@gpu"),
    ]
    result = run(cluster, *jobs)
    lines, rows = recorded(result)
    assert [lite(of(lines, name, "alloc"))[0]["children"]["gpu"] for name in "AB"] == ["1", "0"]
    for event in ("alloc", "release"):
        for name, gpu in (("A", "0"), ("B", "1")):
            lite(of(lines, name, event))[0]["children"]["gpu"] = gpu
    report = audited(result, cluster, tmp_path, lines, rows)
    assert report.counts["A6"] == 2
    assert "its gpu units do not satisfy new@gpu" in str(report)


# --- against the record of the run --------------------------------------------------------------------------

STORY = (
    job("A", 0, "slot=2/node", 10),
    job("B", 1, "slot=1/core", 9, 4),
    job("C", 2, "slot=1/core", 3, dependencies=(Dependency.parse("afterok:A"),)),
    job("D", 2, "slot=1/core", 3, dependencies=(Dependency.parse("begin-time:30"),)),
    job("E", 3, "slot=1/core", 50, cancel_at=40),
    job("F", 3, "slot=1/node", 3, hold=True),
    job("G", 4, "slot=1/node", 6),
)
OUTAGES = [
    {"ranks": "3", "start": 12, "end": 20, "kind": "drain"},
    {"ranks": "2", "start": 100, "end": 110, "kind": "maintenance"},
    {"ranks": "3", "start": 60, "end": 70, "kind": "failure"},
]


@pytest.fixture
def story(tmp_path):
    """A run directory, and how to check it once its rows, lines or meta were changed."""
    result = run(MACHINE, *STORY, outages=OUTAGES)
    lines, rows = recorded(result)

    def check(change, said=lambda meta: None):
        change({row["id"]: row for row in rows}, lines)
        path = saved(result, tmp_path / "run", sorted(lines, key=lambda line: line["time"]), rows)
        meta = json.loads((path / "run.json").read_text())
        said(meta)
        (path / "run.json").write_text(json.dumps(meta))
        sealed_again(path)
        return audit_run(path, MACHINE, result.workload)

    return check


def move(rows, lines, name, start, ranks=None):
    """Let a job run as long as it did from another time on, on other ranks."""
    row = rows[name]
    by = start - row["start"]
    row.update(start=start, end=row["end"] + by)
    for line in lines:
        if line["id"] == name:
            line["time"] += by
            execution = line["R"]["execution"]
            execution["starttime"] += by
            execution["expiration"] += by
            if ranks is not None:
                execution["R_lite"][0]["rank"] = ranks
                execution["nodelist"] = [f"n{ranks}"]


def test_an_honest_story_is_clean(story):
    assert story(lambda rows, lines: None)


@pytest.mark.quick(5)
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda r, x: move(r, x, "C", 6), "job C: starts at 6, before afterok:A is met"),
        (lambda r, x: r["A"].update(result="TIMEOUT"), "job C: starts at 10, and afterok:A was never met"),
        (lambda r, x: move(r, x, "D", 20), "job D: starts at 20, before begin-time:30"),
        (lambda r, x: r["G"].update(eligible=7), "job G: starts at 4, eligible at 7"),
        (
            lambda r, x: move(r, x, "G", 14, "3"),
            "job G: is allocated rank 3 despite its drain from 12 until 20",
        ),
        (lambda r, x: move(r, x, "G", 96, "2"), "is allocated rank 2 despite its maintenance from 100 until"),
        (lambda r, x: move(r, x, "G", 57, "3"), "job G: ran through the failure of rank 3 at 60"),
        (
            lambda r, x: r["B"].update(result="COMPLETED"),
            "job B: is COMPLETED: its limit is 4 s, its run time 9 s",
        ),
        (lambda r, x: r["A"].update(result="RUNNING"), "job A: is RUNNING, and the run was not cut short"),
        (lambda r, x: r["A"].update(end=None), "job A: is COMPLETED and has no end"),
        (lambda r, x: r["A"].update(result="PENDING", start=None), "job A: is PENDING and has an allocation"),
        (lambda r, x: r["E"].update(result="PENDING"), "job E: is PENDING and has an allocation"),
        (lambda r, x: r["B"].update(result="FAILED"), "run.json counts 0 failed, the table has 1"),
    ],
)
def test_a_fault_against_the_record_of_the_run_is_found(story, change, text):
    assert text in str(story(change))


def test_a_held_job_that_ran_and_one_that_ran_too_long_before_it_was_cancelled(story):
    def change(rows, lines):
        rows["E"]["end"] = 60.0
        next(x for x in lines if x["id"] == "E" and x["event"] == "release")["time"] = 60
        rows["F"].update(start=20.0, end=23.0, result="COMPLETED", nodes=1, cores=2, gpus=1)
        for event, time in (("alloc", 20), ("release", 23)):
            record = json.loads(json.dumps(next(x for x in lines if x["id"] == "G")))
            record.update(id="F", event=event, time=time)
            record["R"]["execution"].update(starttime=20, expiration=23)
            lines.append(record)

    found = str(story(change))
    assert "job F: starts at 20 and is held" in found
    assert "job E: CANCELED after 57 s, though it would have ended after 50 s" in found


def test_a_job_that_should_have_ended_when_the_run_was_cut_short(story):
    found = story(lambda rows, lines: rows["A"].update(result="RUNNING"), lambda meta: meta.update(until=50))
    assert "job A: is RUNNING at 50, and should have ended" in str(found)


@pytest.mark.parametrize("until", [3, 4, 5, 6])
def test_a_run_cut_short_while_targets_clean_up_is_clean(tmp_path, until):
    result = run(MACHINE, job("A", 0, "slot=2/node", 3), epilog="2s", until=until)
    result.save(tmp_path / "run")
    assert audit_run(tmp_path / "run", MACHINE, result.workload)
    result = run(MACHINE, job("A", 0, "slot=2/node", 3), epilog="2s", until=until)
    assert result.jobs["end"][0] == 3


@pytest.mark.parametrize("cancel_at", [8, None])
def test_a_job_that_was_queued_again_and_never_ran_is_no_fault(tmp_path, cancel_at):
    """A's node fails at 5 for good: it waits for the others until it is cancelled, or for ever."""
    jobs = [job("A", 0, "slot=4/node", 9, cancel_at=cancel_at)]
    result = run(MACHINE, *jobs, outages=[{"ranks": "0", "start": 5, "kind": "failure"}])
    assert result.jobs["result"][0] == ("PENDING" if cancel_at is None else "CANCELED")
    result.save(tmp_path / "run")
    assert audit_run(tmp_path / "run", MACHINE, result.workload)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line.update(time="soon"),
        lambda line: line["R"]["execution"].pop("R_lite"),
        lambda line: line["R"]["execution"].update(nodelist=3),
        lambda line: line["R"]["execution"].update(R_lite=[{"rank": "x-", "children": {}}]),
        lambda line: line["R"]["execution"].update(R_lite=[{"rank": "0", "children": {"core": "a"}}]),
        lambda line: line["R"]["execution"].update(R_lite=7),
        lambda line: line.update(R=[]),
    ],
)
def test_an_r_that_cannot_be_read_is_a_fault_and_no_crash(check, honest, spoil):
    lines, rows = honest
    spoil(lines[0])
    assert "A1" in check(lines, rows).counts


def test_lines_that_are_no_records_are_faults(check, honest):
    assert check(["{}", "nonsense", "[1]"], honest[1]).counts["A1"] == 3


def test_an_exclusive_node_is_held_alone(tmp_path):
    """C holds n0 or n1 whole; a job on its second core is a fault though no unit is named twice."""
    cluster = machine(1, cores=2)
    jobs = (job("N", 0, "slot=1/node/core=1", 5), job("S", 0, "slot=1/core=1", 5))
    result = run(cluster, *jobs, policy="fcfs")
    lines = [json.loads(line) for line in result.log.text().splitlines()]
    assert [line["time"] for line in lines] == [0, 5, 5, 10]
    lines[2]["time"] = 0
    lines[2]["R"]["execution"]["R_lite"][0]["children"] = {"core": "1"}
    lines[3]["R"]["execution"]["R_lite"][0]["children"] = {"core": "1"}
    lines.insert(1, lines.pop(2))
    assert "A3" in audited(result, cluster, tmp_path, lines, []).counts


def test_a_directory_without_allocations_cannot_be_audited(tmp_path):
    result = run(MACHINE, *JOBS, allocations=False)
    path = result.save(tmp_path / "run")
    with pytest.raises(RunError, match=r"allocations\.jsonl"):
        audit_run(path, MACHINE, workload(*JOBS))


SHAPES = (
    "slot=2/core=1",
    "slot=1/[core=2;gpu]",
    "slot=1/node",
    "slot=2/node",
    "node=2/slot=1/core=1",
    "node=1/slot=2/core=1",
    "slot=1-4/core=1",
    "core=2",
)


@pytest.mark.quick(1)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "hybrid"])
@pytest.mark.parametrize("match", ["first", "hinode", "lonodex", "bestfit"])
def test_random_runs_are_clean(tmp_path, policy, match):
    """Law: no policy ever books twice, gives too little, or breaks a constraint."""
    rng = random.Random(f"{policy} {match}")
    for round_ in range(6):
        jobs = [
            job(
                number,
                rng.randint(0, 40),
                rng.choice(SHAPES),
                rng.choice([0, 1, rng.randint(1, 30)]),
                rng.choice([5, 20, 60, float("inf")]),
                constraint=rng.choice([None, None, "ssd", "-ssd"]),
            )
            for number in range(40)
        ]
        result = run(MACHINE, *jobs, policy=policy, match_policy=match, seed=round_)
        path = result.save(tmp_path / f"run{round_}")
        report = audit_run(path, MACHINE, workload(*jobs))
        assert report, str(report)
        assert set(result.jobs["result"]) <= {"COMPLETED", "TIMEOUT"}


def test_a_record_left_out_may_bear_the_id_of_a_job(check, honest):
    lines, rows = honest
    dropped = {**rows[0], "result": "DROPPED", "start": None, "end": None, "reason": "job id occurs twice"}
    found = check(lines, [*rows, dropped]).faults
    assert {str(fault) for fault in found} == {
        "A7 job (all): run.json counts 5 jobs, the table has 6",
        "A7 job (all): run.json counts 0 dropped, the table has 1",
    }
    assert check(lines, [dropped, *rows[1:]]).faults != []


def test_a_job_that_never_ends_is_dropped_by_the_run_and_no_fault(tmp_path):
    """Neither a run time nor a duration is known: its row says so, and it has no allocation."""
    jobs = [job("A", 0, "slot=1/core", 5), job("X", 0, "slot=1/core", None, None)]
    result = run(MACHINE, *jobs)
    assert dict(zip(result.jobs["id"], result.jobs["result"], strict=True)) == {
        "A": "COMPLETED",
        "X": "DROPPED",
    }
    report = audit_run(result.save(tmp_path / "run"), MACHINE, workload(*jobs))
    assert report, str(report)


@pytest.mark.parametrize("begin", [9e15, 123456789.123])
def test_times_of_any_size_are_compared_up_to_their_rounding(tmp_path, begin):
    jobs = [
        job("A", begin, "slot=4/core=2", 100.3),
        job("B", begin, "slot=1/core", 7),
        job("C", begin, "slot=1/core", 0, 5),
    ]
    path = run(MACHINE, *jobs).save(tmp_path / "run")
    report = audit_run(path, MACHINE, workload(*jobs))
    assert report, str(report)


def test_a_shift_of_seconds_is_found_late_in_a_year(tmp_path):
    """At 3·10⁷ s a slack in proportion to the time would hide half a minute."""
    result = run(MACHINE, job("A", 3e7, "slot=1/core", 100))
    lines, rows = recorded(result)
    rows[0]["end"] += 5
    lines[1]["time"] += 5
    report = audited(result, MACHINE, tmp_path, lines, rows)
    assert "job A: COMPLETED after 105 s instead of 100 s" in str(report)


@pytest.mark.parametrize("status", ["down", "drained"])
def test_targets_that_are_down_in_the_cluster_need_no_outage(tmp_path, status):
    (tmp_path / "c.yaml").write_text(f"name: c\ngroups:\n  - {{name: n, count: 4, cores: 4, {status}: n3}}\n")
    cluster = load_cluster(tmp_path / "c.yaml")
    jobs = [job("A", 0, "slot=3/node", 10), job("B", 30, "slot=2/core", 5)]
    run(cluster, *jobs).save(tmp_path / "run")
    assert audit_run(tmp_path / "run", cluster, workload(*jobs)).faults == []

    with_outage = run(machine(4, 4), *jobs, outages=[{"ranks": "3", "start": 0, "end": 9, "kind": "drain"}])
    with_outage.save(tmp_path / "out")
    meta = json.loads((tmp_path / "out" / "run.json").read_text())
    del meta["config"]["outages"]
    (tmp_path / "out" / "run.json").write_text(json.dumps(meta))
    assert any(
        "without an outage" in str(f)
        for f in audit_run(tmp_path / "out", machine(4, 4), workload(*jobs)).faults
    )


def test_shared_units_are_in_use_and_not_down_beside_a_drained_node(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "name: c\ngroups:\n  - {name: n, count: 4, cores: 4, drained: n3}\n"
        "pools:\n  - {type: License, size: 6, name: L}\n"
    )
    cluster = load_cluster(tmp_path / "c.yaml")
    jobs = [job("A", 0, "[License=1;slot=2/core]", 10), job("B", 5, "[License=1;slot=1/core]", 10)]
    result = run(cluster, *jobs)
    assert not result.timeline["down_License"].any()
    assert result.timeline["used_License"].max() >= 1
    result.save(tmp_path / "run")
    assert audit_run(tmp_path / "run", cluster, workload(*jobs)).faults == []
