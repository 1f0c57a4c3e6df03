"""Planning on mixed machines against tests/reference/planning, job by job and node by node."""

from __future__ import annotations

import json
import math
import random

import pytest

import simsched as ss
from simsched.schedule import graph_supply
from simsched.schedule.profiles.general_reservations import GeneralReservations
from tests.reference import planning as plain

TYPES = ("core", "memory", "gpu")
INF = math.inf
COMPRESS = ("queue", "start", "none")

#: Name → (queue policy, its options, the plain policy).
POLICIES = {
    "easy": ("easy", {}, plain.Easy),
    **{
        f"conservative, {name}": (
            "conservative",
            {"compress": name},
            lambda name=name: plain.Conservative(name),
        )
        for name in COMPRESS
    },
    "hybrid 0": ("hybrid", {"depth": 0}, lambda: plain.Conservative(depth=0)),
    "hybrid 2": ("hybrid", {"depth": 2}, lambda: plain.Conservative(depth=2)),
    "hybrid 3, start": ("hybrid", {"depth": 3, "compress": "start"}, lambda: plain.Conservative("start", 3)),
    "selective": ("selective", {"threshold": 1.5}, lambda: plain.Selective(1.5)),
    "slack 0": ("slack", {"factor": 0}, lambda: plain.Slack(0)),
    "slack": ("slack", {"factor": 0.5}, lambda: plain.Slack(0.5)),
    **{
        f"slurm {options}": (
            "slurm",
            options,
            lambda options=options: plain.Slurm(plain.Options(**options)),
        )
        for options in (
            {"interval": 1, "resolution": 1},
            {"interval": 20, "resolution": 60},
            {"interval": 1, "resolution": 60, "window": 40},
        )
    },
}
PLANNED = [name for name in POLICIES if name != "easy"]
UNPROMISED = [name for name, (policy, *_) in POLICIES.items() if policy in ("easy", "slurm")]


def random_machine(rng):
    """Return (count, units, property) of a few groups of nodes."""
    return [
        (
            rng.randint(1, 3),
            {"core": rng.choice([2, 4, 8]), "memory": rng.choice([0, 8, 16]), "gpu": rng.choice([0, 0, 2])},
            rng.choice("ab"),
        )
        for _ in range(rng.randint(1, 3))
    ]


def load(groups, folder):
    lines = ["groups:"]
    for at, (count, units, name) in enumerate(groups):
        some = f"cores: {units['core']}"
        some += f", memory: {units['memory']} GiB" if units["memory"] else ""
        some += f", gpus: {units['gpu']}" if units["gpu"] else ""
        lines.append(f"  - {{name: g{at}x, count: {count}, {some}, properties: [{name}]}}")
    path = folder / "machine.yaml"
    path.write_text("\n".join(lines) + "\n")
    return ss.load_cluster(path)


def random_request(rng, groups):
    """Return a shape, a constraint, and copies, need, most and nodes of the plain job."""
    kind = rng.choice(["slots", "slots", "slots", "nodes", "whole"])
    name = rng.choice([None, None, "a", "b"])
    names = [own for count, _, own in groups for _ in range(count)]
    nodes = tuple(at for at, own in enumerate(names) if name in (None, own))
    copies = rng.randint(1, 6 if kind == "slots" else 3)
    if kind == "whole":
        shape = rng.choice(["slot={}/node", "node={}{{x}}"]).format(copies)
        return shape, name, copies, plain.demand({}, TYPES, whole=True), 1, nodes
    units = {"core": rng.randint(1, 3)}
    if rng.random() < 0.5:
        units["memory"] = rng.choice([1, 2, 4, 8])
    if rng.random() < 0.3:
        units["gpu"] = 1
    words = [f"{name}={number}" + ("{unit:GiB}" * (name == "memory")) for name, number in units.items()]
    content = "[" + ";".join(words) + "]"
    if kind == "slots":
        return f"slot={copies}/{content}", name, copies, plain.demand(units, TYPES), plain.ALL, nodes
    slots = rng.randint(1, 2)
    need = plain.demand({name: slots * number for name, number in units.items()}, TYPES)
    return f"node={copies}/slot={slots}/{content}", name, copies, need, 1, nodes


