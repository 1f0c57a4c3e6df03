"""GRUG text: GraphML with declared keys and defaults, faults by line."""

import pytest

from simsched.errors import FormatError, LimitError
from simsched.formats.cluster.grug import parse_grug

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="root" for="node" attr.name="root" attr.type="int"><default>0</default></key>
<key id="t" for="node" attr.name="type" attr.type="string"/>
<key id="size" for="node" attr.name="size" attr.type="long"><default>2</default></key>
<key id="scale" for="edge" attr.name="multi_scale" attr.type="int"/>
<key id="gen" for="edge" attr.name="gen_method" attr.type="string"/>
<graph id="g" edgedefault="directed">
"""
ROOT = '<node id="c"><data key="root">1</data><data key="t"> cluster </data></node>\n'
NODE = '<node id="n"><data key="t">node</data><data key="size">7</data></node>\n'


def read(body, head=HEAD):
    return parse_grug(f"{head}{body}</graph></graphml>", where="g.xml")


def test_values_defaults_and_lines():
    grug = read(f'{ROOT}{NODE}<edge source="c" target="n"><data key="scale">3</data></edge>')
    assert grug.name == "g"
    root, node = grug.vertices["c"], grug.vertices["n"]
    assert (root.type, root.basename, root.root, root.size) == ("cluster", "cluster", 1, 2)
    assert (node.size, node.subsystem, node.line) == (7, "containment", 10)
    edge = grug.edges[0]
    assert (edge.scale, edge.method, edge.relation, edge.reverse) == (3, "MULTIPLY", "contains", "in")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (NODE, "g.xml: the recipe has no root"),
        (ROOT + ROOT, "g.xml:10:[0-9]+: two vertices have the name 'c'"),
        (f'{ROOT}<edge source="c" target="x"/>', "g.xml:10:[0-9]+: no vertex has the name 'x'"),
        (f'{ROOT}<edge source="c"/>', "g.xml:10:[0-9]+: the key 'target' is missing"),
        (f'{ROOT}<node id="n"/>', "g.xml:10:[0-9]+: the key 'type' is missing"),
        (
            f'{ROOT}{NODE}<edge source="c" target="n"><data key="gen">CLONE</data></edge>',
            "generation method 'CLONE'",
        ),
        (
            f'{ROOT}{NODE}<edge source="c" target="n"><data key="scale">-1</data></edge>',
            "multi_scale: found '-1'",
        ),
        (
            f'{ROOT}{NODE}<edge source="c" target="n"><data key="scale">1e3</data></edge>',
            "multi_scale: found '1e3'",
        ),
        (
            f'{ROOT}<node id="n"><data key="colour">red</data></node>',
            "g.xml:10:[0-9]+: data key 'colour' is not declared",
        ),
        (f"{ROOT}<node>", "g.xml:10:[0-9]+: not XML: mismatched tag"),
        ("&nothing;", "g.xml:9:[0-9]+: not XML: undefined entity"),
    ],
)
def test_faults_name_their_line(body, fault):
    with pytest.raises(FormatError, match=fault):
        read(body)


def test_other_xml_is_not_graphml():
    with pytest.raises(FormatError, match="not GraphML"):
        parse_grug("<svg/>")


def test_document_types_and_so_entity_bombs_are_refused():
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><graphml>&b;</graphml>'
    with pytest.raises(FormatError, match="line 1, column 13: a DOCTYPE is not accepted"):
        parse_grug(bomb)


def test_deep_nesting_and_too_many_elements_are_refused():
    with pytest.raises(LimitError, match="nested deeper than 50 levels"):
        parse_grug("<graphml>" + "<a>" * 200_000)
    with pytest.raises(LimitError, match="more than 100,000"):
        read("<edge/>" * 100_001)


def test_text_between_elements_is_ignored():
    """The recipes of Fluxion have the `>` of <graphml> before its last attributes, which are text then."""
    end = 'graphdrawing.org/xmlns">'
    stray = HEAD.replace(end, f"{end}\n    xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'>")
    assert stray != HEAD
    assert read(ROOT, stray).vertices.keys() == read(ROOT).vertices.keys()


def test_data_do_not_replace_attributes_of_the_element():
    head = HEAD.replace("<graph ", '<key id="i" for="node" attr.name="id" attr.type="string"/>\n<graph ')
    node = '<node id="n" size="9"><data key="t">node</data><data key="i">other</data></node>'
    assert read(f"{ROOT}{node}", head).vertices["n"].size == 2
