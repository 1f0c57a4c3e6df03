"""SSS Job Objects: op, conj, group and preference; constraints on nodes; what cannot be done."""

# ruff: noqa: E501 - tables of XML read better unbroken

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.constraint import And, Hosts, Not, Or, Properties
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.sss.expressions import (
    Names,
    accepted,
    by_topic,
    compiled,
    constraint_of,
    expression,
    number_set,
)
from simsched.formats.sss.writer import constraint_elements
from simsched.formats.text.xml_tree import Element
from tests.formats.sss.sssjobs import fails, job, mapped, one

FR15 = Names(("fr14n01", "fr15n01", "fr15n02", "fr15n03", "fr15n04"), ("ssd", "bigmem"))


# -- conditions --------------------------------------------------------------------------


def requested(inner: str) -> str:
    return job(f"<Requested>{inner}</Requested>")


@pytest.mark.parametrize(
    ("inner", "count"),
    [
        ("<Processors op='GE'>8</Processors>", "8+"),
        ("<Processors op='GE'>8</Processors><Processors op='LE'>16</Processors>", "8-16"),
        ("<Processors op='GT'>8</Processors><Processors op='LT'>16</Processors>", "9-15"),
        ("<Processors op='LE'>4</Processors><Processors op='NE'>3</Processors>", "1-2,4"),
        ("<Processors>4</Processors><Processors conj='Or'>8</Processors>", "4,8"),
        ("<Processors op='LE'>8</Processors><Processors conj='Nand' op='LE'>4</Processors>", "5-8"),
        ("<Processors>2</Processors><Processors conj='Nor' op='GE'>5</Processors>", "1-4"),
        ("<Processors preference='1'>4</Processors><Processors preference='2'>8</Processors>", "4,8"),
        ("<Processors preference='-1'>4</Processors>", "1"),
        ("<Processors group='-1'>12</Processors><Processors conj='Or' group='1'>16</Processors>", "12,16"),
        (
            "<Processors op='LE'>4</Processors><Processors conj='And' group='1'>4</Processors><Processors conj='Or' group='-1'>8</Processors>",
            "4",
        ),
        (
            "<Processors op='LE'>4</Processors><Processors>4</Processors><Processors conj='Or'>8</Processors>",
            "4,8",
        ),
    ],
)
def test_conditions_on_a_count(inner, count):
    assert str(one(requested(inner)).jobspec.resources[0].count) == count


comparison = st.tuples(
    st.sampled_from(["EQ", "NE", "LT", "GT", "LE", "GE"]),
    st.integers(1, 9),
    st.sampled_from(["And", "Or", "Nand", "Nor"]),
)
_OPS = {
    "EQ": int.__eq__, "NE": int.__ne__, "LT": int.__lt__, "GT": int.__gt__, "LE": int.__le__, "GE": int.__ge__,
}  # fmt: skip
_JOIN = {
    "And": lambda a, b: a and b, "Or": lambda a, b: a or b,
    "Nand": lambda a, b: a and not b, "Nor": lambda a, b: a or not b,
}  # fmt: skip


@given(st.lists(comparison, min_size=1, max_size=6), st.integers(0, 5), st.integers(0, 5), st.integers(1, 12))
def test_conditions_are_evaluated_from_left_to_right_with_groups(terms, opens, closes, probe):
    """R11: op, conj and group are evaluated left to right with explicit groups."""
    opens, closes = sorted((opens % len(terms), closes % len(terms)))
    elements = []
    for position, (op, value, conj) in enumerate(terms):
        group = (position == opens) - (position == closes)
        elements.append(
            Element("Processors", (("op", op), ("conj", conj), ("group", str(group))), str(value))
        )
    tree = expression(elements)
    assert tree is not None
    got = probe in number_set(tree, lambda e: Fraction(e.text))

    def fold(part):
        truth = None
        for holds, conj in part:
            if truth is None:
                truth = holds if conj in ("And", "Or") else not holds
            else:
                truth = _JOIN[conj](truth, holds)
        return truth

    flat = [(bool(_OPS[op](probe, value)), conj) for op, value, conj in terms]
    if opens < closes:
        inner = [(flat[opens][0], "And"), *flat[opens + 1 : closes + 1]]
        flat = [*flat[:opens], (fold(inner), flat[opens][1]), *flat[closes + 1 :]]
    assert got == fold(flat)


