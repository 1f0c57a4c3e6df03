"""What SSS Job Object 3.1.0 asks of a document beyond names and types, and the requests added to it."""

# ruff: noqa: E501 - tables of XML read better unbroken

from __future__ import annotations

import pytest

from simsched.errors import FormatError, RequestError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.sss.document import Document, check_document, read_document
from simsched.formats.sss.records import job_records
from simsched.formats.sss.writer import job_element
from tests.formats.sss.sssjobs import fails, job, mapped, one

LIST = "aggregation='List'"


@pytest.mark.parametrize("name", ["Job", "JobGroup"])
def test_the_root_is_an_object_and_not_the_name_of_one(name):
    """Section 5.2: a reference needs an encapsulating element."""
    (fault,) = check_document(f"<{name}> job123</{name}>", "f.xml")
    assert f"f.xml:1:1: <{name}> holds the text 'job123': it only names a {name}" in str(fault)


@pytest.mark.parametrize(
    ("inner", "element"),
    [
        ("<Environment>PATH</Environment>", "Environment"),
        ("<Requested>4</Requested>", "Requested"),
        ("<Delivered>4</Delivered>", "Delivered"),
        ("<TaskGroupDefaults>4</TaskGroupDefaults>", "TaskGroupDefaults"),
        ("<TaskGroup><TaskDefaults>4</TaskDefaults></TaskGroup>", "TaskDefaults"),
    ],
)
def test_an_element_of_elements_holds_no_text(inner, element):
    assert f"<{element}> holds the text" in fails(job(inner))


@pytest.mark.parametrize("name", ["Requested", "Delivered", "TaskGroup"])
def test_what_groups_properties_has_one(name):
    assert f"<{name}> without properties" in fails(job(f"<{name}/>"))


def test_a_task_has_a_property():
    assert "<Task> without properties" in fails(job("<TaskGroup><Name>a</Name><Task/></TaskGroup>"))
    assert one(job("<TaskGroup><Task><Id>1</Id></Task></TaskGroup>")).jobspec.to_shape() == "slot/core"


@pytest.mark.parametrize(
    ("inner", "processors", "seconds"),
    [
        (
            "<Delivered><Processors group='1'>4</Processors><Duration group='-1'>7</Duration></Delivered>",
            4,
            7,
        ),
        (
            "<Delivered><Machine group='1'>a</Machine><Processors>4</Processors><Duration group='-1'>9</Duration><Machine group='1'>b</Machine><Processors>8</Processors><Duration group='-1'>7</Duration></Delivered>",
            12,
            9,
        ),
    ],
)
def test_groups_of_what_was_delivered_are_carried_and_counts_of_several_machines_add_up(
    inner, processors, seconds
):
    text = job(inner)
    record = one(text)
    assert (record.processors, record.runtime) == (processors, seconds)
    assert Document(read_document(text).root).to_xml().count("group=") == inner.count("group=")


def test_groups_of_what_was_delivered_balance():
    said = fails(job("<Delivered><Processors group='1'>4</Processors></Delivered>"))
    assert "the group attributes do not balance" in said


def test_node_occurs_once_outside_requested():
    assert "<Node> occurs twice in <Job>" in fails(job("<Node>a</Node><Node>b</Node>"))
    inside = job("<Requested><Node>a</Node><Node>b</Node></Requested>")
    assert str(one(inside).jobspec.constraint) == "host:a,b"


#: Not understood or not supported: the awareness policy decides.
BY_POLICY = {
    "<Feature delimiter=';'>a;b</Feature>": "attribute delimiter has no meaning in <Feature> without aggregation=List",
    "<Node aggregation='Range' delimiter=';'>a[1-2]</Node>": "attribute delimiter has no meaning in <Node>",
    "<Processors units='GB'>4</Processors>": "attribute units has no meaning in <Processors>, which is counted",
    "<OutputFile redirectList='Append,Burn'>a</OutputFile>": "'Burn' is not known in redirectList of OutputFile",
    "<InputFile redirectList='Append'>a</InputFile>": "'Append' is not known in redirectList of InputFile",
    "<NotificationList>JobStart,JobPause</NotificationList>": "'JobPause' is not known in NotificationList",
    "<Requested><Processors performanceFactor='0.5'>4</Processors></Requested>": "performanceFactor",
    "<Requested><Processors dynamic='true'>4</Processors></Requested>": "dynamic: an allocation does not grow",
    "<Dependency condition='OnSuccess' code='3'>1</Dependency>": "attribute code has no meaning in <Dependency>",
    "<Dependency code='3'>1</Dependency>": "attribute code has no meaning in <Dependency> without condition=OnExit",
    "<Dependency condition='OnExit' code='3'>1</Dependency>": "code 3: exit codes other than 0",
    "<TaskGroup><Name>a</Name></TaskGroup><TaskGroup>b</TaskGroup>": "task group 'b' is not in the job",
    "<TaskGroup><Name>a</Name><Task>9</Task></TaskGroup>": "task '9' is not in the task group",
}


