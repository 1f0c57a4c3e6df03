"""Answers for a cluster with queues: each code, defaults, and agreement with the jobs that a run rejects."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import ConfigError, SimschedError
from simsched.simulation.feasibility import queue_rules
from simsched.simulation.options.run_config import from_document
from simsched.simulation.queues import Queues
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job
from tests.simulation.simworld import machine, workload

CLUSTER = machine(4, cores=4, gpus=1, properties={"batch": "0-2", "debug": "2-3"})


def ask(shape, config, *, duration=None, constraint=None, **more):
    spec = ss.Jobspec.from_shape(shape, duration=duration, constraint=constraint)
    return ss.feasible(CLUSTER, spec, config=config, **more)


def codes(answer):
    return [reason.code for reason in answer.reasons.coded]


def queue(**limits):
    """A queue `q`, which is the default, with these limits."""
    policy = {"jobspec": {"defaults": {"system": {"queue": "q"}}}}
    return {"policy": policy, "queues": {"q": {"policy": {"limits": limits}}}}


# --- single reasons -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "config", "expected"),
    [
        ("slot=3/node", queue(**{"job-size": {"max": {"nnodes": 2}}}), "limit-nodes-max"),
        ("slot=2/node", queue(**{"job-size": {"min": {"nnodes": 3}}}), "limit-nodes-min"),
        ("slot=5/core", queue(**{"job-size": {"max": {"ncores": 4}}}), "limit-cores-max"),
        ("slot=2/core", queue(**{"job-size": {"min": {"ncores": 4}}}), "limit-cores-min"),
        ("slot=2/gpu", queue(**{"job-size": {"max": {"ngpus": 1}}}), "limit-gpus-max"),
        ("slot=2/core", queue(**{"job-size": {"min": {"ngpus": 1}}}), "limit-gpus-min"),
        ("slot=2/core", {"queues": {"q": {"enabled": False}}}, "queue-disabled"),
    ],
)
def test_a_refusal_has_one_code_and_the_graph_has_no_objection(shape, config, expected):
    answer = ask(shape, config, queue="q")
    assert not answer
    assert codes(answer) == [expected]


def test_the_reason_has_both_numbers():
    (reason,) = ask("slot=3/node", queue(**{"job-size": {"max": {"nnodes": 2}}})).reasons.coded
    assert (reason.queue, reason.limit, reason.requested) == ("q", 2, 3)
    assert reason.text == "queue q allows 2 nodes, the job asks for 3"


def test_a_duration_above_the_limit():
    assert codes(ask("slot=1/core", queue(duration="30m"), duration="1h")) == ["limit-duration"]
    assert ask("slot=1/core", queue(duration="30m"), duration="30m")


def test_a_request_without_a_duration_gets_the_limit_or_is_refused():
    answer = ask("slot=1/core", queue(duration="30m"))
    assert answer.placement.duration == 1800
    assert [note.code for note in answer.placement.notes] == ["default-queue", "default-duration"]
    strict = {**queue(duration="30m"), "no-limit": "reject"}
    (reason,) = ask("slot=1/core", strict).reasons.coded
    text = "queue q allows 30m, the job asks for no limit"
    assert reason.to_dict() == {"code": "limit-duration", "text": text, "queue": "q", "limit": 1800}


def test_the_duration_for_requests_that_state_none():
    spec = ss.Jobspec.from_shape("slot=1/core")
    assert ss.feasible(CLUSTER, spec, config=queue(duration="30m"), duration=60).placement.duration == 60
    assert not ss.feasible(CLUSTER, spec, config=queue(duration="30m"), duration=3600)


def test_an_unknown_queue_names_the_nearest():
    answer = ask("slot=1/core", {"queues": {"batch": {}}}, queue="bach")
    assert codes(answer) == ["queue-unknown"]
    assert "did you mean batch?" in str(answer.reasons)


def test_all_reasons_are_given_at_once():
    config = queue(duration="30m", **{"job-size": {"max": {"nnodes": 2, "ngpus": 1}}})
    answer = ask("slot=9/node/gpu", config, duration="1h")
    assert codes(answer) == ["limit-duration", "limit-nodes-max", "limit-gpus-max", "graph-count"]


def test_a_queue_whose_nodes_do_not_suffice():
    """Two nodes are in the debug queue; no change of the request drops a queue's constraint."""
    config = {"queues": {"debug": {"requires": ["debug"]}, "batch": {"requires": ["batch"]}}}
    answer = ask("slot=3/node", config, queue="debug")
    assert codes(answer) == ["queue-constraint", "graph-constraint"]
    assert [change.kind for change in answer.reasons.changes] == ["count"]
    assert answer.placement.takers == ("batch",)
    assert answer.placement.queues["debug"] == ("queue-constraint", "graph-constraint")


