"""A run as the CSV of flux-fiction: the jobs that ran, with the resources and the times of the simulation."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from simsched.workload.save import DEFAULT_START, trace_line
from simsched.workload.save import FLUX_FICTION_HEAD as HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.report.data.tables import RunTables


def flux_fiction_lines(run: RunTables) -> Iterator[str]:
    """Yield the lines, a head first; only jobs that have ended are written, since each needs a run time.

    Nodes, processors (cores, or nodes in a run without cores) and gpus are those of the allocation.  Times
    are UTC; a run without dates begins on the first day of 2024.
    """
    base = DEFAULT_START if run.clock is None else run.clock.origin
    yield ",".join(HEAD) + "\n"
    jobs = run.jobs[run.jobs["start"].notna() & run.jobs["end"].notna()]
    columns = ["id", "submit", "start", "end", "duration", "nodes", "cores", "gpus"]
    for name, submit, start, end, limit, nodes, cores, gpus in jobs[columns].itertuples(
        index=False, name=None
    ):
        counts = int(nodes), int(cores or nodes), int(gpus)
        line = trace_line(name, base + submit, end - start, None if limit == inf else limit, *counts)
        yield line + "\n"
