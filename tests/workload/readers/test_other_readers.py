"""Flux, Batsim and PBS logs."""

from __future__ import annotations

import json
import re
import tarfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simsched.errors import SimschedError, WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.graph.cluster import load_cluster
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job, Skips, assemble, demand
from simsched.workload.load import detect, load_workload
from simsched.workload.mapping import ReadOptions
from simsched.workload.readers.batsim import read_batsim, write_batsim, write_batsim4
from simsched.workload.readers.flux_jobs import read_flux_folder, read_flux_jobs
from simsched.workload.readers.pbs import flat_of, read_pbs
from simsched.workload.readers.sacct import read_sacct
from simsched.workload.readers.slurm_json import read_sacct_json
from simsched.workload.readers.swf import read_swf
from simsched.workload.save import write_sacct, write_swf
from simsched.workload.transforms.transforms import rebase

# ------------------------------------------------------------ flux jobs --json

FLUX = {
    "id": 1068541739008,
    "userid": 1001,
    "username": "ann",
    "urgency": 20,
    "priority": 20,
    "t_submit": 1700000000.25,
    "t_depend": 1700000000.3,
    "t_run": 1700000010.25,
    "t_cleanup": 1700000070.75,
    "t_inactive": 1700000071.0,
    "state": "INACTIVE",
    "name": "sim",
    "queue": "batch",
    "ntasks": 8,
    "ncores": 16,
    "nnodes": 2,
    "duration": 3600.0,
    "nodelist": "node[1-2]",
    "ranks": "1-2",
    "result": "COMPLETED",
    "bank": "phys",
}


def flux(*jobs, **options):
    text = json.dumps({"jobs": [{k: v for k, v in {**FLUX, **job}.items() if v is not None} for job in jobs]})
    return read_flux_jobs(text, ReadOptions(source="f.json", **options))


def test_a_flux_job():
    (job,) = flux({}).jobs
    assert (job.id, job.submit, job.wait, job.runtime, job.duration) == (1068541739008, 0.25, 10, 60.5, 3600)
    assert (job.user, job.queue, job.bank, job.urgency, job.status) == (
        "ann",
        "batch",
        "phys",
        20,
        "COMPLETED",
    )
    assert (job.procs, job.nodes, job.jobspec.to_shape()) == (16, 2, "slot=16/core")
    assert job.nodelist == "node[1-2]"
    shape = flux({}, maps="node={nodes}/slot/core={ppn}").jobs[0].jobspec.to_shape()
    assert shape == "node=2/slot/core=8"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"t_run": None, "result": "CANCELED"}, "cancelled before it started"),
        ({"t_run": None, "result": None, "state": "SCHED"}, "never started"),
        ({"t_cleanup": None, "t_inactive": None, "state": "RUN"}, "still running when the log was taken"),
        ({"t_submit": None}, "no submit time"),
        ({"ncores": None, "ntasks": None}, "no processors"),
    ],
)
def test_flux_jobs_that_are_left_out(changes, reason):
    workload = flux({}, {"id": 2, **changes})
    assert [(s.where, s.reason, s.id) for s in workload.skipped] == [("f.json: jobs[1]", reason, 2)]


def test_unset_keys_are_no_fault():
    (job,) = flux({"ncores": None, "queue": None, "duration": 0, "username": None, "bank": None}).jobs
    assert (job.procs, job.queue, job.duration, job.user) == (8, None, None, "1001")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": 1.5}, r"f.json: jobs\[0\]: record refused: not an object with an id"),
        ({"t_run": "soon"}, r"jobs\[0\]: record refused: t_run is not a number of seconds"),
        ({"ncores": -1}, "ncores is not a whole number"),
    ],
)
def test_flux_faults_have_a_place(changes, message):
    with pytest.raises(WorkloadError, match=message):
        flux(changes, strict=True)