def test_what_the_cluster_cannot_hold_is_not_the_queue_s_fault():
    config = {"queues": {"debug": {"requires": ["debug"]}}}
    assert codes(ask("slot=5/node", config, queue="debug")) == ["graph-count"]


def test_a_stopped_queue_is_a_note():
    answer = ask("slot=1/core", {"queues": {"q": {"started": False}}}, queue="q")
    assert answer
    assert [note.code for note in answer.placement.notes] == ["queue-stopped"]
    assert answer.placement.takers == ()


def test_no_queue_and_no_default():
    answer = ask("slot=1/core", {"queues": {"q": {}}})
    assert answer
    assert answer.placement.queue is None
    assert [note.code for note in answer.placement.notes] == ["queue-none"]


def test_the_jobspec_s_own_queue():
    spec = ss.Jobspec.from_shape("slot=3/node").with_system(queue="debug")
    config = {"queues": {"debug": {"requires": ["debug"]}, "batch": {}}}
    assert not ss.feasible(CLUSTER, spec, config=config)
    assert ss.feasible(CLUSTER, spec, config=config, queue="batch")


def test_a_configuration_without_queues_asks_the_graph_alone():
    spec = ss.Jobspec.from_shape("slot=1/core").with_system(queue="any")
    for config in ({}, {"queue-policy": "easy"}, {"policy": {"limits": {"duration": "1h"}}}):
        assert ss.feasible(CLUSTER, spec, config=config)


def test_minus_one_and_zero_lift_a_general_limit():
    """flux-config-policy(5): a queue defeats a general limit with -1, a duration with "0"."""
    limits = {"duration": "1h", "job-size": {"max": {"nnodes": 1}, "min": {"ncores": 4}}}
    free = {"duration": "0", "job-size": {"max": {"nnodes": -1}, "min": {"ncores": -1}}}
    config = {"policy": {"limits": limits}, "queues": {"a": {}, "b": {"policy": {"limits": free}}}}
    refused = ask("node=2/slot/core", config, duration="2h", queue="a")
    assert codes(refused) == ["limit-duration", "limit-nodes-max", "limit-cores-min"]
    assert ask("slot=2/node/core", config, duration="2h", queue="b")


def test_graph_reasons_have_codes_without_a_configuration():
    def of(shape, constraint=None):
        return codes(ss.feasible(CLUSTER, ss.Jobspec.from_shape(shape, constraint=constraint)))

    assert of("slot=5/node") == ["graph-count"]
    assert of("slot=1/rack") == ["graph-type"]
    assert of("slot=3/node", "debug") == ["graph-constraint"]
    assert of("slot=1/node", "fast") == ["graph-property", "graph-constraint"]
    assert of("slot=1/core=5") == ["graph-count"]
    assert of("[node=3{x};core=5]") == ["graph-together"]
    assert of("slot=3/[core=2;gpu]", "host:n0") == ["graph-constraint"]


def test_parts_that_are_on_different_nodes():
    tiny = ss.load_cluster("tiny")
    answer = ss.feasible(tiny, ss.Jobspec.from_shape("slot=3/[core=3;gpu]"))
    assert codes(answer) == ["graph-apart"]


