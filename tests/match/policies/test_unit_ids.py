"""The unit ids that `low` and `high` order by, against a walk over every free unit."""

from __future__ import annotations

import random

import numpy as np
import pytest

import simsched as ss
from simsched.match.policies.candidates import free_unit_ids
from simsched.match.requests.compile import compile_request
from simsched.match.search.counts import capacity


def walked(index, avail, target, type_):
    """All free unit ids of a type on a target, ascending."""
    pool = index.pool_types[type_]
    pools = np.flatnonzero(pool.target == target).tolist()
    masks = {leaf: avail.free_mask(pool, leaf) for leaf in pools if avail.free[type_][leaf]}
    return sorted(
        unit for leaf, mask in masks.items() for i, unit in enumerate(pool.ids[leaf]) if mask >> i & 1
    )


@pytest.mark.parametrize("name", ["tiny", "center", "topo16", "racked", "gpu1152", "colony"])
@pytest.mark.parametrize("highest", [False, True])
def test_ids_of_the_first_free_unit_of_each_copy(name, highest):
    """Law: copy n on a target starts at its (n × units a copy)-th free unit."""
    cluster = ss.load_cluster(name)
    rng = random.Random(name)
    matcher = ss.Matcher(cluster, policy="random", seed=1)
    for _ in range(2 if name == "tiny" else 12):
        matcher.match(
            ss.Jobspec.from_shape(rng.choice(["slot=3/core", "slot=2/core=3", "slot/node", "slot=5/core=2"]))
        )
    matcher.set_status("down", ranks="0")
    index, avail = cluster.index, matcher.available
    for units in (1, 2):
        (need,) = compile_request(ss.Jobspec.from_shape(f"slot/core={units}"), index).needs
        fits = capacity(need.content, avail).fits
        if not fits.any():
            continue
        targets = np.repeat(np.flatnonzero(fits), np.minimum(fits[fits > 0], 3))
        copy = np.concatenate([np.arange(min(n, 3)) for n in fits[fits > 0].tolist()])
        found = free_unit_ids(need.content, targets, copy, avail, highest=highest)
        for target, number, unit in zip(targets.tolist(), copy.tolist(), found.tolist(), strict=True):
            free = walked(index, avail, target, "core")
            assert unit == (free[::-1] if highest else free)[number * units]
