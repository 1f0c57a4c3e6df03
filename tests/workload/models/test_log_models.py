"""Models of logs: fitted, written, read again, edited, and drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest

from simsched.errors import ConfigError, WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.text.documents import load_document
from simsched.formats.text.yaml_text import to_yaml
from simsched.workload.job import Job, Workload
from simsched.workload.load import load_workload
from simsched.workload.models.log_fit import check_fit, distance, distances, fit_log, tomorrow, totals
from simsched.workload.models.model_files import LogModel, model_of

DAY = 86_400


@cache
def made_log(weeks: int = 12, seed: int = 1, *, users: bool = True) -> Workload:
    """Small jobs by day of many users, and gpu jobs of two users; none at the weekend."""
    rng = np.random.default_rng(seed)
    small = {size: Jobspec.from_shape(f"slot={size}/core") for size in (1, 2, 4, 8)}
    gpu = Jobspec.from_shape("slot=2/[core=4;gpu]")
    jobs = []
    for day in range(weeks * 7):
        if day % 7 >= 5:
            continue
        for _ in range(int(rng.poisson(40))):
            at = day * DAY + int(rng.integers(9, 18)) * 3600 + int(rng.integers(3600))
            is_gpu = rng.random() < 0.2
            limit = 43_200 if is_gpu else int(rng.choice([600, 3600]))
            run = max(1, int(limit * rng.random()))
            user = f"g{rng.integers(2)}" if is_gpu else f"u{rng.integers(20)}"
            spec = gpu if is_gpu else small[int(rng.choice([1, 2, 4, 8], p=[0.5, 0.3, 0.1, 0.1]))]
            jobs.append((at, spec, run, limit, user))
    jobs.sort(key=lambda row: row[0])
    made = tuple(
        Job(id=n, submit=at, jobspec=spec, runtime=run, duration=limit, user=user if users else None)
        for n, (at, spec, run, limit, user) in enumerate(jobs, 1)
    )
    header = {"UnixStartTime": "1704067200", "TimeZoneString": "UTC", "MaxProcs": "64"}  # a Monday
    return Workload(made, name="made", source="made", header=header)


@cache
def fitted() -> LogModel:
    return fit_log(made_log())


def read_again() -> dict:
    return load_document(to_yaml(fitted().to_dict()), "m.yaml")


def test_a_model_is_near_its_log():
    log = made_log()
    drawn = fitted().make(np.random.default_rng(0))
    found = distances(log, drawn)
    assert max(found[name].ks for name in ("size", "run time", "limit", "run time / limit")) < 0.06
    assert found["hour of the week"].ks < 0.06
    span = log.span[1]
    ours, theirs = totals(drawn, span), totals(log, span)
    assert all(ours[name] == pytest.approx(theirs[name], rel=0.1) for name in theirs)


def test_jobs_come_on_the_weekdays_and_hours_of_the_log():
    drawn = fitted().make(np.random.default_rng(2))
    clock = drawn.clock
    assert clock is not None
    local = [clock.local(job.submit) for job in drawn]
    assert {time.weekday() for time in local} == {0, 1, 2, 3, 4}
    assert min(time.hour for time in local) >= 9
    assert np.mean([time.hour > 18 for time in local]) < 0.02  # the end of a batch that begins before


def test_gpu_jobs_are_classes_of_their_own():
    model = fitted()
    gpus = [one for one in model.classes if one.name.startswith("gpu-")]
    assert gpus
    assert all("gpu" in spec.to_shape() for one in gpus for spec in one.requests.values)
    others = [one for one in model.classes if one not in gpus]
    assert not any("gpu" in spec.to_shape() for one in others for spec in one.requests.values)


def test_twice_as_many_gpu_users_leave_the_other_jobs_as_they_are():
    document = read_again()
    before = model_of(document).make(np.random.default_rng(3))
    for row in document["classes"]:
        if row["name"].startswith("gpu-"):
            row["factor"] = 2
    after = model_of(document).make(np.random.default_rng(3))

    def split(workload: Workload) -> tuple[list, list]:
        rows = [(job.submit, job.jobspec.to_shape(), job.runtime, job.name) for job in workload]
        return [row for row in rows if "gpu" in row[1]], [row for row in rows if "gpu" not in row[1]]

    assert split(before)[1] == split(after)[1]
    assert len(split(after)[0]) == pytest.approx(2 * len(split(before)[0]), rel=0.15)


def test_the_same_seed_gives_the_same_jobs_however_keys_are_ordered():
    document = read_again()
    turned = {
        **document,
        "classes": [
            {
                key: dict(reversed(value.items())) if isinstance(value, dict) else value
                for key, value in row.items()
            }
            for row in document["classes"]
        ],
    }
    one, two, other = (
        model_of(given).make(np.random.default_rng(seed)).jobs
        for given, seed in ((document, 5), (turned, 5), (document, 6))
    )
    assert one == two
    assert one != other


def test_a_model_file_is_a_workload(tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(to_yaml(fitted().to_dict()))
    one, two = load_workload(path, seed=1), load_workload(path, seed=2)
    assert one.kind == "model"
    assert len(one) > 500
    assert one.jobs != two.jobs
    assert load_workload(path, seed=1).jobs == one.jobs
    assert len(load_workload(path, limit=7)) == 7


def test_a_mix_is_a_workload_too(tmp_path):
    path = tmp_path / "mix.yaml"
    path.write_text("gap: 5m\njobs: 10\nparts:\n- {shape: slot=2/core, runtime: 1h}\n")
    assert len(load_workload(path)) == 10


def test_lists_of_jobs_stay_lists_of_jobs(tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text("name: classes\njobs:\n- {shape: slot/core, runtime: 5}\n")
    assert load_workload(path).kind == "jobs"


def test_the_check_has_weeks_that_the_model_did_not_see():
    log = made_log(weeks=16)
    found = check_fit(log, fit_log(log), np.random.default_rng(0))
    assert found.unseen["run time"].ks < 0.1
    assert found.itself["run time"].ks < 0.1
    log_, model, unseen, for_it = found.per_week["jobs per week"]
    assert model == pytest.approx(log_, rel=0.1)
    assert for_it == pytest.approx(unseen, rel=0.2)


def test_a_short_log_is_not_checked_on_unseen_weeks():
    log = made_log(weeks=3)
    found = check_fit(log, fit_log(log), np.random.default_rng(0))
    assert not found.unseen
    assert "too short" in found.note


def test_growth_is_found_and_continued():
    rng = np.random.default_rng(0)
    rate = 1.1 ** (np.arange(364) / 30)
    days = np.repeat(np.arange(364), rng.poisson(10 * rate))
    spec = Jobspec.from_shape("slot/core")
    times = np.sort(days * DAY + rng.integers(0, DAY, len(days))).tolist()
    log = Workload(tuple(Job(id=n, submit=at, jobspec=spec, runtime=60) for n, at in enumerate(times)))
    model = fit_log(log)
    assert model.growth == pytest.approx(1.1, abs=0.02)
    later = tomorrow(model)
    ratio = sum(one.batches for one in later.classes) / sum(one.batches for one in model.classes)
    assert ratio == pytest.approx(1.1 ** (364 / 30), rel=0.2)


def test_a_steady_log_has_no_growth():
    assert fit_log(made_log(weeks=40)).growth == 1.0


def test_a_log_without_users_has_a_model_without_users():
    model = fit_log(made_log(users=False))
    assert model.users is None
    assert all(job.user is None for job in model.make(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (Workload(()), "the workload has no jobs"),
        (made_log(weeks=1), "too short for a model"),
        (Workload((Job(id=1, submit=0, jobspec=Jobspec.from_shape("slot/core")),)), "no job has a run time"),
    ],
)
def test_logs_that_are_refused(log, message):
    with pytest.raises(WorkloadError, match=message):
        fit_log(log)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"facto": 2}, "unknown key 'facto'"),
        ({"factor": -1}, "out of range"),
        ({"hours": "1 2 3"}, "3 values"),
        ({"requests": {"slot=x/core": 1}}, "instead of the count"),
        ({"requests": {"slot/core": 0}}, "all weights are 0"),
        ({"jobs": {"0": 1}}, "number of jobs"),
        ({"correlation": "2 0 0"}, "out of range"),
        ({"runtime": "quantiles(5, 3)"}, "do not ascend"),
        ({"limits": {"soon": 1}}, "soon"),
    ],
)
def test_faults_of_a_class_name_their_place(change, message):
    row = {"name": "a", "batches": 10, "requests": {"slot/core": 1}, "runtime": "1h", **change}
    with pytest.raises(ConfigError, match=message) as caught:
        model_of({"span": "7d", "classes": [row]}, "m.yaml")
    assert "m.yaml: classes[0]" in str(caught.value)


def test_a_small_model_by_hand():
    row = {"name": "a", "batches": 70, "requests": "slot=2/core", "runtime": "30m"}
    drawn = model_of({"span": "28d", "classes": [row]}).make(np.random.default_rng(0))
    assert 200 < len(drawn) < 360
    assert {(job.runtime, job.duration, job.procs) for job in drawn} == {(1800, None, 2)}


def test_distance_of_equal_and_of_shifted_samples():
    values = np.arange(1.0, 101.0)
    assert distance(values, values).ks == 0
    assert distance(values, values).factor == 1
    assert distance(values, 3 * values).factor == pytest.approx(3)


@pytest.mark.slow
def test_a_real_log_and_its_model(traces):
    log = load_workload(traces / "KTH-SP2-1996-2.1-cln.swf.gz")
    drawn = fit_log(log).make(np.random.default_rng(0))
    found = distances(log, drawn)
    assert all(found[name].ks < 0.06 for name in found if name not in ("jobs of a day", "jobs of a user"))
    ours, theirs = totals(drawn, log.span[1]), totals(log, log.span[1])
    assert all(ours[name] == pytest.approx(theirs[name], rel=0.1) for name in theirs)


def test_frequent_amounts_of_memory_are_drawn_exactly():
    """4 and 8 GiB in KB have seven digits."""
    jobs = tuple(
        msgspec.structs.replace(job, memory=(4_194_304, 8_388_608)[n % 2])
        for n, job in enumerate(made_log().jobs)
    )
    log = replace(made_log(), jobs=jobs)
    model = fit_log(log)
    again = model_of(load_document(to_yaml(model.to_dict()), "m.yaml"), "m.yaml")
    for one in (model, again):
        drawn = [job.memory for job in one.make(np.random.default_rng(5)).jobs]
        exact = sum(value in (4_194_304, 8_388_608) for value in drawn)
        assert exact > 0.95 * len(drawn)  # the others are between the two, where the quantiles jump
    found = check_fit(log, model, np.random.default_rng(5))
    assert found.log["memory"].ks < 0.05
