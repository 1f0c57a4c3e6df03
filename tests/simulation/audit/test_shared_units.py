"""Requests with units of one type inside and outside a slot: some are held alone, some are shared (M4)."""

from __future__ import annotations

import pytest

from tests.simulation.audit.tampering import audited, recorded
from tests.simulation.simworld import job, machine, run

MACHINE = machine(3, cores=4, gpus=1)
SHAPES = (
    "[slot/core=2;node/core=3]",
    "[slot/core=2,4;node/core=3]",
    "[slot=2/core=2;core=3]",
    "[slot/node;core=1]",
    "[slot/core;node{x}]",
    "[slot/node/core=3;core=2]",
    "[node{x};slot/core=2;gpu]",
)


@pytest.fixture
def check(tmp_path):
    """Audits the run of some jobs with other lines and rows."""

    def check(jobs, lines, rows):
        return audited(run(MACHINE, *jobs), MACHINE, tmp_path, lines, rows)

    return check


def records(*jobs):
    """The lines and the rows of a run."""
    return recorded(run(MACHINE, *jobs))


@pytest.mark.quick(4)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("other", ["slot/core", "core=2", "slot/node", SHAPES[0]])
def test_an_honest_run_is_clean(check, shape, other):
    jobs = (job("A", 0, shape, 5), job("B", 0, other, 4), job("C", 1, shape, 3))
    report = check(jobs, *records(*jobs))
    assert report, str(report)
    assert report.allocations == 3


def test_shared_units_are_named_by_both_jobs():
    jobs = (job("A", 0, SHAPES[0], 5), job("B", 0, SHAPES[0], 5))
    lines, rows = records(*jobs)
    assert {line["time"] for line in lines if line["event"] == "alloc"} == {0}
    first, second = ([(e["rank"], e["children"]["core"]) for e in lite(lines, name)] for name in "AB")
    assert set(first) & set(second) == {("1", "0-2")}
    assert [row["cores"] for row in rows] == [2, 2]  # shared units are not counted


def lite(lines, name, event="alloc"):
    return next(
        line["R"]["execution"]["R_lite"] for line in lines if (line["id"], line["event"]) == (name, event)
    )


def test_more_than_the_shared_units_held_twice_is_a_fault(check):
    jobs = (job("A", 0, SHAPES[0], 5), job("B", 0, SHAPES[0], 5))
    lines, rows = records(*jobs)
    for line in lines:
        if line["id"] == "B":  # all five units are those of A
            execution = line["R"]["execution"]
            execution["R_lite"] = lite(lines, "A")
            execution["nodelist"] = ["n[0-1]"]
    faults = str(check(jobs, lines, rows))
    assert "A3 job B: 0 core are held by no other job, requested 2 outside what is shared" in faults


def test_an_exclusive_unit_cannot_be_shared(check):
    jobs = (job("A", 0, "slot/core=3", 5), job("B", 0, SHAPES[2], 5))
    lines, rows = records(*jobs)
    for line in lines:
        if line["id"] == "A":
            line["R"]["execution"]["R_lite"] = [{"rank": "1", "children": {"core": "0-2"}}]
            line["R"]["execution"]["nodelist"] = ["n1"]
    assert "held twice" in str(check(jobs, lines, rows))


def test_the_table_counts_at_least_the_units_held_alone(check):
    jobs = (job("A", 0, SHAPES[0], 5),)
    lines, rows = records(*jobs)
    for cores, clean in ((2, True), (1, False), (6, False)):
        rows[0]["cores"] = cores
        assert bool(check(jobs, lines, rows)) is clean
