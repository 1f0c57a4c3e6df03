"""Accounting files of Grid Engine and LSF, and the CSV of flux-fiction."""

from __future__ import annotations

import pytest

from simsched.errors import WorkloadError
from simsched.workload.job import Workload
from simsched.workload.load import detect, load_workload
from simsched.workload.readers.lsf import read_lsf
from simsched.workload.readers.sge import read_sge
from simsched.workload.save import WRITERS, losses, save_workload


def sge(
    number=7,
    task=0,
    submit=1000,
    start=1060,
    end=1660,
    failed="0",
    status=0,
    slots=16,
    pe_task="NONE",
    **rest,
):
    category = rest.get("category", "-l h_rt=3600,h_vmem=2G -pe mpi 16")
    usage = ":".join("0" for _ in range(18))
    times = f"{submit + 1400000000}:{start and start + 1400000000}:{end and end + 1400000000}"
    head = f"all.q:n01.example:staff:ada:bench.sh:{number}:sge:0:{times}:{failed}:{status}:600:{usage}"
    head = head[: head.rindex(":0")]  # fields 13 to 30
    tail = f"physics:defaultdepartment:mpi:{slots}:{task}:599.1:12.0:0.5:{category}:0.0:{pe_task}:1e9:0:0"
    return f"{head}:{tail}"


SGE = "\n".join([
    "# Version: 8.1.9", "#", "# DO NOT MODIFY THIS FILE MANUALLY!", "#",
    sge(),
    sge(number=8, task=3, submit=1010, category="-q all.q", slots=1, status=137, failed="100"),
    sge(number=9, submit=1020, failed="37", status=0, category="-l h_rt=1:00:00"),
    sge(number=10, submit=1030, start=0, end=0, failed="26 "),
    sge(submit=0, pe_task="1.n01"),
    "n01:short",
    sge(number=11, submit=1040, slots=0),
])  # fmt: skip


def test_grid_engine(tmp_path):
    path = tmp_path / "accounting"
    path.write_text(SGE)
    workload = load_workload(path)
    assert workload.kind == "sge"
    found = [(j.id, j.submit, j.wait, j.runtime, j.duration, j.procs, j.memory, j.status) for j in workload]
    assert found == [
        (7, 0, 60, 600, 3600, 16, 2 * 1024**2, "COMPLETED"),
        ("8.3", 10, 50, 600, None, 1, None, "FAILED"),
        (9, 20, 40, 600, 3600, 16, None, "TIMEOUT"),
    ]
    job = workload.jobs[0]
    assert (job.user, job.group, job.queue, job.bank, job.name) == (
        "ada",
        "staff",
        "all.q",
        "physics",
        "bench.sh",
    )
    assert workload.skipped_counts == {
        "never started": 1,
        "a task of a parallel job, not a job": 1,
        "not an accounting record": 1,
        "no processors": 1,
    }
    assert [skip.where for skip in workload.skipped] == ["accounting:8", "accounting:10", "accounting:11"]
    with pytest.raises(WorkloadError, match="never started"):
        load_workload(path, strict=True)


def test_a_line_that_is_not_utf_8_is_a_job_all_the_same(tmp_path):
    log = tmp_path / "accounting"
    text = f"{sge()}\n{sge(number=8)}\n".replace(":bench.sh:7:", ":Gr\xf6\xdfe:7:")
    log.write_bytes(text.encode("latin-1"))
    assert [(job.id, job.name) for job in load_workload(log)] == [(7, "Gr\ufffd\ufffde"), (8, "bench.sh")]


def test_univa_writes_milliseconds():
    line = sge().replace("1400001000:1400001060:1400001660", "1400001000250:1400001060500:1400001660500")
    (job,) = read_sge([line])
    assert (job.submit, job.wait, job.runtime) == (0.25, 60.25, 600)


def test_times_in_milliseconds_have_no_more_digits():
    line = sge().replace("1400001000:1400001060:1400001660", "1650000000123:1650000060456:1650003660789")
    assert read_sge([line]).jobs[0].runtime == 3600.333


def test_colons_in_a_category_and_further_resources():
    (job,) = read_sge([sge(category="-l h_rt=0:20:0,h_vmem=512M")])
    assert (job.duration, job.memory) == (1200, 524_288)


