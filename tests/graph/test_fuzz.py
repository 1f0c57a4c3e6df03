"""No input causes anything but one of our errors, and what loads can be shown and written."""

import copy
import json
import random

import pytest

from simsched import bundled
from simsched.errors import SimschedError
from simsched.graph.build.cluster_files import graph_from_bytes, graph_from_document
from simsched.graph.cluster import Cluster, load_cluster
from simsched.graph.inspect.dot import dot, svg
from simsched.graph.inspect.view import summary, tree_lines
from simsched.graph.write.documents_of import to_document
from simsched.graph.write.losses import FORMATS, losses

VALUES = [
    None, True, -1, 0, 1, 2**70, 10**15, 1.5, "", "x", "0-3", "0-99999999999", "3-1", [], {}, [1], {"a": 1},
    "a[0-", "\ud800", "|", "n" * 1000, "9999999999999 TB",
]  # fmt: skip
KEYS = ["odd", "id", "ids", "rank", "size", "groups", "graph", "status", "unit"]

RECIPE = {
    "groups": [
        {
            "name": "a",
            "count": 4,
            "sockets": 2,
            "cores": 4,
            "gpus": 2,
            "memory": "64 GB",
            "properties": ["x@gpu"],
        },
        {
            "name": "b",
            "hosts": "b[1-2]",
            "pools": [{"type": "hbm", "size": "8 GB", "count": 2}],
            "down": "b1",
        },
    ],
    "levels": [{"type": "rack", "count": 2}],
    "network": {"type": "fat-tree", "nodes_per_leaf": 2, "spines": 2},
    "power": {"budget": "9 kW", "per": {"rack": "4 kW"}, "node": "800 W"},
}


def documents():
    texts = {name: path.read_text() for name, path in bundled.bundled("clusters").items()}
    found = [json.loads(texts[name]) for name in ("tiny", "jgf4", "topo16")]
    found.append(to_document(load_cluster("tiny").graph, "r+jgf"))
    found.append(RECIPE)
    return found, [texts["grug4"].encode(), texts["tiny"].encode(), json.dumps(RECIPE).encode()]


def places(value):
    """Every (container, key) in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


def mutated(document, rng):
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2, 4])):
        container, key = rng.choice(list(places(document)) or [(None, None)])
        if container is None:
            break
        what = rng.random()
        if what < 0.25:
            del container[key]
        elif what < 0.75:
            container[key] = copy.deepcopy(rng.choice(VALUES))
        elif isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        else:
            container[rng.choice(KEYS)] = copy.deepcopy(rng.choice(VALUES))
    return document


def damaged(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 3, 10])):
        start = rng.randrange(len(data))
        data[start : start + rng.choice([0, 1, 5])] = rng.randbytes(rng.choice([0, 1, 3]))
    return bytes(data)


def look_at(data):
    """Load, index, show and write a document; True if it is a cluster."""
    try:
        graph = graph_from_bytes(data)
        Cluster(graph).index._check()
    except SimschedError as error:
        return not error.message
    assert list(tree_lines(graph))
    assert summary(graph).targets
    for draw in (dot, svg):
        assert draw(graph)
    for form in FORMATS:
        losses(graph, form)
        try:
            document = to_document(graph, form)
        except SimschedError:
            continue
        graph_from_document(document)
    return True


@pytest.mark.parametrize(
    ("seed", "rounds"), [(0, 100), *(pytest.param(n, 1000, marks=pytest.mark.slow) for n in (1, 2))]
)
def test_mutated_documents(seed, rounds):
    rng = random.Random(seed)
    values, texts = documents()
    loaded = sum(
        look_at(
            json.dumps(mutated(rng.choice(values), rng)).encode()
            if rng.random() < 0.8
            else damaged(rng.choice(texts), rng)
        )
        for _ in range(rounds)
    )
    assert 0 < loaded < rounds
