"""Plans of a pass on a graph: they are made as far as they matter, and no further."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.schedule.policies.replanning import Reach
from simsched.simulation.simulate import simulate

SHAPES = (
    ("slot={n}/[core;memory=2{{unit:GB}}]", "cpu"),
    ("slot={n}/core", None),
    ("slot={few}/node", "cpu"),
    ("slot={few}/[core=2;gpu;memory=3{{unit:GB}}]", "gpu"),
    ("node={few}/slot=2/[core=2;memory=4{{unit:GB}}]", None),
    ("slot=1/socket", None),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "site.yaml"
    path.write_text(
        "groups:\n"
        "  - {name: a, count: 5, sockets: 2, cores: 8, memory: 16 GiB, properties: [cpu]}\n"
        "  - {name: g, count: 2, sockets: 2, cores: 8, memory: 32 GiB, gpus: 2, properties: [gpu]}\n"
    )
    return ss.load_cluster(path)


def crowd(seed, jobs=50):
    """Jobs of several kinds; many wait, and most end before the requested time."""
    rng = np.random.default_rng(seed)
    made, now = [], 0
    for number in range(jobs):
        shape, partition = SHAPES[rng.integers(len(SHAPES))]
        text = shape.format(n=int(rng.integers(1, 20)), few=int(rng.integers(1, 4)))
        duration = int(rng.choice([20, 60, 100, 400]))
        runtime = max(min(1, duration), int(duration * rng.choice([0.1, 0.5, 0.9, 1.0])))
        spec = ss.Jobspec.from_shape(text, constraint=partition, duration=duration)
        now += int(rng.choice([0, 1, 5, 20]))
        made.append(ss.Job(id=number + 1, submit=now, runtime=runtime, duration=duration, jobspec=spec))
    return ss.Workload(jobs=tuple(made), name="crowd")


def outcome(site, workload, policy, match, **options):
    result = simulate(site, workload, policy, match, **options)
    columns = {name: np.asarray(column).tolist() for name, column in result.jobs.items()}
    return repr(columns), result.log.text()


CASES = [
    ("slurm", "first", {"queue_options": {"interval": 5, "resolution": 60}}),
    ("slurm", "lonode", {"queue_options": {"interval": 1, "resolution": 0}}),
    ("slurm", "bestfit", {"queue_options": {"interval": 10, "resolution": 300}, "order": "wfp3"}),
    ("slurm", "first", {"queue_options": {"interval": 1, "window": 100, "max_job_test": 8}}),
    ("slurm", "first", {"queue_options": {"interval": 2, "min_age_reserve": 30, "reservation_depth": 3}}),
    ("slurm", "first", {"queue_options": {"interval": 1, "max_job_start": 1}, "order": "sjf"}),
    ("slurm", "first", {"queue_options": {"interval": 1}, "failures": "mtbf=900s,mttr=60s"}),
    ("slurm", "first", {"queue_options": {"interval": 1}, "predictor": "last-two"}),
    ("slurm", "first", {"queue_options": {"interval": 1}, "overrun": "allow", "epilog": "1s..20s"}),
    ("slurm", "random", {"queue_options": {"interval": 3}}),
    ("conservative", "first", {"queue_options": {"compress": "replan"}}),
]


def on_targets(seed):
    """Jobs of the kinds that counts decide; the last kind of the crowd takes sockets."""
    workload = crowd(seed)
    jobs = tuple(job for job in workload.jobs if "socket" not in str(job.jobspec))
    return type(workload)(jobs=jobs, name="on targets")


@pytest.mark.quick(2)
@pytest.mark.parametrize("jobs", [on_targets, crowd], ids=["counted", "all kinds"])
@pytest.mark.parametrize(("policy", "match", "options"), CASES, ids=str)
def test_plans_that_go_on_to_the_last_job_start_the_same_jobs(
    site, monkeypatch, jobs, policy, match, options
):
    """Law: start times and R are the same, however many jobs are planned that cannot start."""
    workload = jobs(len(str(options)))
    quick = outcome(site, workload, policy, match, **options)
    init = Reach.__init__

    def together(self, context, some, *, apart):
        init(self, context, some, apart=False)

    monkeypatch.setattr(Reach, "__init__", together)
    monkeypatch.setattr(Reach, "_may_start", lambda self, job, _: self._context.supply.could_start(job))
    assert outcome(site, workload, policy, match, **options) == quick