def test_fractions_count_as_the_next_whole_number():
    assert [str(accepted(op, Fraction(5, 2))) for op in ("EQ", "LE", "LT")] == ["3", "1-2", "1-2"]
    assert [accepted(op, Fraction(5, 2)).first for op in ("GE", "GT")] == [3, 3]


@pytest.mark.parametrize("signs", [("1", "0"), ("0", "-1"), ("2", "-1"), ("1", "1"), ("99", "-99")])
def test_groups_must_balance(signs):
    first, second = signs
    inner = f"<Processors group='{first}'>4</Processors><Processors conj='Or' group='{second}'>8</Processors>"
    assert "f.xml:1:27: the group attributes do not balance" in fails(requested(inner))


def test_requests_are_not_endless():
    inner = "".join(
        f"<Processors conj='{'Or' if i % 2 else 'And'}'>{i + 1}</Processors>" for i in range(5000)
    )
    with pytest.raises(LimitError, match="5000 requested properties"):
        mapped(requested(inner))


def test_alternatives_of_one_user_take_the_first():
    """The document's own example: scottmo on mscfops, or amy on chemistry."""
    record = one(
        requested(
            "<User group='1'>scottmo</User><Account group='-1'>mscfops</Account>"
            "<User conj='Or' group='1'>amy</User><Account group='-1'>chemistry</Account>"
        )
    )
    assert (record.user, record.project) == ("scottmo", "mscfops")


def test_alternatives_of_two_topics_follow_the_policy():
    inner = "<Processors>4</Processors><Memory conj='Or'>8</Memory>"
    assert "alternatives of Processors and something else" in fails(requested(inner))
    text = job(f"<Requested>{inner}</Requested>", " awarenessPolicy='Warn'")
    (record,), warnings = mapped(text)
    assert record.jobspec.to_shape() == "slot=4/core"
    assert len(warnings) == 1


@pytest.mark.parametrize(
    ("inner", "seconds"),
    [
        ("<Duration>60</Duration>", 60),
        ("<Requested><Duration op='LE'>60</Duration></Requested>", 60),
        ("<Requested><Duration op='GE'>60</Duration></Requested>", 60),
        ("<Duration>0</Duration>", None),
        ("", None),
    ],
)
def test_durations(inner, seconds):
    record = one(job(inner))
    assert record.duration == record.jobspec.duration == seconds


# -- constraints -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "constraint"),
    [
        ("<Feature>ssd</Feature>", Properties(("ssd",))),
        ("<Feature aggregation='List'>ssd, bigmem</Feature>", Properties(("ssd", "bigmem"))),
        ("<Feature aggregation='List' delimiter=':'>a:b</Feature>", Properties(("a", "b"))),
        ("<Feature aggregation='Pattern'>s.*</Feature>", Properties(("ssd",))),
        ("<Feature op='Match'>s.*|bigmem</Feature>", Or((Properties(("ssd",)), Properties(("bigmem",))))),
        ("<Feature op='NE'>ssd</Feature>", Not(Properties(("ssd",)))),
        ("<Architecture>arm</Architecture><OpSys>linux</OpSys>", And((Properties(("arm",)), Properties(("linux",))))),
        ("<NetworkType>ib</NetworkType><Partition conj='Or'>p</Partition>", Or((Properties(("ib",)), Properties(("p",))))),
        ("<Node>fr15n01</Node>", Hosts(Hostlist.parse("fr15n01"))),
        ("<Node aggregation='List'>a,b</Node>", Hosts(Hostlist.parse("a,b"))),
        ("<Node aggregation='Range'>n[5-7,9]</Node>", Hosts(Hostlist.parse("n[5-7,9]"))),
        ("<Node aggregation='Pattern'>fr15n0[12]</Node>", Hosts(Hostlist.parse("fr15n[01-02]"))),
        ("<Feature preference='-3'>ssd</Feature>", None),
        ("<Feature preference='1'>a</Feature><Feature preference='2'>b</Feature>", Or((Properties(("b",)), Properties(("a",))))),
        ("<Feature>a</Feature><Feature conj='Nand'>b</Feature>", And((Properties(("a",)), Not(Properties(("b",)))))),
    ],
)  # fmt: skip
def test_constraints(inner, constraint):
    assert one(requested(inner), FR15).jobspec.constraint == constraint


