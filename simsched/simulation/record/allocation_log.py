"""``allocations.jsonl``: one R per line, written during the run.

Each line is ``{"id": job, "event": "alloc"|"release", "time": t, "R": {…}}``; the release shards of
a job add up to its alloc.  A release of the whole allocation repeats the text of the alloc's R, so that
each R is encoded once.
"""

from __future__ import annotations

from copy import copy
from math import inf
from os import SEEK_END
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.errors import RunError
from simsched.match.emit import document
from simsched.match.state.selection import with_arrays
from simsched.simulation.record.r_text import PlainText

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection

#: Lines that are collected before they are written to the file.
BATCH = 1024

_encode = msgspec.json.Encoder().encode
MOMENT = 1e-6
"""Seconds until the R of a job of zero seconds expires: RFC 20 requires an expiration after the start."""


class AllocationLog:
    """Encodes allocations as lines; they go to `sink`, or stay in memory without one.

    `durations` holds, per job, the requested seconds (inf: no expiration, 0 in RFC 20); `policies` are the
    scheduler attributes of R beside the queue.
    """

    def __init__(
        self,
        ids: Sequence[int | str],
        durations: Sequence[float],
        index: Index,
        policies: Mapping[str, str],
        sink: BinaryIO | None = None,
    ) -> None:
        self._ids = ids
        self._durations = durations
        self._index = index
        self._plain = PlainText(index)
        self._policies = policies
        self._closings: dict[str, str] = {}  # queue → the end of R: its scheduler attributes
        self._closing: list[str] = []  # of each job
        self._texts: list[str | None] = []  # R of each job, until the release repeats it
        self._lines: list[str] = []
        self.sink = sink

    def extend(self, queues: Sequence[str]) -> None:
        """Make place for the next jobs of the run, which are in these queues."""
        for queue in queues:
            if queue not in self._closings:
                scheduler = _encode({"queue": queue, **self._policies}).decode()
                self._closings[queue] = f',"attributes":{{"system":{{"scheduler":{scheduler}}}}}}}'
            self._closing.append(self._closings[queue])
            self._texts.append(None)

    def detached(self) -> AllocationLog:
        """Return a log with the lines so far, which does not change with this one."""
        made = copy(self)
        made._lines, made._texts, made._closing = list(self._lines), list(self._texts), list(self._closing)
        return made

    def alloc(self, job: int, now: float, selection: Selection) -> None:
        """Write the allocation of `selection` to a job."""
        seconds = self._durations[job]
        self._grant(job, now, selection, now, 0 if seconds == inf else now + (seconds or MOMENT))

    def replace(self, job: int, now: float, selection: Selection, start: float) -> None:
        """Write that a job, which runs since `start`, has another R from now on: a release, and an alloc."""
        self.release(job, now)
        self.again(job, now, selection, start, 0)

    def again(self, job: int, now: float, selection: Selection, start: float, suspended: float) -> None:
        """Write that a job, which began at `start` and was suspended for some seconds, has this R now."""
        seconds = self._durations[job]
        end = 0 if seconds == inf else start + suspended + (seconds or MOMENT)
        self._grant(job, now, selection, start, end)

    def _grant(self, job: int, now: float, selection: Selection, begin: float, end: float) -> None:
        """Write an alloc whose R holds from begin to end (0: it does not expire)."""
        text = self._plain.text(selection, _number(begin), _number(end), self._closing[job])
        if text is None:
            text = self._document(job, selection, begin, end)
        self._texts[job] = text
        self._write(job, "alloc", now, text)

    def release(self, job: int, now: float) -> None:
        """Write the release of all resources of a job; a suspended one, which ends, has none."""
        text = self._texts[job]
        if text is not None:
            self._texts[job] = None
            self._write(job, "release", now, text)

    def release_shard(self, job: int, now: float, selection: Selection, *, last: bool) -> None:
        """Write the release of some targets of a job; after the `last` shard it holds none."""
        if last:
            self._texts[job] = None
        self._write(job, "release", now, self._document(job, selection, now, 0))

    def _write(self, job: int, event: str, now: float, text: str) -> None:
        id_ = self._ids[job]
        id_text = f'"{_number(id_)}"' if type(id_) is int else _encode(id_).decode()
        lines = self._lines
        lines.append(f'{{"id":{id_text},"event":"{event}","time":{_number(now)},"R":{text}}}\n')
        if len(lines) >= BATCH and self.sink is not None:
            self.flush_to(self.sink)

    def _document(self, job: int, selection: Selection, begin: float, end: float) -> str:
        """Return an R that is not plain, as JSON."""
        found = document(with_arrays(selection), self._index, starttime=begin, expiration=end)
        return _encode(found).decode().removesuffix("}") + self._closing[job]

    def flush(self) -> None:
        """Write the lines to the sink if there is one."""
        if self.sink is not None:
            self.flush_to(self.sink)

    def state(self) -> dict[int, bytes]:
        """Return job → the text of its R, for each job that holds resources."""
        return {job: text.encode() for job, text in enumerate(self._texts) if text is not None}

    def restore(self, state: dict[int, bytes]) -> None:
        """Put the log into a state."""
        for job, text in state.items():
            self._texts[job] = text.decode()

    @property
    def readable(self) -> bool:
        """Whether all lines so far can be read: they are in memory, or in a sink that can be read."""
        return self.sink is None or (self.sink.readable() and self.sink.seekable())

    def so_far(self) -> Iterator[bytes]:
        """Yield all lines written so far, from the sink too.

        Raises
        ------
        RunError
            If there is a sink that cannot be read.
        """
        self.flush()
        if self.sink is not None:
            if not self.readable:
                raise RunError("the lines written so far cannot be read back", where="allocations")
            self.sink.seek(0)
            yield from self.sink
            self.sink.seek(0, SEEK_END)
        yield from self.text().encode().splitlines(keepends=True)

    def last_r(self, job: int) -> dict[str, Any] | None:
        """Return the R that a job got last, without its scheduler; None if no allocation is recorded.

        RunError as for `so_far`.
        """
        id_text = _encode(str(self._ids[job]))
        begin = b'{"id":%b,"event":"alloc",' % id_text
        line = next((line for line in reversed(list(self.so_far())) if line.startswith(begin)), None)
        if line is None:
            return None
        found: dict[str, Any] = msgspec.json.decode(line)["R"]
        found.pop("attributes", None)
        return found

    def put_back(self, lines: Iterable[bytes]) -> None:
        """Take over the lines, without line ends, of a run that this one continues."""
        for line in lines:
            self._lines.append(line.decode() + "\n")
            if len(self._lines) >= BATCH:
                self.flush()

    def text(self) -> str:
        """Return the lines that are still in memory: all lines if there is no sink."""
        return "".join(self._lines)

    def flush_to(self, sink: BinaryIO) -> None:
        """Write the lines that are still in memory to `sink`: all lines if the log has no sink of its own."""
        # In parts, because all lines may be hundreds of megabytes.
        parts = (self._lines[at : at + BATCH] for at in range(0, len(self._lines), BATCH))
        sink.writelines("".join(part).encode() for part in parts)
        if self.sink is not None:
            self._lines.clear()


def _number(value: float) -> str:
    """Return a number as JSON."""
    if type(value) is int:
        whole = value  # of a C type where this is compiled
        return f"{whole}"
    return _encode(value).decode()
