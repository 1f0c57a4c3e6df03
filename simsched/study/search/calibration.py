"""The result of a calibration: data, sentences, tables, JSON, CSV, and the configuration to use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from simsched import human
from simsched.declare.answers import WrittenKeys, rounded, taken
from simsched.report.metrics.agreement import Agreement
from simsched.study.search.knobs import KNOBS, LEFT_OUT
from simsched.study.search.search_answer import AboutSearch, SearchAnswer
from simsched.text_table import PAGE_WIDTH, fitted_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from simsched.report.metrics.intervals import Interval
    from simsched.study.search.trials import TimeSplit, Trial

#: an error below this is none
LEAST_ERROR = 0.005
#: parts of the training time in each of which a setting has to help
PARTS = 3
#: a setting may be kept if it takes this share of the error away
LEAST_GAIN = 0.01
#: settings of the table, those that help most in training first
MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class Effect:
    """A trial and its error, or the gain over another's, in training and on held-out blocks."""

    trial: Trial
    training: Interval
    held_out: Interval


Estimate = tuple[float | None, float | None, float | None]
"""A value and the ends of its interval; null if they are not known."""


class BlocksAnswer(WrittenKeys):
    """The blocks of time: their unit, and their number in each part."""

    unit: str
    warm_up: int
    training: int
    held_out: int


class ErrorsAnswer(WrittenKeys):
    """The error of the waits in training and on held-out blocks."""

    training: Estimate
    held_out: Estimate


class EffectAnswer(ErrorsAnswer):
    """By how much settings make the error smaller.

    settings : knob: setting.
    run : key of the run.
    """

    settings: dict[str, str]
    run: str


class RefusedAnswer(WrittenKeys):
    """Settings that cannot be compared."""

    settings: dict[str, str]
    reason: str
    run: str


class FoundRules(WrittenKeys):
    """The result of a calibration; `CalibrationAnswer` has the meanings."""

    format: Literal[1]
    helps: bool
    sentence: str
    confidence: float
    blocks: BlocksAnswer
    error_before: ErrorsAnswer
    error_after: ErrorsAnswer
    gain: EffectAnswer
    held_out_before: Agreement | None
    held_out_after: Agreement | None
    alone: list[EffectAnswer]
    steps: list[EffectAnswer]
    without: dict[str, EffectAnswer]
    untried: dict[str, str]
    refused: list[RefusedAnswer]
    runs: int
    never_ran: int


class CalibrationAnswer(AboutSearch, FoundRules):
    """The result of a calibration, and its inputs.

    format : version of this layout.
    helps : whether the error of the held-out blocks is smaller, beyond chance.
    sentence : the result in words.
    confidence : of intervals.
    blocks : the blocks of time that choose settings and that test them.
    error_before, error_after : the error of the configuration as it was given, and of the one to use.
    gain : by how much the error is smaller with the configuration to use.
    held_out_before, held_out_after : how near the waits of held-out blocks are to the log.
    alone : the effect of each setting by itself.
    steps : the settings that were chosen, one after another, each with its effect beside those before it.
    without : knob that was chosen: the effect of leaving it out (a loss is negative).
    untried : knob: why none of its settings was tried.
    refused : settings that cannot be compared.
    runs : number of runs.
    never_ran : number of jobs with a recorded start that never ran.
    config : the configuration to use (its schema is config).
    log_use : how the log uses the machine.
    """

    config: dict[str, Any]
    log_use: NotRequired[str]


