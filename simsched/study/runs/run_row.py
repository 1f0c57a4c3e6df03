"""The result of one run: its figures, as they are sent between processes and kept in ``row.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping


class RowDocument(TypedDict):
    """The content of ``row.json``; a figure that could not be computed is null.

    key : key of the task.
    metrics : the figures.
    queues : queue: figures of its jobs.
    counts : result of jobs: number of jobs.
    """

    key: str
    metrics: dict[str, float | None]
    queues: dict[str, dict[str, float | None]]
    counts: dict[str, int]
    seed: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """The result of one run.

    Attributes
    ----------
    key : key of the task.
    metrics : figure → value (`simsched.report.metrics.summary.METRICS`), NaN if it cannot be computed.
    counts : result of jobs → number of jobs.
    queues : queue → figures of its jobs, if `Measure.by_queue`.
    settings : labels of the task.
    seconds : time of the run, the only field that differs between equal runs.
    """

    key: str
    metrics: Mapping[str, float]
    counts: Mapping[str, int]
    queues: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """Return the fields that equal runs share as JSON (``row.json``)."""
        document: RowDocument = {
            "key": self.key,
            "metrics": _plain(self.metrics),
            "queues": {queue: _plain(figures) for queue, figures in self.queues.items()},
            "counts": dict(self.counts),
            "seed": self.seed,
        }
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_bytes(
        cls, data: bytes, *, settings: Mapping[str, Any] | None = None, seconds: float = 0.0
    ) -> RunRow:
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
    """Return numbers of 12 digits, and None (null) for numbers that are not finite."""
    short = {name: float(f"{value:.12g}") for name, value in figures.items()}
    finite = {name: value if abs(value) < float("inf") else None for name, value in short.items()}
    return {name: int(v) if v is not None and v == int(v) else v for name, v in finite.items()}


def _numbers(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float("nan") if value is None else float(value) for name, value in figures.items()}
