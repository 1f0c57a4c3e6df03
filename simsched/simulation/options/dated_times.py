"""Times of a run that users give as seconds, durations or dates of the workload's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from simsched.errors import ConfigError
from simsched.formats.rfc.clock import DateText, parse_when, seconds_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.simulation.outages.outages import Outage
    from simsched.workload.job import Workload


@overload
def time_of_run(when: None, workload: Workload, where: str) -> None: ...
@overload
def time_of_run(when: float | str | DateText, workload: Workload, where: str) -> float: ...
@overload
def time_of_run(when: float | str | DateText | None, workload: Workload, where: str) -> float | None: ...


def time_of_run(when: float | str | DateText | None, workload: Workload, where: str) -> float | None:
    """Return the second of a run on a workload; None for None.

    Raises
    ------
    ConfigError
        For a date if the workload has none, or a date before second 0.
    FormatError
        For a text that is not a time.
    """
    if isinstance(when, str):
        when = parse_when(when, where)
    if not isinstance(when, DateText):
        return when
    seconds = seconds_on(when, workload.clock, where)
    if seconds < 0:
        message = f"{when} is before second 0 of the workload: {span_of(workload)}"
        raise ConfigError(message, where=where, expected="a date from then on")
    return seconds


def span_of(workload: Workload) -> str:
    """Return the sentence on the dates of a workload; empty without dates."""
    clock = workload.clock
    if clock is None:
        return ""
    first, last = map(clock.text, workload.span)
    return f"the jobs are submitted from {first} to {last}, {clock.zone_text}"


def notes_on_outages(outages: Iterable[Outage], workload: Workload) -> Iterator[str]:
    """Yield a sentence if outages with dates are before the workload, or after its last submission."""
    clock = workload.clock
    dated = [outage for outage in outages if outage.dates is not None]
    if clock is None or not dated:
        return
    found = [outage.on_clock(clock) for outage in dated]
    before = found.count(None)
    after = sum(outage is not None and outage.start > workload.span[1] for outage in found)
    for number, where in ((before, "end before second 0"), (after, "begin after the last submission")):
        if number:
            yield f"{number:,} of {len(dated):,} outages with dates {where}: {span_of(workload)}"
