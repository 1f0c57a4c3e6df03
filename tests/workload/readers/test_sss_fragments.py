"""Every fragment of the SSS document parses, maps, runs on `colony` and comes back with Delivered."""

from __future__ import annotations

import pytest

from simsched.cli import main
from simsched.cli.options.workloads import names_of
from simsched.formats.sss.document import read_document
from simsched.formats.sss.records import job_records
from simsched.graph.cluster import load_cluster

EITHER = (
    '<Requested><User group="1">scottmo</User><Account group="-1">mscfops</Account>'
    '<User conj="Or" group="1">amy</User><Account group="-1">chemistry</Account></Requested>'
)

#: Section → the fragment as a property of a job, and the request that such a job becomes.
FRAGMENTS = {
    "5.1 Executable": ("<Executable>#Script</Executable>", "slot/core"),
    "5.1 Feature": ('<Feature aggregation="List">feature1,feature2</Feature>', "slot/core"),
    "5.1 OutputFile": ('<OutputFile redirectList="Append">~/myjob.out</OutputFile>', "slot/core"),
    "5.1 ErrorFile": ('<ErrorFile redirectList="Merge"></ErrorFile>', "slot/core"),
    "5.1 InputFile": ('<InputFile redirectList="Close"></InputFile>', "slot/core"),
    "5.1 NotificationList": (
        '<NotificationList uri="amy@example.org">JobStart,JobEnd</NotificationList>',
        "slot/core",
    ),
    "5.1 ResourceLimit": ('<ResourceLimit name="CPUTime">1000000</ResourceLimit>', "slot/core"),
    "5.1 Variable": (
        '<Environment><Variable name="PATH">/usr/bin:/home/sssdemo</Variable></Environment>',
        "slot/core",
    ),
    "5.1 Node": ('<Node aggregation="Pattern">node[1-5]</Node>', "slot/core"),
    "5.1 TasksPerNode": (
        '<TaskCount>6</TaskCount><TaskDistribution type="TasksPerNode">2</TaskDistribution>',
        "node=3/slot=2/core",
    ),
    "5.1 Rule": ('<TaskDistribution type="Rule">RoundRobin</TaskDistribution>', "slot/core"),
    "5.1 Geometry": (
        '<TaskDistribution type="Geometry">{1,4}{2}{3,5}</TaskDistribution>',
        "[node=2/slot=2{default}/core;node/slot{default-2}/core]",
    ),
    "5.1 Dependency": (
        '<Dependency condition="OnSuccess" designator="JobId">PBS.1234.0</Dependency>',
        "slot/core",
    ),
    "5.1 Memory": ('<Memory metric="Max" units="GB">483</Memory>', "slot/[core;memory=483{unit:GiB}]"),
    "5.1 Processors": ('<Processors duration="1234" consumptionRate="0.63">4</Processors>', "slot=4/core"),
    "5.1 License": ('<Resource name="License" type="MATLAB">1</Resource>', "[slot/core;License{id:MATLAB}]"),
    "5.1 Telescope": (
        '<Resource name="Telescope" type="Zoom2000" duration="750" metric="KX">10</Resource>',
        "[slot/core;Telescope=10{id:Zoom2000}]",
    ),
    "5.1 Extension": ('<Extension type="Scheduler" name="Restartable">true</Extension>', "slot/core"),
    "6.2 TaskGroup": ("<TaskGroup><Id>tg1</Id></TaskGroup><TaskGroup> tg1</TaskGroup>", "slot{tg1}/core"),
    "7.2 Task": (
        "<TaskGroup><TaskCount>2</TaskCount><Task><Id>1</Id></Task><Task>1</Task></TaskGroup>",
        "slot=2/core",
    ),
    "8.1 range": (
        '<Requested><Processors op="GE">8</Processors><Processors op="LE">16</Processors></Requested>',
        "slot=8-16/core",
    ),
    "8.1 pattern": (
        '<Requested><NodeCount>1</NodeCount><Node aggregation="Pattern">fr15.*</Node></Requested>',
        "node/slot/core",
    ),
    "8.1 credentials": (EITHER, "slot/core"),
    "8.1 preference": (
        '<Requested><Memory preference="2">1024</Memory><Memory preference="1">512</Memory></Requested>',
        "slot/[core;memory=512,1024{unit:MiB}]",
    ),
    "8.2 counts": (
        "<Delivered><Processors>12</Processors><Duration>60</Duration></Delivered>",
        "slot=12/core",
    ),
    "8.2 node": ("<Delivered><Node>fr15n03</Node></Delivered>", "slot/core"),
    "8.2 credentials": (
        "<Delivered><User>scottmo</User><Account>mscfops</Account></Delivered>",
        "slot/core",
    ),
    "8.2 memory": ("<Delivered><Memory>1024</Memory></Delivered>", "slot/core"),
}


