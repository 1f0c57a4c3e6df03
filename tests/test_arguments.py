"""The Python interface with arguments of the wrong type: one error of ours that names the argument."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import simsched as ss
from simsched.arguments import check_path, check_real, check_whole, texts
from simsched.graph import edit
from simsched.study.stats import interval, paired_difference

STRANGE = (object(), 1.5, math.nan, b"x", [object()], {"a": object()}, {1}, 10**30, -(10**30), "x\0")
TINY = {"cluster": "tiny", "workload": "first-steps"}


@cache
def tiny():
    return ss.load_cluster("tiny")


@cache
def ran():
    return ss.simulate(tiny(), ss.load_workload("first-steps"))


def jobspec():
    return ss.Jobspec.from_shape("slot=1/core", duration=60)


def matcher():
    found = ss.Matcher(tiny())
    found.match(jobspec())
    return found


def rset():
    return matcher().allocation(1)


def simulated(**given):
    return ss.simulate(**{"cluster": tiny(), "workload": "first-steps", **given})


@cache
def month():
    return ss.load_workload("month", limit=5)


def sized(**given):
    few = {"seeds": 1, "workers": 0, "least": 239, "most": 240}
    return ss.size("flat240", month(), "max_wait<=30m", **{**few, **given})


CALLS = {
    "map path_or_bundled procs_per_node as_ limit constrain names": lambda **given: ss.load_workload(
        **{"path_or_bundled": "first-steps", **given}
    ),
    "path_or_name": ss.load_cluster,
    "cluster workload queue_policy match_policy seed order": simulated,
    "inputs checkpoints progress stop until env": simulated,
    "jobspec policy": lambda **given: ss.feasible(tiny(), **{"jobspec": jobspec(), **given}),
    "directory": ss.load_run,
    "path": ss.load_study,
    "content home": lambda **given: ss.study_from_dict(**{"content": TINY, **given}),
    "study retries progress": lambda **given: ss.sweep(
        **{"study": ss.study_from_dict(TINY), "directory": "nowhere", "report": False, **given}
    ),
    "seeds seed checks block by meet confidence warm_up transforms options reading progress runs workers "
    "scheduler hpc executor grow": sized,
    "values confidence": lambda **given: interval(**{"values": [1, 2, 3, 4, 9], **given}),
    "a b": lambda **given: paired_difference(**{"a": [1, 2], "b": [1, 3], **given}),
    "policy rules seed": lambda **given: ss.Matcher(tiny(), **given),
    "starttime": lambda **given: matcher().match(jobspec(), **given),
    "now ends": lambda **given: matcher().match_or_reserve(jobspec(), **{"now": 0, **given}),
    "id_": lambda **given: matcher().release(**given),
    "part": lambda **given: matcher().release(1, **given),
    "status ranks hosts": lambda **given: matcher().set_status(**{"status": "down", **given}),
    "text duration command constraint queue name dependencies": lambda **given: ss.Jobspec.from_shape(
        **{"text": "slot=1/core", **given}
    ),
    "entries hosts": lambda **given: ss.ResourceSet.of(**{"entries": [("0", {})], "hosts": "a", **given}),
    "other": lambda **given: rset().union(**given),
    "rank": lambda **given: rset().host_of(**given),
    "kind": lambda **given: rset().count(**given),
    "first": lambda **given: rset().remap(**given),
    "warm_up drain": lambda **given: ran().steady(**given),
    "jobs timeline meta": lambda **given: ss.Run.from_columns(
        **{"jobs": ran().jobs, "timeline": ran().timeline, "meta": ran().meta, **given}
    ),
    "where count": lambda **given: edit.scale_group(tiny(), **{"where": "node[0-1]", "count": 3, **given}),
    "kind count": lambda **given: edit.set_units(tiny(), "node0", **{"kind": "core", "count": 3, **given}),
    "cluster": lambda **given: edit.restrict(**{"where": "node0", **given}),
    "jobs": lambda **given: ss.load_workload("first-steps").with_jobs(**{"note": "other jobs", **given}),
}


@pytest.mark.parametrize(
    ("call", "name"), [(call, name) for names, call in CALLS.items() for name in names.split()]
)
def test_what_is_strange_is_an_error_of_ours(call, name, tmp_path, monkeypatch):
    """Some of it may be taken, such as 1.5 for a time; nothing ends in an error of Python's."""
    monkeypatch.chdir(tmp_path)
    refused = 0
    for value in STRANGE:
        try:
            call(**{name: value})
        except ss.SimschedError:
            refused += 1
    assert refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ss.load_workload("first-steps", map=5), "map is 5 (expected several texts)"),
        (
            lambda: ss.load_workload("first-steps", procs_per_node="x"),
            "procs_per_node is 'x' (expected a whole number of 1 or more)",
        ),
        (
            lambda: ss.load_workload("first-steps", limit=-1),
            "limit is -1 (expected a whole number of 0 or more)",
        ),
        (
            lambda: edit.scale_group(tiny(), "node[0-1]", 1.5),
            "count is 1.5 (expected a whole number)",
        ),
        (lambda: ss.Matcher(tiny(), seed=None), "seed is None (expected a whole number of 0 or more)"),
        (
            lambda: matcher().match_or_reserve(jobspec(), now=math.nan),
            "now is nan (expected a number)",
        ),
        (lambda: matcher().release([1]), "id_ is [1] (expected the id of an allocation)"),
        (lambda: ss.sweep("a.yaml", "out"), "study is 'a.yaml' (expected a study, as load_study returns it)"),
        (
            lambda: sized(checks=10**30),
            "checks: a huge number is out of range (expected a whole number from 0 to 1,000)",
        ),
        (
            lambda: ss.load_study(None),
            "path is None (expected the path of a file)",
        ),
    ],
)  # fmt: skip
def test_the_argument_is_named(call, message):
    with pytest.raises(ss.ConfigError) as caught:
        call()
    assert str(caught.value) == message


def test_numbers_of_numpy_are_numbers():
    check_whole("count", np.int32(3), 1, 3)
    check_real("time", np.float32(1.5), 0)
    assert len(edit.scale_group(tiny(), "node[0-1]", np.int64(3)).graph) > len(tiny().graph)
    with pytest.raises(ss.ConfigError, match="count is True"):
        check_whole("count", True)


def test_paths_and_texts():
    check_path("path", "a/b.json")
    for bad in ("", "a\0b", "x" * 256, 5, b"a"):
        with pytest.raises(ss.ConfigError, match=r"^path is "):
            check_path("path", bad)
    assert texts("words", iter(["a", "b"])) == ("a", "b")
    with pytest.raises(ss.ConfigError, match=r"^words is 'ab' \(expected several texts\)$"):
        texts("words", "ab")


def test_nothing_is_written_where_nothing_can_be(tmp_path):
    with pytest.raises(ss.ClusterError, match="this is a directory"):
        tiny().save(tmp_path)
    with pytest.raises(ss.RunError, match="this cannot be a run directory"):
        ran().save(".")
    assert not list(tmp_path.iterdir())
