"""Queue policies by name, and their options."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.errors import ConfigError
from simsched.schedule.policies.registry import POLICIES, queue_policy


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_is_made_without_options(name):
    assert hasattr(queue_policy(name), "run_pass")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (
            "lifo",
            {},
            "unknown queue policy 'lifo' .expected conservative, easy, easy.*, fcfs, hybrid, recorded",
        ),
        ("easy", {"depth": 3}, "'easy' has no option 'depth'; did you mean queue-depth"),
        ("fcfs", {"extra": False}, "'fcfs' has no option 'extra' .expected none"),
        ("easy", {"extra": "maybe"}, "policy-options.extra: 'maybe' is not true or false"),
        (
            "easy",
            {"refresh": ""},
            "refresh: unknown value '' .expected always or when-blocked",
        ),
        ("hybrid", {"depth": -1}, "policy-options.depth: -1 is out of range"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(name, options, says):
    with pytest.raises(ConfigError, match=says):
        queue_policy(name, options)


@pytest.mark.parametrize("shape", ["slot=1-2/node", "node=1/slot=2/core"])
def test_a_reserved_job_is_cancelled_in_the_instant_of_another_arrival(shape):
    """The arrival has a request that is not counted, so that the reservations are made again."""
    sim = ss.Simulation("tiny", "conservative")
    sim.submit("slot=4/node", duration=100, runtime=100)
    sim.submit("slot/[core;gpu]", duration=100, runtime=100)
    reserved = sim.submit("slot=4/node", duration=100, runtime=100)
    sim.run(until=5)
    reserved.cancel()
    last = sim.submit(shape, duration=10, runtime=10)
    sim.run()
    assert (reserved.result, last.start) == ("CANCELED", 100)