def random_jobs(rng, groups):
    """Return jobs of a few requests that crowd: ties of submit times, instant and unlimited jobs."""
    requests = [random_request(rng, groups) for _ in range(rng.randint(2, 6))]
    grain, gap = rng.choice([1, 7, 60]), rng.choice([1, 3, 10])
    submit, jobs = 0, []
    for number in range(1, rng.randint(5, 45)):
        submit += rng.choice([0, 0, rng.randint(0, 2 * gap)]) * grain
        runtime = rng.choice([0, 1, rng.randint(1, 40), rng.randint(1, 40)]) * grain
        requested = rng.choice([runtime, runtime + 1, rng.randint(1, 40) * grain, 2 * runtime + 5, INF])
        jobs.append((number, submit, runtime, max(requested, rng.choice([0, 1])), rng.choice(requests)))
    return jobs


def random_closures(rng, nodes):
    """Return maintenance as (nodes, start, end); some overlap."""
    found = []
    for _ in range(rng.randint(1, 3)):
        start = rng.randint(0, 300)
        some = tuple(sorted(rng.sample(range(nodes), rng.randint(1, nodes))))
        found.append((some, start, start + rng.randint(1, 200)))
    return tuple(found)


def ours(jobs):
    made = []
    for number, submit, runtime, requested, (shape, name, *_) in jobs:
        duration = None if requested == math.inf else requested
        spec = ss.Jobspec.from_shape(shape, constraint=name, duration=duration)
        made.append(ss.Job(id=number, submit=submit, runtime=runtime, duration=duration, jobspec=spec))
    return ss.Workload(jobs=tuple(made), name="made")


def theirs(jobs):
    return [
        plain.Job(number, submit, runtime, requested, copies, need, nodes, most)
        for number, submit, runtime, requested, (_, _, copies, need, most, nodes) in jobs
    ]


def ranks(text):
    """The ranks in an idset."""
    found = []
    for part in str(text).split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def told(run, jobs, nodes, folder):
    """{job id: Told} of a run; its cores by node show the copies."""
    rows = zip(*(run.jobs[name] for name in ("id", "start", "promised")), strict=True)
    found = {int(job): plain.Told(promised, start, None) for job, start, promised in rows}
    need = {job.id: job.need for job in jobs}
    lines = (run.save(folder) / "allocations.jsonl").read_text().splitlines()
    for event in map(json.loads, lines):
        name, copies = int(event["id"]), [0] * nodes
        for part in event["R"]["execution"]["R_lite"] if event["event"] == "alloc" else ():
            for rank in ranks(part["rank"]):
                cores = len(ranks(part["children"]["core"]))
                copies[rank] = 1 if need[name][-1] == plain.ALL else cores // need[name][0]
            found[name] = found[name]._replace(copies=tuple(copies))
    return {job: one if one.copies else None for job, one in found.items()}


def copies_alike(jobs, nodes):
    """Return the jobs and one node of copies, if all that can run request copies of one slot on equal nodes.

    Then a reservation is a number of copies, and not copies on certain nodes: at its start it takes any
    that are free, so no window need keep the same ones free.
    """
    idle = plain.Free(plain.Machine(nodes), 0, [])
    kinds = {(job.need, job.most, job.nodes) for job in jobs if idle.copies(job, 0, 1).sum() >= job.copies}
    if len(kinds) != 1 or next(iter(kinds))[1] != plain.ALL:
        return None
    (need, most, where), *_ = kinds
    one = next(job for job in jobs if (job.need, job.most, job.nodes) == (need, most, where))
    total = int(idle.copies(one, 0, 1).sum())
    unit = (1,) + (0,) * (len(need) - 2) + (1,)
    pooled = [
        job._replace(need=unit, nodes=(0,))
        if (job.need, job.most, job.nodes) == (need, most, where)
        else job._replace(nodes=())
        for job in jobs
    ]
    return pooled, plain.capacity([(total,) + (0,) * (len(need) - 2)])