@pytest.mark.parametrize("inner", BY_POLICY)
def test_what_is_not_understood_is_an_error_a_warning_or_nothing(inner):
    def pair(policy):
        other = job(inner).replace("<Id>1</Id>", "<Id>2</Id>").replace("<Job>", f"<Job{policy}>")
        return f"<Data>{job('')}{other}</Data>"

    assert BY_POLICY[inner] in fails(pair(""))
    records, warnings = mapped(pair(" awarenessPolicy='Warn'"))
    assert [BY_POLICY[inner] in str(warning) for warning in warnings] == [True]
    assert len(records) == 2
    assert mapped(pair(" awarenessPolicy='Ignore'"))[1] == ()


@pytest.mark.parametrize(
    "inner",
    [
        f"<Feature {LIST} delimiter=';'>a;b</Feature>",
        "<OutputFile redirectList='Append, Merge'>a</OutputFile>",
        "<InputFile redirectList='Close'/>",
        "<NotificationList>JobStart,JobEnd</NotificationList>",
        "<Requested><Processors dynamic='false'>4</Processors></Requested>",
        "<TaskGroup><Id>a</Id></TaskGroup><TaskGroup> a</TaskGroup>",
    ],
)
def test_what_is_understood_passes_without_a_word(inner):
    assert mapped(job(inner))[1] == ()


@pytest.mark.parametrize(
    ("condition", "made"),
    [
        ("condition='OnExit'", Dependency("afterany", "1")),
        ("condition='OnExit' code='0'", Dependency("afterok", "1")),
        ("condition='OnExit' code='3' awarenessPolicy='Ignore'", Dependency("afternotok", "1", {"code": 3})),
    ],
)
def test_a_dependency_on_an_exit_code_never_starts_after_another_one(condition, made):
    text = f"<Data>{job('')}<Job><Id>2</Id><Dependency {condition}>1</Dependency></Job></Data>"
    (_, second), _ = mapped(text)
    assert second.dependencies == (made,)
    element = job_element(second.jobspec, "2")
    written = element.first("Dependency")
    assert written.attribute("code") == ("3" if "3" in condition else None)


# -- gpus, deadlines, numbers ----------------------------------------------------------------


@pytest.mark.parametrize("shape", ["slot=2/[core;gpu]", "node=2/slot=2/[core=3;gpu=2;memory=4{unit:GiB}]"])
def test_a_gpu_job_is_written_and_read_back(shape):
    text = Document(job_element(Jobspec.from_shape(shape), "1")).to_xml()
    assert '<Resource name="gpu">' in text
    ((record,), warnings) = job_records(read_document(text))
    assert (record.jobspec.to_shape(), warnings) == (shape, ())


@pytest.mark.parametrize(
    ("inner", "shape"),
    [
        ("<TaskCount>2</TaskCount><Resource name='GPU'>1</Resource>", "slot=2/[core;gpu]"),
        ("<Requested><Resource name='gpus' op='GE'>2</Resource></Requested>", "slot/[core;gpu=2+]"),
        (
            "<Resource name='gpu'>1</Resource><TaskGroup><Name>a</Name></TaskGroup><TaskGroup><Name>b</Name><TaskCount>3</TaskCount></TaskGroup>",
            "[slot{a}/[core;gpu];slot=3{b}/[core;gpu]]",
        ),
        (
            "<TaskGroup><Name>a</Name><TaskCount>3</TaskCount><Task><Resource name='gpu'>1</Resource></Task></TaskGroup>",
            "[slot{a}/[core;gpu];slot=2{a.2}/core]",
        ),
        ("<Resource name='License'>1</Resource>", "[slot/core;License]"),
    ],
)
def test_a_gpu_belongs_to_each_task(inner, shape):
    assert one(job(inner)).jobspec.to_shape() == shape


def test_other_devices_in_a_slot_cannot_be_written():
    with pytest.raises(RequestError, match="fpga in a slot"):
        job_element(Jobspec.from_shape("slot/[core;fpga]"), "1")


def test_a_deadline_is_read_and_written():
    record = one(job("<Deadline>900</Deadline>"))
    assert record.deadline == 900
    assert job_element(record.jobspec, "1", deadline=record.deadline).value("Deadline") == "900"


@pytest.mark.parametrize("text", ["9" * 5000, "0." + "0" * 5000 + "1", "1e-999999999", "1e400", "-1", "nan"])
@pytest.mark.parametrize("name", ["Memory", "Resource name='License'", "Processors", "Duration", "Priority"])
def test_numbers_of_any_length_are_refused_or_read_at_once(name, text):
    said = ""
    try:
        job_records(read_document(job(f"<{name}>{text}</{name.split()[0]}>")))
    except FormatError as error:
        said = str(error)
    assert len(said) < 300
