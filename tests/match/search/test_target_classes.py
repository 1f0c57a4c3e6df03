"""Counting one target of each kind instead of all of them gives the same counts."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.match.requests.compile import compile_request
from simsched.match.search.counts import capacity, copies_on_targets
from simsched.match.search.target_classes import target_classes
from simsched.match.state.availability import idle_cluster

SHAPES = [
    "slot/core",
    "slot/[core=2;gpu]",
    "slot/core=9",
    "slot/core=1000",
    "slot/memory",
    "slot/node",
    "slot/node{-x}/core=3",
    "node=2/slot=4/core",
    "slot/node/socket=2/core=4",
    "slot/node/socket{-x}/[core;gpu]",
    "slot/socket",
    "node/[slot=2{a}/core;slot{b}/gpu]",
    "slot/core{-x}",
    "node{x}/socket=2/slot/core",
]
CONSTRAINTS = [None, {"ranks": ["0-2"]}, {"properties": ["batch"]}, {"not": []}]


@pytest.mark.parametrize(
    "name", ["tiny", "center", "gpu1152", "jgf4", "topo16", "racked", "colony", "flat240"]
)
def test_kinds_of_targets_host_what_each_of_them_hosts(name):
    """Law: on the idle machine, counts by kind are the counts target by target."""
    index = ss.load_cluster(name).index
    idle = idle_cluster(index)
    compared = 0
    for shape in SHAPES:
        for constraint in CONSTRAINTS:
            request = compile_request(ss.Jobspec.from_shape(shape, constraint=constraint), index)
            for need in request.walk():
                if need.content is not None:
                    supply = capacity(need.content, idle)
                    each = copies_on_targets(need.content, None, idle)
                    assert (supply.fits == each).all(), (shape, constraint)
                    assert supply.total == each.sum()
                    if need.content.unit is None:
                        assert supply.some == np.count_nonzero(each)
                    compared += target_classes(index, need.content) is not None
    assert compared


def test_a_state_is_idle_only_while_it_is_the_machine_as_such(tiny):
    """A copy of the idle machine in which something changed is not counted by kinds."""
    idle = idle_cluster(tiny.index)
    changed = idle.copy()
    changed.set_status(np.array([3]), up=False)
    (need,) = compile_request(ss.Jobspec.from_shape("slot/[core;gpu]"), tiny.index).needs
    assert capacity(need.content, idle).fits.tolist() == [0, 0, 2, 2]
    assert capacity(need.content, changed.copy()).fits.tolist() == [0, 0, 2, 0]


def test_where_a_unit_lies_within_its_node_tells_nodes_apart(jgf):
    """Nodes have a core of their own and two in a socket, or the reverse."""
    one = "  node{0} rank={0}\n    core0\n    socket0\n      core1\n      core2\n"
    other = "  node{0} rank={0}\n    socket0\n      core0\n    core1\n    core2\n"
    cluster = jgf("cluster0\n" + "".join((one, other)[n % 2].format(n) for n in range(8)))
    jobspec = ss.Jobspec.from_shape("slot=5/socket/core=2")
    (need,) = compile_request(jobspec, cluster.index).needs
    assert target_classes(cluster.index, need.content).of.tolist() == [0, 1] * 4
    answer = ss.Matcher(cluster).satisfiable(jobspec)
    assert answer.reasons.short().startswith("slot: 5 needed, 4 available")
