"""Two match policies, one as a `MatchPolicy` and one as a bare function; a queue policy; a job order.

A match policy is given the candidates of one choice in graph order and returns their positions in
the order in which they are to be taken.  It says what is preferred, never what fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.match.policies.policy import Candidates, MatchPolicy, ascending
from simsched.schedule.orders.ranking import Order

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext


def even_first(candidates: Candidates) -> np.ndarray:
    """Nodes with an even id first; within each half the lowest first."""
    ids = candidates.ids()
    return np.lexsort((ids, ids % 2))


#: `static` is a promise: the order depends on the graph alone, so it is worked out only once.
EVEN_FIRST = MatchPolicy(name="evenfirst", says="even node ids first", order=even_first, static=True)


def coolest_first(candidates: Candidates) -> np.ndarray:
    """Nodes with the fewest running jobs first."""
    jobs = candidates.avail.use
    return ascending(jobs[candidates.ordinals] if candidates.kind == "node" else candidates.fits * 0)


class Patient:
    """A queue policy: any job that fits may start, until the first job has waited too long.

    `patience` is in times of that job's requested duration; its annotation makes ``--option patience=0.5``
    a number.
    """

    def __init__(self, patience: float = 1.0) -> None:
        self.patience = patience

    def run_pass(self, context: PassContext) -> None:
        """Start the jobs that may start now."""
        for job in context.queue.listed():
            selection = context.fit(job)
            if selection is not None:
                context.start(job, selection)
            elif context.now - context.table.submits[job] > self.patience * context.table.durations[job]:
                return  # the first job has waited too long: no other job passes it


#: A job order: the key of each job, the smallest first.
NARROW_FIRST = Order("narrow-first", lambda table, jobs, _now: table.sizes[jobs])
