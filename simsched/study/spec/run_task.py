"""`RunTask`: one run as data.  Its result does not depend on where or when it is performed.

A task names its inputs by the digest of their content, so it means the same on every machine.
Its `key` is the digest of everything that influences the result.  `simsched.study.runs.single_run.perform`
runs it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping  # noqa: TC003 (msgspec reads the annotations)
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

import msgspec

from simsched.declare.answers import UNSET, WrittenKeys, json_of, taken
from simsched.declare.kinds import HIDDEN, ValueKind
from simsched.declare.table import Declared
from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.duration import parse_duration
from simsched.simulation.record import file_digests

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE, BUNDLED, TEXT, MODEL = "file", "bundled", "text", "model"
#: optional parts of a run directory, besides ``run.json``, ``row.json`` and ``summary.json``
KEEP = ("jobs", "allocations", "eventlog")
#: has to change when equal tasks no longer give equal results
TASK_FORMAT = 2
#: lists of jobs above this number of bytes are generated and name no files
MAX_PARTS_BYTES = 32 * 2**20


def canonical_json(value: Any) -> bytes:
    """Return the one canonical JSON text of a value: keys sorted, no blanks, no NaN.

    Raises
    ------
    ConfigError
        if the value is not plain JSON data.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the value is not plain JSON data: {error}") from None
    return text.encode()


class InputIdentity(WrittenKeys):
    """The parts of an input that influence the result of a task.

    sha256 : digest of its content.
    reading : how it is read.
    parts : digests of the files that it names.
    """

    kind: Literal["content", "model"]
    sha256: str
    reading: NotRequired[dict[str, Any]]
    parts: NotRequired[dict[str, str]]