def document():
    """One Data element with a job for each fragment, and the references of 4.2 and 5.2."""
    first = "<Job><Id>PBS.1234.0</Id><Duration>60</Duration></Job>"
    jobs = "".join(
        f"<Job><Id>{number}</Id><Duration>60</Duration>{fragment}</Job>"
        for number, (fragment, _) in enumerate(FRAGMENTS.values())
    )
    member = "<Job><Id>member</Id><Duration>60</Duration></Job>"
    group = f"<JobGroup><Id>again</Id><Job>PBS.1234.0</Job>{member}</JobGroup>"
    return f"<Data><JobGroup> workflow1</JobGroup>{first}{jobs}{group}</Data>"


@pytest.fixture(scope="module")
def accounted(tmp_path_factory):
    """The document after a run on `colony`, and the shapes that its jobs became."""
    folder = tmp_path_factory.mktemp("fragments")
    path = folder / "all.xml"
    path.write_text(document())
    assert main(["run", "colony", str(path), "-o", str(folder / "run"), "--audit", "--quiet"]) == 0
    assert main(["workload", "deliver", str(path), str(folder / "run"), "-o", str(folder / "out.xml")]) == 0

    records, _ = job_records(read_document(document()), cluster=names_of(load_cluster("colony")))
    after = read_document((folder / "out.xml").read_text())
    return (
        {record.id: record.jobspec.to_shape() for record in records},
        {job.value("Id"): job for job in after.root.all("Job")},
    )


@pytest.mark.parametrize(("number", "section"), list(enumerate(FRAGMENTS)), ids=list(FRAGMENTS))
def test_a_fragment_runs_and_comes_back_with_delivered(accounted, number, section):
    fragment, shape = FRAGMENTS[section]
    shapes, jobs = accounted
    assert shapes[str(number)] == shape
    job = jobs[str(number)]
    assert job.value("State") == "Completed"
    delivered = job.first("Delivered")
    assert int(delivered.value("Processors")) >= 1
    assert int(delivered.value("Duration")) == 60
    assert int(job.value("EndTime")) - int(job.value("StartTime")) == 60
    before = read_document(f"<Job><Id>1</Id>{fragment.replace('PBS.1234.0', '1')}</Job>").root
    kept = [child.name for child in before.children if child.name not in ("Id", "Delivered")]
    assert [child.name for child in job.children if child.name in kept] == kept


def test_what_fragments_say_of_nodes_and_amounts_is_what_was_delivered(accounted):
    _, jobs = accounted
    at = {section: jobs[str(number)].first("Delivered") for number, section in enumerate(FRAGMENTS)}
    assert at["5.1 Feature"].value("Node").startswith("node")
    assert at["5.1 Node"].value("Node").startswith("node")
    assert at["8.1 pattern"].value("Node").startswith("fr15n")
    assert at["5.1 Memory"].value("Node") == "fat1"
    assert at["5.1 Memory"].value("Memory") == str(483 * 1024)
    assert at["5.1 TasksPerNode"].value("NodeCount") == "3"
    assert 8 <= int(at["8.1 range"].value("Processors")) <= 16
