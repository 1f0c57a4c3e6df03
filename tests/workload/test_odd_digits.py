"""Texts in the place of a number: digits that `int` does not read, and more digits than it reads."""

from __future__ import annotations

import pytest

from simsched.workload.describe import describe
from simsched.workload.load import load_workload
from simsched.workload.models.log_fit import fit_log
from simsched.workload.save import save_workload
from tests.workload.readers.test_accounting import sge

ODD = ["²", "--5", "9" * 5000]
RECORD = "{0} {1} 0 100 1 -1 -1 1 900 -1 1 1 1 1 1 -1 -1 -1"
SACCT = """JobID|Submit|Start|End|ElapsedRaw|State|NCPUS
{}|2024-03-01T00:00:00|2024-03-01T00:00:10|2024-03-01T01:00:10|3600|COMPLETED|4
"""


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("key", ["MaxProcs", "TimeZone", "UnixStartTime", "Queue"])
def test_the_header_of_swf(tmp_path, key, odd):
    log = tmp_path / "log.swf"
    log.write_text(f"; {key}: {odd} x\n" + "\n".join(RECORD.format(i, i * 20_000) for i in range(1, 400)))
    workload = load_workload(log)
    summary = describe(workload)
    assert (summary["jobs"], summary["capacity"]) == (399, None)
    assert "MaxProcs" not in fit_log(workload).header
    assert save_workload(workload, tmp_path / "log.json", to="batsim")


@pytest.mark.parametrize("id_", [f"1+{odd}" for odd in ODD] + [f"1_{odd}" for odd in ODD])
def test_the_id_of_a_job_of_sacct(tmp_path, id_):
    log = tmp_path / "log.sacct"
    log.write_text(SACCT.format(id_))
    assert [job.runtime for job in load_workload(log).jobs] == [3600]


@pytest.mark.parametrize("odd", ODD)
def test_the_limit_of_an_array_of_sacct(tmp_path, odd):
    log = tmp_path / "log.sacct"
    log.write_text(SACCT.format("1_7") + SACCT.splitlines()[1].format(f"1_[8-9%{odd}]"))
    assert [job.array_task.limit for job in load_workload(log).jobs if job.array_task] == [None]


@pytest.mark.parametrize("odd", ODD)
def test_the_gpus_of_a_record_with_a_descriptor(tmp_path, odd):
    log = tmp_path / "log.swf"
    log.write_text(f"; Version: 2.2\n{RECORD.format(1, 0)} {odd} x:y:2x56\n")
    assert [(job.nodes, job.procs) for job in load_workload(log).jobs] == [(2, 112)]


def test_zeros_before_the_id_of_a_job_of_gwf(tmp_path):
    log, zeros = tmp_path / "log.gwf", "0" * 5000
    log.write_text(f"{zeros}1 1000 5 100 4 -1 -1 4 200 -1 1 u g e q p s t UNITARY {'-1 ' * 10}\n")
    assert [job.id for job in load_workload(log).jobs] == [f"{zeros}1"]


@pytest.mark.parametrize("odd", ODD)
def test_the_number_of_a_job_of_grid_engine(tmp_path, odd):
    log = tmp_path / "accounting"
    log.write_text(f"{sge()}\n{sge(number=odd)}\n")
    workload = load_workload(log)
    assert [job.id for job in workload.jobs] == [7]
    assert len(workload.skipped) == 1
