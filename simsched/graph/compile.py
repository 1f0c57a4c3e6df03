"""Resource graph → preorder → vertex types and banks: what the index is made of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ClusterError, RequestError
from simsched.formats.idset import Idset
from simsched.formats.units import convert
from simsched.graph import resource_graph as rg
from simsched.graph.kinds import ABOVE, BELOW, MAX_NAMED_UNITS, TARGET, PoolType, VertexType
from simsched.graph.pool import UP
from simsched.graph.reach import Spans, dominated_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Containment in preorder: `keys[i]` ends its subtree before `end[i]`; `parent[0]` is -1."""

    keys: list[str]
    pools: list[Pool]
    parent: list[int]
    end: list[int]
    up: list[bool]
    sound: list[bool]
    target: list[int]
    targets: list[int]


def preorder(graph: ResourceGraph) -> Tree:
    """Return containment in preorder, and behind it the vertices that serve another subsystem only."""
    below = rg.children_map(graph)
    pools = dict(rg.pools(graph))
    is_target = set(rg.execution_targets(graph, below))
    tree = Tree([], [], [], [], [], [], [], [])
    keys, found, parents, up, targets_of, sound = (
        tree.keys,
        tree.pools,
        tree.parent,
        tree.up,
        tree.target,
        tree.sound,
    )
    stack: list[tuple[str, int]] = [(rg.containment_root(graph), -1)]
    while stack:
        key, parent = stack.pop()
        place = len(keys)
        pool = pools[key]
        is_up = pool.status == UP
        keys.append(key)
        found.append(pool)
        parents.append(parent)
        up.append(is_up and (parent < 0 or up[parent]))
        if key in is_target:
            targets_of.append(len(tree.targets))
            tree.targets.append(place)
            sound.append(True)
        else:
            targets_of.append(targets_of[parent] if parent >= 0 else -1)
            sound.append(is_up and (parent < 0 or sound[parent]))
        if key in below:
            stack.extend([(child, place) for child in reversed(below[key])])
    _add_uncontained(graph, tree)
    tree.end.extend(range(1, len(tree.keys) + 1))
    end = tree.end
    for place in range(len(keys) - 1, 0, -1):
        parent = parents[place]
        if parent >= 0 and end[place] > end[parent]:
            end[parent] = end[place]
    return tree


def _add_uncontained(graph: ResourceGraph, tree: Tree) -> None:
    """Put the vertices that serve another subsystem only behind the tree."""
    if len(tree.keys) == len(graph):
        return
    seen = set(tree.keys)
    for key, pool in rg.pools(graph):
        if key not in seen:
            tree.keys.append(key)
            tree.pools.append(pool)
            tree.parent.append(-1)
            tree.up.append(pool.is_up)
            tree.sound.append(pool.is_up)
            tree.target.append(-1)


def target_type_of(tree: Tree) -> str:
    """Return the one type of the execution targets.

    Raises
    ------
    ClusterError
        if they are of several types.
    """
    names = {tree.pools[i].type for i in tree.targets}
    if len(names) != 1:
        raise ClusterError(
            f"execution targets are of several types: {', '.join(sorted(names))}",
            expected="one type that carries ranks",
        )
    return names.pop()


def types_of(
    tree: Tree, target_type: str, dominators: set[str]
) -> tuple[dict[str, VertexType], dict[str, PoolType]]:
    """Return the arrays of every type; where any vertex contains or dominates others, a vertex type.

    Raises
    ------
    ClusterError
        if pools of one type are measured in different dimensions.
    """
    is_inner = {tree.pools[place].type for place in set(tree.parent) if place >= 0} | {target_type}
    if dominators:
        is_inner |= {pool.type for key, pool in zip(tree.keys, tree.pools, strict=True) if key in dominators}
    inner: dict[str, list[int]] = defaultdict(list)
    leaves: dict[str, list[int]] = defaultdict(list)
    for place, pool in enumerate(tree.pools):
        (inner if pool.type in is_inner else leaves)[pool.type].append(place)
    vertices = {name: _vertex_type(name, places, tree, target_type) for name, places in inner.items()}
    banks = {name: _pool_type(name, places, tree) for name, places in leaves.items()}
    return vertices, banks


