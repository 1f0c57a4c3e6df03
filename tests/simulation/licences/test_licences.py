"""Licences: by hand, against a schedule that counts them by itself, and in random audited runs."""

from __future__ import annotations

import json
import random
import re

import pytest

from simsched import load_run
from simsched.errors import SimschedError
from simsched.report.waiting.job_wait import why
from simsched.simulation.audit.auditor import audit_run
from simsched.workload.job import Job
from tests.simulation.simworld import job, machine, results, run, starts


def licensed(name, at, shape, runtime, licences, limit=None, **more):
    made = job(name, at, shape, runtime, limit, **more)
    fields = {field: getattr(made, field) for field in made.__struct_fields__}
    return Job(**{**fields, "jobspec": made.jobspec.with_system(licenses=licences)})


def story(**options):
    return run(
        machine(4),
        licensed("A", 0, "slot=1/core", 10, {"matlab": 2}),
        licensed("B", 1, "slot=2/core", 5, "matlab"),
        job("C", 1, "slot=1/core", 9),
        licensed("D", 2, "slot=1/core", 20, "matlab:1"),
        licensed("E", 3, "slot=1/core", 3, "ansys, matlab:0"),
        **options,
    )


def test_the_shadow_time_knows_licences():
    """B waits for the licence until 10. C and E do not need it; D finds one left beside B."""
    found = story(licenses={"matlab": 2, "ansys": 1})
    assert starts(found) == {"A": 0, "B": 10, "C": 1, "D": 10, "E": 3}
    assert found.timeline["used_matlab"].max() == 2


def test_without_a_table_licences_are_not_counted():
    assert starts(story()) == {"A": 0, "B": 1, "C": 1, "D": 6, "E": 6}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "hybrid", "slurm"])
def test_a_candidate_may_not_take_the_licence_of_the_first_job(policy):
    """B needs both licences at 10. C would take one until 21, though there are nodes for both."""
    found = run(
        machine(9),
        licensed("A", 0, "slot=1/core", 10, "x:1"),
        licensed("B", 1, "slot=1/core", 5, "x:2"),
        licensed("C", 1, "slot=1/core", 20, "x:1"),
        policy=policy,
        licenses={"x": 2},
    )
    assert starts(found)["B"] == 10
    assert starts(found)["C"] == 15


def test_more_than_there_are():
    found = run(
        machine(2),
        licensed("A", 0, "slot=1/core", 10, "x:3"),
        licensed("B", 0, "slot=1/core", 10, "xx"),
        licenses={"x": 2},
    )
    assert set(results(found).values()) == {"INFEASIBLE"}
    assert list(found.jobs["reason"]) == [
        "requests 3 of the licence 'x'; there are 2",
        "requests 1 of the licence 'xx'; there is no licence 'xx'; did you mean x?",
    ]


def fcfs_by_hand(jobs, cores, licences):
    """Start times of FCFS for jobs (id, submit, cores, seconds, licences), by counting alone."""
    running, clock, found = [], 0, {}
    for name, submit, need, seconds, wanted in jobs:
        clock = max(clock, submit)
        while True:
            running = [one for one in running if one[0] > clock]
            if sum(one[1] for one in running) + need <= cores and (
                sum(one[2] for one in running) + wanted <= licences
            ):
                break
            clock = min(one[0] for one in running)
        running.append((clock + seconds, need, wanted))
        found[name] = clock
    return found