def test_flux_forms_and_detection(tmp_path):
    lines = "\n".join(json.dumps({**FLUX, "id": number}) for number in (1, 2))
    (tmp_path / "lines").write_text(lines)
    (tmp_path / "one").write_text(json.dumps(FLUX))
    (tmp_path / "doc").write_text(json.dumps({"jobs": [FLUX]}, indent=2))
    assert [len(load_workload(tmp_path / name)) for name in ("lines", "one", "doc")] == [2, 1, 1]
    with pytest.raises(WorkloadError, match="the list of jobs is missing"):
        read_flux_jobs('{"jobs": 3}')


# ------------------------------------------------------------ a folder of jobs


def put(folder, number, events, shape="slot=2/core", **documents):
    job = folder / str(number)
    job.mkdir(parents=True)
    (job / "jobspec").write_text(
        json.dumps(Jobspec.from_shape(shape, duration=60, queue="q", name="n").to_dict())
    )
    lines = [
        {"timestamp": at, "name": name, **({"context": context} if context else {})}
        for at, name, context in events
    ]
    (job / "eventlog").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, text in documents.items():
        (job / name).write_text(text)


SUBMIT = (100.0, "submit", {"userid": 5, "urgency": 18, "flags": 0, "version": 1})
R_LITE = [{"rank": "0-1", "children": {"core": "0"}}]
R = json.dumps({"version": 1, "execution": {"R_lite": R_LITE, "nodelist": ["n[0-1]"]}})


def test_a_folder_of_jobs(tmp_path):
    put(tmp_path, 1, [SUBMIT, (110, "start", None), (150, "finish", {"status": 0})], R=R)
    put(tmp_path, 2, [SUBMIT, (120, "start", None), (130, "finish", {"status": 256})])
    put(tmp_path, 10, [SUBMIT, (101, "exception", {"type": "cancel", "severity": 0})])
    put(tmp_path, 11, [SUBMIT, (120, "start", None)])
    put(
        tmp_path,
        12,
        [
            SUBMIT,
            (120, "start", None),
            (180, "exception", {"type": "timeout", "severity": 0}),
            (181, "finish", {"status": 9}),
        ],
    )
    (tmp_path / "13").mkdir()
    (tmp_path / "13" / "eventlog").write_text("")
    workload = load_workload(tmp_path)
    assert [(j.id, j.submit, j.wait, j.runtime, j.status) for j in workload] == [
        (1, 0, 10, 40, "COMPLETED"),
        (2, 0, 20, 10, "FAILED"),
        (12, 0, 20, 61, "TIMEOUT"),
    ]
    assert [(s.id, s.reason) for s in workload.skipped] == [
        (10, "cancelled before it started"),
        (11, "still running when the log was taken"),
        (None, "no jobspec"),
    ]
    first = workload.jobs[0]
    assert (first.user, first.urgency, first.queue, first.name, first.duration) == ("5", 18, "q", "n", 60)
    assert (first.procs, first.nodes, workload.jobs[1].procs) == (2, 2, None)
    assert workload.jobs[0].jobspec is workload.jobs[1].jobspec


@pytest.mark.parametrize("root", ["", "job"])
@pytest.mark.parametrize("given", ["", "job"])
def test_a_dump_of_the_kvs_keeps_its_nesting(tmp_path, root, given):
    """Ids are the four parts of the path in hexadecimal; the rest of a KVS is passed over."""
    if given and not root:
        pytest.skip("there is no such folder")
    events = [SUBMIT, (110, "start", None), (150, "finish", {"status": 0})]
    ids = (0x0000_0001_00AB_0000, 0x0000_0002_0000_0001, 1068541739008)
    for number in ids:
        digits = f"{number:016x}"
        put(tmp_path / root, "/".join(digits[at : at + 4] for at in range(0, 16, 4)), events, R=R)
    put(tmp_path / root, "0000/0003/0000/0000", [SUBMIT])
    (tmp_path / "resource" / "eventlog").mkdir(parents=True)
    workload = load_workload(tmp_path / given)
    assert sorted(job.id for job in workload) == sorted(ids)
    assert workload.skipped_counts == {"never started": 1}


