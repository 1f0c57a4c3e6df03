"""Whether two versions of this code give the same start times and the same R on random mixed sites.

    python -m analysis.benchmarks.same_answers COMMIT [--count N] [--first SEED]

Each configuration is drawn from its number: a site (flat, or with sockets, memory, gpus, racks, licences,
partitions), the jobs (cores, nodes, sockets, slots, shared and exclusive claims, constraints, cancelled jobs,
limits that are reached), a queue policy with its options, a job order, a match policy, a predictor, what
happens at limits, and in some of them limits, queues with preemption, advance reservations, outages or
epilogs. Some are saved in the middle and resumed, and in some a program submits the jobs one by one.
This version runs it, and so does the version of COMMIT, which is taken from the repository into a temporary
folder. Start times, ends, states and the file of allocations must be equal to the byte, and the run of this
version must pass the audit. Differences are printed, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import simsched as ss
from simsched.errors import SimschedError
from simsched.simulation.options.run_config import from_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]

PARTITIONS = ("batch", "long", "debug")
CONSTRAINTS = (None, None, "batch", "long", "-debug", "batch|debug")
INSIDE = ("", "sockets: 2, ", "locality: [{type: socket, count: 2}, {type: numa, count: 2}], ")
SHAPES = (
    *("slot={n}/core", "slot={n}/[core;memory=2{{unit:GB}}]", "slot={n}/[core=2;memory=3{{unit:GB}}]"),
    *("slot={n}/[core=2;gpu;memory=4{{unit:GB}}]", "slot={n}/[core=2;licence=1]", "slot={n}/socket/core=2"),
    *("slot={n}-{more}/core", "slot={k}/node", "slot={k}-{most}/node", "slot={k}/socket"),
    *("node={k}", "node={k}{{x}}", "node={k}{{x}}/slot=2/core", "rack/slot={k}/node"),
    *("node={k}/slot=2/[core=2;memory=4{{unit:GB}}]", "node={k}/socket=2/slot=1/core=2"),
)
QUEUES: tuple[tuple[str, tuple[dict[str, Any], ...]], ...] = (
    ("fcfs", ({},)),
    ("easy", ({}, {}, {}, {"extra": False}, {"refresh": "when-blocked"}, {"backfill_order": "sjf"})),
    ("easy", ({"reservation": "none"}, {"starvation": 200.0}, {"starvation": 0.0, "backfill_order": "sjf"})),
    ("easy+", ({},)),
    ("easy++", ({},)),
    ("conservative", ({}, {}, {"compress": "start"}, {"compress": "none"})),
    ("hybrid", ({}, {"depth": 2}, {"depth": 4, "compress": "start"})),
    ("selective", ({}, {"threshold": 1.5})),
    ("slack", ({}, {"factor": 0.5})),
    ("slurm", ({}, {"interval": 60.0, "max_job_test": 5})),
)
WEIGHTS = (2, 8, 2, 1, 1, 2, 1, 1, 1, 1)
FLAT = (("slot={n}/core", "slot={n}/core"), ("slot={k}/node", "slot={k}/node"), ("slot={n}/core=2",))
"""Machines on which numbers of units decide: the shapes of all jobs."""
ORDERS = ("fifo", "fifo", "fifo", "wfp3", "fairshare", "sjf", "lxf", "largest-area", "priority")
MATCHES = (
    *("first", "first", "low", "high", "lonode", "hinode", "bestfit", "worstfit", "locality"),
    *("firstnodex", "lonodex", "random"),
)
WHOLE_NODES = ("firstnodex", "lonodex")
"""Match policies whose runs are not audited: the audit expects the requested units, not the whole node."""


def drawn(number: int, folder: Path) -> tuple[ss.Cluster, ss.Workload, dict[str, Any]]:
    """Return the site, the jobs and the options of a configuration."""
    rng = random.Random(number)
    flat = rng.choice(FLAT) if rng.random() < 0.25 else ()
    recipe = folder / f"site{number}.yaml"
    recipe.write_text(_flat_site(rng) if flat else _site(rng))
    cluster = ss.load_cluster(recipe)
    nodes = len(cluster.index) if cluster.index is not None else 1
    rules = _rules(rng, nodes)
    jobs = _workload(rng, flat or SHAPES, constraints=not flat, queued="queues" in rules)
    (policy, choices), *_ = rng.choices(QUEUES, WEIGHTS)
    options = {
        "queue_policy": policy,
        "queue_options": rng.choice(choices),
        "order": rng.choice(ORDERS),
        "match_policy": rng.choice(MATCHES),
        "overrun": rng.choice(["timeout", "timeout", "timeout", "allow"]),
        "candidates": rng.choice(["requested", "requested", "requested", "actual"]),
        "epilog": rng.choice([(0, 0), (0, 0), (0, 0), (0, 40)]),
        "seed": number,
    }
    if policy.startswith("easy+") or (rng.random() < 0.15 and options["candidates"] == "requested"):
        options["predictor"] = rng.choice(["last-two", "quantile", "perfect"])
        options["candidates"] = "requested"
    return cluster, jobs, options | dict(from_document(rules))


def _rules(rng: random.Random, nodes: int) -> dict[str, Any]:
    """Return rules of a production site, as the document of a configuration; mostly none."""
    rules: dict[str, Any] = {}
    one = str(rng.randint(0, nodes - 1))
    begin = rng.randint(0, 2000)
    if rng.random() < 0.2:
        most = {rng.choice(["running-jobs", "cores"]): rng.choice([1, 2, 8])}
        rules["limits"] = [{"each": rng.choice(["user", "account"]), **most}]
    kind = rng.random()
    if kind < 0.1:
        urgent = {"hosts": "all", "priority": 9, "preempts": True}
        rules["queues"] = {"batch": {"hosts": "all"}, "urgent": urgent}
        rules["preemption"] = {"mode": rng.choice(["requeue", "suspend", "cancel"])}
    elif kind < 0.2:
        rules["outages"] = [
            {
                "ranks": one,
                "start": begin,
                "end": begin + rng.randint(1, 2000),
                "kind": rng.choice(["failure", "drain", "maintenance"]),
            }
        ]
    elif kind < 0.28:
        rules["reservations"] = [
            {"name": "class", "start": 1000 + begin, "duration": rng.choice([300, 2000]), "nodes": 1}
        ]
    return rules


def _flat_site(rng: random.Random) -> str:
    """Return a recipe of equal nodes."""
    return f"groups:\n  - {{name: n, count: {rng.randint(1, 24)}, cores: {rng.choice([1, 4, 16])}}}\n"


def _site(rng: random.Random) -> str:
    """Return a recipe of a small site."""
    text = "levels: [{type: rack, count: 2}]\n" if rng.random() < 0.25 else ""
    text += "pools: [{type: licence, size: 6}]\n" if rng.random() < 0.2 else ""
    text += "groups:\n"
    inside = rng.choice(INSIDE)
    for group in range(rng.randint(1, 3)):
        gpus, memory = rng.choice([0, 0, 2, 4]), rng.choice([0, 16, 64])
        names = ", ".join(sorted(rng.sample(PARTITIONS, rng.randint(1, 2))))
        text += f"  - {{name: g{group}x, count: {rng.randint(1, 12)}, {inside}cores: {rng.choice([4, 8, 16])}"
        text += (f", gpus: {gpus}" if gpus else "") + (f", memory: {memory} GiB" if memory else "")
        text += f", properties: [{names}]}}\n"
    return text


def _workload(rng: random.Random, shapes: Sequence[str], *, constraints: bool, queued: bool) -> ss.Workload:
    """Return jobs of a few requests, more than the site can run at once."""
    requests = []
    while len(requests) < 6:
        k, n = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3, 4, 8])
        shape = rng.choice(shapes).format(n=n, k=k, more=n + 3, most=k + 2)
        constraint = rng.choice(CONSTRAINTS) if constraints else None
        try:
            ss.Jobspec.from_shape(shape, constraint=constraint)
        except SimschedError:
            continue
        requests.append((shape, constraint))
    gap, submit, jobs = rng.choice([5, 20, 60]), 0, []
    for number in range(rng.choice([40, 80, 160])):
        submit += int(rng.expovariate(1 / gap)) if rng.random() < 0.8 else 0
        runtime = rng.choice([0, 1, 10, 60, 300, 1000, int(rng.lognormvariate(5, 1.2))])
        limit = rng.choice([runtime, runtime + 1, 2 * runtime + 30, 1000, 3000])
        shape, constraint = rng.choice(requests)
        cancel = submit + rng.randint(1, 500) if rng.random() < 0.04 else None
        spec = ss.Jobspec.from_shape(shape, constraint=constraint, duration=limit)
        user = f"u{rng.randint(0, 4)}"
        jobs.append(
            ss.Job(
                id=number + 1,
                submit=submit,
                runtime=runtime,
                duration=limit,
                jobspec=spec,
                user=user,
                bank=f"b{user[-1] in '12'}",
                cancel_at=cancel,
                urgency=rng.choice([16, 16, 16, 20]),
                queue=rng.choice(["batch", "batch", "urgent"]) if queued else None,
            )
        )
    return ss.Workload(jobs=tuple(jobs), name="mixed")


def answer(number: int, folder: Path, *, audit: bool) -> dict[str, Any]:
    """Run a configuration; return a digest of its jobs and of its R, and the findings of an audit."""
    cluster, jobs, options = drawn(number, folder)
    how = ("whole", "whole", "resumed", "open")[number % 4]
    try:
        run = _run(cluster, jobs, options, how, folder)
    except SimschedError as error:  # a combination that is refused
        return {
            "number": number,
            "policy": "refused",
            "jobs": str(error),
            "r": "",
            "waited": 0,
            "findings": "",
        }
    columns = ["id", "start", "end", "result"]
    table = run.jobs[[name for name in columns if name in run.jobs]].to_csv(index=False)
    path = run.save(folder / f"run{number}")
    allocations = (path / "allocations.jsonl").read_bytes()
    findings = ""
    if audit and options["match_policy"] not in WHOLE_NODES and how == "whole" and not rules_of(options):
        from simsched.simulation.audit.auditor import audit_run

        report = audit_run(path, cluster, jobs)
        findings = "" if report else str(report)
    waited = int((run.jobs["start"] > run.jobs["submit"]).sum())
    return {
        "number": number,
        "policy": options["queue_policy"],
        "jobs": hashlib.sha256(table.encode()).hexdigest(),
        "r": hashlib.sha256(allocations).hexdigest(),
        "waited": waited,
        "findings": findings,
    }


def rules_of(options: Mapping[str, Any]) -> bool:
    """Whether a configuration has rules beside which the audit needs more than the files of the run."""
    return bool({"limits", "queues", "outages", "reservations", "predictor"} & options.keys())


def _run(
    cluster: ss.Cluster, jobs: ss.Workload, options: dict[str, Any], how: str, folder: Path
) -> ss.SimulatedRun:
    """Return a run that is made at once, that goes on from a checkpoint, or to which jobs are submitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if how == "open":
            sim = ss.Simulation(cluster, **options)
            sim.submit_all(jobs)
            sim.run()
            return sim.result()
        if how == "resumed":
            middle = jobs.jobs[len(jobs.jobs) // 2].submit + 1
            file = folder / "checkpoint.json"
            file.unlink(missing_ok=True)
            ss.simulate(cluster, jobs, checkpoints={middle: file}, **options)
            return ss.simulate(cluster, jobs, resume=file, **options)
        return ss.simulate(cluster, jobs, **options)


def answers(first: int, count: int, *, audit: bool) -> None:
    """Print the answer of each configuration as a line of JSON; this is what each version does."""
    if not Path(ss.__file__).is_relative_to(Path.cwd()):
        raise SystemExit(f"{ss.__file__} is not the version in {Path.cwd()}")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            print(json.dumps(answer(number, Path(folder), audit=audit)), flush=True)


def _of_version(root: Path, arguments: list[str]) -> subprocess.Popen[str]:
    """Start this very file with the package of another root."""
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    return subprocess.Popen(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True)


def compare(commit: str, first: int, count: int) -> int:
    """Print how many configurations have equal answers; return the number of those that have not."""
    bounds = ["--first", str(first), "--count", str(count)]
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=REPOSITORY, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        old = _of_version(Path(folder), ["--answers", *bounds])
        new = _of_version(REPOSITORY, ["--answers", "--audit", *bounds])
        assert old.stdout is not None
        assert new.stdout is not None
        policies: Counter[str] = Counter()
        wrong = waited = 0
        for one, other in zip(old.stdout, new.stdout, strict=True):
            was, is_ = json.loads(one), json.loads(other)
            policies[is_["policy"]] += 1
            waited += is_["waited"] > 0
            if any(was[part] != is_[part] for part in ("jobs", "r")) or is_["findings"]:
                wrong += 1
                print(f"configuration {is_['number']} differs: {was} {is_}", flush=True)
        if old.wait() or new.wait() or sum(policies.values()) != count:
            raise SystemExit("a version ended early")
    names = ", ".join(f"{name} {number}" for name, number in sorted(policies.items()))
    print(f"{count - wrong} of {count} equal and audited ({names}); jobs waited in {waited}")
    return wrong


def main() -> int:
    """Compare two versions, or print the answers of the one that runs this."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--answers", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--audit", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answers:
        answers(args.first, args.count, audit=args.audit)
        return 0
    return 1 if compare(args.commit, args.first, args.count) else 0


if __name__ == "__main__":
    sys.exit(main())
