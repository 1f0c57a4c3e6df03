"""SSS Job Objects: counts become shapes, and contradictions are named."""

# ruff: noqa: E501 - tables of XML read better unbroken

from __future__ import annotations

import pytest

from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.sss.requirements import geometry_of
from tests.formats.sss.sssjobs import fails, job, mapped, one

# -- counts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "shape"),
    [
        ("", "slot/core"),
        ("<Processors>16</Processors>", "slot=16/core"),
        ("<TaskCount>4</TaskCount>", "slot=4/core"),
        ("<TaskCount>4</TaskCount><Processors>16</Processors>", "slot=4/core=4"),
        (
            "<TaskCount>4</TaskCount><TaskDistribution type='ProcessorsPerTask'>3</TaskDistribution>",
            "slot=4/core=3",
        ),
        (
            "<Processors>12</Processors><TaskDistribution type='ProcessorsPerTask'>3</TaskDistribution>",
            "slot=4/core=3",
        ),
        ("<NodeCount>4</NodeCount>", "node=4/slot/core"),
        ("<NodeCount>4</NodeCount><Processors>16</Processors>", "node=4/slot=4/core"),
        (
            "<NodeCount>4</NodeCount><TaskCount>8</TaskCount><Processors>16</Processors>",
            "node=4/slot=2/core=2",
        ),
        (
            "<NodeCount>3</NodeCount><Processors>4</Processors>",
            "[node/slot=2{default}/core;node=2/slot{default-2}/core]",
        ),
        (
            "<TaskCount>8</TaskCount><TaskDistribution type='TasksPerNode'>4</TaskDistribution>",
            "node=2/slot=4/core",
        ),
        (
            "<TaskCount>10</TaskCount><TaskDistribution type='TasksPerNode'>4</TaskDistribution>",
            "[node=2/slot=4{default}/core;node/slot=2{default-2}/core]",
        ),
        (
            "<TaskCount>3</TaskCount><TaskDistribution type='TasksPerNode'>4</TaskDistribution>",
            "node/slot=3/core",
        ),
        (
            "<NodeCount>3</NodeCount><TaskDistribution type='TasksPerNode'>4</TaskDistribution>",
            "node=3/slot=4/core",
        ),
        (
            "<TaskDistribution type='Geometry'>{1,4}{2}{3,5}</TaskDistribution>",
            "[node=2/slot=2{default}/core;node/slot{default-2}/core]",
        ),
        ("<Processors>2</Processors><Memory>512</Memory>", "slot=2/[core;memory=512{unit:MiB}]"),
        (
            "<Memory units='GB'>1.5</Memory><Disk units='TB'>1</Disk>",
            "slot/[core;memory=1536{unit:MiB};disk{unit:TiB}]",
        ),
        ("<Swap units='NB'>1</Swap>", "slot/[core;swap=1024{unit:YiB}]"),
        ("<Memory>0</Memory>", "slot/core"),
        ("<Resource name='License' type='MATLAB'>1</Resource>", "[slot/core;License{id:MATLAB}]"),
        (
            "<Requested><Memory op='LE' units='GB'>1.5</Memory></Requested>",
            "slot/[core;memory=1-1536{unit:MiB}]",
        ),
        ("<Disk units='TB'>1.5</Disk>", "slot/[core;disk=1536{unit:GiB}]"),
        ("<Delivered><Processors>8</Processors></Delivered>", "slot=8/core"),
        ("<Processors>4</Processors><Delivered><Processors>8</Processors></Delivered>", "slot=4/core"),
        ("<Memory context='Used'>99</Memory>", "slot/core"),
        ("<TaskGroup><TaskCount>3</TaskCount><Processors>2</Processors></TaskGroup>", "slot=3/core=2"),
        ("<TaskGroup><Processors>6</Processors></TaskGroup>", "slot=6/core"),
        (
            "<TaskGroup><Task><Node>a</Node></Task><Task><Node>b</Node></Task></TaskGroup>",
            "slot=2/core",
        ),
        (
            "<Processors>8</Processors><TaskGroup><TaskCount>4</TaskCount><Name>a b</Name></TaskGroup>",
            "slot=4{a-b}/core=2",
        ),
        (
            "<NodeCount>2</NodeCount><TaskGroup><TaskCount>4</TaskCount></TaskGroup>",
            "node=2/slot=2/core",
        ),
        (
            "<TaskGroup><Name>x</Name></TaskGroup><TaskGroup><Name>x</Name><TaskCount>2</TaskCount></TaskGroup>",
            "[slot{x}/core;slot=2{x.2}/core]",
        ),
        (
            "<TaskGroupDefaults><Memory>5</Memory></TaskGroupDefaults><TaskGroup><Id>a</Id></TaskGroup><TaskGroup><Id>b</Id><Memory>7</Memory></TaskGroup>",
            "[slot{a}/[core;memory=5{unit:MiB}];slot{b}/[core;memory=7{unit:MiB}]]",
        ),
        (
            "<TaskGroup><Id>a</Id><TaskCount>4</TaskCount><TaskDefaults><Memory>1</Memory></TaskDefaults><Task><Processors>2</Processors></Task><Task><Session>1</Session></Task><Task><Session>1</Session></Task></TaskGroup>",
            "[slot{a}/[core=2;memory{unit:MiB}];slot=3{a.2}/[core;memory{unit:MiB}]]",
        ),
        (
            "<TaskGroup><Id>a</Id><TaskCount>3</TaskCount><TaskDefaults><Processors>2</Processors></TaskDefaults></TaskGroup>",
            "slot=3{a}/core=2",
        ),
        (
            "<TaskGroup><Id>a</Id><TaskDefaults><Processors>2</Processors></TaskDefaults></TaskGroup>",
            "slot{a}/core=2",
        ),
        (
            "<TaskGroup><Id>a</Id><Processors>8</Processors><TaskDefaults><Memory>1</Memory></TaskDefaults></TaskGroup>",
            "slot=8{a}/[core;memory{unit:MiB}]",
        ),
        (
            "<TaskGroup><Id>a</Id><TaskCount>3</TaskCount><TaskDefaults><Processors>2</Processors></TaskDefaults><Task><Session>1</Session></Task></TaskGroup>",
            "slot=3{a}/core=2",
        ),
        (
            "<TaskGroup><Id>a</Id><TaskCount>3</TaskCount><Resource name='lic'>2</Resource></TaskGroup>",
            "[slot=3{a}/core;lic=6]",
        ),
    ],
)
def test_counts_become_shapes(inner, shape):
    record = one(job(inner))
    assert record.jobspec.to_shape() == shape
    again = Jobspec.from_dict(record.jobspec.to_dict())
    assert again == record.jobspec


