"""The parts of heterogeneous jobs of a log, put together: Slurm writes one record per part."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from simsched.formats.jobspec.heterogeneous import joined
from simsched.formats.jobspec.jobspec import Jobspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.workload.log_record import LogRecord

#: The reason with which the records of further parts are counted.
JOINED = "a part of a heterogeneous job, joined with its first part"


def part_of(text: str) -> tuple[str, int] | None:
    """Return (id of the job, number of the part) of Slurm's ``JobID`` of a part, or None.

    >>> part_of("123+1"), part_of("123"), part_of("123_4")
    (('123', 1), None, None)
    """
    leader, plus, number = text.partition("+")
    return (leader, int(number)) if plus and leader.isdigit() and number.isdigit() else None


def joined_row(
    leader: str, parts: Sequence[LogRecord], requests: dict[tuple[Any, ...], Jobspec]
) -> LogRecord:
    """Return the record of a whole job; `requests` remembers the joined requests.

    It lasts until its last part has ended, and its limit is the longest.  Counts and energy are sums, and
    the first part that did not end well gives its state.
    """
    first = parts[0]
    id_ = int(leader) if len(leader) < 19 else leader
    if len(parts) == 1:
        return first._replace(id=id_)
    key = tuple((id(part.jobspec), part.queue) for part in parts)
    if key not in requests:
        specs = [part.jobspec for part in parts if isinstance(part.jobspec, Jobspec)]
        requests[key] = joined(specs, [part.queue for part in parts])
    starts = [part.start for part in parts if part.start is not None]
    start = min(starts, default=None)
    ends = [(part.start if part.start is not None else start or 0) + (part.runtime or 0) for part in parts]
    limits = [part.duration for part in parts]
    procs = _sum([part.procs for part in parts])
    hosts = [part.nodelist for part in parts if part.nodelist]
    bad = (part.status for part in parts if part.status != "COMPLETED")
    return first._replace(
        id=id_,
        jobspec=requests[key],
        start=start,
        runtime=max(ends) - (start or 0) if first.runtime is not None else None,
        duration=None if None in limits else max(limit for limit in limits if limit is not None),
        procs=procs,
        nodes=_sum([part.nodes for part in parts]),
        memory=_mean_memory(parts, procs),
        energy=_sum([part.energy for part in parts]),
        nodelist=",".join(hosts) if len(hosts) == len(parts) else None,
        status=next(bad, first.status),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _mean_memory(parts: Sequence[LogRecord], procs: int | None) -> int | None:
    """Return the memory per processor over all parts."""
    total = _sum([None if part.memory is None else part.memory * (part.procs or 0) for part in parts])
    return total // procs if total is not None and procs else None


def join_rows(rows: list[LogRecord], groups: dict[str, list[tuple[int, int]]]) -> tuple[list[LogRecord], int]:
    """Return the rows with the parts of each job put together at the place of its first part.

    `groups` is leader → (number of the part, its place in the rows).  Also returns the number of rows that
    were joined to another.
    """
    requests: dict[tuple[Any, ...], Jobspec] = {}
    made: dict[int, LogRecord] = {}
    gone: set[int] = set()
    for leader, members in groups.items():
        members.sort()
        distinct = [members[0], *(b for a, b in pairwise(members) if a[0] != b[0])]
        places = [place for _, place in distinct]
        made[places[0]] = joined_row(leader, [rows[place] for place in places], requests)
        gone.update(places[1:])
    kept = [made.get(place, row) for place, row in enumerate(rows) if place not in gone]
    return kept, len(gone)