def _vertex_type(name: str, places: list[int], tree: Tree, target_type: str) -> VertexType:
    target = np.array([tree.target[i] for i in places], dtype=np.int64)
    pools = [tree.pools[i] for i in places]
    level = TARGET if name == target_type else BELOW if (target >= 0).all() else ABOVE
    return VertexType(
        name=name,
        level=level,
        keys=tuple(tree.keys[i] for i in places),
        names=tuple(pool.name for pool in pools),
        pos=2 * np.array(places, dtype=np.int64),
        end=2 * np.array([tree.end[i] for i in places], dtype=np.int64),
        target=target,
        ids=np.array([-1 if pool.id is None else pool.id for pool in pools], dtype=np.int64),
        up=np.array([tree.up[i] for i in places], dtype=np.bool_),
        sound=np.array([tree.sound[i] for i in places], dtype=np.bool_),
    )


@dataclass(slots=True)
class _Bank:
    """A bank in the making: the leaves that fold into it, in preorder."""

    pos: int
    target: int
    up: bool
    sound: bool
    unit: str
    places: list[int]
    size: int = 0
    ids: Idset | None = None


def _pool_type(name: str, places: list[int], tree: Tree) -> PoolType:
    banks = list(_fold(places, tree))
    unit = _common_unit(name, banks)
    for bank in banks:
        _measure(bank, tree, unit)
    _number_within_targets(banks)
    aligned = _is_aligned(banks, len(tree.targets))
    if aligned:
        banks = _align(banks, tree.targets)
    size = np.array([bank.size for bank in banks], dtype=np.int64)
    up = np.array([bank.up for bank in banks], dtype=np.bool_)
    target = np.array([bank.target for bank in banks], dtype=np.int64)
    on = (target >= 0) & up
    per_target = np.zeros(len(tree.targets), dtype=np.int64)
    np.add.at(per_target, target[on], size[on])
    sizes = {bank.size for bank in banks}
    named = max(sizes, default=0) <= MAX_NAMED_UNITS
    return PoolType(
        name=name,
        unit=unit,
        aligned=aligned,
        named=named,
        pos=np.array([bank.pos for bank in banks], dtype=np.int64),
        size=size,
        target=target,
        up=up,
        sound=np.array([bank.sound for bank in banks], dtype=np.bool_),
        ids=tuple(bank.ids or Idset.from_ids(()) for bank in banks),
        keys=tuple(tuple(tree.keys[i] for i in bank.places) for bank in banks),
        per_target=per_target,
        total=int(size[up].sum()),
        uniform=sizes.pop() if len(sizes) == 1 else None,
        full=_full_masks(banks) if named else [],
        uniform_ids=banks[0].ids if len({bank.ids for bank in banks}) == 1 else None,
    )


def _full_masks(banks: list[_Bank]) -> list[int]:
    """Return the mask of all units of each bank; banks of one size share theirs."""
    known = {size: (1 << size) - 1 for size in {bank.size for bank in banks}}
    return [known[bank.size] for bank in banks]


def _fold(places: list[int], tree: Tree) -> Iterator[_Bank]:
    """Fold single-unit leaves of one parent, unit and status; larger pools stay banks of their own."""
    open_banks: dict[tuple[int, str, bool, bool], _Bank] = {}
    for place in places:
        pool = tree.pools[place]
        up, sound = tree.up[place], tree.sound[place]
        bank = _Bank(2 * place, tree.target[place], up, sound, pool.unit, [place])
        parent = tree.parent[place]
        if pool.size == 1 and pool.ids is None and parent >= 0:
            first = open_banks.setdefault((parent, pool.unit, up, sound), bank)
            if first is not bank:
                first.places.append(place)
                continue
        yield bank


