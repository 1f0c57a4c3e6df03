"""Dialects: what a request means, as a frozen value that the compiler reads (DESIGN M1 to M9).

A dialect is data, not a branch in the matcher: the compiler asks it whether a request
vertex is exclusive, and nothing else in the engine knows which dialect is spoken.
"""

from __future__ import annotations

from dataclasses import dataclass

from simsched.arguments import check
from simsched.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a jobspec is read.

    Attributes
    ----------
    name : the dialect's name.
    exclusive_in_slot : a vertex in a slot is exclusive unless it says otherwise (RFC 14).
    exclusive_outside : a vertex outside a slot is exclusive unless it says otherwise.
    """

    name: str
    exclusive_in_slot: bool = True
    exclusive_outside: bool = False

    def is_exclusive(self, said: bool | None, *, in_slot: bool) -> bool:
        """Return whether a vertex is claimed exclusively (M4).

        >>> RFC14.is_exclusive(None, in_slot=True), RFC14.is_exclusive(None, in_slot=False)
        (True, False)
        """
        if said is not None:
            return said
        return self.exclusive_in_slot if in_slot else self.exclusive_outside


RFC14 = Dialect(name="rfc14")

DIALECTS = {dialect.name: dialect for dialect in (RFC14,)}


def find_dialect(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises
    ------
    ConfigError
        if there is none; the message lists those that exist.
    """
    check("rules", name, str, f"one of {', '.join(DIALECTS)}")
    try:
        return DIALECTS[name]
    except KeyError:
        raise ConfigError(f"unknown dialect {name!r}", expected=f"one of {', '.join(DIALECTS)}") from None