def lsf(number=101, index=0, submit=100, begin=0, start=160, end=760, status=64, **rest):
    hosts = rest.get("hosts", '4 "n1" "n1" "n2" "n2"')
    base = 1_700_000_000
    at = [base + t if t else 0 for t in (submit, begin, start, end)]
    head = (
        f'"JOB_FINISH" "10.1" {at[3]} {number} 5001 33554434 {rest.get("procs", 4)} {at[0]} {at[1]} 0 {at[2]}'
    )
    text = '"ada" "normal" "select[type==any]" "" "" "login1" "work/a b" "" "o.txt" "" "1700.123" 1 "n1"'
    usage = "1.5 0.2 1024 0 -1 0 0 10 0 0 8 16 -1 0 0 0 100 200 -1"
    name = rest.get("name", '"sim ""x"""')
    middle = f'"" "proj" 0 4 "/bin/bash" "" {index} 2048 4096 "" "" "" "" 0 "" {rest.get("info", 0)}'
    more = '"" 0 "" "" "app" "" 0 "/g" "" 1040 "" 0 "" "a ""b"" c"'
    tail = rest.get("tail", '1 "SCHED" "x y" 0 3600 1024 1000 "select[x]" "" 0')
    return f'{head} {text} {hosts} {status} 60.0 {name} "run it" {usage} {middle} {more} {tail}'


LSF = "\n".join([
    lsf(),
    lsf(number=102, index=5, submit=110, begin=150, status=32, info=5, hosts='2 "8*n1" "8*n2"', procs=16),
    lsf(number=103, submit=120, status=32, tail='0 2 "n1" 1 2 3 4 "n2" 1 2 3 4 7200 0 0 "" "" 0', name='"j"'),
    lsf(number=104, submit=130, start=0, status=32, hosts="0", tail=""),
    '"EVENT_ADRSV_FINISH" "10.1" 1700000500 1700000000 1700000400 1 "root" "rsv" 2 "n1" 4 "n2" 4 ""',
    '"JOB_FINISH" "10.1" 1700000500 105 5001',
    "hello",
])  # fmt: skip


def test_lsf(tmp_path):
    path = tmp_path / "lsb.acct"
    path.write_text(LSF)
    workload = load_workload(path)
    assert workload.kind == "lsf"
    found = [(j.id, j.submit, j.wait, j.runtime, j.duration, j.procs, j.nodes, j.status) for j in workload]
    assert found == [
        (101, 0, 60, 600, 3600, 4, 2, "COMPLETED"),
        ("102[5]", 10, 50, 600, 3600, 16, 2, "TIMEOUT"),
        (103, 20, 40, 600, 7200, 4, 2, "FAILED"),
    ]
    job, second, _ = workload
    assert (job.user, job.queue, job.bank, job.name) == ("ada", "normal", "proj", 'sim "x"')
    assert [str(item) for item in second.dependencies] == ["begin-time:50"]
    assert workload.skipped_counts == {
        "cancelled before it started": 1,
        "a record of the event EVENT_ADRSV_FINISH, not the end of a job": 1,
        "not an accounting record": 2,
    }
    with pytest.raises(WorkloadError, match="cancelled before it started"):
        load_workload(path, strict=True)


def test_a_record_of_an_older_lsf_has_no_limit():
    (job,) = read_lsf([lsf(tail="")])
    assert job.duration is None


@pytest.mark.parametrize("hosts", range(1, 8))
@pytest.mark.parametrize("usage", ["1306 0 1287486 242", "1306 0 1287486 242 0"])
def test_the_limit_of_an_lsf_job_is_behind_the_usage_on_its_hosts(hosts, usage):
    """Records of LSF 9.1 have a fifth number for each host, and options3 behind the limit."""
    used = " ".join(f"n{i} {usage}" for i in range(hosts))
    (job,) = read_lsf([lsf(tail=f'0 {hosts} {used} 43200 0 8688640 "select[poe>0] " "" -1')])
    assert job.duration == 43_200
    (free,) = read_lsf([lsf(tail=f'0 {hosts} {used} -1 4194304 86016 "select[type == any] " "" -1')])
    assert free.duration is None


