"""Resource sets (R, RFC 20): execution targets and the resources of each.

Both generations are read: with and without ``execution.nslots``, properties that begin with
``+``, and ``scheduling.writer``; the newer one is written.  Children of any type are
idsets of units of that type (R9); the nodelist names the ranks in ascending order (R10).
Ranks, ids and hosts are held as ranges throughout: a *piece* is a range of ranks with equal children, and a
list of pieces is ascending and disjoint.  Two lists are swept side by side, so an operation costs the number
of pieces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, NotRequired, TypeAlias, TypedDict

from simsched.arguments import check, check_whole, wrong
from simsched.errors import ClusterError, FormatError, LimitError, clip
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import MAX_IDS, Idset
from simsched.formats.rfc.names import check_property
from simsched.formats.text.diagnostics import shown, typed
from simsched.formats.text.excerpts import Path, format_path, has_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


Children: TypeAlias = "Mapping[str, Idset]"
"""The children of a rank: resource type → idset, none of them empty."""


Rule: TypeAlias = "Callable[[Children | None, Children | None], Children | None]"
"""The children of a rank on both sides (None: no such rank) → its children in the result."""


class Piece(NamedTuple):
    """Ranks `low` to `high`, all with `children`."""

    low: int
    high: int
    children: Children


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks that hold the same: an idset of units by resource type."""

    ranks: Idset
    children: Mapping[str, Idset]

    def __hash__(self) -> int:
        return hash((self.ranks, frozenset(self.children.items())))


def ranks_of(groups: tuple[RankGroup, ...]) -> Idset:
    """All ranks of groups that share none."""
    if len(groups) == 1:
        return groups[0].ranks
    return Idset.from_ranges(span for group in groups for span in group.ranks.ranges)


def pieces(groups: Iterable[tuple[Idset, Children]]) -> list[Piece]:
    """The ranges of all groups in ascending order; the groups' ranks must be disjoint."""
    cut = [Piece(low, high, children) for ranks, children in groups for low, high in ranks.ranges]
    cut.sort(key=lambda piece: piece.low)
    return cut


def sweep(
    left: list[Piece], right: list[Piece]
) -> Iterator[tuple[int, int, Children | None, Children | None]]:
    """Every largest range of ranks that is in one piece of each side, or of one side alone."""
    i = j = 0
    at = 0
    while i < len(left) or j < len(right):
        a = left[i] if i < len(left) else None
        b = right[j] if j < len(right) else None
        starts = [max(piece.low, at) for piece in (a, b) if piece is not None]
        low = min(starts)
        in_a = a is not None and a.low <= low
        in_b = b is not None and b.low <= low
        # The range ends with a piece that covers `low`, or just before a piece that begins after it, so each
        # side has one piece or none in it.
        ends = [p.high if p.low <= low else p.low - 1 for p in (a, b) if p is not None]
        high = min(ends)
        yield low, high, a.children if a and in_a else None, b.children if b and in_b else None
        at = high + 1
        i += a is not None and a.high < at
        j += b is not None and b.high < at


def combine(left: list[Piece], right: list[Piece], rule: Rule) -> list[Piece]:
    """Apply `rule` to the children of each rank on both sides; None leaves the rank out."""
    result = []
    known: dict[tuple[int, int], Children | None] = {}
    for low, high, a, b in sweep(left, right):
        key = (id(a), id(b))  # ids are unique: both sides stay alive while the sweep runs
        if key not in known:
            known[key] = rule(a, b)
        if (children := known[key]) is not None:
            result.append(Piece(low, high, children))
    return result


def united(a: Children | None, b: Children | None) -> Children | None:
    """The children of either rank."""
    if a is None or b is None or a == b:
        return b if a is None else a
    return {kind: a.get(kind, _NONE) | b.get(kind, _NONE) for kind in (*a, *(k for k in b if k not in a))}