@pytest.mark.parametrize("seed", range(5))
def test_fcfs_against_counting(seed):
    rng = random.Random(seed)
    rows = sorted((rng.randint(0, 200), n) for n in range(80))
    rows = [(n, at, rng.randint(1, 4), rng.randint(1, 20), rng.randint(0, 3)) for at, n in rows]
    jobs = [
        licensed(n, at, f"slot={cores}/core", seconds, f"x:{wanted}" if wanted else "")
        for n, at, cores, seconds, wanted in rows
    ]
    found = run(machine(8), *jobs, policy="fcfs", licenses={"x": 4})
    assert starts(found) == fcfs_by_hand([(str(row[0]), *row[1:]) for row in rows], 8, 4)


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", ["easy", "conservative", "hybrid", "slurm", "selective", "slack"])
def test_random_runs_are_clean(tmp_path, policy):
    rng = random.Random(policy)
    shapes = ("slot=2/core=1", "slot=1/[core=2;gpu]", "slot=1/node", "slot=3/node")
    cluster = machine(4, cores=2, gpus=1)
    jobs = []
    for number in range(60):
        wanted = rng.choice(["", "x", "x:3", "y:2", "x:2,y:1"])
        length = rng.randint(1, 20)
        jobs.append(licensed(number, rng.randint(0, 90), rng.choice(shapes), length, wanted, length + 3))
    found = run(cluster, *jobs, policy=policy, licenses="x:4,y:2")
    report = audit_run(found.save(tmp_path / "run"), cluster, found.workload)
    assert report, str(report)
    assert set(results(found).values()) == {"COMPLETED"}


def test_the_audit_finds_too_many_licences(tmp_path):
    found = story(licenses={"matlab": 3})
    folder = found.save(tmp_path / "run")
    meta = json.loads((folder / "run.json").read_text())
    meta["config"]["licenses"]["matlab"] = 1
    (folder / "run.json").write_text(json.dumps(meta))
    assert "2 of the licence 'matlab' are in use, there are 1" in str(
        audit_run(folder, machine(4), found.workload)
    )


def test_why_a_job_waits_for_a_licence(tmp_path):
    found = story(licenses={"matlab": 2, "ansys": 1})
    text = str(why(load_run(found.save(tmp_path / "run")), "B", machine(4), found.workload))
    assert "matlab" in text


def test_licences_of_sss_documents_are_the_same():
    """A top-level vertex of type License has the name of the licence as its id."""
    from simsched.formats.jobspec.jobspec import Jobspec

    document = Jobspec.from_shape("slot=1/core", duration=10).to_dict()
    document["resources"].append({"type": "License", "count": 1, "id": "x"})
    document["version"] = 9999
    spec = Jobspec.from_dict(document)
    jobs = [Job(id=n, submit=n, jobspec=spec, runtime=10, duration=10) for n in range(2)]
    assert starts(run(machine(2), *jobs, licenses={"x": 1})) == {"0": 0, "1": 10}


@pytest.mark.parametrize(
    ("licences", "message"),
    [
        ({"x": -1}, "licenses.x: -1 is not a number of licences"),
        ({"x": "many"}, "licenses.x: 'many' is not a number of licences"),
        ({"core": 3}, "licenses: 'core' is not a name of a licence"),
        ({"a b": 3}, "licenses: 'a b' is not a name of a licence"),
        ("x:1,x:2", "licenses: the licence 'x' is given twice"),
        (3, "licenses: not a table of licences"),
    ],
)
def test_wrong_tables(licences, message):
    with pytest.raises(SimschedError, match=re.escape(message)):
        run(machine(1), job("A", 0, "slot=1/core", 1), licenses=licences)


def test_a_wrong_attribute_names_the_job():
    with pytest.raises(SimschedError, match=r"job A: attributes.system.licenses.x: 1.5"):
        run(machine(1), licensed("A", 0, "slot=1/core", 1, {"x": 1.5}), licenses={"x": 1})


def test_an_open_simulation_counts_licences():
    from simsched import Simulation

    simulation = Simulation(machine(2), licenses={"x": 1})
    first, second, third = [
        simulation.submit(licensed(n, 0, "slot=1/core", 10, wanted).jobspec, runtime=10)
        for n, wanted in enumerate(["x", "x", "x:2"])
    ]
    simulation.run()
    assert (first.start, second.start) == (0, 10)
    assert third.result == "INFEASIBLE"
