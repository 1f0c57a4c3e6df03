"""The machine room against the timeline of the engine, and against a count second by second."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simsched as ss
from simsched.errors import RunError
from simsched.formats.rfc.idset import Idset
from simsched.report.data.machine_room import BLOCK, levels_of, room_of
from simsched.report.data.series import binned
from simsched.report.run_views import load_run

OUTAGES = [
    {"ranks": "0-1", "start": 500, "end": 2500, "kind": "drain"},
    {"ranks": "4", "start": 1000, "end": 4000, "kind": "maintenance"},
    {"ranks": "5", "start": 0, "end": 700, "kind": "failure"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of 60 jobs on six nodes in racks, with planned outages and random failures."""
    folder = tmp_path_factory.mktemp("room")
    rng = np.random.default_rng(5)
    (folder / "out.json").write_text(json.dumps(OUTAGES))
    times = np.sort(rng.integers(0, 5000, 60))
    rows = (
        f"{n} {t} -1 {length} {cores} -1 -1 {cores} 900 -1 1 1 1 -1 1 -1 -1 -1\n"
        for n, (t, length, cores) in enumerate(
            zip(times, rng.integers(1, 900, 60), rng.integers(1, 9, 60), strict=True), 1
        )
    )
    (folder / "log.swf").write_text("".join(rows))
    from simsched.cli import main

    cluster = str(folder / "six.json")
    made = ["cluster", "make", "--nodes", "6", "--cores", "4", "--racks", "3", "-o", cluster]
    out = ["--outages", str(folder / "out.json"), "--failures", "mtbf=1h,mttr=10m", "--quiet"]
    assert main(made) == 0
    assert main(["run", cluster, str(folder / "log.swf"), "-o", str(folder / "run"), *out]) == 0
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return load_run(folder / "run")


def counted(run, edges):
    """Units in use, free, and free beside used ones, of each node in each bin: one second after another."""
    records = [json.loads(line) for line in (run.path / "allocations.jsonl").read_text().splitlines()]
    outages = [(set(Idset.parse(o["ranks"])), o["start"], o["end"]) for o in OUTAGES]
    outages += [({rank}, start, end) for rank, start, end in run.outages[["rank", "start", "end"]].to_numpy()]
    seconds = np.arange(int(edges[0]), int(edges[-1]))
    held = np.zeros((6, len(seconds)))
    for record in records:
        sign = 1 if record["event"] == "alloc" else -1
        for entry in record["R"]["execution"]["R_lite"]:
            units = len(Idset.parse(entry["children"]["core"]))
            for rank in Idset.parse(entry["rank"]):
                held[rank, seconds >= record["time"]] += sign * units
    up = np.ones((6, len(seconds)), dtype=bool)
    for ranks, start, end in outages:
        for rank in ranks:
            up[int(rank), (seconds >= start) & (seconds < end)] = False
    free = np.where(up, 4 - held, 0)
    broken = np.where(held > 0, free, 0)
    return seconds, held, free, broken


def test_each_bin_is_that_of_a_count_by_seconds(run):
    room = room_of(run)
    seconds, *facts = counted(run, room.edges)
    # a bin has whole and parts of seconds: weights of each second in each bin
    low, high = room.edges[:-1, None], room.edges[1:, None]
    share = np.clip(np.minimum(high, seconds + 1) - np.maximum(low, seconds), 0, 1) / (high - low)
    for fact, part in zip((room.used, room.free, room.broken), facts, strict=True):
        assert np.abs(part @ share.T - fact).max() < 1e-6


def test_the_sums_are_those_of_the_timeline(run):
    room = room_of(run)
    assert len(run.outages) > 6
    for column, cells in (("used_core", room.used), ("free_core", room.free)):
        _, means = binned(run.timeline, column, len(room.edges) - 1, run.window)
        assert np.allclose(cells.sum(axis=0), means, atol=1e-6)


def test_outages_are_those_of_the_options_and_the_random_ones(run):
    kinds = run.outages["kind"].astype(str)
    planned = sum(len(Idset.parse(one["ranks"])) for one in OUTAGES)
    drawn = run.outages[kinds == "failure"]
    assert len(run.outages) - planned == len(drawn) - 1 > 0
    room = room_of(run)
    span = room.edges[-1] - room.edges[0]
    (level,) = room.levels
    assert level.groups == ("rack0", "rack1", "rack2")
    seconds = room.unavailable(level, "drain").sum(axis=1) * 2 * span / (len(room.edges) - 1)
    begin = max(500, room.edges[0])
    assert seconds.tolist() == pytest.approx([2 * (2500 - begin), 0, 0])
    assert set(room.out) == {"failure", "drain", "maintenance"}


def test_random_failures_take_the_nodes_that_the_timeline_counts(run):
    """At each row of the timeline no more nodes are down than outages have taken."""
    timeline, outages = run.timeline, run.outages
    for time, down in timeline[["time", "down_node"]].to_numpy().tolist():
        out = outages[(outages["start"] <= time) & (outages["end"] > time)]
        assert down <= out["rank"].nunique()


def test_nodes_without_levels_are_in_blocks(tmp_path):
    ss.simulate(ss.load_cluster("tiny"), ss.load_workload("first-steps")).save(tmp_path / "run")
    run = load_run(tmp_path / "run")
    (level,) = levels_of(run.nodes)
    assert (level.name, level.groups) == (BLOCK, ("0-1", "2-3"))
    assert run.outages.empty
    assert room_of(run).out == {}


def test_a_run_without_allocations_has_no_room(tmp_path, write_run, story):
    with pytest.raises(RunError, match="lacks its nodes or its allocations"):
        room_of(load_run(write_run("run", story)))
