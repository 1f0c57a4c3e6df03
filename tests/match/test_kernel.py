"""The kernel, compiled and interpreted: one source, one answer."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import simsched as ss
from simsched._version import kernel_is_compiled
from simsched.match.flat_kinds import FlatKinds
from simsched.simulation.simulate import simulate

CORE = "slot=1/[core;memory=1{unit:GB}]"


#: Runs drawn at random, of which each line is one; `SOURCES` lets modules be read from their sources.
RUNS = """
import random, sys
from pathlib import Path
{sources}
from simsched._version import kernel_is_compiled
from simsched.simulation.simulate import simulate
from tests.schedule.test_mixed_sites import drawn_cluster, drawn_options, drawn_workload, records

print(kernel_is_compiled())
for seed in range(500, 520):
    rng = random.Random(seed)
    cluster, workload = drawn_cluster(rng, Path(sys.argv[1])), drawn_workload(rng, 60)
    print(repr(records(simulate(cluster, workload, **drawn_options(rng, cluster, workload)))))
"""
SOURCES = """
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

class Sources:
    def find_spec(name, path, target=None):
        if name.startswith("simsched."):
            return FileFinder(path[0], (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)

sys.meta_path.insert(0, Sources)
"""


def output(script, *arguments):
    """The lines that a process prints which performs a script."""
    command, root = [sys.executable, "-c", script, *arguments], Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    return done.stdout.splitlines()


def runs(folder, sources=""):
    """Whether the kernel of a process is compiled, and the records of its runs."""
    is_compiled, *found = output(RUNS.format(sources=sources), str(folder))
    return is_compiled, found


@pytest.mark.slow
@pytest.mark.skipif(not kernel_is_compiled(), reason="the kernel is not compiled")
def test_compiled_runs_equal_interpreted_ones(tmp_path):
    compiled, interpreted = runs(tmp_path), runs(tmp_path, SOURCES)
    assert (compiled[0], interpreted[0]) == ("True", "False")
    assert compiled[1] == interpreted[1]
    assert len(compiled[1]) == 20


INTERPRETED = f"""
import sys
{SOURCES}
import simsched as ss
from simsched.workload.readers.jobs import read_jobs_yaml

jobs = read_jobs_yaml("- {{shape: slot/core=3, runtime: 9, count: 3}}")
print(ss.simulate(ss.load_cluster("center"), jobs, "easy").jobs["start"].tolist())
"""


def test_an_interpreted_run_claims_units_by_their_ids():
    assert output(INTERPRETED) == ["[0.0, 0.0, 0.0]"]


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("groups:\n  - {name: n, count: 3, sockets: 2, cores: 4, memory: 16 GiB}\n")
    return ss.load_cluster(path)


def run(site, *rows, policy="easy"):
    """A run of jobs (submit, shape, seconds)."""
    jobs = [
        ss.Job(
            id=number,
            submit=submit,
            runtime=seconds,
            duration=seconds,
            jobspec=ss.Jobspec.from_shape(shape, duration=seconds),
        )
        for number, (submit, shape, seconds) in enumerate(rows)
    ]
    return simulate(site, ss.Workload(jobs=tuple(jobs)), policy)


BESIDE_THE_FIRST = (
    (0, "slot=1/node", 100),
    (1, "slot=3/node", 50),  # waits until 100 for all nodes
    (2, "slot=1/node", 500),  # would be on one of them
    (3, CORE, 97),  # ends by then
    (4, CORE, 97),  # does not
)


def test_jobs_pass_the_first_if_they_end_in_time(site):
    assert run(site, *BESIDE_THE_FIRST).jobs["start"].tolist() == [0, 100, 150, 3, 150]
    assert run(site, *BESIDE_THE_FIRST, policy="fcfs").jobs["start"].tolist() == [0, 100, 150, 150, 150]


def test_a_job_gets_the_units_that_the_first_job_leaves(site):
    """The first free core is on a node that the first job needs whole; one on the third node is not."""
    found = run(
        site,
        (0, "slot=1/node", 100),
        (0, "slot=1/node", 2),
        (1, "slot=2/[core;memory=4{unit:GB}]", 1000),  # on the third node
        (3, "slot=2/node", 50),  # the first and the second node, at 100
        (4, CORE, 500),
    )
    assert found.jobs["start"].tolist() == [0, 0, 1, 100, 4]
    lines = [json.loads(line) for line in found.log.text().splitlines()]
    (last,) = [line for line in lines if (str(line["id"]), line["event"]) == ("4", "alloc")]
    assert last["R"]["execution"]["R_lite"][0]["rank"] == "2"


class Allocation:
    """A selection, as far as the kernel looks at one that it has placed."""

    def __init__(self, *shared):
        self.shared = shared


def test_the_kernel_has_the_claims_of_the_running_jobs():
    """Whatever the numbers of the jobs, and with claims that share units among them."""
    rng, sizes, total = random.Random(3), (1, 7, 40), 4_000
    kinds = FlatKinds("core", "node", sizes, lambda: total, lambda kind, job: Allocation())
    kernel = kinds.kernel
    kinds.recount()
    held, shared, numbers = {}, set(), range(6_000)
    for step in range(6_000):
        job, kind = rng.choice(numbers[: 200 + step]), rng.randrange(3)
        if job in held or job in shared:
            kernel.end(job)
            held.pop(job, None)
            shared.discard(job)
        elif rng.random() < 0.1:
            kernel.start(job, Allocation("unit"))
            shared.add(job)
        elif kernel.place(kind):
            kernel.start(job, kinds.selection(kind, job))
            held[job] = sizes[kind]
        if step % 100 == 0:
            assert kernel.running().tolist() == sorted([*held, *shared])
            assert kernel.shared == len(shared)
            assert {job: kernel.store[kernel.claim(job)[3]] for job in held} == held
            assert kernel.totals[0] == total - sum(held.values())
    assert max(held) > 5_000
    assert shared
    for job in shared:
        with pytest.raises(ValueError, match="shares units"):
            kernel.claim(job)


@pytest.mark.parametrize("job", [-1, 5, 10**9])
def test_the_kernel_has_no_claim_of_a_job_that_does_not_run(job):
    kernel = FlatKinds("core", "node", [1], lambda: 8, lambda kind, job: Allocation()).kernel
    kernel.end(job)
    with pytest.raises(KeyError):
        kernel.claim(job)
