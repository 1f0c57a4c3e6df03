"""Wrong rules of a site: one message with its place, from a configuration file and from Python."""

from __future__ import annotations

import contextlib
import warnings

import pytest
import yaml

import simsched as ss
from simsched.errors import InputWarning, SimschedError
from simsched.simulation.options.run_config import from_document, make_config

FACTORS = {"factors": {"fair-share": 1, "age": 1}}
TREE = {"order": "multifactor"}
BAD = {
    "a weight that is no number": (
        {**TREE, "priority": {"factors": {"age": "many"}}},
        "priority.factors.age.weight: 'many' is not a finite number (expected a number)",
    ),
    "a weight without a value": (
        {**TREE, "priority": {"factors": {"age": None}}},
        "priority.factors.age.weight: None is not a finite number (expected a number)",
    ),
    "an account that is its own ancestor": (
        {
            **TREE,
            "priority": {
                **FACTORS,
                "accounts": [{"account": "a", "parent": "b"}, {"account": "b", "parent": "a"}],
            },
        },
        "priority.accounts[0]: account 'a' is its own ancestor: a → b → a (expected accounts up to the root)",
    ),
    "a user in no account": (
        {**TREE, "priority": {**FACTORS, "accounts": [{"account": "chem", "user": "zed"}]}},
        (
            "priority.accounts: the user 'alice' of job 0 is not in the account 'chem' "
            "(expected a row for the user, or fair-share.unknown-users = add)"
        ),
    ),
    "a row of a user without an account": (
        {**TREE, "priority": {**FACTORS, "accounts": [{"user": "alice"}]}},
        "priority.accounts[0]: the key 'account' is missing (expected the name of an account)",
    ),
    "a negative half-life": (
        {**TREE, "priority": {**FACTORS, "fair-share": {"half-life": "-7d"}}},
        "priority.fair-share.half-life: a half-life of -7d (expected a duration above 0, or inf)",
    ),
    "a negative half-life in an order": (
        {"order": "fairshare:-7d"},
        "order fairshare:-7d: '-7d' is not a duration (expected a duration such as 90, 30m, 1.5h, 2d or inf)",
    ),
    "a half-life of nothing": (
        {"order": "fairshare:0"},
        "order fairshare: a half-life of 0 s (expected a positive number of seconds)",
    ),
    "limits that let no job run": (
        {"limits": [{"each": "user", "cores": 4}, {"running-jobs": 0}]},
        ("limits[1].running-jobs: running-jobs = 0 allows no job (expected 1 or more, or -1 for no limit)"),
    ),
    "limits that let no job be submitted": (
        {"limits": {"submitted-jobs": 0, "over": "hold"}},
        ("limits.submitted-jobs: submitted-jobs = 0 allows no job (expected 1 or more, or -1 for no limit)"),
    ),
    "more running jobs than submitted ones": (
        {"limits": [{"submitted-jobs": 2, "running-jobs": 5}]},
        (
            "limits.running-jobs: running-jobs is 5, but only 2 jobs may be submitted "
            "(expected at most submitted-jobs)"
        ),
    ),
    "a user who is named and counted apart": (
        {"limits": [{"user": "alice", "each": "user", "running-jobs": 1}]},
        (
            "limits.each: the rule is about one user and counts each user apart "
            "(expected user or each, not both)"
        ),
    ),
    "an order without its factors": (
        TREE,
        (
            "order: the order multifactor has no factors "
            "(expected priority = {factors: {age: 1000, …}} in the configuration, or a preset)"
        ),
    ),
    "an option of another policy": (
        {"queue-policy": "fcfs", "policy-options": {"backfill-order": "sjf"}},
        "queue policy 'fcfs' has no option 'backfill-order' (expected none but queue-depth)",
    ),
}
NOTED = {
    "a user who does not occur": (
        {"limits": [{"user": "alcie", "running-jobs": 3}]},
        "limits.user: no job has the user 'alcie'; did you mean alice",
    ),
    "several names": (
        {
            "limits": [
                {"each": "user", "running-jobs": 5},
                {"account": ["chem", "bio"], "cores": 10},
                {"queue": "debug", "qos": "high", "running-jobs": 2},
                {"qos": ["low", "none"], "running-jobs": 2},
            ]
        },
        (
            "limits[2].queue: no job has the queue 'debug'; nor the qos 'high' (limits[2].qos); "
            "nor the qos 'low' (limits[3].qos); nor 1 more name"
        ),
    ),
    "one name of two": (
        {
            "limits": [{"queue": "btch", "running-jobs": 2}, {"queue": "debug", "running-jobs": 2}],
            "queues": {"batch": {}, "debug": {}},
        },
        "limits[0].queue: no job has the queue 'btch'; did you mean batch",
    ),
    "a queue that does not exist": (
        {"queues": {"batch": {}}, "limits": [{"queue": "btach", "running-jobs": 2}]},
        "limits.queue: no job has the queue 'btach'; did you mean batch",
    ),
    "a priority that is not used": (
        {"order": "sjf", "priority": {"factors": {"age": 1}}},
        "priority is not used by the order sjf (expected order = multifactor)",
    ),
    "think times of a log without them": (
        {"think_times": "honour"},
        "think times: no job has a preceding job (expected fields 17 and 18 of SWF, or -t 'sessions(20m)')",
    ),
}
KNOWN = {
    "users, accounts and queues of jobs": {
        "limits": [{"user": "alice", "running-jobs": 3}, {"account": "chem", "running-jobs": 3}]
    },
    "an account without jobs beside one with jobs": {
        "limits": [{"account": ["chem", "bio"], "running-jobs": 3}, {"account": "chen", "cores": 10}]
    },
    "a user of the accounts, and a queue without jobs": {
        **TREE,
        "queues": {"batch": {}, "debug": {}},
        "priority": {
            **FACTORS,
            "accounts": [{"account": "chem", "user": "alice"}, {"account": "chem", "user": "bob"}],
        },
        "limits": [{"user": "bob", "running-jobs": 3}, {"queue": "debug", "running-jobs": 3}],
    },
    "no job for each user but one": {
        "limits": [{"each": "user", "running-jobs": 0}, {"user": "alice", "running-jobs": 2}]
    },
}
ARGUMENTS = {"queue-policy": "queue_policy", "policy-options": "queue_options"}