UNLIMITED = '0 0 some 1024 1000 "" "" 0'


@pytest.mark.parametrize(
    ("read", "line", "notes"),
    [
        (read_sge, sge(category="-l h_rt=INFINITY,h_vmem=infinity"), []),
        (
            read_sge,
            sge(category="-u ada -l arch=lx,gpu=2,h_rt=60 -pe mpi 16"),
            ["arch=lx (accounting:1), gpu=2 (accounting:1): not used"],
        ),
        (
            read_sge,
            sge(category="-l h_rt=soon,h_vmem=2Q"),
            [
                "h_rt=soon (accounting:1): cannot be read: the job has no limit",
                "h_vmem=2Q (accounting:1): cannot be read: the job has no memory",
            ],
        ),
        (
            read_sge,
            sge(status="ok"),
            ["exit_status=ok (accounting:1): cannot be read: the job has no recorded result"],
        ),
        (read_lsf, lsf(tail=UNLIMITED), ["runLimit=some (lsb.acct:1): cannot be read: the job has no limit"]),
        (
            read_lsf,
            lsf(procs=9),
            ["numProcessors=9 (lsb.acct:1): but execHosts has 4 slots; the former counts"],
        ),
        (
            read_lsf,
            lsf(status=7),
            ["jStatus=7 (lsb.acct:1): neither 32 (EXIT) nor 64 (DONE), and counts as EXIT"],
        ),
    ],
)
def test_values_that_cannot_be_read_leave_notes(read, line, notes):
    workload = read([line])
    assert [note for note in workload.notes if "leave out" not in note] == notes


def test_records_with_damaged_numbers_are_not_taken_for_jobs_that_never_started():
    late = sge().replace("1400001060", "today")
    assert read_sge([late]).skipped_counts == {"a time that cannot be read": 1}
    damaged = [lsf().replace(str(1_700_000_160), "today"), lsf(procs="many")]
    assert read_lsf(damaged).skipped_counts == {"not an accounting record": 2}


@pytest.mark.parametrize(
    ("text", "kind"), [(SGE, "sge"), (sge(), "sge"), (LSF, "lsf"), ("# a comment\na: 1", "jobs")]
)
def test_accounting_files_are_recognised(text, kind):
    assert detect(text) == kind


def test_flux_fiction_is_written_and_read_again(tmp_path):
    text = """JobID,NNodes,NCPUS,Timelimit,Submit,Elapsed,NGPUS
1,1,36,00:10:00,2019-01-01T00:00:00,00:06:00,2
2,4,144,1-00:00:00,2019-01-01T00:00:30,12:00:01,0
"""
    (tmp_path / "trace.csv").write_text(text)
    for options in ({}, {"columns": "flux-fiction"}):
        workload = load_workload(tmp_path / "trace.csv", **options)
        assert save_workload(workload, tmp_path / "again.csv", to="flux-fiction") == "flux-fiction"
        assert (tmp_path / "again.csv").read_text() == text


@pytest.mark.parametrize("kind", [*WRITERS])
def test_only_our_own_formats_hold_arrays_and_job_objects_hold_qos_too(kind):
    workload = Workload([{"id": "a", "shape": "core", "runtime": 5, "qos": "high", "array": "0-1"}])
    found = {"qos", "array_task"} & {*losses(workload, kind)}
    kept = {"jobs": {"qos", "array_task"}, "jsonl": {"qos", "array_task"}, "sss": {"qos"}}
    assert found == {"qos", "array_task"} - kept.get(kind, set())


def test_flux_fiction_needs_nodes_limits_and_time(tmp_path):
    (tmp_path / "jobs.yaml").write_text(
        "- {shape: 'slot=2/[core=4;gpu]', runtime: 0, user: ada}\n- {shape: node=3/slot/core, duration: 1h}\n"
    )
    workload = load_workload(tmp_path / "jobs.yaml")
    save_workload(workload, tmp_path / "t.csv", to="flux-fiction")
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == [
        "1,1,8,00:00:01,2024-01-01T00:00:00,00:00:01,2",
        "2,3,3,01:00:00,2024-01-01T00:00:00,01:00:00,0",
    ]
    assert losses(workload, "flux-fiction") == ["user"]
