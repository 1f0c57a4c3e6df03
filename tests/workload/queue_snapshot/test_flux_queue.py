"""What ``flux jobs -A --json`` and ``flux job list`` print, as a queue picture."""

from __future__ import annotations

import json
import re

import pytest

from simsched.errors import SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.workload.mapping import ReadOptions
from simsched.workload.queue_snapshot import NEVER, Details, Spread, load_queue_snapshot, read_flux_queue
from simsched.workload.readers.flux_jobs import job_number

T = 1711580000.0
IDS = {"a": "ƒBqtvB7V", "b": "ƒ2ARxLQf", "c": "ƒ2RsQrcw", "d": "ƒ2RsQrcx", "e": "ƒ2RsQrcy"}


def record(name, state, **more):
    """One job as `JobInfo.to_dict` has it: keys that are not known are absent, F58 beside the number."""
    number = job_number(IDS[name])
    found = {"id": number, "jobid": IDS[name], "state": state, "name": name, "urgency": 16, "userid": 1000}
    found |= {
        "t_submit": T + 0.25,
        "t_depend": T + 0.25,
        "dependencies": [],
        "annotations": {},
        "duration": 0.0,
    }
    if state in ("RUN", "CLEANUP"):
        found |= {
            "t_run": T + 1,
            "runtime": 59.0,
            "priority": 16,
            "nnodes": 1,
            "ranks": "0",
            "nodelist": "n0",
        }
    return {**found, **more}


def read(*records, details=None, **reading):
    return read_flux_queue(
        json.dumps({"jobs": records}), "f.json", ReadOptions(**reading), details or Details()
    )


def test_the_fields_of_flux_core():
    nodes = {"nnodes": 2, "ncores": 8}
    where = {**nodes, "ranks": "[0-1]", "nodelist": "n[0-1]"}
    asked = {**nodes, "duration": 1800.0, "priority": 40, "urgency": 20, "bank": "x", "t_submit": T + 5}
    found = read(
        record("a", "RUN", **where, duration=60.0, expiration=T + 61, username="ann", queue="batch"),
        record("b", "RUN", duration=30.0),
        record("c", "SCHED", **asked),
    )
    a, b = found.running
    assert (found.time, found.epoch) == (T + 60, True)  # t_run + runtime
    assert (a.job.id, a.job.user, a.job.queue, a.start, a.end) == (IDS["a"], "ann", "batch", T + 1, T + 61)
    assert isinstance(a.holds, Spread)
    assert (str(a.holds.ranks), str(a.holds.hosts), a.holds.cores) == ("0-1", "n[0-1]", 8)
    assert (b.job.user, b.end, b.holds.cores) == ("1000", T + 31, None)
    (c,) = found.waiting
    assert (c.job.submit, c.job.duration, c.job.urgency, c.job.priority, c.job.bank) == (
        T + 5,
        1800,
        20,
        40,
        "x",
    )
    assert (c.job.jobspec.to_shape(), c.reason) == ("node=2/slot=4/core", None)


@pytest.mark.parametrize(
    ("counts", "shape"),
    [
        ({"nnodes": 2, "ncores": 8}, "node=2/slot=4/core"),
        ({"nnodes": 2}, "slot=2/node"),  # exclusive nodes: flux-core leaves ncores out
        ({"ncores": 8}, "slot=8/core"),
        ({"ntasks": 3}, "slot=3/core"),  # flux-core before 0.46
    ],
)
def test_counts_become_requests(counts, shape):
    (found,) = read(record("c", "SCHED", **counts)).waiting
    assert found.job.jobspec.to_shape() == shape
    (found,) = read(record("c", "SCHED", **counts), maps="slot={procs|1}/core=2").waiting
    assert found.job.jobspec.to_shape().endswith("/core=2")


def test_who_waits_for_something_else_says_what():
    found = read(
        record("a", "RUN"),
        record(
            "b", "DEPEND", ncores=1, dependencies=["after-success=" + IDS["a"], "after-start=" + IDS["c"]]
        ),
        record("c", "DEPEND", ncores=1, dependencies=["begin@04:45"]),
        record("d", "PRIORITY", ncores=1),
        record("e", "SCHED", ncores=1, urgency=0),
    ).waiting
    assert [str(item) for item in found[0].job.dependencies] == ["afterok:" + IDS["a"], "after:" + IDS["c"]]
    assert [waits.reason for waits in found] == [
        *(None, "waits for begin@04:45", "waits for its priority", "held: its urgency is 0")
    ]
    found = read(
        record("a", "DEPEND", ncores=1),
        record("b", "SCHED", ncores=1, priority=0),
        record("c", "SCHED"),
        record("d", "DEPEND", ncores=1, dependencies=["after-success=" + IDS["e"]]),
    ).waiting
    assert [waits.reason for waits in found] == [
        "is in state DEPEND, and its dependency is missing",
        "held: its priority is 0",
        "the request is missing (expected its jobspec, among the details)",
        f"waits for after-success={IDS['e']}",
    ]


