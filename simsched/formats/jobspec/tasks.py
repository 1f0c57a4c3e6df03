"""The tasks of a jobspec (RFC 14): programs, their slots and their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simsched.formats.text.immutable import EMPTY, FrozenDict, freeze, thaw

KEYS = ("command", "slot", "count", "attributes", "distribution")
"""The keys of a task, RFC 14; a V1 task has the first three."""

COUNT_KEYS = ("per_slot", "per_resource", "total")
"""The keys of a task's count, of which exactly one is there."""


ONCE = FrozenDict(per_slot=1)
"""The count of a task that runs once in each slot."""


@dataclass(frozen=True, slots=True)
class Task:
    """A program and its slot; `count` holds the one key of RFC 14's dictionary.

    `slot` is the label of a slot; a lenient reader accepts any label, and the empty one for a task without.

    >>> Task(("app",), "default").to_dict()
    {'command': ['app'], 'slot': 'default', 'count': {'per_slot': 1}}
    """

    command: tuple[str, ...]
    slot: str
    count: FrozenDict = ONCE
    attributes: FrozenDict = EMPTY
    distribution: str | None = None

    @staticmethod
    def from_dict(document: dict[str, Any]) -> Task:
        """Return the task of a document that the validator has passed."""
        command = document["command"]
        return Task(
            (command,) if isinstance(command, str) else tuple(command),
            document.get("slot", ""),
            freeze(document["count"]),
            freeze(document.get("attributes") or {}),
            document.get("distribution"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the task as RFC 14 writes it."""
        document = {"command": list(self.command), "slot": self.slot, "count": thaw(self.count)}
        if self.attributes:
            document["attributes"] = thaw(self.attributes)
        if self.distribution is not None:
            document["distribution"] = self.distribution
        return document
