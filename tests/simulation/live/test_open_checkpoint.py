"""Checkpoints of open simulations in files: the run continues as if it had never been interrupted."""

from __future__ import annotations

import gzip
import json
import random
from hashlib import sha256

import numpy as np
import pytest

import simsched as ss
from simsched.errors import ConfigError, FormatError, RunError
from tests.simulation.live.test_open_options import OPTIONS, parts
from tests.simulation.simworld import machine


def story(sim, rng, until):
    """Submissions, cancellations, drains and resizes, by chance."""
    while sim.now < until:
        choice = rng.integers(10)
        waiting, running = sim.queue, sim.running
        if choice < 6:
            shape = ("slot=1-4/node", "slot=2/core=3", "slot/core")[rng.integers(3)]
            sim.submit(shape, int(rng.integers(50, 900)), user="abc"[rng.integers(3)],
                       at=sim.now + int(rng.integers(0, 50)))  # fmt: skip
        elif choice == 6 and waiting:
            waiting[-1].cancel()
        elif choice == 7 and waiting:
            waiting[0].update(duration=int(rng.integers(50, 400)))
        elif choice == 8 and running:
            for job in running:
                if job.job.jobspec.to_shape() == "slot=1-4/node":
                    job.resize(int(rng.integers(1, 5)))
                    break
        elif choice == 9:
            sim.drain("3", note="night")
            sim.run(until=sim.now + 10)
            sim.undrain("3")
        sim.run(until=sim.now + int(rng.integers(5, 60)))


def test_selections_are_for_the_requests_of_their_jobs_where_queues_have_hosts(tmp_path):
    """A file has no queues of expected jobs, so other requests are known before jobs come than at first."""
    options = {"queue_policy": "easy", "queues": {"a": {"hosts": "node[0-1]"}, "b": {}}}
    asked = [("a", "slot=1/node"), ("b", "slot=1/node"), ("b", "slot=2/node"), ("b", "slot=99/node")]
    jobs = [
        ss.Job(
            id=at,
            submit=0,
            runtime=60,
            duration=90,
            queue=queue,
            jobspec=ss.Jobspec.from_shape(shape, duration=90),
        )
        for at, (queue, shape) in enumerate(asked)
    ]
    sim = ss.Simulation("tiny", expect=jobs, **options)
    sim.submit_all(jobs)
    sim.run(until=10)
    sim.checkpoint(tmp_path / "state.json")
    again = ss.Simulation.restore(tmp_path / "state.json", "tiny", **options)
    for one in (sim, again):
        one.run()
    assert parts(again.result()) == parts(sim.result())


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_story_continues_from_a_file(tmp_path, policy, ending):
    options = {"queue_policy": policy, "eventlog": True}
    file = tmp_path / f"state.{ending}"
    sim = ss.Simulation("tiny", **options)
    rng = np.random.default_rng(5)
    story(sim, rng, 1500)
    kept = sim.checkpoint(file)
    assert kept.time == sim.now
    generator = rng.bit_generator.state
    story(sim, rng, 3000)
    sim.run()
    again = ss.Simulation.restore(file, "tiny", **options)
    assert again.now == kept.time
    assert again.env.now == kept.time
    rng.bit_generator.state = generator
    story(again, rng, 3000)
    again.run()
    assert parts(again.result()) == parts(sim.result())
    assert again.result().result.events.text() == sim.result().result.events.text()
    assert again.audit()


@pytest.mark.parametrize("name", ["easy++", "predicted-graph", "hours", "period", "fair-share", "all"])
def test_options_with_a_memory(tmp_path, name):
    month = ss.load_workload("month", limit=300)
    options = OPTIONS[name]
    sim = ss.Simulation("flat240", expect=month, **options)
    sim.submit_all(month)
    sim.run(until=month.jobs[150].submit)
    sim.checkpoint(tmp_path / "state.json")
    again = ss.Simulation.restore(tmp_path / "state.json", "flat240", **options)
    again.run()
    assert parts(again.result()) == parts(ss.simulate("flat240", month, **options))


