"""Every leaf of a valid document of each kind, replaced by nasty values: an answer or one error, at once."""

from __future__ import annotations

import copy
import json
import time

import pytest

from simsched.cli import DEBUG, main

#: Values of other types, beyond every range, too long, and texts that are no names.
NASTY = [
    None, True, -1, 0, 2.0, 1e18, 1e308, 10**19, 10**250, 10**400, 2**63, 10**9, 10**7, "", "x\n", "a\x00b",
    "1e308", "9" * 5000, "n[0-999999999]", "\ud800", "inf", [], ["x"], {"x": 1}, "8 GB\n", 8.0,
]  # fmt: skip
SHARE = 8
"""Of the values each leaf gets every eighth in the quick run, others than its neighbour."""
SECONDS = 100
"""No document may take longer; a busy machine is given its time."""

RECIPE = {
    "name": "m",
    "levels": [{"type": "rack", "count": 2}],
    "groups": [
        {
            "name": "n", "count": 2, "cores": 8, "gpus": 2, "sockets": 2, "memory": "8 GB",
            "storage": [{"type": "nvme", "size": "1 TB", "count": 1, "path": "/x", "properties": ["fast"]}],
            "pools": [{"type": "fpga", "name": "f", "size": 2, "in": "socket"}],
            "properties": ["a"], "status": "up", "down": "n0", "drained": "n1",
        },
        {"name": "g", "hosts": "g[0-1]", "cores": 4, "locality": [{"type": "socket", "count": 2}]},
    ],
    "network": {"type": "fat-tree", "nodes_per_leaf": 2, "leaves_per_pod": 2, "spines": 2},
    "power": {"budget": "100 kW", "per": {"rack": "10 kW"}, "node": "500 W"},
}  # fmt: skip
R = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-1", "children": {"core": "0-3", "gpu": "0"}}],
        "nodelist": ["n[0-1]"], "starttime": 0, "expiration": 0, "properties": {"x": "0"},
    },
    "scheduling": {
        "writer": "TreePool",
        "children": [{"ranks": "0-1", "topo": {"socket": [{"cores": "0-1", "memory": 4}, {"cores": "2-3"}]}}],
    },
}  # fmt: skip
CONFIG = {
    "queue-policy": "easy", "match-policy": "first", "order": "fifo", "seed": 3, "overrun": "timeout",
    "passes": "instant", "think-times": "ignore", "on-failure": "requeue", "failures": "mtbf=30d,mttr=4h",
    "epilog": "1s..2s", "policy-options": {"extra": False},
    "outages": [{"ranks": "0", "start": "10", "end": "11d", "kind": "maintenance", "note": "x"}],
    "policy": {"jobspec": {"defaults": {"system": {"queue": "batch"}}}},
    "queues": {
        "batch": {
            "requires": [], "priority": 0, "closed": [["1d", "2d"]],
            "policy": {"limits": {"duration": "8h", "job-size": {"max": {"nnodes": 4}}}},
        },
        "other": {"hosts": "all", "parent": "batch", "priority": 1},
    },
}  # fmt: skip
JOBS = [
    {
        "id": 1, "submit": 0, "shape": "slot=2/core", "duration": 9, "runtime": 4, "name": "a", "user": "u",
        "urgency": 3, "priority": 4, "hold": False, "cancel_at": 50, "deadline": 50, "preceding": 1,
        "think_time": 2, "constraint": {"properties": ["x"]}, "nodes": 1, "procs": 2, "wait": 1, "count": 2,
        "every": 3, "status": "COMPLETED",
    },
    {"id": 2, "shape": "slot/core", "runtime": 3, "depends": [{"scheme": "afterok", "value": "1.1"}]},
]  # fmt: skip
STUDY = {
    "name": "s",
    "cluster": {"label": "c", "recipe": {"groups": [{"name": "n", "count": 2, "cores": 4}]}, "edits": []},
    "workload": {
        "label": "w", "map": "slot={procs}/core", "transforms": ["first(3)"],
        "lublin": {
            "machine": 8, "jobs": 5, "load": 0.5, "capacity": 8, "type": "batch", "run-time-factor": 1.5,
            "estimates": "1h", "users": 3,
        },
    },
    "config": {"order": "fifo"},
    "axes": {"load": [0.5], "nodes": {"edit": "resize(all, {})", "values": [2]}},
    "zip": [["load", "nodes"]], "include": [{"load": "<= 0.9"}], "seeds": [1], "keep": "jobs",
    "measure": {"warm-up": "1m", "drain": 1, "by-queue": True},
}  # fmt: skip
MIX = {
    "gap": "exp(10s)", "jobs": 5, "span": "1d", "users": 2, "name": "m",
    "parts": [{"weight": 1, "shape": "slot/core", "runtime": "lognormal(10, 2)", "duration": "x2"}],
}  # fmt: skip
PICTURE = {
    "kind": "simsched queue",
    "time": 3600,
    "running": [{"id": 7, "start": 600, "expected_end": 7800, "R": {
        "version": 1, "execution": {
            "R_lite": [{"rank": "0", "children": {"core": "0-1"}}], "nodelist": ["node0"],
            "starttime": 0, "expiration": 9000}}}],
    "waiting": [{"id": 8, "submit": 900, "duration": "1h", "shape": "slot=4/core", "urgency": 3,
                 "priority": 5, "hold": False, "depends": ["afterany:7"], "place": 1}],
}  # fmt: skip

