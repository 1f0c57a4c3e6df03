"""`simulate`: a cluster and a workload in, a `Result` out."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.graph.resource_graph import collector_paused
from simsched.match.policy import find_policy
from simsched.simulate.config import RunConfig
from simsched.simulate.engine import Engine
from simsched.simulate.prepare import prepare
from simsched.simulate.record import Recorder
from simsched.simulate.record_lines import AllocationLog
from simsched.simulate.result import Result, counts_of, job_columns

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Workload

RUN_FORMAT = 1


def simulate(
    cluster: Cluster,
    workload: Workload,
    queue_policy: str = "easy",
    match_policy: str = "first",
    seed: int = 0,
    *,
    allocations: bool = True,
    sink: BinaryIO | None = None,
    progress: Callable[[Engine], None] | None = None,
    stop: threading.Event | None = None,
    **options: Any,
) -> Result:
    """Run a workload on a cluster and return what happened.

    Parameters
    ----------
    queue_policy, match_policy : names; `options` are further fields of `RunConfig`.
    seed : of every random choice; the same seed gives the same result, to the byte.
    allocations : whether to note who got what (R documents); without them a run is faster.
    sink : a binary file that takes the allocations while the run goes on; None keeps them in memory.
    progress : called every few thousand passes with the engine.
    stop : once set, the run ends after the pass at hand; ``meta["complete"]`` is then false.

    Raises
    ------
    ConfigError
        For a policy, an order or an option that does not exist.
    """
    config = make_config(queue_policy=queue_policy, match_policy=match_policy, seed=seed, **options)
    find_policy(config.match_policy)
    began = time.perf_counter()
    index = cluster.index
    prepared = prepare(workload.jobs, index, config)
    log = None
    if allocations:
        scheduler = {"queue": config.queue_policy, "policy": config.match_policy}
        log = AllocationLog(
            [job.id for job in workload.jobs], prepared.book.durations, index, scheduler, sink
        )
    recorder = Recorder(len(workload), _pools(cluster), log)
    engine = Engine(prepared, index, config, recorder)
    engine.progress = progress
    engine.stop = stop
    with collector_paused():
        complete = engine.run()
    jobs = job_columns(workload, prepared, recorder)
    totals = totals_of(cluster)
    meta = {
        **_identity(),
        "complete": complete,
        "seed": config.seed,
        "config": config.to_dict(),
        "inputs": [_input("cluster", cluster), _input("workload", workload)],
        "cluster": {"name": cluster.name, "targets": len(index), "totals": totals},
        "workload": {"name": workload.name, "skipped": dict(workload.skipped_counts)},
        "counts": counts_of(jobs),
        **_speed(began, engine.done),
    }
    return Result(jobs, recorder.timeline(totals), meta, log)


def make_config(**options: Any) -> RunConfig:
    """Return the configuration of these options.

    Raises
    ------
    ConfigError
        For an option that does not exist, or a value it does not take.
    """
    from dataclasses import fields

    from simsched.errors import ConfigError

    known = [field.name for field in fields(RunConfig)]
    for name in options:
        if name not in known:
            raise ConfigError(f"unknown option {name!r}", expected=", ".join(known))
    return RunConfig(**options)


def _pools(cluster: Cluster) -> tuple[str, ...]:
    """Return the pool types that the timeline tells of, besides the execution targets as ``node``."""
    return tuple(name for name in cluster.index.pool_types if name != "node")


def totals_of(cluster: Cluster) -> dict[str, int]:
    """Return the units of each type of the whole cluster that are up; ``node`` are its execution targets."""
    index = cluster.index
    totals = {"node": len(index)}
    totals.update((name, index.pool_types[name].total) for name in _pools(cluster))
    return totals


def _identity() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        mine = version("simsched")
    except PackageNotFoundError:  # run from a source tree that was never installed
        mine = "0+unknown"
    return {"simsched": mine, "format": RUN_FORMAT, "created": now}


def _speed(began: float, done: int) -> dict[str, float]:
    seconds = time.perf_counter() - began
    return {"wall_seconds": round(seconds, 3), "jobs_per_second": round(done / max(seconds, 1e-9), 1)}


def _input(role: str, value: Cluster | Workload) -> Mapping[str, Any]:
    """Return what identifies an input: its name, and the digest of its file if it came from one."""
    source = Path(value.source) if value.source else None
    digest = None
    if source is not None and source.is_file():
        digest = sha256(source.read_bytes()).hexdigest()
    return {"role": role, "name": str(source or value.name), "sha256": digest}
