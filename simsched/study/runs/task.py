"""`Task`: one run as data.  What it is decides what comes out, never where or when it is performed.

A task names its inputs by the digest of their content, so it means the same on every machine;
its `key` is the digest of all that has a say in the result.  `run_task.perform` runs it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE, BUNDLED, TEXT, MODEL = "file", "bundled", "text", "model"
#: what a run directory may keep besides ``run.json``, ``row.json`` and ``summary.json``
KEEP = ("jobs", "allocations", "eventlog")
#: changed when equal tasks no longer mean equal results
TASK_FORMAT = 1


@cache
def version() -> str:
    """Return the version of simsched, which every worker has to have."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("simsched")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"


def canonical(value: Any) -> bytes:
    """Return JSON of which there is one text a value: keys sorted, no blanks, no NaN.

    Raises
    ------
    ConfigError
        If the value is no JSON.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"not plain data: {error}") from None
    return text.encode()


@dataclass(frozen=True, slots=True)
class Input:
    """An input by the digest of its content.

    Attributes
    ----------
    kind : ``file``, ``bundled`` (with simsched), ``text`` (the content itself: a recipe, a list
        of jobs) or ``model`` (a model of workloads, drawn with the task's seed).
    name : how it was called; it has no part in what the task is.
    sha256 : digest of the bytes, before decompression.
    path : where the file is on the machine that made the task; no part of what the task is.
    text : the content, of a ``text`` or ``model``.
    reading : how a workload is read, keyword arguments of `load_workload`.
    parts : name → digest of the files beside it that it names.
    """

    kind: str
    name: str
    sha256: str
    path: str | None = None
    text: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def find(cls, room: str, name: str, reading: Mapping[str, Any] | None = None) -> Input:
        """Return the input that is a file or a bundled name; `room` is ``clusters`` or ``workloads``.

        Raises
        ------
        ConfigError
            If there is no such file and no such name, or it cannot be read.
        """
        from simsched.bundled import bundled, is_folder, resolve
        from simsched.study.spec.workload_parts import parts_of

        if room == "workloads" and is_folder(name) and name not in bundled(room):
            made = f"a file, such as `simsched workload convert {name} -o jobs.jsonl` makes"
            raise ConfigError("a folder of jobs is not sent to workers", where=name, expected=made)
        path = resolve(room, name)
        kind = BUNDLED if bundled(room).get(str(name)) == path else FILE
        given = dict(reading or {})
        named = parts_of(path, given.get("as_")) if room == "workloads" else {}
        parts = {part: digest_of(file) for part, file in named.items()}
        return cls(kind, str(name), digest_of(path), str(path.resolve()), None, given, parts)

    @classmethod
    def of_text(
        cls, text: str, name: str, *, kind: str = TEXT, reading: Mapping[str, Any] | None = None
    ) -> Input:
        """Return the input that is a content that is at hand; `name` may end like a file's."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(kind, name, digest, None, text, dict(reading or {}))

    def identity(self) -> dict[str, Any]:
        """Return what has a say in the result."""
        kind = self.kind if self.kind == MODEL else "content"
        more = {"reading": dict(self.reading), "parts": dict(self.parts)}
        return {"kind": kind, "sha256": self.sha256, **{key: said for key, said in more.items() if said}}

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as plain data."""
        found: dict[str, Any] = {"kind": self.kind, "name": self.name, "sha256": self.sha256}
        found.update(reading=dict(self.reading), parts=dict(self.parts))
        found.update((key, value) for key in ("path", "text") if (value := getattr(self, key)) is not None)
        return found


def digest_of(path: Path) -> str:
    """Return the sha256 of a file; ConfigError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None


@dataclass(frozen=True, slots=True)
class Measure:
    """Over which time figures are taken, and whether also for each queue.

    `warm_up` and `drain` are seconds of submissions left out at the beginning and the end.
    `figures` are further ones by name, as targets have them: ``p80_wait[user == alice]``.
    """

    warm_up: float = 0.0
    drain: float = 0.0
    by_queue: bool = False
    figures: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        more = {"figures": list(self.figures)} if self.figures else {}
        return {"warm_up": self.warm_up, "drain": self.drain, "by_queue": self.by_queue, **more}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Measure:
        """Return what `to_dict` wrote."""
        return cls(**{**document, "figures": tuple(document.get("figures", ()))})


@dataclass(frozen=True)
class Task:
    """One run.

    Attributes
    ----------
    cluster, edits : the cluster, and the what-if edits that are made to it (see `edits`).
    workload, transforms : the workload, and the steps it goes through (see `workload.steps`).
    options : what a configuration file may hold (``queue-policy``, ``order``, ``queues`` …).
    seed : of the run, of random transforms, and of a model's draw.
    measure : what the figures are taken over.
    keep : what the run directory keeps, of `KEEP`; figures are always kept.
    settings : axis → label, for tables; has no part in what the task is.
    """

    cluster: Input
    workload: Input
    edits: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    measure: Measure = field(default_factory=Measure)
    keep: tuple[str, ...] = ("jobs",)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """The digest of all that has a say in the result: 20 hexadecimal digits, a directory's name."""
        return hashlib.sha256(canonical(self.identity())).hexdigest()[:20]

    def identity(self) -> dict[str, Any]:
        """Return what has a say in the result, as plain data: no names, no paths, no labels."""
        return {
            "format": TASK_FORMAT,
            "cluster": self.cluster.identity(),
            "edits": list(self.edits),
            "workload": self.workload.identity(),
            "transforms": list(self.transforms),
            "options": dict(self.options),
            "seed": self.seed,
            "measure": self.measure.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the whole task as plain data; `from_dict` takes it back."""
        return {
            **self.identity(),
            "cluster": self.cluster.to_dict(),
            "workload": self.workload.to_dict(),
            "keep": list(self.keep),
            "settings": dict(self.settings),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Task:
        """Return the task that `to_dict` wrote."""
        if document.get("format") != TASK_FORMAT:
            raise ConfigError(
                f"a task of format {document.get('format')!r}", expected=f"format {TASK_FORMAT}"
            )
        return cls(
            cluster=Input(**document["cluster"]),
            workload=Input(**document["workload"]),
            edits=tuple(document["edits"]),
            transforms=tuple(document["transforms"]),
            options=dict(document["options"]),
            seed=document["seed"],
            measure=Measure.from_dict(document["measure"]),
            keep=tuple(document["keep"]),
            settings=dict(document["settings"]),
        )

    def to_bytes(self) -> bytes:
        """Return the task as it is sent to a worker."""
        return canonical(self.to_dict())

    @classmethod
    def from_bytes(cls, data: bytes) -> Task:
        """Return the task that `to_bytes` wrote."""
        return cls.from_dict(json.loads(data))

    def changed(self, **changes: Any) -> Task:
        """Return the task with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Row:
    """What one run came to.

    Attributes
    ----------
    key : the task's.
    metrics : figure → value (see `report.summary.METRICS`), NaN where it cannot be computed.
    counts : how many jobs ended in which way.
    queues : queue → figures of its jobs alone, if `Measure.by_queue`.
    settings : the task's labels.
    seconds : how long the run took; the one thing here that differs from time to time.
    """

    key: str
    metrics: Mapping[str, float]
    counts: Mapping[str, int]
    queues: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """Return what of it is the same every time, as JSON (``row.json``)."""
        figures = {"metrics": _plain(self.metrics), "queues": {q: _plain(m) for q, m in self.queues.items()}}
        document = {"key": self.key, **figures, "counts": dict(self.counts), "seed": self.seed}
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_bytes(
        cls, data: bytes, *, settings: Mapping[str, Any] | None = None, seconds: float = 0.0
    ) -> Row:
        """Return the row that `to_bytes` wrote."""
        found = json.loads(data)
        return cls(
            found["key"],
            _numbers(found["metrics"]),
            found["counts"],
            {queue: _numbers(figures) for queue, figures in found["queues"].items()},
            dict(settings or {}),
            found["seed"],
            seconds,
        )


def _plain(figures: Mapping[str, float]) -> dict[str, float | None]:
    """Return numbers of 12 digits; what is not finite becomes null."""
    short = {name: float(f"{value:.12g}") for name, value in figures.items()}
    finite = {name: value if abs(value) < float("inf") else None for name, value in short.items()}
    return {name: int(v) if v is not None and v == int(v) else v for name, v in finite.items()}


def _numbers(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float("nan") if value is None else float(value) for name, value in figures.items()}
