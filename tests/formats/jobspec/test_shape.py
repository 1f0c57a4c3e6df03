"""RFC 46: every example of the document, both ways, and every rule of the grammar."""

from __future__ import annotations

import re

import pytest

from simsched.errors import FormatError, LimitError
from simsched.formats.jobspec.shape import format_shape, parse_shape
from simsched.formats.text.diagnostics import CaretError
from simsched.formats.text.yaml_text import load_yaml, to_yaml

#: use case of RFC 46 -> its shape, and the resources beside it
EXAMPLES = {
    "1.1": (
        "slot=4/node",
        """\
- type: slot
  count: 4
  label: default
  with:
  - type: node
    count: 1
""",
    ),
    "1.2": (
        "slot=3-30/node",
        """\
- type: slot
  count:
    min: 3
    max: 30
    operator: +
    operand: 1
  label: default
  with:
  - type: node
    count: 1
""",
    ),
    "1.3": (
        "slot=4{nodelevel}/node{-x}/socket=2+/core=4+",
        """\
- type: slot
  count: 4
  label: nodelevel
  with:
  - type: node
    count: 1
    exclusive: false
    with:
    - type: socket
      count:
        min: 2
      with:
      - type: core
        count:
          min: 4
""",
    ),
    "1.4": (
        "slot=4{nodelevel}/node/socket=2/core=4",
        """\
- type: slot
  count: 4
  label: nodelevel
  with:
  - type: node
    count: 1
    with:
    - type: socket
      count: 2
      with:
      - type: core
        count: 4
""",
    ),
    "1.5": (
        "[cluster/slot=2{ib}/node/[memory=4{unit:GB};ib10g];switch/slot=2{bicore}/node/core=2]",
        """\
- type: cluster
  count: 1
  with:
  - type: slot
    count: 2
    label: ib
    with:
    - type: node
      count: 1
      with:
      - type: memory
        count: 4
        unit: GB
      - type: ib10g
        count: 1
- type: switch
  count: 1
  with:
  - type: slot
    count: 2
    label: bicore
    with:
    - type: node
      count: 1
      with:
      - type: core
        count: 2
""",
    ),
    "1.6": (
        "cluster=2/slot/node=1+{-x}/core=30",
        """\
- type: cluster
  count: 2
  with:
  - type: slot
    count: 1
    label: default
    with:
    - type: node
      count:
        min: 1
      exclusive: false
      with:
      - type: core
        count: 30
""",
    ),
    "1.7": (
        "switch=3/slot/node=1+{-x}/core",
        """\
- type: switch
  count: 3
  with:
  - type: slot
    count: 1
    label: default
    with:
    - type: node
      count:
        min: 1
      exclusive: false
      with:
      - type: core
        count: 1
""",
    ),
    "1.8": (
        "slot=4,9,16,25/node",
        """\
- type: slot
  count: 4,9,16,25
  label: default
  with:
  - type: node
    count: 1
""",
    ),
    "2.3": (
        "slot=10/core=2",
        """\
- type: slot
  count: 10
  label: default
  with:
  - type: core
    count: 2
""",
    ),
    "2.4": (
        "node/[slot=10{read-db}/[core;memory=4{unit:GB}];slot{db}/[core=6;memory=24{unit:GB}]]",
        """\
- type: node
  count: 1
  with:
  - type: slot
    count: 10
    label: read-db
    with:
    - type: core
      count: 1
    - type: memory
      count: 4
      unit: GB
  - type: slot
    count: 1
    label: db
    with:
    - type: core
      count: 6
    - type: memory
      count: 24
      unit: GB
""",
    ),
    "2.5": (
        "slot=10/[memory=2+{unit:GB};core]",
        """\
- type: slot
  count: 10
  label: default
  with:
  - type: memory
    count:
      min: 2
    unit: GB
  - type: core
    count: 1
""",
    ),
    "2.6": (
        "slot=2{4GB-node}/node/memory=4+{unit:GB}",
        """\
- type: slot
  count: 2
  label: 4GB-node
  with:
  - type: node
    count: 1
    with:
    - type: memory
      count:
        min: 4
      unit: GB
""",
    ),
    "2.7": (
        "slot/node",
        """\
- type: slot
  count: 1
  label: default
  with:
  - type: node
    count: 1
""",
    ),
}
EXAMPLES |= dict.fromkeys(("2.1", "2.2"), EXAMPLES["1.1"]) | dict.fromkeys(("2.8", "2.9"), EXAMPLES["2.7"])


