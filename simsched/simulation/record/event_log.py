"""``eventlog.jsonl``: the events of all jobs according to RFC 18 and 21, in the order in which they happened.

One line per event: ``{"id": job, "timestamp": t, "name": …, "context": {…}}``.  Replaying the
names of one job over `lifecycle.TRANSITIONS` gives the state that the job is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_encode = msgspec.json.Encoder().encode


class EventLog:
    """Collects events as lines."""

    def __init__(self, ids: Sequence[int | str]) -> None:
        self._ids = ids
        self._lines: list[bytes] = []

    def note(self, job: int, now: float, *names: str) -> None:
        """Record events of a job without context, all at `now`."""
        for name in names:
            self._lines.append(_encode({"id": str(self._ids[job]), "timestamp": now, "name": name}) + b"\n")

    def tell(self, job: int, now: float, name: str, context: dict[str, Any]) -> None:
        """Record one event of a job with its context."""
        line = {"id": str(self._ids[job]), "timestamp": now, "name": name, "context": context}
        self._lines.append(_encode(line) + b"\n")

    def put_back(self, lines: Iterable[bytes]) -> None:
        """Take over the lines, without line ends, of a run that this one continues."""
        self._lines.extend(line + b"\n" for line in lines)

    def detached(self) -> EventLog:
        """Return a log with the lines so far, which does not change with this one."""
        made = EventLog(self._ids)
        made._lines = list(self._lines)
        return made

    def text(self) -> str:
        """Return all lines."""
        return b"".join(self._lines).decode()
