"""The slow path of mixed machines: the matcher is asked for every candidate in every pass.

`PlainSupply` keeps no counts of kinds, and its shadow time is that of states of the cluster that are copied
and searched. A run with it shows whether the quick answers of `GraphSupply` are right.
"""

from __future__ import annotations

import numpy as np

from simsched.schedule.graph_supply import GraphSupply
from simsched.schedule.supply import need_at_most


class PlainSupply(GraphSupply):
    """Sums of free units rule jobs out, and the matcher decides the rest."""

    __slots__ = ()

    def could_start(self, job):
        return bool(self.could_start_each(np.array([job]))[0])

    def could_start_each(self, jobs):
        free = np.array([self.plan.free(type_) for type_ in self.table.types], dtype=np.int64)
        return need_at_most(self.table.demand[:, self.table.kinds_array[jobs]], free)

    def fit(self, job):
        return self.seek_at(job, self.plan.available, self.now)

    def shadow(self, job, *, extra=True, fixed=False):
        return self.shadow_of_states(job, extra=extra, fixed=fixed)

    def next_fitting(self, queue, at):
        return at

    def behind(self, queue, first):
        jobs = queue.jobs()
        return jobs[jobs != first]

    def candidates(self, jobs, shadow):
        yield from filter(self.could_start, jobs.tolist())


class SearchedSupply(GraphSupply):
    """The general search plans, also where counts would decide."""

    def _counts_all(self):
        return False
