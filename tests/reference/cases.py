"""Random tiny clusters and requests, for the oracle and, translated, for simsched."""

from __future__ import annotations

from tests.reference.bruteforce import Graph, Vertex, Want

PROPERTIES = ("big", "fast")


# --- clusters ------------------------------------------------------------------------------------------


def flat_cluster(rng, nodes=4, cores=4, gpus=2):
    """Nodes with cores and gpus under one root: what R_lite can say."""
    graph = {"cluster0": Vertex("cluster", None)}
    for rank in range(rng.randint(1, nodes)):
        add_node(rng, graph, "cluster0", rank, cores, gpus, sockets=False)
    return Graph(graph)


def tree_cluster(rng, down=0.15):
    """Racks, sockets, memory pools, a licence of the whole cluster, and things that are down."""
    graph = {"cluster0": Vertex("cluster", None)}
    racks = rng.choice([0, 0, 1, 2])
    for rack in range(racks):
        graph[f"rack{rack}"] = Vertex("rack", "cluster0", up=rng.random() > down)
    sockets = rng.random() < 0.6
    for rank in range(rng.randint(1, 3)):
        parent = f"rack{rng.randrange(racks)}" if racks else "cluster0"
        add_node(rng, graph, parent, rank, 3, 1, sockets=sockets, down=down)
    if rng.random() < 0.3:
        graph["license0"] = Vertex("license", "cluster0", tuple(range(rng.randint(1, 3))))
    return Graph(graph)


def network_cluster(rng):
    """Nodes in one cluster, and switches that dominate some of them over a second subsystem."""
    graph = dict(flat_cluster(rng, nodes=4, cores=3, gpus=1))
    names = [f"switch{n}" for n in range(rng.randint(1, 3))]
    switches = {name: Vertex("switch", "cluster0", up=rng.random() > 0.1) for name in names}
    for name, vertex in graph.items():
        if vertex.type == "node":
            over = tuple(s for s in names if rng.random() < 0.5 or (name, s) == ("node0", "switch0"))
            graph[name] = vertex._replace(over=over, up=rng.random() > 0.1)
    return Graph(graph | switches)


CLUSTERS = {"flat": flat_cluster, "tree": tree_cluster, "network": network_cluster}
FOLDERS = {"node", "rack", "socket", "switch"}


def add_node(rng, graph, parent, rank, cores, gpus, *, sockets, down=0.0):
    name = f"node{rank}"
    properties = frozenset(p for p in PROPERTIES if rng.random() < 0.4)
    graph[name] = Vertex("node", parent, (0,), properties, rng.random() >= down, rank, f"host{rank}")
    homes = [name]
    if sockets:
        homes = [f"{name}/socket{n}" for n in range(rng.randint(1, 2))]
        graph.update({home: Vertex("socket", name, up=rng.random() >= down) for home in homes})
    first = {"core": 0, "gpu": 0}
    for home in homes:
        for kind, most in (("core", cores), ("gpu", gpus)):
            units = rng.randint(1 if kind == "core" else 0, most)
            if units:
                graph[f"{home}/{kind}"] = Vertex(kind, home, tuple(range(first[kind], first[kind] + units)))
                first[kind] += units


def to_r(graph):
    """The R document (RFC 20) of a flat cluster."""
    nodes = [(name, vertex) for name, vertex in graph.items() if vertex.type == "node"]
    lite = []
    for name, vertex in nodes:
        children = {p.type: ids(p.units) for p in graph.values() if p.parent == name}
        lite.append({"rank": str(vertex.rank), "children": children})
    properties = {}
    for name in PROPERTIES:
        ranks = [vertex.rank for _, vertex in nodes if name in vertex.properties]
        if ranks:
            properties[name] = ids(ranks)
    execution = {
        "R_lite": lite,
        "nodelist": [vertex.host for _, vertex in nodes],
        "starttime": 0,
        "expiration": 0,
    }
    if properties:
        execution["properties"] = properties
    return {"version": 1, "execution": execution}


def to_jgf(graph):
    """The JGF document (RFC 40) of any cluster: every unit a vertex of its own."""
    nodes, edges, numbers = [], [], {}
    counters = {}
    for name, vertex in graph.items():
        leaf = not any(v.parent == name for v in graph.values()) and vertex.type not in FOLDERS
        parent_path = numbers[vertex.parent][1] if vertex.parent else ""
        rank = next((graph[a].rank for a in graph.up_from[name] if graph[a].rank is not None), -1)
        first = counters.get(vertex.type, 0)
        counters[vertex.type] = first + 1
        for unit in vertex.units if leaf and not vertex.unit else (0 if vertex.unit else first,):
            short = vertex.host or f"{vertex.type}{unit}"
            key, path = str(len(nodes)), f"{parent_path}/{short}"
            metadata = {"type": vertex.type, "basename": vertex.type, "name": short, "id": unit, "rank": rank}
            metadata["paths"] = {"containment": path}
            if vertex.unit:
                metadata |= {"size": len(vertex.units), "unit": vertex.unit}
            if not vertex.up:
                metadata["status"] = 1
            if vertex.properties:
                metadata["properties"] = dict.fromkeys(sorted(vertex.properties), "")
            nodes.append({"id": key, "metadata": metadata})
            numbers[name] = (key, path)
            if vertex.parent:
                edges.append({"source": numbers[vertex.parent][0], "target": key})
    for name, vertex in graph.items():
        for above in vertex.over:
            edge = {"source": numbers[above][0], "target": numbers[name][0]}
            edges.append({**edge, "metadata": {"subsystem": "network", "relationship": "conduit-of"}})
    return {"graph": {"nodes": nodes, "edges": edges}}


