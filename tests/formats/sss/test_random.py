"""SSS Job Objects made at random from the vocabulary: an answer or a clear error, never anything else."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from simsched.errors import SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.sss import vocabulary
from simsched.formats.sss.document import read_document
from simsched.formats.sss.expressions import Names
from simsched.formats.sss.records import job_records
from simsched.formats.text.xml_tree import Element, write_xml

CLUSTER = Names(("n1", "n2", "x"), ("ssd", "big"))
WORDS = (
    "1",
    "2",
    "3",
    "4",
    "8",
    "0",
    "true",
    "n1",
    "n[1-2]",
    "n.*",
    "{1}{2,3}",
    "",
    "-1",
    "1.5",
    "a,b",
    "ssd",
    "a|b",
)
ATTRIBUTES = {
    **{name: values for name, values in vocabulary.VALUES.items() if "." not in name},
    "group": ("0", "1", "-1", "x"),
    "preference": ("1", "-1", "2"),
    "aggregation": ("List", "Pattern", "Range"),
    "type": ("Rule", "TasksPerNode", "ProcessorsPerTask", "Geometry", "Hard"),
    "name": ("License",),
    "code": ("3",),
    "count": ("2", "0"),
    "delimiter": (":",),
    "export": ("true",),
}


def properties(table, more=()):
    @st.composite
    def build(draw):
        name = draw(
            st.sampled_from([*table, "Processors", "NodeCount", "TaskCount", "TaskDistribution", "Memory"])
        )
        known = vocabulary.JOB_PROPERTIES.get(name)
        allowed = [a for a in (*(known.attributes if known else ()), *more) if a in ATTRIBUTES]
        picked = draw(st.lists(st.sampled_from(allowed), unique=True, max_size=3)) if allowed else []
        attributes = tuple((a, draw(st.sampled_from(ATTRIBUTES[a]))) for a in picked)
        return Element(name, attributes, draw(st.sampled_from(WORDS)))

    return build()


categorised = [name for name, known in vocabulary.JOB_PROPERTIES.items() if known.category]


def container(name, inner):
    return st.builds(
        lambda children, policy: Element(
            name, (("awarenessPolicy", policy),) if policy else (), "", tuple(children)
        ),
        st.lists(inner, max_size=5),
        st.sampled_from(["Ignore", "Ignore", "Warn", None]),
    )


requested = container("Requested", properties(categorised, vocabulary.REQUESTED))
delivered = container("Delivered", properties(categorised, vocabulary.DELIVERED))
plain = properties(vocabulary.JOB_PROPERTIES)
tasks = container("Task", plain | requested)
groups = container("TaskGroup", plain | requested | tasks | container("TaskDefaults", plain))
jobs = st.builds(
    lambda job, number: Element(
        "Job", (("awarenessPolicy", "Ignore"),), "", (Element("Id", (), str(number)), *job.children)
    ),
    container(
        "Job", plain | requested | requested | delivered | groups | container("TaskGroupDefaults", plain)
    ),
    st.integers(1, 4),
)
documents = st.builds(
    lambda members, defaults: Element(
        "JobGroup", (("awarenessPolicy", "Ignore"),), "", (Element("Id", (), "g"), defaults, *members)
    ),
    st.lists(jobs, min_size=1, max_size=3),
    container("JobDefaults", plain | requested),
)


@pytest.mark.slow
@given(jobs | documents)
def test_any_document_gives_jobspecs_or_a_clear_error(tree):
    try:
        document = read_document(write_xml(tree), "f.xml")
        records, _ = job_records(document, "f.xml", cluster=CLUSTER)
    except SimschedError as error:
        event("refused")
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.where is not None
        assert len(str(refused)) < 500
        return
    event("mapped")
    assert read_document(document.to_xml()).root == document.root
    for record in records:
        assert Jobspec.from_dict(record.jobspec.to_dict()) == record.jobspec
        assert record.jobspec.to_shape()
