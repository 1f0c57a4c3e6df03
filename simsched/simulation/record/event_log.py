"""``eventlog.jsonl``: the events of all jobs according to RFC 18 and 21, in the order in which they happened.

One line per event: ``{"id": job, "timestamp": t, "name": …, "context": {…}}``.  Replaying the
names of one job over `lifecycle.TRANSITIONS` gives the state that the job is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from simsched.simulation.jobs.lifecycle import ENDED
from simsched.simulation.listeners import Listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.simulation.engine import Engine

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


class LoggedEvents(Listener):
    """Writes the events of the jobs of a run into its log."""

    def __init__(self, engine: Engine, log: EventLog) -> None:
        self._engine = engine
        self._note, self._tell = log.note, log.tell

    def submitted(self, job: int, now: float) -> None:
        """Note that a job is taken in."""
        self._note(job, now, "submit", "validate")

    def eligible(self, job: int, now: float) -> None:
        """Note that a job waits for nothing but resources."""
        self._note(job, now, "depend", "priority")

    def runs(self, job: int, now: float) -> None:
        """Note a start."""
        self._note(job, now, "alloc", "start")

    def suspended(self, job: int, now: float, reason: str) -> None:
        """Note a suspension."""
        self._tell(job, now, "suspend", {"note": reason})

    def resumed(self, job: int, now: float) -> None:
        """Note that a suspended job goes on."""
        self._note(job, now, "resume")

    def requeued(self, job: int, now: float, reason: str) -> None:
        """Note that a job waits again."""
        self._tell(job, now, "requeue", {"note": reason})

    def ended(self, job: int, now: float, result: int, reason: str | None) -> None:
        """Note an end; a job whose targets clean up releases them later."""
        start = self._engine.recorder.start[job]
        if reason is None:
            self._note(job, now, "finish")
        else:
            self._tell(job, now, "exception", {"type": "fatal", "severity": 0, "note": reason})
        if start != start:  # noqa: PLR0124 (NaN: it never started)
            self._note(job, now, "clean")
        elif self._engine.progress.states[job] is ENDED:
            self._note(job, now, "release", "free", "clean")

    def cleaned(self, job: int, now: float, *, last: bool) -> None:
        """Note that targets of a job are free again."""
        self._note(job, now, "release", *(("free", "clean") if last else ()))
