"""Singleton dependencies: one job of a user and a name at a time."""

from __future__ import annotations

from time import process_time

import simsched as ss
from simsched.formats.rfc.dependency import Dependency
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.simulate import simulate
from simsched.workload.readers.jobs import read_jobs_yaml
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


def test_a_singleton_waits_for_all_before_it_however_they_end():
    """`b` ends before `a`; `d` is cancelled while it waits, so `e` waits for `a` and `c` alone."""
    jobs = """
    - {id: a, duration: 50, shape: slot/core, user: ann, name: solve}
    - {id: b, submit: 1, duration: 5, shape: slot/core, user: ann, name: solve}
    - {id: c, submit: 2, duration: 70, shape: slot/core, user: ann, name: solve}
    - {id: d, submit: 3, duration: 9, shape: slot/core, user: ann, name: solve, depends: singleton,
       cancel_at: 4}
    - {id: e, submit: 5, duration: 9, shape: slot/core, user: ann, name: solve, depends: singleton}
    """
    found = starts(simulate(machine(nodes=8), read_jobs_yaml(jobs), "easy"))
    assert [found[name] for name in "abce"] == [0, 1, 2, 72]


def test_a_cycle_through_a_singleton_is_found():
    jobs = """
    - {id: a, duration: 50, shape: slot/core, user: ann, name: solve, depends: "afterok:c"}
    - {id: b, duration: 5, shape: slot/core, user: ann, name: solve}
    - {id: c, duration: 70, shape: slot/core, user: ann, name: solve, depends: singleton}
    """
    table = simulate(machine(nodes=8), read_jobs_yaml(jobs), "easy").jobs
    assert [table["reason"][at] for at in (0, 2)] == ["dependencies in a cycle can never be met: a, c"] * 2
    assert table["start"][1] == 0


def test_singletons_in_an_open_simulation():
    sim = ss.Simulation("tiny")
    given = sim.submit_all(read_jobs_yaml(YAML))
    sim.run()
    assert [job.start for job in given[:3]] == [0, 10, 20]


def test_many_singletons_take_time_in_proportion():
    row = "- {{id: a{0}, name: x, user: u, shape: slot/core, duration: 1, depends: singleton}}\n"
    given = read_jobs_yaml("".join(row.format(number) for number in range(4000)))
    before = process_time()
    found = starts(simulate(machine(nodes=8), given, "easy", allocations=False))
    assert found["a3999"] == 3999
    assert process_time() - before < 10  # it took 30 s
