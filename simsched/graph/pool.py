"""The resource pool: one vertex of the resource graph (RFC 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003 - a Struct's own signature evaluates its annotations
from typing import Any

import msgspec

from simsched.errors import ClusterError
from simsched.formats.rfc.idset import Idset  # noqa: TC001 - as above
from simsched.formats.text.excerpts import has_control

UP, DOWN, DRAINED = "up", "down", "drained"
STATUSES = (UP, DOWN, DRAINED)

NOTHING: Mapping[str, Any] = {}
"""The shared empty mapping.  Mappings of a pool are never changed, only replaced."""

OUTER = "@vertex"
"""Key of `Pool.extra` for the keys of a JGF vertex beside id and metadata."""

MAX_SIZE = 10**15
MAX_RANK = 2**31 - 1

_TRAILING_ID = re.compile(r"^(.*?)(\d+)$", re.ASCII | re.DOTALL)


class Pool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One or more indistinguishable units of one type (RFC 4, base data).

    Attributes
    ----------
    type : ``"node"``, ``"core"``, ``"rack"`` …
    name : basename + id, or basename alone; the host of an execution target.
    basename : the name without its id.
    id : the logical number among vertices of its kind, or None.
    uuid : a universally unique identifier, or ``""``.
    size : units in the pool.
    unit : what `size` counts (``"GB"``, ``"W"``), or ``""``.
    rank : the broker rank of an execution target, or of a vertex in one; None if not known.
    status : ``"up"``, ``"down"`` or ``"drained"``.
    properties : name → value (mostly ``""``), shared between vertices: do not change it.
    ids : the ids of the units if the vertex represents several (R_lite's ``core: 0-47``).
    extra : keys of the source that the model does not know, kept as they are.
    given : the keys in the source document (None: the source was not JGF).

    >>> Pool(type="core", name="core3", basename="core", id=3).size
    1
    """

    type: str
    name: str
    basename: str
    id: int | None = None
    uuid: str = ""
    size: int = 1
    unit: str = ""
    rank: int | None = None
    status: str = UP
    properties: Mapping[str, str] = msgspec.field(default_factory=lambda: NOTHING)
    ids: Idset | None = None
    extra: Mapping[str, Any] = msgspec.field(default_factory=lambda: NOTHING)
    given: frozenset[str] | None = None

    @property
    def is_up(self) -> bool:
        """Whether the scheduler may allocate this vertex."""
        return self.status == UP

    def replace(self, **changes: Any) -> Pool:
        """Return the same pool with some fields changed.

        >>> numbered("rack", 2).replace(status="down").status
        'down'
        """
        return msgspec.structs.replace(self, **changes)


def numbered(type_: str, number: int | None = None, *, basename: str | None = None, **rest: Any) -> Pool:
    """Return a pool named by its basename (default: type) and number, as RFC 4 says.

    Raises `ClusterError` for a size that is negative or above `MAX_SIZE`.

    >>> numbered("rack", 2).name, numbered("memory", size=512, unit="GB").name
    ('rack2', 'memory')
    """
    base = basename or type_
    name = base if number is None else f"{base}{number}"
    if not 0 <= rest.get("size", 1) <= MAX_SIZE:
        raise _fault(f"size {rest['size']}", name, f"0 to {MAX_SIZE:,} units")
    return Pool(type=type_, name=name, basename=base, id=number, **rest)


def split_name(name: str) -> tuple[str, int | None]:
    """Split a host into basename and id.

    >>> split_name("node186"), split_name("login"), split_name("rack0-eth")
    (('node', 186), ('login', None), ('rack0-eth', None))
    """
    found = _TRAILING_ID.match(name)
    if found is None or len(found[2]) > 18:
        return name, None
    return found[1], int(found[2])


def check_pool(pool: Pool, key: str) -> None:
    """Check the numbers of the pool that will be the vertex `key`.

    Raises
    ------
    ClusterError
        for names with control characters, a size, id or rank out of range, and for ids
        whose number is not the size.
    """
    if not pool.type:
        raise _fault("an empty type", key, "a name")
    if has_control(pool.type) or has_control(pool.name):
        found = f"{pool.type[:40]!r} called {pool.name[:40]!r}"
        raise _fault(f"control characters in {found}", key, "names of printable characters")
    if not 0 <= pool.size <= MAX_SIZE:
        raise _fault(f"size {pool.size}", key, f"0 to {MAX_SIZE:,} units")
    if pool.id is not None and not 0 <= pool.id <= MAX_SIZE:
        raise _fault(f"id {pool.id}", key, "a number of 0 or more, or None")
    if pool.rank is not None and not 0 <= pool.rank <= MAX_RANK:
        raise _fault(f"rank {pool.rank}", key, "a number of 0 or more, or None")
    if pool.ids is not None and len(pool.ids) != pool.size:
        raise _fault(f"size {pool.size} with {len(pool.ids)} ids", key, "one id per unit")


def _fault(message: str, key: str, expected: str) -> ClusterError:
    return ClusterError(message, where=f"vertex {key!r}", expected=expected)
