"""The forms of the transforms, ``slice(BEGIN, END)`` and so on, with a sentence on each.

Errors show the form, the command line lists forms and sentences. `steps` gives them their meaning.
"""

from __future__ import annotations

from typing import NamedTuple


class TransformForm(NamedTuple):
    """How a transform is written, and what it does in one sentence."""

    form: str
    text: str


FORMS: dict[str, TransformForm] = {
    "slice": TransformForm(
        "slice(BEGIN, END)",
        "the jobs submitted from BEGIN to END (default: no end) after the first submission, or between dates",
    ),
    "first": TransformForm("first(N)", "the first N jobs"),
    "where": TransformForm(
        "where(QUERY)", "the jobs that a query selects, such as procs >= 64 and user == ada"
    ),
    "thin": TransformForm("thin(SHARE)", "each job with this probability"),
    "load": TransformForm(
        "load(FACTOR)", "offered load times FACTOR, by denser arrivals (days become shorter)"
    ),
    "users": TransformForm("users(FACTOR)", "offered load times FACTOR, by removed or copied users"),
    "copies": TransformForm("copies(FACTOR)", "offered load times FACTOR, by removed or copied jobs"),
    "runtime": TransformForm("runtime(FACTOR)", "run times and limits times FACTOR"),
    "estimates": TransformForm(
        "estimates(exact | FACTOR | uniform, F | tsafrir, LIMIT)",
        "limits: the run time, FACTOR times it, 1 to F times it, or by Tsafrir's model up to LIMIT",
    ),
    "cap": TransformForm(
        "cap(LIMIT, cut | split | drop)",
        "no limit above LIMIT: longer jobs are cut (default), split into consecutive parts, or dropped",
    ),
    "release": TransformForm("release", "held jobs are released"),
    "anonymise": TransformForm("anonymise", "users, groups, banks and names are replaced"),
    "shift": TransformForm("shift(T)", "every submission later by T"),
    "rebase": TransformForm("rebase", "the first submission at 0"),
    "repeat": TransformForm(
        "repeat(TIMES, PERIOD)", "the whole workload TIMES times, one copy per PERIOD (may be left out)"
    ),
    "resample": TransformForm(
        "resample(BLOCK | users | sessions, THINK)",
        "blocks of time (by default chosen by size), users or sessions, drawn at random with repetition",
    ),
    "sessions": TransformForm(
        "sessions(THINK)", "think times up to THINK after the user's preceding batch (THINK may be left out)"
    ),
    "shake": TransformForm("shake(T)", "every submission moved at random by up to T"),
    "flurries": TransformForm(
        "flurries(out, F)", "bursts of single users are removed; F is their least factor (may be left out)"
    ),
}
"""Name → form and sentence, in the order in which they are listed."""
