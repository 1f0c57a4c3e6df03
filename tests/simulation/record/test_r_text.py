"""R written straight as text has the very bytes of the encoded document."""

from __future__ import annotations

import random

import msgspec
import pytest

import simsched as ss
from simsched.graph.build.cluster_files import graph_from_document
from simsched.match.emit import document
from simsched.match.requests.compile import compile_request
from simsched.match.search.select import select
from simsched.match.state.run_selection import RunSelection, UnitKind
from simsched.simulation.record.r_text import PlainText


def cluster(nodes=24, *, first=0, cores="0-7", hosts=None, **more):
    lite = [{"rank": f"{first}-{first + nodes - 1}", "children": {"core": cores, "gpu": "0-1"}}]
    hosts = hosts or f"n[{first}-{first + nodes - 1}]"
    execution = {"R_lite": lite, "nodelist": [hosts], "starttime": 0, "expiration": 0, **more}
    return ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))


SOCKETS = ss.Cluster(
    graph_from_document(
        {
            "groups": [
                {
                    "name": "short",
                    "count": 10,
                    "sockets": 2,
                    "cores": 8,
                    "memory": "16 GiB",
                    "properties": ["cpu", "short"],
                },
                {"name": "gpu", "count": 4, "sockets": 2, "cores": 8, "gpus": 2, "properties": ["gpu"]},
            ]
        }
    )
)


MACHINES = {
    "nodes": cluster(),
    "ranks from five on": cluster(first=5),
    "ids with gaps": cluster(cores="0-2,8-11"),
    "64 cores": cluster(cores="0-63"),
    "hundreds of cores": cluster(cores="0-99"),
    "one node": cluster(1, hosts="a-0"),
    "a host name to be quoted": cluster(2, hosts='"ü"[0-1]'),
    "hosts of other numbers": cluster(hosts="n[1-24]"),
    "properties": cluster(properties={"fat": "3-4", "ü": "0-20", "all": "0-23"}),
    "groups with sockets": SOCKETS,
}
SHAPES = (
    "slot=1/core",
    "slot=5/core",
    "slot=3/[core=2;gpu]",
    "slot=2/node",
    "node=2",
    "node=2/slot=2/core=3",
    "slot=1/gpu",
    "slot=30/core",
    "slot=3/[core=2;memory=2]",
    "slot=2/socket",
)


LAST = ',"attributes":{"system":{"scheduler":{"queue":"q"}}}}'
"""What is last in R."""


def encoded(selection, index):
    found = document(selection, index, starttime=3, expiration=4.5, scheduler={"queue": "q"})
    return msgspec.json.encode(found).decode()


def history(machine, seed, match_policy):
    """Jobs come and go; the R of every selection is written both ways."""
    rng = random.Random(seed)
    index, available, running = machine.index, ss.Matcher(machine).available, []
    text, both = PlainText(index), []
    for _ in range(60):
        request = compile_request(ss.Jobspec.from_shape(rng.choice(SHAPES)), index)
        found = select(request, available, match_policy)
        if found is not None:
            available.claim(found)
            running.append(found)
            both.append((text.text(found, "3", "4.5", LAST), encoded(found, index)))
        if running and rng.random() < 0.4:
            available.release(running.pop(rng.randrange(len(running))))
    return both


@pytest.mark.parametrize("match_policy", ["first", "hinode", "worstfit"])
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_the_text_is_the_encoded_document(machine, match_policy):
    both = [pair for seed in range(6) for pair in history(machine, seed, match_policy)]
    written = [(found, expected) for found, expected in both if found is not None]
    assert all(text == expected for text, expected in written)
    assert len(written) > len(both) * 2 / 3


def runs_of(masks, cores):
    """The units of some targets as runs of consecutive ones."""
    free = [bool(mask >> unit & 1) for mask in masks for unit in range(cores)]
    ends = [at for at in range(len(free) + 1) if (at > 0 and free[at - 1]) != (at < len(free) and free[at])]
    return ends, sum(free)


@pytest.mark.parametrize(("machine", "cores"), [("nodes", 8), ("ranks from five on", 8), ("64 cores", 64)])
def test_runs_of_units_are_the_encoded_document(machine, cores):
    index, rng = MACHINES[machine].index, random.Random(4)
    kind = UnitKind("core", cores, {"core": 1}, False)
    full = (1 << cores) - 1
    selections = []
    for _ in range(300):
        # few masks, so that neighbours often have the same units: whole targets, and parts of them
        some = [0, full, 1, 6, full - 1, full >> 1, rng.randrange(full)]
        masks = [rng.choice(some) for _ in range(rng.randint(1, len(index)))]
        runs, units = runs_of(masks, cores)
        if units:
            for slots in (units, 1):  # the same units twice: what is kept of one job is right for another
                request = compile_request(ss.Jobspec.from_shape(f"slot={slots}/core={units // slots}"), index)
                selections.append(RunSelection(kind, request, runs, units))
    assert len(selections) > 400
    text = PlainText(index)
    for selection in selections:
        assert text.text(selection, "3", "4.5", LAST) == encoded(selection.full(), index)
