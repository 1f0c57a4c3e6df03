"""Named queues (RFC 33): limits, defaults, priorities, hours, and the file that says so."""

from __future__ import annotations

import json

import pytest

from simsched.errors import SimschedError
from simsched.report.run_views import load_run
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.options.config_file import read_config
from simsched.simulation.options.run_config import from_document
from simsched.simulation.queues import Queues
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, results, run, spans, starts, workload

HALVES = {"batch": {"requires": ["batch"]}, "debug": {"requires": ["debug"]}}
CLUSTER = machine(4, properties={"batch": "0-2", "debug": "2-3"})
APART = machine(4, properties={"batch": "0-1", "debug": "2-3"})


def reasons(result):
    return {n: r for n, r in zip(result.jobs["id"], result.jobs["reason"], strict=True) if r}


def test_queues_on_disjoint_nodes_do_not_wait_for_each_other():
    """Under FCFS the batch queue is stuck behind B; the debug queue does not care."""
    found = run(
        APART,
        job("A", 0, "slot=1/core", 9, queue="batch"),
        job("B", 1, "slot=2/core", 5, queue="batch"),
        job("C", 2, "slot=2/core", 5, queue="debug"),
        policy="fcfs",
        queues=Queues.from_dict(HALVES),
    )
    assert starts(found) == {"A": 0, "B": 9, "C": 2}


def test_two_queues_on_overlapping_nodes_share_one_line_and_the_reservation_holds():
    """n2 belongs to both.  B (batch) waits for n0-n2; D (debug) may use n3 for long, but not n2."""
    found = run(
        CLUSTER,
        job("A", 0, "slot=2/core", 9, queue="batch"),
        job("B", 1, "slot=3/core", 5, queue="batch"),
        job("C", 2, "slot=1/core", 30, queue="debug"),
        job("D", 3, "slot=1/core", 30, queue="debug"),
        queues=Queues.from_dict(HALVES),
    )
    assert starts(found) == {"A": 0, "B": 9, "C": 2, "D": 14}
    lines = [json.loads(line) for line in found.log.text().splitlines()]
    ranks = {x["id"]: x["R"]["execution"]["R_lite"][0]["rank"] for x in lines}
    assert ranks == {"A": "0-1", "B": "0-2", "C": "3", "D": "2"}


def test_a_queue_of_higher_priority_goes_first_whatever_the_order():
    queues = Queues.from_dict({"low": {"hosts": "all"}, "high": {"hosts": "all", "priority": 5}})
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 5, queue="low"),
        job("B", 1, "slot=1/core", 1, queue="low"),
        job("C", 2, "slot=1/core", 9, queue="high"),
        queues=queues,
        order="sjf",
    )
    assert starts(found) == {"A": 0, "C": 5, "B": 14}


def test_limits_and_defaults_of_a_virtual_queue_and_its_parent():
    queues = Queues.from_dict(
        {
            "batch": {
                "hosts": "n[0-2]",
                "policy": {
                    "limits": {"duration": "10s", "job-size": {"max": {"nnodes": 2}, "min": {"nnodes": 1}}},
                    "jobspec": {"defaults": {"system": {"duration": "4s"}}},
                },
            },
            "long": {"parent": "batch", "policy": {"limits": {"duration": "1m"}}},
        },
        default="batch",
    )
    found = run(
        machine(4),
        job("default", 0, "slot=1/node", 9, float("inf")),
        job("slow", 0, "slot=1/node", 9, 11),
        job("slow2", 0, "slot=1/node", 9, 11, queue="long"),
        job("wide", 0, "slot=3/node", 1),
        job("lost", 0, "slot=1/node", 1, queue="gpu"),
        queues=queues,
    )
    assert results(found) == {
        "default": "TIMEOUT",
        "slow": "FAILED",
        "slow2": "COMPLETED",
        "wide": "FAILED",
        "lost": "FAILED",
    }
    assert reasons(found) == {
        "slow": "rejected: queue batch allows 10s, the job asks for 11s",
        "wide": "rejected: queue batch allows 2 nodes, the job asks for 3",
        "lost": "rejected: there is no queue 'gpu'",
    }
    assert list(found.jobs["queue"])[:2] == ["batch", "batch"]
    assert found.jobs["end"][0] == 4


