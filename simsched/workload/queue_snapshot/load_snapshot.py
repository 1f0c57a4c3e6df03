"""`load_queue_snapshot`: a queue snapshot from a file of any of its formats, recognised by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.formats.text.documents import name_of
from simsched.workload.load import detect
from simsched.workload.mapping import ReadOptions
from simsched.workload.queue_snapshot.flux_queue import read_flux_queue
from simsched.workload.queue_snapshot.slurm_queue import read_slurm_queue
from simsched.workload.queue_snapshot.snapshot import read_details
from simsched.workload.queue_snapshot.snapshot_document import looks_ours, read_queue
from simsched.workload.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from simsched.workload.queue_snapshot.snapshot import QueueSnapshot


def load_queue_snapshot(
    path: str | Path | Source, reading: ReadOptions | None = None, details: str | Path | None = None
) -> QueueSnapshot | None:
    """Read a snapshot; None if the file is something else, such as a workload.

    `reading` are the maps by which flat counts become requests.

    Raises
    ------
    FormatError, WorkloadError
        If the file begins like a queue snapshot and is not a valid one; the error has the place.
    """
    source = path if isinstance(path, Source) else Source.of(path)
    given = name_of(source.path)
    reading = reading or ReadOptions()
    head = source.head()
    if looks_ours(head):
        return read_queue(source.text(), given, source, read_details(details))
    kind = detect(head, source.name)
    if kind == "squeue-json":
        return read_slurm_queue(source.text(), given, reading)
    if kind == "flux":
        return read_flux_queue(source.text(), given, reading, read_details(details))
    return None
