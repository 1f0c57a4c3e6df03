"""Clusters with memory in units, and requests with ids, names, units and stepped ranges, at any level."""

from __future__ import annotations

from tests.reference.bruteforce import Graph, Vertex, Want, mentions
from tests.reference.cases import add_node, random_request

SIZES = {"GB": (1, 2, 4), "GiB": (1, 2, 3), "MB": (1500, 2000)}


def rich_cluster(rng, down=0.15):
    """Racks and switches over nodes with sockets and memory; a licence; things that are down."""
    graph = {"cluster0": Vertex("cluster", None)}
    racks = [f"rack{n}" for n in range(rng.choice([0, 0, 1, 2]))]
    switches = [f"switch{n}" for n in range(rng.choice([0, 0, 1, 2]))]
    graph |= {rack: Vertex("rack", "cluster0", up=rng.random() > down) for rack in racks}
    graph |= {switch: Vertex("switch", "cluster0", up=rng.random() > down) for switch in switches}
    sockets, unit = rng.random() < 0.5, rng.choice(["GB", "GB", "GiB"])
    for rank in range(rng.randint(1, 3)):
        parent = rng.choice(racks) if racks else "cluster0"
        add_node(rng, graph, parent, rank, 3, 1, sockets=sockets, down=down)
        over = tuple(s for s in switches if rng.random() < 0.6 or (rank, s) == (0, "switch0"))
        graph[f"node{rank}"] = graph[f"node{rank}"]._replace(over=over)
        if rng.random() < 0.8:
            size = rng.choice(SIZES[unit])
            graph[f"node{rank}/memory"] = Vertex("memory", f"node{rank}", tuple(range(size)), unit=unit)
    if rng.random() < 0.3:
        graph["license0"] = Vertex("license", "cluster0", tuple(range(rng.randint(1, 3))))
    return Graph(graph)


def rich_request(rng, graph):
    """A random request with memory in it, and ids, names, units and steps here and there."""
    types = {vertex.type for vertex in graph.values()}
    if rng.random() < 0.5:
        small = rng.choice(SMALL)
        return SMALL[0] if mentions(small, {"memory", "rack"} - types) else small
    request = random_request(rng, graph)
    if rng.random() < 0.15:
        request += random_request(rng, graph)[:1]
    return tuple(enriched(rng, want, types) for want in request)


def enriched(rng, want, types):
    children = tuple(enriched(rng, child, types) for child in want.children)
    if children and "memory" in types and want.type in {"slot", "node"} and rng.random() < 0.4:
        children += (memory(rng),)
    want = want._replace(children=children)
    if want.type not in {"slot", "memory", "license"} and rng.random() < 0.12:
        want = identified(rng, want)
    if len(want.counts) > 1 and rng.random() < 0.4:
        want = want._replace(counts=rng.choice([(1, 3, 5), (1, 2, 4), (2, 4, 6), (1, 3, 9)]))
    return want


def identified(rng, want):
    if want.type == "node" and rng.random() < 0.4:
        return want._replace(names=tuple(sorted({f"host{rng.randrange(3)}" for _ in range(2)})))
    return want._replace(ids=tuple(sorted({rng.randrange(4) for _ in range(rng.randint(1, 3))})))


def memory_of(count, unit):
    return Want("memory", (count,), (), None, unit)


def memory(rng):
    unit = rng.choice(["", "MB", "GB", "GiB"])
    counts = (
        rng.choice([(500,), (1000,), (1500, 2500), (2000,)])
        if unit == "MB"
        else rng.choice([(1,), (2,), (1, 2)])
    )
    return Want("memory", counts, (), rng.choice([None, None, None, False, True]), unit)


#: What fits often, so that histories have something to release.
SMALL = (
    (Want("slot", (1,), (Want("core", (1,)),)),),
    (Want("slot", (2,), (Want("core", (1,)),)),),
    (Want("slot", (1, 2, 3), (Want("core", (1,)),)),),
    (Want("slot", (1,), (Want("node", (1,)),)),),
    (Want("slot", (1,), (Want("node", (1,), (Want("core", (1,)),), False),)),),
    (Want("slot", (1,), (Want("core", (1,)), memory_of(1500, "MB"))),),
    (Want("node", (1,), (Want("slot", (1,), (Want("core", (1,)), memory_of(1, "GiB"))),)),),
    (Want("core", (2,), (), None, "", (0, 2)),),
    (Want("memory", (1,)),),
    (Want("node", (1, 2), (Want("slot", (1,), (Want("core", (1, 2)),)),), None, "", (0, 1)),),
    (Want("slot", (1,), (Want("core", (1,), (), None, "", (1, 2)),)),),
    (Want("slot", (1,), (Want("rack", (1,)),)),),
    (Want("rack", (1,), (Want("slot", (1,), (Want("core", (1,)),)),), True),),
    (
        Want("rack", (1,), (Want("slot", (1,), (Want("core", (1,)),)),)),
        Want("slot", (1,), (Want("core", (1,)),)),
    ),
)