def ids(numbers):
    return ",".join(str(number) for number in sorted(numbers))


def describe(graph):
    """A cluster in a line: node0(big):core4,gpu2; what is down has a ``!``."""
    words = []
    for name, vertex in graph.items():
        leaf = not graph.below[name] and vertex.type not in FOLDERS
        words.append(f"{name}{len(vertex.units) if leaf else ''}{'' if vertex.up else '!'}")
        if vertex.properties:
            words[-1] += f"({','.join(sorted(vertex.properties))})"
        if vertex.type == "rack" or (vertex.type == "node" and "rack" in vertex.parent):
            words[-1] += f"<{vertex.parent}"
        if vertex.over:
            words[-1] += f"<{','.join(vertex.over)}"
    return " ".join(words)


# --- requests ------------------------------------------------------------------------------------------


def random_request(rng, graph):
    """One or two siblings: slots, nodes with slots, racks of nodes, plain pools."""
    types = {vertex.type for vertex in graph.values()}
    siblings = 1 if rng.random() < 0.6 else 2
    return tuple(random_top(rng, types) for _ in range(siblings))


def random_top(rng, types):
    above = "switch" if "switch" in types else "rack"
    kind = rng.choice(["slot", "slot", "slot", "node", "node", above, "pool", "cluster"])
    if kind == "slot":
        return random_slot(rng, types)
    if kind == "pool":
        return Want(rng.choice(["core", "core", "gpu"]), counts(rng, 4), (), exclusivity(rng))
    if kind == "rack" and "rack" not in types and rng.random() < 0.9:
        kind = "node"
    inner = () if rng.random() < 0.2 else random_content(rng, types, kind, in_slot=False)
    return Want(kind, (1,) if kind == "cluster" else counts(rng, 3), inner, exclusivity(rng, kind))


def random_slot(rng, types, above="cluster"):
    return Want("slot", counts(rng, 4), random_content(rng, types, above, in_slot=True))


def random_content(rng, types, above, *, in_slot):
    """What lies beneath a vertex of type `above`, or in a slot there."""
    content = tuple(random_part(rng, types, above, in_slot) for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3])))
    return content[:2] if above in {"cluster", "rack", "switch"} and not in_slot else content


def random_part(rng, types, above, in_slot):
    order = ["cluster", "rack", "switch", "node", "socket"]
    deeper = [t for t in order[order.index(above) + 1 :] if t in types]
    roll = rng.random()
    if not in_slot and roll < 0.5:
        return random_slot(rng, types, above)
    if deeper and roll < 0.75:
        kind = rng.choice(deeper)
        inner = () if rng.random() < 0.25 else random_content(rng, types, kind, in_slot=in_slot)
        return Want(kind, counts(rng, 2), inner, exclusivity(rng, kind))
    pools = ["core", "core", "core", "gpu"] + (
        ["license"] if "license" in types and above == "cluster" else []
    )
    return Want(rng.choice(pools), counts(rng, 3), (), exclusivity(rng))


def counts(rng, most):
    roll = rng.random()
    if roll < 0.8:
        return (rng.choice([1, 1, 1, 2, 2, most]),)
    if roll < 0.9:
        low = rng.randint(1, most)
        return tuple(range(low, low + rng.randint(2, 3)))
    return tuple(sorted(rng.sample(range(1, most + 3), 2)))


def exclusivity(rng, kind=""):
    """Mostly as the standard has it; what it means to hold a switch alone is left open here."""
    return False if kind == "switch" else rng.choice([None] * 7 + [True, False])


def random_constraint(rng):
    if rng.random() < 0.7:
        return None
    term = {"properties": [rng.choice(["", "^"]) + rng.choice(PROPERTIES)]}
    return rng.choice(
        [
            term,
            {"not": [term]},
            {"or": [term, {"hostlist": ["host0"]}]},
            {"and": [term, {"ranks": ["1"]}]},
            {"hostlist": [f"host{rng.randrange(3)}"]},
        ]
    )


def to_shape(request):
    """The RFC 46 text of a request; slots are labelled in order."""
    return shapes_of(request, (f"s{number}" for number in range(100)))


def shapes_of(wants, labels):
    return ";".join(shape_of(want, labels) for want in wants).join("[]" if len(wants) > 1 else ("", ""))


def shape_of(want, labels):
    words = [{True: "x", False: "-x"}[want.exclusive]] if want.exclusive is not None else []
    words = [next(labels)] if want.type == "slot" else words
    words += [f"unit:{want.unit}"] if want.unit else []
    words += [f'id:"{ids(want.ids)}"'] if want.ids is not None else []
    words += [f'id:"{",".join(want.names)}"'] if want.names is not None else []
    flag = "{" + ",".join(words) + "}" if words else ""
    inner = f"/{shapes_of(want.children, labels)}" if want.children else ""
    return f"{want.type}={count_text(want.counts)}{flag}{inner}"


def count_text(values):
    """A number, a range (RFC 45) where the values are one, else an idset."""
    low, high = values[0], values[-1]
    if len(values) > 1 and list(values) == list(range(low, high + 1)):
        return f"{low}-{high}"
    if len(values) > 2:
        step, factor = values[1] - low, values[1] // low
        if list(values) == list(range(low, high + 1, step)):
            return f"{low}-{high}:{step}"
        if list(values) == [low * factor**n for n in range(len(values))]:
            return f"{low}-{high}:{factor}:*"
    return ",".join(map(str, values))
