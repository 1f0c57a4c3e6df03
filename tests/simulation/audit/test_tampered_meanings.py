"""A run directory is changed in one place, with its digests: the audit names the rule that is broken."""

from __future__ import annotations

import json
import re

import pytest

import simsched as ss
from simsched.simulation.audit.auditor import audit_run
from tests.simulation.audit.tampering import rewrite, sealed_again
from tests.simulation.simworld import job, machine, workload

ARRAY = [ss.job_array(job("t", 0, "slot=1/core", 5), "0-1")]


def licensed(name, submit):
    made = job(name, submit, "slot=1/core", 10)
    return ss.Job(
        id=name, submit=submit, jobspec=made.jobspec.with_system(licenses={"x": 1}), runtime=10, duration=10
    )


def preempting():
    queues = {"low": {}, "high": {"priority": 5, "preempts": True}}
    rules = {"by": "queue", "mode": "cancel", "grace": 5}
    jobs = [job("A", 0, "slot=4/node", 50, queue="low"), job("U", 4, "slot=1/node", 6, queue="high")]
    return jobs, {"queues": queues, "preemption": rules}


def failing(on_failure, **more):
    outages = [{"ranks": "0", "start": 5, "end": 9, "kind": "failure"}]
    return [job("A", 0, "slot=4/node", 20)], {"outages": outages, "on_failure": on_failure, **more}


def waiting(policy):
    jobs = [job("A", 0, "slot=3/node", 10), job("B", 1, "slot=4/node", 5), job("C", 2, "slot=1/node", 4)]
    return jobs, {"queue_policy": policy}


def chained():
    first = job("A", 0, "slot=1/core", 10)
    after = job("B", 0, "slot=1/core", 5, dependencies=(ss_dependency("afterok:A"),))
    return [first, after, *[task for tasks in ARRAY for task in tasks]], {}


def ss_dependency(text):
    from simsched.formats.rfc.dependency import Dependency

    return Dependency.parse(text)


def checkpointed():
    spec = job("A", 0, "slot=4/node", 30).jobspec.with_system(checkpoint={"interval": 4, "cost": 1})
    one = ss.Job(id="A", submit=0, jobspec=spec, runtime=30, duration=90)
    return [one], {"job_checkpoints": {}}


def meta(*path, to):
    """Change a value of ``run.json``."""

    def change(folder):
        document = json.loads((folder / "run.json").read_text())
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to
        (folder / "run.json").write_text(json.dumps(document))

    return change


def jobs(sql):
    return lambda folder: rewrite(folder / "jobs.parquet", f"UPDATE t SET {sql}")


def lines(pattern, text):
    def change(folder):
        path = folder / "allocations.jsonl"
        path.write_text(re.sub(pattern, text, path.read_text()))

    return change


