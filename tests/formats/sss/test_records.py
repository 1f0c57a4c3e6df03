"""SSS Job Objects as records: the examples of the document, groups, dependencies, results, and back."""

# ruff: noqa: E501 - tables of XML read better unbroken

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import RequestError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.constraint import Properties
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.sss.document import DeliveredValues, Document, read_document, with_results
from simsched.formats.sss.expressions import Names
from simsched.formats.sss.records import job_records
from simsched.formats.sss.writer import job_element
from tests.formats.sss.sssjobs import fails, job, mapped, one

FR15 = Names(("fr14n01", "fr15n01", "fr15n02", "fr15n03", "fr15n04"), ("ssd", "bigmem"))


SIMPLE, MODERATE, ELABORATE = (
    (Path(__file__).parent / f"sss_{example}.xml").read_text()
    for example in ("simple", "moderate", "elaborate")
)


# -- the document's examples -------------------------------------------------------------


def test_the_very_simple_example():
    record = one(SIMPLE)
    assert (record.id, record.user, record.state, record.duration) == ("PBS.1234.0", "scottmo", "Idle", 3600)
    assert record.jobspec.to_shape() == "slot=16/core"
    assert record.jobspec.version == 1
    assert record.jobspec.tasks[0].command == ("/bin/hostname",)
    assert record.processors == 16


def test_the_moderate_example():
    record = one(MODERATE)
    assert record.jobspec.to_shape() == "slot=12+/[core;memory=2+{unit:GiB}]"
    assert (record.jobspec.queue, record.jobspec.name, record.project) == (
        "batch_normal",
        "Heavy Water",
        "nwchemdev",
    )
    assert record.jobspec.system["cwd"] == "/home/peterk"
    assert record.jobspec.system["environment"] == {"PATH": "/usr/bin:/home/peterk"}
    assert record.jobspec.tasks[0].command == ("/usr/local/nwchem/bin/nwchem", "-input", "basis.in")
    assert (record.start, record.end, record.runtime) == (1051557713, 1051558868, 1155)


def test_the_elaborate_example():
    (first, second), warnings = mapped(ELABORATE, FR15)
    assert first.jobspec.to_shape() == "node=2/slot/[core;memory=1024{unit:MiB}]"
    assert (first.group, first.user, first.submit, first.processors) == ("workflow1", "keith", 1051556734, 2)
    master, licence, nodes = second.jobspec.resources
    assert (master.type, master.label, master.count.min) == ("slot", "Master", 1)
    assert (licence.type, licence.id, licence.count.min) == ("License", "ESSL2", 1)
    assert (nodes.type, nodes.count.min, nodes.id) == ("node", 4, "fr15n[01-04]")
    assert str(nodes.with_[0].count) == "3-4"  # 12 or 16 processors on 4 nodes
    assert [task.slot for task in second.jobspec.tasks] == ["Master", "Slave"]
    assert second.jobspec.tasks[1].distribution == "RoundRobin"
    assert (second.hold, second.priority) == (True, 1032847)
    assert second.jobspec.constraint == Properties(("Jumbo-Frame",))
    assert [w.message for w in warnings] == [
        "constraint Jumbo-Frame of one task group is put on the whole job"
    ]


def test_the_elaborate_example_needs_a_cluster_for_its_pattern():
    assert "f.xml:80:9: pattern 'fr15n.*' needs a cluster" in fails(ELABORATE)


# -- groups and dependencies ---------------------------------------------------------------


def group(*jobs: str, defaults: str = "") -> str:
    return f"<JobGroup><Id>g</Id><JobDefaults>{defaults}</JobDefaults>{''.join(jobs)}</JobGroup>"


def member(id_: str, inner: str = "") -> str:
    return f"<Job><Id>{id_}</Id>{inner}</Job>"


def test_jobs_come_in_dependency_order():
    text = group(
        member("c", "<Dependency>b</Dependency><Dependency condition='OnFailure'>a</Dependency>"),
        member("b", "<Dependency condition='OnExit' code='0'>a</Dependency><EligibleTime>77</EligibleTime>"),
        member("a", "<Name>first</Name>"),
        member("d", "<Dependency designator='JobName' condition='OnExit'>first</Dependency>"),
    )
    records, _ = mapped(text)
    assert [record.id for record in records] == ["a", "b", "c", "d"]
    assert [[str(d) for d in record.dependencies] for record in records] == [
        [], ["afterok:a", "begin-time:77"], ["afterok:b", "afternotok:a"], ["afterany:a"],
    ]  # fmt: skip
    assert records[1].jobspec.dependencies == records[1].dependencies
    assert records[3].dependencies == (Dependency("afterany", "a"),)


def test_circles_are_named():
    text = group(
        member("a", "<Dependency>b</Dependency>"), member("b", "<Dependency>a</Dependency>"), member("c")
    )
    assert "jobs wait for each other: a -> b -> a" in fails(text)
    assert "jobs wait for each other: a -> a" in fails(group(member("a", "<Dependency>a</Dependency>")))


def test_defaults_are_overridden_property_by_property():
    text = group(
        member("a", "<User>own</User><Requested><Processors>2</Processors></Requested>"),
        member("b", "<Environment><Variable name='X'>2</Variable></Environment>"),
        defaults="<User>all</User><Queue>q</Queue><Processors>9</Processors><Requested><Memory>5</Memory></Requested>"
        "<Environment><Variable name='X'>1</Variable><Variable name='Y'>1</Variable></Environment>",
    )
    (a, b), _ = mapped(text)
    assert (a.user, a.queue, a.jobspec.to_shape()) == ("own", "q", "slot=2/[core;memory=5{unit:MiB}]")
    assert (b.user, b.jobspec.to_shape()) == ("all", "slot=9/[core;memory=5{unit:MiB}]")
    assert b.jobspec.system["environment"] == {"Y": "1", "X": "2"}