@pytest.mark.parametrize(
    ("inner", "hosts"),
    [
        ("<Node>a1</Node><Node>a2</Node><Node>a4</Node><Node>a1</Node>", "host:a[1-2,4]"),
        ("<Node>a1</Node><Feature>ssd</Feature><Node>a2</Node>", "host:a[1-2] and ssd"),
        ("<Node>a1</Node><Node aggregation='Range'>a[1-3]</Node>", "host:a1 and host:a[1-3]"),
        ("<Node>a1</Node><Node op='NE'>a2</Node>", "host:a1 and not host:a2"),
        ("<Node>a1</Node><Node conj='Or'>a2</Node>", "host:a1 or host:a2"),
    ],
)
def test_nodes_named_one_by_one_are_those_that_may_serve(inner, hosts):
    """No node is two: "node a1 and node a2" of a job is one of them for each of its nodes."""
    assert str(one(requested(inner)).jobspec.constraint) == hosts


def test_a_pattern_that_matches_nothing_matches_nothing():
    record = one(requested("<Node aggregation='Pattern'>x.*</Node>"), FR15)
    assert record.jobspec.system["constraints"] == {"not": ()}


def test_a_node_count_may_stand_on_the_node_element():
    record = one(requested("<Node aggregation='Range' count='2'>n[1-4]</Node>"))
    assert record.jobspec.to_shape() == "node=2/slot/core"


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(", "is not a regular expression"),
        ("(a+)+b", "has too many repeats"),
        ("(a|a)*(b*)*", "has too many repeats"),
        (".*.*.*.*x", "has too many repeats"),
        (r"(a)\1", "has too many repeats"),
        ("a" * 300, "a pattern of 300 characters"),
        ("a{99999999999}", "is not a regular expression"),
    ],
)
def test_patterns_are_quick_or_refused(pattern, says):
    with pytest.raises(FormatError, match=says):
        compiled(pattern)


@pytest.mark.parametrize(
    ("inner", "says"),
    [
        ("<Reservation>r</Reservation>", "Reservation: there are no named reservations"),
        ("<Requested><Network>5</Network></Requested>", "Network: network bandwidth is not matched"),
        ("<Requested><Memory context='Configured'>5</Memory></Requested>", "context Configured"),
        ("<Requested><User op='GE'>a</User></Requested>", "op GE has no meaning for User"),
        (
            "<Requested><Processors op='Match'>4</Processors></Requested>",
            "op Match has no meaning for Processors",
        ),
        ("<Dependency>nobody</Dependency>", "job 'nobody' is not in the document"),
        ("<Dependency designator='JobName'>nobody</Dependency>", "job named 'nobody' is not in the document"),
    ],
)
def test_what_cannot_be_done_follows_the_awareness_policy(inner, says):
    assert says in fails(job(inner))
    _, warnings = mapped(job(inner, " awarenessPolicy='Warn'"))
    assert len(warnings) == 1
    assert says in str(warnings[0])
    _, silent = mapped(job(inner, " awarenessPolicy='Ignore'"))
    assert silent == ()


@pytest.mark.parametrize(
    ("inner", "says"),
    [
        ("<Feature>a|b</Feature>", "property 'a|b' has the forbidden character |"),
        ("<Node aggregation='Range'>n[5-1]</Node>", "the range '5-1' descends"),
    ],
)
def test_bad_names_of_nodes_and_features(inner, says):
    assert says in fails(requested(inner))


names_ = st.sampled_from("abcd")
atoms = st.builds(lambda n: Properties((n,)), names_) | st.builds(
    lambda n: Hosts(Hostlist.from_hosts([n])), names_
)
constraints = st.recursive(
    atoms,
    lambda inner: st.builds(Not, inner) | st.builds(lambda a, b, every: (And if every else Or)((a, b)), inner, inner, st.booleans()),
    max_leaves=6,
)  # fmt: skip


def holds(constraint, properties, host):
    match constraint:
        case Properties(names):
            return set(names) <= properties
        case Hosts(hosts):
            return host in hosts
        case Not(arg):
            return not holds(arg, properties, host)
        case And(args):
            return all(holds(a, properties, host) for a in args)
        case Or(args):
            return any(holds(a, properties, host) for a in args)
    raise AssertionError(constraint)


@given(constraints, st.sets(names_), names_)
def test_constraints_keep_their_meaning_as_conj_and_group(constraint, properties, host):
    elements = constraint_elements(constraint)
    tree = expression(elements)
    topics = by_topic(tree, lambda _: pytest.fail("a constraint is one topic"))
    assume(topics)
    read = constraint_of(topics["constraint"], None)
    assert holds(read, properties, host) == holds(constraint, properties, host)