CLOSED = {"queues": {"q": {"closed": [[0, 7]]}}}
TAMPERED = {
    "grace time": (preempting, meta("config", "preemption", "grace", to=9), "V1"),
    "epilog": (
        lambda: ([job("A", 0, "slot/node", 9)], {"epilog": 2}), meta("config", "epilog", to=[3, 4]), "A8"
    ),
    "closed queue": (
        lambda: ([job("A", 0, "slot/node", 9, queue="q")], CLOSED),
        meta("queue_stops", "q", to=[[0, 8]]),
        "A8",
    ),
    "on-failure fail": (lambda: failing("requeue"), meta("config", "on_failure", to="fail"), "A8"),
    "on-failure requeue": (lambda: failing("fail"), meta("config", "on_failure", to="requeue"), "A8"),
    "planned failure": (lambda: failing("requeue"), meta("config", "outages", to=[]), "A8"),
    "failure that failed a job": (lambda: failing("fail"), meta("config", "outages", to=[]), "A8"),
    "drawn failure": (
        lambda: ([job("A", 0, "slot=4/node", 60)], {"failures": "mtbf=100,mttr=5", "seed": 1}),
        lambda folder: rewrite(folder / "failures.parquet", "DELETE FROM t"),
        "A8",
    ),
    "licence": (
        lambda: ([licensed("A", 0), licensed("B", 1)], {"licenses": {"x": 2}}),
        lines(r'("/[^"]*x[0-9]*":)"1"', r'\1"0"'),
        "L2",
    ),
    "eligible later": (chained, jobs("eligible = eligible - 2 WHERE id = 'B'"), "A8"),
    "eligible earlier": (lambda: waiting("easy"), jobs("eligible = eligible + 1 WHERE id = 'B'"), "A8"),
    "promise removed": (lambda: waiting("conservative"), jobs("promised = NULL WHERE id = 'B'"), "P1"),
    "promise moved": (lambda: waiting("conservative"), jobs("promised = promised + 9 WHERE id = 'C'"), "P1"),
    "promise postponed": (lambda: waiting("conservative"), jobs("promised = 11 WHERE id = 'B'"), "P1"),
    "promise broken": (lambda: waiting("conservative"), jobs("promised = promised - 2 WHERE id = 'B'"), "P1"),
    **{
        f"backfilled under {policy}": (
            lambda policy=policy: waiting(policy), jobs("backfilled = NOT backfilled WHERE id = 'C'"), "A7"
        )
        for policy in ("easy", "conservative", "hybrid", "slack", "slurm")
    },
    "array_task": (chained, jobs("array_task = 't_9' WHERE id = 't_1'"), "A7"),
    "array_task removed": (chained, jobs("array_task = NULL WHERE id = 't_1'"), "A7"),
    "depends": (chained, jobs("depends = 'afterany:A' WHERE id = 'B'"), "A7"),
    "overhead": (checkpointed, jobs("overhead = overhead + 1"), "W1"),
}  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_tampered_with_is_found(name, tmp_path):
    story, change, rule = TAMPERED[name]
    given, options = story()
    cluster, given = machine(4, 4), workload(*given)
    path = ss.simulate(cluster, given, **options).save(tmp_path / "run")
    report = audit_run(path, cluster, given)
    assert report, str(report)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    change(path)
    assert before != {file.name: file.read_bytes() for file in path.iterdir()}
    sealed_again(path)
    found = audit_run(path, cluster, given)
    assert rule in found.counts, str(found)


def test_inputs_that_run_json_lacks_are_named(tmp_path, monkeypatch):
    from simsched.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["run", "tiny", "first-steps", "-o", "run", "--quiet"]) == 0
    assert main(["report", "run", "--audit"]) == 0
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    meta("inputs", to=document["inputs"][:1])(tmp_path / "run")
    sealed_again(tmp_path / "run")
    assert main(["report", "run", "--audit"]) == 1


def test_an_audit_that_compared_no_job_is_not_clean(tmp_path, monkeypatch, capsys):
    from simsched.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text("[{id: a, shape: slot/core, runtime: 9}]")
    assert main(["run", "tiny", "jobs.yaml", "-o", "run", "--quiet"]) == 0
    (tmp_path / "jobs.yaml").rename(tmp_path / "moved.yaml")
    capsys.readouterr()
    assert main(["report", "run", "--audit"]) == 1
    shown = capsys.readouterr().out
    assert "run: audit: not complete (" in shown
    assert "6 files were compared with their digests; jobs and allocations were not compared" in shown
    assert "jobs.yaml" in shown
    (tmp_path / "moved.yaml").rename(tmp_path / "jobs.yaml")
    assert main(["report", "run", "--audit"]) == 0


def test_an_audit_is_a_document(tmp_path, monkeypatch, capsys):
    from simsched.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["run", "tiny", "first-steps", "-o", "run", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["report", "run", "--audit", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["run"], found["result"], found["jobs"]) == ("run", "clean", 18)
    assert {row["law"] for row in found["checked"] if row["number"]} >= {"A1", "A5", "A7", "A8", "A9", "A10"}
    assert main(["report", "run", "--audit", "-o", "audit.json"]) == 0
    assert json.loads((tmp_path / "audit.json").read_text()) == [found]
    assert main(["report", "run", "--audit", "--format", "csv"]) == 2
    assert "there is no audit in the format csv" in capsys.readouterr().err
