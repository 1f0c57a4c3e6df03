"""A snapshot: a run at the start of an instant, as one JSON file (gzip if its name ends so).

Everything that happens at that time is still to come.  A run that is resumed from it goes on
as if it had never been interrupted, to the byte.  The file says what it was made from: the
digests of the machine, the jobs and the configuration (see `digest`), the version, and a
digest of itself.  It belongs to exactly these, and anything else is refused.

::

    {"kind": "simsched snapshot", "format": 1, "simsched": "0.1", "time": 86400,
     "inputs": [{"role", "name", "sha256"}], "digests": {"cluster", "workload", "config"}, "config": {…},
     "running": [{"id", "start", "expected_end", "R": {…}}],
     "waiting": [{"id", "submit", "duration", "queue", "place"}],
     "state": {…},                 what `snapshot_state` writes
     "allocations": [{…}, …],      the lines of allocations.jsonl so far; null: not noted
     "eventlog": [{…}, …],         the same of eventlog.jsonl
     "sha256": …}                  of state, allocations and eventlog as they stand here
"""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.errors import FormatError, RunError
from simsched.files import replacing
from simsched.formats.text.documents import read_bytes
from simsched.match.emit import to_rset
from simsched.simulation.checkpoint.saved_engine import restore, state_of
from simsched.simulation.environment import FIRST
from simsched.simulation.record.allocation_log import MOMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simpy.events import Event

    from simsched.simulation.engine import Engine
    from simsched.workload.job import Workload

KIND = "simsched snapshot"
FORMAT = 1
ROLES = {"cluster": "cluster", "workload": "workload", "config": "configuration"}


class Head(msgspec.Struct, forbid_unknown_fields=True):
    """A snapshot as it is read: the parts that are long stay text until they are wanted."""

    kind: str
    format: int
    simsched: str
    time: int | float
    inputs: list[dict[str, Any]]
    digests: dict[str, str]
    config: dict[str, Any]
    running: list[msgspec.Raw]
    waiting: list[msgspec.Raw]
    state: msgspec.Raw
    allocations: list[msgspec.Raw] | None
    eventlog: list[msgspec.Raw] | None
    sha256: str


# -- writing ----------------------------------------------------------------------------------


def schedule_snapshot(
    engine: Engine, workload: Workload, time: float, path: str | Path, identity: Mapping[str, Any]
) -> None:
    """Let the run write a snapshot when it comes to `time` (seconds), before anything happens then.

    `identity` is what the file says of its origin: ``simsched``, ``inputs``, ``digests``, ``config``.
    """

    def take(_: Event) -> None:
        write_snapshot(engine, workload, time, path, identity)

    engine.clock.at(time, FIRST, take)


def write_snapshot(
    engine: Engine, workload: Workload, time: float, path: str | Path, identity: Mapping[str, Any]
) -> None:
    """Write the present state; the file has its name only when it is whole.

    Raises
    ------
    RunError
        If it cannot be written, or if something that is to be saved cannot be.
    """
    with replacing(path) as raw:
        packed = gzip.GzipFile("", "wb", 1, raw, mtime=0) if Path(path).suffix == ".gz" else raw
        for piece in _pieces(engine, workload, time, identity):
            packed.write(piece)
        if packed is not raw:
            packed.close()


