"""The audit states what it compared, and calls a run clean only if nothing was left out.

It repeats no fault of the run: its definitions of limits, events and checkpoints are its own.
"""

from __future__ import annotations

import json

import pytest

from simsched.errors import RunError
from simsched.simulation.audit.audit_report import LAWS
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.jobs import lifecycle
from simsched.simulation.limits import limit_counters
from tests.simulation.audit.tampering import audited, recorded, rewrite
from tests.simulation.simworld import job, machine, run

MACHINE = machine(4, cores=4)
JOBS = (job("A", 0, "slot=3/node", 10), job("B", 1, "slot=4/node", 5), job("C", 2, "slot=1/node", 4))


def numbers(report):
    return {f"{law} {of}": number for (law, of), number in report.checked.items() if number}


def test_what_was_checked_is_stated_in_numbers(tmp_path):
    result = run(MACHINE, *JOBS, limits=[{"nodes": 4}], eventlog=True)
    report = audit_run(result.save(tmp_path / "run"), MACHINE, result.workload)
    assert report.verdict == "clean"
    found = numbers(report)
    assert found["A1 lines"] == 6
    assert found["A5 requests"] == found["A8 starts"] == found["L1 starts under a limit"] == 3
    assert found["A9 nodes"] == 4
    assert found["A9 events"] == 30
    text = " ".join(str(report).split())
    assert "audit: checked A1 6 lines; A2 3 R documents;" in text
    assert "nothing to check for A6, L2, P1, R1, R2, V1, V2, W1" in text
    document = json.loads(json.dumps(report.to_dict()))
    assert document["result"] == "clean"
    assert {"law": "A1", "of": "lines", "number": 6} in document["checked"]
    assert {row["law"] for row in document["checked"]} <= set(LAWS)
    assert document["faults"] == document["not_checked"] == []


def test_a_fault_is_counted_beside_what_was_checked(tmp_path):
    result = run(MACHINE, *JOBS)
    lines, rows = recorded(result)
    for row in rows:
        row["runtime"] += 1
    report = audited(result, MACHINE, tmp_path, lines, rows)
    assert report.verdict == "3 faults"
    document = report.to_dict()
    assert document["fault_counts"] == {"A7": 3}
    assert document["faults"][0]["text"].startswith("the table has a run time of 11 s")


@pytest.mark.parametrize(
    ("shape", "options", "note"),
    [
        ("core=2", {}, "requests share units, and R does not tell which"),
        ("slot/core", {"epilog": 2}, "in an epilog they are those of no job"),
    ],
)
def test_a_run_of_which_something_could_not_be_compared_is_not_called_clean(tmp_path, shape, options, note):
    report = audited(run(MACHINE, job("A", 0, shape, 5), **options), MACHINE, tmp_path)
    assert report
    assert report.verdict == "no faults, but not all was checked"
    assert [one for one in report.notes if note in one]
    assert report.to_dict()["not_checked"] == report.notes


def test_a_table_that_is_gone_is_named(tmp_path):
    result = run(MACHINE, *JOBS)
    path = result.save(tmp_path / "run")
    (path / "timeline.parquet").unlink()
    report = audit_run(path, MACHINE, result.workload)
    assert report.counts == {"A10": 1}
    assert report.notes == ["there is no timeline.parquet, so it was not compared"]


def test_a_request_with_too_many_counts_is_named(tmp_path):
    """No combination of the first 16,384 fits 1 core of the last part: the answer is not known."""
    cluster = machine(1, cores=200, gpus=200)
    shape = "[slot=1-199{a}/core;slot=1-199{b}/gpu]"
    result = run(cluster, job("A", 0, shape, 5))
    lines, rows = recorded(result)
    for line in lines:
        line["R"]["execution"]["R_lite"][0]["children"] = {"core": "0-198", "gpu": "0-198"}
    report = audited(result, cluster, tmp_path, lines, rows)
    assert "1 requests have too many possible counts to be compared with their R" in report.notes
    assert "A5" not in report.counts


def test_a_limit_that_the_run_forgets_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(limit_counters, "limits_on", lambda rules, names: iter(()))
    result = run(MACHINE, *(job(name, 0, "slot=1/core", 9, user="u") for name in "AB"),
                 limits=[{"each": "user", "running-jobs": 1}])  # fmt: skip
    assert set(result.jobs["start"]) == {0}
    report = audited(result, MACHINE, tmp_path)
    assert "L1 job B: starts at 0, and running-jobs of user u is 2, of 1 allowed" in str(report)


def test_an_event_that_the_run_takes_for_possible_is_found(tmp_path, monkeypatch):
    result = run(MACHINE, *JOBS, eventlog=True)
    path = result.save(tmp_path / "run")
    lines = (path / "eventlog.jsonl").read_text().splitlines(keepends=True)
    wrong = [line for line in lines if '"validate"' not in line]
    (path / "eventlog.jsonl").write_text("".join(wrong))
    monkeypatch.setitem(
        lifecycle.TRANSITIONS, (lifecycle.JobState.NEW, "depend"), lifecycle.JobState.PRIORITY
    )
    report = audit_run(path, MACHINE, result.workload)
    assert "event 'depend' cannot happen in state NEW" in str(report)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ALTER start TYPE VARCHAR USING 'soon'",
        "ALTER TABLE t ALTER nodes TYPE VARCHAR[] USING ['many']",
    ],
)
def test_a_table_with_values_of_another_type_is_one_message(tmp_path, change):
    result = run(MACHINE, *JOBS)
    path = result.save(tmp_path / "run")
    rewrite(path / "jobs.parquet", change)
    with pytest.raises(RunError, match="a table cannot be compared: ") as error:
        audit_run(path, MACHINE, result.workload)
    assert "\n" not in str(error.value)
