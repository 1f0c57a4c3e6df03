"""A checkpoint: a run at the start of an instant, as one JSON file (gzip if its name ends so).

Everything that happens at that time is still to come.  A run that continues from it gives the
same bytes as one that was never interrupted.  The file names its origin: the digests of the
cluster, the configuration and, of a closed run, the jobs (`machine_digest` …), the version, and a digest
of itself.  It can be used for a run of exactly this origin; any other is refused.  An open run has its
jobs in the file: those that were handed in, and those to come.

::

    {"kind": "simsched checkpoint", "format": 11, "simsched": "0.1",
     "inputs": [{"role", "name", "sha256"}], "digests": {"cluster", "workload", "config"}, "config": {…},
     "time": 86400,
     "running": [{"id", "start", "expected_end", "R": {…}}],
     "waiting": [{"id", "submit", "duration", "queue", "place"}],
     "open": {"specs": [{…}], "jobs": …},   the jobspecs and the jobs of an open run; null for a closed one
     "state": {…},                 an `EngineState`, as `Codec` writes it
     "allocations": [{…}, …],      the lines of allocations.jsonl so far; null if they are not written
     "eventlog": [{…}, …],         the same of eventlog.jsonl
     "sha256": …}                  of the file up to here

Values of a run's state as exact JSON: a value that is read back has the same type and is equal.

Numbers, texts, truth values, None and lists are themselves.  Everything else is an object
with one key for its kind: ``{"float": "inf"}``, ``{"tuple": […]}``, ``{"set": […]}``,
``{"map": [[key, value], …]}``, ``{"ints": […]}`` (a NumPy array) …, or the name of one of the
classes below with its state.  Other classes are refused, on writing and on reading.

Digests of the inputs of a run by content: the machine, the jobs and the configuration.

A file that was moved, compressed or rewritten with the same content has the same digest.  A workload
that was transformed has another digest than its file.
"""

from __future__ import annotations

import gzip
import json
from array import array
from dataclasses import is_dataclass
from hashlib import sha256
from json import JSONEncoder
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from simsched._version import version
from simsched.errors import FormatError, RunError
from simsched.files import replacing
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.text.documents import read_bytes
from simsched.graph.build.networkx_graph import from_rows
from simsched.graph.cluster import Cluster
from simsched.graph.resource_graph import CONTAINMENT
from simsched.graph.write.plain_graph import rows_of
from simsched.match.emit import to_rset
from simsched.match.requests.compile import compile_request, with_amount
from simsched.match.state.availability import Availability
from simsched.match.state.selection import LazySelection, Selection, with_arrays
from simsched.match.state.selection_codec import selection_from_dict, selection_to_dict
from simsched.schedule.graph_shadow import GraphShadow
from simsched.schedule.supply import FixedShadow, NoShadow
from simsched.simulation.engine import EngineState, RunProgress, capture, restore
from simsched.simulation.queue_groups import attributes_of
from simsched.simulation.record.allocation_log import MOMENT
from simsched.simulation.record.run_directory import finite
from simsched.workload.job import ArrayTask, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request
    from simsched.simulation.engine import Engine
    from simsched.simulation.options.run_config import RunConfig
    from simsched.workload.job import Workload


NEWER = ("nodelist", "qos", "energy", "array_task")
"""Fields of `Job` that earlier versions do not have."""

_encode = JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode


def machine_digest(cluster: Cluster) -> str:
    """Return the SHA-256 of all parts of a cluster that matching uses."""
    found = sha256()
    index = cluster.index
    _take(found, [index.ranks, index.up, list(index.hosts), index.target_type])
    _take(found, [sorted(index.property_rows), *(row for _, row in sorted(index.property_rows.items()))])
    for name, pool in index.pool_types.items():
        texts = [str(ids) for ids in dict.fromkeys(pool.ids)]
        _take(found, [name, pool.unit, pool.named, pool.pos, pool.size, pool.target, pool.up, texts])
    for name, vertices in index.vertex_types.items():
        _take(found, [name, list(vertices.names), vertices.pos, vertices.end, vertices.ids, vertices.up])
    others = [edge for edge in cluster.graph.edges(keys=True) if edge[2] != CONTAINMENT]
    _take(found, [sorted(others)])
    return found.hexdigest()


