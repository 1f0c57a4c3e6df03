"""Two match policies: one as a `MatchPolicy`, one as a bare function.

A policy is given the candidates of one choice in graph order and returns their positions in
the order in which they are to be taken.  It says what is preferred, never what fits.
"""

from __future__ import annotations

import numpy as np

from simsched.match.policy import Candidates, MatchPolicy, ascending


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
