"""SSS Job Objects as workloads, and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import SimschedError, WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.workload.job import Job, Skips, assemble, demand
from simsched.workload.load import detect, load_workload
from simsched.workload.mapping import ReadOptions
from simsched.workload.readers.jobs import read_jobs_yaml
from simsched.workload.readers.sss_jobs import read_sss, write_sss
from simsched.workload.save import write_jobs_yaml

GROUP = """<?xml version="1.0"?>
<JobGroup>
  <Id>sweep</Id>
  <JobDefaults><User>ann</User><Queue>batch</Queue></JobDefaults>
  <Job>
    <Id>1</Id><Name>prep</Name><SubmitTime>1000</SubmitTime>
    <StartTime>1010</StartTime><EndTime>1070</EndTime><State>Completed</State><ExitCode>0</ExitCode>
    <Requested><Processors>16</Processors><Duration>600</Duration></Requested>
  </Job>
  <Job>
    <Id>2</Id><Priority>5</Priority><EligibleTime>1500</EligibleTime>
    <Dependency condition="OnSuccess" designator="JobName">prep</Dependency>
    <Requested><Processors>16</Processors><Duration>60</Duration></Requested>
  </Job>
  <Job><Id>3</Id><Hold>User</Hold><SubmitTime>1200</SubmitTime>
    <Requested><NodeCount>2</NodeCount><TaskCount>4</TaskCount></Requested></Job>
