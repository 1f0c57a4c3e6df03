"""Slurm's notations: times, numbers, node lists, generic resources (slurm.conf(5)), values of its JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.cluster.recipe import MAX_NODES
from simsched.formats.rfc.hostlist import Hostlist

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from simsched.formats.machines.description import NoteCollector, Result

MAX_COUNT = 1_000_000
"""The most cores, nodes or units of a resource that a value may state."""
MAX_NAMES = 20_000_000
"""The most names of all node lists of a configuration, each as often as it occurs."""
MAX_ELEMENT = 10_000
"""The most characters of an element of a node list with several pairs of brackets."""
EVERY_NODE = "all"
"""A list of all nodes, in lower case."""
UNLIMITED = frozenset({"unlimited", "infinite", "-1"})
ABSENT = frozenset({"", "(null)", "n/a", "none", "null"})
"""Texts, in lower case, by which Slurm prints that a value is not set."""

_TIME = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")
_TIME_FORM = "minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]] or UNLIMITED"
_PLAIN_HOSTS = re.compile(r"[A-Za-z0-9_.-]+")
_LAST_BRACKETS = re.compile(r"(.*\])([^\[\]]*\[[^\[\]]*\][^\[\]]*)")
_MARKS = re.compile(r"[,\[\]()]")
_GRES_COUNT = re.compile(r"(\d{1,15})([KMGTP]?)", re.IGNORECASE)
_KILO = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def stated(values: Mapping[str, str], *keys: str) -> str:
    """Return the value of the first of these keys that is set; empty if none is.

    >>> stated({"gres": "(null)", "feature": "ib"}, "features", "feature"), stated({"gres": "(null)"}, "gres")
    ('ib', '')
    """
    for key in keys:
        value = values.get(key, "")
        if value.lower() not in ABSENT:
            return value
    return ""


class Line(NamedTuple):
    """The keys of one line or record in lower case, in their order, and its place."""

    values: Mapping[str, str]
    where: str

    @property
    def kind(self) -> str:
        """The first key, which names the kind of line."""
        return next(iter(self.values), "")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one line or record, its place, and the notes that receive its faults.

    what : begins the notes: ``reservation r1: ``.
    """

    values: Mapping[str, str]
    notes: NoteCollector
    where: str
    what: str = ""

    def stated(self, *keys: str) -> str:
        """Return the value of the first of these keys that is set; empty if none is."""
        return stated(self.values, *keys)

    def read(self, read: Callable[[str], Result], key: str, text: str = "", name: str = "") -> Result | None:
        """Return the value of a key, or `text`, as `read` returns it; None if it raises, which is a fault."""
        return self.notes.attempt(read, text or self.stated(key), self.where, self.what + (name or key))

    def number(self, *keys: str, least: int = 0, most: int = 65_535) -> int | None:
        """Return the number of the first of these keys that is set; None without one within bounds."""
        text = self.stated(*keys)
        return self.read(partial(whole_number, least=least, most=most), keys[0], text) if text else None

    def time(self, key: str) -> float | None:
        """Return the seconds of a time limit; None without one."""
        return self.read(time_limit, key) if self.stated(key) else None

    def assumed(self, text: str, cause: str = "") -> None:
        """Note a value that the record does not state."""
        self.notes.assumed(self.what + text, self.where, cause=cause)

    def left_out(self, text: str, cause: str = "") -> None:
        """Note a value that simsched does not hold."""
        self.notes.left_out(self.what + text, self.where, cause=cause)

    def fault(self, text: str, expected: str | None = None, cause: str = "") -> None:
        """Note a value that could not be understood."""
        self.notes.fault(self.what + text, self.where, expected, cause=cause)


def at_path(row: Any, path: str) -> Any:
    """Return the value at a path of keys of a JSON document; None if there is none."""
    for step in path.split("/"):
        row = row.get(step) if isinstance(row, dict) else None
    return row


def texts_at(row: Any, paths: Mapping[str, str]) -> dict[str, str]:
    """Return the values at these paths as texts; of several paths between bars, the first that is set counts.

    >>> texts_at({"max": {"nodes": {"set": True, "number": 4}}}, {"maxnodes": "maximums/nodes|max/nodes"})
    {'maxnodes': '4'}
    """
    found = {}
    for key, candidates in paths.items():
        for path in candidates.split("|"):
            text = text_of(at_path(row, path))
            if text:
                found[key] = text
                break
    return found


def text_of(value: Any) -> str:
    """Return a value of Slurm's JSON as its commands print it; empty for a value that is not set.

    A list of states is joined by ``+`` and a list of names by commas, which `status_of` and
    `comma_parts` both split.  An entry of a list of TRES is ``TYPE/NAME=COUNT``.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        if "type" in value:
            name = f"/{value['name']}" if value.get("name") else ""
            return f"{value['type']}{name}={value.get('count', '')}"
        if value.get("infinite") is True:
            return "UNLIMITED"
        return text_of(value.get("number")) if value.get("set", True) is True else ""
    if isinstance(value, list):
        return ",".join(map(text_of, value))
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:g}"
    return clip(str(value), 10_000)


def time_limit(text: str) -> float:
    """Return the seconds of a time limit, `inf` for no limit.  Raises `FormatError`.

    >>> time_limit("90"), time_limit("1-12"), time_limit("0:30"), time_limit("8:00:00")
    (5400, 129600, 30, 28800)
    """
    if text.lower() in UNLIMITED:
        return inf
    found = _TIME.fullmatch(text)
    if found is None:
        raise FormatError(f"{text!r} is not a time", expected=_TIME_FORM)
    days, first, second, third = found.groups()
    if days is not None or third is not None:
        hours, minutes, seconds = first, second, third
    else:
        hours, minutes, seconds = "0", first, second
    return (int(days or 0) * 24 + int(hours)) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)


def whole_number(text: str, *, least: int = 0, most: int = MAX_COUNT) -> int:
    """Return a whole number within bounds.  Raises `FormatError`.

    >>> whole_number("128")
    128
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and least <= int(text) <= most):
        raise FormatError(f"{text!r} is not valid", expected=f"a whole number from {least:,} to {most:,}")
    return int(text)


