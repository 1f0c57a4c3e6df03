"""Singleton dependencies: one job of a user and a name at a time."""

from __future__ import annotations

from simsched.formats.rfc.dependency import Dependency
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.simulate import simulate
from simsched.workload.readers.jobs_yaml import read_jobs_yaml
from tests.simulation.simworld import machine, starts

YAML = """
- {id: first, duration: 10, shape: slot/core, user: ann, name: solve}
- {id: second, submit: 1, duration: 10, shape: slot/core, user: ann, name: solve, depends: singleton}
- {id: third, submit: 2, duration: 10, shape: slot/core, user: ann, name: solve, depends: singleton}
- {id: other name, submit: 2, duration: 10, shape: slot/core, user: ann, name: plot, depends: singleton}
- {id: other user, submit: 2, duration: 10, shape: slot/core, user: bob, name: solve, depends: singleton}
- {id: not bound, submit: 3, duration: 10, shape: slot/core, user: ann, name: solve}
"""


def test_one_job_of_a_user_and_a_name_runs_at_a_time(tmp_path):
    cluster, given = machine(nodes=8), read_jobs_yaml(YAML)
    found = simulate(cluster, given, "easy")
    assert starts(found) == {
        "first": 0, "second": 10, "third": 20, "other name": 2, "other user": 2, "not bound": 3
    }  # fmt: skip
    assert not audit_run(found.save(tmp_path / "run"), cluster, given).faults


def test_the_text_of_a_singleton_needs_no_value():
    assert Dependency.parse("singleton") == Dependency("singleton", "name")
    assert Dependency.parse(str(Dependency.parse("singleton"))) == Dependency("singleton", "name")
