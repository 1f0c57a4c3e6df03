"""Parts of a queue under an order that changes with time equal the same parts of the whole order."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from simsched.errors import PluginError
from simsched.schedule.orders.ranking import Order
from simsched.schedule.queue import WaitingQueue
from tests.schedule.test_queue import table

KEYS = st.sampled_from([0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf")])


def queue_of(keys, tiers=None):
    n = len(keys)
    priorities = ([16, 8, 24][: n % 3] * n + [16] * n)[:n] if n % 3 else None
    columns = table(list(range(n)), [1] * n, [1] * n, priorities, tiers)
    order = Order("own", lambda _table, jobs, _now: np.array(keys)[jobs], static=False)
    waiting = WaitingQueue(columns, order)
    for job in range(n):
        waiting.add(job)
    waiting.sort(5)
    return waiting, order.ranked(columns, np.arange(n), 5).tolist()


@given(st.lists(KEYS, min_size=1, max_size=12), st.data())
def test_the_first_and_any_part_are_those_of_the_whole_order(keys, data):
    """Law, for ties, infinities and keys that are not numbers as well, and while jobs start."""
    tiers = data.draw(st.none() | st.lists(st.integers(0, 1), min_size=len(keys), max_size=len(keys)))
    waiting, expected = queue_of(keys, tiers)
    while expected:
        chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(keys), max_size=len(keys))))
        assert waiting.first == expected[0]
        jobs = waiting.unordered()
        assert waiting.ordered(jobs[chosen[jobs]]).tolist() == [job for job in expected if chosen[job]]
        assert waiting.listed(2) == expected[2:]
        gone = data.draw(st.sampled_from(expected))
        waiting.remove(gone)
        expected.remove(gone)


@pytest.mark.parametrize("seed", range(5))
def test_each_next_job_of_a_long_queue_is_the_first_of_those_that_are_left(seed):
    rng = np.random.default_rng(seed)
    waiting, expected = queue_of(rng.integers(0, 30, 300).astype(float).tolist())
    while expected:
        assert waiting.first == expected[0]
        for at in {0, int(rng.integers(0, len(expected)))}:
            if at < len(expected):
                waiting.remove(expected.pop(at))


def test_hidden_jobs_are_not_first_until_they_are_shown():
    waiting, _ = queue_of([3.0, 1.0, 2.0])
    waiting.hide([1])
    assert (waiting.first, list(waiting)) == (2, [2, 0])
    waiting.show([1])
    assert (waiting.first, list(waiting)) == (1, [1, 2, 0])


def test_an_order_of_another_package_is_called_in_each_pass():
    calls = []

    class Own:
        static = False

        def ranked(self, _table, jobs, now):
            calls.append(now)
            return jobs[::-1] if now < 9 else jobs[:1]

    waiting = WaitingQueue(table([0] * 3, [1] * 3, [1] * 3), Own())
    for job in range(3):
        waiting.add(job)
    waiting.sort(7)
    assert (waiting.first, list(waiting)) == (2, [2, 1, 0])
    assert waiting.listed(1) == [1, 0]
    assert calls == [7]
    with pytest.raises(PluginError, match="did not return each of its 3 jobs once"):
        waiting.sort(9)


def test_the_first_job_is_right_after_some_were_sorted_and_then_all():
    """A pass starts jobs from the front, a later step looks at the whole queue, and another job starts."""
    waiting, expected = queue_of([float(number) for number in range(40)])
    for started in range(12):
        assert waiting.first == expected[started]
        waiting.remove(expected[started])
    assert waiting.listed() == expected[12:]
    for started in range(12, 40):
        assert waiting.first == expected[started]
        waiting.remove(expected[started])
