"""`JobTable`: what a queue policy may know of the jobs, as columns indexed by job number.

A job's number is its place in the workload's submit order.  The engine writes the book
once; policies only read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from simsched.match.requests.request import Content, Request

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JobTable:
    """Columns over all jobs of a workload; `durations` and the rest are seconds.

    Attributes
    ----------
    requests : the compiled request of each job (None: it can never run and never waits).
    kinds : the number of each job's request; equal requests have equal numbers.
    submits : submit time.
    durations : requested seconds; inf where unlimited.
    judged, judged_array : seconds by which a backfill candidate is judged (the requested ones, or, as
        CQSim does, the actual ones).
    priorities : greater goes first (RFC 21 urgency unless a queue says more).
    types : the resource types that are asked for.
    demand : units of each type that the job needs at the least, shape (types, jobs).
    sizes : what orders and fair share go by: the cores that a job takes, those of whole nodes
        included; without any, the units it asks for, or its nodes.
    single : the one type in which every request of the workload is a plain number of units
        whatever is free, or None.  If there is one, counts alone decide whether a job fits.
        It is ``slot`` where every request is a number of copies of the one slot `content`.
    content : what one copy asks of a target.  Copies that are alike add up: a target with room for
        k of them has room for k - j beside j, so that it does not matter where they are.
    units : units of `single` that each job needs; empty without it.
    tiers : the priority of each job's queue: greater goes first whatever the order; None: all equal.
    deadlines : by when each job should have ended, inf where nothing is said; None: no job has one.
    users, banks : numbers of the user and the bank of each job, for fair share.
    """

    requests: Sequence[Request | None]
    kinds: list[int]
    submits: Floats
    durations: list[float]
    judged: list[float]
    judged_array: Floats
    priorities: Integers
    types: tuple[str, ...]
    demand: Integers
    sizes: Integers
    single: str | None = None
    content: Content | None = None
    units: list[int] = field(default_factory=list)
    tiers: Integers | None = None
    deadlines: Floats | None = None
    users: Integers | None = None
    banks: Integers | None = None

    def __len__(self) -> int:
        return len(self.kinds)