def test_jobs_of_the_restored_simulation(tmp_path):
    sim = ss.Simulation("tiny")
    running = sim.submit("slot=4/node", 100, id="r", dependencies=())
    waiting = sim.submit("slot=1/node", 100, id="w", dependencies="afterok:r")
    later = sim.submit("slot=1/node", 100, id="l", at=500, name="late", deadline=900)
    sim.run(until=50)
    sim.checkpoint(tmp_path / "s.json")
    again = ss.Simulation.restore(tmp_path / "s.json", "tiny")
    mine = {job.id: again.job(job.id) for job in (running, waiting, later)}
    assert [mine[name].state for name in "rwl"] == ["RUN", "DEPEND", "NEW"]
    assert mine["r"].R.to_dict()["execution"]["R_lite"] == running.R.to_dict()["execution"]["R_lite"]
    assert mine["l"].job == later.job
    again.run(until=mine["l"].ended)
    assert (mine["w"].start, mine["l"].end) == (100, 600)
    assert again.submit("slot/core", 1).id == 1
    with pytest.raises(ConfigError, match="there is a job r already"):
        again.submit("slot/core", 1, id="r")
    assert sim.now == 50


@pytest.fixture
def file(tmp_path):
    sim = ss.Simulation("tiny")
    sim.submit("slot=1/node", 100)
    sim.run(until=10)
    sim.checkpoint(tmp_path / "s.json")
    return tmp_path / "s.json"


@pytest.mark.parametrize(
    ("cluster", "options", "text"),
    [
        ("flat240", {}, "a checkpoint of another cluster"),
        ("tiny", {"queue_policy": "fcfs"}, "queue_policy was 'easy' and is 'fcfs'"),
        ("tiny", {"seed": 3}, "another configuration; seed was 0 and is 3"),
        ("tiny", {"eventlog": True}, "the checkpoint has no event log"),
    ],
)
def test_another_simulation_is_refused(file, cluster, options, text):
    with pytest.raises(RunError, match=text):
        ss.Simulation.restore(file, cluster, **options)


def signed(text):
    """The text with the digest of its content."""
    content = text.rpartition(',\n"sha256":"')[0]
    return text.replace(json.loads(text)["sha256"], sha256(content.encode()).hexdigest())


def test_every_change_of_the_head_is_damage(file):
    whole = json.loads(file.read_text())
    for key, value in [("time", float("nan")), ("time", "x"), ("time", 11), ("digests", None), ("config", {}),
                       ("simsched", "0.0.0"), ("more", 1), ("open", None), ("sha256", "\ud800")]:  # fmt: skip
        file.write_text(json.dumps({**whole, key: value}))
        with pytest.raises(FormatError, match=r"damaged|not a checkpoint"):
            ss.Simulation.restore(file, "tiny")
        file.write_text(json.dumps({name: whole[name] for name in whole if name != key}))
        if key in whole:
            with pytest.raises(FormatError, match="damaged"):
                ss.Simulation.restore(file, "tiny")


def test_every_flipped_bit_is_an_error_of_ours(file):
    whole, rng = file.read_bytes(), random.Random(4)
    for _ in range(300):
        at = rng.randrange(len(whole) - 1)
        file.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        with pytest.raises(FormatError):
            ss.Simulation.restore(file, "tiny")


