"""Flurries: bursts of one user that are put into a log are found and taken out, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.workload.job import Job, Workload
from simsched.workload.load import load_workload
from simsched.workload.transforms.flurries import flurries
from simsched.workload.transforms.steps import apply_steps
from simsched.workload.transforms.transforms import merge

DAY = 86_400
SPEC = Jobspec.from_shape("slot/core")


def background(days: int = 60, each: int = 50, seed: int = 0) -> Workload:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, days * DAY, days * each)).tolist()
    users = rng.integers(0, 30, days * each).tolist()
    jobs = [
        Job(id=number, submit=at, jobspec=SPEC, runtime=600, duration=3600, user=f"u{user}")
        for number, (at, user) in enumerate(zip(times, users, strict=True))
    ]
    return Workload(tuple(jobs), name="made", source="made")


def burst(user: str, begin: float, length: float, number: int, first_id: int = 100_000) -> Workload:
    times = (begin + np.arange(number) * length / number).astype(int).tolist()
    jobs = (
        Job(id=first_id + n, submit=at, jobspec=SPEC, runtime=5, duration=60, user=user)
        for n, at in enumerate(times)
    )
    return Workload(tuple(jobs))


def test_a_steady_log_has_no_flurries():
    assert flurries(background()) == []


def test_a_burst_is_found_with_its_user_time_and_share():
    log = merge([background(), burst("u3", 20 * DAY, 3 * DAY, 900)])
    (found,) = flurries(log)
    assert found.user == "u3"
    assert found.begin == pytest.approx(20 * DAY, abs=DAY)
    assert found.end == pytest.approx(23 * DAY, abs=DAY)
    assert 900 <= found.jobs <= 915
    assert found.share == pytest.approx(found.jobs / 3900)
    assert found.equal > 0.98


def test_bursts_of_two_users_are_two_flurries_and_a_long_pause_parts_them():
    parts = [
        burst("u1", 5 * DAY, 2 * DAY, 800, 100_000),
        burst("u2", 6 * DAY, 2 * DAY, 3000, 200_000),
        burst("u2", 30 * DAY, 1 * DAY, 500, 300_000),
    ]
    found = flurries(merge([background(), *parts]))
    assert [(one.user, one.jobs // 100) for one in found] == [("u2", 30), ("u1", 8), ("u2", 5)]


def test_the_threshold_is_in_median_days():
    log = merge([background(), burst("u3", 20 * DAY, DAY, 220)])
    assert flurries(log, 7) == []
    assert len(flurries(log, 4)) == 1


def test_the_log_without_flurries_is_the_background():
    clean = background()
    log = merge([clean, burst("new", 20 * DAY, 3 * DAY, 900)])
    rest = apply_steps(log, ["flurries(out)"], np.random.default_rng(0))
    assert [job.id for job in rest] == [job.id for job in clean]
    assert rest.history[-1] == "900 jobs of 1 flurries left out of the users new"


@pytest.mark.parametrize(
    ("log", "step", "message"),
    [
        (Workload(burst("a", 0, DAY, 5).jobs), "flurries(out)", "too few to know the usual activity"),
        (
            Workload(tuple(Job(id=n, submit=n * DAY, jobspec=SPEC) for n in range(30))),
            "flurries(out)",
            "no job has a user",
        ),
        (background(), "flurries(in)", "unknown word 'in'"),
        (background(), "flurries(out, 0)", "out of range"),
    ],
)
def test_refusals(log, step, message):
    with pytest.raises(ConfigError, match=message):
        apply_steps(log, [step], np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("user", "low", "high", "removed"),
    [("374", 14_969, 28_552, 11_740), ("197", 31_767, 33_202, 635), ("328", 66_553, 68_106, 452)],
)
def test_flurries_that_the_archive_removed_are_found_when_they_are_put_back(traces, user, low, high, removed):
    """The header of the cleaned log has user, job numbers and count; the times within are made."""
    log = load_workload(traces / "SDSC-SP2-1998-4.2-cln.swf.gz")
    times = [job.submit for job in log if low <= int(job.id) <= high]
    length = (max(times) - min(times)) / (1 if removed > 1000 else 4)
    back = burst(user, min(times), length, removed, 1_000_000)
    found = [one for one in flurries(merge([log, back])) if one.user == user]
    assert sum(one.jobs for one in found) > 0.8 * removed
