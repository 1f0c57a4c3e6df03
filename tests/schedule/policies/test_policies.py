"""Queue policies by name, and their options."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError
from simsched.schedule.policies.registry import POLICIES, queue_policy


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_is_made_without_options(name):
    assert hasattr(queue_policy(name), "run_pass")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("lifo", {}, "unknown queue policy 'lifo' .expected conservative, easy, fcfs, hybrid"),
        ("easy", {"depth": 3}, "'easy' has no option 'depth' .expected extra, refresh, reservation"),
        ("fcfs", {"extra": False}, "'fcfs' has no option 'extra' .expected none"),
        ("easy", {"extra": "maybe"}, "unknown value 'maybe' of extra .expected yes or no"),
        ("easy", {"refresh": ""}, "unknown value '' of refresh .expected always, when-blocked"),
        ("hybrid", {"depth": -1}, "depth is -1"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(name, options, says):
    with pytest.raises(ConfigError, match=says):
        queue_policy(name, options)


def test_unicef_divides_the_wait_by_time_and_the_logarithm_of_size():
    """Tang et al. 2009, with log2(size + 1): a job of one unit counts 1, one of three counts 2."""
    from types import SimpleNamespace

    from simsched.schedule.orders.order import ORDERS

    order = ORDERS.get("unicef") or ORDERS["unicep"]
    table = SimpleNamespace(
        submits=np.array([0.0, 0.0, 40.0, 60.0]),
        durations=[10.0, 10.0, 20.0, 40.0],
        sizes=np.array([1, 3, 7, 1]),
    )
    keys = order.keys(table, np.arange(4), 100.0)
    assert keys.tolist() == [-10.0, -5.0, -1.0, -1.0]