@pytest.mark.parametrize("case", EXAMPLES)
def test_example_expands_to_the_document_beside_it(case):
    shape, document = EXAMPLES[case]
    expanded = [vertex.to_dict() for vertex in parse_shape(shape)]
    assert expanded == load_yaml(document)
    assert to_yaml(expanded) == document


@pytest.mark.parametrize("case", EXAMPLES)
def test_example_comes_back_as_a_shape_that_expands_to_the_same(case):
    shape, _ = EXAMPLES[case]
    resources = parse_shape(shape)
    back = format_shape(resources)
    assert parse_shape(back) == resources
    assert len(back) <= len(shape)


def one(text):
    """The document of the only vertex of a shape."""
    (vertex,) = parse_shape(text)
    return vertex.to_dict()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("core", 1),
        ("core=1", 1),
        ("core=[4]", 4),
        ("core=4", 4),
        ("core=2,4", "2,4"),
        ("core=[2,4]", "2,4"),
        ("core=2-4,8", "2-4,8"),
        ("core=2-4", {"min": 2, "max": 4, "operator": "+", "operand": 1}),
        ("core=[2-4]", {"min": 2, "max": 4, "operator": "+", "operand": 1}),
        ("core=2+", {"min": 2}),
        ("core=2+:3", {"min": 2, "operator": "+", "operand": 3}),
        ("core=1-16:2:*", {"min": 1, "max": 16, "operator": "*", "operand": 2}),
        ("core=2+:2:^", {"min": 2, "operator": "^", "operand": 2}),
        ("core=1-9:2:+", {"min": 1, "max": 9, "operator": "+", "operand": 2}),
    ],
)
def test_counts(text, count):
    assert one(text) == {"type": "core", "count": count}


def test_the_exclusive_key_in_all_its_spellings():
    for text in ("node{x}", "node{+x}", "node{exclusive}", "node{+exclusive}", "node{x:true}"):
        assert one(text)["exclusive"] is True
    for text in ("node{-x}", "node{-exclusive}", "node{exclusive:false}", "node{ - x }"):
        assert one(text)["exclusive"] is False


def test_a_quoted_x_is_a_key_of_its_own():
    assert one('node{"x"}') == {"type": "node", "count": 1, "x": True}


def test_values_are_json_relaxed_objects_or_plain_strings():
    text = """node{a:1,b:-2.5e1,c:null,d:true,e:[1,"two",{"f":[]}],g:{h:i,+j,-k,l},"m n":'o\\'p',q:4GB}"""
    assert one(text) == {
        "type": "node",
        "count": 1,
        "a": 1,
        "b": -25.0,
        "c": None,
        "d": True,
        "e": [1, "two", {"f": []}],
        "g": {"h": "i", "j": True, "k": False, "l": True},
        "m n": "o'p",
        "q": "4GB",
    }


def test_an_unquoted_value_may_hold_what_means_nothing_there():
    assert one("memory=4{unit:GB/s,id:-a=b:c+}")["id"] == "-a=b:c+"
    assert (
        format_shape(parse_shape("disk{id:'/dev/sd[a-b]',unit:'GB/s'}"))
        == 'disk{unit:GB/s,id:"/dev/sd[a-b]"}'
    )
    with pytest.raises(CaretError, match="unexpected ';'"):
        parse_shape("node{id:a;unit:GB}")


def test_x_means_exclusive_only_among_the_keys_of_a_vertex():
    assert one("node{a:{x}}")["a"] == {"x": True}


def test_a_string_that_looks_like_another_value_is_quoted():
    assert one('node{id:"4",unit:"true"}') == {"type": "node", "count": 1, "id": "4", "unit": "true"}
    assert format_shape(parse_shape('node{id:"4",unit:"true"}')) == 'node{unit:"true",id:"4"}'


def test_both_quotes_and_the_escapes_of_json():
    assert one(r'"a\"b\\cé😀"')["type"] == 'a"b\\cé😀'
    assert one(r"'it\'s'{id:'rack[0-3]'}") == {"type": "it's", "count": 1, "id": "rack[0-3]"}


