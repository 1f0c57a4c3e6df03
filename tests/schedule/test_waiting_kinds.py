"""Which kinds of waiting jobs fit, from one comparison of least amounts: the same as kind by kind."""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.schedule.graph_supply import FEW
from simsched.schedule.queue import WaitingQueue
from simsched.schedule.waiting_kinds import WaitingKinds
from simsched.simulation.simulate import simulate

SHAPES = (
    *("slot={n}/core", "slot={n}/[core=2;memory=4{{unit:GB}}]", "slot={k}/node", "slot={k}/gpu"),
    "node={k}/slot=2/[core=2;memory=2{{unit:GB}}]",
)


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(
        "groups:\n"
        "  - {name: thin, count: 6, sockets: 2, cores: 8, memory: 32 GiB, properties: [thin]}\n"
        "  - {name: fat, count: 2, sockets: 2, cores: 8, memory: 32 GiB, gpus: 2, properties: [fat]}\n"
    )
    return ss.load_cluster(path)


def workload(seed, count=160, steps=(0, 0, 5, 30)):
    rng = random.Random(seed)
    jobs, now = [], 0
    for number in range(count):
        now += rng.choice(steps)
        shape = rng.choice(SHAPES).format(n=2 ** rng.randrange(6), k=rng.randrange(1, 3))
        duration = rng.randrange(20, 900)
        spec = ss.Jobspec.from_shape(shape, constraint=rng.choice([None, "thin", "fat"]), duration=duration)
        runtime = rng.randrange(1, duration + 1)
        jobs.append(
            ss.Job(id=number + 1, submit=now, runtime=runtime, duration=duration, jobspec=spec, user="u")
        )
    return ss.Workload(jobs=tuple(jobs), name="mixed")


@pytest.mark.parametrize("order", ["fifo", "sjf"])
def test_the_least_amounts_find_the_kinds_that_fit(site, order, monkeypatch):
    asked = []
    plain, jobs_that_fit, queues = WaitingKinds.fitting, WaitingKinds.jobs_that_fit, []
    group = WaitingQueue.group

    def grouped(queue, kinds):
        queues[:] = [queue]
        return group(queue, kinds)

    def fitting(by_kind):
        found = plain(by_kind)
        queue = queues[0]
        queue.check()
        of = queue._table.kinds
        assert sorted(found) == sorted({of[job] for job in queue if by_kind.kinds.fits(of[job])})
        asked.append(bool(found))
        return found

    def jobs_found(by_kind, most):
        found, queue = jobs_that_fit(by_kind, most), queues[0]
        fitting = [job for job in queue if by_kind.kinds.fits(queue._table.kinds[job])]
        assert found == (fitting if len(fitting) <= most else None)
        return found

    monkeypatch.setattr(WaitingQueue, "group", grouped)
    monkeypatch.setattr(WaitingKinds, "fitting", fitting)
    monkeypatch.setattr(WaitingKinds, "jobs_that_fit", jobs_found)
    simulate(site, workload(3), "easy", order=order)
    assert {True, False} <= set(asked)


def test_bars_and_hidden_jobs_leave_the_kinds_and_come_back(site):
    seen = []

    def watch(engine):
        (queue, context, _), *_ = engine.queues.groups
        if len(queue) <= FEW or seen:
            return
        kinds = context.supply.kinds
        queue.group(kinds)
        jobs, ranks = list(queue), queue.ranks.tolist()
        queue.hide(ranks[2:5])
        queue.group(kinds).check(queue.ranks)
        queue.show(ranks[2:5])
        by_kind = queue.group(kinds)
        queue.check()
        queue.bar({jobs[0], jobs[3]})
        queue.check()
        queue.unbar({jobs[0], jobs[3]})
        queue.check()
        assert queue.group(kinds) is by_kind
        assert list(queue) == jobs
        seen.append(len(jobs))

    simulate(site, workload(5, 40, steps=(0,)), "easy", progress=watch)
    assert seen
