"""SSS Job Objects as documents: XML that means harm, the vocabulary, and awareness policies (R12)."""

# ruff: noqa: E501 - tables of XML read better unbroken

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError, LimitError
from simsched.formats.sss import vocabulary
from simsched.formats.sss.document import check_document, read_document
from simsched.formats.text.xml_tree import Element, parse_xml, write_xml
from tests import REPOSITORY

tags = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\n\t\r&<>\"'")
)
attributes = st.dictionaries(tags.filter(lambda t: not t.startswith("xml")), texts, max_size=3).map(
    lambda d: tuple(d.items())
)
trees = st.recursive(
    st.builds(Element, tags, attributes, texts),
    lambda inner: st.builds(
        lambda tag, attrs, children: Element(tag, attrs, "", tuple(children)),
        tags, attributes, st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


HERE = Path(__file__).parent


def job(inner: str, attrs: str = "") -> str:
    return f"<Job{attrs}><Id>1</Id>{inner}</Job>"


def fails(text: str | bytes) -> str:
    with pytest.raises(FormatError) as caught:
        read_document(text, "f.xml")
    assert len(str(caught.value)) < 400
    return str(caught.value)


@given(trees)
def test_xml_is_lossless(tree):
    assert parse_xml(write_xml(tree)) == tree
    assert parse_xml(str(tree).encode()) == tree


@pytest.mark.parametrize("example", ["simple", "moderate", "elaborate"])
def test_the_examples_of_the_document_come_back_as_they_were(example):
    """Section 1.3, made well-formed: plain quotation marks, closed elements."""
    text = (HERE / f"sss_{example}.xml").read_text()
    document = read_document(text)
    assert document.warnings == ()
    assert read_document(document.to_xml()).root == document.root
    words = re.sub(r"\s+", "", re.sub(r"<\?.*?\?>", "", document.to_xml()))
    assert words == re.sub(r"\s+", "", text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f.xml: the document is empty"),
        ("<Job>", "f.xml:1:6: not XML: no element found"),
        ("<Job><Id>1</Job>", "f.xml:1:13: not XML: mismatched tag"),
        ("<Job><Id>1</Id></Job><Job/>", "not XML: junk after document element"),
        (
            "<Job>\n<Memory units=\u201cGB\u201d>1</Memory></Job>",
            "f.xml:2:15: typographic quotation marks are not XML",
        ),
        ('<!DOCTYPE a [<!ENTITY b "c">]><Job/>', "f.xml:1:13: a DOCTYPE is not accepted"),
        ("<!DOCTYPE Job SYSTEM 'file:///etc/passwd'><Job/>", "a DOCTYPE is not accepted"),
        ("<Job>&undefined;</Job>", "not XML: undefined entity"),
        ("<Job><Id>1</Id>words</Job>", "text 'words' between the elements of <Job>"),
        ("<a>" * 60, "f.xml:1:151: elements nested deeper than 50 levels"),
        ("<a>" * 10**5, "elements nested deeper than 50 levels"),
        ("<Job><Id>" + "x" * (2**20 + 1) + "</Id></Job>", "more than 1048576 characters in <Id>"),
        ("<Job a='" + "x" * (2**20 + 1) + "'/>", "an attribute of more than 1048576 characters"),
        ("<?xml version='1.0' encoding='klingon'?><Job/>", "unknown encoding"),
        ("<Job>\x01</Job>", "not XML: not well-formed"),
        ("<Jobs/>", "f.xml:1:1: <Jobs> is not a Job Object (expected Job or JobGroup or Data)"),
    ],
)
def test_xml_that_is_refused(text, says):
    before = time.process_time()
    raw = text.encode() if "encoding=" in text else text
    assert says in fails(raw)
    assert time.process_time() - before < 20


def test_entity_bombs_never_start():
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    assert "a DOCTYPE is not accepted" in fails(f'<!DOCTYPE j [<!ENTITY e0 "x">{levels}]><Job>&e11;</Job>')


def test_too_many_bytes_are_refused(monkeypatch):
    monkeypatch.setattr("simsched.formats.text.xml_tree.MAX_BYTES", 10)
    with pytest.raises(LimitError, match="has 24 bytes"):
        read_document("<Job><Id>1234</Id></Job>")


def test_encodings_are_those_of_xml():
    text = "<?xml version='1.0' encoding='{}'?><Job><Id>1</Id><Name>J\u00e4rvi</Name></Job>"
    for encoding in ("utf-8", "iso-8859-1", "utf-16"):
        assert read_document(text.format(encoding).encode(encoding)).root.value("Name") == "J\u00e4rvi"


# -- the vocabulary --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer"),
    [(old, new.name) for new in vocabulary.JOB_PROPERTIES.values() for old in new.older if old != "JobId"],
)
def test_names_of_the_3_0_generation_are_read_and_written_in_the_new_one(older, newer):
    value = {"Boolean": "true", "String": "x"}.get(vocabulary.JOB_PROPERTIES[newer].kind, "1")
    document = read_document(job(f"<{older}>{value}</{older}>"))
    assert document.root.value(newer) == value
    assert f"<{newer}>" in document.to_xml()