@pytest.mark.parametrize(
    ("inner", "says"),
    [
        ("<TaskCount>3</TaskCount><Processors>16</Processors>", "Processors 16 and TaskCount 3 contradict"),
        (
            "<Processors>16</Processors><TaskDistribution type='ProcessorsPerTask'>3</TaskDistribution>",
            "Processors 16 and 3 for each task contradict",
        ),
        (
            "<TaskGroup><TaskCount>1</TaskCount><Task><Session>1</Session></Task><Task><Session>1</Session></Task></TaskGroup>",
            "TaskCount 1 and 2 tasks contradict",
        ),
        (
            "<Resource name='slot'>2</Resource>",
            "a Resource cannot have the name slot (expected another name)",
        ),
        ("<Processors>99999999999999999999</Processors>", "has more than 18 digits"),
        ("<NodeCount>4</NodeCount><Processors>2</Processors>", "NodeCount 4 contradicts 2 tasks"),
        (
            "<NodeCount>2</NodeCount><TaskCount>9</TaskCount><TaskDistribution type='TasksPerNode'>4</TaskDistribution>",
            "NodeCount 2 contradicts 9 tasks, 4 on each node (expected NodeCount 3)",
        ),
        (
            "<TaskCount>4</TaskCount><TaskDistribution type='Geometry'>{1}{2}</TaskDistribution>",
            "TaskCount 4 contradicts Geometry, which has 2 tasks",
        ),
        (
            "<NodeCount>3</NodeCount><TaskDistribution type='Geometry'>{1}{2}</TaskDistribution>",
            "NodeCount 3 contradicts Geometry, which has 2 nodes",
        ),
        (
            "<TaskDistribution type='Geometry'>{1}{1}</TaskDistribution>",
            "task 1 occurs twice in the geometry",
        ),
        ("<TaskDistribution type='Geometry'>one</TaskDistribution>", "not a task geometry"),
        ("<TaskDistribution type='Geometry'>{3-1}</TaskDistribution>", "the range '3-1' descends"),
        ("<TaskDistribution type='TasksPerNode'>0</TaskDistribution>", "TasksPerNode '0'"),
        (
            "<Processors>9</Processors><TaskGroup><TaskCount>2</TaskCount><Processors>4</Processors></TaskGroup>",
            "Processors 9 and the 8 of the task groups contradict",
        ),
        (
            "<Processors>9</Processors><TaskGroup><TaskCount>2</TaskCount></TaskGroup>",
            "Processors 9 and the 2 tasks of the task groups contradict",
        ),
        (
            "<TaskCount>9</TaskCount><TaskGroup><TaskCount>2</TaskCount></TaskGroup>",
            "TaskCount 9 and the 2 tasks of the task groups contradict",
        ),
        (
            "<Requested><Processors op='GT'>8</Processors><Processors op='LT'>9</Processors></Requested>",
            "no number of Processors satisfies the request",
        ),
        (
            "<NodeCount>2</NodeCount><TaskGroup><Name>a</Name></TaskGroup><TaskGroup><Name>b</Name></TaskGroup>",
            "NodeCount of a job with several task groups",
        ),
    ],
)
def test_contradictory_counts_are_named(inner, says):
    message = fails(job(inner))
    assert message.startswith("f.xml:1:")
    assert says in message


