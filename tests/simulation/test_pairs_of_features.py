"""Every feature of a run with every other: made at once, job by job, and resumed; each run is audited.

A pair that is refused says why, and is in `REFUSED`.
"""

from __future__ import annotations

import random
from functools import reduce
from itertools import combinations

import pytest

import simsched as ss
from simsched.errors import SimschedError
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.options.run_config import from_document
from simsched.simulation.simulate import simulate
from simsched.workload.job import Workload
from simsched.workload.readers.jobs import given_jobs
from tests.simulation.simworld import machine

NODES = 6
QUEUES = {
    "batch": {"hosts": "all"},
    "urgent": {"hosts": "all", "priority": 9, "preempts": True},
}
ACCOUNTS = [
    *({"account": account, "parent": "root", "shares": 1} for account in "xy"),
    *(
        {"user": user, "account": account, "shares": shares}
        for shares, user in enumerate("abc", 1)
        for account in "xy"
    ),
]
OUTAGE = {"ranks": "1-2", "start": 30, "end": 60}

RULES = {
    "fcfs": {"queue-policy": "fcfs"},
    "conservative": {"queue-policy": "conservative"},
    "hybrid": {"queue-policy": "hybrid", "policy-options": {"depth": 2}},
    "selective": {"queue-policy": "selective", "policy-options": {"threshold": 1.5}},
    "slack": {"queue-policy": "slack"},
    "slurm": {"queue-policy": "slurm", "policy-options": {"interval": 5, "window": "1d"}},
    "candidates in another order": {"queue-policy": "easy", "policy-options": {"backfill_order": "sjf"}},
    "shortest first": {"order": "sjf"},
    "wfp3": {"order": "wfp3"},
    "multifactor": {
        "priority": {"factors": {"age": 1000, "size": 100, "fair-share": 2000}, "accounts": ACCOUNTS}
    },
    "random places": {"match-policy": "random"},
    "whole nodes": {"match-policy": "firstnodex"},
    "predictor": {"predictor": "last-two"},
    "actual run times": {"candidates": "actual"},
    "a pass per event": {"passes": "event"},
    "overruns": {"overrun": "allow"},
    "time to stop": {"kill-grace": 3},
    "epilog": {"epilog": "1s..4s"},
    "think times": {"think-times": "honour"},
    "running jobs": {"limits": [{"each": "user", "running-jobs": 2, "blocks": True}]},
    "core hours": {"limits": [{"each": "account", "core-hours": 0.1}]},
    "hours ahead": {"limits": [{"each": "user", "running-core-hours": 0.04}]},
    "submitted jobs": {"limits": [{"each": "user", "submitted-jobs": 6, "over": "hold"}]},
    "nodes of a job": {"limits": [{"user": "b", "each": "job", "nodes": 2}]},
    "failure": {"outages": [{**OUTAGE, "kind": "failure"}]},
    "drain": {"outages": [{**OUTAGE, "kind": "drain"}], "on-failure": "fail"},
    "maintenance": {"outages": [{**OUTAGE, "kind": "maintenance"}]},
    "random failures": {"failures": "mtbf=200,mttr=9"},
    "requeue": {"queues": QUEUES, "preemption": {"by": "queue", "mode": "requeue", "exempt": 3}},
    "cancel": {"queues": QUEUES, "preemption": {"by": "queue", "mode": "cancel", "grace": 2}},
    "suspend": {"queues": QUEUES, "preemption": {"by": "queue", "mode": "suspend"}},
    "closed hours": {
        "queues": {"batch": {"hosts": "n[0-3]", "closed": [[20, 40]]}, "urgent": {"hosts": "all"}}
    },
    "checkpoints": {"job-checkpoints": {"interval": 4, "cost": 1, "restart": 1}},
    "reservation": {"reservations": [{"name": "r", "start": 40, "duration": 40, "nodes": 2, "users": ["a"]}]},
    "flexible reservation": {"reservations": [{"name": "s", "start": 30, "duration": 30, "hosts": "n[1-2]",
                                               "overlaps": True, "flex": True}]},
    "licences": {"licenses": {"matlab": 2}},
    "dependencies": {},
    "singletons": {},
    "arrays": {},
    "parts": {},
    "ranges": {},
    "cancelled jobs": {},
    "urgencies": {},
}  # fmt: skip
"""Feature → its part of the configuration; `entries` tells what it makes of the jobs."""

REFUSED = {
    ("actual run times", "predictor"): "candidates=actual with the predictor last-two",
    ("actual run times", "checkpoints"): "job-checkpoints with candidates=actual",
}


def merged(one, other):
    """Return both parts of a configuration; None if they say different things."""
    found = dict(one)
    for key, value in other.items():
        if key not in found:
            found[key] = value
        elif key in ("limits", "outages", "reservations"):
            found[key] = [*found[key], *value]
        elif found[key] != value:
            return None
    return found


def merged_all(features):
    return reduce(merged, map(RULES.get, features))


PAIRS = [pair for pair in combinations(RULES, 2) if merged(*(RULES[name] for name in pair)) is not None]