def test_namespace_prefixes_are_passed_over():
    text = '<s:Job xmlns:s="http://scidac.example/job"><s:JobId>1</s:JobId></s:Job>'
    assert read_document(text).root.value("Id") == "1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<Job/>", "1:1: a Job without Id"),
        ("<Job><Id> </Id></Job>", "a Job without Id"),
        (job("<Surprise/>"), "1:16: <Surprise> is not known in <Job>"),
        (job("<TaskDefaults/>"), "<TaskDefaults> is not known in <Job>"),
        (job("<Requested><Charge>1</Charge></Requested>"), "<Charge> is not known in <Requested>"),
        (job("<User colour='red'>x</User>"), "attribute colour is not known in <User>"),
        (job("<Processors op='GE'>4</Processors>"), "attribute op is not known in <Processors> (expected this attribute inside"),
        (job("<Delivered><Processors op='GE'>4</Processors></Delivered>"), "attribute op is not known"),
        (job("<Requested><Processors op='ABOUT'>4</Processors></Requested>"), "op 'ABOUT' is not known"),
        (job("<Requested><Processors conj='Xor'>4</Processors></Requested>"), "conj 'Xor' is not known"),
        (job("<Memory units='GiB'>4</Memory>"), "units 'GiB' is not known in <Memory>"),
        (job("<Node aggregation='Heap'>a</Node>"), "aggregation 'Heap' is not known"),
        (job("<Feature aggregation='Range'>a</Feature>"), "aggregation 'Range' is not known"),
        (job("<Dependency condition='Maybe'>2</Dependency>"), "condition 'Maybe' is not known"),
        (job("<Processors>four</Processors>"), "Processors 'four' is not a whole number"),
        (job("<Processors>4.5</Processors>"), "Processors '4.5' is not a whole number"),
        (job("<Processors>0</Processors>"), "Processors 0 (expected at least 1)"),
        (job("<Requested><NodeCount>-1</NodeCount></Requested>"), "NodeCount -1"),
        (job("<Memory>-1</Memory>"), "Memory '-1' is not an amount"),
        (job("<Memory>NaN</Memory>"), "Memory 'NaN' is not an amount"),
        (job("<Memory>1e999</Memory>"), "Memory '1e999' is not an amount"),
        (job("<Duration>-5</Duration>"), "Duration '-5' is not a time"),
        (job("<Duration>1:00:00</Duration>"), "Duration '1:00:00' is not a whole number"),
        (job("<SubmitTime>99999999999</SubmitTime>"), "SubmitTime '99999999999' is not a time"),
        (job("<Interactive>maybe</Interactive>"), "Interactive 'maybe' is not a truth value"),
        (job("<StartTime>9</StartTime><EndTime>8</EndTime>"), "EndTime 8 is before StartTime 9"),
        (job("<User>a</User><User>b</User>"), "<User> occurs twice in <Job>"),
        (job("<User>a</User><UserId>b</UserId>"), "<User> occurs twice in <Job>"),
        (job("<TaskGroupDefaults/><TaskGroupDefaults/>"), "<TaskGroupDefaults> occurs twice"),
        (job("<User><b>x</b></User>"), "<User> holds elements"),
        (job("<Requested>4</Requested>"), "<Requested> holds the text '4'"),
        (job("<Resource>4</Resource>"), "<Resource> without name"),
        (job("<Environment><Variable>x</Variable></Environment>"), "<Variable> without name"),
        (job("<Environment><Var name='x'/></Environment>"), "<Var> is not known in <Environment>"),
        (job("<Requested><Processors group='x'>4</Processors></Requested>"), "group of Processors 'x'"),
        (job("", " awarenessPolicy='Perhaps'"), "awarenessPolicy 'Perhaps'"),
        (job("<TaskGroup><Id>a</Id></TaskGroup><TaskGroup><Id>a</Id></TaskGroup>"), "TaskGroup id 'a' occurs twice"),
        (job("<TaskGroup><Task><Id>a</Id></Task><Task><Id>a</Id></Task></TaskGroup>"), "Task id 'a' occurs twice"),
        ("<JobGroup><Id>g</Id></JobGroup>", "a JobGroup without jobs"),
        (f"<JobGroup>{job('')}</JobGroup>", "a JobGroup without Id"),
        (f"<JobGroup><Id>g</Id>{job('')}{job('')}</JobGroup>", "Job id '1' occurs twice"),
        (f"<Data>{job('')}<JobGroup><Id>g</Id>{job('')}</JobGroup></Data>", "Job id '1' occurs twice"),
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_where(text, says):
    message = fails(text)
    assert message.startswith("f.xml:1:")
    assert says in message
    assert [str(fault) for fault in check_document(text, "f.xml")] == [message]


