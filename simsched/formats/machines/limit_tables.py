"""The policy of a queue (RFC 33), and `LimitTables`: the rules of a file as tables of ``[[limits]]``."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import clip
from simsched.formats.rfc.duration import format_duration

if TYPE_CHECKING:
    from simsched.formats.machines.description import NoteCollector, Table


UNLIMITED = frozenset(
    {"", "-1", "infinite", "unlimited", "inf", "none", "n/a", "(null)"}
    | {"2147483647", "4294967294", "4294967295", "18446744073709551614", "18446744073709551615"}
)
"""Texts of no limit: 2147483647 is that of flux-accounting."""

HOLD, REJECT = "hold", "reject"
TYPED = "gres/gpu:"
"""Begins the TRES of the gpus of one type."""
_TRES = {"cpu": "cores", "node": "nodes", "gres/gpu": "gpus"}
_MEMORY = re.compile(r"(\d{1,15}|\d{0,15}\.\d{1,9})\.?([KMGTP]?)B?", re.IGNORECASE)
_SMALLER = {"K": "", "M": "K", "G": "M", "T": "G", "P": "T"}


def policy_of(longest: float | None, sizes: Table, usual: float | None, **system: str) -> Table:
    """Return the ``policy`` of a queue (RFC 33): its limits, and the defaults of jobs.

    longest, usual : seconds; None is not stated, and `inf` is no limit.
    """
    limits: dict[str, Any] = {}
    if longest is not None and longest < inf:
        limits["duration"] = format_duration(longest)
    if sizes:
        limits["job-size"] = dict(sizes)
    defaults = {"duration": format_duration(usual), **system} if usual is not None else dict(system)
    found: dict[str, Any] = {"limits": limits} if limits else {}
    return found | ({"jobspec": {"defaults": {"system": defaults}}} if defaults else {})


class LimitTables:
    """The rules of one file; limits of one scope share a table if the same happens to jobs over them."""

    def __init__(self, notes: NoteCollector) -> None:
        self.notes = notes
        self._tables: dict[tuple[Any, ...], dict[str, Any]] = {}

    def tables(self) -> list[dict[str, Any]]:
        """Return all rules, in the order of their first limits."""
        return list(self._tables.values())

    def add(self, scope: dict[str, Any], quantity: str, value: Any, over: str = HOLD) -> None:
        """Add one limit; of two values for one scope the first counts."""
        key = (repr(sorted(scope.items())), over)
        table = self._tables.setdefault(key, {**scope})
        table.setdefault(quantity, value)
        if over == HOLD:
            table["over"] = HOLD

    def number(self, scope: Table, quantity: str, text: object, where: str, over: str = HOLD) -> None:
        """Add a limit that is a whole number; a text without a limit is ignored."""
        given = str("" if text is None else text).strip()
        if given.lower() in UNLIMITED:
            return
        number = self.notes.whole(given, quantity, where, most=10**15 - 1)
        if number is not None:
            self.add(scope, quantity, number, over)

    def tres(self, scope: dict[str, Any], text: str, where: str, over: str = HOLD) -> None:
        """Add the limits of Slurm's TRES at a time: ``cpu=128,gres/gpu=8,mem=1T,node=4``."""
        for kind, amount in self._parts(text, where):
            if kind == "mem" and amount.lower() not in UNLIMITED:
                found = _MEMORY.fullmatch(amount)
                if found is None:
                    self.notes.fault(f"{clip(amount)!r} is not an amount of memory", where, "such as 512G")
                    continue
                number, unit = float(found[1]), found[2].upper() or "M"
                while not number.is_integer() and unit:
                    number, unit = number * 1024, _SMALLER[unit]
                self.add(scope, "memory", f"{int(number)} {unit + 'i' if unit else ''}B", over)
            elif kind in _TRES:
                self.number(scope, _TRES[kind], amount, where, over)
            elif kind.startswith(TYPED) and amount.lower() not in UNLIMITED:
                typed = {**scope, "gpu-type": kind.removeprefix(TYPED)}
                self.number(typed, "gpus", amount, where, over)
                text = f"the limit {kind}={amount} counts jobs that request gpus of this type by name"
                self.notes.assumed(text, where, cause="limit on a type of gpu")
            elif amount.lower() not in UNLIMITED:
                text = f"the limit {clip(kind)}={clip(amount)}, which is not simulated"
                self.notes.left_out(text, where, cause=f"limit on {kind}")

    def minutes(self, scope: dict[str, Any], text: str, where: str, prefix: str, over: str = HOLD) -> None:
        """Add the limits of TRES-minutes as hours; `prefix` is ``running-`` for those of running jobs."""
        for kind, amount in self._parts(text, where):
            if amount.lower() in UNLIMITED:
                continue
            if kind not in _TRES:
                text = f"the limit of {clip(amount)} minutes of {clip(kind)}, which is not simulated"
                self.notes.left_out(text, where, cause=f"minutes of {kind}")
            elif re.fullmatch(r"\d{1,15}", amount):
                hours = int(amount) / 60
                unit = _TRES[kind].removesuffix("s")
                self.add(scope, f"{prefix}{unit}-hours", int(hours) if hours.is_integer() else hours, over)
            else:
                self.notes.fault(f"{clip(amount)!r} is not a number of minutes", where, "a whole number")

    def _parts(self, text: str, where: str) -> list[tuple[str, str]]:
        found = []
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            kind, equals, amount = part.rpartition("=")
            if equals:
                found.append((kind.strip().lower(), amount.strip()))
            else:
                self.notes.fault(f"{clip(part)!r} is not a TRES", where, "such as cpu=128")
        return found
