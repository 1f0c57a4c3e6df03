"""The lines of allocations do not depend on how many of them are made at once."""

from __future__ import annotations

import io

import pytest

from simsched.simulation.record import allocation_log
from simsched.simulation.simulate import simulate
from tests.simulation.test_environment import world


@pytest.mark.parametrize("seed", range(12))
def test_lines_made_one_by_one_are_the_same(monkeypatch, seed):
    """Requeued jobs, shards and epilogs included; with a file and without one."""
    cluster, jobs, options = world(seed)
    at_once = simulate(cluster, jobs, **options).log.text()
    assert at_once.count("\n") >= 2
    for size in (1, 3):
        monkeypatch.setattr(allocation_log, "BATCH", size)
        sink = io.BytesIO()
        run = simulate(cluster, jobs, sink=sink, **options)
        run.log.flush_to(sink)
        assert sink.getvalue().decode() == at_once
        assert simulate(cluster, jobs, **options).log.text() == at_once