def entries(seed, features, rules):
    """Yield the entries of forty jobs, each with what the features need."""
    rng = random.Random(f"{seed} {features}")
    for number in range(40):
        runtime = rng.choice([0, 1, 3, 8, 13, 20])
        entry = {
            "id": f"j{number}",
            "submit": number * 2 + rng.choice([0, 0, 1, 5]),
            "runtime": runtime,
            "duration": max(1, runtime + rng.choice([-2, 0, 0, 4, 15])),
            "shape": rng.choice(
                ["slot=1/core", "slot=3/core", "slot=2/core=2", "slot=9/core", "slot=1/node", "slot=3/node"]
            ),
            "user": rng.choice("abc"),
            "bank": rng.choice("xy"),
        }
        if "queues" in rules:
            entry["queue"] = rng.choice(["batch", "batch", "urgent"])
        if "reservation" in features and entry["user"] == "a" and rng.random() < 0.3:
            entry["reservation"] = "r"
        if "licences" in features and rng.random() < 0.4:
            entry["licenses"] = {"matlab": rng.choice([1, 2])}
        if "dependencies" in features and number > 3 and rng.random() < 0.3:
            entry["depends"] = (
                f"{rng.choice(['after', 'afterany', 'afterok', 'afternotok'])}:j{rng.randint(0, 3)}"
            )
        if "singletons" in features and rng.random() < 0.4:
            entry["depends"] = [
                f"string:{rng.choice('mn')}?type={rng.choice(['in', 'out', 'inout'])}&scope=user"
            ]
        if "arrays" in features and number % 8 == 0:
            entry["array"] = rng.choice(["0-2", "1-5%2"])
        if "parts" in features and number % 6 == 1:
            del entry["shape"]
            entry["parts"] = [{"shape": "slot=1/node"}, {"shape": "slot=2/core"}]
        if "ranges" in features and number % 4 == 2:
            entry["shape"] = rng.choice(["slot=1-4/core", "slot=1-2/node"])
        if "cancelled jobs" in features and rng.random() < 0.2:
            entry["cancel_at"] = entry["submit"] + rng.randint(0, 30)
        if "urgencies" in features:
            entry["urgency"] = rng.choice([0, 8, 16, 16, 31])
        if "think times" in features and number and rng.random() < 0.3:
            entry |= {"preceding": f"j{number - 1}", "think_time": rng.choice([0, 2, 7])}
        yield entry


def told(run, folder):
    """Return the times, results and reasons of the jobs of a run by their ids, and its allocations."""
    path = run.save(folder)
    columns = run.jobs
    rows = zip(*(columns[name].tolist() for name in ("id", "start", "end", "result", "reason")), strict=True)
    return sorted(map(repr, rows)), (path / "allocations.jsonl").read_bytes()


def assert_holds(cluster, jobs, options, folder):
    def submitted():
        simulation = ss.Simulation(cluster, **options)
        simulation.submit_all(jobs)
        simulation.run()
        return simulation.result().result

    whole = simulate(cluster, jobs, **options)
    said = told(whole, folder / "whole")
    report = audit_run(folder / "whole", cluster, jobs)
    assert report, str(report)
    assert told(submitted(), folder / "open") == said, "job by job"
    moment = random.Random(folder.name).randint(1, 80)
    simulate(cluster, jobs, checkpoints={moment: folder / "state.json"}, **options)
    resumed = simulate(cluster, jobs, resume=folder / "state.json", **options)
    assert told(resumed, folder / "resumed") == said, f"resumed at {moment}"


def together(most=6):
    """Return sets of features such that each pair that is not refused is in one of them."""
    left = {frozenset(pair) for pair in PAIRS} - {frozenset(pair) for pair in REFUSED}
    allowed, found = set(left), []
    while left:
        chosen = list(next(pair for pair in PAIRS if frozenset(pair) in left))
        document = merged_all(chosen)
        while len(chosen) < most:
            gains = {
                name: sum(frozenset((name, other)) in left for other in chosen)
                for name in RULES
                if all(frozenset((name, other)) in allowed for other in chosen)
                and merged(document, RULES[name]) is not None
            }
            best = max(gains, key=gains.get, default=None)
            if best is None or not gains[best]:
                break
            chosen.append(best)
            document = merged(document, RULES[best])
        left -= {frozenset(pair) for pair in combinations(chosen, 2)}
        found.append(tuple(chosen))
    return found


SETS = together()


def drawn(features):
    document = merged_all(features)
    return Workload(jobs=given_jobs(list(entries(1, features, document))), name="pairs"), from_document(
        document
    )


@pytest.mark.slow
@pytest.mark.parametrize("features", SETS, ids=", ".join)
@pytest.mark.filterwarnings("ignore")
def test_features_together(features, tmp_path):
    jobs, options = drawn(features)
    assert_holds(machine(NODES, 4, 1), jobs, options, tmp_path)


@pytest.mark.parametrize("pair", REFUSED, ids=" and ".join)
def test_a_pair_that_is_refused_says_why(pair):
    jobs, options = drawn(pair)
    with pytest.raises(SimschedError) as caught:
        simulate(machine(NODES, 4, 1), jobs, **options)
    assert str(caught.value) == f"{REFUSED[pair]} (expected one of the two)"