def _take(found: Any, values: Iterable[Any]) -> None:
    for value in values:
        # each part is preceded by its length, so that no two lists of parts are the same bytes
        part = value.tobytes() if isinstance(value, np.ndarray) else _encode(value).encode()
        found.update(str(len(part)).encode() + b":" + part)


def jobs_digest(jobs: Sequence[Job]) -> str:
    """Return the SHA-256 of all jobs, their requests included."""
    found = sha256()
    requests: dict[int, int] = {}
    specs = {id(job.jobspec): job.jobspec for job in jobs}
    for number, (key, spec) in enumerate(specs.items()):
        requests[key] = number
        _take(found, [spec.to_dict()])
    _take(found, [[requests[id(job.jobspec)] for job in jobs]])
    for name in Job.__struct_fields__:
        if name == "jobspec":
            continue
        column = [getattr(job, name) for job in jobs]
        # Jobs without the field have the digest that they had before there was one.
        if name not in NEWER or any(column):
            _take(found, [name, column])
    return found.hexdigest()


def config_digest(config: RunConfig) -> str:
    """Return the SHA-256 of a configuration with its queues; policies given as objects count by name."""
    values = {**config.to_dict(), "queues": config.queues}
    return sha256("\n".join(map(repr, values.items())).encode()).hexdigest()


#: Classes whose attributes are their state.
OBJECTS: tuple[type, ...] = (EngineState, RunProgress, FixedShadow, GraphShadow, NoShadow)
_NAMED = {kind.__name__: kind for kind in (*OBJECTS, Selection, Availability, Job)}
USUAL = {name: getattr(Job(id=0, submit=0, jobspec=None), name) for name in Job.__struct_fields__}  # type: ignore[arg-type]
"""Field of a job → its default, which a file does not repeat."""
_fields_of = attrgetter(*USUAL)
_SIMPLE = frozenset({int, str, bool, type(None)})
_KINDS = {"i": "ints", "u": "words", "f": "floats", "b": "bools"}


