"""Dialects: the meaning of a request as a value that the compiler reads (rules M1 to M9).

A dialect is data, not a branch in the matcher: it decides whether a request vertex is
exclusive, and only the compiler reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from simsched.arguments import check
from simsched.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The meaning of a jobspec where the standard leaves a choice.

    Attributes
    ----------
    name : the dialect's name.
    exclusive_in_slot : a vertex in a slot is exclusive unless the jobspec states otherwise (RFC 14).
    exclusive_outside : a vertex outside a slot is exclusive unless the jobspec states otherwise.
    """

    name: str
    exclusive_in_slot: bool = True
    exclusive_outside: bool = False

    def is_exclusive(self, given: bool | None, *, in_slot: bool) -> bool:
        """Whether a vertex is claimed exclusively (M4); `given` is the jobspec's own key, or None.

        >>> RFC14.is_exclusive(None, in_slot=True), RFC14.is_exclusive(None, in_slot=False)
        (True, False)
        """
        if given is not None:
            return given
        return self.exclusive_in_slot if in_slot else self.exclusive_outside


RFC14 = Dialect(name="rfc14")

DIALECTS = {dialect.name: dialect for dialect in (RFC14,)}


def find_dialect(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises
    ------
    ConfigError
        for an unknown name; the message lists the known ones.
    """
    check("rules", name, str, f"one of {', '.join(DIALECTS)}")
    try:
        return DIALECTS[name]
    except KeyError:
        raise ConfigError(f"unknown dialect {name!r}", expected=f"one of {', '.join(DIALECTS)}") from None
