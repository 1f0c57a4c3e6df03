"""Limits are asked before anybody is preempted; jobs that preempt come first; nothing else changes."""

from __future__ import annotations

import json
import random
import signal

import pytest

import simsched as ss
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.options.run_config import from_document
from tests.simulation.simworld import job, machine, run, starts, workload

QUEUES = {"low": {"hosts": "all"}, "high": {"hosts": "all", "priority": 9, "preempts": True}}
RULES = [None, {}, {"grace": 3}, {"mode": "cancel"}, {"mode": "suspend"}]
"""None: without a table, so that jobs with ``preemptible-after`` are preempted."""
NODE = "node=1{x}/slot=1/core"


@pytest.fixture(autouse=True)
def ends_in_time():
    """Fail a test whose run does not end."""

    def stop(*_):
        raise TimeoutError("the run does not end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def nodes(tmp_path):
    """Make a machine of nodes with these numbers of cores, which are called n0, m0 and so on."""

    def made(*cores):
        groups = (f"  - {{name: {'nmop'[at]}, count: 1, cores: {one}}}\n" for at, one in enumerate(cores))
        (tmp_path / "site.yaml").write_text("groups:\n" + "".join(groups))
        return ss.load_cluster(tmp_path / "site.yaml")

    return made


def victim(name, submit, shape, runtime, after=0, **more):
    """A job of queue low that may be preempted without a table, too."""
    made = job(name, submit, shape, runtime, **{"queue": "low", "user": "v"} | more)
    fields = {field: getattr(made, field) for field in made.__struct_fields__}
    spec = made.jobspec.with_system(**{"preemptible-after": after})
    return ss.Job(**fields | {"jobspec": spec})


def events(found, *names):
    """(time, name, job) of each of these events."""
    lines = map(json.loads, found.events.text().splitlines())
    return [(one["timestamp"], one["name"], str(one["id"])) for one in lines if one["name"] in names]


def taken(found):
    """The jobs that were preempted."""
    pairs = zip(found.jobs["id"], found.jobs["reason"], strict=True)
    return [id_ for id_, why in pairs if "preempted by" in (why or "")]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("most", [2, 4])
@pytest.mark.parametrize("shape", ["slot=1/node", NODE])
def test_victims_are_those_whose_room_the_limit_allows(nodes, rules, most, shape):
    """B started last, but on its 8 cores U would be over its limit.  So A goes, which has the small node."""
    found = run(
        nodes(most, 8),
        victim("A", 0, shape, 50),
        victim("B", 0, shape, 50),
        job("U", 5, shape, 20, queue="high", user="u"),
        queues=QUEUES,
        preemption=rules,
        limits=[{"user": "u", "cores": most}],
    )
    assert taken(found) == ["A"]
    assert starts(found)["U"] == 5 + (rules or {}).get("grace", 0)


@pytest.mark.parametrize("rules", RULES)
def test_a_job_whose_room_a_limit_refuses_preempts_nobody(nodes, rules):
    """Not at its submission, and not at the passes for X and Y; U waits for the small node, which K keeps."""
    found = run(
        nodes(4, 8),
        job("K", 0, NODE, 50, queue="high", user="v"),
        victim("B", 0, NODE, 60),
        job("U", 5, NODE, 20, queue="high", user="u"),
        *(victim(name, at, NODE, 1) for name, at in (("X", 7), ("Y", 9))),
        queues=QUEUES,
        preemption=rules,
        limits=[{"user": "u", "cores": 4}],
    )
    assert taken(found) == []
    assert starts(found)["U"] == 50


@pytest.mark.parametrize("rules", RULES)
def test_the_use_of_victims_does_not_count_unless_they_are_suspended(nodes, rules):
    """U takes the 6 cores of m0.  Beside the 2 of B, which has the same user, they would exceed 7."""
    found = run(
        nodes(4, 6),
        job("K", 0, NODE, 50, queue="high", user="v"),
        victim("B", 0, "slot=2/core", 60, user="u"),
        job("U", 5, NODE, 20, queue="high", user="u"),
        queues=QUEUES,
        preemption=rules,
        limits=[{"user": "u", "cores": 7}],
    )
    suspends = (rules or {}).get("mode") == "suspend"
    assert taken(found) == ([] if suspends else ["B"])
    assert starts(found)["U"] == (50 if suspends else 5 + (rules or {}).get("grace", 0))


@pytest.mark.parametrize("grace", [0, 3])
def test_queues_that_share_a_limit_lose_no_victims_for_nothing(grace):
    """U and V are of queues without common nodes, and only one of them may run."""
    queues = {
        f"{kind}{node}": {"hosts": f"n{node}", "priority": 9 * (kind == "high"), "preempts": kind == "high"}
        for kind in ("low", "high")
        for node in (0, 1)
    }
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 50, queue="low0"),
        job("B", 0, "slot=1/core", 50, queue="low1"),
        job("U", 5, "slot=1/core", 10, queue="high0", user="u"),
        job("V", 5, "slot=1/core", 10, queue="high1", user="u"),
        queues=queues,
        preemption={"grace": grace},
        limits=[{"user": "u", "running-jobs": 1}],
        policy="fcfs",
        eventlog=True,
    )
    assert starts(found) == {"A": 15 + grace, "B": 25 + 2 * grace, "U": 5 + grace, "V": 15 + 2 * grace}
    assert events(found, "requeue") == [(5 + grace, "requeue", "A"), (15 + 2 * grace, "requeue", "B")]