class Codec:
    """Turns the values of one run into JSON values and back.

    `requests` are the compiled requests by kind: a selection names the one that it answers.  `specs` are the
    jobspecs of jobs, which are named by their places; those of jobs that are written are added.  Jobs are
    themselves as long as they stay `in_memory`.
    """

    def __init__(
        self,
        index: Index,
        requests: Sequence[Request | None],
        specs: Iterable[Jobspec] = (),
        *,
        in_memory: bool = False,
    ) -> None:
        self._index = index
        self._in_memory = in_memory
        self.specs = list(specs)
        self._places = {id(spec): place for place, spec in enumerate(self.specs)}
        self._requests = requests
        self._kinds = {_question(r): kind for kind, r in enumerate(requests) if r is not None}

    def place_of(self, request: Request) -> list[Any]:
        """Return what identifies a request: its kind, whether it takes whole nodes, and chosen amounts."""
        chosen = [[number, amount] for number, amount in request.chosen.items()]
        return [self._kinds[_question(request)], request.alone, chosen]

    def request_at(self, place: list[Any]) -> Request:
        """Return the request that `place_of` identifies."""
        kind, alone, chosen = place
        found = self._requests[kind]
        assert found is not None
        request: Request = found
        if request.alone != alone:
            request = compile_request(request.jobspec, self._index, request.dialect, alone=alone)
        for number, amount in chosen:
            request = with_amount(request, number, amount, self._index)
        return request

    # -- out --------------------------------------------------------------------------------

    def plain(self, value: Any) -> Any:
        """Return a value as JSON.

        Raises
        ------
        RunError
            For a value of a class that is not known here.
        """
        if value is None or isinstance(value, str | bool):
            return value
        if type(value) is Job:
            return {"Job": value if self._in_memory else self._job(value)}
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return value if isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return self._listed(value)
        return self._tagged(value)

    def _listed(self, values: list[Any]) -> Any:
        """Return a list; a table of whole numbers as one row of them, since there may be very many."""
        if values and set(map(type, values)) == {tuple}:
            widths, kinds = set(map(len, values)), {type(item) for row in values for item in row}
            if len(widths) == 1 and kinds == {int}:
                return {"table": [widths.pop(), *(item for row in values for item in row)]}
        return [
            item if type(item) in _SIMPLE or (type(item) is float and isfinite(item)) else self.plain(item)
            for item in values
        ]

    def _tagged(self, value: Any) -> Any:
        kind = type(value)
        if kind is Selection or isinstance(value, LazySelection):
            full = with_arrays(value)
            return {"Selection": {"request": self.place_of(full.request), **selection_to_dict(full)}}
        if kind is Availability:
            return {"Availability": self._named(value.state())}
        if kind in OBJECTS:
            return {kind.__name__: self._named(attributes_of(value))}
        if kind is Jobspec:
            place = self._places.setdefault(id(value), len(self.specs))
            if place == len(self.specs):
                self.specs.append(value)
            return {"spec": place}
        if kind is dict:
            return {"map": [[self.plain(key), item] for key, item in self._named(value).items()]}
        if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
            return {_KINDS[value.dtype.kind]: [self.plain(item) for item in value.tolist()]}
        for known, tag, out in _OUT:
            if isinstance(value, known):
                return {tag: self.plain(out(value))}
        raise RunError(f"a value of class {kind.__qualname__} cannot be written into a checkpoint")

    def _job(self, job: Job) -> dict[str, Any]:
        """Return the fields of a job that do not have their defaults."""
        found: dict[str, Any] = {"id": job.id, "submit": job.submit}
        for (name, usual), item in zip(USUAL.items(), _fields_of(job), strict=True):
            if item is not usual and item != usual:
                found[name] = item if type(item) in _SIMPLE else self.plain(item)
        return found

    def _named(self, values: dict[Any, Any]) -> dict[Any, Any]:
        """Return named values as JSON; an error has the names down to the value in its place."""
        found = {}
        for name, item in values.items():
            try:
                found[name] = self.plain(item)
            except RunError as error:
                place = f"{name}.{error.where}" if error.where else str(name)
                raise RunError(error.message, where=place) from None
        return found

    # -- in ---------------------------------------------------------------------------------

    def value(self, plain: Any) -> Any:
        """Return the value that a JSON value represents.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it represents none.
        """
        if isinstance(plain, list):
            return [
                item if type(item) in _SIMPLE or type(item) is float else self.value(item) for item in plain
            ]
        if not isinstance(plain, dict):
            return plain
        ((tag, content),) = plain.items()
        if type(content) is Job:
            return content
        if tag in _NAMED:
            return self._object(_NAMED[tag], content)
        if tag == "spec":
            return self.specs[content]
        return _IN[tag](self.value(content))

    def _object(self, kind: type, fields: dict[str, Any]) -> Any:
        if kind is Selection:
            return selection_from_dict(fields, self._index, self.request_at(fields["request"]))
        found = {name: self.value(item) for name, item in fields.items()}
        if kind is Availability:
            return Availability.from_state(self._index, found)
        if kind is Job or is_dataclass(kind):
            return kind(**found)
        made: Any = object.__new__(kind)
        if hasattr(made, "__setstate__"):
            made.__setstate__(found)
            return made
        for name, value in found.items():
            setattr(made, name, value)
        return made


def _question(request: Request) -> tuple[Any, Any]:
    """Return what equal requests have in common."""
    return request.jobspec.resources, request.jobspec.constraint


def _table(values: list[int]) -> list[tuple[int, ...]]:
    width, *items = values
    return list(zip(*[iter(items)] * width, strict=True))


_OUT: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (tuple, "tuple", list),
    (set, "set", sorted),
    (frozenset, "set", sorted),
    (bytearray, "bytes", list),
    (bytes, "text", bytes.decode),
    (Dependency, "dependency", Dependency.to_json),
    (ArrayTask, "task", lambda task: [task.array, task.index, task.limit]),
    (array, "numbers", lambda value: [value.typecode, value.tolist()]),
    # what the cluster becomes when nodes join in this instant
    (Cluster, "cluster", lambda value: [value.name, value.source, rows_of(value.graph)]),
)
_IN: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "table": _table,
    "tuple": tuple,
    "map": lambda pairs: {key: value for key, value in pairs},  # noqa: C416 (keys may be tuples)
    "set": set,
    "bytes": bytearray,
    "text": str.encode,
    "dependency": Dependency.from_json,
    "task": lambda parts: ArrayTask(*parts),
    "numbers": lambda pair: array(*pair),
    "cluster": lambda parts: Cluster(from_rows(parts[2]), name=parts[0], source=parts[1]),
    "ints": lambda values: np.array(values, dtype=np.int64),
    "words": lambda values: np.array(values, dtype=np.uint64),
    "floats": lambda values: np.array(values, dtype=np.float64),
    "bools": lambda values: np.array(values, dtype=np.bool_),
}