def by_python(document):
    """Run three jobs; return the lines of the warnings."""
    spec = ss.Jobspec.from_shape("slot=4/core", duration=20)
    queue = {"queue": "batch"} if "queues" in document else {}
    jobs = [
        ss.Job(id=n, submit=n, runtime=9, duration=20, jobspec=spec, user="alice", bank="chem", **queue)
        for n in range(3)
    ]
    options = {ARGUMENTS.get(key, key): value for key, value in document.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ss.simulate("tiny", ss.Workload(tuple(jobs)), **options)
    assert all(isinstance(one.message, InputWarning) for one in caught)
    return [line for one in caught for line in one.message.lines]


def by_file(run, document, folder):
    """Run the same three jobs from the command line; return the status and the lines of standard error."""
    queue = ", queue: batch" if "queues" in document else ""
    line = "- {id: %d, submit: %d, runtime: 9, duration: 20, shape: slot=4/core, user: alice, bank: chem%s}\n"
    (folder / "jobs.yaml").write_text("jobs:\n" + "".join(line % (n, n, queue) for n in range(3)))
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True))
    line = ["run", "tiny", folder / "jobs.yaml", "-o", folder / "out", "--quiet", "--config", path]
    status, _, err = run(*line)
    return status, [part.replace(f"{path}: ", "") for part in err.splitlines()]


@pytest.mark.parametrize("name", BAD)
def test_wrong_rules_are_one_message(name, run, tmp_path):
    document, message = BAD[name]
    assert by_file(run, document, tmp_path) == (2, [f"simsched: error: {message}"])
    assert not (tmp_path / "out").exists()
    with pytest.raises(SimschedError) as caught:
        by_python(document)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", NOTED)
def test_rules_that_are_probably_wrong_are_noted(name, run, tmp_path):
    document, text = NOTED[name]
    assert by_file(run, document, tmp_path) == (0, [f"note: {text}"])
    assert by_python(document) == [text]