</JobGroup>
"""


def test_a_group_of_jobs_on_one_clock():
    workload = read_sss(GROUP)
    assert [(j.id, j.submit, j.wait, j.runtime, j.duration, j.procs) for j in workload] == [
        ("1", 0, 10, 60, 600, 16),
        ("2", 0, None, None, 60, 16),
        ("3", 200, None, None, None, 4),
    ]
    one, two, three = workload.jobs
    assert (one.user, one.queue, one.name, one.status) == ("ann", "batch", "prep", "COMPLETED")
    assert list(map(str, two.dependencies)) == ["afterok:1", "begin-time:500"]
    assert (two.priority, two.status, three.hold) == (5, None, True)
    assert one.jobspec is two.jobspec
    assert one.jobspec.to_shape() == "slot=16/core"
    assert workload.header["UnixStartTime"] == "1000"
    assert detect(GROUP) == "sss"


def test_what_cannot_be_is_left_out_or_refused(tmp_path):
    early = GROUP.replace("<StartTime>1010", "<StartTime>900")
    assert read_sss(early).skip_table() == [("starts before it is submitted", 1, "jobs.xml:5")]
    with pytest.raises(WorkloadError, match="record refused"):
        read_sss(early, ReadOptions(strict=True))
    (tmp_path / "a").write_text(GROUP.replace('"JobName">prep', '"JobName">nobody'))
    with pytest.raises(SimschedError, match="nobody"):
        load_workload(tmp_path / "a")
    (tmp_path / "a").write_text("<Job><Id>“1”</Id>")
    with pytest.raises(SimschedError, match="a:1"):
        load_workload(tmp_path / "a")


def test_a_request_that_no_job_object_can_say_names_the_job():
    job = Job(id="r", submit=0, jobspec=Jobspec.from_shape("rack/node=2/slot/core"), duration=5)
    workload = assemble([job], Skips(), source="s", name="n", kind="t")
    with pytest.raises(WorkloadError, match="job r cannot be written"):
        list(write_sss(workload))


whole = st.integers(0, 10**6)
word = st.none() | st.sampled_from(["ann", "b c", "é"])
shapes = st.sampled_from(["slot=4/core", "slot=2/core=3", "node=2/slot=4/core", "slot=1-8/core"])
drafts = st.lists(
    st.builds(
        dict,
        submit=whole,
        duration=st.none() | st.integers(1, 10**6),
        shape=shapes,
        user=word,
        group=word,
        queue=word,
        bank=word,
        qos=word,
        name=word,
        runtime=st.none() | whole,
        priority=st.none() | st.integers(0, 100),
        hold=st.booleans(),
        begin=st.none() | whole,
        after=st.sampled_from([None, "afterok", "afternotok", "afterany"]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40)
@given(drafts, st.integers(0, 2 * 10**9))
def test_job_objects_are_read_back_as_they_were(drafts, base):
    """sss(w) read = w: ids, times, requests, credentials, priorities, holds and dependencies survive.

    jobs.yaml in between changes nothing.
    """
    jobs = []
    for number, draft in enumerate(drafts):
        begin, after, shape = draft.pop("begin"), draft.pop("after"), draft.pop("shape")
        waits = [Dependency(after, str(number - 1))] if after and number else []
        waits += [Dependency("begin-time", str(begin))] if begin is not None else []
        jobspec = Jobspec.from_shape(shape)
        procs = None if "-" in shape else demand(jobspec).procs
        jobs.append(Job(id=str(number), jobspec=jobspec, dependencies=tuple(waits), procs=procs, **draft))
    earliest = min(job.submit for job in jobs)
    header = {"UnixStartTime": str(base)}
    workload = assemble(jobs, Skips(), source="s", name="n", kind="t", header=header)
    back = read_sss("\n".join(write_sss(workload)))
    assert back.header["UnixStartTime"] == str(base + earliest)
    assert by_id(back) == by_id(workload, earlier=earliest)
    again = read_jobs_yaml("\n".join(write_jobs_yaml(back)))
    assert again.jobs == back.jobs


def by_id(workload, earlier=0):
    """What Job Objects hold of the jobs, times on the clock of the earliest submission."""
    found = {}
    for job in workload:
        waits = [
            (d.scheme, max(0, int(d.value) - earlier) if d.scheme == "begin-time" else d.value)
            for d in job.dependencies
        ]
        names = ("duration", "user", "group", "queue", "bank", "name", "runtime", "priority", "hold", "procs")
        said = [getattr(job, name) for name in names]
        found[job.id] = (job.submit - earlier, job.jobspec.to_shape(), waits, said)
    return found


MIXED = """
- {id: a, submit: 0, shape: "slot=2/[core;gpu]", runtime: 4, duration: 9, deadline: 50}
- {id: b, submit: 1, shape: "rack/slot/core", runtime: 4, duration: 9}
- {id: c, submit: 2, shape: "slot/core", runtime: 4, duration: 9, depends: ["afterok:a", "afterany:b"]}
"""


def test_a_job_that_cannot_be_written_does_not_stop_the_others():
    skips = Skips()
    back = read_sss("\n".join(write_sss(read_jobs_yaml(MIXED), skips)))
    assert [(job.id, job.jobspec.to_shape(), job.deadline) for job in back] == [
        ("a", "slot=2/[core;gpu]", 50),
        ("c", "slot/core", None),
    ]
    assert [str(item) for item in back.jobs[1].dependencies] == ["afterok:a"]
    assert [(skip.id, skip.where) for skip in skips.records] == [("b", "job b")]
    assert skips.counts == {
        "a Job Object cannot express a request without a slot": 1,
        "a dependency on such a job": 1,
    }
    with pytest.raises(WorkloadError, match="job b cannot be written"):
        list(write_sss(read_jobs_yaml(MIXED), Skips(strict=True)))


def test_a_workload_of_which_nothing_can_be_written_is_an_error():
    only = "- {shape: rack/slot/core, runtime: 4}"
    with pytest.raises(WorkloadError, match="none of the jobs can be written"):
        list(write_sss(read_jobs_yaml(only), Skips()))


def test_a_deadline_moves_with_its_document(tmp_path):
    text = (
        "<Data><Job><Id>1</Id><SubmitTime>1000</SubmitTime><Deadline>1600</Deadline>"
        "<Duration>9</Duration></Job></Data>"
    )
    workload = read_sss(text)
    assert workload.jobs[0].deadline == 600
    assert "<Deadline>1600</Deadline>" in "\n".join(write_sss(workload))
    (tmp_path / "a.yaml").write_text("\n".join(write_jobs_yaml(workload)))
    assert load_workload(tmp_path / "a.yaml").jobs[0].deadline == 600
