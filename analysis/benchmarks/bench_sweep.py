"""A study of 200 runs on local processes and on a real Dask scheduler: the same dataset, and how fast?

    python -m analysis.benchmarks.bench_sweep                      the study as it is in analysis/sweeps
    python -m analysis.benchmarks.bench_sweep --seeds 1 --jobs 1000

Wall seconds, but for the overhead: that is CPU seconds of everything a sweep does beyond its runs, since a
machine that is busy with other things makes both longer by chance.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

from simsched.study.spec.study_file import load_study
from simsched.study.sweep import sweep

STUDY = Path(__file__).resolve().parents[1] / "sweeps" / "policies-and-loads.yaml"


def study_of(seeds: int, jobs: int):
    """The bundled study with another number of seeds and jobs."""
    found = load_study(STUDY)
    steps = () if jobs == 5000 else (f"first({jobs})",)
    return replace(found, base=found.base.changed(transforms=steps), seeds=tuple(range(seeds)))


def digest(folder: Path) -> str:
    """One digest of all that must not depend on where the runs were performed."""
    total = hashlib.sha256()
    for pattern in (
        "runs.parquet",
        "study.json",
        "jobs/*/*.parquet",
        "timeline/*/*.parquet",
        "runs/*/row.json",
    ):
        for file in sorted(folder.glob(pattern)):
            total.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return total.hexdigest()


@contextmanager
def dask(workers: int):
    """A scheduler and workers as processes, gone at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    commands = [["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]]
    commands += [["worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1",
                  "--memory-limit", "0"]] * workers  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([sys.executable, "-m", "dask", *command], **quiet) for command in commands]
    try:
        _wait_for(address, workers)
        yield address
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _wait_for(address: str, workers: int) -> None:
    from simsched.errors import ConfigError
    from simsched.study.runs.worker_pools import open_workers

    for _ in range(60):
        try:
            with open_workers(scheduler=address) as known:
                for _ in range(600):
                    if len(known.addresses()) == workers:
                        return
                    time.sleep(0.05)
        except ConfigError:
            time.sleep(0.2)
    raise SystemExit("Dask did not start")


def measured(study, folder: Path, what: str, **where) -> tuple[float, str]:
    """Perform the study, print how long it took, and return seconds and digest."""
    began = time.perf_counter()
    result = sweep(study, folder, report=False, **where)
    seconds = time.perf_counter() - began
    own = float(result.timings["seconds"].sum())
    found = digest(folder)
    print(f"{what:<22}{seconds:9.1f} s   runs alone {own:9.1f} s   {found[:16]}", flush=True)
    return seconds, found


def scaling(study, folder: Path, counts: list[int]) -> bool:
    """Local and Dask, with each number of workers; whether all datasets are the same."""
    seconds, found = {}, set()
    for count in counts:
        place = folder / f"local-{count}"
        seconds["local", count], same = measured(study, place, f"local, {count} workers", workers=count)
        found.add(same)
    for count in counts:
        with dask(count) as address:
            place = folder / f"dask-{count}"
            seconds["Dask", count], same = measured(study, place, f"Dask, {count} workers", scheduler=address)
            found.add(same)
    for where in ("local", "Dask"):
        ratios = [f"{n}: {seconds[where, counts[0]] / seconds[where, n]:.2f}" for n in counts[1:]]
        if ratios:
            print(f"{where}: times as fast as with {counts[0]}: {', '.join(ratios)}")
    print(f"datasets {'identical' if len(found) == 1 else 'DIFFER'}", flush=True)
    return len(found) == 1


def overhead(folder: Path, runs: int, jobs: int) -> None:
    """CPU of a sweep on one worker against the same runs made and written one after another.

    Measured for one number of runs and for twice as many: the difference is what each run costs
    more, the rest is what it costs to start.
    """
    source = Path(__file__).resolve()
    found: dict[tuple[str, int], list[float]] = {}
    for repeat, (how, count) in product(range(2), product(("plain", "swept"), (runs, 2 * runs))):
        place = folder / f"{how}-{count}-{repeat}"
        found.setdefault((how, count), []).append(_cpu(source, how, place, count, jobs))
        shutil.rmtree(place)
    least = {key: min(values) for key, values in found.items()}
    plain = (least["plain", 2 * runs] - least["plain", runs]) / runs
    swept = (least["swept", 2 * runs] - least["swept", runs]) / runs
    start = least["swept", runs] - least["plain", runs] - runs * (swept - plain)
    print(
        f"overhead: a run takes {plain:.2f} s of CPU by itself and {swept:.2f} s in a sweep, "
        f"{100 * (swept - plain) / plain:+.1f} %; a sweep takes {start:.1f} s more to start",
        flush=True,
    )


def _cpu(source: Path, how: str, folder: Path, runs: int, jobs: int) -> float:
    """CPU seconds of a process and its children, their start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, str(source), "--how", how, "--folder", str(folder), "--runs", str(runs)]
    subprocess.run(
        [*command, "--jobs", str(jobs)], check=True, env={**os.environ, "PYTHONPATH": str(source.parents[2])}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def long_study(runs: int, jobs: int):
    """Runs of some seconds: the hybrid policy at a high load, a seed each."""
    found = load_study(STUDY)
    steps = ("load(1.2)", f"first({jobs})")
    return replace(found, base=found.base.changed(transforms=steps, options={"queue-policy": "hybrid"}),
                   axes=(), seeds=tuple(range(runs)))  # fmt: skip


def perform(how: str, folder: Path, runs: int, jobs: int) -> None:
    """In a process of its own: the runs as `simsched run` would make them, or as a sweep."""
    study = long_study(runs, jobs)
    if how == "swept":
        sweep(study, folder, workers=1, report=False)
        return
    import simsched as ss
    from simsched.study.runs.input_cache import INPUTS
    from simsched.study.runs.single_run import options_of

    for task in study.tasks:
        cluster, workload = INPUTS.cluster(task.cluster), INPUTS.workload(task)
        run = ss.simulate(cluster, workload, allocations=False, **options_of(task))
        run.save(folder / task.key)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=10, help="of the overhead")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=("scaling", "overhead"))
    parser.add_argument("--how", choices=("plain", "swept"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.how:
        perform(args.how, args.folder, args.runs, args.jobs)
        return
    folder = Path(tempfile.mkdtemp(prefix="simsched-bench-sweep-"))
    try:
        if args.only != "scaling":
            overhead(folder, args.runs, min(5000, args.jobs))
        if args.only != "overhead":
            study = study_of(args.seeds, args.jobs)
            print(f"{len(study.tasks)} runs of {args.jobs:,} jobs", flush=True)
            if not scaling(study, folder, args.workers):
                raise SystemExit(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
