"""Reservations that are kept as changes of one matrix equal those that are built again at each pass."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.schedule import graph_supply
from simsched.schedule.lasting.lasting_reservations import LastingReservations
from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.profiles.graph_reservations import GraphReservations
from simsched.simulation.simulate import simulate

SHAPES = (
    ("slot={n}/[core;memory=2{{unit:GB}}]", "cpu"),
    ("slot={n}/core", None),
    ("slot={few}/node", "cpu"),
    ("slot={few}/[core=2;gpu;memory=3{{unit:GB}}]", "gpu"),
    ("node={few}/slot=2/[core=2;memory=4{{unit:GB}}]", None),
    ("slot=1/socket", None),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "site.yaml"
    path.write_text(
        "groups:\n"
        "  - {name: a, count: 5, sockets: 2, cores: 8, memory: 16 GiB, properties: [cpu]}\n"
        "  - {name: g, count: 2, sockets: 2, cores: 8, memory: 32 GiB, gpus: 2, properties: [gpu]}\n"
    )
    return ss.load_cluster(path)


def crowd(seed, jobs=50, shares=(0.1, 0.5, 0.9, 1.0), durations=(20, 60, 100, 400)):
    """Jobs of several kinds; many wait, and most end before the requested time (after shares of it)."""
    rng = np.random.default_rng(seed)
    made, now = [], 0
    for number in range(jobs):
        shape, partition = SHAPES[rng.integers(len(SHAPES))]
        text = shape.format(n=int(rng.integers(1, 20)), few=int(rng.integers(1, 4)))
        duration = int(rng.choice(durations))
        runtime = max(min(1, duration), int(duration * rng.choice(shares)))
        spec = ss.Jobspec.from_shape(text, constraint=partition, duration=duration)
        now += int(rng.choice([0, 1, 5, 20]))
        made.append(ss.Job(id=number + 1, submit=now, runtime=runtime, duration=duration, jobspec=spec))
    return ss.Workload(jobs=tuple(made), name="crowd")


def outcome(site, workload, policy, match, **options):
    result = simulate(site, workload, policy, match, **options)
    columns = {name: np.asarray(column).tolist() for name, column in result.jobs.items()}
    return repr(columns), result.log.text()


def built_again(supply):
    return GraphReservations(supply)


def checked_passes(monkeypatch):
    """Check what reservations keep after each pass; the list has whether the matrix is that of a new plan."""
    passes = []
    run_pass = Conservative.run_pass

    def checked(self, context):
        run_pass(self, context)
        kept = context.reservations
        if isinstance(kept, LastingReservations):
            kept.check()
            fresh = context.supply.reservations()
            self._restore(context, fresh)
            passes.append(kept.equals(fresh))

    monkeypatch.setattr(Conservative, "run_pass", checked)
    return passes


@pytest.mark.parametrize(
    ("policy", "match", "options"),
    [
        ("conservative", "first", {}),
        ("conservative", "bestfit", {"queue_options": {"compress": "start"}}),
        ("conservative", "lonode", {"queue_options": {"compress": "none"}}),
        ("conservative", "first", {"order": "wfp3"}),
        ("conservative", "first", {"failures": "mtbf=900s,mttr=60s"}),
        ("conservative", "first", {"epilog": "1s..20s"}),
        ("conservative", "locality", {"epilog": "1s..90s", "order": "fairshare"}),
        ("conservative", "first", {"epilog": "1s..90s", "failures": "mtbf=900s,mttr=60s"}),
        ("conservative", "first", {"overrun": "allow"}),
        ("conservative", "lonode", {"overrun": "allow", "queue_options": {"compress": "start"}}),
        ("hybrid", "bestfit", {"overrun": "allow", "queue_options": {"depth": 3}}),
        ("slack", "first", {"overrun": "allow"}),
        ("slack", "first", {"epilog": "1s..90s"}),
        ("hybrid", "first", {"queue_options": {"depth": 3}}),
    ],
    ids=str,
)
def test_the_answers_are_those_of_plans_that_are_built_again(site, monkeypatch, policy, match, options):
    """Law: start times, promises and R are the same; only the search differs."""
    shares = (0.1, 0.5, 1.0, 1.7) if "overrun" in options else (0.1, 0.5, 0.9, 1.0)
    workload = crowd(len(str(options)), shares=shares)
    quick = outcome(site, workload, policy, match, **options)
    monkeypatch.setattr(graph_supply.GraphSupply, "reservations", built_again)
    assert outcome(site, workload, policy, match, **options) == quick


@pytest.mark.parametrize("seed", range(6))
def test_reservations_of_no_time_move_to_earlier_starts(site, monkeypatch, seed):
    """Law: the starts are those of plans that are built again, and no window was ruled out that fits.

    The matrix need not be that of a new plan: a reservation of no time holds its resources for a moment, and
    a job that runs for no time does not.
    """
    workload = crowd(seed, jobs=80, durations=(0, 0, 20, 100, 400))
    passes = checked_passes(monkeypatch)
    quick = outcome(site, workload, "conservative", "first")
    assert len(passes) > 80
    monkeypatch.undo()
    monkeypatch.setattr(graph_supply.GraphSupply, "reservations", built_again)
    assert outcome(site, workload, "conservative", "first") == quick


def test_requests_without_any_units_have_no_gauges(site, monkeypatch):
    spec = ss.Jobspec.from_shape("slot=3/node", duration=50)
    shared = ss.Jobspec.from_shape("node=2", duration=50)
    for each in (shared, spec):
        jobs = tuple(
            ss.Job(id=at, submit=at, runtime=10 + at % 7, duration=50, jobspec=each) for at in range(1, 30)
        )
        with monkeypatch.context() as patch:
            quick = outcome(site, ss.Workload(jobs=jobs, name="nodes"), "conservative", "first")
            patch.setattr(graph_supply.GraphSupply, "reservations", built_again)
            assert outcome(site, ss.Workload(jobs=jobs, name="nodes"), "conservative", "first") == quick


@pytest.mark.parametrize("overrun", ["timeout", "allow"])
def test_the_totals_stay_those_of_the_vectors(site, monkeypatch, overrun):
    """Law: after each pass the matrix is that of the running jobs and the reservations."""
    passes = checked_passes(monkeypatch)
    simulate(site, crowd(4, shares=(0.1, 0.9, 1.0, 1.7)), "conservative", overrun=overrun)
    assert len(passes) > 30
    assert all(passes)


def test_reservations_that_wait_for_a_job_that_overruns_are_kept(site, monkeypatch):
    """The matrix is built again only where a reservation that begins later leaves another too little."""
    built, postponed = [], []
    postpone = LastingReservations.postpone

    def noted(self, jobs):
        postponed.append(postpone(self, jobs))
        return postponed[-1]

    reservations = graph_supply.GraphSupply.reservations
    monkeypatch.setattr(LastingReservations, "postpone", noted)
    monkeypatch.setattr(
        graph_supply.GraphSupply, "reservations", lambda supply: built.append(0) or reservations(supply)
    )
    simulate(site, crowd(4, shares=(0.5, 1.7)), "conservative", overrun="allow")
    assert postponed.count(True) > 5
    assert len(built) == 1 + postponed.count(False)


def test_a_policy_of_chance_is_asked_as_often_as_before(site):
    """Random choices, units by id and closures keep the plans that are built again at each pass."""
    seen = set()

    class Watched(Conservative):
        def run_pass(self, context):
            super().run_pass(context)
            seen.add(type(context.reservations))

    for match in ("random", "low", "firstnodex"):
        simulate(site, crowd(2, 20), Watched(), match)
        expected = LastingReservations if match == "firstnodex" else GraphReservations
        assert seen == {expected}
        seen.clear()


@pytest.mark.parametrize("policy", ["conservative", "hybrid"])
def test_a_claim_may_touch_no_target(policy):
    """A job that shares a rack has no node; it keeps the job that takes all racks for itself waiting."""
    cluster = ss.load_cluster("racked")
    racks = len(cluster.index.vertex_types["rack"].keys)
    shapes = (("rack", 50, 60), (f"slot={racks}/rack", 10, 20), ("rack", 10, 90))
    jobs = [
        ss.Job(id=at, submit=at, runtime=runtime, duration=limit, jobspec=ss.Jobspec.from_shape(shape))
        for at, (shape, runtime, limit) in enumerate(shapes)
    ]
    found = simulate(cluster, ss.Workload(tuple(jobs)), policy)
    assert [str(result) for result in found.jobs["result"]] == ["COMPLETED"] * 3
    assert list(found.jobs["start"]) == [0, 50, 60]
