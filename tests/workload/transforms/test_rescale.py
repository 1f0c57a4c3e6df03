"""Load by users and by copies of jobs, and shaken submissions: what they keep, and what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.workload.job import Job, Workload, work_of
from simsched.workload.transforms.resample import DAY, WEEK, scale_copies, scale_users, shake
from simsched.workload.transforms.steps import apply_steps
from simsched.workload.transforms.transforms import offered_work

CORE = Jobspec.from_shape("core")
SCALES = {"users": scale_users, "copies": scale_copies}


def rng(seed=0):
    return np.random.default_rng(seed)


def month(count=400, users=20, seed=1):
    """Jobs of many users over thirty days, in seconds that are whole."""
    draw = rng(seed)
    submits = np.sort(draw.integers(0, 30 * DAY, count)).tolist()
    lengths = (1 + draw.exponential(3000, count)).astype(int).tolist()
    who = draw.integers(0, users, count).tolist()
    jobs = (
        Job(id=n + 1, submit=at, jobspec=CORE, procs=1, runtime=length, duration=2 * length, user=f"u{user}")
        for n, (at, length, user) in enumerate(zip(submits, lengths, who, strict=True))
    )
    return Workload(tuple(jobs), name="month")


@pytest.mark.parametrize("name", SCALES)
@given(st.floats(0.05, 4), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_the_load_is_scaled_to_within_half_of_what_is_drawn(name, factor, seed):
    """Law: the work is the factor times what it was, but for half of one user's, or one job's."""
    old = month()
    new = SCALES[name](old, factor, rng(seed))
    parts = {}
    for job in old:
        key = job.user if name == "users" else job.id
        parts[key] = parts.get(key, 0) + work_of(job)
    assert abs(offered_work(new) - factor * offered_work(old)) <= max(parts.values()) / 2 + 1e-6
    assert len({job.id for job in new}) == len(new)
    assert [job.submit for job in new] == sorted(job.submit for job in new)
    begin, end = old.span
    assert all(begin <= job.submit <= end for job in new)


@pytest.mark.parametrize("name", SCALES)
def test_copies_keep_the_time_of_the_week_and_what_a_job_is(name):
    """Law: every copy is a job of the trace a whole number of weeks later or earlier, all else the same."""
    old = month()
    begin = old.span[0]
    new = SCALES[name](old, 2.5, rng(3))
    known = {((job.submit - begin) % WEEK, job.runtime, job.duration) for job in old}
    assert all(((job.submit - begin) % WEEK, job.runtime, job.duration) in known for job in new)
    assert set(old.jobs) <= set(new.jobs)


def test_copied_users_have_names_of_their_own_and_copied_jobs_do_not():
    old = month()
    names = {job.user for job in old}
    copies = {job.user for job in scale_users(old, 3, rng())} - names
    assert copies == {f"{name}.{copy}" for name in names for copy in (2, 3)}
    assert {job.user for job in scale_copies(old, 3, rng())} == names
    taken = Workload(tuple(Job(id=n, submit=n * DAY, jobspec=CORE, runtime=60, user=user)
                           for n, user in enumerate(["a", "a.2"] * 10)))  # fmt: skip
    assert {job.user for job in scale_users(taken, 2, rng())} == {"a", "a.2", "a.3", "a.2.2"}


@pytest.mark.parametrize("name", SCALES)
@given(st.integers(0, 9), st.floats(0.3, 2.9), st.floats(0.01, 0.5))
@settings(max_examples=25, deadline=None)
def test_a_larger_load_holds_all_of_a_smaller_one(name, seed, factor, more):
    """Common random numbers: with one seed, what comes at a load comes at every larger one as well."""
    old = month(120, 12)
    less, much = (SCALES[name](old, f, rng(seed)) for f in (factor, factor + more))
    kinds = [sorted((job.submit, job.runtime, job.user) for job in one) for one in (less, much)]
    counted = [{kind: kinds[n].count(kind) for kind in kinds[n]} for n in (0, 1)]
    assert all(counted[1].get(kind, 0) >= count for kind, count in counted[0].items())


def test_dependencies_stay_within_a_copy():
    jobs = [
        Job(id=1, submit=0, jobspec=CORE, runtime=60, user="a"),
        Job(id=2, submit=60, jobspec=CORE, runtime=60, user="a", dependencies=(Dependency("afterok", "1"),),
            preceding=1, think_time=5),
        Job(id=3, submit=4 * WEEK, jobspec=CORE, runtime=60, user="a"),
    ]  # fmt: skip
    new = scale_users(Workload(tuple(jobs)), 2, rng())
    at = {job.id: job.submit for job in new}
    assert len(new) == 6
    followers = [job for job in new if job.dependencies]
    assert len(followers) == 2
    assert {job.dependencies[0].value for job in followers} == {"1", str(followers[1].preceding)}
    assert all(at[job.preceding] == job.submit - 60 for job in followers)


def test_scaling_that_cannot_be_done():
    bare = Workload((Job(id=1, submit=0, jobspec=CORE), Job(id=2, submit=10, jobspec=CORE)))
    with pytest.raises(ConfigError, match=r"users\(2\): no job has a user \(expected copies\(FACTOR\)"):
        apply_steps(bare, ["users(2)"], rng())
    for factor in ("0", "-1", "nan", "inf"):
        with pytest.raises(ConfigError, match="a factor of"):
            apply_steps(bare, [f"copies({factor})"], rng())
    with pytest.raises(ConfigError, match="at most 20,000,000"):
        apply_steps(bare, ["copies(1e9)"], rng())
    assert len(scale_copies(bare, 2, rng())) == 4  # without run times each job counts the same
    assert len(scale_copies(Workload(()), 2, rng())) == 0
    burst = Workload(tuple(Job(id=n, submit=5, jobspec=CORE, runtime=9) for n in range(4)))
    assert [job.submit for job in scale_copies(burst, 1.5, rng())] == [5] * 6


def test_denser_arrivals_say_how_long_a_day_is():
    assert apply_steps(month(), ["load(1.3)"], rng()).history == (
        "arrivals 1.3 times as dense: a day takes 18.5 h",
    )
    assert apply_steps(month(), ["users(1.3)"], rng()).history == ("1.3 times the load by users",)


@given(st.integers(0, 9), st.integers(1, 4000))
@settings(max_examples=30, deadline=None)
def test_shaking_moves_each_submission_a_little_and_changes_nothing_else(seed, seconds):
    old = month(100)
    new = shake(old, seconds, rng(seed))
    moved = {job.id: job for job in new}
    assert [job.submit for job in new] == sorted(job.submit for job in new)
    for job in old:
        other = moved[job.id]
        assert abs(other.submit - job.submit) <= seconds
        assert isinstance(other.submit, int)
        assert other.submit >= 0
        assert (other.runtime, other.duration, other.user) == (job.runtime, job.duration, job.user)
    assert len(moved) == len(old)


def test_shaking_is_uniform_and_drawn_from_the_generator():
    old = month(4000)
    by = {job.id: job.submit for job in shake(old, 600, rng(1))}
    moves = np.array([by[job.id] - job.submit for job in old if job.submit > 600])
    assert abs(moves.mean()) < 20
    assert moves.std() == pytest.approx(600 / np.sqrt(3), rel=0.05)
    assert shake(old, 600, rng(1)).jobs == shake(old, 600, rng(1)).jobs
    assert shake(old, 600, rng(1)).jobs != shake(old, 600, rng(2)).jobs


def test_a_shaken_job_does_not_come_before_one_that_it_depends_on():
    jobs = [Job(id=1, submit=1000, jobspec=CORE, runtime=60)]
    jobs += [Job(id=n, submit=1000 + n, jobspec=CORE, runtime=60,
                 dependencies=(Dependency("afterok", str(n - 1)),)) for n in range(2, 40)]  # fmt: skip
    for seed in range(5):
        new = shake(Workload(tuple(jobs)), 500, rng(seed))
        assert [job.id for job in sorted(new, key=lambda job: (job.submit, job.id))] == list(range(1, 40))


def test_what_cannot_be_shaken():
    for text in ("0", "-60", "soon"):
        with pytest.raises(ConfigError):
            apply_steps(month(), [f"shake({text})"], rng())
    with pytest.raises(ConfigError, match="shake has 0 arguments"):
        apply_steps(month(), ["shake"], rng())
    assert len(apply_steps(Workload(()), ["shake(1m)"], rng())) == 0
    assert apply_steps(month(), ["shake(1m)"], rng()).history == ("submissions moved by up to 60 s",)
