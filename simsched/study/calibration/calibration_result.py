"""The result of a calibration as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.report.metrics.intervals import Interval
    from simsched.study.calibration.time_split import TimeSplit
    from simsched.study.calibration.trials import Trial


@dataclass(frozen=True, slots=True)
class Effect:
    """A trial and by how much its error is smaller than another's, in training and on held-out blocks."""

    trial: Trial
    training: Interval
    held_out: Interval


@dataclass(frozen=True, slots=True)
class Errors:
    """The error of a trial with its intervals."""

    training: Interval
    held_out: Interval


@dataclass(frozen=True)
class CalibrationResult:
    """The result of a calibration.

    Attributes
    ----------
    base, final : the baseline, and the settings that were chosen; the same trial if none helps.
    before, after : their errors.
    gain : by how much the error of `final` is smaller than that of `base`.
    alone : the effect of each setting by itself, in the order of the table of knobs.
    steps : the settings that were chosen, one after another, each with its effect beside those before it.
    without : knob that was chosen → effect of leaving it out of the final choice (a loss is negative).
    untried : knob → why none of its settings was tried.
    refused : trials that cannot be compared.
    runs : number of runs.
    """

    split: TimeSplit
    confidence: float
    base: Trial
    final: Trial
    before: Errors
    after: Errors
    gain: Effect
    alone: tuple[Effect, ...]
    steps: tuple[Effect, ...]
    without: Mapping[str, Effect]
    untried: Mapping[str, str]
    refused: tuple[Trial, ...]
    runs: int
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def helps(self) -> bool:
        """Whether the error of the held-out blocks is smaller, beyond chance."""
        return self.gain.held_out.low > 0

    def __bool__(self) -> bool:
        return self.helps
