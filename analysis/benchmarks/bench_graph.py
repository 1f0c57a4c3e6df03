"""How fast clusters are read and written: ``python -m analysis.benchmarks.bench_graph`` prints a table.

Each figure is measured in a process of its own, over a file that is made first: CPU seconds
(system time included), wall seconds, and the largest memory of the process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]

CASES = {
    "R of 16,384 nodes × 64 cores × 4 gpus": ("r", 16_384, "1 s"),
    "TreePool of 11,000 nodes × 4 sockets": ("treepool", 11_000, "2 s"),
    "slurm.conf of 10,000 nodes, a line each": ("slurm", 10_000, "2 s"),
    "JGF of 100,000 vertices": ("jgf", 1_408, ""),
    "JGF of 1,000,000 vertices": ("jgf", 14_084, "25 s; 15 s; 3 GB"),
}


def main() -> None:
    """Print the table as Markdown, a line at a time."""
    print(
        "| what | file | graph | index | written again | memory | limit |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    for what, size, found, limit in cases():
        times = " | ".join(f"{found[step][0]} s ({found[step][1]})" for step in ("graph", "index", "write"))
        print(f"| {what} | {size:.1f} MB | {times} | {found['mb']} MB | {limit} |", flush=True)
    print("\nCPU seconds (wall seconds).")


def cases() -> Iterator[tuple[str, float, dict[str, Any], str]]:
    """Make each file, measure it, and yield (what it is, its size in MB, figures, limit)."""
    with tempfile.TemporaryDirectory() as folder:
        for what, (kind, nodes, limit) in CASES.items():
            path = Path(folder) / f"{kind}.json"
            with path.open("w") as file:
                MAKERS[kind](file, nodes)
            yield what, path.stat().st_size / 1e6, measured(path, kind), limit


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield the lines of ``make bench``: what, measured, limit."""
    for what, size, found, limit in cases():
        graph, index, write = (found[step][0] for step in ("graph", "index", "write"))
        yield (
            f"read {what}, index included ({size:.0f} MB)",
            f"{graph + index:.1f} s; written again {write:.1f} s; {found['mb']:,} MB",
            limit,
        )


def measured(path: Path, kind: str) -> dict[str, Any]:
    """Read, index and write one file in a fresh process."""
    command = [sys.executable, "-m", "analysis.benchmarks.bench_graph", str(path), kind]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def one(path: str, kind: str) -> None:
    """Measure in this process and print the figures as JSON."""
    from simsched import load_cluster
    from simsched.graph.index.index import Index
    from simsched.graph.write.documents_of import to_bytes

    assert Index
    figures: dict[str, Any] = {}
    clock = (time.process_time(), time.perf_counter())

    def lap(step: str) -> None:
        nonlocal clock
        now = (time.process_time(), time.perf_counter())
        figures[step] = [round(b - a, 2) for a, b in zip(clock, now, strict=True)]
        clock = (time.process_time(), time.perf_counter())

    cluster = load_cluster(path)
    lap("graph")
    assert cluster.index.targets
    lap("index")
    assert to_bytes(cluster.graph, "r" if kind == "slurm" else kind)
    lap("write")
    figures["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(figures))


# --- the files -----------------------------------------------------------------------


def write_r(file: TextIO, nodes: int) -> None:
    """R_lite alone."""
    json.dump(rset(nodes), file)


def rset(nodes: int) -> dict[str, Any]:
    children = {"core": "0-63", "gpu": "0-3"}
    lite = [{"rank": f"0-{nodes - 1}", "children": children}]
    return {"version": 1, "execution": {"R_lite": lite, "nodelist": [f"node[0-{nodes - 1}]"]}}


def write_treepool(file: TextIO, nodes: int) -> None:
    """R with a topology of four sockets."""
    sockets = [{"cores": f"{16 * n}-{16 * n + 15}", "gpus": str(n), "memory": 128} for n in range(4)]
    topology = [{"ranks": f"0-{nodes - 1}", "topo": {"socket": sockets}}]
    json.dump({**rset(nodes), "scheduling": {"writer": "TreePool", "children": topology}}, file)


def write_slurm(file: TextIO, nodes: int) -> None:
    """Nodes of seven sizes of memory, with up to four gpus, in racks of 100."""
    file.write("ClusterName=a\nPartitionName=all Nodes=ALL Default=YES MaxTime=1-0\n")
    file.writelines(
        f"NodeName=n{node} CPUs=64 Sockets=2 CoresPerSocket=32 RealMemory={256_000 + node % 7} "
        f"Gres=gpu:{1 + node % 4} Feature=rack{node // 100}\n"
        for node in range(nodes)
    )


def write_jgf(file: TextIO, nodes: int) -> None:
    """JGF as Fluxion writes it in full: racks of 64 nodes of two sockets of 32 cores and 2 gpus."""
    edges: list[tuple[int, int]] = []
    file.write('{"graph":{"nodes":[')
    for number, (parent, metadata) in enumerate(vertices(nodes)):
        if number:
            file.write(",")
            edges.append((parent, number))
        file.write(json.dumps({"id": str(number), "metadata": {**metadata, "uniq_id": number}}))
    file.write('],"edges":[')
    file.write(
        ",".join(
            f'{{"source":"{a}","target":"{b}","metadata":{{"subsystem":"containment"}}}}' for a, b in edges
        )
    )
    file.write("]}}")


def vertices(nodes: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of the parent, metadata) in preorder."""
    number = rack = 0
    yield 0, vertex("cluster", 0, -1, "")
    for node in range(nodes):
        if node % 64 == 0:
            number += 1
            rack = number
            yield 0, vertex("rack", node // 64, -1, "/cluster0")
        above = f"/cluster0/rack{node // 64}"
        number += 1
        host = number
        yield rack, vertex("node", node, node, above)
        for socket in range(2):
            number += 1
            place = number
            yield host, vertex("socket", socket, node, f"{above}/node{node}")
            inside = f"{above}/node{node}/socket{socket}"
            for kind, count in (("core", 32), ("gpu", 2)):
                for unit in range(count):
                    number += 1
                    yield place, vertex(kind, socket * count + unit, node, inside)


def vertex(kind: str, number: int, rank: int, above: str) -> dict[str, Any]:
    name = f"{kind}{number}"
    return {
        "type": kind,
        "basename": kind,
        "name": name,
        "id": number,
        "rank": rank,
        "exclusive": False,
        "unit": "",
        "size": 1,
        "paths": {"containment": f"{above}/{name}"},
    }


MAKERS = {"r": write_r, "treepool": write_treepool, "slurm": write_slurm, "jgf": write_jgf}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        one(*sys.argv[1:])
    else:
        main()
