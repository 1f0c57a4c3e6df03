"""Usage that decays is exact at any time, whenever it was charged."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest

from simsched.schedule.orders.fair_share import UsageLedger

HOUR = 3600.0


def test_a_running_job_is_charged_up_to_now():
    ledger = UsageLedger(np.zeros(2), inf)
    ledger.begin(1, 4.0, 10.0)
    assert ledger.usage(25.0).tolist() == [0.0, 60.0]
    ledger.end(1, 4.0, 10.0, 30.0)
    assert ledger.usage(100.0).tolist() == [0.0, 80.0]


def test_a_second_counts_half_after_a_half_life():
    ledger = UsageLedger(np.array([100.0, 0.0]), HOUR)
    assert ledger.usage(2 * HOUR)[0] == pytest.approx(25)
    ledger.begin(1, 1.0, 2 * HOUR)
    ledger.end(1, 1.0, 2 * HOUR, 3 * HOUR)
    # the integral of 2^(-t/h) over one half-life
    assert ledger.usage(3 * HOUR)[1] == pytest.approx(HOUR / log(2) / 2)
    assert ledger.usage(4 * HOUR)[1] == pytest.approx(HOUR / log(2) / 4)


def test_a_charge_after_the_time_of_the_question_does_not_count_yet():
    ledger = UsageLedger(np.zeros(1), inf)
    ledger.begin(0, 1.0, 0.0)
    ledger.end(0, 1.0, 0.0, 70.0)
    assert ledger.usage(60.0).tolist() == [60.0]
    assert ledger.usage(120.0).tolist() == [70.0]


def test_jobs_charged_at_their_end():
    ledger = UsageLedger(np.zeros(1), HOUR, at_end=True)
    ledger.begin(0, 2.0, 0.0)
    assert ledger.usage(50.0).tolist() == [0.0]
    ledger.end(0, 2.0, 0.0, 100.0)
    assert ledger.usage(100.0)[0] == pytest.approx(200)


def test_a_reset_forgets_what_was_used_before():
    ledger = UsageLedger(np.array([50.0]), inf, reset=100.0)
    ledger.begin(0, 1.0, 80.0)
    assert ledger.usage(90.0).tolist() == [60.0]
    assert ledger.usage(130.0).tolist() == [30.0]
    ledger.end(0, 1.0, 80.0, 150.0)
    assert ledger.usage(160.0).tolist() == [50.0]
    assert ledger.usage(205.0).tolist() == [0.0]


def test_centuries_do_not_overflow():
    ledger = UsageLedger(np.zeros(1), HOUR)
    for year in range(200):
        begin = year * 365 * 86400.0
        ledger.begin(0, 1.0, begin)
        assert ledger.usage(begin + 10)[0] == pytest.approx(10, rel=0.01)
        ledger.end(0, 1.0, begin, begin + 10)


def test_no_rounding_stays_behind():
    """A user whose jobs took no time has used nothing, and ties with those who never ran a job."""
    ledger = UsageLedger(np.zeros(2), 7 * 86400.0)
    for begin in np.random.default_rng(0).random(100) * 1e6:
        ledger.begin(0, 3.0, float(begin))
        ledger.end(0, 3.0, float(begin), float(begin))
    assert ledger.usage(1e7).tolist() == [0.0, 0.0]


def test_a_state_goes_on_as_if_never_interrupted():
    ledger = UsageLedger(np.zeros(2), HOUR, reset=5 * HOUR)
    ledger.begin(0, 3.0, 10.0)
    ledger.usage(20.0)
    ledger.begin(1, 1.0, 40.0)
    other = UsageLedger(np.zeros(2), HOUR, reset=5 * HOUR)
    other.restore(ledger.state())
    for made in (ledger, other):
        made.end(0, 3.0, 10.0, 6 * HOUR)
    assert ledger.usage(7 * HOUR).tolist() == other.usage(7 * HOUR).tolist()


def test_usage_is_never_below_nothing():
    """The sums of jobs that start at one time may differ by the last bits of their terms."""
    ledger = UsageLedger(np.zeros(1), 7 * 24 * HOUR)
    for rate in (240, 470, 353, 137, 419, 374):
        ledger.begin(0, rate, 755_296)
    assert ledger.usage(755_296).tolist() == [0.0]