def _common_unit(name: str, banks: list[_Bank]) -> str:
    """Return the unit that all banks of a type are counted in: their own, or bytes if they differ."""
    units = {bank.unit for bank in banks}
    if len(units) == 1:
        return units.pop()
    if "" in units:
        raise ClusterError(
            f"some pools of type {name!r} have a unit and some have none", expected="one dimension"
        )
    base = "B"
    for unit in sorted(units):
        try:
            convert(1, unit, base)
        except RequestError as error:
            raise ClusterError(
                f"pools of type {name!r} have units of different dimensions: {error}"
            ) from None
    return base


def _measure(bank: _Bank, tree: Tree, unit: str) -> None:
    """Set size and unit ids of a bank, the leaves put in the order of their ids."""
    pool = tree.pools[bank.places[0]]
    if len(bank.places) == 1 and (pool.size != 1 or pool.ids is not None):
        factor = int(convert(1, bank.unit, unit)) if unit != bank.unit else 1
        bank.size = pool.size * factor
        if bank.size <= MAX_NAMED_UNITS:
            keep = pool.ids is not None and factor == 1
            bank.ids = pool.ids if keep else _first_ids(bank.size)
        return
    pools = [tree.pools[i] for i in bank.places]
    bank.size = len(pools)
    ids = [pool.id for pool in pools]
    if None in ids or len(set(ids)) != len(ids):
        bank.ids = _first_ids(bank.size)
        return
    numbered = sorted(zip((i for i in ids if i is not None), bank.places, strict=True))
    bank.places = [place for _, place in numbered]
    bank.ids = _interned_ids(tuple(i for i, _ in numbered))


@lru_cache(maxsize=1024)
def _first_ids(size: int) -> Idset:
    return Idset.from_range(0, size - 1) if size else Idset.from_ids(())


@lru_cache(maxsize=1024)
def _interned_ids(ids: tuple[int, ...]) -> Idset:
    return Idset.from_ids(ids)


def _number_within_targets(banks: list[_Bank]) -> None:
    """Number units anew on targets where two banks of the type use one id (socket-local ids)."""
    by_target: dict[int, list[_Bank]] = defaultdict(list)
    for bank in banks:
        if bank.ids is not None:
            by_target[bank.target].append(bank)
    for target, group in by_target.items():
        if target < 0 or len(group) == 1 or _disjoint([bank.ids for bank in group if bank.ids is not None]):
            continue
        start = 0
        for bank in group:
            bank.ids = Idset.from_range(start, start + bank.size - 1) if bank.size else bank.ids
            start += bank.size


def _disjoint(sets: list[Idset]) -> bool:
    ranges = sorted(r for ids in sets for r in ids.ranges)
    return all(before[1] < after[0] for before, after in pairwise(ranges))


def _is_aligned(banks: list[_Bank], targets: int) -> bool:
    on = [bank.target for bank in banks]
    return targets > 0 and -1 not in on and len(set(on)) == len(on)


def _align(banks: list[_Bank], targets: list[int]) -> list[_Bank]:
    """Put one bank on every target: an empty one, right behind the target, where there is none."""
    if len(banks) == len(targets):
        return banks
    by_target = {bank.target: bank for bank in banks}
    empty = Idset.from_ids(())
    unit = banks[0].unit
    return [
        by_target.get(ordinal)
        or _Bank(2 * place + 1, ordinal, up=True, sound=True, unit=unit, places=[], ids=empty)
        for ordinal, place in enumerate(targets)
    ]


def wide_spans(graph: ResourceGraph, tree: Tree, others: list[str]) -> dict[str, Spans]:
    """Return what vertices reach that dominate others outside containment."""
    if not others:
        return {}
    spans = zip(range(0, 2 * len(tree.keys), 2), (2 * end for end in tree.end), strict=True)
    return dominated_spans(graph, dict(zip(tree.keys, spans, strict=True)), others)