@pytest.mark.parametrize("rules", [{}, {"mode": "suspend"}, {"grace": 2}])
def test_of_groups_that_share_nodes_the_highest_preempts_first(rules):
    """U waits apart from M, in a reservation that lets it start anywhere, and comes before it."""
    reserved = {"name": "r", "start": 500, "duration": 100, "nodes": 1, "flex": True}
    urgent = job("U", 5, "slot=1/core", 10, queue="high")
    fields = {field: getattr(urgent, field) for field in urgent.__struct_fields__}
    found = run(
        machine(1),
        job("B", 0, "slot=1/core", 50, queue="low"),
        job("M", 5, "slot=1/core", 10, queue="mid"),
        ss.Job(**fields | {"jobspec": urgent.jobspec.with_system(reservation="r")}),
        queues=QUEUES | {"mid": {"hosts": "all", "priority": 4, "preempts": True}},
        preemption=rules,
        reservations=[reserved],
        eventlog=True,
    )
    grace = rules.get("grace", 0)
    assert [(time, name) for time, _, name in events(found, "start")][:3] == [
        (0, "B"),
        (5 + grace, "U"),
        (15 + grace, "M"),
    ]
    assert len(events(found, "requeue", "suspend")) == 1  # B, for both


def test_qos_that_preempt_each_other_are_refused():
    """Such a run never ended: at each stale event one took the place of the other."""
    loop = {"a": {"preempts": ["b"]}, "b": {"preempts": ["c"]}, "c": {"preempts": ["a"]}}
    with pytest.raises(ss.SimschedError, match=r"preemption.qos: 'a' preempts 'b' preempts 'c' preempts 'a'"):
        run(machine(1), job("A", 0, "slot=1/core", 5, qos="a"), preemption={"qos": loop})


def test_qos_whose_jobs_are_not_preempted_make_no_loop():
    """Jobs of A stay, so that no job takes the place of another twice."""
    rules = {"qos": {"a": {"preempts": ["b"], "mode": "off"}, "b": {"preempts": ["a"]}}}
    jobs = [job(name, at, "slot=1/core", 5, qos=qos) for at, (name, qos) in enumerate(["Bb", "Aa", "Cb"])]
    found = run(machine(1), *jobs, preemption=rules)
    assert starts(found) == {"A": 1, "B": 6, "C": 11}


def test_a_job_that_preempts_starts_before_the_policy_without_a_table():
    """R has a reservation at 10, which U would delay; nothing has to be preempted for U."""
    found = run(
        machine(2),
        victim("A", 0, "slot=1/core", 10, after=100),
        job("R", 1, "slot=2/core", 10, queue="high"),
        job("U", 2, "slot=1/core", 20, queue="higher"),
        queues=QUEUES | {"higher": {"hosts": "all", "priority": 10, "preempts": True}},
        policy="conservative",
    )
    assert starts(found) == {"A": 0, "U": 2, "R": 22}


