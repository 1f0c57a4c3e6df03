"""Availability over time: finding gaps and reserving them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from simsched.errors import ConfigError
from simsched.schedule.orders.order import job_order
from simsched.schedule.policies.registry import POLICIES, queue_policy
from simsched.schedule.profiles.free_steps import FreeSteps

INF = float("inf")
STEPS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), max_size=6)
BOOKINGS = st.lists(st.tuples(st.integers(1, 8), st.sampled_from([0, 1, 2, 5, 9, INF])), max_size=8)


def steps_of(steps):
    """Free units only grow where nothing is reserved: releases alone."""
    times, free = [0], [3]
    for gap, units in steps:
        times.append(times[-1] + gap)
        free.append(free[-1] + units)
    return FreeSteps(times, free)


def level(profile, moment):
    at = max(i for i, time in enumerate(profile.times) if time <= moment)
    return profile.free[at]


@given(STEPS, BOOKINGS)
def test_a_gap_is_the_first_that_holds(steps, bookings):
    """Law: the units are free through the whole window found, and through no window that starts sooner.

    A gap can only begin where something becomes free, so the steps are the starts to try.
    """
    profile = steps_of(steps)
    for units, duration in bookings:

        def holds(begin, units=units, duration=duration):
            moments = {begin, *(t for t in profile.times if begin < t < begin + duration)}
            return all(level(profile, moment) >= units for moment in moments)

        at = profile.find(units, duration)
        sound = [i for i, time in enumerate(profile.times) if holds(time)]
        assert at == (sound[0] if sound else None)
        assert profile.find(units, duration, last=0) == (0 if 0 in sound else None)
        if at is not None:
            before = {t: level(profile, t) for t in profile.times}
            begin = profile.times[at]
            profile.take(at, units, duration)
            profile.check()
            assert all(
                level(profile, t) == n - (units if t == begin < INF or begin <= t < begin + duration else 0)
                for t, n in before.items()
            )
            assert min(profile.free) >= 0


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


def test_a_reservation_of_zero_seconds_is_a_moment():
    """Three units at 10, for no time: a job that would still run then finds no gap before it."""
    profile = FreeSteps([0, 10], [2, 3])
    profile.take(1, 3, 0)
    assert profile.find(2, 10) == 0
    assert profile.times[profile.find(2, 11)] > 10