def test_every_fault_is_listed():
    text = job("<A/><Processors>x</Processors><User b='c'>d</User>")
    assert [fault.message for fault in check_document(text)] == [
        "<A> is not known in <Job>",
        "Processors 'x' is not a whole number",
        "attribute b is not known in <User>",
    ]
    assert len(check_document("<Job>")) == 1


# -- awareness -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template",
    [
        "<Job{}><Id>1</Id><New/></Job>",
        "<Job><Id>1</Id><New{}/></Job>",
        "<Job><Id>1</Id><User new='x'{}>a</User></Job>",
        "<Job><Id>1</Id><Requested{}><Processors op='New'>4</Processors></Requested></Job>",
        "<Job><Id>1</Id><TaskGroup{}><New/></TaskGroup></Job>",
        "<Job><Id>1</Id><TaskGroup><Task{}><New/></Task></TaskGroup></Job>",
        "<Job><Id>1</Id><Environment{}><New/></Environment></Job>",
        "<JobGroup{}><Id>g</Id><Job><Id>1</Id><New/></Job></JobGroup>",
        "<JobGroup><Id>g</Id><JobDefaults{}><New/></JobDefaults><Job><Id>1</Id></Job></JobGroup>",
    ],
)
def test_the_nearest_policy_holds(template):
    """R12: Reject is the default; Warn collects; Ignore is silent; what is not known is carried along."""
    assert "not known" in fails(template.format(""))
    assert "not known" in fails(template.format(" awarenessPolicy='Reject'"))
    warned = read_document(template.format(" awarenessPolicy='Warn'"), "f.xml")
    assert len(warned.warnings) == 1
    assert "not known" in str(warned.warnings[0])
    ignored = read_document(template.format(" awarenessPolicy='Ignore'"))
    assert ignored.warnings == ()
    for document in (warned, ignored):
        assert "ew" in document.to_xml()
        assert read_document(document.to_xml()).root == document.root


def test_an_inner_policy_overrides_the_outer_one():
    assert "<New>" in fails(job("<New awarenessPolicy='Reject'/>", " awarenessPolicy='Ignore'"))
    inner = "<Requested awarenessPolicy='Warn'><New/><Newer awarenessPolicy='Ignore'/></Requested>"
    assert len(read_document(job(inner)).warnings) == 1


# -- the page about it -------------------------------------------------------------------


def test_every_element_and_attribute_has_a_row_in_the_manual():
    page = REPOSITORY / "docs" / "sss.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of this installation")
    text = page.read_text(encoding="utf-8")
    rows = {match.group(1) for match in re.finditer(r"^\| `(.+?)`", text, re.MULTILINE)}
    tables = {
        "JobGroup": vocabulary.GROUP_PROPERTIES,
        "Job": vocabulary.JOB_PROPERTIES,
        "TaskGroup": {"Id": None, "Name": None, "TaskCount": None},
        "Task": {"Id": None, "Node": None, "Session": None, "Process": None},
    }
    wanted = {f"{owner}/{name}" for owner, table in tables.items() for name in table}
    wanted |= set(vocabulary.CONTAINERS) | {"Requested", "Delivered", "Variable", "awarenessPolicy"}
    wanted |= {f"@{name}" for p in vocabulary.JOB_PROPERTIES.values() for name in p.attributes}
    wanted |= {f"@{name}" for name in vocabulary.REQUESTED}
    assert wanted - rows == set()
