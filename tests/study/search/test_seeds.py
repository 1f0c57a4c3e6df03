"""Seeds that shake a trace, and load that is scaled by users or by jobs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simsched as ss
from simsched.errors import ConfigError, SimschedError
from simsched.study.grid import summary
from simsched.study.spec.study_file import study_from_dict
from simsched.study.study_folder import StudyResult
from simsched.workload.job import Job, Workload
from simsched.workload.transforms.resample import scale_users, shake

CORE = ss.Jobspec.from_shape("slot=1/core")


def machine(nodes: int) -> ss.Cluster:
    return ss.Cluster.from_rset(ss.ResourceSet.of([(f"0-{nodes - 1}", {"core": "0"})], f"n[0-{nodes - 1}]"))


def busy(count: int = 150, users: int = 12) -> Workload:
    """Jobs that come at random and keep about eight cores busy."""
    rng = np.random.default_rng(5)
    submits = np.cumsum(rng.exponential(60, count)).astype(int).tolist()
    lengths = (1 + rng.exponential(480, count)).astype(int).tolist()
    jobs = [
        Job(id=n + 1, submit=at, runtime=s, duration=2 * s, jobspec=CORE, user=f"u{n % users}")
        for n, (at, s) in enumerate(zip(submits, lengths, strict=True))
    ]
    return Workload(tuple(jobs), name="busy")


def waits(nodes: int, demands) -> list[float]:
    """The mean wait with each demand, from scratch."""
    runs = [ss.simulate(machine(nodes), demand, allocations=False).jobs for demand in demands]
    return [float((jobs["start"] - jobs["submit"]).mean()) for jobs in runs]


def test_shaken_seeds_are_shaken_copies():
    answer = ss.size(machine(8), busy(), "mean_wait<=2m", seeds=3, shake="1m", workers=0)
    demands = [busy(), *(shake(busy(), 60, np.random.default_rng(seed)) for seed in (1, 2))]
    target = answer.rule.targets[0]
    assert answer.trials[8].figures[target] == pytest.approx(waits(8, demands))
    assert (answer.seeds.shake, answer.seeds.block) == (60, None)
    assert json.loads(answer.to_json())["seeds"] == {"count": 3, "first": 0, "block": None, "shake": 60}
    assert answer.notes[-1] == (
        "a target has to hold with every seed: the workload as it is and 2 copies of it with submissions "
        "moved by up to 1 min, which shows sensitivity and not other demand"
    )


def test_a_difference_within_what_shaking_does_is_said_to_be():
    answer = ss.size(machine(12), busy(), "p95_wait<=30s", seeds=2, shake="10m", workers=0, checks=0)
    (difference,) = answer.differences.values()
    said = "is within the effect of moving submissions by up to 10 min (" in " ".join(answer.notes)
    assert said == (difference.verdict == "within noise")
    assert said
    assert "is within noise (" not in " ".join(answer.notes)


def test_a_burst_can_be_shaken():
    jobs = Workload(tuple(Job(id=n, submit=0, runtime=60, duration=60, jobspec=CORE) for n in range(30)))
    answer = ss.size(machine(8), jobs, "mean_wait<=1m", seeds=3, shake="10m", workers=0, checks=0)
    assert answer.seeds.count == 3


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"seeds": 1, "shake": "1m"}, "--shake: with one seed only the workload as it is"),
        ({"shake": "1m", "block": "10m"}, "--block: seeds are either resampled or shaken"),
        ({"shake": "soon"}, "--shake"),
        ({"shake": "0"}, "a shake of up to 0 s is out of range"),
        (
            {"by": "user"},
            "by: unknown value 'user'; did you mean users?",
        ),
    ],
)
def test_seeds_that_cannot_be(more, text):
    with pytest.raises(SimschedError) as caught:
        ss.size(machine(8), busy(), "mean_wait<=2m", **{"seeds": 2, "workers": 0, **more})
    assert text in str(caught.value)


def test_a_model_is_not_shaken(tmp_path):
    mix = tmp_path / "mix.yaml"
    mix.write_text(
        "gap: exp(1m)\njobs: 20\nparts:\n  - {shape: slot=1/core, runtime: exp(5m), duration: x2}\n"
    )
    with pytest.raises(ConfigError, match="a model draws new jobs for each seed"):
        ss.size(machine(4), mix, "p95_wait<=5m", workers=0, seeds=3, shake="1m")


def test_load_by_users_is_that_of_the_transform():
    answer = ss.size(machine(12), busy(), "mean_wait<=2m", seeds=1, load=1.5, by="users", workers=0)
    demand = scale_users(busy(), 1.5, np.random.default_rng(0))
    target = answer.rule.targets[0]
    assert answer.trials[12].figures[target] == pytest.approx(waits(12, [demand]))
    assert "load 1.5 comes from users removed or copied at random" in answer.notes
    assert "a day lasts" not in " ".join(answer.notes)


@pytest.mark.parametrize("by", ["users", "jobs"])
def test_headroom_by_users_and_by_jobs(by):
    answer = ss.headroom(machine(16), busy(), "mean_wait<=2m", seeds=2, by=by, step=0.1, most=3, workers=0)
    assert answer.found
    assert 1 < answer.number <= 3
    assert answer.about["by"] == by


def test_denser_arrivals_say_what_they_do_to_days():
    answer = ss.size(machine(12), busy(), "mean_wait<=2m", seeds=1, load=1.3, workers=0)
    assert (
        "load 1.3 comes from denser arrivals: a day lasts 18.5 h, while run times, limits and time windows "
        "do not change (--by users and --by jobs keep days)"
    ) in answer.notes
    plain = ss.size(machine(12), busy(), "mean_wait<=2m", seeds=1, workers=0)
    assert "a day lasts" not in " ".join(plain.notes)


def test_jobs_without_users_are_refused_before_anything_is_run():
    jobs = Workload(tuple(Job(id=n, submit=60 * n, runtime=60, duration=60, jobspec=CORE) for n in range(30)))
    with pytest.raises(ConfigError, match="no job has a user"):
        ss.headroom(machine(4), jobs, "mean_wait<=2m", seeds=1, by="users", workers=0)
    assert ss.headroom(machine(4), jobs, "mean_wait<=2m", seeds=1, by="jobs", step=0.5, workers=0).found


def study(**changes):
    recipe = {"name": "small", "groups": [{"name": "n", "count": 2, "cores": 4}]}
    rows = [
        {"shape": "slot=1/core", "submit": 50 * n, "runtime": 360 + n, "duration": 900} for n in range(60)
    ]
    return study_from_dict({
        "name": "shaken", "cluster": {"recipe": recipe},
        "workload": {"jobs": rows, "transforms": ["shake(2m)"]},
        "axes": {"order": ["fifo", "sjf"], "load": [1.0, 1.2]}, "seeds": 4, **changes,
    })  # fmt: skip


@pytest.mark.slow
def test_a_sweep_of_shaken_seeds_says_what_is_within_shaking(tmp_path):
    result = ss.sweep(study(), tmp_path / "s", workers=0)
    assert result.record["shaken"] is True
    assert len(set(result.runs["mean_wait"])) > 4
    said = [line for line in summary(result).splitlines() if " against " in line]
    assert len(said) == 1
    assert said[0].startswith("order sjf against order fifo: the mean wait is ")
    assert said[0].endswith(" of 2 combinations of the other axes")
    page = (tmp_path / "s" / "report.html").read_text()
    assert "within the effect of shaking: the 95 % interval contains 0" in page
    assert "within noise: the 95 % interval" not in page


@pytest.mark.slow
def test_other_seeds_are_no_shaken_ones(tmp_path):
    for number, changes in enumerate(({"config": {"match-policy": "random"}}, {"workload": "first-steps"})):
        result = ss.sweep(study(**changes, seeds=2), tmp_path / str(number), workers=0, report=False)
        assert result.record["shaken"] is False
        assert " against " not in summary(StudyResult(result.path))