@pytest.mark.parametrize("name", KNOWN)
def test_rules_about_names_that_occur_are_not_noted(name, run, tmp_path):
    assert by_file(run, KNOWN[name], tmp_path) == (0, [])
    assert by_python(KNOWN[name]) == []


def test_a_wrong_order_on_the_command_line(run, tmp_path):
    for order, text in (("fairshare:0", "a half-life of 0 s"), ("multifactor", "has no factors")):
        status, _, err = run("run", "tiny", "first-steps", "-o", tmp_path / "out", "--order", order)
        assert status == 2
        assert text in err
        assert err.count("\n") == 1


EVERYTHING = {
    "queues": {"a": {"hosts": "all", "priority": 1, "preempts": True,
                     "policy": {"limits": {"duration": "30h"}},
                     "closed": [["1h", "2h"]]}, "b": {"parent": "a", "priority": 0}},
    "policy": {"jobspec": {"defaults": {"system": {"queue": "b"}}},
               "limits": {"job-size": {"max": {"nnodes": 3}}}},
    "preemption": {"mode": "requeue", "grace": "2m", "queues": {"b": {"mode": "cancel"}}},
    "limits": [{"each": "user", "running-jobs": 20, "core-hours": 5}],
    "reservations": [{"name": "r", "start": "1h", "duration": "2h", "nodes": 1, "users": ["a"],
                      "repeat": "daily", "times": 2}],
    "licenses": {"x": 3}, "outages": [{"ranks": "0-1", "start": "1h", "end": "2h", "kind": "maintenance"}],
    "job-checkpoints": {"interval": "1h", "cost": "1m"}, "epilog": "30s", "failures": "mtbf=30d,mttr=4h",
    "priority": {"factors": {"age": {"weight": 1000, "max": "7d"}, "size": 10},
                 "fair-share": {"half-life": "7d"},
                 "accounts": [{"account": "c", "shares": 1}, {"account": "c", "user": "u", "shares": 2}]},
}  # fmt: skip
ODD = (["requeue"], [["a"]], [{}], {"a": 1}, {"a": ["b"]}, {1: 2}, [], {}, None, True, -1, 1.5, 10**400,
       float("nan"), float("inf"), "", "x", "0-999999999")  # fmt: skip


def places(value, path=()):
    """Yield the path of each value in a document."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def put(value, path, odd):
    if not path:
        return odd
    found = value.copy()
    found[path[0]] = put(value[path[0]], path[1:], odd)
    return found


@pytest.mark.parametrize("table", EVERYTHING)
def test_any_value_in_any_place_of_a_configuration_is_taken_or_refused(table):
    """No value of another type is an internal error: a list, a table or a huge number in place of a word."""
    shared = {
        key: EVERYTHING[key] for key in ("queues", "policy") if table in ("queues", "policy", "preemption")
    }
    document = {**shared, table: EVERYTHING[table]}
    make_config(**from_document(document))
    for path in places(EVERYTHING[table], (table,)):
        for odd in ODD:
            with contextlib.suppress(SimschedError):
                make_config(**from_document(put(document, path, odd))).refuse_contradictions()


def test_all_faults_of_a_configuration_are_printed_with_their_places(run, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'seed = -1\nordr = "fifo"\n[[limits]]\ncores = -2\n[[limits]]\nover = "kill"\nnodes = 1\n'
    )
    status, _, err = run("run", "tiny", "first-steps", "-o", tmp_path / "out", "--config", rules)
    lines = err.replace(str(rules), "rules.toml").splitlines()
    assert status == 2
    assert lines[0].startswith("simsched: error: rules.toml: unknown key 'ordr'; did you mean order?")
    assert lines[1:] == [
        "  rules.toml: seed: -1 is out of range (expected a whole number of 0 or more)",
        "  rules.toml: limits[0].cores: the limit is -2 (expected 0 or more, or -1 for no limit)",
        "  rules.toml: limits[1].over: unknown value 'kill' (expected reject or hold)",
    ]
