"""RFC 31 constraints and their RFC 35 text: meaning held against a naive evaluation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.constraint import (
    ANY,
    NONE,
    And,
    Hosts,
    Not,
    Or,
    Properties,
    Ranks,
    from_json,
    parse_constraint,
    to_json,
)
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.diagnostics import CaretError

#: sixteen targets with every combination of four properties: (rank, host, properties)
TARGETS = [
    (rank, f"n{rank}", frozenset(name for bit, name in enumerate("abcd") if rank >> bit & 1))
    for rank in range(16)
]


def naive(document, target):
    """RFC 31 read word by word, with readings R4 and R5."""
    rank, host, have = target
    if not document:
        return True
    ((operator, values),) = document.items()
    if not values:
        return operator != "not"
    if operator == "properties":
        return all((name[1:] not in have) if name[0] == "^" else (name in have) for name in values)
    if operator == "hostlist":
        return any(host in Hostlist.parse(text) for text in values)
    if operator == "ranks":
        return any(rank in Idset.parse(text) for text in values)
    inner = [naive(value, target) for value in values]
    return {"and": all(inner), "or": any(inner), "not": not all(inner)}[operator]


def holds(constraint, target):
    """The meaning of the tree."""
    rank, host, have = target
    match constraint:
        case Properties(names):
            return have.issuperset(names)
        case Hosts(hostlist):
            return host in hostlist
        case Ranks(idset):
            return rank in idset
        case And(args):
            return all(holds(arg, target) for arg in args)
        case Or(args):
            return any(holds(arg, target) for arg in args) or not args
        case Not(arg):
            return not holds(arg, target)
    return constraint.value


def matched(constraint):
    return [target[0] for target in TARGETS if holds(constraint, target)]


names = st.sampled_from(["a", "b", "c", "d", "^a", "^d", "gone", "^gone"])
leaves = (
    st.lists(names, max_size=3).map(lambda v: {"properties": v})
    | st.lists(st.sampled_from(["n[0-3]", "n1,n2", "n9", "elsewhere"]), max_size=2).map(
        lambda v: {"hostlist": v}
    )
    | st.lists(st.sampled_from(["0-7", "3", "1,5,9", "99"]), max_size=2).map(lambda v: {"ranks": v})
    | st.just({})
)
documents = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda operator, values: {operator: values},
        st.sampled_from(["and", "or", "not"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


@given(documents)
def test_law_the_tree_means_what_the_document_means(document):
    constraint = from_json(document)
    assert matched(constraint) == [target[0] for target in TARGETS if naive(document, target)]
    assert hash(constraint) == hash(from_json(document))


@given(documents)
def test_law_document_and_text_keep_the_meaning(document):
    constraint = from_json(document)
    meaning = matched(constraint)
    assert matched(from_json(to_json(constraint))) == meaning
    assert matched(parse_constraint(str(constraint))) == meaning


@given(st.text(alphabet="ab ()&|-^:'\"nothsrak0,[]", max_size=20))
def test_any_text_is_a_constraint_or_a_fault_with_its_place(text):
    try:
        constraint = parse_constraint(text)
    except CaretError as error:
        fault = error
        assert 0 <= fault.position <= len(text)
    else:
        assert str(parse_constraint(str(constraint))) == str(constraint)


# ---------------------------------------------------------------- RFC 31

SSD, SLOW, HUGE = Properties(("ssd",)), Properties(("slowgpu",)), Properties(("huge",))
HOSTS = Hosts(Hostlist.parse("host[0-1]"))


@pytest.mark.parametrize(
    ("document", "tree"),
    [
        ({"properties": ["ssd"]}, SSD),
        ({"properties": ["^slowgpu"]}, Not(SLOW)),
        ({"not": [{"properties": ["slowgpu"]}]}, Not(SLOW)),
        ({"or": [{"properties": ["ssd"]}, {"properties": ["huge"]}]}, Or((SSD, HUGE))),
        ({"hostlist": ["host[0-1]"]}, HOSTS),
        ({"not": [{"hostlist": ["host[0-1]"]}]}, Not(HOSTS)),
        ({"and": [{"hostlist": ["host[0-1]"]}, {"properties": ["ssd"]}]}, And((HOSTS, SSD))),
        ({"ranks": ["0"]}, Ranks(Idset.parse("0"))),
        ({"not": [{"properties": ["foo", "bar"]}]}, Not(Properties(("foo", "bar")))),  # reading R5
        ({"or": [{"properties": ["foo"]}, {"properties": ["bar"]}]},
         Or((Properties(("foo",)), Properties(("bar",))))),
        ({}, ANY),
        ({"and": []}, ANY),
        ({"or": []}, ANY),
        ({"not": []}, NONE),
        ({"properties": []}, ANY),
        ({"hostlist": []}, ANY),
        ({"ranks": []}, ANY),
        ({"not": [{"properties": ["a"]}, {"ranks": ["1"]}]},
         Not(And((Properties(("a",)), Ranks(Idset.parse("1")))))),
        ({"ranks": [3, "5-6"]}, Ranks(Idset.parse("3,5-6"))),
        ({"hostlist": ["a1", "b[2-3]"]}, Hosts(Hostlist.parse("a1,b[2-3]"))),
    ],
)  # fmt: skip
def test_rfc_31_documents(document, tree):
    assert from_json(document) == tree


@pytest.mark.parametrize(
    ("document", "where", "words"),
    [
        ("ssd", "c", "'ssd' is not a constraint|a string is not a constraint"),
        ([], "c", "a list is not a constraint"),
        (None, "c", "null is not a constraint"),
        ({"nand": []}, "c", "unknown operator 'nand'"),
        ({"and": [], "or": []}, "c", "one object has 2 operators"),
        ({"properties": "ssd"}, "c.properties", "a string is not a list"),
        ({"properties": [4]}, "c.properties[0]", "a number is not a string"),
        ({"properties": ["a", ""]}, "c.properties[1]", "'' is not a property"),
        ({"properties": ["^"]}, "c.properties[0]", r"'\^' is not a property"),
        ({"properties": ["^^a"]}, "c.properties[0]", "is not a property"),
        ({"ranks": ["3-1"]}, "c.ranks[0]", "3-1"),
        ({"ranks": [True]}, "c.ranks[0]", "not an idset"),
        ({"ranks": [-1]}, "c.ranks[0]", "-1"),
        ({"hostlist": ["a["]}, "c.hostlist[0]", "host"),
        ({"hostlist": ["n1", ""]}, "c.hostlist[1]", "the hostlist is empty"),
        ({"ranks": [""]}, "c.ranks[0]", "the idset is empty"),
        ({"hostlist": [None]}, "c.hostlist[0]", "null is not a string"),
        ({"not": {"properties": ["a"]}}, "c.not", "an object is not a list"),
        ({"and": [{}, {"or": [{"xor": []}]}]}, "c.and[1].or[0]", "unknown operator 'xor'"),
    ],
)
def test_faulty_documents(document, where, words):
    with pytest.raises(FormatError, match=words) as caught:
        from_json(document, "c")
    assert (caught.value.where or "").startswith(where)


def test_deep_documents_end_in_a_clear_error():
    document = {}
    for _ in range(10_000):
        document = {"not": [document]}
    with pytest.raises(LimitError, match="deeper than 100 levels"):
        from_json(document)


@pytest.mark.parametrize("character", sorted("!&'\"^`|()"))
@pytest.mark.parametrize("negated", ["", "^"])
def test_a_property_has_no_character_that_rfc_20_forbids(character, negated):
    """RFC 20: property names MUST NOT contain these; no execution target could have such a property."""
    with pytest.raises(FormatError, match="forbidden character") as caught:
        from_json({"and": [{"properties": ["ssd", f"{negated}a{character}b"]}]}, "constraints")
    assert caught.value.where == "constraints.and[0].properties[1]"


# ---------------------------------------------------------------- RFC 35


def name(text):
    return {"properties": [text]}


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("foo", name("foo")),
        ("foo bar", {"and": [name("foo"), name("bar")]}),
        ("foo bar rank:3", {"and": [name("foo"), name("bar"), {"ranks": ["3"]}]}),
        ("a|b|c", {"or": [name("a"), name("b"), name("c")]}),
        ("a|b&c", {"or": [name("a"), {"and": [name("b"), name("c")]}]}),
        ("(a|b)&c", {"and": [{"or": [name("a"), name("b")]}, name("c")]}),
        ("(a|-b)&c", {"and": [{"or": [name("a"), {"not": [name("b")]}]}, name("c")]}),
        ("a && b || c", {"or": [{"and": [name("a"), name("b")]}, name("c")]}),
        ("a and b or not c", {"or": [{"and": [name("a"), name("b")]}, {"not": [name("c")]}]}),
        ("not a b", {"and": [{"not": [name("a")]}, name("b")]}),
        ("not (a b)", {"not": [{"and": [name("a"), name("b")]}]}),
        ("not not a", {"not": [{"not": [name("a")]}]}),
        ("^a", {"not": [name("a")]}),
        ("-host:n[0-3]", {"not": [{"hostlist": ["n[0-3]"]}]}),
        ("host:n[0-3],m7", {"hostlist": ["n[0-3],m7"]}),
        ("hosts:n1", {"hostlist": ["n1"]}),
        ("hostlist:n1", {"hostlist": ["n1"]}),
        ("ranks:0-3,7", {"ranks": ["0-3,7"]}),
        ("properties:a", name("a")),
        ("property:a:b", name("a:b")),
        ("'this is one'", name("this is one")),
        ('host:"n[1-2]"', {"hostlist": ["n[1-2]"]}),
        ("android notify oracle", {"and": [name("android"), name("notify"), name("oracle")]}),
        ("a\tand\nb", {"and": [name("a"), name("b")]}),
        ("()", {}),
        ("not ()", {"not": [{}]}),
    ],
)
def test_rfc_35_texts(text, document):
    assert to_json(parse_constraint(text)) == document


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "empty"),
        ("   ", 0, "empty"),
        ("and", 0, "unexpected 'and'"),
        ("a and", 5, "the constraint ends"),
        ("a or or b", 5, "unexpected 'or'"),
        ("not", 3, "the constraint ends"),
        ("(a", 0, r"unclosed '\('"),
        ("a)", 1, r"unexpected '\)'"),
        ("-(a|b)", 0, "'-' is not directly before a term"),
        ("- a", 0, "'-' is not directly before a term"),
        ("--a", 0, "'-' is not directly before a term"),
        ("a 'b", 2, "unclosed quote"),
        ("a 'b'c", 2, "is not allowed here"),
        ("a properties:'b|c'", 2, r"property 'b\|c' has the forbidden character \|"),
        ('"it\'s"', 0, "has the forbidden character '"),
        ("'it''s'", 0, "has the forbidden character '"),
        ("a b^", 2, r"has the forbidden character \^"),
        ("name:x", 0, "unknown operator 'name'"),
        ("a and rank:x", 6, "x"),
        ("rank:", 0, "nothing follows rank:"),
        (":a", 0, "unknown operator ''"),
        ("4x:a", 0, "unknown operator '4x'"),
        ("properties:''", 0, "'' is not a property"),
        ("''", 0, "'' is not a property"),
        ("host:n[3-", 0, "host"),
        ("rank:3-1", 0, "3-1"),
        ("^", 0, "is not a property"),
        ("host:''", 0, "the hostlist is empty"),
        ("rank:''", 0, "the idset is empty"),
    ],
)
def test_faulty_texts(text, position, words):
    with pytest.raises(CaretError, match=words) as caught:
        parse_constraint(text, where="--constraint")
    assert caught.value.position == position
    assert str(caught.value).startswith("--constraint: ")


@pytest.mark.parametrize("text", ["(" * 10_000 + "a", "not " * 10_000 + "a", "(" * 10_000])
def test_deep_texts_end_in_a_clear_error(text):
    with pytest.raises(LimitError, match="deeper than 100 levels"):
        parse_constraint(text)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(CaretError, match="not UTF-8"):
        parse_constraint("ssd\udcff")


def test_a_long_text_is_refused():
    with pytest.raises(LimitError, match="200001 characters"):
        parse_constraint("a " * 100_000 + "b")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a&b|c", "a and b or c"),
        ("a&(b|c)", "a and (b or c)"),
        ("-a", "not a"),
        ("not(a b)", "not (a and b)"),
        ("not (not a)", "not not a"),
        ("host:node[0-3] | rank:1,2,3", "host:node[0-3] or rank:1-3"),
        ("'a b'", "properties:'a b'"),
        ("'and'", "properties:and"),
        ("'-a'", "properties:-a"),
        ("'a:b'", "properties:a:b"),
        ("()", "()"),
    ],
)
def test_printed_form(text, printed):
    assert str(parse_constraint(text)) == printed
    assert parse_constraint(printed) == parse_constraint(text)