@pytest.mark.parametrize("ending", ["tar", "tgz", "dump"])
def test_an_archive_of_the_kvs_is_read_as_it_is(tmp_path, ending):
    """``flux dump`` writes a tar archive; keys of other services are passed over."""
    events = [SUBMIT, (110, "start", None), (150, "finish", {"status": 0})]
    put(tmp_path / "kvs" / "job", "0000/0000/00ab/0000", events, R=R)
    (tmp_path / "kvs" / "resource").mkdir()
    (tmp_path / "kvs" / "resource" / "eventlog").write_text("")
    path = tmp_path / f"kvs.{ending}"
    with tarfile.open(path, "w:gz" if ending == "tgz" else "w") as archive:
        archive.add(tmp_path / "kvs" / "job", "job")
        archive.add(tmp_path / "kvs" / "resource" / "eventlog", "../../escaped/eventlog")
    assert [job.id for job in load_workload(path)] == [0x00AB_0000]
    assert not list(tmp_path.parent.glob("escaped"))
    path.write_bytes(path.read_bytes()[: 100 if ending == "tgz" else 700])
    with pytest.raises(SimschedError, match=rf"kvs\.{ending}"):
        load_workload(path)


def test_faults_in_an_archive_name_the_archive(tmp_path):
    put(tmp_path / "kvs", 1, [SUBMIT, (110, "start", None), (150, "finish", {"status": 0})])
    put(tmp_path / "kvs", 2, [SUBMIT])
    (tmp_path / "kvs" / "2" / "jobspec").write_text("{}")
    (tmp_path / "none").mkdir()
    for name in ("kvs", "none"):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            archive.add(tmp_path / name, "job")
    (skip,) = load_workload(tmp_path / "kvs.tar").skipped
    assert skip.text.startswith("kvs.tar/job/2/jobspec:1:1: ")
    with pytest.raises(WorkloadError, match=r"/none\.tar: there is no job"):
        load_workload(tmp_path / "none.tar")


def test_faults_in_a_folder_name_the_file(tmp_path):
    with pytest.raises(WorkloadError, match="no job in this folder"):
        read_flux_folder(tmp_path)
    for number in range(1, 5):
        put(tmp_path, number, [SUBMIT, (110, "start", None), (150, "finish", {"status": 0})])
    (tmp_path / "1" / "eventlog").write_text('{"timestamp": 1, "name": "submit"}\nnonsense\n')
    (tmp_path / "2" / "jobspec").write_text("{}")
    (tmp_path / "3" / "R").write_text("[]")
    workload = load_workload(tmp_path)
    assert [job.id for job in workload] == [4]
    assert workload.skipped_counts == {"a document that cannot be read": 3}
    assert [(s.id, file in s.text) for s, file in zip(workload.skipped, FILES, strict=True)] == [
        (1, True),
        (2, True),
        (3, True),
    ]
    with pytest.raises(WorkloadError, match="a document that cannot be read"):
        load_workload(tmp_path, strict=True)


FILES = ("1/eventlog:2", "2/jobspec", "3/R")


# ------------------------------------------------------------ Batsim

BATSIM = {
    "nb_res": 4,
    "jobs": [
        {"id": "a", "subtime": 10, "res": 2, "profile": "short", "walltime": 100},
        {"id": 2, "subtime": 0.5, "res": 4, "profile": "short"},
    ],
    "profiles": {
        "short": {"type": "delay", "delay": 7.5},
        "mpi": {"type": "parallel_homogeneous", "cpu": 1, "com": 0},
        "five": {"type": "DelayProfile", "delay": 20.25},
        "sequence": {"type": "SequentialCompositionProfile", "repeat": 4, "seq": ["short", "five", "short"]},
        "nested": {"type": "composed", "nb": 2, "seq": ["sequence", "five"]},
        "itself": {"type": "composed", "seq": ["short", "itself"]},
        "mixed": {"type": "SequentialCompositionProfile", "seq": ["short", "mpi"]},
        "endless": {"type": "composed", "repeat": 10**15, "seq": ["short"]},
    },
}