@dataclass(frozen=True, slots=True)
class TaskInput:
    """An input by the digest of its content.

    Attributes
    ----------
    kind : ``file``, ``bundled`` (with simsched), ``text`` (the content itself: a recipe, a list
        of jobs) or ``model`` (a model of workloads, drawn with the task's seed).
    name : the user's name of the input; not part of the identity of the task.
    sha256 : digest of the bytes, before decompression.
    path : path of the file on the machine that made the task; not part of the identity of the task.
    text : the content of a ``text`` or ``model``.
    reading : keyword arguments of `load_workload`.
    parts : name → digest of the files beside the input that it names.
    """

    kind: str
    name: str
    sha256: str
    path: str | None = None
    text: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def find(cls, room: str, name: str, reading: Mapping[str, Any] | None = None) -> TaskInput:
        """Return the input of a file or a bundled name; `room` is ``clusters`` or ``workloads``.

        Raises
        ------
        ConfigError
            if there is no such file or name, or it cannot be read.
        """
        from simsched.bundled import bundled, is_folder, resolve

        if room == "workloads" and is_folder(name) and name not in bundled(room):
            convert = f"a file: simsched workload convert {name} -o jobs.jsonl"
            raise ConfigError("a folder of jobs cannot be sent to workers", where=name, expected=convert)
        path = resolve(room, name)
        kind = BUNDLED if bundled(room).get(str(name)) == path else FILE
        given = dict(reading or {})
        named = parts_of(path, given.get("as_")) if room == "workloads" else {}
        parts = {part: digest_of(file) for part, file in named.items()}
        return cls(kind, str(name), digest_of(path), str(path.resolve()), None, given, parts)

    @classmethod
    def of_text(
        cls, text: str, name: str, *, kind: str = TEXT, reading: Mapping[str, Any] | None = None
    ) -> TaskInput:
        """Return the input of a text; `name` may end like the name of a file."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(kind, name, digest, None, text, dict(reading or {}))

    def identity(self) -> InputIdentity:
        """Return the fields that influence the result."""
        given = {name: dict(getattr(self, name)) or UNSET for name in ("reading", "parts")}
        return taken(InputIdentity, self, kind=MODEL if self.kind == MODEL else "content", **given)


def parts_of(path: Path, as_: str | None = None) -> dict[str, Path]:
    """Return name → file of the files that a list of jobs names, which belong to its content.

    Other workloads have none.
    Missing files are not reported here; the reader of the workload reports them.
    """
    from simsched.workload.load import detect
    from simsched.workload.source import Source

    try:
        source = Source.of(path)
        if source.content is not None or path.stat().st_size > MAX_PARTS_BYTES:
            return {}
        if (as_ or detect(source.head(), path.name)) not in {"jobs", "jsonl"}:
            return {}
        text = source.text()
        names = dict.fromkeys(_names(text)) if "file" in text else {}
    except (SimschedError, OSError):
        return {}
    return {name: path.parent / name for name in names if _is_inside(name) and (path.parent / name).is_file()}


def _names(text: str) -> Iterator[str]:
    from simsched.formats.text.documents import load_document
    from simsched.formats.text.json_text import load_json
    from simsched.formats.text.sniffing import detect_kind

    if detect_kind(text) == "jsonl":
        documents: Any = [load_json(line) for line in text.splitlines() if line.strip()]
    else:
        documents = load_document(text)
    whole = documents if isinstance(documents, dict) else {"jobs": documents}
    entries = whole.get("jobs")
    for entry in [*(entries if isinstance(entries, list) else ()), whole, whole.get("defaults")]:
        if isinstance(entry, dict) and isinstance(entry.get("file"), str):
            yield entry["file"]


def _is_inside(name: str) -> bool:
    """Whether a name stays below its folder, so that the file can be sent with it."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and not Path(name).is_absolute()


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file; ConfigError if it cannot be read."""
    try:
        return file_digests.digest_of(path)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _finite(value: Any, where: str) -> float:
    found = parse_duration(value, where=where)
    if found == inf:
        raise ConfigError("the duration is infinite", where=where, expected="a finite one")
    return found


Finite = Annotated[float, ValueKind(_finite, {"type": ["string", "number"]})]


class MeasureDocument(WrittenKeys):
    """Which jobs and figures a run is measured by; times in seconds."""

    warm_up: float
    drain: float
    by_queue: bool
    figures: NotRequired[tuple[str, ...]]


class Measure(Declared, frozen=True):
    """The figures that a run measures.

    warm_up : time of submissions, in seconds, that is ignored at the beginning.
    drain : time of submissions, in seconds, that is ignored at the end.
    by_queue : whether figures are also measured per queue.
    figures : names of further figures, as in targets: ``p80_wait[user == alice]``.
    """

    warm_up: Finite = 0.0
    drain: Finite = 0.0
    by_queue: bool = False
    figures: Annotated[tuple[str, ...], HIDDEN] = ()

    def document(self) -> MeasureDocument:
        """Return all fields as plain data."""
        return taken(MeasureDocument, self, figures=self.figures or UNSET)


class TaskIdentity(WrittenKeys):
    """All values that influence the result of a task, without names, paths and labels: ``task.json``.

    edits : edits of the cluster.
    transforms : steps that change the workload.
    options : the rules of the run, a configuration (its schema is config).
    """

    format: Annotated[int, json_of(const=TASK_FORMAT)]
    cluster: InputIdentity
    edits: list[str]
    workload: InputIdentity
    transforms: list[str]
    options: dict[str, Any]
    seed: int
    measure: MeasureDocument


@dataclass(frozen=True)
class RunTask:
    """One run.

    Attributes
    ----------
    cluster, edits : the cluster and its edits (see `simsched.study.spec.edits`).
    workload, transforms : the workload and its steps (see `simsched.workload.transforms.steps`).
    options : keys of a configuration file (``queue-policy``, ``order``, ``queues`` …).
    seed : seed of the run, of random transforms, and of the draw of a model.
    measure : the figures to measure.
    keep : parts of `KEEP` that the run directory keeps; figures are always kept.
    settings : axis → label, for tables; not part of the identity of the task.
    """

    cluster: TaskInput
    workload: TaskInput
    edits: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    measure: Measure = field(default_factory=Measure)
    keep: tuple[str, ...] = ("jobs",)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """The digest of everything that influences the result, 20 hexadecimal digits: its folder's name."""
        return hashlib.sha256(canonical_json(self.identity())).hexdigest()[:20]

    def identity(self) -> TaskIdentity:
        """Return all values that influence the result as plain data, without names, paths and labels."""
        return taken(
            TaskIdentity,
            self,
            format=TASK_FORMAT,
            cluster=self.cluster.identity(),
            workload=self.workload.identity(),
            options=dict(self.options),
            measure=self.measure.document(),
        )

    def to_bytes(self) -> bytes:
        """Return all fields as bytes for a worker; ConfigError for a value that is not plain JSON data."""

        def plain(value: Any) -> Any:
            if not hasattr(value, "item"):  # a number of NumPy has one
                raise ConfigError(f"the value is not plain JSON data: {value!r}")
            return value.item()

        return canonical_json(msgspec.to_builtins(self, enc_hook=plain))

    @classmethod
    def from_bytes(cls, data: bytes) -> RunTask:
        """Return the task that `to_bytes` wrote."""
        return msgspec.json.decode(data, type=cls)

    def changed(self, **changes: Any) -> RunTask:
        """Return the task with some fields changed."""
        return replace(self, **changes)