def test_geometry_counts_the_tasks_of_each_node():
    assert geometry_of("{1,4}{2}{3,5}") == (2, 1, 2)
    assert geometry_of(" {0-3} {4-5}") == (4, 2)


# -- what is not a whole number ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "shape", "told"),
    [
        (
            "<Disk units='TB'>0.3</Disk>",
            "slot/[core;disk=314573{unit:MiB}]",
            "f.xml:1:16: Disk 0.3 TB, in MiB, is rounded up to 314573",
        ),
        (
            "<Memory>0.0000001</Memory>",
            "slot/[core;memory{unit:B}]",
            "f.xml:1:16: Memory 0.0000001 MB, in B, is rounded up to 1",
        ),
        (
            "<Resource name='tape'>1.2</Resource>",
            "[slot/core;tape=2]",
            "f.xml:1:16: tape 1.2 is rounded up to 2",
        ),
    ],
)
def test_what_is_rounded_up_is_told(inner, shape, told):
    (record,), warnings = mapped(job(inner))
    assert record.jobspec.to_shape() == shape
    assert [str(warning) for warning in warnings] == [told]
    (record,), warnings = mapped(job(inner, " awarenessPolicy='Ignore'"))
    assert record.jobspec.to_shape() == shape
    assert warnings == ()


def test_amounts_in_several_units_are_whole_in_one():
    text = (
        "<Requested><Memory units='GB' op='GE'>1.5</Memory><Memory units='TB' op='LE'>2</Memory></Requested>"
    )
    assert one(job(text)).jobspec.to_shape() == "slot/[core;memory=1536-2097152{unit:MiB}]"


def test_an_amount_beyond_any_machine_is_an_error():
    assert fails(job("<Memory units='YB'>3000000000000</Memory>")) == (
        "f.xml:1:16: Memory 3000000000000 is too large (expected at most 1,000,000,000 YB)"
    )