def batsim(*jobs, **options):
    return read_batsim(
        json.dumps({**BATSIM, "jobs": [{**BATSIM["jobs"][0], **job} for job in jobs]}),
        ReadOptions(source="b", **options),
    )


def test_a_batsim_workload():
    workload = read_batsim(json.dumps(BATSIM))
    assert [(j.id, j.submit, j.procs, j.runtime, j.duration) for j in workload] == [
        (2, 0.5, 4, 7.5, None),
        ("a", 10, 2, 7.5, 100),
    ]
    assert workload.header == {"MaxProcs": "4"}
    assert detect(json.dumps(BATSIM)) == "batsim"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"profile": "none"}, "a profile that is not there"),
        ({"profile": "mpi"}, "a profile of type 'parallel_homogeneous', which has no run time"),
        ({"profile": "itself"}, "a profile that is part of itself, or nested too deeply"),
        ({"profile": "mixed"}, "a profile of type 'parallel_homogeneous', which has no run time"),
        ({"profile": "endless"}, "no run time"),
        ({"res": 0}, "no processors"),
        ({"subtime": -1}, "no submit time"),
    ],
)
def test_batsim_jobs_that_are_left_out(changes, reason):
    assert [skip.reason for skip in batsim({}, {"id": "b", **changes}).skipped] == [reason]


@pytest.mark.parametrize(("profile", "seconds"), [("five", 20.25), ("sequence", 141), ("nested", 322.5)])
def test_profiles_of_both_generations_and_what_they_are_composed_of(profile, seconds):
    assert batsim({"profile": profile}).jobs[0].runtime == seconds


def test_batsim_takes_what_is_written():
    """Batsim's own conditions: known types, times above 0, 32-bit numbers as ids, at least one resource."""
    jobs = [
        Job(id=id_, submit=0, jobspec=Jobspec.from_shape("slot=2/core"), runtime=run, duration=limit)
        for id_, run, limit in ((1, 0, 0), (2**31, 5.5, None), ("x", 5.5, 60))
    ]
    for lines, type_ in ((write_batsim, "DelayProfile"), (write_batsim4, "delay")):
        for some in (jobs, []):
            workload = assemble(some, Skips(), source="s", name="n", kind="test")
            document = json.loads("\n".join(lines(workload)))
            assert document["nb_res"] > 0
            for entry in document["jobs"]:
                assert isinstance(entry["id"], str) or entry["id"] < 2**31
                assert entry.get("walltime", 1) > 0
                assert entry["profile"] in document["profiles"]
            assert all(p["type"] == type_ and p["delay"] > 0 for p in document["profiles"].values())
            back = read_batsim(json.dumps(document))
            assert [(str(job.id), job.runtime) for job in back] == [(str(j.id), j.runtime) for j in some]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the list of jobs is missing"),
        ('{"jobs": []}', "the profiles are missing"),
        ('{"jobs": [5], "profiles": {}}', r"jobs\[0\]: not a job"),
        ('{"jobs": [{"id": null}], "profiles": {}}', "bad id None"),
        ('{"jobs": [{"id": 1, "subtime": "x"}], "profiles": {}}', r"jobs\[0\].subtime: bad subtime 'x'"),
        ('{"jobs": [{"id": 1, "subtime": 1, "res": 1.5}], "profiles": {}}', r"jobs\[0\].res: bad res 1.5"),
        ('{"jobs": [{"id": 1, "subtime": NaN}]}', "NaN is not a number in JSON"),
    ],
)
def test_what_is_no_batsim_workload(text, message):
    with pytest.raises(SimschedError, match=message):
        read_batsim(text)


