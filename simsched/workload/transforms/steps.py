"""Transforms as text, for command lines and study files: ``slice(7d, 14d)``, ``load(1.2)`` and so on.

`transform_forms` lists them; the other modules of this package perform them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, SimschedError, nearest
from simsched.formats.rfc.calls import parse_call
from simsched.workload.transforms import transforms
from simsched.workload.transforms.transform_forms import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

    from simsched.workload.job import Workload

    Step = Callable[[Workload, list[str], np.random.Generator], Workload]


def apply_steps(workload: Workload, steps: Iterable[str], rng: np.random.Generator) -> Workload:
    """Return the workload after the steps, in order.

    Raises
    ------
    ConfigError
        On an unknown step or a wrong argument; it names the step.
    """
    for text in steps:
        workload = _apply(workload, text, rng)
    return workload


def _apply(workload: Workload, text: str, rng: np.random.Generator) -> Workload:
    call = parse_call(text)
    if call is None or call.name not in STEPS:
        meant = nearest(text if call is None else call.name, STEPS)
        hint = f"; did you mean {FORMS[meant].form}?" if meant else ""
        raise ConfigError(f"unknown transform {text!r}{hint}", expected=", ".join(STEPS))
    fewest, most, step = STEPS[call.name]
    try:
        if call.name == "where" and call.inside:
            arguments = [call.inside.strip()]  # a query: its commas and brackets are its own
        else:
            arguments = call.arguments(fewest, most)
        return step(workload, arguments, rng)
    except SimschedError as error:
        raise ConfigError(error.message, where=text, expected=_in_form(call.name, error.expected)) from None


def _in_form(name: str, expected: str | None) -> str:
    """Return the valid values of an argument and the form of its transform."""
    form = FORMS[name].form
    return f"{expected}, in the form {form}" if expected else form


def _time(text: str) -> float:
    from simsched.formats.rfc.duration import parse_duration

    sign = -1 if text.startswith("-") else 1
    return sign * parse_duration(text.removeprefix("-"))


def _slice(workload: Workload, given: list[str], _: np.random.Generator) -> Workload:
    """Keep the jobs of a part of the time; dates are those of the workload's clock."""
    from simsched.formats.rfc.clock import is_date, parse_date, seconds_on

    clock, first = workload.clock, workload.span[0]
    ends = [seconds_on(parse_date(text), clock) - first if is_date(text) else _time(text) for text in given]
    kept = transforms.time_slice(workload, *ends)
    if clock is not None and any(map(is_date, given)):
        between = " to ".join(given) if len(given) > 1 else f"{given[0]} on"
        kept = replace(kept, history=(*workload.history, f"submitted from {between} ({clock.zone_text})"))
        if not len(kept) and len(workload):
            begin, end = map(clock.text, workload.span)
            note = f"no job was submitted from {between}: the workload is from {begin} to {end}"
            kept = replace(kept, notes=(*kept.notes, note))
    return kept


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a number") from None


def _whole(text: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise ConfigError(f"{text!r} is not a valid count", expected="a whole number of at most 9 digits")
    return int(text)


def _estimates(workload: Workload, given: list[str], rng: np.random.Generator) -> Workload:
    if given[0] == "tsafrir":
        longest = max((transforms.seconds_of(job) for job in workload.jobs), default=0.0)
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


def _shake(workload: Workload, given: list[str], rng: np.random.Generator) -> Workload:
    from simsched.workload.transforms.resample import shake

    return shake(workload, _time(given[0]), rng)


def _users(workload: Workload, given: list[str], rng: np.random.Generator) -> Workload:
    from simsched.workload.transforms.resample import scale_users

    return scale_users(workload, _number(given[0]), rng)


def _copies(workload: Workload, given: list[str], rng: np.random.Generator) -> Workload:
    from simsched.workload.transforms.resample import scale_copies

    return scale_copies(workload, _number(given[0]), rng)


def _sessions(workload: Workload, given: list[str], _: np.random.Generator) -> Workload:
    from simsched.workload.transforms.resample import with_think_times

    return with_think_times(workload, *map(_time, given))


def _flurries(workload: Workload, given: list[str], _: np.random.Generator) -> Workload:
    from simsched.workload.transforms.flurries import LEAST, without_flurries

    if given[0] != "out":
        raise ConfigError(f"unknown word {given[0]!r}", expected="flurries(out), or flurries(out, F)")
    return without_flurries(workload, _number(given[1]) if len(given) > 1 else LEAST)


def _cap(workload: Workload, given: list[str], _: np.random.Generator) -> Workload:
    from simsched.workload.transforms.transforms import cap_limits

    return cap_limits(workload, _time(given[0]), *given[1:])


#: Name → (fewest arguments, most arguments, the transform).
STEPS: dict[str, tuple[int, int, Step]] = {
    "slice": (1, 2, _slice),
    "first": (1, 1, lambda w, given, _: transforms.first(w, _whole(given[0]))),
    "where": (1, 1, lambda w, given, _: transforms.where(w, given[0])),
    "thin": (1, 1, lambda w, given, rng: transforms.thin(w, _number(given[0]), rng)),
    "load": (1, 1, lambda w, given, _: transforms.scale_arrivals(w, _number(given[0]))),
    "users": (1, 1, _users),
    "copies": (1, 1, _copies),
    "runtime": (1, 1, lambda w, given, _: transforms.scale_run_times(w, _number(given[0]))),
    "estimates": (1, 2, _estimates),
    "cap": (1, 2, _cap),
    "release": (0, 0, lambda w, _given, _rng: transforms.release(w)),
    "anonymise": (0, 0, lambda w, _given, _rng: transforms.anonymise(w)),
    "shift": (1, 1, lambda w, given, _: transforms.shift(w, _time(given[0]))),
    "rebase": (0, 0, lambda w, _given, _rng: transforms.rebase(w)),
    "repeat": (1, 2, lambda w, given, _: transforms.repeat(w, _whole(given[0]), *map(_time, given[1:]))),
    "resample": (0, 2, _resample),
    "sessions": (0, 1, _sessions),
    "shake": (1, 1, _shake),
    "flurries": (1, 2, _flurries),
}