@dataclass(frozen=True)
class Calibration(
    SearchAnswer,
    noun="calibration",
    files=("config.toml", "settings.csv", "calibration.json"),
    keys={"format", "steps", "config", "blocks"},
):
    """The result of `calibrate`, which can be read, printed and written.

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
    before: Effect
    after: Effect
    gain: Effect
    alone: tuple[Effect, ...]
    steps: tuple[Effect, ...]
    without: Mapping[str, Effect]
    untried: Mapping[str, str]
    refused: tuple[Trial, ...]
    runs: int
    about: AboutSearch

    @property
    def helps(self) -> bool:
        """Whether the error of the held-out blocks is smaller, beyond chance."""
        return self.gain.held_out.low > 0

    def __bool__(self) -> bool:
        return self.helps

    @property
    def sentence(self) -> str:
        """The result in a few sentences: whether the settings help on held-out blocks, and the rest."""
        weeks = f"the {self.split.held_out} held-out {self.split.unit}s"
        before, after, gain = self.before.held_out, self.after.held_out, self.gain.held_out
        if not self.steps and before.estimate < LEAST_ERROR:
            text = f"The run as given has the waits of the log on {weeks}."
        elif not self.steps and (passed := _beyond_chance(self)) is not None:
            text = f"No setting passes the rule: the error on {weeks} is {before.estimate:.2f}. {passed}"
        elif not self.steps:
            nothing = "Nothing that was tried" if self.runs > 1 else "No setting could be tried, so nothing"
            text = f"{nothing} explains the difference: the error on {weeks} is {before.estimate:.2f}."
        else:
            change = f"from {before.estimate:.2f} to {after.estimate:.2f} (gain {_signed(gain.estimate)}, "
            change += f"{human.share(self.confidence)} between {_signed(gain.low)} and {_signed(gain.high)})"
            text = f"The error on {weeks} falls {change}: {self.final.label}."
            if not self.helps:
                chosen = f"Settings that help in training ({self.final.label})"
                text = f"{chosen} do not help beyond chance on {weeks}: their error goes {change}."
        return f"{text} {_unexplained(self)}"

    def text(self) -> str:
        """Return the whole result for a terminal."""
        split, never = self.split, self.base.never_ran
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        used = f"{split.training} {split.unit}s choose, the {split.held_out} {split.unit}s after them test"
        blocks = [f"{runs}; the first {split.unit} is left out, {used}"]
        if never:
            jobs, are = ("1 job", "is") if never == 1 else (f"{never:,} jobs", "are")
            blocks.append(f"{jobs} with a recorded start never ran in the simulation and {are} not compared")
        parts = [self.sentence, "\n".join(blocks), _errors(self)]
        if self.alone:
            ranked = sorted(self.alone, key=lambda effect: -effect.training.estimate)
            rows = [[effect.trial.label, *_gains(effect)] for effect in ranked[:MOST_ROWS]]
            text = fitted_table(["one at a time", "gain in training", "gain held out"], rows, PAGE_WIDTH)
            rest = len(ranked) - MOST_ROWS
            parts.append(text + (f"\n… and {rest} more settings that help less" if rest > 0 else ""))
        if self.steps:
            rows = []
            for effect in self.steps:
                knob, setting = effect.trial.choice[-1]
                less = self.without.get(knob)
                lost = human.MISSING if less is None else _signed(-less.held_out.estimate)
                rows.append([f"{knob}: {setting.label}", *_gains(effect), lost])
            head = ["together, one after another", "gain in training", "gain held out", "lost without it"]
            parts.append(fitted_table(head, rows, PAGE_WIDTH, ["lost without it"]))
        meanings = {knob.name: knob.meaning for knob in KNOBS}
        untried = [
            f"not tried: {knob} ({meanings[knob]}): {reason}"
            for knob, reason in self.untried.items()
            if reason != LEFT_OUT
        ]
        left_out = [knob for knob, reason in self.untried.items() if reason == LEFT_OUT]
        untried += [f"{LEFT_OUT}: {', '.join(left_out)}"] if left_out else []
        refused = [f"cannot be compared: {one.label}: {one.refused}" for one in self.refused[:MOST_ROWS]]
        parts += ["\n".join(lines) for lines in (untried, refused) if lines]
        return "\n\n".join(parts) + "\n"

    @property
    def config(self) -> dict[str, Any]:
        """The configuration to use, with the measured errors in the table ``calibration``."""
        log = next(source for source in self.about["inputs"] if source["role"] == "workload")
        return {
            # TOML has no null
            **{name: value for name, value in self.final.options.items() if value is not None},
            "calibration": {
                "log": log["name"],
                "sha256": log["sha256"],
                "error_before": rounded(self.before.held_out.estimate),
                "error": rounded(self.after.held_out.estimate),
                "held_out": f"{self.split.held_out} {self.split.unit}s",
                "helps": self.helps,
            },
        }

    @property
    def frame(self) -> pd.DataFrame:
        """One row per setting by itself: knob, setting, errors, and gains with their intervals."""
        import pandas as pd

        rows: list[list[Any]] = []
        for effect in self.alone:
            ((knob, setting),) = effect.trial.choice
            errors = effect.trial.training.error, effect.trial.held_out.error
            gains = [(gain.estimate, gain.low, gain.high) for gain in (effect.training, effect.held_out)]
            rows.append([knob, setting.label, errors[0], *gains[0], errors[1], *gains[1], ""])
        for trial in self.refused:
            if len(trial.choice) == 1:
                ((knob, setting),) = trial.choice
                rows.append([knob, setting.label, *[None] * 8, trial.refused])
        names = ["knob", "setting"]
        for part in ("training", "held_out"):
            names += [f"{part}_error", f"{part}_gain", f"{part}_gain_low", f"{part}_gain_high"]
        return pd.DataFrame(rows, columns=[*names, "refused"])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data (`CalibrationAnswer`); equal ones give equal data."""
        own = taken(
            FoundRules,
            self,
            format=1,
            blocks=taken(BlocksAnswer, self.split),
            error_before=_errors_of(self.before),
            error_after=_errors_of(self.after),
            gain=_effect(self.gain),
            held_out_before=self.base.agreement and self.base.agreement.to_dict(),
            held_out_after=self.final.agreement and self.final.agreement.to_dict(),
            alone=[_effect(effect) for effect in self.alone],
            steps=[_effect(effect) for effect in self.steps],
            without={knob: _effect(effect) for knob, effect in self.without.items()},
            refused=[
                {"settings": one.settings, "reason": one.refused, "run": one.key} for one in self.refused
            ],
            never_ran=self.base.never_ran,
        )
        return {**rounded(own), "config": self.config, **self.about}

    def write_first(self, path: Path) -> None:
        """Write the configuration to use as TOML, with the result as comments."""
        import tomli_w

        lines = "".join(f"# {line}\n" for line in self.sentence.split(". "))
        path.write_bytes(f"{lines}\n{tomli_w.dumps(self.config)}".encode())