seconds = st.integers(0, 10**6) | st.floats(1e-6, 1e6)
flat_jobs = st.lists(
    st.builds(
        dict,
        submit=seconds,
        runtime=seconds,
        duration=st.none() | st.integers(1, 10**6),
        procs=st.integers(1, 1000),
        user=st.none() | st.sampled_from(["ann", "7"]),
        name=st.none() | st.sampled_from(["x", "é"]),
    ),
    max_size=6,
)


def flat_workload(drafts):
    jobs = [
        Job(id=number, jobspec=Jobspec.from_shape(f"slot={draft['procs']}/core"), **draft)
        for number, draft in enumerate(drafts, 1)
    ]
    return assemble(jobs, Skips(), source="s", name="n", kind="test")


ALIKE = {"submit": 0, "duration": None, "procs": 1, "user": None, "name": None}


@example([{**ALIKE, "runtime": 5}, {**ALIKE, "runtime": 5.0}])
@settings(max_examples=50)
@given(flat_jobs)
def test_batsim_and_swf_hold_the_same_flat_jobs(drafts):
    """batsim(swf(batsim(w))) = w: both hold id, submit, run time, limit, processors, user and name."""
    workload = flat_workload(drafts)
    once = read_batsim("\n".join(write_batsim(workload)))
    assert once.jobs == workload.jobs
    twice = read_swf("\n".join(write_swf(once)))
    assert twice.jobs == workload.jobs


# ------------------------------------------------------------ sacct, written