def shared(a: Children | None, b: Children | None) -> Children | None:
    """The children of both ranks; a rank without children is shared if both have none."""
    if a is None or b is None:
        return None
    if a == b:
        return a
    both = {kind: a[kind] & b[kind] for kind in a if kind in b}
    return {kind: ids for kind, ids in both.items() if ids} or None


def remaining(a: Children | None, b: Children | None) -> Children | None:
    """The children of the first rank that the second lacks; a rank without any is omitted."""
    if a is None or b is None:
        return a
    left = {kind: ids - b.get(kind, _NONE) for kind, ids in a.items()}
    return {kind: ids for kind, ids in left.items() if ids} or None


def grouped(cut: Iterable[Piece]) -> tuple[RankGroup, ...]:
    """Groups of ranks with equal children, in order of their lowest rank; types in canonical order."""
    ranges: dict[tuple[tuple[str, Idset], ...], list[tuple[int, int]]] = {}
    keys: dict[int, tuple[tuple[str, Idset], ...]] = {}
    alive = []
    for low, high, children in cut:
        key = keys.get(id(children))
        if key is None:
            key = keys[id(children)] = tuple(sorted(children.items(), key=type_order))
            alive.append(children)
        spans = ranges.setdefault(key, [])
        if spans and spans[-1][1] + 1 == low:
            spans[-1] = (spans[-1][0], high)
        else:
            spans.append((low, high))
    return tuple(RankGroup(Idset(tuple(spans)), dict(key)) for key, spans in ranges.items())


def spans(ranks: Idset, wanted: Idset) -> Iterator[tuple[int, int]]:
    """Where the ranks of `wanted` (a subset) are among the sorted `ranks`: (start, stop) positions."""
    before, source = 0, iter(ranks.ranges)
    low, high = next(source, (0, -1))
    for first, last in wanted.ranges:
        while high < first:
            before += high - low + 1
            low, high = next(source)
        yield before + first - low, before + last - low + 1


_NONE = Idset()
_RANKING = {"core": "0", "gpu": "1"}


def type_order(item: tuple[str, Idset]) -> str:
    """Cores before gpus before all others by name."""
    return _RANKING.get(item[0], "2" + item[0])


class RLite(TypedDict):
    """One entry of ``R_lite``.

    rank : idset of ranks.
    children : type of resource: the ids that each of the ranks has.
    """

    rank: str
    children: dict[str, str]


class RExecution(TypedDict):
    """The key ``execution``.

    nodelist : hostlists of the ranks in ascending order.
    properties : property: idset of the ranks that have it.
    nslots : number of allocated slots.
    starttime, expiration : seconds since the epoch, or since the beginning of a simulation.
    """

    R_lite: list[RLite]
    nodelist: list[str]
    properties: NotRequired[dict[str, str]]
    nslots: NotRequired[int]
    starttime: NotRequired[float]
    expiration: NotRequired[float]


class WrittenR(TypedDict):
    """R as it is written (RFC 20).

    scheduling, attributes : data of the scheduler.
    """

    version: Literal[1]
    execution: RExecution
    scheduling: NotRequired[dict[str, Any]]
    attributes: NotRequired[dict[str, Any]]


_KEYS = ("version", "execution", "scheduling", "attributes")
_NAMED = ("R_lite", "nodelist", "properties", "nslots", "starttime", "expiration")


