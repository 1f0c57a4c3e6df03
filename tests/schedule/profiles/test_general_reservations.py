"""Reservations on the graph: the rows are the free units, and the filters refuse no start that fits."""

from __future__ import annotations

import random

import numpy as np
import pytest

import simsched as ss
from simsched.formats.rfc.idset import Idset
from simsched.schedule import graph_supply
from simsched.schedule.profiles.general_reservations import GeneralReservations
from simsched.simulation.outages.outages import DRAIN, MAINTENANCE, Outage
from tests.reference.plain_supply import SearchedSupply

SHAPES = {
    "tiny": [
        "slot=1/core",
        "slot=3/core",
        "slot=2/[core;gpu]",
        "node=1",
        "slot=4/core=2",
        "node=3/slot/core=2",
    ],
    "topo16": ["slot=9/socket", "slot=30/core=2", "node=9", "slot=5/[core=4;memory=16]", "slot=110/core"],
}
OUTAGES = (
    Outage(Idset.parse("0"), 100, 300),
    Outage(Idset.parse("1"), 400, 900, MAINTENANCE),
    Outage(Idset.parse("2"), 50, 700, DRAIN),
)
BATCH = {"properties": ["batch"]}


def crowd(name, seed, jobs=60):
    """More jobs than fit, most of which end early; some on nodes with a property only."""
    rng = random.Random(f"{name} {seed}")
    made, now = [], 0
    for number in range(jobs):
        now += rng.choice([0, 0, 1, rng.randint(1, 30)])
        runtime = rng.choice([0, 1, rng.randint(1, 200), rng.randint(1, 200)])
        duration = rng.choice([None, max(1, runtime), runtime + 1, 60, 600, 600])
        constraint = BATCH if name == "tiny" and rng.random() < 0.2 else None
        jobspec = ss.Jobspec.from_shape(rng.choice(SHAPES[name]), duration=duration, constraint=constraint)
        made.append(ss.Job(id=number, submit=now, runtime=runtime, duration=duration, jobspec=jobspec))
    return ss.Workload(jobs=tuple(made), name="crowd")


class Patient(GeneralReservations):
    """Asks the matcher at every time, and checks each row after each reservation."""

    booked = 0

    def _first_gap(self, job, begin, before):
        found = (self._at(job, time) for time in self.times[:] if time < before)
        return next((gap for gap in found if gap is not None), None)

    def _may_begin(self, job):
        return True

    def _has_room(self, job, time, least):
        return True

    def _book(self, job, gap):
        super()._book(job, gap)
        Patient.booked += 1
        self.check()
        for time, row in zip(self.times, self._rows, strict=True):
            for name, free in self._state_at(time).free.items():
                left = free.copy()
                for booking in self._bookings:
                    if booking.start <= time < booking.end:
                        for draw in booking.selection.held:
                            if draw.type == name:
                                left[draw.pools] -= draw.units
                assert np.array_equal(row[self._banks[name]], left)


@pytest.mark.quick(1)
@pytest.mark.filterwarnings("ignore::simsched.errors.InputWarning")  # some jobs claim nothing
@pytest.mark.parametrize("cluster", SHAPES)
@pytest.mark.parametrize(
    "options",
    [
        {"queue_policy": "conservative", "queue_options": {"compress": "replan"}},
        {"queue_policy": "hybrid", "queue_options": {"depth": 2, "compress": "replan"}},
        {"queue_policy": "conservative", "queue_options": {"compress": "replan"}, "match_policy": "bestfit"},
        {"queue_policy": "conservative", "queue_options": {"compress": "replan"}, "overrun": "allow"},
        {"queue_policy": "conservative", "queue_options": {"compress": "replan"}, "match_policy": "lonodex"},
        {"queue_policy": "conservative", "queue_options": {"compress": "replan"}, "outages": OUTAGES},
        {"queue_policy": "hybrid", "queue_options": {"compress": "replan"}, "epilog": (0, 30)},
    ],
    ids=["conservative", "hybrid", "bestfit", "overruns", "whole nodes", "outages", "epilogs"],
)
def test_sums_and_room_rule_out_nothing_that_the_matcher_would_find(cluster, options, monkeypatch):
    machine, workload = ss.load_cluster(cluster), crowd(cluster, 1)
    monkeypatch.setattr(graph_supply, "GraphSupply", SearchedSupply)
    run = ss.simulate(machine, workload, **options)
    Patient.booked = 0
    monkeypatch.setattr(graph_supply, "GeneralReservations", Patient)
    again = ss.simulate(machine, workload, **options)
    assert Patient.booked > 50
    assert run.jobs.equals(again.jobs)


def test_pools_of_more_units_than_sixteen_bits_hold():
    lite = [{"rank": "0-1", "children": {"core": "0-39999"}}]
    execution = {"R_lite": lite, "nodelist": ["n[0-1]"], "starttime": 0, "expiration": 0}
    cluster = ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))
    shapes = ["slot=2/core=35000", "slot=1/node", "slot=1/core=5000", "slot=1/core=35000"]
    jobs = tuple(
        ss.Job(id=n, submit=n, runtime=100, duration=100, jobspec=ss.Jobspec.from_shape(shape, duration=100))
        for n, shape in enumerate(shapes)
    )
    run = ss.simulate(cluster, ss.Workload(jobs=jobs, name="wide"), queue_policy="conservative")
    assert run.jobs["start"].tolist() == [0, 100, 2, 100]
