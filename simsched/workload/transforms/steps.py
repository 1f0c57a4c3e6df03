"""Transforms as text, for command lines and study files: ``slice(7d, 14d)``, ``load(1.2)`` and so on.

`STEPS` has them all; the other modules of this package perform them, and are imported when they do.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import ConfigError, SimschedError, nearest
from simsched.formats.rfc.calls import parse_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

    from simsched.workload.job import Workload


def apply_steps(workload: Workload, steps: Iterable[str], rng: np.random.Generator) -> Workload:
    """Return the workload after the steps, in order.

    Raises
    ------
    ConfigError
        On an unknown step or a wrong argument; it names the step.
    """
    for text in steps:
        call = parse_call(text)
        if call is None or call.name not in STEPS:
            meant = nearest(text if call is None else call.name, STEPS)
            hint = f"; did you mean {STEPS[meant].form}?" if meant else ""
            raise ConfigError(f"unknown transform {text!r}{hint}", expected=", ".join(STEPS))
        step = STEPS[call.name]
        try:
            if call.name == "where" and call.inside:
                given = [call.inside.strip()]  # a query: its commas and brackets are its own
            else:
                given = call.arguments(step.fewest, len(step.kinds))
            if isinstance(step.perform, str):
                module, _, name = step.perform.partition(".")
                perform = getattr(import_module(f"simsched.workload.transforms.{module}"), name)
                values = [kind(argument) for kind, argument in zip(step.kinds, given, strict=False)]
                workload = perform(workload, *values, **({"rng": rng} if step.random else {}))
            else:
                workload = step.perform(workload, given, rng)
        except SimschedError as error:
            expected = f"{error.expected}, in the form {step.form}" if error.expected else step.form
            raise ConfigError(error.message, where=text, expected=expected) from None
    return workload


def draws(text: str) -> bool:
    """Whether a step is random.

    >>> draws("load(1.2)"), draws("thin(0.5)"), draws("estimates(uniform, 2)"), draws("estimates(2)")
    (False, True, True, False)
    """
    call = parse_call(text)
    if call is None or call.name not in STEPS:
        return True
    if call.name == "estimates":
        return any(word in (call.inside or "") for word in ("uniform", "tsafrir"))
    return STEPS[call.name].random


def _time(text: str) -> float:
    from simsched.formats.rfc.duration import parse_duration

    sign = -1 if text.startswith("-") else 1
    return sign * parse_duration(text.removeprefix("-"))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a number") from None


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise ConfigError(f"{text!r} is not a valid count", expected="a whole number of at most 9 digits")
    return int(text)


def _slice(workload: Workload, given: list[str], _: np.random.Generator) -> Workload:
    """Keep the jobs of a part of the time; dates are those of the workload's clock."""
    from simsched.formats.rfc.clock import is_date, parse_date, seconds_on
    from simsched.workload.transforms.transforms import time_slice

    clock, first = workload.clock, workload.span[0]
    ends = [seconds_on(parse_date(text), clock) - first if is_date(text) else _time(text) for text in given]
    kept = time_slice(workload, *ends)
    if clock is not None and any(map(is_date, given)):
        between = " to ".join(given) if len(given) > 1 else f"{given[0]} on"
        kept = replace(kept, history=(*workload.history, f"submitted from {between} ({clock.zone_text})"))
        if not len(kept) and len(workload):
            begin, end = map(clock.text, workload.span)
            note = f"no job was submitted from {between}: the workload is from {begin} to {end}"
            kept = replace(kept, notes=(*kept.notes, note))
    return kept


def _estimates(workload: Workload, given: list[str], rng: np.random.Generator) -> Workload:
    from simsched.workload.job import seconds_of
    from simsched.workload.transforms import transforms

    if given[0] == "tsafrir":
        longest = max(map(seconds_of, workload.jobs), default=0.0)
        return transforms.tsafrir_estimates(
            workload, _time(given[1]) if len(given) > 1 else max(longest, 3600), rng
        )
    if given[0] == "uniform" and len(given) > 1:
        return transforms.uniform_estimates(workload, _number(given[1]), rng)
    if len(given) > 1 or given[0] == "uniform":
        raise ConfigError(
            "there are too many arguments" if len(given) > 1 else "the greatest factor is missing",
            expected="exact, a factor, uniform, F, or tsafrir, LIMIT",
        )
    return transforms.factor_estimates(workload, 1.0 if given[0] == "exact" else _number(given[0]))


