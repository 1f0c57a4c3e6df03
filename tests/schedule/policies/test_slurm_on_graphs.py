"""Plans of a pass on a graph: they are made as far as they matter, and no further."""

from __future__ import annotations

import pytest

from simsched.schedule.policies.replanning import Reach
from tests.schedule.lasting import test_lasting_reservations as lasting
from tests.schedule.lasting.test_lasting_reservations import crowd, outcome

site = lasting.site

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
