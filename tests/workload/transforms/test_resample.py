"""Resampled workloads: blocks of a trace, drawn with replacement."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.workload.job import Job, Workload
from simsched.workload.transforms.resample import DAY, HOUR, WEEK, block_of, resample
from simsched.workload.transforms.steps import apply_steps

CORE = Jobspec.from_shape("core")


def workload_of(submits, **fields):
    """Jobs that carry their own submit time as name."""
    jobs = tuple(
        Job(id=n + 1, submit=at, jobspec=CORE, runtime=60, name=str(at), **fields)
        for n, at in enumerate(sorted(submits))
    )
    return Workload(jobs=jobs, name="w", kind="swf")


def rng(seed=0):
    return np.random.default_rng(seed)


@given(
    st.lists(st.integers(0, 100_000), min_size=2, max_size=60, unique=True),
    st.integers(2_000, 40_000),
    st.integers(0, 5),
)
@settings(max_examples=60)
def test_every_block_is_a_block_of_the_old_workload(submits, block, seed):
    """Law: slot by slot, the new workload is some whole block of the old one, moved; the last one is cut."""
    old = workload_of(submits)
    first, last = old.span
    if (last - first) // block < 2:
        with pytest.raises(ConfigError, match="at least two whole blocks"):
            resample(old, rng(seed), block)
        return
    new = resample(old, rng(seed), block)
    whole = (last - first) // block
    blocks = [
        [at - low for at in submits if low <= at < low + block]
        for low in range(first, first + whole * block, block)
    ]
    assert len({job.id for job in new}) == len(new)
    assert list(new.jobs) == sorted(new.jobs, key=lambda job: job.submit)
    for low in range(first, last, block):
        room = min(block, last - low)
        got = [job.submit - low for job in new if low <= job.submit < low + block]
        assert got in [sorted(at for at in one if at < room) for one in blocks]
        names = [int(job.name) for job in new if low <= job.submit < low + block]
        assert [a - b for a, b in itertools.pairwise(names)] == [a - b for a, b in itertools.pairwise(got)]


def test_seeds_decide():
    old = workload_of(range(0, 100 * DAY, 5000))
    assert resample(old, rng(1)) == resample(old, rng(1))
    assert resample(old, rng(1)).jobs != resample(old, rng(2)).jobs
    assert "resampled in blocks of 604800 s" in resample(old, rng(1)).history


def test_days_are_drawn_from_the_same_day_of_the_week_and_hours_from_the_same_hour():
    days = workload_of(range(0, 30 * DAY, 3600))
    for job in resample(days, rng(3)):
        assert (int(job.name) - job.submit) % WEEK == 0
    assert {int(job.name) - job.submit for job in resample(days, rng(3))} > {0}
    hours = workload_of(range(0, 5 * DAY, 600))
    for job in resample(hours, rng(3)):
        assert (int(job.name) - job.submit) % DAY == 0


@pytest.mark.parametrize(
    ("span", "block"),
    [(0, None), (800, 100), (8 * HOUR, HOUR), (8 * DAY, DAY), (56 * DAY - 1, DAY), (56 * DAY, WEEK)],
)
def test_the_length_of_a_block(span, block):
    assert block_of(workload_of([0, span])) == block


def test_the_mean_load_is_kept():
    """Many resamples together have as many jobs as the trace, nearly: blocks are drawn evenly."""
    submits = rng(5).integers(0, 40 * WEEK, 2000)
    old = workload_of(np.unique(submits).tolist())
    sizes = [len(resample(old, rng(seed))) for seed in range(40)]
    assert np.mean(sizes) == pytest.approx(len(old), rel=0.03)
    assert np.std(sizes) > 0


def test_references_follow_within_a_block_and_end_at_its_edge():
    jobs = [
        Job(id=1, submit=0, jobspec=CORE, runtime=1),
        Job(id=2, submit=1, jobspec=CORE, runtime=1, dependencies=(Dependency("afterok", "1", ()),)),
        Job(id=3, submit=10, jobspec=CORE, runtime=1, preceding=2),
        Job(id=4, submit=20, jobspec=CORE, runtime=1),
    ]
    old = Workload(jobs=tuple(jobs))
    for seed in range(10):
        new = resample(old, rng(seed), 10)
        at = {job.id: job for job in new}
        for job in new:
            assert job.preceding is None
            for item in job.dependencies:
                assert at[int(item.value)].submit == job.submit - 1


def test_a_burst_cannot_be_resampled_and_stays_as_it_is():
    burst = workload_of([5])
    assert resample(burst, rng()).jobs == burst.jobs
    assert resample(Workload(()), rng()).jobs == ()


def test_as_a_step():
    old = workload_of(range(0, 100 * DAY, 5000))
    assert apply_steps(old, ["resample"], rng(1)).jobs == resample(old, rng(1)).jobs
    assert apply_steps(old, ["resample(1d)"], rng(1)).jobs == resample(old, rng(1), DAY).jobs
    with pytest.raises(ConfigError, match="at least two whole blocks"):
        apply_steps(old, ["resample(99d)"], rng(1))
    with pytest.raises(ConfigError, match=r"blocks of 1e-06 s are too many .expected at most 1,000,000"):
        apply_steps(old, ["resample(1e-6)"], rng(1))
    with pytest.raises(ConfigError, match="a length above 0"):
        apply_steps(old, ["resample(0)"], rng(1))
    assert apply_steps(Workload(()), ["resample(1d)"], rng(1)).jobs == ()
