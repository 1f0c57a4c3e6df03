"""Fair share: the least used go first, and the past fades."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError, SimschedError
from simsched.schedule.job_table import Counting, JobTable
from simsched.schedule.orders.fair_share import WEEK, FairShare
from simsched.schedule.orders.order import job_order


def table(users, banks):
    n = len(users)
    made = JobTable()
    made.by_kind[:], made.kind_sizes[:] = [None], [1]
    made.recount(Counting(None, None, ("core",), np.ones((1, 1), dtype=np.int64)))
    made.make_place(n)
    for at, (user, bank) in enumerate(zip(users, banks, strict=True)):
        made.add(0, at, 10.0, 10.0, 16, user, bank)
    return made


def test_who_used_less_goes_first_by_user_and_by_bank():
    jobs = table([0, 1, 2, 0], [0, 0, 1, 0])
    order = FairShare()
    everyone = np.arange(4)
    assert order.ranked(jobs, everyone, 0).tolist() == [0, 1, 2, 3]
    order.charge(jobs, 0, 100, 100)
    assert order.ranked(jobs, everyone, 100).tolist() == [2, 1, 0, 3]


def test_the_past_counts_half_after_a_half_life():
    """Ann used 100 long ago, bob 60 just now: hers counts 50 by then."""
    jobs = table([0, 1], [0, 0])
    order = FairShare()
    order.charge(jobs, 0, 100, 0)
    order.charge(jobs, 1, 60, WEEK)
    assert order.ranked(jobs, np.arange(2), WEEK).tolist() == [0, 1]
    order.charge(jobs, 0, 20, WEEK)
    assert order.ranked(jobs, np.arange(2), WEEK).tolist() == [1, 0]


def test_the_half_life_stands_behind_the_name():
    """Ann used 100 a day ago, bob 60 now: with a half-life of a day hers counts 50, with a week's 91."""
    jobs = table([0, 1], [0, 0])
    for name, first in (("fairshare:1d", [0, 1]), ("fairshare", [1, 0]), ("fairshare:inf", [1, 0])):
        order = job_order(name)
        order.charge(jobs, 0, 100, 0)
        order.charge(jobs, 1, 60, 86400)
        assert order.ranked(jobs, np.arange(2), 86400).tolist() == first
    for name in ("fairshare:", "fairshare:x", "fairshare:0", "fairshare:-1d", "sjf:1d"):
        with pytest.raises(SimschedError):
            job_order(name)


def test_decades_do_not_overflow():
    jobs = table([0, 1], [0, 0])
    order = FairShare()
    for year in range(60):
        order.charge(jobs, year % 2, 100, year * 365 * 86400.0)
    assert np.isfinite(order._users).all()
    assert order.ranked(jobs, np.arange(2), 0).tolist() == [0, 1]


def test_a_half_life_is_positive():
    with pytest.raises(ConfigError):
        FairShare(0)