def test_busy_and_down():
    matcher = ss.Matcher(CLUSTER)
    matcher.match(ss.Jobspec.from_shape("slot=3/node"))
    assert codes(matcher.feasible_now(ss.Jobspec.from_shape("slot=2/node"))) == ["graph-busy"]
    matcher.set_status("down", ranks="3")
    assert codes(matcher.feasible_now(ss.Jobspec.from_shape("slot=4/node"))) == ["graph-down"]


def test_now_in_a_queue():
    config = {"queues": {"debug": {"requires": ["debug"]}}}
    matcher = ss.Matcher(CLUSTER)
    matcher.match(ss.Jobspec.from_shape("slot=1/node", constraint="debug"))
    from simsched.simulation.feasibility import QueueFeasibility

    answer = QueueFeasibility(matcher, queue_rules(config)).answer(
        ss.Jobspec.from_shape("slot=2/node"), queue="debug", now=True
    )
    assert isinstance(answer, ss.Busy)
    assert codes(answer) == ["graph-busy"]


# --- configurations -------------------------------------------------------------------------------


def test_tables_of_flux_that_are_not_about_queues_are_ignored(tmp_path):
    path = tmp_path / "system.toml"
    path.write_text(
        '[bootstrap]\nport = 8050\n[resource]\nexclude = "n0"\n[sched-fluxion-qmanager]\n'
        'queue-policy = "easy"\n[policy.scheduler]\nx = 1\n[queues.debug]\nrequires = ["debug"]\n'
    )
    assert list(queue_rules(path).queues.queues) == ["debug"]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"queus": {}}, "unknown key 'queus'"),
        ({"queues": {"a": {"parent": "b"}}}, "parent 'b' is not another queue"),
        ({"queues": {"a": {"enabled": "no"}}}, "not true or false"),
        ({"queues": {"a": {"started": 1}}}, "not true or false"),
        ({"queues": ["a"]}, "no queues"),
        ({"queues": {"a": {}}, "policy": {"jobspec": {"defaults": {"system": {"queue": "z"}}}}}, "'z'"),
    ],
)
def test_a_wrong_configuration_is_an_error(document, fault):
    with pytest.raises(ConfigError, match=fault):
        queue_rules(document)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"config": 3}, "config is 3"),
        ({"config": ""}, "config is ''"),
        ({"config": {}, "queue": 3}, "queue is 3"),
        ({"config": {}, "duration": "soon"}, "duration is 'soon'"),
        ({"queue": "a"}, "needs a configuration"),
    ],
)
def test_wrong_arguments(options, fault):
    with pytest.raises(ConfigError, match=fault):
        ask_with(options)


def ask_with(options):
    return ss.feasible(CLUSTER, ss.Jobspec.from_shape("slot=1/core"), **options)


def test_a_stopped_parent_can_be_started_again():
    queues = Queues.from_dict(
        {"a": {"started": False}, "b": {"parent": "a"}, "c": {"parent": "a", "started": True}}
    ).queues
    assert [queues[name].started for name in "abc"] == [False, False, True]


def test_jobs_of_disabled_and_stopped_queues_in_a_run():
    queues = Queues.from_dict({"off": {"enabled": False}, "held": {"started": False}, "on": {}})
    jobs = [
        Job(id=name, submit=0, jobspec=ss.Jobspec.from_shape("slot=1/core"), duration=5, queue=name)
        for name in ("off", "held", "on")
    ]
    found = simulate(CLUSTER, workload(*jobs), queues=queues)
    assert dict(zip(found.jobs["id"], found.jobs["result"], strict=True)) == {
        "off": "FAILED",
        "held": "PENDING",
        "on": "COMPLETED",
    }
    assert "rejected: queue off accepts no jobs" in found.jobs["reason"]


# --- agreement with runs --------------------------------------------------------------------------