def _pieces(engine: Engine, workload: Workload, time: float, identity: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the text of a snapshot piece by piece."""
    head = {
        "kind": KIND,
        "format": FORMAT,
        **identity,
        "time": time,
        "running": list(_running(engine, workload)),
        "waiting": list(_waiting(engine, workload)),
    }
    yield _json(head)[:-1]
    digest = sha256()
    log, events = engine.recorder.log, engine.recorder.events
    parts = {
        "state": iter([_json(state_of(engine))]),
        "allocations": iter([b"null"]) if log is None else _array(log.so_far()),
        "eventlog": iter([b"null"]) if events is None else _array(events.text().encode().splitlines()),
    }
    for name, texts in parts.items():
        yield f',\n"{name}":'.encode()
        for text in texts:
            digest.update(text)
            yield text
    yield f',\n"sha256":"{digest.hexdigest()}"}}\n'.encode()


def _array(lines: Any) -> Iterator[bytes]:
    """Yield a JSON array of lines that are JSON each."""
    mark = b"[\n"
    for line in lines:
        yield mark + line.rstrip(b"\n")
        mark = b",\n"
    yield b"[]" if mark == b"[\n" else b"\n]"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _running(engine: Engine, workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield the jobs that hold something: since when, until when at most, and what."""
    index, never = engine.plan.available.index, float("inf")
    for job, selection in engine.plan.held.items():
        start, end = engine.recorder.start[job], engine.plan.expected_end(job)
        until = 0 if end == never else max(end, start + MOMENT)
        held = to_rset(selection, index, starttime=start, expiration=until)
        yield {
            "id": workload.jobs[job].id,
            "start": start,
            "expected_end": None if end == never else end,
            "R": held.to_dict(),
        }


def _waiting(engine: Engine, workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield the jobs that wait for resources, in the order of their queue."""
    durations, never = engine.prepared.table.durations, float("inf")
    for lane in engine.lanes:
        for place, number in enumerate(lane.waiting, start=1):
            job = workload.jobs[number]
            duration = None if durations[number] == never else durations[number]
            yield {
                "id": job.id,
                "submit": job.submit,
                "duration": duration,
                "queue": job.queue,
                "place": place,
            }


# -- reading ----------------------------------------------------------------------------------


def read_snapshot(path: str | Path) -> Head:
    """Read a snapshot file; whether it fits a run is `restore_run`'s question.

    Raises
    ------
    FormatError
        If it is no snapshot, one of another format, or not the one that was written.
    """
    where = str(path)
    text = read_bytes(path)
    try:
        known = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        kind, form = (msgspec.json.decode(known[name]) for name in ("kind", "format"))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, RecursionError):
        kind = form = None
    if kind != KIND:
        raise FormatError("this is no snapshot", where=where, expected="what run --snapshot-at wrote")
    if form != FORMAT:
        raise FormatError(f"a snapshot of format {form!r}", where=where, expected=f"format {FORMAT}")
    try:
        head = msgspec.json.decode(text, type=Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"this snapshot is damaged: {error}", where=where) from None
    if head.sha256 != _digest_of(head):
        raise FormatError("this snapshot is damaged: its digest is another", where=where)
    return head


def _digest_of(head: Head) -> str:
    digest = sha256(bytes(head.state))
    for lines in (head.allocations, head.eventlog):
        for text in iter([b"null"]) if lines is None else _array(map(bytes, lines)):
            digest.update(text)
    return digest.hexdigest()


def restore_run(engine: Engine, head: Head, identity: Mapping[str, Any], *, where: str) -> None:
    """Put a fresh engine into the state of a snapshot.

    `identity` is what this run would write into a snapshot of its own.

    Raises
    ------
    RunError
        If the snapshot is of another version, cluster, workload or configuration, or lacks what
        this run is to note.
    FormatError
        If its state is none of this run.
    """
    _refuse_other(head, identity, where)
    log, events = engine.recorder.log, engine.recorder.events
    if log is not None and head.allocations is None:
        raise RunError("the snapshot has no allocations", where=where, expected="a run without them")
    if events is not None and head.eventlog is None:
        raise RunError("the snapshot has no event log", where=where, expected="a run without one")
    try:
        state = json.loads(bytes(head.state))
        restore(engine, state, head.time)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError) as error:
        raise FormatError(f"this snapshot is damaged: {error!r}", where=where) from None
    if log is not None:
        log.put_back(map(bytes, head.allocations or ()))
    if events is not None:
        events.put_back(map(bytes, head.eventlog or ()))


def _refuse_other(head: Head, identity: Mapping[str, Any], where: str) -> None:
    if head.simsched != identity["simsched"]:
        raise RunError(
            f"a snapshot of simsched {head.simsched}", where=where, expected=f"one of {identity['simsched']}"
        )
    for role, name in ROLES.items():
        if head.digests.get(role) == identity["digests"][role]:
            continue
        detail = ""
        if role == "config":
            mine, theirs = identity["config"], head.config
            odd = [key for key in mine if _json(mine[key]) != _json(theirs.get(key))]
            detail = "".join(f"; {key} was {theirs.get(key)!r} and is {mine[key]!r}" for key in odd[:3])
        raise RunError(f"a snapshot of another {name}{detail}", where=where, expected=f"the same {name}")