def test_the_order_is_that_of_the_present():
    """At 60, V has waited for six times its limit, and U for a fraction; at the pass before, U was first."""
    found = run(
        machine(2),
        job("K", 0, "slot=1/core", 60, queue="high"),
        job("B", 0, "slot=1/core", 900, queue="low"),
        job("U", 1, "slot=1/core", 20, 1000, queue="high"),
        job("V", 20, "slot=1/core", 7, queue="high"),
        queues=QUEUES,
        preemption={"exempt": 500},
        order="wfp3",
    )
    assert starts(found) == {"K": 0, "B": 0, "V": 60, "U": 67}


@pytest.mark.parametrize("rules", RULES)
def test_jobs_to_come_decide_nothing(rules):
    """Only B may be preempted.  Until it is submitted the policy alone decides, and R keeps its promise."""
    jobs = [
        job("A", 0, "slot=1/core", 10, queue="high"),
        job("R", 1, "slot=2/core", 10, queue="high"),
        job("U", 2, "slot=1/core", 20, queue="higher"),
        victim("B", 100, "slot=1/core", 5),
    ]
    queues = QUEUES | {"higher": {"hosts": "all", "priority": 10, "preempts": True}}
    if rules is not None:
        rules = {**rules, "queues": {"high": {"mode": "off"}, "higher": {"mode": "off"}}}
    closed = run(machine(2), *jobs, policy="conservative", queues=queues, preemption=rules)
    open_ = ss.Simulation(machine(2), queue_policy="conservative", queues=queues, preemption=rules)
    open_.submit_all(jobs)
    open_.run()
    assert starts(closed) == starts(open_.result().result) == {"A": 0, "R": 10, "U": 20, "B": 100}


@pytest.mark.parametrize("rules", RULES)
def test_a_job_starts_when_the_use_that_refuses_its_room_has_fallen(nodes, rules):
    """U may start beside K from 50 on.  H waits for the small node, and the policy never comes to U."""
    found = run(
        nodes(2, 8, 8),
        job("K", 0, "slot=1/core", 100, queue="high", user="u"),
        victim("B", 0, NODE, 1000),
        job("H", 1, "slot=2/node", 10, queue="high", user="h"),
        job("U", 5, NODE, 10, queue="high", user="u"),
        policy="fcfs",
        queues=QUEUES,
        preemption=rules,
        limits=[{"user": "h", "cores": 11}, {"user": "u", "running-core-hours": 130 / 3600}],
    )
    assert taken(found) == []
    assert starts(found) == {"K": 0, "B": 0, "U": 50, "H": 100}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "slack", "slurm"])
@pytest.mark.parametrize("rules", [None, {}, {"mode": "off"}, {"queues": {"low": {"mode": "off"}}}])
def test_where_nothing_can_be_preempted_the_policies_alone_decide(policy, rules):
    rng = random.Random(policy)
    queued = "high" if rules == {} else None
    jobs = [
        job(number, rng.randint(0, 60), f"slot={rng.randint(1, 5)}/core", rng.randint(0, 20), 30,
            queue=queued or rng.choice(["low", "high"]))
        for number in range(40)
    ]  # fmt: skip
    rules = {} if rules is None else {"preemption": rules}
    found = run(machine(6), *jobs, policy=policy, queues=QUEUES, eventlog=True, **rules)
    idle = QUEUES | {"high": {"hosts": "all", "priority": 9}}
    plain = run(machine(6), *jobs, policy=policy, queues=idle, eventlog=True)
    assert found.log.text() == plain.log.text()
    assert found.events.text() == plain.events.text()
    assert found.jobs["promised"].tolist() == pytest.approx(plain.jobs["promised"].tolist(), nan_ok=True)


SHAPES = ["slot=1/core", "slot=2/core", "slot=1/node", "slot=2/node", NODE, "slot=1-3/core"]
KINDS = {"cores": [1, 2, 4, 8], "nodes": [1, 2, 3], "running-jobs": [1, 2], "core-hours": [0.05, 0.2, 1],
         "running-core-hours": [0.02, 0.05, 0.2]}  # fmt: skip