def _errors_of(effect: Effect) -> dict[str, Any]:
    both = {"training": effect.training, "held_out": effect.held_out}
    return {part: (found.estimate, found.low, found.high) for part, found in both.items()}


def _effect(effect: Effect) -> dict[str, Any]:
    return {"settings": effect.trial.settings, **_errors_of(effect), "run": effect.trial.key}


# ------------------------------------------------------------ the words


def _beyond_chance(found: Calibration) -> str | None:
    """Return a sentence on the best setting that the rule left out and whose gains are beyond chance, if any.

    It has the power of the rule for a gain of this size, beside its false alarms: with gains of thirds that
    are normal and independent, each is positive with the probability of its share of the whole.
    """
    least = LEAST_GAIN * found.before.training.estimate
    sound = [
        effect
        for effect in found.alone
        if effect.training.low > 0 and effect.held_out.low > 0 and effect.training.estimate >= least
    ]
    best = max(sound, key=lambda effect: effect.training.estimate, default=None)
    if best is None:
        return None
    normal, gain = NormalDist(), best.training
    wide = (gain.high - gain.low) / (2 * normal.inv_cdf(0.5 + found.confidence / 2))
    power = normal.cdf(gain.estimate / (wide * PARTS**0.5)) ** PARTS if wide > 0 else 1.0
    gains = " and ".join(
        f"{_signed_between(one)} in {where}"
        for one, where in ((gain, "training"), (best.held_out, f"the held-out {found.split.unit}s"))
    )
    number = f"{found.split.training} {found.split.unit}s"
    return (
        f"But {best.trial.label} by itself gains {gains}, both beyond chance. "
        f"The rule asks for a gain in each third of the {number}: a gain of this size passes it with a "
        f"probability of {human.share(power)}, and no effect at all with {human.share(0.5**PARTS)}."
    )


def _unexplained(found: Calibration) -> str:
    """Return two sentences about the difference that is left on the held-out blocks."""
    left = found.final.agreement
    assert left is not None
    mean, real = left.simulated.mean, left.recorded.mean
    times = f"{mean / real:.2f} times" if real else "against"
    return (
        f"What is left: the mean wait of {human.seconds(round(mean))} is {times} the recorded "
        f"{human.seconds(round(real))}, and the order of jobs by wait agrees at {_rank(left)}. "
        f"{human.share(1 - left.twofold)} of the jobs still wait more than twice, or less than half, as long "
        "as in the log, for reasons that it does not record or that no knob here stands for."
    )


def _errors(found: Calibration) -> str:
    rows = []
    for label, error in (("as given", found.before), ("calibrated", found.after)):
        left = error.trial.agreement
        assert left is not None
        waits = [human.seconds(round(side.mean)) for side in (left.simulated, left.recorded)]
        shares = [human.share(left.near), human.share(left.twofold)]
        rows.append([label, _between(error.training), _between(error.held_out), *waits, _rank(left), *shares])
    head = ["error", "training", "held out", "mean wait", "recorded", "rank corr.", "≤ 10 min", "≤ 2 ×"]
    return fitted_table(head, rows, PAGE_WIDTH, ["≤ 10 min", "recorded"])


def _rank(left: Agreement) -> str:
    return f"{left.rank:.2f}" if math.isfinite(left.rank) else human.MISSING


def _gains(effect: Effect) -> Sequence[str]:
    return [_signed_between(effect.training), _signed_between(effect.held_out)]


def _between(found: Interval) -> str:
    return f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})"


def _signed_between(found: Interval) -> str:
    return f"{_signed(found.estimate)} ({_signed(found.low)} to {_signed(found.high)})"


def _signed(value: float) -> str:
    return f"{value:+.2f}"