#: Name → (a valid document, the command that reads it from FILE).
KINDS = {
    "recipe": (RECIPE, "cluster show FILE"),
    "R": (R, "match FILE slot/core"),
    "configuration": (CONFIG, "run tiny JOBS --config FILE -o OUT --quiet"),
    "jobs": (JOBS, "run tiny FILE -o OUT --quiet"),
    "study": (STUDY, "sweep FILE -o OUT --dry-run"),
    "mix": (MIX, "workload make mix FILE"),
    "picture": (PICTURE, "forecast tiny FILE"),
}


def leaves(value, path=()):
    """Yield the paths of all values of a document but the whole."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from leaves(inner, (*path, step))


def replaced(document, path, value):
    made = copy.deepcopy(document)
    at = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return made


def judged(document, words, tmp_path, capsys, what):
    """Run the command on a document; it ends well or with one message, and soon."""
    file = tmp_path / "document.json"
    file.write_text(json.dumps(document))
    began = time.monotonic()
    status = main([word.replace("FILE", str(file)).replace("OUT", str(tmp_path / "out")) for word in words])
    said = capsys.readouterr().err
    assert status in (0, 1, 2), what
    assert status != 2 or ("error: " in said and len(said) < 2500), what
    assert time.monotonic() - began < SECONDS, what
    return status


@pytest.fixture
def jobs_file(tmp_path, monkeypatch):
    """A small workload; exceptions that are not ours come out with their traceback."""
    monkeypatch.setenv(DEBUG, "1")
    path = tmp_path / "jobs.yaml"
    path.write_text("- {id: 1, shape: slot/core, runtime: 4, duration: 9, queue: batch}\n")
    return path


def tried(kind, share, jobs_file, tmp_path, capsys):
    document, command = KINDS[kind]
    words = command.replace("JOBS", str(jobs_file)).split()
    assert judged(document, words, tmp_path, capsys, "the document itself") == 0
    for number, path in enumerate(leaves(document)):
        for value in NASTY[number % share :: share]:
            judged(replaced(document, path, value), words, tmp_path, capsys, (path, repr(value)[:50]))


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_nasty_value_is_an_answer_or_an_error(kind, jobs_file, tmp_path, capsys):
    tried(kind, SHARE, jobs_file, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_more_nasty_values_are_an_answer_or_an_error(kind, jobs_file, tmp_path, capsys):
    tried(kind, 3, jobs_file, tmp_path, capsys)