def test_references_name_jobs_that_are_there():
    records, _ = mapped(
        f"<Data>{member('a')}<JobGroup><Id>g</Id><Job> a</Job>{member('b')}</JobGroup></Data>"
    )
    assert [record.id for record in records] == ["a", "b"]
    assert "job 'z' is not in the document" in fails(group("<Job>z</Job>", member("b")))


@pytest.mark.parametrize(("inner", "held"), [
    ("<Hold>User</Hold><Hold>System</Hold>", True), ("<Hold>None</Hold>", False), ("<State>Hold</State>", True),
    ("<State>Idle</State>", False),
])  # fmt: skip
def test_holds(inner, held):
    assert one(job(inner)).hold is held


# -- out ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "state"), [("PENDING", "Hold"), ("COMPLETED", "Completed"), ("INFEASIBLE", "Hold")]
)
def test_who_was_held_and_never_ran_still_is(result, state):
    held = read_document("<Job><Id>1</Id><State>Hold</State></Job>")
    (record,), _ = job_records(with_results(held, {"1": DeliveredValues(result)}))
    assert (record.state, record.hold) == (state, state == "Hold")


def test_results_come_back_into_the_same_document():
    document = read_document(ELABORATE)
    hosts = Hostlist.parse("fr15n[01-04]")
    done = with_results(
        document,
        {
            "fr15n05.1234.1": DeliveredValues("COMPLETED", 100, 160.4, 13, hosts, 2048.0, 0, "done"),
            "other": DeliveredValues("FAILED"),
        },
    )
    again = read_document(done.to_xml())
    assert again.root == done.root
    first, second = again.root.all("Job")
    assert first == next(document.root.all("Job"))
    assert [second.value(n) for n in ("State", "StartTime", "EndTime", "ExitCode", "StatusMessage")] == [
        "Completed", "100", "160", "0", "done",
    ]  # fmt: skip
    assert [(e.name, e.text) for e in second.first("Delivered").children] == [
        ("Processors", "13"), ("NodeCount", "4"), ("Node", "fr15n[01-04]"), ("Duration", "60"), ("Memory", "2048"),
    ]  # fmt: skip
    assert second.first("TaskGroup") == list(document.root.all("Job"))[1].first("TaskGroup")
    (_, record), _ = job_records(again, cluster=FR15)
    assert (record.runtime, record.state) == (60, "Completed")


shapes = st.one_of(
    st.builds("slot={}/core={}".format, st.integers(1, 40), st.integers(1, 8)),
    st.builds("node={}/slot={}/core={}".format, st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)),
    st.builds("slot={}-{}/core".format, st.integers(1, 5), st.integers(6, 9)),
    st.builds("slot={}+/core".format, st.integers(2, 9)),
    st.builds("slot=2,{}/core".format, st.integers(4, 9)),
    st.builds("slot={}/[core;memory={}{{unit:GiB}}]".format, st.integers(1, 9), st.integers(1, 9)),
    st.builds("[slot={}/core=2;License={}{{id:X}}]".format, st.integers(1, 9), st.integers(1, 3)),
    st.builds(
        "[slot={}{{a}}/core=2;node={}/slot=3{{b}}/core=2]".format, st.integers(1, 9), st.integers(1, 3)
    ),
)


@given(
    shapes,
    st.none() | st.integers(1, 10**6),
    st.sampled_from([None, "ssd", "ssd&bigmem", "-ssd", "host:n[1-3]"]),
)
def test_jobspecs_survive_the_way_out_and_in(shape, duration, constraint):
    jobspec = Jobspec.from_shape(shape, duration=duration, constraint=constraint, queue="q", name="n",
                                 command=("a", "b c", "it's"))  # fmt: skip
    root = job_element(jobspec, "7", submit=5, user="u", group="g", qos="high", priority=3,
                       hold=True)  # fmt: skip
    text = Document(root).to_xml()
    (record,), warnings = job_records(read_document(text))
    assert warnings == ()
    assert record.jobspec.to_shape() == jobspec.to_shape()
    assert record.jobspec.tasks == jobspec.tasks
    assert (record.jobspec.duration, record.jobspec.constraint) == (jobspec.duration, jobspec.constraint)
    assert (record.id, record.submit, record.user, record.unix_group, record.qos) == (
        "7",
        5,
        "u",
        "g",
        "high",
    )
    assert (record.priority, record.hold, record.queue, record.name) == (3, True, "q", "n")


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ("slot=2/[core;fpga]", "fpga in a slot"),
        ("slot=2/node", "a slot without a fixed number of cores"),
        ("node{x}/slot/core", "exclusive on a node"),
        ("node=2", "a node without exactly one slot"),
        ("slot=2+:3/core", "the count 2"),
        ("slot=2/[core;memory=4]", "the unit None"),
    ],
)
def test_what_a_job_object_cannot_say(shape, says):
    with pytest.raises(RequestError, match="a Job Object cannot express") as caught:
        job_element(Jobspec.from_shape(shape), "1")
    assert says in str(caught.value)
