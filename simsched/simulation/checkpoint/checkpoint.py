"""A checkpoint: a run at the start of an instant, as one JSON file (gzip if its name ends so).

Everything that happens at that time is still to come.  A run that continues from it gives the
same bytes as one that was never interrupted.  The file names its origin: the digests of the
cluster, the jobs and the configuration (see `input_digests`), the version, and a digest of
itself.  It can be used for a run of exactly these inputs; any other is refused.

::

    {"kind": "simsched checkpoint", "format": 7, "simsched": "0.1", "time": 86400,
     "inputs": [{"role", "name", "sha256"}], "digests": {"cluster", "workload", "config"}, "config": {…},
     "running": [{"id", "start", "expected_end", "R": {…}}],
     "waiting": [{"id", "submit", "duration", "queue", "place"}],
     "state": {…},                 an `EngineState`, as `codec` writes it
     "allocations": [{…}, …],      the lines of allocations.jsonl so far; null if they are not written
     "eventlog": [{…}, …],         the same of eventlog.jsonl
     "sha256": …}                  of the file up to here
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
from simsched.simulation.checkpoint.codec import Codec
from simsched.simulation.engine_state import capture, restore
from simsched.simulation.environment import FIRST
from simsched.simulation.record.allocation_log import MOMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.simulation.engine import Engine
    from simsched.workload.job import Workload

KIND = "simsched checkpoint"
FORMAT = 7
SEAL = b',\n"sha256":"'
"""Begins the digest of a file, which is of all bytes before."""
ROLES = {"cluster": "cluster", "workload": "workload", "config": "configuration"}


class Head(msgspec.Struct, forbid_unknown_fields=True):
    """A checkpoint as it is read: long parts stay text until they are needed."""

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


def schedule_checkpoints(
    engine: Engine, workload: Workload, files: Mapping[float, str | Path], identity: Mapping[str, Any]
) -> None:
    """Let the run write each file at its time (seconds), before the events of that time.

    `identity` names the origin of the run: ``simsched``, ``inputs``, ``digests``, ``config``.
    """

    def write(path: str | Path) -> None:
        write_checkpoint(engine, workload, path, identity)

    engine.future.handle("checkpoint", write)
    for time, path in files.items():
        engine.future.at(time, FIRST, "checkpoint", path)


def write_checkpoint(
    engine: Engine, workload: Workload, path: str | Path, identity: Mapping[str, Any]
) -> None:
    """Write the present state; the file gets its name only once it is complete.

    Raises
    ------
    RunError
        If the file cannot be written, or a policy or an order remembers a value that cannot be.
    """
    with replacing(path) as raw:
        packed = gzip.GzipFile("", "wb", 1, raw, mtime=0) if Path(path).suffix == ".gz" else raw
        digest = sha256()
        for piece in _pieces(engine, workload, identity):
            digest.update(piece)
            packed.write(piece)
        packed.write(SEAL + digest.hexdigest().encode() + b'"}\n')
        if packed is not raw:
            packed.close()


def _pieces(engine: Engine, workload: Workload, identity: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the text of a checkpoint piece by piece, up to its digest."""
    head = {
        "kind": KIND,
        "format": FORMAT,
        **identity,
        "time": engine.now,
        "running": list(_running(engine, workload)),
        "waiting": list(_waiting(engine, workload)),
    }
    yield _json(head)[:-1]
    log, events = engine.recorder.log, engine.recorder.events
    parts = {
        "state": iter([_json(codec_of(engine).plain(capture(engine)))]),
        "allocations": iter([b"null"]) if log is None else _array(log.so_far()),
        "eventlog": iter([b"null"]) if events is None else _array(events.text().encode().splitlines()),
    }
    for name, texts in parts.items():
        yield f',\n"{name}":'.encode()
        yield from texts


def codec_of(engine: Engine) -> Codec:
    """Return the codec for the values of this run.

    Its kinds of requests are numbered by their first jobs. Those of the table begin with the expected jobs
    of an open simulation, of which a file has the requests alone, without the hosts of their queues.
    """
    table = engine.prepared.table
    by_kind = table.by_kind
    return Codec(engine.plan.index, [by_kind[kind] for kind in dict.fromkeys(table.kinds)])


def _array(lines: Any) -> Iterator[bytes]:
    """Yield a JSON array of lines, each of which is JSON."""
    mark = b"[\n"
    for line in lines:
        yield mark + line.rstrip(b"\n")
        mark = b",\n"
    yield b"[]" if mark == b"[\n" else b"\n]"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _running(engine: Engine, workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield the jobs that hold resources: their start, expected end and R."""
    index, never = engine.plan.index, float("inf")
    for job, end, selection in engine.plan.claims():
        start = engine.recorder.start[job]
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
    for group in engine.queues:
        for place, number in enumerate(group.queue, start=1):
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


def read_checkpoint(path: str | Path) -> Head:
    """Read a checkpoint file; `restore_run` checks whether it fits a run.

    Raises
    ------
    FormatError
        If it is not a checkpoint, has another format, or was changed since it was written.
    """
    where = str(path)
    text = read_bytes(path)
    try:
        known = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        kind, form = (msgspec.json.decode(known[name]) for name in ("kind", "format"))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, RecursionError):
        kind = form = None
    if kind != KIND:
        raise FormatError("not a checkpoint", where=where, expected="a file that run --checkpoint-at wrote")
    if form != FORMAT:
        raise FormatError(f"a checkpoint of format {form!r}", where=where, expected=f"format {FORMAT}")
    try:
        head = msgspec.json.decode(text, type=Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"this checkpoint is damaged: {error}", where=where) from None
    if head.sha256 != sha256(text.rpartition(SEAL)[0]).hexdigest():
        raise FormatError("this checkpoint is damaged: its digest does not match", where=where)
    return head


def restore_run(engine: Engine, head: Head, identity: Mapping[str, Any], *, where: str) -> None:
    """Put a fresh engine into the state of a checkpoint.

    `identity` is what this run would write into a checkpoint of its own.

    Raises
    ------
    RunError
        If the checkpoint is of another version, cluster, workload or configuration, or lacks the
        allocations or events that this run is to write.
    FormatError
        If its state does not fit this run.
    """
    _refuse_other(head, identity, where)
    log, events = engine.recorder.log, engine.recorder.events
    if log is not None and head.allocations is None:
        raise RunError("the checkpoint has no allocations", where=where, expected="a run without them")
    if events is not None and head.eventlog is None:
        raise RunError("the checkpoint has no event log", where=where, expected="a run without one")
    try:
        restore(engine, codec_of(engine).value(json.loads(bytes(head.state))))
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError) as error:
        raise FormatError(f"this checkpoint is damaged: {error!r}", where=where) from None
    if log is not None:
        log.put_back(map(bytes, head.allocations or ()))
    if events is not None:
        events.put_back(map(bytes, head.eventlog or ()))


def _refuse_other(head: Head, identity: Mapping[str, Any], where: str) -> None:
    if head.simsched != identity["simsched"]:
        mine = f"one of {identity['simsched']}"
        raise RunError(f"a checkpoint of simsched {head.simsched}", where=where, expected=mine)
    for role, name in ROLES.items():
        if head.digests.get(role) == identity["digests"][role]:
            continue
        detail = ""
        if role == "config":
            mine, theirs = identity["config"], head.config
            odd = [key for key in mine if _json(mine[key]) != _json(theirs.get(key))]
            detail = "".join(f"; {key} was {theirs.get(key)!r} and is {mine[key]!r}" for key in odd[:3])
        raise RunError(f"a checkpoint of another {name}{detail}", where=where, expected=f"the same {name}")
