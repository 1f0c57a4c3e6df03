"""Reading R documents (RFC 20): every fault with its path."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from simsched.arguments import check
from simsched.errors import FormatError, LimitError
from simsched.formats.cluster import rset_algebra as algebra
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import MAX_IDS, Idset
from simsched.formats.rfc.names import check_property
from simsched.formats.text.excerpts import Path, clip, format_path, has_control

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.cluster.rset_algebra import Children, RankGroup

_KEYS = ("version", "execution", "scheduling", "attributes")
_NAMED = ("R_lite", "nodelist", "properties", "nslots", "starttime", "expiration")


def read_rset(doc: Any, where: str | None = None) -> dict[str, Any]:
    """The fields of a `ResourceSet`, from an R document of either generation.

    Raises what `ResourceSet.from_dict` says, which is the public name of this.
    """
    if where is not None:
        check("where", where, str, "the name of the document")
    return _Reader(where).document(doc)


class _Reader:
    """Reads one document; knows the file for the error messages."""

    def __init__(self, where: str | None) -> None:
        self.where = where

    def fail(self, path: Path, message: str, expected: str | None = None) -> NoReturn:
        raise FormatError(message, where=self.at(path), expected=expected)

    def at(self, path: Path) -> str | None:
        """The file and the path in it."""
        return ": ".join(part for part in (self.where, format_path(path)) if part) or None

    def document(self, doc: Any) -> dict[str, Any]:
        """The whole document."""
        if not isinstance(doc, dict) or "version" not in doc:
            found = "has no version" if isinstance(doc, dict) else f"is {_kind(doc)}"
            self.fail((), f"not R: the document {found}", "an object with version and execution")
        if doc["version"] != 1 or isinstance(doc["version"], bool):
            self.fail(("version",), f"R of version {clip(repr(doc['version']))}", "1")
        if "execution" not in doc and "scheduling" not in doc:
            self.fail((), "not R: neither execution nor scheduling", "execution")
        for key in doc:
            if key not in _KEYS:
                self.fail((key,), f"unknown key {clip(str(key))!r}", "one of " + ", ".join(_KEYS))
        parts = {key: self.mapping((key,), doc[key]) for key in _KEYS[1:] if doc.get(key) is not None}
        outer: dict[str, Any] = {"scheduling": parts.get("scheduling"), "attributes": parts.get("attributes")}
        if "execution" not in parts:
            if "scheduling" not in parts:
                self.fail(("execution",), "is null", "an object")
            return outer
        return self.execution(parts["execution"], outer)

    def execution(self, execution: Mapping[str, Any], outer: dict[str, Any]) -> dict[str, Any]:
        """The parts of ``execution``."""
        groups = self.groups(execution)
        ranks = algebra.ranks_of(groups)
        if len(ranks) > MAX_IDS:
            path = self.at(("execution", "R_lite"))
            raise LimitError(f"there are {len(ranks)} ranks", where=path, expected=f"at most {MAX_IDS}")
        hosts = self.nodelist(execution)
        if len(hosts) != len(ranks):
            self.fail(
                ("execution", "nodelist"),
                f"names {len(hosts)} hosts for the {len(ranks)} ranks of R_lite",
                "one host per rank",
            )
        starttime, expiration = self.times(execution)
        return {
            "groups": groups,
            "hosts": hosts,
            "properties": self.properties(execution.get("properties"), ranks),
            "starttime": starttime,
            "expiration": expiration,
            "nslots": self.nslots(execution.get("nslots")),
            "extra": {key: value for key, value in execution.items() if key not in _NAMED},
            **outer,
        }

    def groups(self, execution: Mapping[str, Any]) -> tuple[RankGroup, ...]:
        """The entries of ``R_lite``, canonical."""
        path: Path = ("execution", "R_lite")
        if "R_lite" not in execution:
            self.fail(("execution",), "R_lite is missing", "a list of rank and children")
        entries = execution["R_lite"]
        if not isinstance(entries, list):
            self.fail(path, f"is {_kind(entries)}", "a list of rank and children")
        cut: list[tuple[int, int, int, Children]] = []
        for position, entry in enumerate(entries):
            ranks, children = self.entry((*path, position), entry)
            cut += [(low, high, position, children) for low, high in ranks.ranges]
        cut.sort(key=lambda piece: piece[:3])
        for (_, high, _, _), (low, _, position, _) in pairwise(cut):
            if low <= high:
                self.fail((*path, position, "rank"), f"rank {low} occurs twice", "each rank once")
        pieces = [algebra.Piece(low, high, children) for low, high, _, children in cut]
        return algebra.grouped(pieces)

    def entry(self, path: Path, entry: Any) -> tuple[Idset, Children]:
        """One entry of ``R_lite``."""
        entry = self.mapping(path, entry)
        for key in ("rank", "children"):
            if key not in entry:
                self.fail(path, f"{key} is missing", "rank and children")
        for key in entry:
            if key not in ("rank", "children"):
                self.fail((*path, key), f"unknown key {clip(str(key))!r}", "rank and children")
        rank = entry["rank"]
        if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0:
            rank = str(rank)  # early writers
        ranks = Idset.parse(rank, where=self.at((*path, "rank")))
        if not ranks:
            self.fail((*path, "rank"), "names no rank", "an idset of ranks")
        children = {}
        for kind, ids in self.mapping((*path, "children"), entry["children"]).items():
            if not isinstance(kind, str) or not kind or has_control(kind):
                shown = f"{str(kind)[:40]!r}"
                self.fail(
                    (*path, "children"), f"{shown} is not a resource type", "a name of printable characters"
                )
            units = Idset.parse(ids, where=self.at((*path, "children", kind)))
            if units:
                children[kind] = units
        return ranks, children

    def nodelist(self, execution: Mapping[str, Any]) -> Hostlist:
        """The hosts of the ranks, in ascending order of ranks (R10)."""
        path: Path = ("execution", "nodelist")
        if "nodelist" not in execution:
            self.fail(("execution",), "nodelist is missing", "a list of hostlists")
        names = execution["nodelist"]
        if not isinstance(names, list):
            self.fail(path, f"is {_kind(names)}", "a list of hostlists")
        return Hostlist.parse(names, where=self.at(path))

    def properties(self, properties: Any, ranks: Idset) -> dict[str, Idset]:
        """The ranks of each property."""
        path: Path = ("execution", "properties")
        result = {}
        for name, text in self.mapping(path, properties if properties is not None else {}).items():
            check_property(name, self.at(path))
            having = Idset.parse(text, where=self.at((*path, name)))
            if not having <= ranks:
                missing = (having - ranks).first
                self.fail((*path, name), f"rank {missing} is not in R_lite", "ranks of R_lite")
            if having:
                result[name] = having
        return result

    def times(self, execution: Mapping[str, Any]) -> tuple[float | None, float | None]:
        """Start and expiration; Flux writes 0 for no expiration."""
        start, end = (self.time(key, execution.get(key)) for key in ("starttime", "expiration"))
        if not end:
            return start, None
        if start is not None and end <= start:
            path = ("execution", "expiration")
            self.fail(path, f"{end} is not after the starttime {start}", "a later time")
        return start, end

    def time(self, key: str, value: Any) -> float | None:
        """Seconds since the epoch."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(("execution", key), f"is {_kind(value)}", "seconds since the epoch")
        if not (math.isfinite(value) and value >= 0):
            self.fail(("execution", key), f"{value} is not a time", "seconds since the epoch")
        return value

    def nslots(self, value: Any) -> int | None:
        """The number of slots (newer generation)."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail(("execution", "nslots"), f"{clip(repr(value))} is not a count", "a whole number")
        return value

    def mapping(self, path: Path, value: Any) -> Mapping[str, Any]:
        """An object."""
        if not isinstance(value, dict):
            self.fail(path, f"is {_kind(value)}", "an object")
        return value


def _kind(value: Any) -> str:
    """The type of a JSON value, with its article."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
