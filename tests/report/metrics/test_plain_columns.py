"""The figures of a run that has just ended: on plain columns they are those of the frames."""

from __future__ import annotations

import math

import numpy as np
import pytest

import simsched as ss
from simsched.report.data.tables import RunTables
from simsched.report.metrics.plain_columns import PlainColumns
from simsched.report.metrics.summary import summary_of_columns, summary_text

NODES = 6


def log_of(seed, *, named):
    """Random jobs; some are larger than the machine, and some run into their limits."""
    rng = np.random.default_rng(seed)
    jobs, now = [], 0
    for number in range(60):
        now += int(rng.integers(0, 40))
        nodes, limit = int(rng.integers(1, NODES + 2)), int(rng.integers(1, 200))
        more = (
            {"user": f"u{rng.integers(0, 4)}", "status": "COMPLETED"} if named and rng.random() < 0.8 else {}
        )
        spec = ss.Jobspec.from_shape(f"slot={nodes}/node", duration=limit)
        run_time = int(rng.integers(0, 250))
        jobs.append(
            ss.Job(id=number, submit=now, jobspec=spec, runtime=run_time, duration=limit, procs=nodes, **more)
        )
    return ss.Workload(jobs=tuple(jobs), name="random", total_records=len(jobs))


def machine():
    execution = {
        "R_lite": [{"rank": f"0-{NODES - 1}", "children": {"core": "0-3"}}],
        "nodelist": [f"n[0-{NODES - 1}]"],
    }
    return ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("begin", [None, 300])
@pytest.mark.parametrize("named", [True, False])
def test_figures_of_columns_are_those_of_frames(seed, begin, named):
    more = {"failures": "mtbf=2000,mttr=50"} if seed % 2 else {}
    result = ss.simulate(machine(), log_of(seed, named=named), "easy", measure_from=begin, **more).result
    found = summary_of_columns(result.jobs, result.timeline, result.meta)
    expected = RunTables.from_result(result).summary
    assert list(found) == list(expected)
    assert found["jobs_run"] > 10
    assert math.isnan(found["jain_users"]) is not named
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12, nan_ok=True), name
    assert summary_text(found) == summary_text(expected)


def test_chosen_rows_have_all_columns():
    table = PlainColumns({"a": np.arange(4), "b": np.arange(4) * 2})
    chosen = table[table["a"] > 0].assign(c=np.arange(3))
    assert (len(chosen), chosen.columns, "b" in chosen, "d" in chosen) == (3, ["a", "b", "c"], True, False)
    assert chosen[chosen["c"] > 1]["b"].tolist() == [6]
    assert len(PlainColumns({})) == 0