def compare(case, seed, folder, *, closed=False, clean=0):
    rng = random.Random(f"{case} {seed}")
    groups = random_machine(rng)
    jobs = random_jobs(rng, groups)
    policy, options, definition = POLICIES[case]
    units = [tuple(each[name] for name in TYPES) for count, each, _ in groups for _ in range(count)]
    plain_jobs, nodes = theirs(jobs), plain.capacity(units)
    # Slurm reserves nodes: there a number suffices only if no node hosts more than one copy.
    alike = None if closed or clean or policy == "slurm" else copies_alike(plain_jobs, nodes)
    if alike is not None:
        plain_jobs, nodes = alike
    closures = random_closures(rng, len(units)) if closed else ()
    expected = plain.schedule(plain_jobs, plain.Machine(nodes, closures, clean=clean), definition())
    outages = [
        {"ranks": ",".join(map(str, some)), "start": start, "end": end, "kind": "maintenance"}
        for some, start, end in closures
    ]
    run = ss.simulate(
        load(groups, folder),
        ours(jobs),
        policy,
        queue_options=options,
        outages=outages,
        epilog=(clean, clean),
    )
    found = told(run, theirs(jobs), len(units), folder / f"run {case} {seed}")
    late = [job for job, one in found.items() if one is not None and one.start > one.promised]
    assert not late, f"seed {seed}: promises are broken: {late}"
    if alike is not None:  # any free copies serve
        found, expected = (
            {job: one and one._replace(copies=()) for job, one in x.items()} for x in (found, expected)
        )
    differ = [(job, found[job[0]], expected[job[0]]) for job in jobs if same(found, expected, job[0])]
    assert not differ, (
        f"seed {seed}: {len(differ)} of {len(jobs)} differ, first (job, ours, plain): {differ[0]}"
    )


def same(found, expected, job):
    mine, other = found[job], expected[job]
    if mine is None or other is None:
        return mine is not other
    promised = mine.promised == other.promised or (math.isnan(mine.promised) and math.isnan(other.promised))
    return not promised or mine[1:] != other[1:]


@pytest.mark.quick(2)
@pytest.mark.parametrize("case", POLICIES)
def test_random_mixed_machines_in_maintenance(case, tmp_path):
    for seed in range(15):
        compare(case, seed, tmp_path, closed=True)


@pytest.mark.quick(1)
@pytest.mark.parametrize("case", POLICIES)
def test_random_mixed_machines(case, tmp_path):
    for seed in range(40):
        compare(case, seed, tmp_path)


@pytest.mark.quick(1)
@pytest.mark.parametrize("case", UNPROMISED)
def test_jobs_that_overrun_by_an_epilog(case, tmp_path):
    for seed in range(40):
        compare(case, seed, tmp_path, clean=50, closed=seed % 4 == 3)


@pytest.mark.quick(2)
@pytest.mark.parametrize("case", PLANNED)
def test_reservations_by_the_matcher_are_the_same(case, tmp_path, monkeypatch):
    """Law: where counts decide, those who ask the matcher for each start get the same starts and targets."""
    asked = []

    class Searched(graph_supply.GraphSupply):
        def reservations(self):
            asked.append(self)
            return GeneralReservations(self)

        def ahead(self):
            found = self.reservations()
            found.open(self.now)
            return found

    monkeypatch.setattr(graph_supply, "GraphSupply", Searched)
    for seed in range(100, 108):
        clean = 50 if case in UNPROMISED and seed % 4 > 1 else 0
        compare(case, seed, tmp_path, closed=seed % 2 == 1, clean=clean)
    assert asked
