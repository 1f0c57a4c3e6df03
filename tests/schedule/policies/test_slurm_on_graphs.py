"""Slurm's backfill on a graph: quick profiles and kept plans answer as profiles that are built again."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.schedule import graph_supply
from simsched.schedule.lasting.pass_room import PassRoom
from simsched.schedule.policies.kept_pass import KeptPass
from simsched.schedule.policies.replanning import Reach
from simsched.schedule.profiles.graph_profile import GraphProfile
from simsched.simulation.simulate import simulate
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


def built_again(supply):
    return GraphProfile(supply)


def on_targets(seed):
    """Jobs of the kinds that counts decide; the last kind of the crowd takes sockets."""
    workload = crowd(seed)
    jobs = tuple(job for job in workload.jobs if "socket" not in str(job.jobspec))
    return type(workload)(jobs=jobs, name="on targets")


@pytest.mark.parametrize("jobs", [on_targets, crowd], ids=["counted", "all kinds"])
@pytest.mark.parametrize(("policy", "match", "options"), CASES, ids=str)
def test_the_answers_are_those_of_profiles_that_are_built_again(
    site, monkeypatch, jobs, policy, match, options
):
    """Law: start times and R are the same; only the search differs."""
    workload = jobs(len(str(options)))
    quick = outcome(site, workload, policy, match, **options)
    monkeypatch.setattr(graph_supply.GraphSupply, "profile", built_again)
    monkeypatch.setattr(KeptPass, "follow", lambda _, context, __: KeptPass(context))
    monkeypatch.setattr(Reach, "_may_start", lambda self, job, _: self._context.supply.could_start(job))
    assert outcome(site, workload, policy, match, **options) == quick


def test_profiles_and_plans_are_kept(site, monkeypatch):
    """The quick ways are taken: without them, the test above would compare nothing."""
    made, kept = [], []
    init, follow = PassRoom.__init__, KeptPass.follow

    def noted(self, *arguments):
        made.append(self)
        init(self, *arguments)

    def followed(self, context, jobs):
        found = follow(self, context, jobs)
        kept.append(found is self and bool(found.jobs))
        return found

    monkeypatch.setattr(PassRoom, "__init__", noted)
    monkeypatch.setattr(KeptPass, "follow", followed)
    result = simulate(site, on_targets(3), "slurm", queue_options={"interval": 1}, allocations=False)
    assert np.isfinite(np.asarray(result.jobs["start"], float)).all()
    assert made
    assert any(kept)
