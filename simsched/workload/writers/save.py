"""`save_workload`: a workload into a file of any format that can be written."""

from __future__ import annotations

import gzip
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from simsched.workload.job import Skips, Workload


class Writer(NamedTuple):
    """One format: the function that yields its lines, and the fields of a job that it cannot hold.

    `selects`: there are jobs that it cannot write at all; the function takes the `Skips` to note them in.
    """

    module: str
    function: str
    endings: tuple[str, ...]
    loses: tuple[str, ...] = ()
    selects: bool = False


_NOT_BATSIM = (
    "jobspec", "urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "bank", "nodes",
    "queue", "group", "partition", "memory", "energy", "wait", "status", "preceding", "think_time",
    "nodelist",
)  # fmt: skip

#: Name (``--to``) → writer.
WRITERS = {
    "swf": Writer(
        "writers.swf_writer", "write_swf", (".swf",),
        ("jobspec", "urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "bank", "nodes",
         "energy", "nodelist"),
    ),
    "batsim": Writer("readers.batsim", "write_batsim", (".json",), _NOT_BATSIM),
    "batsim4": Writer("readers.batsim", "write_batsim4", (), _NOT_BATSIM),
    "jobs": Writer("writers.entries", "write_jobs_yaml", (".yaml", ".yml")),
    "jsonl": Writer("writers.entries", "write_jsonl", (".jsonl",)),
    "sacct": Writer(
        "writers.sacct_writer", "write_sacct", (".sacct",),
        ("urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "preceding", "think_time",
         "energy", "nodelist"),
    ),
    "flux-fiction": Writer(
        "writers.flux_fiction", "write_flux_fiction", (),
        ("urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "preceding", "think_time",
         "user", "group", "bank", "queue", "partition", "name", "memory", "energy", "wait", "status",
         "nodelist"),
    ),
    "sss": Writer(
        "readers.sss_jobs", "write_sss", (".xml",),
        ("urgency", "cancel_at", "preceding", "think_time", "nodes", "memory", "energy", "partition",
         "nodelist"),
        selects=True,
    ),
}  # fmt: skip


def save_workload(
    workload: Workload, path: str | Path, *, to: str | None = None, skips: Skips | None = None
) -> str:
    """Write a workload; the format is `to`, or follows from the ending (``.gz`` compresses).

    The file is written beside its final name and renamed when whole.  Jobs that the format cannot
    write at all are left out and noted in `skips`.  Returns the name of the format.

    Raises
    ------
    WorkloadError
        On the first job that cannot be written, if there are no `skips` or they are strict, and when no
        job is left.
    ConfigError
        On a format that cannot be written, an ending of no format, or a place that cannot be written to.
    """
    from simsched.files import replacing

    place = Path(path)
    kind = to or kind_of(place.name)
    lines = lines_of(workload, kind, skips)
    with replacing(path, ConfigError) as stream:
        _write(lines, stream, compress=place.suffix == ".gz")
    return kind


def lines_of(workload: Workload, kind: str, skips: Skips | None = None) -> Iterator[str]:
    """Return the lines of a workload in a format; jobs that it cannot write go to `skips`."""
    if kind not in WRITERS:
        raise ConfigError(f"cannot write {kind!r}", expected=", ".join(WRITERS))
    writer = WRITERS[kind]
    write = getattr(import_module(f"simsched.workload.{writer.module}"), writer.function)
    lines: Iterator[str] = write(workload, skips) if writer.selects else write(workload)
    return lines


def kind_of(name: str) -> str:
    """Return the format that belongs to the ending of a file name.

    >>> kind_of("month.swf.gz"), kind_of("jobs.yaml")
    ('swf', 'jobs')
    """
    plain = name.removesuffix(".gz")
    for kind, writer in WRITERS.items():
        if writer.endings and plain.endswith(writer.endings):
            return kind
    endings = ", ".join(ending for writer in WRITERS.values() for ending in writer.endings)
    raise ConfigError("no format belongs to the ending", where=name, expected=f"{endings}, or --to")


def losses(workload: Workload, kind: str) -> list[str]:
    """Return the fields that some job has and the format cannot hold."""
    from simsched.workload.job import Job

    plain = dict(
        zip(Job.__struct_fields__[-len(Job.__struct_defaults__) :], Job.__struct_defaults__, strict=True)
    )
    found = []
    for name in WRITERS[kind].loses:
        if name == "jobspec":
            flat = workload.header.get("Map") is not None or all(
                _is_flat(job.jobspec) for job in workload.jobs
            )
            lost = not flat
        elif name == "dependencies" and kind == "sacct":  # the column Eligible holds begin times
            lost = any(item.scheme != "begin-time" for job in workload.jobs for item in job.dependencies)
        else:
            lost = any(getattr(job, name) != plain.get(name) for job in workload.jobs)
        if lost:
            found.append(name)
    return found


def _is_flat(jobspec: object) -> bool:
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.flat_counts import demand

    assert isinstance(jobspec, Jobspec)
    return jobspec == Jobspec.from_shape(f"slot={demand(jobspec).procs}/core")


def _write(lines: Iterator[str], stream: BinaryIO, *, compress: bool) -> None:
    texts = (f"{line}\n".encode() for line in lines)
    if compress:
        # No name and no time in the header: the same workload gives the same bytes.
        with gzip.GzipFile("", "wb", 9, stream, mtime=0) as packed:
            packed.writelines(texts)
        return
    stream.writelines(texts)