def yes(text: str) -> bool:
    """Return whether a switch is on.  Raises `FormatError`.

    >>> yes("YES"), yes("no")
    (True, False)
    """
    if text.lower() in ("yes", "true", "up", "1"):
        return True
    if text.lower() in ("no", "false", "down", "0", *ABSENT):
        return False
    raise FormatError(f"{text!r} is not valid", expected="YES or NO")


def comma_parts(text: str) -> list[str]:
    """Split at the commas outside brackets and parentheses; empty parts are dropped.

    >>> comma_parts("n[1,3],login,gpu:2(S:0,1)")
    ['n[1,3]', 'login', 'gpu:2(S:0,1)']
    """
    if "[" not in text and "(" not in text:
        return [part for part in text.split(",") if part]
    parts, depth, begin = [], 0, 0
    for mark in _MARKS.finditer(text):
        if mark[0] != ",":
            depth += 1 if mark[0] in "[(" else -1
        elif depth <= 0:
            parts.append(text[begin : mark.start()])
            begin = mark.end()
    return [part for part in (*parts, text[begin:]) if part]


def node_names(text: str, *, limit: int = MAX_NODES) -> list[str]:
    """Return the names of a node list; unlike RFC 29, a name may have several pairs of brackets.

    Raises
    ------
    FormatError
        for a list that is not well formed, such as a range that descends.
    LimitError
        for more than `limit` names.

    >>> node_names("r[0-1]n[1-2],login")
    ['r0n1', 'r0n2', 'r1n1', 'r1n2', 'login']
    """
    if _PLAIN_HOSTS.fullmatch(text) and len(text) < 64:
        return [text]
    found: list[str] = []
    for part in comma_parts(text) if text.count("[") > 1 else [text]:
        found += _product(part, limit) if part.count("[") > 1 else Hostlist.parse(part).expand(limit)
        if len(found) > limit:
            raise LimitError(f"{clip(text)!r} names more nodes than that", expected=f"at most {limit:,}")
    return found


class NameReader:
    """Reads the node lists of one configuration, which may have `MAX_NAMES` names together."""

    def __init__(self, notes: NoteCollector) -> None:
        self._notes = notes
        self._left = MAX_NAMES

    def names(self, text: str, where: str, key: str) -> list[str]:
        """Return the names of a list, none if it is empty or not well formed, which is noted.

        Raises `LimitError` if all lists together have too many names.
        """
        found = self._notes.attempt(node_names, text, where, key) or [] if text else []
        self.count(len(found), where)
        return found

    def count(self, names: int, where: str) -> None:
        """Count names that are not written out, such as those of ``ALL``; errors as `names`."""
        self._left -= names
        if self._left < 0:
            raise LimitError(
                "the node lists have too many names", where=where, expected=f"at most {MAX_NAMES:,}"
            )


def _product(part: str, limit: int) -> list[str]:
    """Return the names of one element with several pairs of brackets, the last one running fastest."""
    split = _LAST_BRACKETS.fullmatch(part) if len(part) <= MAX_ELEMENT else None
    if split is None or part.count("[") > 8:
        raise FormatError(f"{clip(part)!r} is not a node list", expected="such as rack[0-3]node[01-16]")
    heads, tails = node_names(split[1], limit=limit), Hostlist.parse(split[2]).expand(limit)
    if len(heads) * len(tails) > limit:
        raise LimitError(f"{clip(part)!r} names more nodes than that", expected=f"at most {limit:,}")
    return [head + tail for head in heads for tail in tails]


@dataclass(frozen=True, slots=True)
class Gres:
    """One entry of a list of generic resources.

    places : the sockets or cores that are near to it, such as ``S:0-1``; empty if not stated.
    """

    name: str
    type: str
    count: int
    consumed: bool = True
    places: str = ""


def gres_of(text: str) -> list[Gres]:
    """Return the entries of ``name[:type][:no_consume][:count][(places)]``, separated by commas.

    Raises `FormatError`.

    >>> gres_of("gpu:a100:4(S:0-1),bandwidth:lustre:no_consume:4G")[0]
    Gres(name='gpu', type='a100', count=4, consumed=True, places='S:0-1')
    """
    entries = []
    for part in comma_parts(text):
        body, _, places = part.partition("(")
        name, *fields = body.strip().split(":")
        count, consumed = 1, True
        if fields and (found := _GRES_COUNT.fullmatch(fields[-1])):
            count = int(found[1]) * 1024 ** _KILO[found[2].lower()]
            fields.pop()
        if fields and fields[-1].lower() == "no_consume":
            consumed = False
            fields.pop()
        if not name or len(fields) > 1 or count > 10**15:
            raise FormatError(f"{clip(part)!r} is not a generic resource", expected="name[:type][:count]")
        entries.append(Gres(name, fields[0] if fields else "", count, consumed, places.rstrip(")")))
    return entries
