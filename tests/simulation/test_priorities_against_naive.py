"""Starts under the order ``multifactor`` against the naive scheduler of tests/reference, job by job."""

from __future__ import annotations

import math
import random

import pytest

import simsched as ss
from simsched.formats.rfc.duration import format_duration
from tests.reference import priorities as naive

TRACES = {"KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100), "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128)}


def cluster_of(procs):
    lite = [{"rank": f"0-{procs - 1}", "children": {"core": "0"}}]
    execution = {"R_lite": lite, "nodelist": [f"n[0-{procs - 1}]"], "starttime": 0, "expiration": 0}
    return ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))


def workload_of(jobs):
    made = []
    for job in jobs:
        duration = None if job.requested == math.inf else job.requested
        made.append(
            ss.Job(
                id=job.id, submit=job.submit, runtime=job.runtime, duration=duration,
                jobspec=ss.Jobspec.from_shape(f"slot={job.procs}/core", duration=duration),
                user=job.user, bank=job.account,
            )
        )  # fmt: skip
    return ss.Workload(jobs=tuple(sorted(made, key=lambda job: job.submit)), name="made")


def priority_of(rules):
    """The oracle's rules as Slurm's own lines, and its tree as rows."""
    lines = {
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": rules.age,
        "PriorityWeightFairShare": rules.fair_share,
        "PriorityWeightJobSize": rules.size,
        "PriorityFavorSmall": "YES" if rules.favour_small else "NO",
        "PriorityMaxAge": f"0-{int(rules.max_age // 3600)}",
        "PriorityDecayHalfLife": "0" if rules.half_life == math.inf else f"0-{int(rules.half_life // 3600)}",
        "PriorityFlags": "" if rules.fair_tree else "NO_FAIR_TREE",
    }
    rows = [{"account": name, "parent": parent, "shares": n} for name, (parent, n) in rules.accounts.items()]
    rows += [{"account": account, "user": user, "shares": n} for (account, user), n in rules.users.items()]
    found = {"preset": "slurm", "lines": lines, "period": format_duration(rules.period)}
    return found | ({"accounts": rows} if rows else {})


def compare(jobs, procs, rules):
    run = ss.simulate(
        cluster_of(procs), workload_of(jobs), "easy", priority=priority_of(rules), allocations=False
    )
    mine = dict(zip(run.jobs["id"].astype(int), run.jobs["start"], strict=True))
    theirs = naive.schedule(jobs, procs, rules)
    differ = [(number, start, mine[number]) for number, start in theirs.items() if mine[number] != start]
    assert differ[:5] == []
    return len(theirs)


def tree_of(pairs):
    """Accounts of two levels, and users with unequal shares; one account has its users beside accounts."""
    accounts = {"account0": ("root", 3), "account1": ("root", 2), "account2": ("account1", 1)}
    return accounts, {pair: 1 + at % 3 for at, pair in enumerate(sorted(set(pairs)))}


@pytest.mark.parametrize("seed", range(40))
def test_random_workloads(seed):
    rng = random.Random(seed)
    procs = rng.choice([4, 8, 16])
    jobs, submit = [], 0
    for number in range(1, 61):
        submit += rng.choice([0, 1, 30, 100, 400])
        run = rng.choice([0, 1, 50, 300, 1000, 4000])
        user = rng.randrange(7)
        asked = rng.choice([run, run + 1, 2 * run + 60, max(1, run // 2), math.inf])
        jobs.append(
            naive.Job(number, submit, run, asked, rng.randint(1, procs), f"u{user}", f"account{user % 3}")
        )
    accounts, users = tree_of((job.account, job.user) for job in jobs)
    rules = naive.Rules(
        age=rng.choice([0, 500, 1000]), fair_share=rng.choice([0, 1000, 10_000]), size=rng.choice([0, 300]),
        favour_small=rng.random() < 0.5, max_age=rng.choice([3600, 86400]),
        half_life=rng.choice([3600, 86400, math.inf]), period=rng.choice([0, 60, 300]),
        fair_tree=rng.random() < 0.7, accounts=accounts, users=users,
    )  # fmt: skip
    assert compare(jobs, procs, rules) == len(jobs)


@pytest.mark.slow
@pytest.mark.parametrize("fair_tree", [True, False])
@pytest.mark.parametrize("name", TRACES)
def test_5000_jobs_of_a_trace(traces, name, fair_tree):
    file, procs = TRACES[name]
    jobs = naive.read_swf(traces / file, 5000)
    accounts, users = tree_of((job.account, job.user) for job in jobs)
    rules = naive.Rules(
        age=1000, fair_share=10_000, size=500, fair_tree=fair_tree, accounts=accounts, users=users
    )
    assert compare(jobs, procs, rules) > 4900