SIZES = st.dictionaries(st.sampled_from(["nnodes", "ncores", "ngpus"]), st.integers(-1, 5), max_size=2)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "duration": st.sampled_from(["0", "10s", "1m", "inf"]),
        "job-size": st.fixed_dictionaries({}, optional={"max": SIZES, "min": SIZES}),
    },
)
POLICY = st.fixed_dictionaries(
    {},
    optional={
        "limits": LIMITS,
        "jobspec": st.sampled_from([{"defaults": {"system": {"duration": d}}} for d in ("5s", "2m", "0")]),
    },
)
QUEUE = st.fixed_dictionaries(
    {},
    optional={
        "requires": st.sampled_from([["batch"], ["debug"], ["batch", "debug"], ["none"], ["^debug"]]),
        "hosts": st.sampled_from(["n0", "n[0-2]", "n[3-9]", "x1", "all"]),
        "enabled": st.booleans(),
        "policy": POLICY,
    },
)
QUEUES = st.dictionaries(st.sampled_from("abc"), QUEUE, min_size=1, max_size=3)
SHAPES = (
    "slot=1/core", "slot=3/core", "slot=9/core=2", "slot=2/node", "slot=5/node", "slot=2/[core=2;gpu]",
    "node=2{x}", "slot=1/rack", "slot=1-4/node", "gpu=3", "slot=1/core=5", "core{unit: GB}",
)  # fmt: skip
JOB = st.tuples(
    st.sampled_from(SHAPES),
    st.sampled_from([None, "a", "b", "c", "z"]),
    st.sampled_from([None, 5, 60, 600, float("inf")]),
    st.sampled_from([None, "batch", "^batch", "host:n3", "nothing"]),
)