def test_files_that_are_no_checkpoints(file, tmp_path):
    whole, closed = file.read_text(), tmp_path / "closed.json"
    jobs = ss.Workload((ss.Job(id=1, submit=0, jobspec=ss.Jobspec.from_shape("slot/core"), runtime=9),))
    ss.simulate("tiny", jobs, checkpoints={5: closed})
    with pytest.raises(FormatError, match="a file that run --checkpoint-at wrote"):
        ss.simulate("tiny", jobs, resume=file)
    cases = {
        "empty": "",
        "other": closed.read_text(),
        "list": "[]",
        "cut": whole[:-40],
        "changed": whole.replace('"slot"', '"slit"', 1),
        "newer": whole.replace('"format":11', '"format":99', 1),
        "version": signed(whole.replace('"simsched":"', '"simsched":"9.', 1)),
        "state": json.dumps({**json.loads(whole), "open": {"specs": []}}),
    }
    texts = {
        "changed": "digest does not match",
        "newer": "format 99",
        "version": "of simsched 9",
        "state": "damaged",
    }
    for name, text in cases.items():
        (tmp_path / name).write_text(text)
        expected = texts.get(name, "not a checkpoint of an open simulation")
        with pytest.raises((FormatError, RunError), match=expected):
            ss.Simulation.restore(tmp_path / name, "tiny")
    with pytest.raises(ss.SimschedError):
        ss.Simulation.restore(tmp_path / "none.json", "tiny")
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(whole.encode())[:-30])
    with pytest.raises(ss.SimschedError):
        ss.Simulation.restore(tmp_path / "cut.json.gz", "tiny")


def test_a_file_that_cannot_be_written(tmp_path):
    sim = ss.Simulation("tiny")
    with pytest.raises(RunError):
        sim.checkpoint(tmp_path / "none" / "s.json")
    with pytest.raises(ConfigError, match="path"):
        sim.checkpoint(5)


def test_a_change_of_this_very_instant_is_not_saved(tmp_path):
    """Its event belongs to a process of the program; the file is not written at all."""
    sim = ss.Simulation("tiny")
    job = sim.submit("slot=1-3/node", 100)
    sim.run(until=5)
    job.resize(1)
    with pytest.raises(RunError):
        sim.checkpoint(tmp_path / "s.json")
    assert not list(tmp_path.iterdir())
    sim.run(until=6)
    sim.checkpoint(tmp_path / "s.json")


def test_checkpoints_within_a_callback_of_a_pass(tmp_path):
    sim = ss.Simulation("tiny", queue_policy="conservative")
    files = []

    def keep(_):
        files.append(tmp_path / f"{len(files)}.json")
        sim.checkpoint(files[-1])

    sim.on("start", keep)
    for number in range(6):
        sim.submit("slot=3/node", 50 + number, at=10 * number)
    sim.run()
    assert len(files) == 6


def test_the_records_have_the_log_that_was_expected(tmp_path):
    """Records that the reader skipped are rows of the table, as in `simulate`, and outlive a checkpoint."""
    rest = "100 -1 1 1 1 -1 1 -1 -1 -1"
    lines = [f"1 0 -1 60 1 -1 -1 1 {rest}", f"2 5 -1 60 0 -1 -1 0 {rest}", f"3 9 -1 70 2 -1 -1 2 {rest}"]
    path = tmp_path / "log.swf"
    path.write_text("; UnixStartTime: 1000000\n" + "\n".join(lines) + "\n")
    log = ss.load_workload(path)
    assert (len(log), len(log.skipped)) == (2, 1)
    whole = ss.simulate(machine(2, 1), log)
    sim = ss.Simulation(machine(2, 1), expect=log)

    def source():
        for job in log:
            yield sim.env.timeout(job.submit - sim.env.now)
            sim.submit(job)

    sim.env.process(source())
    sim.run(until=30)
    sim.checkpoint(tmp_path / "state.json")
    again = ss.Simulation.restore(tmp_path / "state.json", machine(2, 1))
    for one in (sim, again):
        one.run()
        found = one.result()
        assert found.jobs.to_dict("list").__repr__() == whole.jobs.to_dict("list").__repr__()
        assert found.meta["workload"] == whole.meta["workload"]
        assert found.meta.get("clock") == whole.meta.get("clock")


def test_a_copy_of_a_copy_has_one_event_for_the_next_arrival(tmp_path):
    sim = ss.Simulation(machine(2))
    sim.submit("slot=1/node", np.float64(5), at=np.float64(100))
    for _ in range(3):
        sim = sim.copy()
    sim.checkpoint(tmp_path / "c.json")
    events = json.loads((tmp_path / "c.json").read_text())["state"]
    assert json.dumps(events).count('"submission"') == 1
    sim.run()
    assert sim.result().jobs["start"].tolist() == [100]
