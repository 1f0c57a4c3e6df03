"""The text of a calibration: its sentence, the tables of settings, and the unexplained rest."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from simsched import human
from simsched.study.calibration.knobs import KNOBS, LEFT_OUT
from simsched.text_table import PAGE_WIDTH, fitted_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.report.metrics.intervals import Interval
    from simsched.study.calibration.calibration_result import CalibrationResult, Effect
    from simsched.study.calibration.trials import Trial

#: an error below this is none
LEAST_ERROR = 0.005
#: parts of the training time in each of which a setting has to help
PARTS = 3
#: a setting may be kept if it takes this share of the error away
LEAST_GAIN = 0.01
#: settings of the table, those that help most in training first
MOST_ROWS = 12


def sentence(found: CalibrationResult) -> str:
    """Return whether the settings help on held-out blocks, and the unexplained rest."""
    weeks = f"the {found.split.held_out} held-out {found.split.unit}s"
    before, after, gain = found.before.held_out, found.after.held_out, found.gain.held_out
    if not found.steps and before.estimate < LEAST_ERROR:
        text = f"The run as given has the waits of the log on {weeks}."
    elif not found.steps and (passed := _beyond_chance(found)) is not None:
        text = f"No setting passes the rule: the error on {weeks} is {before.estimate:.2f}. {passed}"
    elif not found.steps:
        nothing = "Nothing that was tried" if found.runs > 1 else "No setting could be tried, so nothing"
        text = f"{nothing} explains the difference: the error on {weeks} is {before.estimate:.2f}."
    else:
        change = f"from {before.estimate:.2f} to {after.estimate:.2f}"
        inside = f"{human.share(found.confidence)} between {_signed(gain.low)} and {_signed(gain.high)}"
        if found.helps:
            text = f"The error on {weeks} falls {change} (gain {_signed(gain.estimate)}, {inside}): "
            text += f"{found.final.label}."
        else:
            text = (
                f"Settings that help in training ({found.final.label}) do not help beyond chance on {weeks}: "
                f"their error goes {change} (gain {_signed(gain.estimate)}, {inside})."
            )
    return f"{text} {unexplained(found)}"


def _beyond_chance(found: CalibrationResult) -> str | None:
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


def unexplained(found: CalibrationResult) -> str:
    """Return two sentences about the difference that is left on the held-out blocks."""
    left = found.final.agreement
    assert left is not None
    mean, real = left.simulated.mean, left.recorded.mean
    times = f"{mean / real:.2f} times" if real else "against"
    rank = f"{left.rank:.2f}" if math.isfinite(left.rank) else human.MISSING
    return (
        f"What is left: the mean wait of {human.seconds(round(mean))} is {times} the recorded "
        f"{human.seconds(round(real))}, and the order of jobs by wait agrees at {rank}. "
        f"{human.share(1 - left.twofold)} of the jobs still wait more than twice, or less than half, as long "
        "as in the log, for reasons that it does not record or that no knob here stands for."
    )


def page(found: CalibrationResult) -> str:
    """Return the whole result for a terminal."""
    parts = [sentence(found), "\n".join(_blocks(found)), _errors(found)]
    if found.alone:
        parts.append(_alone(found))
    if found.steps:
        parts.append(_steps(found))
    parts += ["\n".join(lines) for lines in (list(_untried(found)), list(_refused(found))) if lines]
    return "\n\n".join(parts) + "\n"


def _blocks(found: CalibrationResult) -> Iterator[str]:
    split = found.split
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    yield (
        f"{runs}; the first {split.unit} is left out, {split.training} {split.unit}s choose, the "
        f"{split.held_out} {split.unit}s after them test"
    )
    never = found.base.never_ran
    if never:
        jobs, are = ("1 job", "is") if never == 1 else (f"{never:,} jobs", "are")
        yield f"{jobs} with a recorded start never ran in the simulation and {are} not compared"


def _errors(found: CalibrationResult) -> str:
    rows = [
        [
            label,
            _between(errors.training),
            _between(errors.held_out),
            *_figures(trial),
        ]
        for label, errors, trial in (
            ("as given", found.before, found.base),
            ("calibrated", found.after, found.final),
        )
    ]
    head = ["error", "training", "held out", "mean wait", "recorded", "rank corr.", "≤ 10 min", "≤ 2 ×"]
    return fitted_table(head, rows, PAGE_WIDTH, ["≤ 10 min", "recorded"])


def _figures(trial: Trial) -> list[str]:
    left = trial.agreement
    assert left is not None
    waits = [human.seconds(round(side.mean)) for side in (left.simulated, left.recorded)]
    rank = f"{left.rank:.2f}" if math.isfinite(left.rank) else human.MISSING
    return [*waits, rank, human.share(left.near), human.share(left.twofold)]


def _alone(found: CalibrationResult) -> str:
    ranked = sorted(found.alone, key=lambda effect: -effect.training.estimate)
    rows = [[*_setting(effect), *_gains(effect)] for effect in ranked[:MOST_ROWS]]
    text = fitted_table(["one at a time", "gain in training", "gain held out"], rows, PAGE_WIDTH)
    rest = len(ranked) - MOST_ROWS
    return text + (f"\n… and {rest} more settings that help less" if rest > 0 else "")


def _setting(effect: Effect) -> list[str]:
    return [effect.trial.label]


def _gains(effect: Effect) -> Sequence[str]:
    return [_signed_between(effect.training), _signed_between(effect.held_out)]


def _steps(found: CalibrationResult) -> str:
    rows = []
    for effect in found.steps:
        knob, setting = effect.trial.choice[-1]
        less = found.without.get(knob)
        rows.append([f"{knob}: {setting.label}", *_gains(effect), _lost(less)])
    head = ["together, one after another", "gain in training", "gain held out", "lost without it"]
    return fitted_table(head, rows, PAGE_WIDTH, ["lost without it"])


def _lost(effect: Effect | None) -> str:
    return human.MISSING if effect is None else _signed(-effect.held_out.estimate)


def _untried(found: CalibrationResult) -> Iterator[str]:
    meanings = {knob.name: knob.meaning for knob in KNOBS}
    for knob, reason in found.untried.items():
        if reason != LEFT_OUT:
            yield f"not tried: {knob} ({meanings[knob]}): {reason}"
    left_out = [knob for knob, reason in found.untried.items() if reason == LEFT_OUT]
    if left_out:
        yield f"{LEFT_OUT}: {', '.join(left_out)}"


def _refused(found: CalibrationResult) -> Iterator[str]:
    for trial in found.refused[:MOST_ROWS]:
        yield f"cannot be compared: {trial.label}: {trial.refused}"


def _between(found: Interval) -> str:
    return f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})"


def _signed_between(found: Interval) -> str:
    return f"{_signed(found.estimate)} ({_signed(found.low)} to {_signed(found.high)})"


def _signed(value: float) -> str:
    return f"{value:+.2f}"