def test_a_job_without_a_limit_gets_that_of_its_queue():
    """The default, which the limit may refuse as in Flux; else the limit, if there is one, as in Slurm."""
    limits = {"limits": {"duration": "10s"}}
    default = {"jobspec": {"defaults": {"system": {"duration": "4s"}}}}
    large = {"jobspec": {"defaults": {"system": {"duration": "20s"}}}}
    queues = Queues.from_dict(
        {
            "limited": {"hosts": "all", "policy": limits},
            "both": {"hosts": "all", "policy": {**limits, **default}},
            "large": {"hosts": "all", "policy": {**limits, **large}},
            "open": {"hosts": "all"},
        }
    )
    jobs = [job(name, 0, "slot=1/core", 15, float("inf"), queue=name) for name in queues.queues]
    found = run(machine(4), *jobs, queues=queues)
    too_large = {"large": "rejected: queue large allows 10s, and the default duration is 20s"}
    assert reasons(found) == too_large
    ends = dict(zip(found.jobs["id"], found.jobs["end"], strict=True))
    assert {name: ends[name] for name in ("limited", "both", "open")} == {
        "limited": 10,
        "both": 4,
        "open": 15,
    }
    strict = run(machine(4), *jobs, queues=queues, no_limit="reject")
    limited = "rejected: queue limited allows 10s, the job asks for no limit"
    assert reasons(strict) == {"limited": limited, **too_large}


def test_the_rule_for_jobs_without_a_limit_is_an_option(tmp_path, capsys):
    from simsched.cli import main

    (tmp_path / "config.toml").write_text(
        'no-limit = "reject"\n[queues.q]\nhosts = "all"\n[queues.q.policy.limits]\nduration = "1h"\n'
    )
    (tmp_path / "jobs.yaml").write_text("- {shape: slot=1/core, duration: inf, runtime: 9, queue: q}\n")
    command = ["run", "tiny", f"{tmp_path}/jobs.yaml", "--config", f"{tmp_path}/config.toml", "-o"]
    for words, result in (([], "FAILED"), (["--no-limit", "queue"], "COMPLETED")):
        assert main([*command, f"{tmp_path}/{result}", *words]) == 0
        assert load_run(tmp_path / result).jobs["result"].tolist() == [result]
    with pytest.raises(SimschedError, match="no-limit: unknown value 'never'"):
        from_document({"no-limit": "never"}) and run(machine(1), no_limit="never")


def test_a_queue_that_is_closed_overnight():
    queues = Queues.from_dict({"day": {"hosts": "all", "closed": [["3s", "10s"]]}, "any": {"hosts": "all"}})
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 5, queue="day"),
        job("B", 1, "slot=1/core", 1, queue="day"),
        job("C", 4, "slot=1/core", 1, queue="day"),
        job("D", 4, "slot=1/core", 2, queue="any"),
        queues=queues,
    )
    assert starts(found) == {"A": 0, "D": 5, "B": 10, "C": 11}


def test_queues_are_audited_with_their_constraints(tmp_path):
    jobs = [
        job(n, n, f"slot={1 + n % 2}/core", 3 + n % 5, queue=("batch", "debug")[n % 3 == 0])
        for n in range(40)
    ]
    found = run(CLUSTER, *jobs, queues=Queues.from_dict(HALVES))
    path = found.save(tmp_path / "run")
    report = audit_run(path, CLUSTER, found.workload)
    assert report, str(report)
    assert found.workload.jobs[0].jobspec.constraint is not None
    assert audit_run(path, CLUSTER, workload(*jobs))


CONFIG = """
queue-policy = "conservative"
order = "priority"
seed = 4
failures = "mtbf=30d,mttr=4h"

[policy-options]

[[outages]]
ranks = "0"
start = "1h"
end = "2h"
kind = "maintenance"

[policy.jobspec.defaults.system]
queue = "batch"

[queues.batch]
requires = ["batch"]

[queues.debug]
requires = ["debug"]
priority = 1
"""


def test_a_configuration_file(tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG)
    found = read_config(tmp_path / "config.toml")
    assert found["queue_policy"] == "conservative"
    assert (found["order"], found["seed"]) == ("priority", 4)
    assert found["failures"].mttr == 14400
    assert found["outages"][0].kind == "maintenance"
    assert found["queues"].default == "batch"
    assert found["queues"].queues["debug"].priority == 1
    result = simulate(CLUSTER, workload(job("A", 0, "slot=1/core", 2)), **found)
    assert result.jobs["queue"][0] == "batch"
    assert result.meta["config"]["queues"] == ["batch", "debug"]
    (tmp_path / "config.yaml").write_text("order: sjf\nqueues: {all: {hosts: all}}\n")
    assert read_config(tmp_path / "config.yaml")["order"] == "sjf"