KIND = "simsched checkpoint"
FORMAT = 11
SEAL = b',\n"sha256":"'
"""Begins the digest of a file, which is of all bytes before."""
DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError)
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
    open: msgspec.Raw
    state: msgspec.Raw
    allocations: list[msgspec.Raw] | None
    eventlog: list[msgspec.Raw] | None
    sha256: str


# -- writing ----------------------------------------------------------------------------------


def identity_of(
    cluster: Cluster,
    config: RunConfig,
    workload: Workload | None = None,
    files: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return what identifies a run in its checkpoints; an open one has no workload."""
    digests = {"cluster": machine_digest(cluster), "config": config_digest(config)}
    if workload is not None:
        digests["workload"] = jobs_digest(workload.jobs)
    return {
        "simsched": version(),
        "inputs": list(files),
        "digests": digests,
        "config": finite(config.to_dict()),
    }


def write_checkpoint(
    engine: Engine, path: str | Path, identity: Mapping[str, Any], jobs: Mapping[str, Any] | None = None
) -> None:
    """Write the present state; the file gets its name only once it is complete.

    `identity` is that of the run at its beginning, `jobs` the jobs of an open run.

    Raises
    ------
    RunError
        If the file cannot be written, or the state has a value that cannot be: of a policy or an order, or an
        event of a program that is still to come at this instant.
    """
    with replacing(path) as raw:
        packed = gzip.GzipFile("", "wb", 1, raw, mtime=0) if Path(path).suffix == ".gz" else raw
        digest = sha256()
        for piece in _pieces(engine, identity, jobs):
            digest.update(piece)
            packed.write(piece)
        packed.write(SEAL + digest.hexdigest().encode() + b'"}\n')
        if packed is not raw:
            packed.close()


def _pieces(engine: Engine, identity: Mapping[str, Any], jobs: Mapping[str, Any] | None) -> Iterator[bytes]:
    """Yield the text of a checkpoint piece by piece, up to its digest."""
    codec = codec_of(engine)
    state = _json(codec.plain(capture(engine)))
    plain = codec.plain(jobs)
    opened = None if jobs is None else {"specs": [spec.to_dict() for spec in codec.specs], "jobs": plain}
    head = {
        "kind": KIND,
        "format": FORMAT,
        **identity,
        "time": engine.now,
        "running": list(_running(engine)),
        "waiting": list(_waiting(engine)),
        "open": opened,
    }
    yield _json(head)[:-1]
    log, events = engine.recorder.log, engine.recorder.events
    parts = {
        "state": iter([state]),
        "allocations": iter([b"null"]) if log is None else _array(log.so_far()),
        "eventlog": iter([b"null"]) if events is None else _array(events.text().encode().splitlines()),
    }
    for name, texts in parts.items():
        yield f',\n"{name}":'.encode()
        yield from texts


def codec_of(engine: Engine, specs: Iterable[Jobspec] = (), *, in_memory: bool = False) -> Codec:
    """Return the codec for the values of this run; `specs` are the jobspecs of a file.

    Its kinds of requests are numbered by their first jobs. Those of the table begin with the expected jobs
    of an open simulation, of which a file has the requests alone, without the hosts of their queues.
    """
    table = engine.prepared.table
    requests = [table.by_kind[kind] for kind in dict.fromkeys(table.kinds)]
    return Codec(engine.plan.index, requests, specs, in_memory=in_memory)


def _array(lines: Any) -> Iterator[bytes]:
    """Yield a JSON array of lines, each of which is JSON."""
    mark = b"[\n"
    for line in lines:
        yield mark + line.rstrip(b"\n")
        mark = b",\n"
    yield b"[]" if mark == b"[\n" else b"\n]"


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise RunError(f"a value cannot be written into a checkpoint: {error}") from None


def _running(engine: Engine) -> Iterator[dict[str, Any]]:
    """Yield the jobs that hold resources: their start, expected end and R."""
    index, never = engine.plan.index, float("inf")
    for job, end, selection in engine.plan.claims():
        start = engine.recorder.start[job]
        until = 0 if end == never else max(end, start + MOMENT)
        held = to_rset(selection, index, starttime=start, expiration=until)
        yield {
            "id": engine.recorder.ids[job],
            "start": start,
            "expected_end": None if end == never else end,
            "R": held.to_dict(),
        }


def _waiting(engine: Engine) -> Iterator[dict[str, Any]]:
    """Yield the jobs that wait for resources, in the order of their queue."""
    durations, never = engine.prepared.table.durations, float("inf")
    for group in engine.queues:
        for place, number in enumerate(group.queue, start=1):
            job = engine.prepared.jobs[number]
            duration = None if durations[number] == never else durations[number]
            yield {
                "id": job.id,
                "submit": job.submit,
                "duration": duration,
                "queue": job.queue,
                "place": place,
            }


# -- reading ----------------------------------------------------------------------------------


def read_checkpoint(path: str | Path, *, of_open: bool = False) -> Head:
    """Read a checkpoint file, of a closed run or of an open one; `restore_run` checks whether it fits a run.

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
    what, by = "a checkpoint", "run --checkpoint-at"
    if of_open:
        what, by = "a checkpoint of an open simulation", "Simulation.checkpoint"
    other = FormatError(f"not {what}", where=where, expected=f"a file that {by} wrote")
    if kind not in (KIND, "simsched open checkpoint"):  # the second one up to format 6
        raise other
    if form != FORMAT:
        raise FormatError(f"a checkpoint of format {form!r}", where=where, expected=f"format {FORMAT}")
    try:
        head = msgspec.json.decode(text, type=Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"this checkpoint is damaged: {error}", where=where) from None
    if head.sha256 != sha256(text.rpartition(SEAL)[0]).hexdigest():
        raise FormatError("this checkpoint is damaged: its digest does not match", where=where)
    if (bytes(head.open) == b"null") == of_open:
        raise other
    return head


def restore_run(
    engine: Engine,
    head: Head,
    identity: Mapping[str, Any],
    *,
    where: str,
    enter: Callable[[], None] | None = None,
    specs: Iterable[Jobspec] = (),
) -> None:
    """Put a fresh engine into the state of a checkpoint.

    `identity` is what this run would write into a checkpoint of its own; `enter` brings the jobs of an open
    run into it, and `specs` are the jobspecs of those to come.

    Raises
    ------
    RunError
        If the checkpoint is of another version, cluster, workload or configuration, or lacks the
        allocations or events that this run is to write.
    FormatError
        If its state does not fit this run.
    """
    refuse_other(head, identity, where)
    log, events = engine.recorder.log, engine.recorder.events
    if log is not None and head.allocations is None:
        raise RunError("the checkpoint has no allocations", where=where, expected="a run without them")
    if events is not None and head.eventlog is None:
        raise RunError("the checkpoint has no event log", where=where, expected="a run without one")
    try:
        if enter is not None:
            enter()
        restore(engine, codec_of(engine, specs).value(json.loads(bytes(head.state))))
    except DAMAGE as error:
        raise FormatError(f"this checkpoint is damaged: {error!r}", where=where) from None
    engine.recorder.put_back(map(bytes, head.allocations or ()), map(bytes, head.eventlog or ()))


def refuse_other(head: Head, identity: Mapping[str, Any], where: str) -> None:
    """Raise a RunError unless a checkpoint is of this version, cluster, workload and configuration."""
    if head.simsched != identity["simsched"]:
        mine = f"one of {identity['simsched']}"
        raise RunError(f"a checkpoint of simsched {head.simsched}", where=where, expected=mine)
    for role, name in ROLES.items():
        if head.digests.get(role) == identity["digests"].get(role):
            continue
        detail = ""
        if role == "config":
            mine, theirs = identity["config"], head.config
            odd = [key for key in mine if _json(mine[key]) != _json(theirs.get(key))]
            detail = "".join(f"; {key} was {theirs.get(key)!r} and is {mine[key]!r}" for key in odd[:3])
        raise RunError(f"a checkpoint of another {name}{detail}", where=where, expected=f"the same {name}")