def drawn(rng):
    """Rules and jobs at random, and whether each preemption makes room at once."""
    modes, preempting = ["requeue", "cancel", "suspend", "checkpoint"], {"hosts": "all", "preempts": True}
    document = {
        "queues": {
            "low": {"hosts": "all"},
            "mid": preempting | {"priority": 4},
            "high": preempting | {"priority": 9},
        }
    }
    kind = rng.choice([None, None, "queue", "queue", "qos"])
    used = {"requeue"}
    grace = 0
    if kind:
        grace, mode, other = rng.choice([0, 0, 4]), rng.choice(modes), rng.choice(modes)
        used = {mode, other}
        table = document["preemption"] = {"mode": mode, "grace": grace, "exempt": rng.choice([0, 0, 5])}
        table["order"] = rng.choice(["priority", "youngest"])
        if kind == "queue":
            table["queues"] = {"mid": {"mode": other}}
        else:
            mid = {"preempts": ["low"], "mode": other}
            table["qos"] = {"high": {"preempts": rng.choice([["low"], ["mid", "low"]])}, "mid": mid}
        if rng.random() < 0.5:
            document["job-checkpoints"] = {"interval": rng.randint(2, 20), "cost": 0, "restart": 0}
    document["limits"] = [
        {
            **rng.choice([{"each": "user"}, {"queue": "high"}, {"qos": "high"}, {}]),
            name: rng.choice(KINDS[name]),
        }
        for name in rng.sample(sorted(KINDS), 2)
    ]
    if rng.random() < 0.3:
        more = {key: True for key in ("flex", "overlaps", "ignore-jobs") if rng.random() < 0.6}
        document["reservations"] = [{"name": "r", "start": 40, "duration": 60, "nodes": 1} | more]
    epilog = rng.choice([(0, 0), (0, 0), (3, 3)])
    jobs, at = [], 0
    for number in range(rng.choice([6, 20, 30])):
        at += int(rng.expovariate(1 / rng.choice([2, 8])))
        runtime, queue = (
            rng.choice([0, 1, 5, 20, rng.randint(1, 60)]),
            rng.choice(["low", "low", "mid", "high"]),
        )
        limit = max(1, rng.choice([runtime, runtime + 5, 60]))
        system = {"reservation": "r"} if "reservations" in document and rng.random() < 0.3 else {}
        if not kind and queue != "high":
            system["preemptible-after"] = rng.choice([0, 0, 4, 7.5])
        spec = ss.Jobspec.from_shape(rng.choice(SHAPES), duration=limit).with_system(**system)
        names = {"user": rng.choice("ab"), "queue": queue, "qos": queue}
        jobs.append(ss.Job(str(number), at, spec, runtime, limit, **names))
    options = {"policy": rng.choice(["fcfs", "easy", "conservative", "slurm", "hybrid"]), "epilog": epilog}
    options |= {"match_policy": rng.choice(["first", "high", "bestfit", "random"]), "eventlog": True}
    options["order"] = rng.choice(["fifo", "sjf", "wfp3"])
    at_once = not grace and "checkpoint" not in used and not ("cancel" in used and epilog[1])
    return jobs, options | dict(from_document(document)), at_once


@pytest.mark.parametrize("seed", range(24))
def test_random_runs_end_and_lose_no_victims_for_nothing(nodes, tmp_path, seed):
    """Where victims go at once, the job that preempted them starts then; resumed runs are equal."""
    rng = random.Random(seed)
    cluster = nodes(*(rng.choice([1, 2, 4, 8]) for _ in range(rng.randint(2, 4))))
    jobs, options, at_once = drawn(rng)
    found, state = run(cluster, *jobs, **options), tmp_path / "state.json"
    report = audit_run(found.save(tmp_path / "run"), cluster, workload(*jobs))
    assert report, str(report)
    begun = {(time, id_) for time, _, id_ in events(found, "start")}
    for line in map(json.loads, found.events.text().splitlines()):
        note = line.get("context", {}).get("note", "")
        if at_once and "preempted by " in note:
            assert (line["timestamp"], note.partition("preempted by ")[2]) in begun
    middle = jobs[len(jobs) // 2].submit + rng.choice([0, 0.5, 3])
    run(cluster, *jobs, checkpoints={middle: state}, **options)
    if state.exists():
        resumed = run(cluster, *jobs, resume=state, **options)
        assert resumed.log.text() == found.log.text()
        assert resumed.events.text() == found.events.text()