@given(
    queues=QUEUES,
    policy=POLICY,
    default=st.sampled_from([None, "a", "b"]),
    reject=st.booleans(),
    jobs=st.lists(JOB, min_size=1, max_size=6),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_run_rejects_exactly_the_jobs_that_are_not_feasible(queues, policy, default, reject, jobs):
    default = default if default in queues else None
    if default is not None:
        system = policy.get("jobspec", {}).get("defaults", {}).get("system", {})
        policy = {**policy, "jobspec": {"defaults": {"system": {**system, "queue": default}}}}
    config = {"queues": queues, "policy": policy, "no-limit": "reject" if reject else "queue"}
    rules = queue_rules(config)
    made = []
    for number, (shape, name, duration, constraint) in enumerate(jobs):
        asked = None if duration in (None, float("inf")) else duration
        spec = ss.Jobspec.from_shape(shape, duration=asked, constraint=constraint)
        made.append(Job(id=str(number), submit=0, jobspec=spec, runtime=1, duration=duration, queue=name))
    found = simulate(CLUSTER, workload(*made), queues=rules.queues, no_limit=rules.no_limit)
    rejected = {
        name: reason
        for name, result, reason in zip(*(found.jobs[k] for k in ("id", "result", "reason")), strict=True)
        if result in ("INFEASIBLE", "FAILED")
    }
    for job in made:
        try:
            answer = ss.feasible(CLUSTER, job.jobspec, config=rules, queue=job.queue)
        except SimschedError:  # the request has no meaning here: the graph refuses it
            assert job.id in rejected
            continue
        assert bool(answer) == (job.id not in rejected), (job, answer, rejected)
        text = rejected.get(job.id, "")
        if text.startswith("rejected: "):
            assert text.removeprefix("rejected: ").partition(";")[0] in str(answer.reasons)


@pytest.mark.parametrize(
    ("shape", "side", "number", "accepted"),
    [
        ("slot=9/core", "max", 1, True),  # it spans several nodes, and names none
        ("slot=2/node", "max", 1, False),
        ("node=2/slot=1/core", "max", 1, False),
        ("slot=9/core", "min", 2, False),
        ("slot=9/core", "min", 1, True),
    ],
)
def test_a_limit_on_nodes_counts_the_nodes_that_a_request_names(shape, side, number, accepted):
    config = {"queues": {"q": {"policy": {"limits": {"job-size": {side: {"nnodes": number}}}}}}}
    answer = ss.feasible("tiny", ss.Jobspec.from_shape(shape), config=config, queue="q")
    assert bool(answer) is accepted


def test_a_request_that_no_limit_ever_allows():
    config = {
        "queues": {"debug": {}, "batch": {}},
        "limits": [{"queue": "debug", "each": "user", "nodes": 2}, {"user": "root", "cores": 1}],
    }
    refused = ss.feasible("tiny", ss.Jobspec.from_shape("slot=3/node"), config=config, queue="debug")
    assert [reason.code for reason in refused.reasons.coded] == ["limit-scope"]
    assert "each user in queue debug may use at most 2 nodes" in refused.reasons.coded[0].text
    assert refused.placement.takers == ("batch",)
    assert ss.feasible("tiny", ss.Jobspec.from_shape("slot=2/node"), config=config, queue="debug")


@pytest.mark.parametrize(
    ("first", "asked", "code"), [(600, 900, "limit-scope"), (1800, 900, None), (600, 500, None)]
)
def test_a_limit_of_whose_place_only_a_stricter_one_may_take_counts(first, asked, code):
    """The QOS of a job is not known, and one of them has a limit that goes before that of the queue."""
    limits = [
        {"qos": "x", "each": "job", "level": 1, "duration": first},
        {"queue": "q", "each": "job", "level": 2, "duration": 600},
    ]
    spec = ss.Jobspec.from_shape("slot=1/core", duration=asked)
    answer = ss.feasible("tiny", spec, config={"queues": {"q": {}}, "limits": limits}, queue="q")
    assert [reason.code for reason in answer.reasons.coded] == ([code] if code else [])


BY_DEFAULT = "queue {} allows 30m, and the default duration is {}"


@pytest.mark.parametrize(
    ("general", "own", "asked", "answer"),
    [
        ({"default": "1h"}, {"limit": "30m"}, None, BY_DEFAULT.format("q", "1h")),
        ({"default": "1h"}, {"limit": "30m", "default": "20m"}, None, 1200),  # the queue's own default counts
        ({"default": "1h", "limit": "30m"}, {"limit": "2h"}, None, 3600),  # and its own limit
        ({"default": "10m", "limit": "30m"}, {"default": "0"}, None, BY_DEFAULT.format("q", "no limit")),
        ({"default": "1h"}, {"limit": "30m"}, 600, 600),
        ({}, {"limit": "30m"}, None, "queue q allows 30m, the job asks for no limit"),
        ({"default": "1h", "limit": "30m"}, None, None, BY_DEFAULT.format("default", "1h")),
    ],
)  # fmt: skip
def test_flux_applies_defaults_first_and_limits_then(tmp_path, general, own, asked, answer):
    """flux-core: the frobnicator's defaults, then limit-duration; the import and the file itself agree."""
    lines = ["[resource]\n[[resource.config]]\nhosts = 'n[1-4]'\ncores = '0-3'"]
    for head, table in (("", general), ("queues.q.", own)):
        if head and table is not None:
            lines.append("[queues.q]")
        for key, path in (("limit", "policy.limits"), ("default", "policy.jobspec.defaults.system")):
            if table and key in table:
                lines.append(f'[{head}{path}]\nduration = "{table[key]}"')
    (tmp_path / "flux.toml").write_text("\n".join(lines) + "\n")
    site = ss.import_site(tmp_path / "flux.toml")
    queue = None if own is None else "q"
    spec = ss.Jobspec.from_shape("slot=1/core", duration=asked)
    files = [site.config] if general == {} else [site.config, tmp_path / "flux.toml"]
    for config in files:
        found = ss.feasible(site.cluster, spec, config=config, queue=queue)
        if isinstance(answer, str):
            assert [reason.text for reason in found.reasons.coded] == [answer]
        else:
            assert (bool(found), found.placement.duration) == (True, answer)
    workload_ = workload(
        Job(id="1", submit=0, jobspec=spec, duration=asked, runtime=1, queue=queue or "default")
    )
    (reason,) = ss.simulate(site.cluster, workload_, **from_document(site.config)).jobs["reason"]
    assert (reason == f"rejected: {answer}") == isinstance(answer, str)


def test_slurm_gives_a_default_of_at_most_the_limit(tmp_path):
    path = tmp_path / "slurm.conf"
    path.write_text(
        "NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL Default=YES MaxTime=30 DefaultTime=60\n"
    )
    site = ss.import_site(path)
    answer = ss.feasible(site.cluster, ss.Jobspec.from_shape("slot=1/core"), config=site.config)
    assert (bool(answer), answer.placement.duration) == (True, 1800)
    assert any("DefaultTime=60 is above MaxTime" in note.text for note in site.notes)


PROPOSALS = {
    "queues": {
        "long": {"policy": {"limits": {"duration": "8h", "job-size": {"max": {"nnodes": 3}}}}},
        "debug": {"hosts": "node[0-1]", "policy": {"limits": {"duration": "30m"}}},
        "gpu": {
            "hosts": "node[2-3]",
            "policy": {"limits": {"duration": "1d", "job-size": {"min": {"nnodes": 2}}}},
        },
    },
    "limits": [{"queue": "long", "core-hours": 64}],
}


@pytest.mark.parametrize(
    ("shape", "queue", "duration", "changes"),
    [
        ("slot=1/core", "debug", 3600, ["a duration of 30m"]),
        ("slot=4/node", "long", 600, ["slot=3 instead of 4"]),
        ("slot=4/node", "long", 9 * 3600, ["slot=2 instead of 4 and a duration of 8h"]),
        ("slot=3/node", "long", 9 * 3600, ["a duration of 320m"]),  # 12 cores for 64 core-hours
        ("slot=1/core", "long", 9 * 3600, ["a duration of 8h", "in queue debug, with a duration of 30m"]),
        ("slot=2/gpu", "debug", 9 * 86400, ["in queue long, with a duration of 8h"]),
        ("slot=2/node", "long", 2 * 86400, ["a duration of 8h", "in queue debug, with a duration of 30m",
                                            "in queue gpu, with a duration of 1d"]),
        ("slot=1/node", "gpu", 600, ["slot=2 instead of 1", "node=2 instead of 1 (slot/node)"]),
    ],
)  # fmt: skip
def test_a_request_that_a_queue_refuses_gets_proposals_that_work(shape, queue, duration, changes):
    spec = ss.Jobspec.from_shape(shape, duration=duration)
    answer = ss.feasible("tiny", spec, config=PROPOSALS, queue=queue)
    assert not answer
    assert [str(change) for change in answer.reasons.changes] == changes
    for change in answer.reasons.changes:
        other = change.text.split()[2].strip(",") if change.kind == "queue" else queue
        seconds = change.value if change.kind in ("duration", "queue") else min(duration, 8 * 3600)
        again = change.text.split()[0] + "/node" if change.text.startswith("slot=") else shape
        again = "slot=1/node=2" if change.path == "slot/node" else again
        assert ss.feasible(
            "tiny", ss.Jobspec.from_shape(again, duration=seconds), config=PROPOSALS, queue=other
        )


@pytest.mark.parametrize(
    "table",
    [
        {"reservations": [{"name": "r", "start": "117h", "duration": "1d", "hosts": "node[0-2]"}]},
        {"reservations": [{"name": "r", "start": "117h", "duration": "1d", "nodes": 4}]},
        {"outages": [{"ranks": "0-3", "start": "117h", "end": "150h", "kind": "maintenance", "note": "r"}]},
        {
            "outages": [
                {"hosts": "node[0-2]", "start": "117h", "end": "150h", "kind": "maintenance", "note": "r"}
            ]
        },
    ],
)
def test_a_job_that_cannot_end_before_a_reservation_is_told_the_longest_duration(table):
    def notes(duration):
        answer = ss.feasible("tiny", ss.Jobspec.from_shape("slot=2/node", duration=duration), config=table)
        assert answer
        return [(note.code, note.limit) for note in answer.placement.notes]

    assert notes(7 * 86400) == [("reservation-ahead", 117 * 3600)]
    assert notes(117 * 3600) == []
    assert notes(None) == [("reservation-ahead", 117 * 3600)]