def test_a_policy_of_all_queues_holds_where_a_queue_says_nothing():
    document = {
        "policy": {
            "limits": {"duration": "10s", "job-size": {"max": {"nnodes": 2}}},
            "jobspec": {"defaults": {"system": {"queue": "a", "duration": "3s"}}},
        },
        "queues": {"a": {}, "b": {"policy": {"limits": {"duration": "20s"}}}},
    }
    found = run(
        CLUSTER,
        job("A", 0, "slot=1/core", 9, float("inf")),
        job("B", 0, "slot=1/core", 15),
        job("C", 0, "slot=1/core", 15, queue="b"),
        job("D", 0, "slot=3/node", 1, queue="b"),
        **from_document(document),
    )
    assert results(found) == {"A": "TIMEOUT", "B": "FAILED", "C": "COMPLETED", "D": "FAILED"}
    assert spans(found)["A"] == (0, 3)


def test_a_virtual_queue_may_be_everywhere_and_always_open():
    queues = Queues.from_dict(
        {"day": {"hosts": "n0", "closed": [[0, 9]]}, "all": {"parent": "day", "hosts": "all", "closed": []}}
    )
    found = run(CLUSTER, job("A", 0, "slot=2/node", 1, queue="all"), queues=queues)
    assert spans(found) == {"A": (0, 1)}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"ordr": "fifo"}, "unknown key 'ordr'"),
        ({"seed": "x"}, "seed: 'x' is not a whole number"),
        ({"order": 3}, "order: 3 is not a name"),
        ({"failures": 3}, "failures is not a text"),
        ({"queues": []}, "no queues"),
        ({"queues": {"a": 3}}, "queues.a: 3 is not a table"),
        ({"queues": {"a": {"require": []}}}, "unknown key 'require'"),
        ({"queues": {"a": {"requires": "x"}}}, "list of properties"),
        ({"queues": {"a": {"parent": "b"}}}, "the parent 'b' is not another queue"),
        ({"queues": {"a": {"parent": "b"}, "b": {"parent": "a"}}}, "is not another queue"),
        ({"queues": {"a": {"priority": "high"}}}, "not a whole number"),
        ({"queues": {"a": {"closed": [["2h", "1h"]]}}}, "ends before it begins"),
        ({"queues": {"a": {"policy": {"limits": {"size": 3}}}}}, "unknown key 'size'"),
        (
            {"queues": {"a": {}}, "policy": {"jobspec": {"defaults": {"system": {"queue": "b"}}}}},
            "does not exist",
        ),
        ({"policy": {}}, "no queues"),
        ({"queues": {"a": {}}, "policy": {"limit": {}}}, "unknown key 'limit'"),
        ({"queues": {"a": {"parent": []}}}, "is not another queue"),
        ({"queues": {"a": {"priority": 10**30}}}, "is out of range"),
        ({"queues": {"a": {"policy": {"jobspec": None}}}}, "not a table"),
        ({"queues": {"a": {"policy": {"jobspec": {"defaults": {"sistem": {}}}}}}}, "unknown key 'sistem'"),
        ({"queues": {"a": {"policy": {"jobspec": {"defaults": {"system": 3}}}}}}, "not a table"),
        ({"queues": {"a": {"closed": 5}}}, "not a list of windows"),
    ],
)
def test_configurations_that_are_none(document, message):
    with pytest.raises(SimschedError, match=message):
        from_document(document)


def test_a_file_that_is_no_toml(tmp_path):
    (tmp_path / "c.toml").write_text("a = ")
    with pytest.raises(SimschedError, match="not TOML"):
        read_config(tmp_path / "c.toml")


# --- preemption ------------------------------------------------------------------------------------------


def preemptible(name, submit, shape, runtime, after, **more):
    made = job(name, submit, shape, runtime, **more)
    fields = {field: getattr(made, field) for field in made.__struct_fields__}
    spec = made.jobspec.with_system(**{"preemptible-after": after})
    return type(made)(**{**fields, "jobspec": spec})