def test_states_as_numbers_one_a_line_and_when_nothing_runs():
    lines = [record("c", 8, ncores=1, t_submit=T + 7), record("a", 64, t_submit=T + 99)]
    found = read_flux_queue("\n".join(map(json.dumps, lines)), "f.jsonl", ReadOptions(), Details())
    assert (found.time, [waits.job.id for waits in found.waiting]) == (T + 7, [IDS["c"]])
    assert read(record("a", "INACTIVE")) is None  # a log, to be played


def test_details_are_known_by_any_form_of_the_id():
    spec = {**Jobspec.from_shape("slot=2/gpu").to_dict()}
    spec["attributes"]["system"]["dependencies"] = [{"scheme": "afterok", "value": "ƒdone"}]
    execution = {
        "R_lite": [{"rank": "0", "children": {"core": "0"}}],
        "nodelist": ["n0"],
        "expiration": T + 900,
    }
    granted = {"version": 1, "execution": execution}
    more = Details(
        {job_number(IDS["a"]): ("m:1", {"R": granted}), job_number(IDS["c"]): ("m:2", {"jobspec": spec})}
    )
    found = read(
        record("a", "RUN"), record("b", "CLEANUP", t_cleanup=T + 9), record("c", "SCHED"), details=more
    )
    a, b = found.running
    assert (a.holds.count("core"), a.end, a.cleaning) == (1, T + 900, False)
    assert (b.end, b.cleaning) == (T + 9, True)
    assert found.waiting[0].job.jobspec.to_shape() == "slot=2/gpu"
    assert found.waiting[0].job.dependencies == ()  # it is in SCHED: they were met
    assert read(record("a", "RUN", R=granted)).running[0].end == T + 900
    assert read(record("a", "RUN")).running[0].end == NEVER


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            [record("a", "RUN", ranks="", nodelist="")],
            "jobs[0]: the resources of the running job are missing",
        ),
        ([record("a", "RUN", t_run=0)], "jobs[0]: is in state RUN and never started"),
        ([record("a", "RUN", ranks="3-1")], "jobs[0]: ranks"),
        ([record("a", "RUN", expiration=T)], "jobs[0]: expires at 1711580000, before its start"),
        ([record("a", "RUN"), record("a", "SCHED")], "jobs[1]: job id"),
        ([record("a", "RUN", ncores="many")], "jobs[0]: bad ncores 'many'"),
        ([record("a", "RUN", runtime=-1)], "bad runtime -1"),
        ([record("a", "DEPEND", dependencies=7)], "jobs[0]: bad dependencies 7"),
        ([record("a", "SCHED", id=None)], "jobs[0]: not a job"),
        ([record("a", "SCHED"), 7], "jobs[1]: not a job"),
        ([record("a", "RUN", R={"version": 1})], "jobs[0].R"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(records, said):
    with pytest.raises(SimschedError, match=re.escape(said)):
        read(*records)


def test_a_file_is_a_picture_or_something_else(tmp_path):
    def kind(text):
        (tmp_path / "x").write_text(text)
        found = load_queue_snapshot(tmp_path / "x")
        return None if found is None else len(found.running) + len(found.waiting)

    assert kind(json.dumps({"jobs": [record("a", "RUN"), record("b", "INACTIVE")]})) == 1
    assert kind(json.dumps({"jobs": [record("b", "INACTIVE")]})) is None
    assert kind(json.dumps(record("a", "SCHED", ncores=1))) == 1
    assert kind('{"description": "x", "kind": "simsched queue", "time": 3}') == 0
    assert kind("# now\ntime: 3\nkind: simsched queue\nrunning: []\n") == 0
    assert kind("{time: 3, kind: simsched queue}") == 0
    for workload in (
        "- {shape: slot=1/core, runtime: 3}",
        "; Version: 2.2\n",
        "name: x\njobs: []\n",
        '{"jobs": []}',
        "",
    ):
        assert kind(workload) is None
