"""R (RFC 20) → selection: the claims of running jobs on a compiled cluster; the inverse of `emit`.

R names units rank by rank, but no vertices.  A job may claim more than R names, such as an exclusive
node of which it counts four cores.  The request shows that: every vertex that it claims exclusively and
that R touches is claimed with everything below it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ClusterError, WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.graph.index.types import ABOVE, BELOW, TARGET
from simsched.match.emit import ids_of, path_of
from simsched.match.named_targets import agreed_targets, targets_of_ranks
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import POOL, VERTEX
from simsched.match.state.availability import Availability
from simsched.match.state.masks import listed, lowest_bits
from simsched.match.state.selection import Draw, Hold, Selection, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.arrays import Integers
    from simsched.formats.cluster.rset import ResourceSet
    from simsched.formats.rfc.hostlist import Hostlist
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.match.requests.request import Request


@dataclass(slots=True)
class _Draft:
    """A selection under construction: pool type → leaf pool → mask of units (their number without ids)."""

    targets: list[int]
    units: dict[str, dict[int, int]] = field(default_factory=dict)
    holds: list[Hold] = field(default_factory=list)
    unlisted: list[int] = field(default_factory=list)

    def add(self, pool: PoolType, leaf: int, units: int) -> None:
        pools = self.units.setdefault(pool.name, {})
        before = pools.get(leaf, 0)
        pools[leaf] = before | units if pool.named else max(before, units)


class ClaimsFromR:
    """The claims of running jobs on a cluster, added job by job; no unit is claimed twice.

    Attributes
    ----------
    left : the state of the cluster beside the claims.  Status is ignored: a job may run on a node that
        is drained.

    `known` are claims that exist already, by the name of the job.
    """

    def __init__(self, index: Index, known: Mapping[str, Selection] | None = None) -> None:
        self._index = index
        self.left = Availability(index, ignore_status=True)
        self._given: list[tuple[str, Selection]] = list((known or {}).items())
        for _, selection in self._given:
            self.left.claim(selection)
        self._nameless = compile_request(Jobspec.from_shape(f"slot=1/{index.target_type}"), index)

    # --- the three ways in which a job's allocation is known -------------------------------------

    def exact(
        self, name: str, granted: ResourceSet, request: Request | None = None, *, rest: bool = False
    ) -> Selection:
        """Claim exactly what R names, and return it.

        `request` is the job's request, if it is known.  With `rest` the job gets the units of its R
        that no other job has: a job that cleans up may have released part of them already.

        Raises
        ------
        ConfigError
            If the cluster lacks a rank that R names.
        ClusterError
            If the cluster lacks a unit that R names, or has another host at a rank.
        WorkloadError
            If another job has one of the units.
        """
        targets = targets_of_ranks(self._index, granted.ranks)
        self._refuse_other_hosts(granted, targets)
        draft = _Draft(targets)
        for group in granted.groups:
            here = targets_of_ranks(self._index, group.ranks)
            for type_, ids in group.children.items():
                self._name_units(draft, type_, ids, here)
        self._name_loose(draft, granted.scheduling)
        return self._claim(name, draft, request, rest=rest)

    def whole(self, name: str, targets: Sequence[int], *, rest: bool = False) -> Selection:
        """Claim execution targets with everything on them; errors as `exact`."""
        draft = _Draft(list(targets))
        self._hold_all(draft, self._index.target_type, np.array(targets, dtype=np.int64))
        return self._claim(name, draft, None, rest=rest)

    def some(
        self,
        name: str,
        targets: Sequence[int],
        cores: int,
        more: Mapping[str, int] | None = None,
        *,
        rest: bool = False,
    ) -> Selection:
        """Claim `cores` cores of some targets, spread as evenly as the claims of other jobs allow.

        more : type → number of other units, such as gpus, spread likewise; those that are not left, or
            that the cluster does not count in pools, are not claimed.

        Raises
        ------
        WorkloadError
            If they do not fit beside the claims of other jobs.
        ClusterError
            If the cluster's cores are not units of a pool.
        """
        pool = self._index.pool_types.get("core")
        if pool is None:
            raise ClusterError("the cores of this cluster are not units of a pool", expected="the job's R")
        draft = _Draft(list(targets))
        if self._spread(draft, pool, cores) and not rest:
            hosts = encode_hosts([self._index.hosts[target] for target in targets])
            raise WorkloadError(
                f"{cores} cores do not fit on {hosts} beside the other jobs", expected="the job's R"
            )
        for type_, number in (more or {}).items():
            other = self._index.pool_types.get(type_)
            if other is not None:
                self._spread(draft, other, number)
        return self._claim(name, draft, None, rest=rest)

    def _spread(self, draft: _Draft, pool: PoolType, units: int) -> int:
        """Take units of a pool type on the targets, the fullest first; return how many are missing."""
        free = {target: self._free(pool, target) for target in draft.targets}
        counts = {target: sum(self._units(pool, at) for at in free[target].values()) for target in free}
        left, waiting = units, len(free)
        for target in sorted(free, key=lambda target: counts[target]):
            number = left // waiting
            for leaf, unused in free[target].items():
                taken = min(number, self._units(pool, unused))
                if taken:
                    draft.add(pool, leaf, lowest_bits(unused, taken) if pool.named else taken)
                number, left = number - taken, left - taken
            waiting -= 1
        return left

    @staticmethod
    def _units(pool: PoolType, unused: int) -> int:
        """Return how many units a mask, or the number of a pool without ids, stands for."""
        return unused.bit_count() if pool.named else unused

    def release(self, name: str, targets: Sequence[int]) -> bool:
        """Release a job's claims on some targets; return whether it has others."""
        kept = []
        for other, selection in self._given:
            if other != name:
                kept.append((other, selection))
                continue
            parts = split(selection, np.array(targets, dtype=np.int64), self._index)
            self.left.release(parts.given)
            if parts.kept is not None:
                kept.append((name, parts.kept))
        self._given = kept
        return any(other == name for other, _ in kept)

    def by_name(self) -> dict[str, Selection]:
        """Return the claims by the name of the job."""
        return dict(self._given)

    def cores_on(self, targets: Iterable[int]) -> int:
        """Return how many cores some targets have, free or claimed."""
        pool = self._index.pool_types.get("core")
        if pool is None:
            vertices = self._index.vertex_types.get("core")
            return 0 if vertices is None else int(np.isin(vertices.target, list(targets)).sum())
        return sum(int(pool.size[leaf]) for target in targets for leaf in self._pools(pool, target))

    def targets_of(self, ranks: Idset | None, hosts: Hostlist | None) -> list[int]:
        """Return the targets of ranks, of hosts, or of both; see `named_targets.agreed_targets`."""
        return agreed_targets(self._index, ranks, hosts)

    # --- from names to units --------------------------------------------------------

    def _refuse_other_hosts(self, granted: ResourceSet, targets: list[int]) -> None:
        for rank, host, target in zip(granted.ranks, granted.hosts, targets, strict=False):
            mine = self._index.hosts[target]
            if mine != host:
                raise ClusterError(f"rank {rank} is {host!r} in R and {mine!r} in the cluster")

    def _pools(self, pool: PoolType, target: int) -> Sequence[int]:
        if pool.aligned:
            return (target,) if pool.size[target] else ()
        low, high = self._index.interval(self._index.target_type, pool.name)
        return range(int(low[target]), int(high[target]))

    def _free(self, pool: PoolType, target: int) -> dict[int, int]:
        leaves = self._pools(pool, target)
        if not pool.named:
            return {leaf: int(self.left.free[pool.name][leaf]) for leaf in leaves}
        return {leaf: self.left.free_mask(pool, leaf) for leaf in leaves}

    def _name_units(self, draft: _Draft, type_: str, ids: Idset, targets: list[int]) -> None:
        """Take the units of one type that R names on each of some targets."""
        pool = self._index.pool_types.get(type_)
        if pool is None:
            self._name_vertices(draft, type_, ids, targets)
            return
        for target in targets:
            wanted = ids
            pools = self._pools(pool, target)
            if pool.named and len(pools) > 1:  # ids may repeat from socket to socket: free ones first
                for leaf in pools:
                    free = _mask(pool, leaf, wanted) & self.left.free_mask(pool, leaf)
                    some = ids_of(pool, leaf, free) if free else Idset()
                    wanted = self._name_some(draft, pool, leaf, some, wanted)
            for leaf in pools:
                wanted = self._name_some(draft, pool, leaf, wanted & pool.ids[leaf], wanted)
            if wanted and not pool.named and pools:  # counted, not named
                draft.add(pool, pools[0], len(wanted))
            elif wanted:
                raise self._lack(type_, wanted.first, target)

    def _name_some(self, draft: _Draft, pool: PoolType, leaf: int, some: Idset, wanted: Idset) -> Idset:
        if some:
            draft.add(pool, leaf, _mask(pool, leaf, some))
        return wanted - some

    def _name_vertices(self, draft: _Draft, type_: str, ids: Idset, targets: list[int]) -> None:
        """Claim the vertices of one type that R names on some targets (cores that contain threads)."""
        vertices = self._index.vertex_types.get(type_)
        if vertices is None or vertices.level != BELOW:
            raise self._lack(type_, None, targets[0])
        low, high = self._index.interval(self._index.target_type, type_)
        chosen: list[int] = []
        for target in targets:
            here = range(int(low[target]), int(high[target]))
            found = [vertex for vertex in here if int(vertices.ids[vertex]) in ids]
            missing = ids - Idset.from_ids(int(vertices.ids[vertex]) for vertex in found)
            if missing:
                raise self._lack(type_, missing.first, target)
            chosen += found
        self._hold_all(draft, type_, np.array(chosen, dtype=np.int64))

    def _lack(self, type_: str, unit: int | None, target: int) -> ClusterError:
        name = type_ if unit is None else f"{type_} {unit}"
        return ClusterError(f"rank {self._index.ranks[target]} ({self._index.hosts[target]}) has no {name}")

    def _name_loose(self, draft: _Draft, scheduling: Mapping[str, Any] | None) -> None:
        """Take the units that our own R lists under ``scheduling.pools``: ids, or a number, by path."""
        if not scheduling or scheduling.get("writer") not in ("simsched", "TreePool"):
            return
        pools = scheduling.get("pools")
        for path, listed_units in pools.items() if isinstance(pools, dict) else ():
            place = self._loose_pools().get(path)
            if place is None:
                raise ClusterError(f"the cluster has no pool {path!r}")
            pool, leaf = self._index.pool_types[place[0]], place[1]
            if pool.named and isinstance(listed_units, str):
                ids = Idset.parse(listed_units)
                if not ids <= pool.ids[leaf]:
                    raise ClusterError(f"{path} has no unit {(ids - pool.ids[leaf]).first}")
                draft.add(pool, leaf, _mask(pool, leaf, ids))
            elif not pool.named and isinstance(listed_units, int) and 0 < listed_units <= pool.size[leaf]:
                draft.add(pool, leaf, listed_units)
            else:
                raise ClusterError(f"{path} has {int(pool.size[leaf])} units, not {listed_units!r}")

    def _loose_pools(self) -> dict[str, tuple[str, int]]:
        """Return path → (pool type, leaf pool) of the pools that R_lite cannot name."""
        found: dict[str, tuple[str, int]] | None = self._index.memo.get("loose pools")
        if found is None:
            found = self._index.memo["loose pools"] = {
                path_of(self._index, keys[0]): (name, leaf)
                for name, pool in self._index.pool_types.items()
                for leaf, keys in enumerate(pool.keys)
                if keys and (pool.target[leaf] < 0 or not pool.named)
            }
        return found

    # --- claims beyond the units that R names ---------------------------------------------------

    def _hold_all(self, draft: _Draft, kind: str, ordinals: Integers) -> None:
        """Claim some vertices exclusively, with everything below them."""
        index = self._index
        draft.holds.append(Hold(kind, ordinals, exclusive=True))
        for name, vertices in index.vertex_types.items():
            inside = _within(index, kind, name, ordinals)
            if len(inside):
                draft.holds.append(Hold(name, inside, exclusive=True))
                if vertices.level == TARGET:
                    draft.unlisted += inside.tolist()
        for name, pool in index.pool_types.items():
            for leaf in _within(index, kind, name, ordinals).tolist():
                if pool.size[leaf]:
                    draft.add(pool, leaf, pool.full[leaf] if pool.named else int(pool.size[leaf]))

    def _hold_claimed(self, draft: _Draft, request: Request) -> None:
        """Claim the vertices that the request claims and that R touches."""
        kinds: dict[str, bool] = {}
        for need in request.walk():
            if need.kind == VERTEX:
                kinds[need.type] = kinds.get(need.type, False) or need.exclusive
        for kind, exclusive in kinds.items():
            ordinals = self._touched(draft, kind)
            if exclusive and len(ordinals):
                self._hold_all(draft, kind, ordinals)
            elif len(ordinals):
                draft.holds.append(Hold(kind, ordinals, exclusive=False))

    def _touched(self, draft: _Draft, kind: str) -> Integers:
        """Return the vertices of a type in which R names something."""
        index = self._index
        vertices = index.vertex_types[kind]
        if vertices.level == TARGET:
            return np.array(sorted(draft.targets), dtype=np.int64)
        if vertices.level == ABOVE:
            mine = np.zeros(len(index), dtype=np.int64)
            mine[draft.targets] = 1
            inside = index.beneath(kind, index.target_type)
            return np.flatnonzero(inside.sum(mine if inside.ordinals is None else mine[inside.ordinals]))
        low, high = index.interval(index.target_type, kind)
        touched = [
            vertex
            for target in sorted(draft.targets)
            for vertex in range(int(low[target]), int(high[target]))
            if any(
                not pools.keys().isdisjoint(index.members(kind, vertex, name).tolist())
                for name, pools in draft.units.items()
            )
        ]
        return np.array(touched, dtype=np.int64)

    # --- from the draft to a claim ------------------------------------------------------------------

    def _claim(self, name: str, draft: _Draft, request: Request | None, *, rest: bool) -> Selection:
        shared: frozenset[str] = frozenset()
        if request is not None:
            shared = _shared_types(request)
            self._hold_claimed(draft, request)
        held: list[Draw] = []
        together: list[Draw] = []
        for type_, pools in draft.units.items():
            pool = self._index.pool_types[type_]
            kept = self._kept(pool, pools, shared=type_ in shared, rest=rest)
            if kept:
                (together if type_ in shared else held).append(_draw(pool, kept))
        named = tuple(held)
        targets = np.array(sorted({*draft.targets, *draft.unlisted}), dtype=np.int64)
        unlisted = np.array(sorted(set(draft.unlisted) - set(draft.targets)), dtype=np.int64)
        selection = Selection(
            request=request or self._nameless,
            targets=targets,
            held=named,
            named=named,
            holds=tuple(draft.holds),
            shared=tuple(together),
            slots=0,
            unlisted=unlisted if len(unlisted) else None,
        )
        self.left.claim(selection)
        self._given.append((name, selection))
        return selection

    def _kept(self, pool: PoolType, pools: dict[int, int], *, shared: bool, rest: bool) -> dict[int, int]:
        """Return the units that the job gets, pool by pool: all of them, or an error unless `rest`."""
        kept = {}
        for leaf, units in sorted(pools.items()):
            if pool.named:
                free = self.left.free_mask(pool, leaf)
                free |= self._shared_mask(pool, leaf) if shared else 0
                taken, over = units & free, units & ~free
            else:
                taken = min(units, int(self.left.free[pool.name][leaf]))
                over = units - taken
            if over and not rest:
                raise self._claimed_twice(pool, leaf, over)
            if taken:
                kept[leaf] = taken
        return kept

    def _shared_mask(self, pool: PoolType, leaf: int) -> int:
        sharers = self.left.sharers
        return sum(1 << unit for kind, at, unit in sharers if kind == pool.name and at == leaf)

    def _claimed_twice(self, pool: PoolType, leaf: int, over: int) -> WorkloadError:
        target = int(pool.target[leaf])
        unit = f" {pool.ids[leaf][(over & -over).bit_length() - 1]}" if pool.named else ""
        where = f" of {self._index.hosts[target]} (rank {self._index.ranks[target]})" if target >= 0 else ""
        holders = (
            name
            for name, selection in self._given
            for draw in (*selection.held, *selection.shared)
            if draw.type == pool.name
            for at in np.flatnonzero(draw.pools == leaf).tolist()
            if draw.masks is None or listed(draw.masks)[at] & over & -over
        )
        return WorkloadError(f"{pool.name}{unit}{where} is already claimed by job {next(holders)}")


