"""The starts and the nodes of a log, for a run that plays them (queue policy ``recorded``)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.arrays import Floats, Integers
    from simsched.graph.index.index import Index
    from simsched.workload.job import Job


_RANKS = re.compile(r"[\d,\- ]+", re.ASCII)
NO_START = "the log has no start of this job"


@dataclass(frozen=True, slots=True)
class RecordedStarts:
    """When and where a log started the jobs of a workload, by job number.

    Attributes
    ----------
    starts : seconds; NaN where the log has no start.
    places : job → ordinals of the targets on which it ran, for jobs whose nodes the machine has.
    missing_nodes : name of a node that the machine does not have → number of jobs that ran on it.
    early : number of jobs that the log starts before their submission.
    """

    starts: Floats
    places: Mapping[int, Integers]
    missing_nodes: Mapping[str, int] = field(default_factory=dict)
    early: int = 0

    @property
    def unstarted(self) -> list[int]:
        """The jobs that the log does not start."""
        return np.flatnonzero(np.isnan(self.starts)).tolist()


def recorded_starts(jobs: Sequence[Job], index: Index) -> RecordedStarts:
    """Return when and where the log started each job.

    Raises
    ------
    ConfigError
        If there are jobs and the log has no start of any of them.
    """
    starts = np.array([np.nan if job.wait is None else job.submit + job.wait for job in jobs], dtype=float)
    if len(jobs) and np.isnan(starts).all():
        raise ConfigError(
            "the workload has no recorded starts, so its schedule cannot be played",
            where="queue policy 'recorded'",
            expected="a log with start times (SWF field 3, Start of sacct, t_run of flux jobs), "
            "or another queue policy",
        )
    places: dict[int, Integers] = {}
    missing: Counter[str] = Counter()
    known: dict[str, tuple[Integers, tuple[str, ...]]] = {}
    for at, job in enumerate(jobs):
        if job.nodelist is None:
            continue
        if job.nodelist not in known:
            known[job.nodelist] = _targets(job.nodelist, index)
        targets, lacking = known[job.nodelist]
        missing.update(lacking)
        if not lacking:
            places[at] = targets
    early = sum(job.wait is not None and job.wait < 0 for job in jobs)
    return RecordedStarts(starts, places, dict(missing), early)


def _targets(nodelist: str, index: Index) -> tuple[Integers, tuple[str, ...]]:
    """Return the targets of a list of hosts, and the hosts that the machine does not have.

    A list of plain numbers names ranks, as programs write that number the nodes, unless the hosts of the
    machine are numbers.  A text that is not a list of hosts is one host that the machine does not have.
    """
    from simsched.formats.machines.slurm.notation import node_names

    of_host = index.ordinal_of_host
    try:
        hosts = node_names(nodelist)
        if _RANKS.fullmatch(nodelist) and of_host.keys().isdisjoint(hosts):
            hosts = [str(rank) for rank in Idset.parse(",".join(nodelist.split()))]
            of_host = {str(rank): [ordinal] for rank, ordinal in index.ordinal_of_rank.items()}
    except SimschedError:
        hosts = [nodelist]
    found = sorted({target for host in hosts for target in of_host.get(host, ())})
    return np.array(found, dtype=np.int64), tuple(sorted({host for host in hosts if host not in of_host}))
