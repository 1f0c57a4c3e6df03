"""Compiled requests are remembered up to a bound; what is forgotten is compiled again, to equal answers."""

import pytest

import simsched as ss
from simsched.match.requests import compile as requests
from simsched.match.requests.compile import compile_request
from simsched.workload.job import Job, Workload

RACKS = [f"slot={slots}/core={cores}" for slots in range(1, 7) for cores in range(1, 6)]
"""Of `tiny` (four nodes of four cores) some never fit."""


@pytest.fixture
def bound(monkeypatch):
    """Let only four requests be remembered."""
    monkeypatch.setattr(requests, "MAX_REQUESTS", 4)


def answers():
    matcher = ss.Matcher(ss.load_cluster("tiny"))
    asked = [ss.Jobspec.from_shape(shape) for shape in RACKS * 2]
    return [str(matcher.satisfiable(jobspec).reasons) for jobspec in asked], matcher.index


def test_no_more_are_remembered_than_the_bound(bound):
    _, index = answers()
    assert 1 <= len(index.memo["requests"]) <= 4


def test_equal_requests_are_one_object_while_they_are_remembered(bound):
    index = ss.load_cluster("tiny").index
    first, again = (compile_request(ss.Jobspec.from_shape("core=2"), index) for _ in range(2))
    assert first is again
    for cores in range(3, 8):
        compile_request(ss.Jobspec.from_shape(f"core={cores}"), index)
    forgotten = compile_request(ss.Jobspec.from_shape("core=2"), index)
    assert forgotten is not first
    assert forgotten.demand == first.demand


def test_answers_do_not_depend_on_what_is_remembered(monkeypatch):
    expected, index = answers()
    assert len(index.memo["requests"]) >= len(RACKS)
    monkeypatch.setattr(requests, "MAX_REQUESTS", 4)
    assert answers()[0] == expected


@pytest.mark.parametrize("match_policy", ["first", "firstnodex"])
def test_runs_do_not_depend_on_what_is_remembered(monkeypatch, match_policy):
    """Jobs that never fit are among them: an object that is gone must not lend its identity to another."""
    jobs = [
        Job(id=n + 1, submit=n, runtime=60, duration=60, jobspec=ss.Jobspec.from_shape(shape, duration=60))
        for n, shape in enumerate(RACKS * 3)
    ]
    workload = Workload(tuple(jobs), name="many")

    def run():
        found = ss.simulate(ss.load_cluster("tiny"), workload, match_policy=match_policy).jobs
        return found[["id", "start", "end", "result", "reason"]].to_csv()

    expected = run()
    monkeypatch.setattr(requests, "MAX_REQUESTS", 4)
    assert run() == expected
