"""Whether passes drawn from long runs are those of the plain definition, from the same state.

    python -m analysis.benchmarks.drawn_passes [CASE …] [--passes N] [--jobs N] [--most N]

A case is a machine with a queue policy: ``mixed`` (the site of `bench_mixed` at 90 %), ``site90`` and
``site110`` (the generated Slurm site of `bench_whole` at 90 and 110 %, with its own policy) or a trace
(``KTH-SP2``, ``SDSC-SP2``, ``HPC2N``, ``Curie``), such as ``mixed-conservative`` or ``KTH-SP2-easy``. Passes
with waiting jobs are drawn at equal distances. The state before each is planned again by
``tests/reference/planning``: it must start the same jobs on the same targets, and leave the same
reservations. Passes over more than `most` waiting jobs are left out, since the definition takes minutes for
them. The exit code is 1 if a pass differs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import simsched as ss
from analysis.benchmarks import bench_mixed, bench_whole
from analysis.benchmarks.bench_run import TRACES, machine
from simsched.match.counted_kinds import counted
from simsched.match.state.availability import Availability
from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.policies.easy import Easy
from simsched.schedule.policies.slack import Slack
from simsched.schedule.policies.slurm import Slurm
from simsched.simulation.options.run_config import from_document
from simsched.simulation.simulate import simulate

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext

plain: Any = importlib.import_module("tests.reference.planning")

POLICIES: dict[str, tuple[type, dict[str, Any], Any]] = {
    "easy": (Easy, {}, plain.Easy),
    "conservative": (Conservative, {}, plain.Conservative),
    "hybrid": (Conservative, {"depth": 8}, lambda: plain.Conservative(depth=8)),
    "selective": (Conservative, {"threshold": 2.0}, lambda: plain.Selective(2.0)),
    "slack": (Slack, {"factor": 1.0}, lambda: plain.Slack(1.0)),
    "slurm": (Slurm, {}, plain.Slurm),
}
"""Name → its class, its options, and the plain policy."""
FILES = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
    "HPC2N": ("HPC2N-2002-2.2-cln.swf.gz", 240),
    "Curie": ("CEA-Curie-2011-2.1-cln.swf.gz", 93_312),
}
CASES = (
    *("mixed-easy", "mixed-conservative", "mixed-hybrid", "mixed-selective", "mixed-slack"),
    *("KTH-SP2-conservative", "SDSC-SP2-conservative", "HPC2N-conservative", "Curie-conservative"),
    *("KTH-SP2-easy", "SDSC-SP2-slack", "HPC2N-easy", "Curie-easy"),
    *("site90-slurm", "site110-slurm", "mixed-slurm", "KTH-SP2-slurm"),
)


class State:
    """The state of a pass in the terms of the plain definition."""

    def __init__(self, context: PassContext) -> None:
        self.context, self.now = context, context.now
        self.table, self.plan = context.table, context.plan
        self.flat = self.table.single is not None
        index = self.plan.index
        self.types = list(index.pool_types)
        if self.flat:
            single = self.table.single
            assert single is not None
            self.units = [(sum(self.table.units[job] for job in self.plan.held) + self.plan.free(single),)]
        else:
            idle = Availability(index).free
            sums = [
                np.bincount(pool.target[pool.target >= 0], idle[name][pool.target >= 0], len(index))
                for name, pool in index.pool_types.items()
            ]
            self.units = [tuple(map(int, row)) for row in np.column_stack(sums)]
        self.jobs: dict[int, Any] = {}

    def job(self, number: int) -> Any:
        """Return a job of the definition."""
        if number not in self.jobs:
            table = self.table
            request = table.requests[number]
            assert request is not None
            need: tuple[int, ...] = (1, 0)
            nodes, copies, most = (0,), table.units[number] if self.flat else 0, plain.ALL
            if not self.flat:
                found = counted(request)
                assert found is not None
                (content, _, once), copies = found
                whole = content.node and content.exclusive
                need = plain.demand(dict(content.flat or ()), self.types, whole=whole)
                nodes = tuple(np.flatnonzero(content.eligible & self.plan.available.up).tolist())
                most = 1 if once or whole else plain.ALL
            seconds = table.durations[number]
            user, partitions = int(table.users[number]), table.partitions
            partition = 0 if partitions is None else int(partitions[number])
            self.jobs[number] = plain.Job(
                *(number, float(table.submits[number]), seconds, seconds, copies, need, nodes, most),
                *(user, partition),
            )
        return self.jobs[number]

    def copies(self, number: int, selection: Selection) -> tuple[int, ...]:
        """Return the copies of a claim on each target."""
        job = self.job(number)
        if self.flat:
            return (job.copies,)
        found = np.zeros(len(self.units), np.int64)
        if job.need[-1] == plain.ALL:
            found[selection.targets] = 1
        else:
            type_ = next(name for name, need in zip(self.types, job.need, strict=False) if need)
            for draw in selection.held:
                if draw.type == type_:
                    target = self.plan.index.pool_types[type_].target[draw.pools]
                    np.add.at(found, target, np.broadcast_to(draw.units, len(target)))
            found //= job.need[self.types.index(type_)]
        return tuple(found.tolist())

    def slurm(self, policy: Slurm) -> Any:
        """Return the definition of Slurm's schedulers as a policy is now."""
        given, names = policy.options, plain.Options._fields
        bounds = {name: getattr(given, name) for name in names if name != "min_age"}
        options = {name: np.inf if value is None else value for name, value in bounds.items()}
        partitions = [(0, tuple(mine.nonzero()[0].tolist())) for mine in self.table.partition_targets]
        found = plain.Slurm(plain.Options(**options), partitions, whole=not self.flat)
        found.last, found.due = policy._last_backfill, policy._backfill_due
        return found

    def places(self, policy: Conservative) -> dict[Any, Any]:
        """Return the reservations of a policy."""
        found = {}
        for number, (targets, copies, _) in policy.places().items():
            row = np.zeros(len(self.units), np.int64)
            row[targets] = copies
            found[self.job(number)] = plain.Place(policy.starts[number], tuple(row.tolist()))
        return found