def test_blanks_mean_nothing_between_the_parts():
    spaced = " [ slot = [ 4 ] { a , x , id : 'b c' } / [ core = 2 , 4 ; gpu ] ;\n\tnode{ } ] "
    assert parse_shape(spaced) == parse_shape("[slot=4{a,x,id:'b c'}/[core=2,4;gpu];node]")


def test_a_slot_names_its_label_first_and_a_lone_one_need_not():
    assert one("slot{x}/core")["label"] == "x"
    assert one("slot{a,x}/core")["exclusive"] is True
    assert one("slot/core")["label"] == "default"
    assert format_shape(parse_shape("slot{default}/core")) == "slot/core"
    assert format_shape(parse_shape("slot{default,x}/core")) == "slot{default,x}/core"


def test_a_list_of_one_needs_no_brackets():
    assert parse_shape("[node=2/[core=4]]") == parse_shape("node=2/core=4")


@pytest.mark.parametrize("empty", ["node{}", "node{ }", "[node]"])
def test_empty_braces_and_brackets_go(empty):
    assert format_shape(parse_shape(empty)) == "node"


# ---------------------------------------------------------------- faults

#: a shape, the position of its fault (from 0), words of the message
FAULTS = [
    ("", 0, "text ends instead of the type"),
    ("   ", 3, "text ends instead of the type"),
    ("slot/", 5, "text ends instead of the type"),
    ("slot", 4, "too early"),
    ("slot=4", 6, "too early"),
    ("[slot;core]", 5, "unexpected ';'"),
    ("core;gpu", 4, "brackets"),
    ("[core;gpu", 0, "unclosed '['"),
    ("core;gpu]", 4, "brackets"),
    ("core]", 4, "unexpected ']'"),
    ("[core gpu]", 6, "unexpected 'g'"),
    ("[]", 1, "found ']'"),
    ("[core;]", 6, "found ']'"),
    ("[[core;gpu];node]", 1, "found '['"),
    ("node/[core;gpu}", 14, "unexpected '}'"),
    ("node//core", 5, "found '/'"),
    ("node{x", 4, "unclosed '{'"),
    ("node{x,", 7, "text ends instead of a key"),
    ("node{x}}", 7, "unexpected '}'"),
    ("node{,}", 5, "found ','"),
    ("node{a:}", 7, "found '}'"),
    ("node{a:[1,2}", 11, "unexpected '}'"),
    ("node{a:{b:1}", 4, "unclosed '{'"),
    ("node{a:{b:1,b:2}}", 12, "twice"),
    ("node{x,-x}", 7, "twice"),
    ("node{x,exclusive:true}", 7, "twice"),
    ("node{+x:true}", 7, "a sign and a value"),
    ("node{x:1}", 5, "wrong type"),
    ("node{unit:4}", 5, "wrong type"),
    ("node{id}", 5, "wrong type"),
    ("node{with:core}", 5, "its own place"),
    ("node{count:4}", 5, "its own place"),
    ("node{a:NaN}", 7, "NaN"),
    ("node{a:1e999}", 7, "too large"),
    ("node{a:'b}", 7, "unclosed quote"),
    ("node{'a:1}", 5, "unclosed quote"),
    (r"node{a:'\q'}", 8, "unknown escape"),
    (r"node{a:'\ud800'}", 8, "surrogate"),
    ("core=", 5, "empty"),
    ("core=/gpu", 5, "empty"),
    ("core=[]", 5, "empty"),
    ("core=[4", 5, "unclosed"),
    ("core=4]", 6, "unexpected ']'"),
    ("core=0", 5, "cannot be 0"),
    ("core=2/gpu=0", 11, "cannot be 0"),
    ("core=0-4", 5, "cannot be 0"),
    ("core=0,4", 5, "cannot be 0"),
    ("core=04", 5, "leading zero"),
    ("core=2-04", 7, "leading zero"),
    ("core=-4", 5, "found '-'"),
    ("core=4.5", 6, "found '.'"),
    ("core=x", 5, "found 'x'"),
    ("core=5-2", 7, "before its start"),
    ("core=4,2", 7, "not ascending"),
    ("core=2,2", 7, "not ascending"),
    ("core=2-4,3", 9, "not ascending"),
    ("core=2,", 7, "the end"),
    ("core=4:2", 6, "operand without a range"),
    ("core=1-4:0", 9, "cannot be 0"),
    ("core=1-4:2:", 11, "unknown operator"),
    ("core=1-4:2:%", 11, "unknown operator"),
    ("core=1-4:1:*", 9, "operand of *"),
    ("core=1-4:2:^", 5, "min cannot be 1"),
    ("core=1-4:2:*:3", 12, "found ':'"),
    ("core=4 4", 6, "blank splits"),
    ("core=99999999999999999999", 5, "too large"),
    ("[slot/core;slot/gpu]", 1, "no label"),
    ("[slot{a}/core;slot/gpu]", 14, "no label"),
    ("[slot{a}/core;slot{a}/gpu]", 19, "twice"),
    ("[node{label:a};slot{a}/gpu]", 20, "twice"),
    ("[node{label:default};slot/gpu]", 21, "taken"),
    ("slot{}/core", 5, "found '}'"),
    ("slot{label:a}/core", 5, "label alone"),
    ("slot{+a}/core", 5, "label"),
    ("slot{a,label:b}/core", 7, "twice"),
    ("'slot'/core", 0, "without quotes"),
    ("=4", 0, "found '='"),
    ("node=4=5", 6, "found '='"),
    ("node{x}{y}", 7, "unexpected '{'"),
    ("node{x}=4", 7, "unexpected '='"),
]


