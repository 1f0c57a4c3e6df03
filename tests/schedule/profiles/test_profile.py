"""Availability over time: finding gaps and reserving them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from simsched.errors import ConfigError
from simsched.schedule.orders.order import job_order
from simsched.schedule.policies.registry import POLICIES, queue_policy
from simsched.schedule.profiles.general_reservations import first_window

INF = float("inf")
STEPS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), max_size=6)
ASKED = st.lists(st.tuples(st.integers(1, 8), st.sampled_from([0, 1, 2, 5, 9, INF])), max_size=8)


@given(STEPS, ASKED)
def test_a_window_is_the_first_that_holds(steps, asked):
    """Law: the units are free through the whole window found, and through no window that starts sooner.

    A window can only begin where something becomes free, so the steps are the starts to try.
    """
    times, free = [0], [3]
    for gap, units in steps:
        times.append(times[-1] + gap)
        free.append(units)
    for units, duration in asked:
        ends = [time + max(duration, 0.1) for time in times]
        sound = [
            at
            for at, begin in enumerate(times)
            if all(n >= units for time, n in zip(times, free, strict=True) if begin <= time < ends[at])
        ]
        assert first_window(times, free, units, duration, 0) == (sound[0] if sound else None)
        later = [at for at in sound if at >= 2]
        assert first_window(times, free, units, duration, 2) == (later[0] if later else None)


def test_every_policy_and_order_has_a_name_and_others_are_refused():
    for name in POLICIES:
        assert queue_policy(name).run_pass
    with pytest.raises(ConfigError, match=r"unknown queue policy 'esay' \(expected .*easy"):
        queue_policy("esay")
    with pytest.raises(ConfigError, match="unknown job order"):
        job_order("random")
    with pytest.raises(ConfigError, match="refresh"):
        queue_policy("easy", {"refresh": "sometimes"})
    with pytest.raises(ConfigError, match="queue policy 'fcfs'"):
        queue_policy("fcfs", {"depth": 3})
    with pytest.raises(ConfigError, match="depth"):
        queue_policy("hybrid", {"depth": -1})
