"""What a notebook or a debugger shows of a value is short and says what it is."""

from __future__ import annotations

import inspect

import pytest

import simsched as ss


@pytest.fixture(scope="module")
def tiny():
    return ss.load_cluster("tiny")


def test_outcomes_show_the_allocation_or_the_first_reason(tiny):
    matcher = ss.Matcher(tiny)
    one = matcher.match(ss.Jobspec.from_shape("slot=1/node"))
    assert repr(one) == "<Matched 1: rank0/core[0-3]>"
    busy = matcher.match(ss.Jobspec.from_shape("slot=4/node"))
    assert repr(busy).startswith("<Busy: slot/node: 4 needed, 3 available")
    never = matcher.match(ss.Jobspec.from_shape("slot=1/gpu=9"))
    assert repr(never).startswith("<Infeasible: ")
    assert "gpu" in repr(never)
    assert repr(matcher) == "<Matcher on 'tiny': policy first, 1 allocations>"


def test_reprs_are_one_short_line(tiny):
    workload = ss.load_workload("month")
    assert repr(workload) == f"<Workload {workload.name!r}: {len(workload):,} jobs>"
    run = ss.simulate(tiny, ss.load_workload("first-steps"))
    for value in (workload, tiny, run, ss.Matcher(tiny)):
        assert len(repr(value)) < 100
        assert "\n" not in repr(value)


def test_a_value_of_the_wrong_type_is_not_quoted_whole(tiny):
    workload = ss.load_workload("month")
    with pytest.raises(ss.ConfigError) as error:
        ss.simulate(workload, tiny)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("name", sorted(ss.__all__))
def test_everything_public_has_a_signature(name):
    value = getattr(ss, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.signature(value) is not None
