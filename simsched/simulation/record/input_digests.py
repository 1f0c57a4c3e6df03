"""Digests of the inputs of a run by content: the machine, the jobs and the configuration.

A file that was moved, compressed or rewritten with the same content has the same digest.  A workload
that was transformed has another digest than its file.
"""

from __future__ import annotations

from hashlib import sha256
from json import JSONEncoder
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.graph.resource_graph import CONTAINMENT
from simsched.workload.job import Job

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.graph.cluster import Cluster
    from simsched.simulation.options.run_config import RunConfig

NEWER = ("nodelist", "qos", "energy", "array_task")
"""Fields of `Job` that earlier versions do not have."""

_encode = JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode


def machine_digest(cluster: Cluster) -> str:
    """Return the SHA-256 of all parts of a cluster that matching uses."""
    found = sha256()
    index = cluster.index
    _take(found, [index.ranks, index.up, list(index.hosts), index.target_type])
    _take(found, [sorted(index.property_rows), *(row for _, row in sorted(index.property_rows.items()))])
    for name, pool in index.pool_types.items():
        texts = [str(ids) for ids in dict.fromkeys(pool.ids)]
        _take(found, [name, pool.unit, pool.named, pool.pos, pool.size, pool.target, pool.up, texts])
    for name, vertices in index.vertex_types.items():
        _take(found, [name, list(vertices.names), vertices.pos, vertices.end, vertices.ids, vertices.up])
    others = [edge for edge in cluster.graph.edges(keys=True) if edge[2] != CONTAINMENT]
    _take(found, [sorted(others)])
    return found.hexdigest()


def _take(found: Any, values: Iterable[Any]) -> None:
    for value in values:
        # each part is preceded by its length, so that no two lists of parts are the same bytes
        part = value.tobytes() if isinstance(value, np.ndarray) else _encode(value).encode()
        found.update(str(len(part)).encode() + b":" + part)


def jobs_digest(jobs: Sequence[Job]) -> str:
    """Return the SHA-256 of all jobs, their requests included."""
    found = sha256()
    requests: dict[int, int] = {}
    specs = {id(job.jobspec): job.jobspec for job in jobs}
    for number, (key, spec) in enumerate(specs.items()):
        requests[key] = number
        _take(found, [spec.to_dict()])
    _take(found, [[requests[id(job.jobspec)] for job in jobs]])
    for name in Job.__struct_fields__:
        if name == "jobspec":
            continue
        column = [getattr(job, name) for job in jobs]
        # Jobs without the field have the digest that they had before there was one.
        if name not in NEWER or any(column):
            _take(found, [name, column])
    return found.hexdigest()


def config_digest(config: RunConfig) -> str:
    """Return the SHA-256 of a configuration with its queues; policies given as objects count by name."""
    values = {**config.to_dict(), "queues": config.queues}
    return sha256("\n".join(map(repr, values.items())).encode()).hexdigest()
