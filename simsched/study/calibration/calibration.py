"""The answer of a calibration: sentences, tables, JSON, CSV, and the configuration to use."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from simsched.study.calibration import calibration_text
from simsched.study.calibration.calibration_result import CalibrationResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from simsched.report.metrics.intervals import Interval
    from simsched.study.calibration.calibration_result import Effect, Errors
    from simsched.study.calibration.trials import Trial

CALIBRATION_FORMAT = 1


class Calibration(CalibrationResult):
    """The result of `calibrate` (`CalibrationResult`), which can be read, printed and written."""

    @property
    def sentence(self) -> str:
        """The result in a few sentences."""
        return calibration_text.sentence(self)

    def text(self) -> str:
        """Return the whole result for a terminal."""
        return calibration_text.page(self)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration to use, with the measured errors in the table ``calibration``."""
        return {
            **_without_none(self.final.options),
            "calibration": {
                "log": str(self._input("workload").get("name")),
                "sha256": str(self._input("workload").get("sha256")),
                "error_before": _plain(self.before.held_out.estimate),
                "error": _plain(self.after.held_out.estimate),
                "held_out": f"{self.split.held_out} {self.split.unit}s",
                "helps": self.helps,
            },
        }

    def _input(self, role: str) -> Mapping[str, Any]:
        return next((item for item in self.about.get("inputs", ()) if item["role"] == role), {})

    @property
    def frame(self) -> pd.DataFrame:
        """One row per setting by itself: knob, setting, errors, and gains with their intervals."""
        import pandas as pd

        rows = []
        for effect in self.alone:
            ((knob, setting),) = effect.trial.choice
            rows.append(
                {
                    "knob": knob,
                    "setting": setting.label,
                    **_columns("training", effect.trial.training, effect.training),
                    **_columns("held_out", effect.trial.held_out, effect.held_out),
                    "refused": "",
                }
            )
        for trial in self.refused:
            if len(trial.choice) == 1:
                ((knob, setting),) = trial.choice
                rows.append({"knob": knob, "setting": setting.label, "refused": trial.refused})
        names = ["knob", "setting"]
        for part in ("training", "held_out"):
            names += [f"{part}_error", f"{part}_gain", f"{part}_gain_low", f"{part}_gain_high"]
        return pd.DataFrame(rows, columns=[*names, "refused"])

    def to_csv(self) -> str:
        """Return `frame` as CSV."""
        from simsched.report.export import csv_text

        return csv_text(self.frame)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data; equal calibrations give equal data."""
        split = self.split
        return {
            "format": CALIBRATION_FORMAT,
            "helps": self.helps,
            "sentence": self.sentence,
            "confidence": self.confidence,
            "blocks": {
                "unit": split.unit,
                "warm_up": split.warm_up,
                "training": split.training,
                "held_out": split.held_out,
            },
            "error_before": _pair(self.before),
            "error_after": _pair(self.after),
            "gain": _effect(self.gain),
            "held_out_before": _agreement(self.base),
            "held_out_after": _agreement(self.final),
            "alone": [_effect(effect) for effect in self.alone],
            "steps": [_effect(effect) for effect in self.steps],
            "without": {knob: _effect(effect) for knob, effect in self.without.items()},
            "untried": dict(self.untried),
            "refused": [
                {"settings": _choice(trial), "reason": trial.refused, "run": trial.key}
                for trial in self.refused
            ],
            "runs": self.runs,
            "never_ran": self.base.never_ran,
            "config": self.config,
            **self.about,
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without values that TOML does not have."""
    return {name: value for name, value in options.items() if value is not None and name != "calibration"}


def _columns(part: str, blocks: Any, gain: Interval) -> dict[str, Any]:
    return {
        f"{part}_error": blocks.error,
        f"{part}_gain": gain.estimate,
        f"{part}_gain_low": gain.low,
        f"{part}_gain_high": gain.high,
    }


def _choice(trial: Trial) -> dict[str, str]:
    return {knob: setting.label for knob, setting in trial.choice}


def _pair(errors: Errors) -> dict[str, Any]:
    return {"training": _interval(errors.training), "held_out": _interval(errors.held_out)}


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "settings": _choice(effect.trial),
        "training": _interval(effect.training),
        "held_out": _interval(effect.held_out),
        "run": effect.trial.key,
    }


def _interval(found: Interval) -> list[float | None]:
    return [_plain(found.estimate), _plain(found.low), _plain(found.high)]


def _agreement(trial: Trial) -> dict[str, Any] | None:
    return None if trial.agreement is None else _deep(trial.agreement.to_dict())


def _deep(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _deep(item) for key, item in value.items()}
    return _plain(value) if isinstance(value, float) else value


def _plain(value: float) -> float | None:
    """Return a number for JSON: 9 digits, None (null) unless it is finite."""
    return float(f"{value:.9g}") if math.isfinite(value) else None
