"""Resource sets (R, RFC 20): execution targets and the resources of each.

Both generations are read: with and without ``execution.nslots``, properties that begin with
``+``, and ``scheduling.writer``; the newer one is written.  Children of any type are
idsets of units of that type (R9); the nodelist names the ranks in ascending order (R10).
Ranks, ids and hosts are held as ranges throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_whole, wrong
from simsched.errors import ClusterError
from simsched.formats.cluster import rset_algebra as algebra
from simsched.formats.cluster.rset_reader import read_rset
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from simsched.formats.cluster.rset_algebra import Children, RankGroup, Rule


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
        return cls(**read_rset(doc, where))

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
        cut = algebra.pieces(parsed)
        for before, after in pairwise(cut):
            if after.low <= before.high:
                raise ClusterError(f"rank {after.low} occurs twice")
        names = Hostlist.parse(hosts) if isinstance(hosts, str) else hosts
        result = cls(algebra.grouped(cut), names, **fields)
        if len(names) != len(result.ranks):
            raise ClusterError(
                f"{len(names)} hosts for {len(result.ranks)} ranks", expected="one host per rank"
            )
        return result

    # -- questions -------------------------------------------------------------------

    @property
    def ranks(self) -> Idset:
        """All ranks of the set."""
        return algebra.ranks_of(self.groups)

    @property
    def is_empty(self) -> bool:
        """Whether the set has no ranks."""
        return not self.groups

    @property
    def types(self) -> tuple[str, ...]:
        """The types of children that occur: core, gpu, then the others by name."""
        kinds = {kind: _EMPTY for group in self.groups for kind in group.children}
        return tuple(sorted(kinds, key=lambda kind: algebra.type_order((kind, _EMPTY))))

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
        return self._combined(other, algebra.united, or_)

    def intersect(self, other: ResourceSet) -> ResourceSet:
        """The resources that both sets have; ClusterError if the host of a rank differs between them."""
        return self._combined(other, algebra.shared, and_)

    def subtract(self, other: ResourceSet) -> ResourceSet:
        """The resources of this set that the other lacks; a rank without any is omitted.

        Known to users as ``flux R diff``.
        """
        return self._combined(other, algebra.remaining, lambda mine, _: mine)

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
        groups = algebra.grouped(algebra.pieces(cut))
        wanted = algebra.ranks_of(groups)
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
        for low, high, children in algebra.pieces((g.ranks, g.children) for g in self.groups):
            for rank in range(low, high + 1):
                one = Idset(((rank, rank),))
                result.append(
                    replace(
                        self,
                        groups=(algebra.RankGroup(one, children),),
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
        return replace(
            self, groups=algebra.grouped(algebra.pieces(groups)), properties=properties, scheduling=None
        )

    @staticmethod
    def _renumbered(ranks: Idset, part: Idset, first: int) -> Idset:
        """The positions of `part` among `ranks`, counted from `first`."""
        places = algebra.spans(ranks, part)
        return Idset.from_ranges((first + start, first + stop - 1) for start, stop in places)

    def _combined(
        self, other: ResourceSet, rule: Rule, having: Callable[[Idset, Idset], Idset]
    ) -> ResourceSet:
        """The result of `rule` for each rank's children, and of `having` for each property's ranks."""
        check("other", other, ResourceSet, "a resource set")
        self._agree(other)
        mine = algebra.pieces((g.ranks, g.children) for g in self.groups)
        others = algebra.pieces((g.ranks, g.children) for g in other.groups)
        groups = algebra.grouped(algebra.combine(mine, others, rule))
        ranks = algebra.ranks_of(groups)
        names = dict.fromkeys((*self.properties, *other.properties))
        properties = {
            name: having(self.properties.get(name, _EMPTY), other.properties.get(name, _EMPTY))
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

    def _agree(self, other: ResourceSet) -> None:
        """Raise ClusterError if a rank has one host here and another there."""
        mine, others = self.ranks, other.ranks
        both = mine & others
        if not both:
            return
        here, there = _hosts_at(self.hosts, mine, both), _hosts_at(other.hosts, others, both)
        if here != there:
            for rank, a, b in zip(both, here, there, strict=True):
                if a != b:
                    raise ClusterError(f"rank {rank} is {a!r} in one resource set and {b!r} in the other")

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
        cut = algebra.pieces((g.ranks, g.children) for g in self.groups)
        assert all(a.high < b.low for a, b in pairwise(cut))
        assert self.groups == algebra.grouped(cut)
        assert all(ids for g in self.groups for ids in g.children.values())
        assert len(self.hosts) == len(self.ranks)
        assert all(ranks and ranks <= self.ranks for ranks in self.properties.values())
        assert self.expiration is None or math.isfinite(self.expiration)
        for group in self.groups:
            group.ranks._check()
            for ids in group.children.values():
                ids._check()


_EMPTY = Idset()


def _idset(value: Idset | str) -> Idset:
    return Idset.parse(value) if isinstance(value, str) else value


def _hosts_at(hosts: Hostlist, ranks: Idset, wanted: Idset) -> Hostlist:
    """The hosts of the ranks `wanted`, where `hosts` names all of `ranks`."""
    if ranks == wanted:
        return hosts
    return Hostlist.join(hosts[start:stop] for start, stop in algebra.spans(ranks, wanted))


def _merged_hosts(left: ResourceSet, right: ResourceSet, wanted: Idset) -> Hostlist:
    """The hosts of `wanted`, from `left` where it has the rank and from `right` elsewhere."""
    mine, others = left.ranks, right.ranks
    if wanted <= mine:
        return _hosts_at(left.hosts, mine, wanted)
    parts = [(low, left.hosts[at : at + high - low + 1]) for (low, high), at in _placed(mine, wanted & mine)]
    parts += [
        (low, right.hosts[at : at + high - low + 1]) for (low, high), at in _placed(others, wanted - mine)
    ]
    parts.sort(key=lambda part: part[0])
    return Hostlist.join(hosts for _, hosts in parts)


def _restricted(properties: Mapping[str, Idset], ranks: Idset) -> dict[str, Idset]:
    """The properties of `ranks` alone."""
    return {name: kept for name, having in properties.items() if (kept := having & ranks)}


def _placed(ranks: Idset, wanted: Idset) -> Iterable[tuple[tuple[int, int], int]]:
    """Each range of `wanted` with the position of its first rank among `ranks`."""
    starts = (start for start, _ in algebra.spans(ranks, wanted))
    return zip(wanted.ranges, starts, strict=True)


def _bracketed(ids: Idset) -> str:
    text = str(ids)
    return text if text.isdigit() else f"[{text}]"
