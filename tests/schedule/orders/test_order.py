"""Job orders by name: the keys that they give to jobs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import simsched as ss
from simsched.errors import ConfigError
from simsched.schedule.orders.order import ORDERS, candidate_order, job_order
from simsched.schedule.orders.ranking import Order


def test_unicef_divides_the_wait_by_time_and_the_logarithm_of_size():
    """Tang et al. 2009, with log2(size + 1): a job of one unit counts 1, one of three counts 2."""
    table = SimpleNamespace(
        submits=np.array([0.0, 0.0, 40.0, 60.0]),
        durations_array=np.array([10.0, 10.0, 20.0, 40.0]),
        sizes=np.array([1, 3, 7, 1]),
    )
    keys = ORDERS["unicef"].keys(table, np.arange(4), 100.0)
    assert keys.tolist() == [-10.0, -5.0, -1.0, -1.0]


def test_a_class_is_not_an_order():
    with pytest.raises(ss.errors.ConfigError, match=r"order is <class .*Order'> \(expected the name"):
        job_order(Order)


@pytest.mark.parametrize("order", ["multifactor", "fairshare"])
def test_orders_that_belong_to_a_run_are_not_taken_within_others(order):
    with pytest.raises(ConfigError, match="is not an order by a key"):
        job_order(f"starving({order}, 1h)")
    with pytest.raises(ConfigError, match="which only the queue can have"):
        candidate_order(order)