class _Reader:
    """Reads one document; knows the file for the error messages."""

    def __init__(self, where: str | None) -> None:
        self.where = where

    def fail(self, path: Path, message: str, expected: str | None = None) -> NoReturn:
        raise FormatError(message, where=self.at(path), expected=expected)

    def at(self, path: Path) -> str | None:
        """The file and the path in it."""
        return ": ".join(part for part in (self.where, format_path(path)) if part) or None

    def table(self, path: Path, value: Any, known: tuple[str, ...] = (), required: int = 0) -> dict[str, Any]:
        """Return an object, which has no keys but those known, and the first `required` of them."""
        found: dict[str, Any] = typed(value, dict, self.at(path))
        for key in known[:required]:
            if key not in found:
                self.fail(path, f"{key} is missing", " and ".join(known))
        for key in found if known else ():
            if key not in known:
                self.fail((*path, key), f"unknown key {clip(str(key))!r}", f"one of {', '.join(known)}")
        return found

    def ids(self, path: Path, value: Any) -> Idset:
        return Idset.parse(value, where=self.at(path))

    def document(self, doc: Any) -> dict[str, Any]:
        """The fields of a `ResourceSet`, from a document of either generation."""
        if not isinstance(doc, dict) or "version" not in doc:
            found = "has no version" if isinstance(doc, dict) else f"is {shown(doc)}"
            self.fail((), f"not R: the document {found}", "an object with version and execution")
        if doc["version"] != 1 or isinstance(doc["version"], bool):
            self.fail(("version",), f"R of version {clip(repr(doc['version']))}", "1")
        if "execution" not in doc and "scheduling" not in doc:
            self.fail((), "not R: neither execution nor scheduling", "execution")
        self.table((), doc, _KEYS)
        parts = {key: self.table((key,), doc[key]) for key in _KEYS[1:] if doc.get(key) is not None}
        outer: dict[str, Any] = {key: parts.get(key) for key in ("scheduling", "attributes")}
        if "execution" not in parts:
            if "scheduling" not in parts:
                self.fail(("execution",), "is null", "an object")
            return outer
        execution = parts["execution"]
        groups = self.groups(execution)
        ranks = ranks_of(groups)
        if len(ranks) > MAX_IDS:
            spot = self.at(("execution", "R_lite"))
            raise LimitError(f"there are {len(ranks)} ranks", where=spot, expected=f"at most {MAX_IDS}")
        path = ("execution", "nodelist")
        if "nodelist" not in execution:
            self.fail(("execution",), "nodelist is missing", "a list of hostlists")
        hosts = Hostlist.parse(
            typed(execution["nodelist"], list, self.at(path), "a list of hostlists"), where=self.at(path)
        )
        if len(hosts) != len(ranks):
            message = f"names {len(hosts)} hosts for the {len(ranks)} ranks of R_lite"
            self.fail(path, message, "one host per rank")
        start, end = (self.time(key, execution.get(key)) for key in ("starttime", "expiration"))
        if end and start is not None and end <= start:
            path = ("execution", "expiration")
            self.fail(path, f"{end} is not after the starttime {start}", "a later time")
        properties = self.properties(execution.get("properties"), ranks)
        nslots = execution.get("nslots")
        if nslots is not None and (isinstance(nslots, bool) or not isinstance(nslots, int) or nslots < 0):
            self.fail(("execution", "nslots"), f"{clip(repr(nslots))} is not a count", "a whole number")
        return {
            "groups": groups,
            "hosts": hosts,
            "properties": properties,
            "starttime": start,
            "expiration": end or None,  # Flux writes 0 for no expiration
            "nslots": nslots,
            "extra": {key: value for key, value in execution.items() if key not in _NAMED},
            **outer,
        }

    def groups(self, execution: Mapping[str, Any]) -> tuple[RankGroup, ...]:
        """The entries of ``R_lite``, canonical."""
        path: Path = ("execution", "R_lite")
        if "R_lite" not in execution:
            self.fail(("execution",), "R_lite is missing", "a list of rank and children")
        cut: list[tuple[int, int, int, Children]] = []
        for position, entry in enumerate(
            typed(execution["R_lite"], list, self.at(path), "a list of rank and children")
        ):
            ranks, children = self.entry((*path, position), entry)
            cut += [(low, high, position, children) for low, high in ranks.ranges]
        cut.sort(key=lambda piece: piece[:3])
        for (_, high, _, _), (low, _, position, _) in pairwise(cut):
            if low <= high:
                self.fail((*path, position, "rank"), f"rank {low} occurs twice", "each rank once")
        return grouped(Piece(low, high, children) for low, high, _, children in cut)

    def entry(self, path: Path, entry: Any) -> tuple[Idset, Children]:
        """One entry of ``R_lite``."""
        rank = self.table(path, entry, ("rank", "children"), 2)["rank"]
        if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0:
            rank = str(rank)  # early writers
        ranks = self.ids((*path, "rank"), rank)
        if not ranks:
            self.fail((*path, "rank"), "names no rank", "an idset of ranks")
        path, children = (*path, "children"), {}
        for kind, ids in self.table(path, entry["children"]).items():
            if not isinstance(kind, str) or not kind or has_control(kind):
                message = f"{str(kind)[:40]!r} is not a resource type"
                self.fail(path, message, "a name of printable characters")
            if units := self.ids((*path, kind), ids):
                children[kind] = units
        return ranks, children

    def properties(self, properties: Any, ranks: Idset) -> dict[str, Idset]:
        """The ranks of each property."""
        path: Path = ("execution", "properties")
        result = {}
        for name, text in self.table(path, {} if properties is None else properties).items():
            check_property(name, self.at(path))
            having = self.ids((*path, name), text)
            if not having <= ranks:
                missing = (having - ranks).first
                self.fail((*path, name), f"rank {missing} is not in R_lite", "ranks of R_lite")
            if having:
                result[name] = having
        return result

    def time(self, key: str, value: Any) -> float | None:
        """Seconds since the epoch."""
        if value is None:
            return None
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if not known or not 0 <= value < math.inf:
            self.fail(("execution", key), f"{shown(value)} is not a time", "seconds since the epoch")
        seconds: float = value
        return seconds