logged = st.lists(
    st.builds(
        dict,
        submit=st.integers(0, 10**6),
        runtime=st.integers(1, 10**6),
        duration=st.none() | st.integers(1, 10**7),
        wait=st.integers(0, 10**6),
        shape=st.sampled_from(["slot=4/core", "slot=96/core", "slot=2/[core=8;gpu]"]),
        queue=st.none() | st.sampled_from(["gpu", "a b"]),
        user=st.none() | st.sampled_from(["ann", "7"]),
        group=st.none() | st.just("staff"),
        bank=st.none() | st.just("phys"),
        name=st.none() | st.sampled_from(["x", "é y"]),
        nodes=st.none() | st.integers(1, 99),
        memory=st.none() | st.integers(1, 10**9),
        status=st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "CANCELED"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=50)
@given(logged)
def test_a_dump_is_read_back_as_it_was(drafts):
    """sacct(w) read = w for whole seconds: requests with gpus, limits, waits and owners survive."""
    jobs = []
    for number, draft in enumerate(drafts, 1):
        jobspec = Jobspec.from_shape(draft.pop("shape"))
        job = Job(id=number, jobspec=jobspec, procs=demand(jobspec).procs, partition=draft["queue"], **draft)
        jobs.append(job)
    workload = rebase(assemble(jobs, Skips(), source="s", name="n", kind="test"))
    back = read_sacct(write_sacct(workload))
    assert back.jobs == workload.jobs
    assert back.skipped == ()


# ------------------------------------------------------------ PBS

PBS_END = (
    "03/01/2024 11:05:00;E;12.server;user=ann group=staff account=phys jobname=sim queue=batch "
    "ctime=1709287200 qtime=1709287200 etime=1709287200 start=1709287500 exec_host=n1/0*16+n2/0*16 "
    "Resource_List.ncpus=32 Resource_List.nodect=2 Resource_List.select=2:ncpus=16:mem=32gb "
    "Resource_List.walltime=02:00:00 "
    "session=9 end=1709291100 Exit_status=0 resources_used.walltime=01:00:00"
)


def pbs(*lines, **options):
    return read_pbs(lines, ReadOptions(source="p", **options))


def test_a_limit_of_pbs_in_seconds():
    (job,) = pbs(re.sub(r"Resource_List.walltime=\S+", "Resource_List.walltime=600", PBS_END)).jobs
    assert job.duration == 600


def test_a_pbs_job():
    (job,) = pbs(PBS_END).jobs
    assert (job.id, job.submit, job.wait, job.runtime, job.duration) == ("12.server", 0, 300, 3600, 7200)
    assert (job.user, job.group, job.bank, job.queue, job.name) == ("ann", "staff", "phys", "batch", "sim")
    assert (job.procs, job.nodes, job.memory, job.status) == (32, 2, 2 * 1024 * 1024, "COMPLETED")


def test_what_is_not_the_end_of_a_job_is_counted():
    lines = [
        "03/01/2024 10:00:00;Q;12.server;queue=batch",
        "03/01/2024 10:05:00;S;12.server;user=ann",
        "03/01/2024 10:05:00;D;13.server;requestor=ann@n1",
        "03/01/2024 10:06:00;D;12.server;requestor=root@n1",
        PBS_END,
        PBS_END.replace("12.server", "14.server").replace("start=1709287500 ", ""),
        "hello",
    ]
    workload = pbs(*lines)
    assert [job.id for job in workload] == ["12.server"]
    assert workload.skipped_counts == {
        "a record of type Q, not the end of a job": 1,
        "a record of type S, not the end of a job": 1,
        "a record of type D, not the end of a job": 1,
        "cancelled before it started": 1,
        "never started": 1,
        "not an accounting record": 1,
    }
    assert workload.total_records == len(lines)
    assert detect("\n".join(lines)) == "pbs"


@pytest.mark.parametrize(
    ("resources", "flat"),
    [
        ({"nodes": "2:ppn=8"}, (16, 2, None, None)),
        ({"nodes": "2:ppn=8:gpus=1+1:ppn=4"}, (20, 3, 2, None)),
        ({"nodes": "n17:ppn=4"}, (4, 1, None, None)),
        ({"select": "3:ncpus=4:ngpus=2:mem=8gb"}, (12, 3, 6, 2097152)),
        ({"ncpus": "12", "mem": "24gb"}, (12, None, None, 2097152)),
        ({"procs": "6", "nodect": "2", "ngpus": "1"}, (6, 2, 1, None)),
        ({}, (None, None, None, None)),
    ],
)
def test_pbs_resources(resources, flat):
    found = flat_of({f"Resource_List.{key}": value for key, value in resources.items()})
    assert (found.procs, found.nodes, found.gpus, found.memory) == flat


UNSIZED = re.sub(r"exec_host=\S+ Resource_List\.ncpus.*?walltime=\S+ ", "", PBS_END)


@pytest.mark.parametrize(
    ("said", "shape", "note"),
    [
        ("procs=6 gpus=1:shared", "slot=6/[core;gpu]", "gpus=1:shared (p:1): gpus of each processor"),
        ("procs=6 gpus=1 nodes=1", "slot=6/[core;gpu]", "gpus=1 (p:1): gpus of each processor"),
        ("nodes=2:ppn=4 gpus=2:exclusive_process", "slot=4/[core=2;gpu]", "(p:1): gpus of each node"),
        ("nodes=1:ppn=8:gpus=2:shared", "slot=2/[core=4;gpu]", ""),
        ("ncpus=4 gpus=2", "slot=2/[core=2;gpu]", ""),
        ("nodes=1:ppn=8 ! exec_gpus=n1-gpu/0+n1-gpu/1", "slot=2/[core=4;gpu]", ""),
        (
            "nodes=1:ppn=8:gpus=1 ! exec_gpus=n1-gpu/0+n1-gpu/1",
            "slot=1/[core=8;gpu]",
            "2 gpus, but the request",
        ),
        ("procs=6 gpus=one", "slot=6/core", "Resource_List.gpus=one (p:1): cannot be read"),
        ("ncpus=1 walltime=abc", "slot=1/core", "walltime=abc (p:1): cannot be read: the job has no limit"),
        (
            "nodes=1pn=4 ! exec_host=n1/4+n1/5+n1/6+n1/7",
            "slot=4/core",
            "nodes=1pn=4 (p:1): not a specification",
        ),
        ("nodes=2:ppn=x ! exec_host=n1/0-3", "slot=4/core", "nodes=2:ppn=x (p:1): not a specification"),
        ("nodes=1:ppn=2 ! exec_host=n1/0-7", "slot=2/core", "8 processors, but the request is for 2"),
        ("nodes=1 procs=12 ! exec_host=n1/0-11", "slot=12/core", ""),
        ("nodes=1 ncpus=8", "slot=8/core", ""),
        ("select=ncpus=4:mem=8gb", "slot=4/core", ""),
        (
            "select=2:ncpus=4:host=n1:mpiprocs=4",
            "slot=8/core",
            "Resource_List.select=host=n1 (p:1): not used",
        ),
        ("nodes=n17:ppn=4", "slot=4/core", "nodes=n17 (p:1): the name of a host or property is not used"),
        ("nodes=1:ppn=4:bigmem", "slot=4/core", "nodes=bigmem (p:1): not used"),
        ("ncpus=four ! exec_host=n1/0*4", "slot=4/core", "ncpus=four (p:1): cannot be read"),
        ("ncpus=4 mem=lots", "slot=4/core", "mem=lots (p:1): cannot be read"),
        (
            "ncpus=4 cput=10:00 file=2gb",
            "slot=4/core",
            "cput=10:00 (p:1), Resource_List.file=2gb (p:1): not used",
        ),
    ],
)
def test_values_of_pbs_that_cannot_be_read_or_contradict_leave_notes(said, shape, note):
    wanted, _, granted = said.partition(" ! ")
    words = " ".join(f"Resource_List.{word}" for word in wanted.split())
    workload = pbs(UNSIZED.replace("session=9", f"{granted} {words} session=9"))
    assert workload.jobs[0].jobspec == Jobspec.from_shape(shape)
    found = [text for text in workload.notes if "leave out: " not in text]
    assert len(found) == bool(note)
    assert note in "".join(found)


@pytest.mark.parametrize(
    ("walltime", "seconds"), [("1:00:00:00", 86400), ("90:00", 5400), ("600", 600), ("-1", None), ("0", None)]
)
def test_walltimes_of_pbs(walltime, seconds):
    workload = pbs(re.sub(r"Resource_List.walltime=\S+", f"Resource_List.walltime={walltime}", PBS_END))
    assert workload.jobs[0].duration == seconds
    assert not any("walltime" in note for note in workload.notes)


def test_a_time_of_pbs_that_cannot_be_read_is_a_damaged_record():
    workload = pbs(PBS_END, PBS_END.replace("start=1709287500", "start=today"))
    assert workload.skipped_counts == {"a time that cannot be read": 1}


@pytest.mark.parametrize(
    ("said", "flat"),
    [
        ({"exec_host": "n1/0*16+n2/0*8"}, (24, 2, None, None)),
        ({"exec_host": "n1/0-15+n2/0,2"}, (18, 2, None, None)),
        ({"exec_host": "n1/0+n1/1+n2/0"}, (3, 2, None, None)),
        ({"exec_vnode": "(n1:ncpus=16:mem=32gb:ngpus=2)+(n2:ncpus=16:mem=32gb)"}, (32, 2, 2, 2097152)),
        ({"exec_vnode": "(n1[0]:ncpus=2+n1[1]:ncpus=2)", "exec_host": "n1/0*4"}, (4, 2, None, None)),
        ({"total_execution_slots": "32", "unique_node_count": "2"}, (32, 2, None, None)),
        ({"exec_host": "n1/0*4", "Resource_List.nodect": "1"}, (4, 1, None, None)),
        ({"exec_host": "n1/0*64", "Resource_List.ncpus": "4"}, (4, None, None, None)),
        ({"resources_used.ncpus": "6"}, (6, None, None, None)),
        ({"exec_host": ""}, (None, None, None, None)),
        ({"exec_host": "n1/99-0+++/-"}, (2, 2, None, None)),
    ],
)
def test_pbs_jobs_that_are_sized_by_what_they_got(said, flat):
    found = flat_of(said)
    assert (found.procs, found.nodes, found.gpus, found.memory) == flat
    wanted = "Resource_List.ncpus=32 Resource_List.nodect=2 Resource_List.select=2:ncpus=16:mem=32gb "
    pairs = " ".join(f"{key}={value}" for key, value in said.items())
    line = PBS_END.replace(wanted, "").replace("exec_host=n1/0*16+n2/0*16", pairs)
    workload = pbs(line)
    assert [job.procs for job in workload] == ([] if flat[0] is None else [flat[0]])


@pytest.mark.parametrize(
    ("status", "result"), [("0", "COMPLETED"), ("1", "FAILED"), ("271", "FAILED"), ("-29", "TIMEOUT")]
)
def test_pbs_exit_statuses(status, result):
    assert pbs(PBS_END.replace("Exit_status=0", f"Exit_status={status}")).jobs[0].status == result


# ------------------------------------------------------------ what a job waited for


def depends(folder, number, *dependencies):
    """Make a job of the folder depend on others."""
    path = folder / str(number) / "jobspec"
    document = json.loads(path.read_text())
    document["attributes"]["system"]["dependencies"] = [
        {"scheme": scheme, "value": value} for scheme, value in dependencies
    ]
    path.write_text(json.dumps(document))


def test_a_folder_of_jobs_carries_dependencies(tmp_path):
    """Decimal, hexadecimal and F58 ids name the same job; what is not in the folder was met."""
    for number in (41, 42, 43):
        put(tmp_path, number, [SUBMIT, (110, "start", None), (150, "finish", {"status": 0})])
    depends(tmp_path, 42, ("afterok", "41"), ("afterany", "7"), ("begin-time", "130.5"))
    depends(tmp_path, 43, ("after", "ƒj"), ("afternotok", "0x29"), ("afterok", "41"))
    workload = load_workload(tmp_path)
    assert [list(map(str, job.dependencies)) for job in workload] == [
        [],
        ["afterok:41", "begin-time:30.5"],
        ["after:42", "afterany:41", "afterok:41"],
    ]
    assert workload.jobs[0].jobspec is workload.jobs[1].jobspec
    run = simulate(load_cluster("tiny"), workload)
    start = dict(zip(run.jobs["id"], run.jobs["start"], strict=True))
    assert start == {"41": 0, "42": 40, "43": 40}


def test_jobs_of_a_folder_that_wait_for_each_other_are_refused(tmp_path):
    for number in (1, 2):
        put(tmp_path, number, [SUBMIT, (110, "start", None), (150, "finish", {"status": 0})])
        depends(tmp_path, number, ("afterany", str(3 - number)))
    with pytest.raises(WorkloadError, match=r"jobs depend on each other: . -> . -> ."):
        load_workload(tmp_path)


def test_the_eligible_time_of_pbs_and_slurm_json_is_a_begin_time():
    record = (
        "03/01/2024 10:10:00;E;7.srv;user=ann queue=q ctime=1709287200 qtime=1709287200 etime={} "
        "start=1709287500 end=1709287800 Resource_List.ncpus=4"
    )
    held = read_pbs([record.format(1709287400)]).jobs[0]
    assert list(map(str, held.dependencies)) == ["begin-time:200"]
    assert read_pbs([record.format(1709287200)]).jobs[0].dependencies == ()
    job = {
        "job_id": 1,
        "time": {"submission": 1000, "eligible": 1300, "start": 1400, "elapsed": 60, "limit": 10},
        "state": {"current": ["COMPLETED"]},
        "required": {"CPUs": 4},
    }
    (read,) = read_sacct_json(json.dumps({"jobs": [job]}))
    assert (list(map(str, read.dependencies)), read.wait) == (["begin-time:300"], 400)
