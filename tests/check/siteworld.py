"""Small sites as files: R, a graph of chassis with storage, a configuration, a storage map."""

from __future__ import annotations

import json

from simsched.check.rules import check_files

GIB = 2**30
HOSTS = ("n0", "n1", "n2", "n3")
SERVERS = {"r0": HOSTS[:2], "r1": HOSTS[2:]}


def r_document(hosts=HOSTS, cores=4, *, properties=None, **children):
    """R of equal nodes with ranks from 0; `properties` is name → ranks."""
    last = len(hosts) - 1
    children = {"core": f"0-{cores - 1}", **{kind: f"0-{n - 1}" for kind, n in children.items()}}
    execution = {
        "R_lite": [{"rank": f"0-{last}" if last else "0", "children": children}],
        "nodelist": [",".join(hosts)],
    }
    if properties:
        execution["properties"] = properties
    return {"version": 1, "execution": execution}


def vertex(key, type_, name, *, rank=-1, size=1, unit="", properties=None, **more):
    metadata = {"type": type_, "name": name, "rank": rank, "size": size, "unit": unit, **more}
    if properties:
        metadata["properties"] = dict.fromkeys(properties, "")
    return {"id": key, "metadata": metadata}


class Graph:
    """A graph that is built vertex by vertex."""

    def __init__(self):
        self.nodes, self.edges = [vertex("cluster0", "cluster", "cluster0")], []

    def add(self, above, type_, name, **more):
        key = f"{above}/{name}"
        self.nodes.append(vertex(key, type_, name, **more))
        self.edges.append({"source": above, "target": key})
        return key

    def document(self):
        return {"graph": {"nodes": self.nodes, "edges": self.edges}}


def chassis_graph(
    servers=SERVERS, cores=4, *, pieces=2, piece=100, ranks=None, properties=None, on_nodes=0, servers_in=None
):
    """A chassis per server with `pieces` of storage of `piece` GiB and its nodes.

    `ranks` is host → rank (by default in the order of the hosts), `properties` host → names, `on_nodes`
    the GiB of storage on each node, `servers_in` server → its rank, if it is a vertex itself.
    """
    graph, number = Graph(), 0
    for server, hosts in servers.items():
        chassis = graph.add("cluster0", "chassis", f"chassis{server[1:]}")
        for at in range(pieces):
            graph.add(chassis, "ssd", f"ssd{at}", size=piece, unit="GiB")
        for host in hosts:
            rank = (ranks or {}).get(host, number)
            number += 1
            node = graph.add(chassis, "node", host, rank=rank, properties=(properties or {}).get(host))
            for core in range(cores):
                graph.add(node, "core", f"core{core}", rank=rank)
            if on_nodes:
                graph.add(node, "ssd", "ssd0", size=on_nodes, unit="GiB", rank=rank)
        if servers_in:
            graph.add(chassis, "storage_node", server, rank=servers_in[server])
    return graph.document()


def storage_map(servers=SERVERS, gib=200):
    """A storage map; `gib` is the capacity of each server, or server → capacity."""
    sizes = gib if isinstance(gib, dict) else dict.fromkeys(servers, gib)
    return {
        "computes": {host: server for server, hosts in servers.items() for host in hosts},
        "rabbits": {
            server: {"hostlist": ",".join(hosts), "capacity": sizes[server] * GIB}
            for server, hosts in servers.items()
        },
    }


QUEUES = """
[policy.jobspec.defaults.system]
queue = "batch"
[queues.batch]
requires = ["batch"]
[queues.batch.policy.limits]
duration = "8h"
[queues.debug]
requires = ["debug"]
"""
PROPERTIES = {"batch": "0-2", "debug": "3"}
BY_HOST = {"n0": ["batch"], "n1": ["batch"], "n2": ["batch"], "n3": ["debug"]}


def written(folder, **files):
    """Write files (name with ``_`` for the dot → text or document); return their paths in this order."""
    paths = []
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        paths.append(path)
    return paths


def findings(folder, **files):
    """The codes of all errors and warnings, each once, and the result."""
    result = check_files(written(folder, **files))
    return sorted({finding.code for finding in result.findings if finding.severity != "note"}), result


def texts(result, code):
    return [finding.text for finding in result.findings if finding.code == code]