@dataclass(frozen=True, slots=True)
class ResourceSet:
    """An R document as a value.

    Parameters
    ----------
    groups : ranks with equal children together, in order of their lowest rank.
    hosts : one name per rank, in ascending order of ranks.
    properties : the ranks that have each property.
    starttime, expiration : seconds since the epoch (in a simulation, since its start), or None.
    nslots : how many slots the scheduler allocated, or None.
    scheduling, attributes : as in the document; read them, do not change them.
    extra : keys of ``execution`` that RFC 20 does not define; they are kept.

    The constructor trusts its arguments; `from_dict`, `of` and the operations make
    canonical sets, and two canonical sets are equal where they mean the same resources.

    >>> r = ResourceSet.of([("0-3", {"core": "0-7"})], "node[10-13]")
    >>> print(r)
    rank[0-3]/core[0-7]
    >>> r.host_of(2), r.count("core")
    ('node12', 32)
    """

    groups: tuple[RankGroup, ...] = ()
    hosts: Hostlist = field(default_factory=Hostlist)
    properties: Mapping[str, Idset] = field(default_factory=dict)
    starttime: float | None = None
    expiration: float | None = None
    nslots: int | None = None
    scheduling: Mapping[str, Any] | None = None
    attributes: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    # -- making one ------------------------------------------------------------------

    @classmethod
    def from_dict(cls, doc: Any, where: str | None = None) -> ResourceSet:
        """Read an R document (already parsed JSON).

        Raises
        ------
        FormatError
            if the document is not R, or a part breaks RFC 20; with `where` and the path.
        LimitError
            if it has more than ten million ranks.
        """
        if where is not None:
            check("where", where, str, "the name of the document")
        return cls(**_Reader(where).document(doc))

    @classmethod
    def of(
        cls,
        entries: Iterable[tuple[Idset | str, Mapping[str, Idset | str]]],
        hosts: Hostlist | str,
        **fields: Any,
    ) -> ResourceSet:
        """Make a canonical set of (ranks, children) entries, as text or values; `fields` as the class has.

        Raises ClusterError if two entries hold one rank or hosts and ranks differ in number.
        """
        check("hosts", hosts, Hostlist | str, "a hostlist")
        try:
            parsed = [
                (_idset(ranks), {kind: _idset(ids) for kind, ids in children.items() if ids})
                for ranks, children in entries
            ]
        except (TypeError, ValueError, AttributeError):
            raise wrong("entries", entries, 'ranks and children, such as ("0-3", {"core": "0-7"})') from None
        cut = pieces(parsed)
        for before, after in pairwise(cut):
            if after.low <= before.high:
                raise ClusterError(f"rank {after.low} occurs twice")
        names = Hostlist.parse(hosts) if isinstance(hosts, str) else hosts
        result = cls(grouped(cut), names, **fields)
        if len(names) != len(result.ranks):
            raise ClusterError(
                f"{len(names)} hosts for {len(result.ranks)} ranks", expected="one host per rank"
            )
        return result

    # -- questions -------------------------------------------------------------------

    @property
    def ranks(self) -> Idset:
        """All ranks of the set."""
        return ranks_of(self.groups)

    @property
    def is_empty(self) -> bool:
        """Whether the set has no ranks."""
        return not self.groups

    @property
    def types(self) -> tuple[str, ...]:
        """The types of children that occur: core, gpu, then the others by name."""
        kinds = {kind: _NONE for group in self.groups for kind in group.children}
        return tuple(sorted(kinds, key=lambda kind: type_order((kind, _NONE))))

    def host_of(self, rank: int) -> str:
        """The host of `rank`; ValueError if the set has no such rank."""
        check_whole("rank", rank)
        return self.hosts[self.ranks.index(rank)]

    def ranks_of(self, host: str) -> Idset:
        """The ranks on `host`, none if the set has no such host."""
        ranks = self.ranks
        return Idset.from_ids(ranks[i] for i, name in enumerate(self.hosts) if name == host)

    def children_of(self, rank: int) -> Children:
        """The children of `rank`; ValueError if the set has no such rank."""
        check_whole("rank", rank)
        for group in self.groups:
            if rank in group.ranks:
                return group.children
        raise ValueError(f"rank {rank} is not in the resource set")

    def count(self, kind: str) -> int:
        """How many units of type `kind` the set holds; of type node: how many ranks, unless named otherwise.

        >>> ResourceSet.of([("0-1", {"gpu": "0-3"})], "n[1-2]").count("node")
        2
        """
        check("kind", kind, str, "a type, such as core")
        total = sum(len(g.ranks) * len(g.children[kind]) for g in self.groups if kind in g.children)
        return sum(len(g.ranks) for g in self.groups) if kind == "node" and not total else total

    def properties_of(self, rank: int) -> tuple[str, ...]:
        """The properties that `rank` has."""
        return tuple(name for name, ranks in self.properties.items() if rank in ranks)

    # -- algebra ---------------------------------------------------------------------

    def union(self, other: ResourceSet) -> ResourceSet:
        """The resources of either set; ClusterError if the host of a rank differs between them.

        Of the results of `union`, `intersect` and `subtract`: times and attributes are the
        first set's (the second's where the first has none), ``nslots`` and ``scheduling``
        are omitted, because they describe another set.
        """
        return self._combined(other, united, or_)

    def intersect(self, other: ResourceSet) -> ResourceSet:
        """The resources that both sets have; ClusterError if the host of a rank differs between them."""
        return self._combined(other, shared, and_)

    def subtract(self, other: ResourceSet) -> ResourceSet:
        """The resources of this set that the other lacks; a rank without any is omitted.

        Known to users as ``flux R diff``.
        """
        return self._combined(other, remaining, lambda mine, _: mine)

    __or__ = union
    __and__ = intersect
    __sub__ = subtract

    def append(self, other: ResourceSet) -> ResourceSet:
        """The union of two disjoint sets; ClusterError with the resources that both have.

        Known to users as ``flux R append``.  Slots add up if both sets count them.
        """
        common = self.intersect(other)
        if not common.is_empty:
            raise ClusterError(f"both resource sets hold {clip(str(common))}", expected="disjoint sets")
        for one, two in ((self, other), (other, self)):
            for group in one.groups:
                if not group.children and not group.ranks.isdisjoint(two.ranks):
                    rank = (group.ranks & two.ranks).first
                    raise ClusterError(f"both resource sets hold rank {rank}", expected="disjoint sets")
        nslots = None if self.nslots is None or other.nslots is None else self.nslots + other.nslots
        return replace(self.union(other), nslots=nslots)

    def shard(self, ranks: Idset) -> ResourceSet:
        """The part of the set that is on `ranks`; ranks that the set does not have are ignored."""
        check("ranks", ranks, Idset, "an idset")
        cut = [(kept, group.children) for group in self.groups if (kept := group.ranks & ranks)]
        groups = grouped(pieces(cut))
        wanted = ranks_of(groups)
        return replace(
            self,
            groups=groups,
            hosts=_hosts_at(self.hosts, self.ranks, wanted),
            properties=_restricted(self.properties, wanted),
            nslots=None,
            scheduling=None,
        )

    def shards(self) -> list[ResourceSet]:
        """The set rank by rank, in ascending order; their union is the set."""
        hosts = iter(self.hosts)
        result = []
        for low, high, children in self._pieces():
            for rank in range(low, high + 1):
                one = Idset(((rank, rank),))
                result.append(
                    replace(
                        self,
                        groups=(RankGroup(one, children),),
                        hosts=Hostlist.from_hosts((next(hosts),)),
                        properties={name: one for name, ranks in self.properties.items() if rank in ranks},
                        nslots=None,
                        scheduling=None,
                    )
                )
        return result

    def remap(self, first: int = 0) -> ResourceSet:
        """The same set with its ranks renumbered from `first`, in order (``flux R remap``)."""
        check_whole("first", first)
        ranks = self.ranks
        groups = [(self._renumbered(ranks, group.ranks, first), group.children) for group in self.groups]
        properties = {name: self._renumbered(ranks, r, first) for name, r in self.properties.items()}
        return replace(self, groups=grouped(pieces(groups)), properties=properties, scheduling=None)

    def _pieces(self) -> list[Piece]:
        return pieces((group.ranks, group.children) for group in self.groups)

    @staticmethod
    def _renumbered(ranks: Idset, part: Idset, first: int) -> Idset:
        """The positions of `part` among `ranks`, counted from `first`."""
        places = spans(ranks, part)
        return Idset.from_ranges((first + start, first + stop - 1) for start, stop in places)

    def _combined(
        self, other: ResourceSet, rule: Rule, having: Callable[[Idset, Idset], Idset]
    ) -> ResourceSet:
        """The result of `rule` for each rank's children, and of `having` for each property's ranks."""
        check("other", other, ResourceSet, "a resource set")
        both = self.ranks & other.ranks
        here, there = _hosts_at(self.hosts, self.ranks, both), _hosts_at(other.hosts, other.ranks, both)
        for rank, a, b in zip(both, here, there, strict=True) if here != there else ():
            if a != b:
                raise ClusterError(f"rank {rank} is {a!r} in one resource set and {b!r} in the other")
        groups = grouped(combine(self._pieces(), other._pieces(), rule))
        ranks = ranks_of(groups)
        names = dict.fromkeys((*self.properties, *other.properties))
        properties = {
            name: having(self.properties.get(name, _NONE), other.properties.get(name, _NONE))
            for name in names
        }
        return ResourceSet(
            groups,
            _merged_hosts(self, other, ranks),
            _restricted(properties, ranks),
            starttime=other.starttime if self.starttime is None else self.starttime,
            expiration=other.expiration if self.expiration is None else self.expiration,
            attributes=other.attributes if self.attributes is None else self.attributes,
            extra=self.extra,
        )

    # -- out -------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The RFC 20 document: idsets canonical, one compressed hostlist, optional keys only where set.

        >>> ResourceSet.of([("19-22", {"core": "0-47"})], "node[186-189]").to_dict()["execution"]
        {'R_lite': [{'rank': '19-22', 'children': {'core': '0-47'}}], 'nodelist': ['node[186-189]']}
        """
        execution: dict[str, Any] = {
            "R_lite": [
                {"rank": str(g.ranks), "children": {kind: str(ids) for kind, ids in g.children.items()}}
                for g in self.groups
            ],
            "nodelist": [str(self.hosts)] if self.hosts else [],
        }
        if self.properties:
            execution["properties"] = {name: str(ranks) for name, ranks in self.properties.items()}
        for key in ("nslots", "starttime", "expiration"):
            if (value := getattr(self, key)) is not None:
                execution[key] = value
        execution.update(self.extra)
        doc: dict[str, Any] = {"version": 1, "execution": execution}
        for key in ("scheduling", "attributes"):
            if (part := getattr(self, key)) is not None:
                doc[key] = part
        return doc

    def __str__(self) -> str:
        return " ".join(
            f"rank{_bracketed(g.ranks)}"
            + (
                "/" + ",".join(f"{kind}{_bracketed(ids)}" for kind, ids in g.children.items())
                if g.children
                else ""
            )
            for g in self.groups
        )

    def __repr__(self) -> str:
        return f"ResourceSet({clip(str(self))!r}, hosts={clip(str(self.hosts))!r})"

    def __hash__(self) -> int:
        return hash((self.groups, self.hosts, self.starttime, self.expiration))

    def _check(self) -> None:
        """Assert that the set is canonical and its parts agree."""
        cut = self._pieces()
        assert all(a.high < b.low for a, b in pairwise(cut))
        assert self.groups == grouped(cut)
        assert all(ids for g in self.groups for ids in g.children.values())
        assert len(self.hosts) == len(self.ranks)
        assert all(ranks and ranks <= self.ranks for ranks in self.properties.values())
        assert self.expiration is None or math.isfinite(self.expiration)
        for group in self.groups:
            group.ranks._check()
            for ids in group.children.values():
                ids._check()


def _idset(value: Idset | str) -> Idset:
    return Idset.parse(value) if isinstance(value, str) else value


def _hosts_at(hosts: Hostlist, ranks: Idset, wanted: Idset) -> Hostlist:
    """The hosts of the ranks `wanted`, where `hosts` names all of `ranks`."""
    if ranks == wanted:
        return hosts
    return Hostlist.join(hosts[start:stop] for start, stop in spans(ranks, wanted))


def _merged_hosts(left: ResourceSet, right: ResourceSet, wanted: Idset) -> Hostlist:
    """The hosts of `wanted`, from `left` where it has the rank and from `right` elsewhere."""
    mine = left.ranks
    if wanted <= mine:
        return _hosts_at(left.hosts, mine, wanted)
    parts = []
    for hosts, ranks, chosen in (
        (left.hosts, mine, wanted & mine),
        (right.hosts, right.ranks, wanted - mine),
    ):
        for (low, _), (start, stop) in zip(chosen.ranges, spans(ranks, chosen), strict=True):
            parts.append((low, hosts[start:stop]))
    parts.sort(key=lambda part: part[0])
    return Hostlist.join(hosts for _, hosts in parts)


def _restricted(properties: Mapping[str, Idset], ranks: Idset) -> dict[str, Idset]:
    """The properties of `ranks` alone."""
    return {name: kept for name, having in properties.items() if (kept := having & ranks)}


def _bracketed(ids: Idset) -> str:
    text = str(ids)
    return text if text.isdigit() else f"[{text}]"