@pytest.mark.parametrize(("text", "position", "words"), FAULTS)
def test_fault_is_shown_at_its_place(text, position, words):
    with pytest.raises(CaretError, match=re.escape(words)) as caught:
        parse_shape(text)
    assert caught.value.position == position
    assert caught.value.expected
    if text:
        assert str(caught.value).endswith(f"\n  {text}\n  {' ' * position}^")


def test_the_whole_message_as_a_user_sees_it():
    with pytest.raises(FormatError) as caught:
        parse_shape("slot=4/node{-x}/core=4-2", where="requests.txt:7")
    assert str(caught.value) == (
        "requests.txt:7: the range ends at 2, before its start 4 (expected at least 4)\n"
        "  slot=4/node{-x}/core=4-2\n"
        "                         ^"
    )


def test_of_a_long_shape_only_the_neighbourhood_is_shown():
    with pytest.raises(FormatError) as caught:
        parse_shape("[" + "core;" * 500 + "gpu=0;" + "core;" * 500 + "core]")
    shown, mark = str(caught.value).splitlines()[1:]
    assert len(shown) < 90
    assert shown[mark.index("^")] == "0"


@pytest.mark.parametrize("levels", [101, 10_000])
@pytest.mark.parametrize("unit", ["a/", "[a/", "slot/", "a{x}/"])
def test_deep_nesting_ends_in_a_clear_error(unit, levels):
    with pytest.raises(FormatError, match="nested deeper than 100 levels"):
        parse_shape(unit * levels + "b")


@pytest.mark.parametrize("opening", ["[", "{a:"])
def test_deep_values_end_in_a_clear_error(opening):
    with pytest.raises(LimitError, match="nested deeper"):
        parse_shape("node{a:" + opening * 10_000)


def test_a_hundred_levels_are_fine():
    text = "a/" * 99 + "b"
    assert format_shape(parse_shape(text)) == text


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(CaretError, match="not UTF-8") as caught:
        parse_shape("node{id:a\udcff}")
    assert caught.value.position == 9


@pytest.mark.parametrize("text", ["core=" + "1" * 10_000_000, "[" + "core;" * 2_000_000 + "core]"])
def test_ten_megabytes_are_refused_at_once(text):
    with pytest.raises(LimitError, match="characters"):
        parse_shape(text)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("node=1{memory=4GB}", 13, "a resource inside follows '/': node=1/core=4"),
        ("nodes=2,cores=4", 8, "of two resources [node=2;core=4] or node=2/core=4"),
    ],
)
def test_resources_in_braces_and_behind_commas(text, position, message):
    with pytest.raises(CaretError, match=re.escape(message)) as caught:
        parse_shape(text)
    assert caught.value.position == position


def test_equal_texts_are_parsed_once():
    assert parse_shape("node=3/core=7") is parse_shape("node=3/core=7")