def _shared_types(request: Request) -> frozenset[str]:
    """Return the pool types whose units a request claims shared only, outside exclusive vertices."""
    if request.alone:
        return frozenset()
    found: dict[str, bool] = {}

    def look(needs: Iterable[Any], *, covered: bool) -> None:
        for need in needs:
            inside = covered or (need.kind == VERTEX and need.exclusive)
            if need.kind == POOL:
                found[need.type] = found.get(need.type, True) and not (need.exclusive or covered)
            look(need.children, covered=inside)

    look(request.needs, covered=False)
    return frozenset(type_ for type_, shared in found.items() if shared)


def _within(index: Index, kind: str, name: str, ordinals: Integers) -> Integers:
    """Return the vertices or leaf pools of a type below some vertices, each once."""
    pool = index.pool_types.get(name)
    if pool is not None and pool.aligned and kind == index.target_type:
        return ordinals
    if name not in index.types_beneath(kind):
        return np.empty(0, dtype=np.int64)
    found = index.beneath(kind, name, ordinals).ordinals
    assert found is not None
    return np.unique(found)


def _draw(pool: PoolType, pools: Mapping[int, int]) -> Draw:
    if pool.named:
        return Draw.of_masks(pool.name, pools)
    counts = np.array(list(pools.values()), dtype=np.int64)
    return Draw(pool.name, np.array(list(pools), dtype=np.int64), counts, int(counts.sum()))


def _mask(pool: PoolType, leaf: int, ids: Idset) -> int:
    """Return units of a leaf pool as a mask over its unit ordinals; ids that it lacks do not count."""
    mine = pool.ids[leaf]
    some = ids & mine
    if not some:
        return 0
    if mine.last == len(mine) - 1:
        return some.to_mask()
    return sum(1 << mine.index(unit) for unit in some)
