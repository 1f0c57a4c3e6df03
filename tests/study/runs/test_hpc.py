"""executorlib: the same runs by its executor for this machine; its others say what they lack."""

from __future__ import annotations

from shutil import which

import pytest

from simsched.errors import ConfigError
from simsched.study.runs.dispatch import FinishedRun, run_tasks
from simsched.study.runs.single_run import perform
from simsched.study.runs.worker_pools import open_workers
from tests.study.studyworld import small

pytestmark = pytest.mark.integration

pytest.importorskip("executorlib")


@pytest.mark.slow
def test_runs_of_executorlib_are_the_same(tmp_path):
    tasks = small().tasks[:3]
    with open_workers(1, hpc="local") as workers:
        found = list(run_tasks(tasks, workers, folder=tmp_path))
    assert all(isinstance(outcome, FinishedRun) for outcome in found), found
    assert {d.task.key: d.row.to_bytes() for d in found} == {t.key: perform(t).to_bytes() for t in tasks}
    assert all((tmp_path / task.key / "row.json").is_file() for task in tasks)


@pytest.mark.parametrize(
    ("system", "program", "said"), [("slurm", "srun", "srun is not installed"), ("flux", "flux", "flux")]
)
def test_outside_of_an_allocation(system, program, said):
    if which(program):
        pytest.skip(f"{program} is here")
    with pytest.raises(ConfigError, match=said) as caught, open_workers(hpc=system):
        pass
    assert f"within an allocation of {system}" in str(caught.value)


def test_an_unknown_system():
    with (
        pytest.raises(ConfigError, match=r"unknown system 'sge' \(expected flux, slurm, local\)"),
        open_workers(hpc="sge"),
    ):
        pass