URGENT = {"batch": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 9, "preempts": True}}


def test_preemption():
    """U needs two nodes at 4.  B started last but has not run its 5 s; A and C go, D may not be touched.

    A and C start over when U is done.
    """
    found = run(
        machine(4),
        preemptible("A", 0, "slot=1/core", 10, 3, queue="batch"),
        preemptible("B", 2, "slot=1/core", 10, 5, queue="batch"),
        preemptible("C", 1, "slot=1/core", 10, 3, queue="batch"),
        job("D", 0, "slot=1/core", 10, queue="batch"),
        job("U", 4, "slot=2/core", 5, queue="urgent"),
        queues=Queues.from_dict(URGENT),
    )
    assert starts(found) == {"A": 9, "B": 2, "C": 9, "D": 0, "U": 4}
    assert reasons(found) == {
        "A": "queued again once: preempted by U",
        "C": "queued again once: preempted by U",
    }
    assert set(results(found).values()) == {"COMPLETED"}


def test_no_more_are_preempted_than_help():
    """U needs n0, the only gpu node, which A holds; B started later, but its going would not help."""
    cluster = machine(4, properties={"gpu": "0"})
    found = run(
        cluster,
        preemptible("A", 0, "slot=1/core", 10, 0, queue="batch", constraint="gpu"),
        preemptible("B", 1, "slot=1/core", 10, 0, queue="batch"),
        job("U", 4, "slot=1/core", 5, queue="urgent", constraint="gpu"),
        queues=Queues.from_dict(URGENT),
    )
    assert starts(found) == {"A": 9, "B": 1, "U": 4}


@pytest.mark.parametrize("after", [6, 5.5])
def test_who_may_not_be_preempted_yet_is_once_it_has_run_that_long(tmp_path, after):
    """Nothing else happens at that instant, and a resumed run does not miss it either."""
    cluster, state = machine(2), tmp_path / "state.json"
    jobs = [
        preemptible("A", 1, "slot=2/core", 50, after, queue="batch"),
        job("U", 4, "slot=2/core", 5, queue="urgent"),
        job("V", 5, "slot=1/core", 5, queue="urgent"),
    ]
    queues = Queues.from_dict(URGENT)
    expected = {"U": 1 + after, "V": 6 + after, "A": 11 + after}
    assert starts(run(cluster, *jobs, queues=queues, checkpoints={5: state})) == expected
    assert starts(run(cluster, *jobs, queues=queues, resume=state)) == expected


def test_without_anybody_to_preempt_the_urgent_job_waits_its_turn():
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 10, queue="batch"),
        job("B", 1, "slot=1/core", 3, queue="batch"),
        job("U", 4, "slot=1/core", 5, queue="urgent"),
        queues=Queues.from_dict(URGENT),
    )
    assert starts(found) == {"A": 0, "U": 10, "B": 15}


def test_runs_with_preemption_are_clean(tmp_path):
    import random

    rng = random.Random(1)
    shapes = ("slot=2/core=1", "slot=1/[core=2;gpu]", "slot=1/node", "slot=3/node")
    cluster = machine(4, cores=2, gpus=1)
    jobs = []
    for n in range(60):
        shape, length = rng.choice(shapes), rng.randint(1, 20)
        if n % 4:
            jobs.append(preemptible(n, rng.randint(0, 90), shape, length, rng.randint(0, 5), queue="batch"))
        else:
            jobs.append(job(n, rng.randint(0, 90), shape, length, queue="urgent"))
    found = run(cluster, *jobs, queues=Queues.from_dict(URGENT))
    report = audit_run(found.save(tmp_path / "run"), cluster, found.workload)
    assert report, str(report)
    assert any("preempted" in (reason or "") for reason in found.jobs["reason"])
    assert set(found.jobs["result"]) == {"COMPLETED"}


def test_the_earliest_deadline_starts_first():
    """B has to be done by 90, C by 40; D says nothing."""
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 9),
        job("B", 1, "slot=1/core", 5, deadline=90),
        job("C", 2, "slot=1/core", 5, deadline=40),
        job("D", 3, "slot=1/core", 5),
        policy="fcfs",
        order="edf",
    )
    assert starts(found) == {"A": 0, "C": 9, "B": 14, "D": 19}
