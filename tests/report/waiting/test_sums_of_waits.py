"""Under every queue policy and with every feature of a run, causes of waits add up to the waits exactly."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import simsched as ss
from simsched.errors import ConfigError
from simsched.formats.rfc.idset import Idset
from simsched.report.data.run_outages import outages_of
from simsched.report.metrics.causes import NEVER, REJECTED
from simsched.report.run_views import load_run
from simsched.report.waiting.job_wait import why
from simsched.report.waiting.wait_totals import find_causes, totals_by, wait_table
from tests.simulation.licences.test_licences import licensed
from tests.simulation.reservations.test_reservations import within
from tests.simulation.simworld import job, machine, run

SOME = ["fcfs", "easy", "conservative", "slurm"]
POLICIES = ["fcfs", "easy", "easy+", "easy++", "conservative", "hybrid", "selective", "slack", "slurm"]
SHAPES = {
    "slot=1/core": (1, {"core": 1}),
    "slot=3/core": (3, {"core": 1}),
    "slot=2/core=2": (2, {"core": 2}),
    "slot=2/node": (2, {"node": 1}),
    "slot=2/[core=2;gpu]": (2, {"core": 2, "gpu": 1}),
    "slot=2/core=3": (2, {"core": 3}),
}
"""Shape → slots, and the units of each."""
PROPERTIES = {"big": "2-3"}
QUEUES = {"q": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 9, "preempts": True}}
FEATURES = {
    "plain": {},
    "limits": {
        "limits": [
            {"each": "user", "running-jobs": 2},
            {"each": "user", "submitted-jobs": 5, "over": "hold"},
            {"each": "user", "cores": 9},
        ]
    },
    "licences": {"licenses": {"matlab": 2}},
    "reservations": {
        "queues": QUEUES,
        "reservations": [
            {"name": "r", "start": 30, "duration": 40, "nodes": 1},
            {"name": "s", "announced": 20, "duration": 25, "nodes": 2, "users": ["a"]},
        ],
    },
    "arrays": {},
    "constraints": {},
    "partitions": {"queues": {"q": {"requires": ["^big"]}, "urgent": {"requires": ["big"]}}},
    "held": {"limits": [
        {"each": "job", "duration": 12, "over": "hold"},
        {"user": "a", "each": "job", "cores": 3, "over": "hold"},
        {"each": "user", "running-jobs": 2},
    ]},
    "epilogs": {"epilog": (1, 4)},
    "outages": {"failures": "mtbf=200,mttr=15", "outages": [
        {"ranks": "1", "start": 20, "end": 50, "kind": "drain"},
        {"ranks": "0-3", "start": 60, "end": 75, "kind": "maintenance"},
    ]},
    **{mode: {"queues": QUEUES, "preemption": {"mode": mode}} for mode in ("requeue", "suspend", "cancel")},
}  # fmt: skip


def random_jobs(rng, feature):
    """Jobs that use a feature; times are whole seconds, so that sums of them are exact."""
    jobs = []
    for number in range(24):
        at, length, shape = rng.randint(0, 60), rng.randint(1, 12), rng.choice([*SHAPES])
        limit = max(1, length + rng.randint(-2, 8))
        queue = rng.choice(["q", "q", "urgent"]) if "queues" in FEATURES[feature] else "q"
        more = {"user": rng.choice("abc"), "queue": queue}
        if feature == "constraints":
            more["constraint"] = rng.choice(["big", "-big", None])
        if feature == "arrays" and number % 6 == 0:
            first = job(f"v{number}", at, "slot=3/core", length, limit, **more)
            jobs += ss.job_array(first, f"0-3%{rng.randint(1, 2)}")
        elif feature == "licences" and rng.random() < 0.5:
            jobs.append(
                licensed(f"j{number}", at, shape, length, {"matlab": rng.randint(1, 2)}, limit, **more)
            )
        elif feature == "reservations" and rng.random() < 0.3:
            jobs.append(within(f"j{number}", at, shape, length, rng.choice("rs"), limit, **more))
        else:
            jobs.append(job(f"j{number}", at, shape, length, limit, **more))
    return jobs


def waits_of(jobs, last):
    """Return the jobs that waited for resources, and their waits: to their start, or to their end."""
    kept = jobs[~(jobs["result"].isin(NEVER) | jobs["reason"].astype(str).str.startswith(REJECTED))]
    end = kept["start"].fillna(kept["end"]).fillna(last)
    return dict(zip(kept["id"], np.maximum(end - kept["submit"], 0.0), strict=True))


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("feature", "policy"),
    [(feature, policy) for feature in FEATURES for policy in (POLICIES if feature == "plain" else SOME)],
)
def test_totals_are_the_sums_of_true_answers(tmp_path, policy, feature):
    rng = random.Random(f"{policy} {feature}")
    cluster, jobs = machine(4, cores=4, gpus=1, properties=PROPERTIES), random_jobs(rng, feature)
    found = run(cluster, *jobs, policy=policy, seed=rng.randint(0, 9), **FEATURES[feature])
    read = load_run(found.save(tmp_path / "run"))
    expected = waits_of(read.jobs, float(read.timeline["time"].iloc[-1]))
    causes, reason = find_causes(read, cluster, found.workload)
    assert reason == ""
    table = wait_table(read, causes)
    assert dict(zip(read.jobs["id"][table.index], table.sum(axis=1), strict=True)) == expected
    for key in (None, "queue", "user"):
        hours = totals_by(read, table, key).to_numpy().sum()
        assert hours == pytest.approx(sum(expected.values()) / 3600, rel=1e-12)
    assert any(expected.values())
    machine_then = Naive(read, cluster, found.workload)
    for row, name in read.jobs["id"].items():
        if name not in expected:
            with pytest.raises(ConfigError, match="never waited"):
                why(read, name, cluster, found.workload)
            continue
        answer = why(read, name, cluster, found.workload)
        assert answer.wait == expected[name], (name, answer)
        assert {cause: hours for cause, hours in table.loc[row].items() if hours} == answer.by_cause()
        assert [part.start for part in answer.periods[1:]] == [part.end for part in answer.periods[:-1]]
        assert not answer.periods or answer.periods[0].start == answer.submit
        for part in answer.periods:
            machine_then.check(name, part, read.jobs.loc[row])


class Naive:
    """The machine of a run at one time, counted from its files alone."""

    def __init__(self, run, cluster, workload):
        self.events = [json.loads(line) for line in (run.path / "allocations.jsonl").read_text().splitlines()]
        self.outages = outages_of(run.path, run.config)
        self.jobs = {job.id: job for job in workload.jobs}
        self.run = run

    def check(self, name, part, row):
        """Assert that the cause of a period is true, a bit after its start and a bit before its end."""
        for time in {part.start + 1e-3, (part.start + part.end) / 2, part.end - 1e-3}:
            held, up = self.at(time), self.up(time)
            verdict = self.verdict(name, held, up)
            if part.cause == "short of matlab":
                assert "licenses" in self.spec(name).system
            elif part.cause.startswith("short of "):
                assert part.cause.removeprefix("short of ") in verdict, (name, time, part, verdict)
                assert "fits" not in self.verdict(name, held, set(range(4))), (name, time, part)
            elif part.cause == "placement":
                assert verdict == {"placement"}, (name, time, part, verdict)
            elif part.cause == "unavailable":
                assert "fits" not in verdict, (name, time, part)
                assert self.verdict(name, held, set(range(4))) == {"fits"}, (name, time, part)
            elif part.cause in ("reservation", "order", "policy", "advance-reservation", "maintenance"):
                assert verdict == {"fits"}, (name, time, part, verdict)
                others = self.run.jobs[self.run.jobs["id"] != name]
                end = others["start"].fillna(others["end"]).fillna(np.inf)
                if part.cause in ("reservation", "order"):
                    assert ((others["eligible"] <= time) & (end > time)).any(), (name, time, part)
                if part.cause == "advance-reservation":
                    assert self.run.meta["reservations"], part
                if part.cause == "maintenance":
                    rows = self.outages[self.outages["kind"] == "maintenance"]
                    assert ((time < rows["end"]) & (rows["start"] < time + row.duration)).any(), part
            elif part.cause.startswith("limit running-jobs of user"):
                assert self.used(row.user, held, time)[0] >= 2, (name, time, part)
            elif part.cause.startswith("limit cores of user"):
                assert self.used(row.user, held, time)[1] + row.cores > 9, (name, time, part)
            elif part.cause == "interrupted":
                assert any(name in jobs for jobs in held.values()), (name, time, part)

    def spec(self, name):
        return self.jobs[name].jobspec

    def used(self, user, held, time):
        """The jobs of a user that run at a time, and their cores."""
        frame = self.run.jobs
        runs = frame[(frame["user"] == user) & (frame["start"] <= time) & (frame["end"] > time)]
        return len(runs), runs["cores"].sum()

    def at(self, time):
        """rank → job → type → the units that the job holds there."""
        held = {rank: {} for rank in range(4)}
        for event in self.events:
            if event["time"] > time:
                break
            for group in event["R"]["execution"]["R_lite"]:
                for rank in Idset.parse(group["rank"]):
                    if event["event"] == "release":
                        held[rank].pop(event["id"], None)
                    else:
                        children = {type_: len(Idset.parse(ids)) for type_, ids in group["children"].items()}
                        held[rank][event["id"]] = children
        return held

    def up(self, time):
        rows = self.outages
        return set(range(4)) - set(rows["rank"][(rows["start"] <= time) & (rows["end"] > time)])

    def verdict(self, name, held, up):
        """What a request is short of, {"placement"}, or {"fits"}; licences are not counted."""
        spec = self.spec(name)
        slots, each = SHAPES[shape_of(spec)]
        ranks = [rank for rank in up if ranks_of(spec) is None or rank in ranks_of(spec)]
        sizes = {"core": 4, "gpu": 1}
        free = {
            rank: {type_: size - sum(units.get(type_, 0) for units in held[rank].values())
                   for type_, size in sizes.items()} | {"node": int(not held[rank])}
            for rank in ranks
        }  # fmt: skip
        if sum(min(free[rank][type_] // units for type_, units in each.items()) for rank in ranks) >= slots:
            return {"fits"}
        short = {t for t, units in each.items() if sum(free[rank][t] for rank in ranks) < slots * units}
        return short or {"placement"}


def shape_of(spec):
    return next(shape for shape in SHAPES if ss.Jobspec.from_shape(shape).resources == spec.resources)


def ranks_of(spec):
    """The ranks that the constraint of a job, or that of its queue, lets pass; None: all."""
    text = str(spec.constraint)
    return None if spec.constraint is None else {2, 3} if text == "big" else {0, 1}
