"""Rules of the audit for ``eventlog.jsonl``: RFC 21's transitions, and the times in the table of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import RunError
from simsched.simulation.audit.tolerance import known
from simsched.simulation.jobs.lifecycle import JobState, step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Result → the states in which the events of such a job end; finished jobs are INACTIVE or in CLEANUP.
LAST = {
    "PENDING": (JobState.NEW, JobState.DEPEND, JobState.PRIORITY, JobState.SCHED),
    "RUNNING": (JobState.RUN,),
}
ENDED = (JobState.CLEANUP, JobState.INACTIVE)
#: Event → the column of the table of jobs with its time (the last time, if there are several).
COLUMNS = {"submit": "submit", "start": "start"}


def wrong_events(
    lines: Iterable[bytes], rows: Mapping[str, Mapping[str, Any]], *, cut: bool
) -> Iterator[tuple[str, str]]:
    """Yield (job, fault) of an eventlog; in a run that was `cut`, jobs may still be in cleanup."""
    import msgspec

    states: dict[str, JobState] = {}
    times: dict[str, dict[str, float]] = {}
    last = float("-inf")
    for number, line in enumerate(lines, start=1):
        try:
            event = msgspec.json.decode(line)
            name, time, kind = str(event["id"]), event["timestamp"] + 0.0, event["name"]
            states[name] = step(states.get(name, JobState.NEW), kind)
        except (msgspec.DecodeError, KeyError, TypeError, RunError) as error:
            yield f"(line {number})", f"the eventlog cannot be followed: {error}"
            return  # after a wrong transition every later one would seem wrong
        if time < last:
            yield name, f"line {number} of the eventlog goes back in time, from {last} to {time}"
        last = time
        times.setdefault(name, {})[kind] = time
    for name, row in rows.items():
        yield from ((name, fault) for fault in _wrong_end(row, states.get(name), cut=cut))
        yield from ((name, fault) for fault in _wrong_times(row, times.get(name, {})))


def _wrong_end(row: Mapping[str, Any], state: JobState | None, *, cut: bool) -> Iterator[str]:
    result = row["result"]
    if state is None:
        if result not in ("PENDING", "DROPPED"):
            yield f"is {result} and has no events"
        return
    allowed = LAST.get(result, ENDED if cut else ENDED[1:])
    if state not in allowed:
        yield f"is {result}, but its events end in {state.name}"


def _wrong_times(row: Mapping[str, Any], times: Mapping[str, float]) -> Iterator[str]:
    for event, column in COLUMNS.items():
        expected = known(row[column])
        if expected is not None and times and times.get(event) != expected:
            yield f"the table has {column} {expected}, the eventlog {times.get(event)}"
