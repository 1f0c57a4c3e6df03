"""A run that is resumed from a checkpoint is the run that was never interrupted, byte for byte."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256

import numpy as np
import pytest

from simsched.errors import ConfigError, FormatError, RunError
from simsched.formats.rfc.dependency import Dependency
from simsched.graph.cluster import load_cluster
from simsched.schedule.policies.registry import POLICIES as POLICIES_TABLE
from simsched.simulation.outages.outages import Failures, Outage
from simsched.simulation.queues import Queues
from simsched.simulation.record.run_directory import RunDirectory
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job
from tests.simulation.simworld import job, machine, starts, workload

TABLES = ("jobs.parquet", "timeline.parquet", "allocations.jsonl", "eventlog.jsonl")
POLICIES = [
    ("fcfs", {}),
    ("easy", {}),
    ("easy", {"refresh": "when-blocked"}),
    ("easy", {"extra": False}),
    ("conservative", {}),
    ("conservative", {"compress": "start"}),
    ("conservative", {"compress": "none"}),
    ("conservative", {"compress": "replan"}),
    ("hybrid", {"depth": 2}),
    ("hybrid", {"depth": 2, "compress": "replan"}),
    ("easy", {"queue_depth": 3}),
    ("conservative", {"queue_depth": 4}),
]
SHAPES = [
    *("slot=1/core", "slot=3/core", "slot=2/core=2", "node=1{x}/slot=1/core", "slot=1/[core=1;gpu]"),
    *("slot=2/node", "slot=1-3/core=1", "node=2/slot=1/core=1-2", "core=1"),
]
QUEUES = {
    "batch": {"requires": ["a"], "closed": [[9, 14]]},
    "debug": {"hosts": "n[0-2]", "priority": 5, "preempts": True},
    "other": {"requires": ["b"], "policy": {"limits": {"duration": 12}}},
}


def draw_jobs(rng, number, *, queues):
    """Random jobs with everything that a job may have."""
    jobs = []
    for name in range(number):
        submit = int(rng.integers(0, 30))
        runtime = int(rng.integers(0, 12))
        more = {"user": f"u{rng.integers(3)}", "bank": f"b{rng.integers(2)}"}
        more["urgency"] = int(rng.choice([0, 16, 16, 16, 20]))
        if rng.random() < 0.1:
            more["cancel_at"] = submit + int(rng.integers(0, 9))
        if name and rng.random() < 0.3:
            scheme = str(rng.choice(["after", "afterany", "afterok", "afternotok"]))
            more["dependencies"] = (Dependency(scheme, str(rng.integers(name)), {}),)
        if name and rng.random() < 0.2:
            more |= {"preceding": int(rng.integers(name)), "think_time": int(rng.integers(0, 5))}
        if queues:
            more["queue"] = str(rng.choice([*QUEUES, "none"]))
        shape = str(rng.choice(SHAPES))
        limit = float("inf") if rng.random() < 0.05 else runtime + int(rng.integers(-2, 9))
        made = job(name, submit, shape, runtime, max(limit, 1), **more)
        if rng.random() < 0.5:
            made = preemptible(made)
        jobs.append(made)
    return jobs


def preemptible(made):
    spec = made.jobspec.with_system(**{"preemptible-after": 1})
    return Job(**{**{name: getattr(made, name) for name in made.__struct_fields__}, "jobspec": spec})


def draw_options(rng, *, queues):
    policy, choices = POLICIES[rng.integers(len(POLICIES))]
    options = {
        "queue_policy": policy,
        "queue_options": choices,
        "order": str(rng.choice(["fifo", "sjf", "wfp3", "fairshare", "priority"])),
        "match_policy": str(rng.choice(["first", "random", "bestfit", "lonodex"])),
        "overrun": str(rng.choice(["timeout", "allow"])),
        "passes": str(rng.choice(["instant", "instant", "event"])),
        "candidates": str(rng.choice(["requested", "requested", "actual"])),
        "think_times": str(rng.choice(["ignore", "honour"])),
        "on_failure": str(rng.choice(["requeue", "fail"])),
        "seed": int(rng.integers(100)),
    }
    if rng.random() < 0.3:
        options["epilog"] = (0, 3)
    if rng.random() < 0.3:
        options["failures"] = Failures(60, 5, 0.8)
    if rng.random() < 0.4:
        kinds = ("failure", "drain", "maintenance")
        options["outages"] = tuple(
            Outage.read({"ranks": "0-1", "start": 6 + 5 * n, "end": 12 + 5 * n, "kind": kind}, "outages")
            for n, kind in enumerate(kinds)
            if rng.random() < 0.6
        )
    if queues:
        options["queues"] = Queues.from_dict(QUEUES, default="batch")
    return options


def saved(result, path):
    """The bytes of a run directory, and what its run.json says but for when and how fast it ran."""
    folder = result.save(path)
    meta = json.loads((folder / "run.json").read_text())
    for name in ("created", "wall_seconds", "jobs_per_second"):
        del meta[name]
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "run.json"}
    assert set(TABLES) <= set(files)
    return files, meta


def same_after_resuming(folder, cluster, jobs, options, time):
    plain = saved(simulate(cluster, jobs, eventlog=True, **options), folder / "plain")
    checkpoint = folder / "checkpoint.json.gz"
    interrupted = simulate(cluster, jobs, eventlog=True, checkpoints={time: checkpoint}, **options)
    assert saved(interrupted, folder / "interrupted") == plain
    resumed = saved(simulate(cluster, jobs, eventlog=True, resume=checkpoint, **options), folder / "resumed")
    for name in plain[0]:
        assert resumed[0][name] == plain[0][name], (name, options, time)
    assert resumed[1] == plain[1]


def check(folder, seed):
    rng = np.random.default_rng(seed)
    queues = rng.random() < 0.4
    cluster = machine(5, cores=3, gpus=1, properties={"a": "0-2", "b": "2-4"})
    jobs = draw_jobs(rng, int(rng.integers(3, 25)), queues=queues)
    time = float(rng.integers(0, 60)) / 2
    same_after_resuming(folder, cluster, workload(*jobs), draw_options(rng, queues=queues), time)


@pytest.mark.parametrize("seed", range(40))
def test_resumed_is_uninterrupted(tmp_path, seed):
    """Any workload, any policy, any features, any time."""
    check(tmp_path, seed)


@pytest.mark.slow
def test_resumed_is_uninterrupted_many_times(tmp_path_factory):
    for seed in range(1000, 1125):
        check(tmp_path_factory.mktemp("checkpoint"), seed)


@pytest.mark.parametrize("name", ["racked", "jgf4", "fattree"])
def test_on_racks_sockets_and_switches(tmp_path, name):
    shapes = ("rack=1/slot=2/node", "slot=2/socket=1/core=2", "slot=3/core=2", "socket=1{x}", "slot=1/switch")
    jobs = [job(n, n, shapes[n % len(shapes)], 5 + n % 9, 20) for n in range(40)]
    same_after_resuming(tmp_path, load_cluster(name), workload(*jobs), {"queue_policy": "easy"}, 17)


# --- what a checkpoint is --------------------------------------------------------------------------------

QUEUE = (
    job("A", 0, "slot=3/core", 6, 8),
    job("B", 1, "slot=4/core", 4),
    job("C", 2, "slot=1/core", 4),
    job("D", 5, "slot=1/core", 4),
)


@pytest.fixture
def checkpoint(tmp_path):
    """The state of four jobs at 5, before D comes."""
    path = tmp_path / "at5.json"
    simulate(machine(4), workload(*QUEUE), checkpoints={5: path})
    return path


def test_it_names_the_running_and_the_waiting_jobs(checkpoint):
    found = json.loads(checkpoint.read_text())
    assert found["kind"] == "simsched checkpoint"
    assert found["time"] == 5
    running = {row["id"]: (row["start"], row["expected_end"]) for row in found["running"]}
    assert running == {"A": (0, 8), "C": (2, 6)}
    assert found["running"][0]["R"]["execution"]["R_lite"] == [{"rank": "0-2", "children": {"core": "0"}}]
    assert found["waiting"] == [{"id": "B", "submit": 1, "duration": 4, "queue": None, "place": 1}]
    assert [(line["id"], line["event"]) for line in found["allocations"]] == [("A", "alloc"), ("C", "alloc")]


def test_the_same_state_gives_the_same_bytes(tmp_path, checkpoint):
    again = tmp_path / "again.json"
    simulate(machine(4), workload(*QUEUE), checkpoints={5: again})
    assert again.read_bytes() == checkpoint.read_bytes()
    resumed = tmp_path / "resumed.json"
    simulate(machine(4), workload(*QUEUE), resume=checkpoint, checkpoints={5: resumed})
    assert resumed.read_bytes() == checkpoint.read_bytes()


def test_several_checkpoints_of_one_run_and_one_of_a_resumed_run(tmp_path):
    first, second, third = (tmp_path / f"{n}.json.gz" for n in range(3))
    plain = simulate(machine(4), workload(*QUEUE), checkpoints={3: first, 7: second})
    simulate(machine(4), workload(*QUEUE), resume=first, checkpoints={7: third})
    assert gzip.decompress(second.read_bytes()) == gzip.decompress(third.read_bytes())
    resumed = simulate(machine(4), workload(*QUEUE), resume=third)
    assert resumed.log.text() == plain.log.text()


def test_before_the_first_job_and_after_the_last(tmp_path):
    plain = simulate(machine(4), workload(*QUEUE))
    for time in (0, 1000):
        path = tmp_path / f"{time}.json"
        simulate(machine(4), workload(*QUEUE), checkpoints={time: path})
        assert simulate(machine(4), workload(*QUEUE), resume=path).log.text() == plain.log.text()


def test_it_is_gzip_if_its_name_says_so(tmp_path):
    path = tmp_path / "state.json.gz"
    simulate(machine(4), workload(*QUEUE), checkpoints={5: path})
    assert json.loads(gzip.decompress(path.read_bytes()))["time"] == 5
    assert [file.name for file in tmp_path.iterdir()] == ["state.json.gz"]


def test_allocations_that_went_to_a_file_are_read_back(tmp_path):
    path = tmp_path / "state.json"
    made = {}
    for name, options in {"plain": {"checkpoints": {5: path}}, "resumed": {"resume": path}}.items():
        with RunDirectory(tmp_path / name) as directory:
            sink = directory.allocations()
            result = simulate(machine(4), workload(*QUEUE), sink=sink, **options)
            made[name] = (directory.finish(result, {}) / "allocations.jsonl").read_bytes()
    assert made["plain"] == made["resumed"]
    assert made["plain"].count(b"\n") == 8


def test_until_ends_a_resumed_run_too(checkpoint):
    plain = simulate(machine(4), workload(*QUEUE), until=7)
    resumed = simulate(machine(4), workload(*QUEUE), until=7, resume=checkpoint)
    assert resumed.log.text() == plain.log.text()
    assert list(resumed.jobs["result"]) == list(plain.jobs["result"])


# --- what is refused -----------------------------------------------------------------------------------


def test_another_workload_cluster_or_configuration_is_refused(checkpoint):
    jobs = workload(*QUEUE)
    with pytest.raises(RunError, match="a checkpoint of another workload"):
        simulate(machine(4), workload(*QUEUE[:3]), resume=checkpoint)
    with pytest.raises(RunError, match="a checkpoint of another workload"):
        simulate(machine(4), workload(*QUEUE[:3], job("D", 5, "slot=1/core", 5)), resume=checkpoint)
    with pytest.raises(RunError, match="a checkpoint of another cluster"):
        simulate(machine(5), jobs, resume=checkpoint)
    with pytest.raises(RunError, match="another configuration; order was 'fifo' and is 'sjf'"):
        simulate(machine(4), jobs, resume=checkpoint, order="sjf")
    with pytest.raises(RunError, match="another configuration"):
        simulate(machine(4), jobs, resume=checkpoint, seed=1)


def test_another_version_is_refused(checkpoint):
    text = checkpoint.read_text()
    checkpoint.write_text(text.replace('"format":11', '"format":99', 1))
    with pytest.raises(FormatError, match="a checkpoint of format 99"):
        simulate(machine(4), workload(*QUEUE), resume=checkpoint)
    document = json.loads(text)
    older = text.replace(f'"simsched":"{document["simsched"]}"', '"simsched":"0.0.1"', 1)
    digest = sha256(older.partition(',\n"sha256"')[0].encode()).hexdigest()
    checkpoint.write_text(older.replace(document["sha256"], digest))
    with pytest.raises(RunError, match=r"a checkpoint of simsched 0\.0\.1"):
        simulate(machine(4), workload(*QUEUE), resume=checkpoint)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"kind": "simsched checkpoint"}', "jobs: []", "[" * 5000])
def test_what_is_no_checkpoint_is_refused(tmp_path, text):
    path = tmp_path / "not.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"not\.json"):
        simulate(machine(4), workload(*QUEUE), resume=path)


def test_a_damaged_checkpoint_is_refused(checkpoint):
    text = checkpoint.read_text()
    changes = (
        ('"done":0', '"done":1'),
        ('"state":', '"stage":'),
        ('"time":5', '"time":"5"'),
        ('"time":5', '"time":6'),
        ('"role":"cluster"', '"role":"workload"'),
        ('"place":1', '"place":2'),
    )
    for old, new in changes:
        assert old in text
        checkpoint.write_text(text.replace(old, new, 1))
        with pytest.raises(FormatError, match="damaged"):
            simulate(machine(4), workload(*QUEUE), resume=checkpoint)
    checkpoint.write_text(text[: len(text) // 2])
    with pytest.raises(FormatError, match="not a checkpoint"):
        simulate(machine(4), workload(*QUEUE), resume=checkpoint)


def test_what_was_not_noted_cannot_be_continued(tmp_path):
    path = tmp_path / "bare.json"
    jobs = workload(*QUEUE)
    simulate(machine(4), jobs, allocations=False, checkpoints={5: path})
    assert simulate(machine(4), jobs, allocations=False, resume=path).meta["counts"]["completed"] == 4
    with pytest.raises(RunError, match="no allocations"):
        simulate(machine(4), jobs, resume=path)
    with pytest.raises(RunError, match="no event log"):
        simulate(machine(4), jobs, allocations=False, eventlog=True, resume=path)


def test_times_that_do_not_come_are_refused(tmp_path, checkpoint):
    jobs = workload(*QUEUE)
    with pytest.raises(ConfigError, match="a checkpoint at 9 s"):
        simulate(machine(4), jobs, checkpoints={9: tmp_path / "x"}, until=8)
    with pytest.raises(ConfigError, match="a checkpoint at 3 s"):
        simulate(machine(4), jobs, checkpoints={3: tmp_path / "x"}, resume=checkpoint)
    with pytest.raises(ConfigError, match="the end of the run at 3 s"):
        simulate(machine(4), jobs, until=3, resume=checkpoint)


def test_a_checkpoint_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(RunError, match="cannot be written"):
        simulate(machine(4), workload(*QUEUE), checkpoints={5: tmp_path / "no" / "such" / "folder"})


def test_a_policy_of_others_that_remembers_what_cannot_be_written_is_said(tmp_path, monkeypatch):
    class Odd:
        def __init__(self):
            self.memory = 0

        def run_pass(self, context):
            self.memory = context

    monkeypatch.setitem(POLICIES_TABLE, "odd", Odd)
    with pytest.raises(RunError, match=r"Odd\.memory: a value of class PassContext cannot be written"):
        simulate(machine(4), workload(*QUEUE), "odd", checkpoints={5: tmp_path / "x"})


def test_a_policy_of_others_that_remembers_plain_values_is_saved(tmp_path, monkeypatch):
    class Every:
        """Starts one job in every third pass."""

        def __init__(self):
            self.passes = [0]

        def run_pass(self, context):
            self.passes[0] += 1
            if self.passes[0] % 3 == 0 and (found := context.fit(context.queue.first)):
                context.start(context.queue.first, found)

    monkeypatch.setitem(POLICIES_TABLE, "every", Every)
    jobs = [job(n, n // 2, "slot=1/core", 1 + n % 4) for n in range(30)]
    same_after_resuming(tmp_path, machine(3), workload(*jobs), {"queue_policy": "every"}, 8)


def test_more_reserved_than_there_is_ends_no_run(tmp_path):
    """Overruns under a plan of reservations: a window of the plan once claimed more than was free."""
    check(tmp_path, 1078)


def test_a_shadow_time_that_has_passed_has_passed_after_resuming_too(tmp_path):
    """At 180 `later` overruns, so that all jobs are judged again, and `behind` starts then."""
    jobs = workload(
        job("late", 0, "slot=1/node", 240, 120),
        job("later", 120, "slot=3/node", 120, 60),
        job("first", 120, "slot=3/node", 0),
        job("behind", 120, "slot=2/node", 0, 60),
        job("next", 180, "slot=3/node", 60),
        job("core", 1000, "slot=1/core", 1),  # another unit, so that the graph decides
    )
    options = {"queue_policy": "easy", "overrun": "allow"}
    assert starts(simulate(machine(6, 4), jobs, "easy", overrun="allow"))["behind"] == 180
    same_after_resuming(tmp_path, machine(6, 4), jobs, options, 150)
