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
_DEFAULT_START = 1_704_067_200  # 2024-01-01T00:00:00, for a workload on a clock of its own


def write_flux_fiction(workload: Workload) -> Iterator[str]:
    """Yield the lines of a trace, its header first.

    Second 0 is the header's ``UnixStartTime``, else the first day of 2024.  flux-fiction needs nodes and
    limits: a job without a number of nodes has one node, and a job without a limit its run time.
    Times are whole seconds, rounded; a run time of 0 becomes a second.
    """
    said = workload.header.get("UnixStartTime", "")
    base = int(said) if said.isascii() and said.isdigit() and len(said) < 12 else _DEFAULT_START
    yield ",".join(HEAD)
    for job in workload.jobs:
        yield _line(_cells(job, base))


def _cells(job: Job, base: int) -> tuple[str, ...]:
    least = demand(job.jobspec)
    nodes = job.nodes or least.nodes or 1
    run = max(1, round(seconds_of(job)))
    limit = run if job.duration is None else max(1, round(job.duration))
    submit = format_date(base + round(job.submit)).removesuffix("Z")
    procs = max(procs_of(job.procs, job.jobspec), nodes)
    return (str(job.id), str(nodes), str(procs), _clock(limit), submit, _clock(run), str(least.gpus))


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
