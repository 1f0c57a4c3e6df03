"""Write the CSV that flux-fiction reads: a trace in the words of ``sacct``, one line per job."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from simsched.formats.rfc.duration import format_date
from simsched.workload.flat_counts import demand, procs_of
from simsched.workload.transforms.transforms import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.workload.job import Job, Workload

HEAD = ("JobID", "NNodes", "NCPUS", "Timelimit", "Submit", "Elapsed", "NGPUS")
DEFAULT_START = 1_704_067_200
"""2024-01-01T00:00:00, second 0 of a workload on a clock of its own."""


def write_flux_fiction(workload: Workload) -> Iterator[str]:
    """Yield the lines of a trace, its header first.

    Second 0 is the header's ``UnixStartTime``, else the first day of 2024.  flux-fiction needs nodes and
    limits: a job without a number of nodes has one node, and a job without a limit its run time.
    Times are whole seconds, rounded; a run time of 0 becomes a second.
    """
    said = workload.header.get("UnixStartTime", "")
    base = int(said) if said.isascii() and said.isdigit() and len(said) < 12 else DEFAULT_START
    yield ",".join(HEAD)
    for job in workload.jobs:
        yield _job_line(job, base)


def _job_line(job: Job, base: int) -> str:
    least = demand(job.jobspec)
    counts = job.nodes or least.nodes or 1, procs_of(job.procs, job.jobspec), least.gpus
    return trace_line(job.id, base + round(job.submit), seconds_of(job), job.duration, *counts)


def trace_line(
    id_: int | str, submit: float, runtime: float, limit: float | None, nodes: int, procs: int, gpus: int
) -> str:
    """Return the line of one job; `submit` is in seconds after 1970, and the limit is None for none.

    >>> trace_line(7, 1704067200, 90, None, 2, 1, 0)
    '7,2,2,00:01:30,2024-01-01T00:00:00,00:01:30,0'
    """
    run = max(1, round(runtime))
    most = run if limit is None else max(1, round(limit))
    at = format_date(round(submit)).removesuffix("Z")
    cells = (str(id_), str(nodes), str(max(procs, nodes)), _clock(most), at, _clock(run), str(gpus))
    return _line(cells)


def _clock(seconds: int) -> str:
    """Return a duration as ``[D-]HH:MM:SS``.

    >>> _clock(600), _clock(90061)
    ('00:10:00', '1-01:01:01')
    """
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{f'{days}-' if days else ''}{hour:02d}:{minute:02d}:{second:02d}"


def _line(cells: tuple[str, ...]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(cells)
    return stream.getvalue()
