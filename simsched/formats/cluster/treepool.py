"""TreePool topology in R (RFC 49): the place of each id of R_lite within its rank.

``scheduling`` is ``{"writer": "TreePool", "children": [{"ranks": idset, "topo": {…}}, …]}``.
A topo holds resources (``cores``, ``gpus``, ``memory`` in GiB, ``storage``) and localities:
any other key is the name of a domain type (``socket``, ``numa`` …) and holds a list of topos.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.diagnostics import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

WRITER = "TreePool"
MEMORY_UNIT = "GiB"
MAX_LEVELS = 16
"""Levels of localities within one rank."""


@dataclass(frozen=True, slots=True)
class Storage:
    """One storage device of a domain: its mount point and its capacity."""

    path: str
    capacity: int
    unit: str


@dataclass(frozen=True, slots=True)
class Domain:
    """A locality domain: its own resources, and the domains within it, by type in order."""

    cores: Idset | None = None
    gpus: Idset | None = None
    memory: int | None = None
    storage: tuple[Storage, ...] = ()
    children: tuple[tuple[str, tuple[Domain, ...]], ...] = ()

    def walk(self) -> Iterator[Domain]:
        """Yield this domain and all within it."""
        yield self
        for _, domains in self.children:
            for domain in domains:
                yield from domain.walk()


@dataclass(frozen=True, slots=True)
class RankTopology:
    """Ranks with the same topology."""

    ranks: Idset
    topo: Domain


@dataclass(frozen=True, slots=True)
class TreePool:
    """The value of ``scheduling``; `extra` holds the keys that the RFC does not know."""

    children: tuple[RankTopology, ...]
    extra: tuple[tuple[str, Any], ...] = ()

    def trimmed(self, ranks: Idset) -> TreePool:
        """Return the topology of some ranks, as R of an allocation carries it (RFC 49).

        A topo stays as it is: it describes the whole node, not the part that is allocated.
        """
        kept = [(group.ranks & ranks, group.topo) for group in self.children]
        return TreePool(tuple(RankTopology(mine, topo) for mine, topo in kept if mine), self.extra)


def from_scheduling(scheduling: Mapping[str, Any], *, where: str | None = None) -> TreePool:
    """Read the value of R's ``scheduling``.

    Raises
    ------
    FormatError
        with the path of the value that breaks RFC 49.
    LimitError
        if localities are nested deeper than 16 levels.

    >>> pool = from_scheduling({"writer": "TreePool", "children": [
    ...     {"ranks": "0-1", "topo": {"socket": [{"cores": "0-3"}, {"cores": "4-7"}]}}]})
    >>> [str(domain.cores) for domain in pool.children[0].topo.walk() if domain.cores]
    ['0-3', '4-7']
    """
    rows = typed(scheduling.get("children"), list, _join(where, "children"))
    groups = []
    seen = Idset.parse("")
    for number, row in enumerate(rows):
        place = _join(where, f"children[{number}]")
        entry = typed(row, dict, place)
        ranks = _ids(entry.get("ranks"), f"{place}.ranks")
        if not ranks:
            raise FormatError("there are no ranks", where=f"{place}.ranks", expected="an idset of ranks")
        twice = seen & ranks
        if twice:
            raise FormatError(f"ranks {twice} are described twice", where=f"{place}.ranks")
        seen |= ranks
        groups.append(RankTopology(ranks, _domain(entry.get("topo"), f"{place}.topo", 0)))
    extra = tuple((key, value) for key, value in scheduling.items() if key not in ("writer", "children"))
    return TreePool(tuple(groups), extra)


def _domain(value: Any, where: str, level: int) -> Domain:
    if level > MAX_LEVELS:
        raise LimitError(
            "localities are nested too deeply", where=where, expected=f"at most {MAX_LEVELS} levels"
        )
    topo = typed(value, dict, where)
    children = []
    for key, inner in topo.items():
        if key in _RESOURCES:
            continue
        rows = typed(inner, list, f"{where}.{key}")
        children.append(
            (key, tuple(_domain(row, f"{where}.{key}[{n}]", level + 1) for n, row in enumerate(rows)))
        )
    found = {key: read(topo[key], f"{where}.{key}") for key, read in _RESOURCES.items() if key in topo}
    return Domain(**found, children=tuple(children))


def _storage(value: Any, where: str) -> tuple[Storage, ...]:
    found = []
    for number, row in enumerate(typed(value, list, where)):
        place = f"{where}[{number}]"
        entry = typed(row, dict, place)
        unknown = sorted(set(entry) - {"path", "capacity", "unit"})
        if unknown:
            raise FormatError(f"unknown key {unknown[0]!r}", where=place, expected="path, capacity, unit")
        path = typed(entry.get("path", ""), str, f"{place}.path")
        unit = typed(entry.get("unit", MEMORY_UNIT), str, f"{place}.unit")
        found.append(Storage(path, _amount(entry.get("capacity"), f"{place}.capacity"), unit))
    return tuple(found)


def _ids(value: Any, where: str) -> Idset:
    return Idset.parse(typed(value, str, where), where=where)


def _amount(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FormatError(f"found {value!r}"[:80], where=where, expected="an integer of at least 0")
    return value


_RESOURCES: dict[str, Callable[[Any, str], Any]] = {
    "cores": _ids, "gpus": _ids, "memory": _amount, "storage": _storage,
}  # fmt: skip


def _join(where: str | None, place: str) -> str:
    return f"{where}.{place}" if where else place


def to_scheduling(pool: TreePool) -> dict[str, Any]:
    """Return the value of R's ``scheduling``; `from_scheduling` of it gives `pool` again."""
    children = [{"ranks": str(group.ranks), "topo": _topo(group.topo)} for group in pool.children]
    return {"writer": WRITER, "children": children, **dict(pool.extra)}


def _topo(domain: Domain) -> dict[str, Any]:
    ids = {"cores": domain.cores, "gpus": domain.gpus}
    found: dict[str, Any] = {key: str(value) for key, value in ids.items() if value is not None}
    if domain.memory is not None:
        found["memory"] = domain.memory
    if domain.storage:
        found["storage"] = [{"path": s.path, "capacity": s.capacity, "unit": s.unit} for s in domain.storage]
    for kind, domains in domain.children:
        found[kind] = [_topo(inner) for inner in domains]
    return found
