"""Requests on which the exact search gives up do not end a run."""

from __future__ import annotations

from simsched.match.search.exact import SearchLimitError
from simsched.schedule import supply
from simsched.simulation.jobs import prepare
from tests.simulation.simworld import job, machine, results, run, starts


def giving_up(real, when):
    def select(request, available, *rest):
        if when(request, available):
            raise SearchLimitError("the search gave up after 50,000 steps")
        return real(request, available, *rest)

    return select


def test_a_request_undecided_on_the_idle_cluster_is_reported(monkeypatch):
    hard = giving_up(prepare.select, lambda request, _: request.slots == 2)
    monkeypatch.setattr(prepare, "select", hard)
    found = run(machine(4), job("A", 0, "slot=2/core", 1), job("B", 0, "slot=1/core", 1))
    assert results(found) == {"A": "INFEASIBLE", "B": "COMPLETED"}
    assert found.jobs["reason"][0].startswith("undecided: the search gave up")


def test_a_request_undecided_now_waits_for_a_release(monkeypatch):
    hard = giving_up(supply.select, lambda request, available: available.total["core"] < 4)
    monkeypatch.setattr(supply, "select", hard)
    gpu = {"constraint": "gpu"}  # no plain counts, and a range is for the search
    cluster = machine(4, properties={"gpu": "0-3"})
    found = run(cluster, job("A", 0, "slot=1/core", 5, **gpu), job("B", 1, "slot=1-2/core", 1, **gpu))
    assert starts(found) == {"A": 0, "B": 5}