class AllDrawnError(Exception):
    """Ends a run of which no more passes are drawn."""


class Draw:
    """Plans some of the passes of a run again."""

    def __init__(self, definition: Any, every: int, most: int, passes: int) -> None:
        self.definition, self.every, self.most, self.left = definition, every, most, passes
        self.number = self.same = self.starts = 0
        self.differ: list[str] = []

    def run_pass(self, own: Any, policy: Any, context: PassContext) -> None:
        """Make a pass of a policy, and perhaps plan it again."""
        waits = len(context.queue)
        self.number += 1
        if not self.left:
            raise AllDrawnError
        if self.number % self.every or not 1 < waits <= self.most:
            own(policy, context)
            return
        self.left -= 1
        state = State(context)
        naive = state.slurm(policy) if isinstance(policy, Slurm) else self.definition()
        waiting = [state.job(number) for number in context.queue.listed()]
        running = [
            (state.job(number), end, state.copies(number, state.plan.held[number]))
            for number, end in state.plan.until.items()
        ]
        if isinstance(policy, Conservative):
            naive.plan = {job: place for job, place in state.places(policy).items() if job in waiting}
        if isinstance(policy, Slack):
            naive.latest = {state.job(number): time for number, time in policy.latest.items()}
        changed = context.released or context.moved or bool(context.queue.fresh) or bool(context.queue.gone)
        starts, _ = naive(
            *(plain.Machine(plain.capacity(state.units)), state.now, waiting, running),
            early=context.moved,
            changed=changed,
        )
        expected = {job.id: place.copies for job, place in starts}
        own(policy, context)
        found = {number: state.copies(number, selection) for number, selection, _ in context.started}
        kept = not isinstance(policy, Conservative) or state.places(policy) == naive.plan
        self.starts += len(expected)
        if found == expected and kept:
            self.same += 1
        else:
            ours, plain_ones = (
                {job: {node: k for node, k in enumerate(copies) if k} for job, copies in starts.items()}
                for starts in (found, expected)
            )
            self.differ.append(f"at {state.now:g} s: {ours} instead of {plain_ones}, same plan: {kept}")


def draw(case: str, passes: int, jobs: int, most: int) -> bool:
    """Draw passes of a case and print whether they are those of the definition."""
    name, _, policy = case.rpartition("-")
    kind, own_options, definition = POLICIES[policy]
    options: dict[str, Any] = {"queue_policy": policy, "queue_options": own_options}
    if name == "mixed":
        cluster, workload = bench_mixed.site(220), bench_mixed.workload(220, 0.9, jobs)
    elif name.startswith("site"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "slurm.conf"
            path.write_text(bench_whole.SLURM_CONF)
            site = ss.import_site(path)
        cluster, options = site.cluster, dict(from_document(site.config))
        workload = bench_whole.slurm_jobs(int(name.removeprefix("site")) / 100, jobs)
    else:
        file, cores = FILES[name]
        cluster = machine(cores, 1) if cores < 1_000 else machine(cores // 16, 16)
        workload = ss.load_workload(TRACES / file, map="slot={procs}/core", limit=jobs)
    watch = Draw(definition, max(1, 2 * jobs // (8 * passes)), most, passes)
    own = kind.run_pass  # type: ignore[attr-defined]

    def watched(self: Any, context: PassContext) -> None:
        watch.run_pass(own, self, context)

    kind.run_pass = watched  # type: ignore[attr-defined]
    try:
        with suppress(AllDrawnError):
            simulate(cluster, workload, allocations=False, **options)
    finally:
        kind.run_pass = own  # type: ignore[attr-defined]
    print(
        f"{case}: {watch.same} of {passes - watch.left} passes, with {watch.starts} starts, "
        f"are those of the definition",
        flush=True,
    )
    for text in watch.differ[:5]:
        print(f"  {text}", flush=True)
    return not watch.differ


def main() -> int:
    """Draw passes of each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", default=CASES)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=3_000)
    parser.add_argument("--most", type=int, default=60, help="waiting jobs of a pass at most")
    args = parser.parse_args()
    same = [draw(case, args.passes, args.jobs, args.most) for case in args.cases]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
