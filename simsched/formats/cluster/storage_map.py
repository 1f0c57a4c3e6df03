"""Storage maps: which nodes each storage server serves, and how much it holds (``flux rabbitmapping``).

::

    {"computes": {"tuolumne1001": "tuolumne201", …},
     "rabbits": {"tuolumne201": {"hostlist": "tuolumne[1001-1016]", "capacity": 17529847545856}, …}}

A capacity is in bytes.  Keys of other tools beside these are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simsched.errors import FormatError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.text.diagnostics import typed

TABLES = frozenset({"computes", "rabbits"})
"""The tables of a map."""

MAX_CAPACITY = 2**63 - 1
"""The most bytes of one server."""


@dataclass(frozen=True, slots=True)
class StorageServer:
    """One server: its host, the hosts that it serves, and its capacity in bytes (None: not stated)."""

    name: str
    hosts: tuple[str, ...]
    capacity: int | None


@dataclass(frozen=True, slots=True)
class StorageMap:
    """The servers by name, and the server of each host as the second table states it."""

    servers: Mapping[str, StorageServer]
    server_of: Mapping[str, str]


def is_storage_map(document: Any) -> bool:
    """Whether a document looks like a storage map.

    >>> is_storage_map({"computes": {}, "rabbits": {}}), is_storage_map({"groups": []})
    (True, False)
    """
    return isinstance(document, Mapping) and document.keys() >= TABLES


def read_storage_map(document: Any, where: str | None = None) -> StorageMap:
    """Read a storage map; whether its two tables agree is not checked.

    Raises
    ------
    FormatError
        for a document of another form, with the path.
    """
    if not is_storage_map(document):
        raise FormatError(
            "this is not a storage map", where=where, expected="the tables computes and rabbits"
        )
    servers = {}
    for name, entry in typed(document["rabbits"], dict, _at(where, "rabbits")).items():
        place = _at(where, f"rabbits.{name}")
        row = typed(entry, dict, place)
        capacity = row.get("capacity")
        whole = isinstance(capacity, int) and not isinstance(capacity, bool) and 0 <= capacity <= MAX_CAPACITY
        if capacity is not None and not whole:
            raise FormatError(f"found {capacity!r}", where=f"{place}.capacity", expected="a number of bytes")
        place = f"{place}.hostlist"
        served = Hostlist.parse(
            typed(row.get("hostlist", ""), str, place, "a hostlist (RFC 29)"), where=place
        )
        servers[name] = StorageServer(name, tuple(served.expand()), capacity)
    hosts = typed(document["computes"], dict, _at(where, "computes"))
    for host, server in hosts.items():
        if not isinstance(server, str):
            place = _at(where, f"computes.{host}")
            raise FormatError(f"found {server!r}", where=place, expected="the name of a server")
    return StorageMap(servers, dict(hosts))


def _at(where: str | None, path: str) -> str:
    return f"{where}: {path}" if where else path
