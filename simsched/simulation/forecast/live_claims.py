"""Claims of the running jobs of a queue snapshot, and their counts where counts alone decide."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import SimschedError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.count import Count
from simsched.match.claims_from_r import ClaimsFromR
from simsched.match.requests.compile import compile_request
from simsched.match.state.selection import changed
from simsched.simulation.jobs.sizes import plain_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Content
    from simsched.match.state.selection import Draw, Selection
    from simsched.schedule.job_table import JobTable
    from simsched.workload.queue_snapshot.snapshot import RunningJob


def held_by(running: Sequence[RunningJob], index: Index, *, whole: bool = False) -> list[Selection]:
    """Return the resources that each running job holds.

    Jobs whose R is known come first, then jobs on whole nodes, then jobs on parts of nodes, those on
    the fewest nodes first.  Jobs that clean up come last and get the rest.  `whole` is whether jobs get
    whole targets.  Errors as `forecast_live`, with the job's place.
    """
    grants = ClaimsFromR(index)
    found: dict[int, Selection] = {}
    for at in sorted(range(len(running)), key=lambda at: _rank(running[at], grants)):
        with _at_place_of(running[at]):
            found[at] = _held(running[at], grants, index, whole=whole)
    return [found[at] for at in range(len(running))]


@contextmanager
def _at_place_of(job: RunningJob) -> Iterator[None]:
    """Give errors the place of a job in the snapshot."""
    try:
        yield
    except SimschedError as error:
        raise error.at(f"{job.where} (job {job.job.id})") from None


def _rank(job: RunningJob, grants: ClaimsFromR) -> tuple[bool, bool, int]:
    """Return the sort key of `held_by`: whether it cleans up, whether R is unknown, the nodes in doubt."""
    if isinstance(job.holds, ResourceSet):
        return job.cleaning, False, 0
    with _at_place_of(job):
        targets = grants.targets_of(job.holds.ranks, job.holds.hosts)
    whole = job.holds.cores in (None, grants.cores_on(targets))
    return job.cleaning, True, 0 if whole else len(targets)


def _held(job: RunningJob, grants: ClaimsFromR, index: Index, *, whole: bool) -> Selection:
    """Return the claim of one job: after its R, whole nodes, or a number of cores on some nodes."""
    name = str(job.job.id)
    if isinstance(job.holds, ResourceSet):
        request = compile_request(job.job.jobspec, index, alone=whole) if job.has_request else None
        return grants.exact(name, job.holds, request, rest=job.cleaning)
    targets = grants.targets_of(job.holds.ranks, job.holds.hosts)
    there, cores = grants.cores_on(targets), job.holds.cores
    if cores is None or cores == there:
        return grants.whole(name, targets, rest=job.cleaning)
    if cores > there:
        raise WorkloadError(f"holds {cores} cores on nodes that have {there}")
    return grants.some(name, targets, cores, job.holds.more, rest=job.cleaning)


# --- requests that are not known ----------------------------------------------------------------


def common_request(jobspecs: Sequence[Jobspec], index: Index, *, whole: bool) -> Jobspec | None:
    """Return one of the jobspecs if all request numbers of the same: units, targets, copies of a slot.

    `whole` is whether jobs get whole targets.
    """
    kinds: dict[object, Jobspec] = {}
    for jobspec in {id(jobspec): jobspec for jobspec in jobspecs}.values():
        try:
            request = compile_request(jobspec, index)
        except SimschedError:  # it can never run, which is reported later
            continue
        units = plain_units(request, whole=whole)
        kinds[units[0] if units else request.plain] = jobspec
    return next(iter(kinds.values())) if len(kinds) == 1 and None not in kinds else None


def guessed_request(selection: Selection, index: Index, common: Jobspec | None) -> Jobspec:
    """Return a request for the resources that a job holds, for a job whose own request is not known.

    It is as large as the share of the `common` request that the job's end frees, so that counts can
    decide.  The job would request it again if it were interrupted.
    """
    counts, targets = selection.counts, max(len(selection.targets), 1)
    if common is not None:
        request = compile_request(common, index)
        units = plain_units(request)
        if units is not None:
            type_, number = units[0], targets if units[0] == index.target_type else counts.get(units[0], 0)
            if number:
                return Jobspec.from_shape(f"slot={number}/{type_}")
        elif request.plain is not None and (number := copies_of(selection, request.plain)):
            return replace(common, resources=(replace(common.resources[0], count=Count.fixed(number)),))
    plain = {type_: units for type_, units in counts.items() if type_ in ("core", "gpu")}
    if not plain:
        return Jobspec.from_shape(f"slot={targets}/{index.target_type}")
    if all(units % targets == 0 for units in plain.values()):
        each = ";".join(f"{type_}={units // targets}" for type_, units in plain.items())
        return Jobspec.from_shape(f"slot={targets}/[{each}]")
    type_, number = next(iter(plain.items()))
    return Jobspec.from_shape(f"slot={number}/{type_}")


# --- counts ---------------------------------------------------------------------------------------


def as_counted(held: Mapping[int, Selection], table: JobTable, index: Index, *, alone: bool) -> bool:
    """Whether counts alone can decide: each job releases exactly the counted units that it holds.

    `held` is job number → its resources; `alone` promises that jobs have their targets for themselves.
    """
    users = np.zeros(len(index), dtype=np.int64)
    for number, selection in held.items():
        asked, units = table.units[number], units_of(selection, table, index)
        if asked != units or not index.up[selection.targets].all() or (table.content and not units):
            return False
        users[selection.targets] += 1
    return not (alone or table.single == index.target_type) or bool((users <= 1).all())


def units_of(selection: Selection, table: JobTable, index: Index) -> int:
    """Return how many units of the one type that counts go by a selection holds."""
    if table.content is not None:
        return copies_of(selection, table.content)
    if table.single == index.target_type:
        return len(selection.targets)
    return selection.counts.get(table.single or "", 0)


def copies_of(selection: Selection, content: Content) -> int:
    """Return how many copies of a slot of plain units a selection is; 0 if it is none."""
    each = dict(content.flat or ())
    if {draw.type for draw in selection.held} != each.keys() or selection.shared:
        return 0
    rows = []
    for draw in selection.held:
        order = np.argsort(draw.pools)
        units = np.broadcast_to(draw.units, len(draw.pools))[order]
        if (units % each[draw.type]).any():
            return 0
        rows.append((draw.pools[order], units // each[draw.type]))
    banks, copies = rows[0]
    same = all(np.array_equal(banks, b) and np.array_equal(copies, c) for b, c in rows[1:])
    return int(copies.sum()) if same else 0


# --- units that are down ----------------------------------------------------------------------------


def usable(selection: Selection, index: Index) -> Selection:
    """Return a selection without units that are down on nodes that are up: no job can reuse them."""

    def sound(draws: tuple[Draw, ...]) -> bool:
        return all(index.pool_types[draw.type].sound[draw.pools].all() for draw in draws)

    if sound(selection.held) and sound(selection.shared):
        return selection
    held = tuple(chain.from_iterable(_sound(draw, index) for draw in selection.held))
    shared = tuple(chain.from_iterable(_sound(draw, index) for draw in selection.shared))
    return changed(selection, held=held, named=held, shared=shared)


def _sound(draw: Draw, index: Index) -> Iterator[Draw]:
    row = index.pool_types[draw.type].sound[draw.pools]
    if row.any():
        units = np.broadcast_to(draw.units, len(draw.pools))[row]
        masks = None if draw.masks is None else [draw.masks[at] for at in np.flatnonzero(row).tolist()]
        yield changed(draw, pools=draw.pools[row], units=units, amount=int(units.sum()), masks=masks)