def _resample(workload: Workload, given: list[str], rng: np.random.Generator) -> Workload:
    from simsched.workload.transforms.resample import resample, resample_sessions, resample_users

    if given[:1] == ["sessions"]:
        return resample_sessions(workload, rng, *map(_time, given[1:]))
    if len(given) > 1:
        raise ConfigError("there are too many arguments", expected="BLOCK, users, or sessions, THINK")
    if given == ["users"]:
        return resample_users(workload, rng)
    return resample(workload, rng, *map(_time, given))


def _flurries(workload: Workload, given: list[str], _: np.random.Generator) -> Workload:
    from simsched.workload.transforms.flurries import LEAST, without_flurries

    if given[0] != "out":
        raise ConfigError(f"unknown word {given[0]!r}", expected="flurries(out), or flurries(out, F)")
    return without_flurries(workload, _number(given[1]) if len(given) > 1 else LEAST)


class TransformStep(NamedTuple):
    """A transform.

    form, text : how it is written, and its effect in one sentence.
    perform : the function that performs it, as ``module.function`` of this package, or a function of its
        own, which gets the arguments as texts.
    kinds : the readers of its arguments.
    fewest : the number of arguments that must be given.
    random : whether it draws random numbers.
    """

    form: str
    text: str
    perform: str | Callable[[Workload, list[str], np.random.Generator], Workload]
    kinds: tuple[Callable[[str], Any], ...] = ()
    fewest: int = 1
    random: bool = False


STEPS: dict[str, TransformStep] = {
    "slice": TransformStep(
        "slice(BEGIN, END)",
        "the jobs submitted from BEGIN to END (default: no end) after the first submission, or between dates",
        _slice,
        (str, str),
    ),
    "first": TransformStep("first(N)", "the first N jobs", "transforms.first", (_whole,)),
    "where": TransformStep(
        "where(QUERY)",
        "the jobs that a query selects, such as procs >= 64 and user == ada",
        "transforms.where",
        (str,),
    ),
    "thin": TransformStep(
        "thin(SHARE)", "each job with this probability", "transforms.thin", (_number,), random=True
    ),
    "load": TransformStep(
        "load(FACTOR)",
        "offered load times FACTOR, by denser arrivals (days become shorter)",
        "transforms.scale_arrivals",
        (_number,),
    ),
    "users": TransformStep(
        "users(FACTOR)",
        "offered load times FACTOR, by removed or copied users",
        "resample.scale_users",
        (_number,),
        random=True,
    ),
    "copies": TransformStep(
        "copies(FACTOR)",
        "offered load times FACTOR, by removed or copied jobs",
        "resample.scale_copies",
        (_number,),
        random=True,
    ),
    "runtime": TransformStep(
        "runtime(FACTOR)", "run times and limits times FACTOR", "transforms.scale_run_times", (_number,)
    ),
    "estimates": TransformStep(
        "estimates(exact | FACTOR | uniform, F | tsafrir, LIMIT)",
        "limits: the run time, FACTOR times it, 1 to F times it, or by Tsafrir's model up to LIMIT",
        _estimates,
        (str, str),
    ),
    "cap": TransformStep(
        "cap(LIMIT, cut | split | drop)",
        "no limit above LIMIT: longer jobs are cut (default), split into consecutive parts, or dropped",
        "transforms.cap_limits",
        (_time, str),
    ),
    "release": TransformStep("release", "held jobs are released", "transforms.release", fewest=0),
    "anonymise": TransformStep(
        "anonymise", "users, groups, banks and names are replaced", "transforms.anonymise", fewest=0
    ),
    "shift": TransformStep("shift(T)", "every submission later by T", "transforms.shift", (_time,)),
    "rebase": TransformStep("rebase", "the first submission at 0", "transforms.rebase", fewest=0),
    "repeat": TransformStep(
        "repeat(TIMES, PERIOD)",
        "the whole workload TIMES times, one copy per PERIOD (may be left out)",
        "transforms.repeat",
        (_whole, _time),
    ),
    "resample": TransformStep(
        "resample(BLOCK | users | sessions, THINK)",
        "blocks of time (by default chosen by size), users or sessions, drawn at random with repetition",
        _resample,
        (str, str),
        fewest=0,
        random=True,
    ),
    "sessions": TransformStep(
        "sessions(THINK)",
        "think times up to THINK after the user's preceding batch (THINK may be left out)",
        "resample.with_think_times",
        (_time,),
        fewest=0,
    ),
    "shake": TransformStep(
        "shake(T)", "every submission moved at random by up to T", "resample.shake", (_time,), random=True
    ),
    "flurries": TransformStep(
        "flurries(out, F)",
        "bursts of single users are removed; F is their least factor (may be left out)",
        _flurries,
        (str, str),
    ),
}
"""Name → transform, in the order in which they are listed."""
