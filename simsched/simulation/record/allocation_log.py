"""``allocations.jsonl``: one R per line, written during the run.

Each line is ``{"id": job, "event": "alloc"|"release", "time": t, "R": {…}}``; the release shards of
a job add up to its alloc.  A release of the whole allocation repeats the text of the alloc's R, so that
each R is encoded once.
"""

from __future__ import annotations

from os import SEEK_END
from typing import TYPE_CHECKING

import msgspec

from simsched.errors import RunError
from simsched.match.emit import document
from simsched.simulation.record.r_text import PlainText

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection

#: Lines that are collected before they are written to the file.
BATCH = 512

_encode = msgspec.json.Encoder().encode


MOMENT = 1e-6
"""Seconds until the R of a job of zero seconds expires: RFC 20 requires an expiration after the start."""


class AllocationLog:
    """Encodes allocations as lines; they go to `sink`, or stay in memory without one.

    `durations` holds, per job, the requested seconds (inf: no expiration, 0 in RFC 20); `schedulers`
    the scheduler attributes of R (queue and policies).
    """

    def __init__(
        self,
        ids: Sequence[int | str],
        durations: Sequence[float],
        index: Index,
        schedulers: Sequence[Mapping[str, str]],
        sink: BinaryIO | None = None,
    ) -> None:
        self._ids = ids
        self._durations = durations
        self._index = index
        self._schedulers = schedulers
        self._plain = PlainText(index)
        known = {id(attributes): _encode(attributes).decode() for attributes in schedulers}
        self._attributes = [known[id(attributes)] for attributes in schedulers]
        self._texts: dict[int, bytes] = {}  # job → its R, until the release repeats it
        self._lines: list[bytes] = []
        self.sink = sink

    def alloc(self, job: int, now: float, selection: Selection) -> None:
        """Write the allocation of `selection` to a job."""
        duration = self._durations[job]
        until = 0 if duration == float("inf") else now + (duration or MOMENT)
        text = self._plain.of(selection, _number(now), _number(until), self._attributes[job])
        if text is None:
            scheduler = self._schedulers[job]
            text = _encode(
                document(selection, self._index, starttime=now, expiration=until, scheduler=scheduler)
            )
        self._texts[job] = text
        self._write(b'{"id":%b,"event":"alloc","time":%b,"R":%b}\n', job, now, text)

    def release(self, job: int, now: float) -> None:
        """Write the release of all resources of a job."""
        self._write(b'{"id":%b,"event":"release","time":%b,"R":%b}\n', job, now, self._texts.pop(job))

    def release_shard(self, job: int, now: float, selection: Selection, *, last: bool) -> None:
        """Write the release of some targets of a job; after the `last` shard it holds none."""
        scheduler = self._schedulers[job]
        text = _encode(document(selection, self._index, starttime=now, expiration=0, scheduler=scheduler))
        if last:
            del self._texts[job]
        self._write(b'{"id":%b,"event":"release","time":%b,"R":%b}\n', job, now, text)

    def _write(self, line: bytes, job: int, now: float, text: bytes) -> None:
        self._lines.append(line % (_encode(self._ids[job]), _encode(now), text))
        if self.sink is not None and len(self._lines) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the collected lines to the sink."""
        if self.sink is not None:
            self.sink.write(b"".join(self._lines))
            self._lines.clear()

    def state(self) -> dict[int, bytes]:
        """Return job → the text of its R, for each job that holds resources."""
        return self._texts

    def restore(self, state: dict[int, bytes]) -> None:
        """Put the log into a state."""
        self._texts = state

    def so_far(self) -> Iterator[bytes]:
        """Yield all lines written so far, from the sink too.

        Raises
        ------
        RunError
            If there is a sink that cannot be read.
        """
        if self.sink is not None:
            self.flush()
            if not (self.sink.readable() and self.sink.seekable()):
                raise RunError("the lines written so far cannot be read back", where="allocations")
            self.sink.seek(0)
            yield from self.sink
            self.sink.seek(0, SEEK_END)
        yield from b"".join(self._lines).splitlines(keepends=True)

    def put_back(self, lines: Iterable[bytes]) -> None:
        """Take over the lines, without line ends, of a run that this one continues."""
        for line in lines:
            self._lines.append(line + b"\n")
            if self.sink is not None and len(self._lines) >= BATCH:
                self.flush()

    def text(self) -> str:
        """Return the lines that are still in memory: all lines if there is no sink."""
        return b"".join(self._lines).decode()

    def flush_to(self, sink: BinaryIO) -> None:
        """Write the lines that are still in memory to `sink`: all lines if the log has no sink of its own."""
        sink.write(b"".join(self._lines))
        if self.sink is not None:
            self._lines.clear()


def _number(value: float) -> str:
    """Return a number as JSON."""
    return str(value) if isinstance(value, int) else _encode(value).decode()
