"""Values of a wrong type in single records of JSON logs, and states that Slurm does not have."""

from __future__ import annotations

import json

import pytest

from simsched.errors import FormatError, WorkloadError
from simsched.workload.load import load_workload


def flux_job(number, **changes):
    job = {"id": number, "t_submit": 100.0, "t_run": 200.0, "t_cleanup": 300.0, "ncores": 4, "nnodes": 1}
    return {**job, "duration": 600.0, "username": "a", "result": "COMPLETED", **changes}


FLUX = [
    flux_job(1),
    flux_job(2, t_run="soon"),
    flux_job(3, ncores=-4),
    flux_job(4, urgency="high", nnodes=1.5),
    {"name": "no id"},
    flux_job(6, duration="1h"),
]


@pytest.fixture(params=["document", "lines"])
def flux_log(request, tmp_path):
    path = tmp_path / "jobs.json"
    whole = request.param == "document"
    path.write_text(json.dumps({"jobs": FLUX}) if whole else "\n".join(map(json.dumps, FLUX)))
    return path


def test_a_bad_value_leaves_out_one_record_of_a_flux_log(flux_log):
    found = load_workload(flux_log, as_="flux")
    assert [job.id for job in found.jobs] == [1, 4]
    assert found.skipped_counts == {
        "t_run is not a number of seconds": 1,
        "ncores is not a whole number": 1,
        "duration is not a number of seconds": 1,
        "not an object with an id": 1,
    }
    assert "t_run='soon'" in {skip.text for skip in found.skipped}


def test_counts_that_a_job_can_do_without_are_left_out_and_counted(flux_log):
    found = load_workload(flux_log, as_="flux")
    assert "values that are not numbers are left out: nnodes (1), urgency (1)" in found.notes
    assert (found.jobs[1].nodes, found.jobs[1].urgency) == (None, 16)


def test_strict_refuses_the_first_bad_record(flux_log):
    with pytest.raises(WorkloadError, match="record refused: t_run is not a number of seconds"):
        load_workload(flux_log, as_="flux", strict=True)


def test_a_line_that_is_cut_short_is_one_record(tmp_path):
    (tmp_path / "jobs.json").write_text(json.dumps(FLUX[0]) + '\n{"id": 9, "t_sub')
    found = load_workload(tmp_path / "jobs.json", as_="flux")
    assert (len(found.jobs), dict(found.skipped_counts)) == (1, {"a line that is not JSON": 1})


def slurm_job(number, **changes):
    times = {"submission": 100, "start": 200, "end": 300, "elapsed": 100, "limit": 5}
    job = {"job_id": number, "time": times, "state": {"current": ["COMPLETED"]}}
    return {**job, "tres": {"allocated": [{"type": "cpu", "count": 4}]}, **changes}


def test_a_value_of_a_wrong_type_leaves_out_one_job_of_sacct_json(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"jobs": [slurm_job(1), slurm_job("two"), slurm_job(3)]}))
    found = load_workload(path)
    assert [job.id for job in found.jobs] == [1, 3]
    assert found.skipped_counts == {"a value that is not of its type": 1}
    assert found.skipped[0].where.endswith("jobs[1]")
    assert "job_id" in found.skipped[0].text


def test_a_document_without_any_readable_job_is_refused(tmp_path):
    (tmp_path / "log.json").write_text(json.dumps({"jobs": [slurm_job("one"), slurm_job("two")]}))
    with pytest.raises(FormatError, match="job_id"):
        load_workload(tmp_path / "log.json", as_="sacct-json")


def test_states_that_slurm_does_not_have_are_a_note(tmp_path):
    rows = [f"{n}|{state}|2026-03-02T08:00:00|2026-03-02T08:05:00|60|1" for n, state in
            enumerate(["WEIRD", "COMPLETED", "WEIRD", "CANCELLED by 7", ""], 1)]  # fmt: skip
    (tmp_path / "log.sacct").write_text("\n".join(["JobID|State|Submit|Start|ElapsedRaw|ReqCPUS", *rows]))
    found = load_workload(tmp_path / "log.sacct")
    assert [job.status for job in found.jobs] == [None, "COMPLETED", None, "CANCELED", None]
    assert found.notes[0].endswith("so that the jobs have no recorded result: 'WEIRD' (2)")


@pytest.mark.parametrize(
    "log",
    [
        "JobID|Submit|Start|End|State|NCPUS\n{}|2024-03-01T00:00:00|2024-03-01T00:00:10|2024-03-01T01:00:10|COMPLETED|4\n",
        "04/01/2024 10:00:00;E;{};qtime=1711965600 start=1711966000 end=1711967000 Resource_List.ncpus=4\n",
        '{{"jobs": [{{"id": "{}", "t_submit": 1, "t_run": 2, "t_cleanup": 3, "ncores": 4}}]}}',
    ],
    ids=["sacct", "pbs", "flux"],
)
def test_a_record_without_an_id_is_left_out(tmp_path, log):
    path = tmp_path / "log"
    for id_, counts in (("7", {}), ("", {"no job id": 1})):
        path.write_text(log.format(id_))
        assert load_workload(path).skipped_counts == counts
