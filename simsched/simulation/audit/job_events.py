"""What the audit checks of ``eventlog.jsonl``: RFC 21's transitions, and what the table of jobs says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import RunError
from simsched.simulation.audit.comparing import known
from simsched.simulation.jobs.lifecycle import JobState, step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Result → the states in which its job's events end; jobs that ended are INACTIVE, or in CLEANUP.
LAST = {
    "PENDING": (JobState.NEW, JobState.DEPEND, JobState.PRIORITY, JobState.SCHED),
    "RUNNING": (JobState.RUN,),
}
ENDED = (JobState.CLEANUP, JobState.INACTIVE)
#: Event → the column of the table of jobs that has its time (of the last one, if there are several).
COLUMNS = {"submit": "submit", "start": "start"}


def wrong_events(
    lines: Iterable[bytes], rows: Mapping[str, Mapping[str, Any]], *, cut: bool
) -> Iterator[tuple[str, str]]:
    """Yield (job, what is wrong) of an eventlog; a run that was `cut` has jobs that still clean up."""
    import msgspec

    states: dict[str, JobState] = {}
    times: dict[str, dict[str, float]] = {}
    last = float("-inf")
    for number, line in enumerate(lines, start=1):
        try:
            event = msgspec.json.decode(line)
            name, time, what = str(event["id"]), event["timestamp"] + 0.0, event["name"]
            states[name] = step(states.get(name, JobState.NEW), what)
        except (msgspec.DecodeError, KeyError, TypeError, RunError) as error:
            yield f"(line {number})", f"the eventlog cannot be followed: {error}"
            return
        if time < last:
            yield name, f"line {number} of the eventlog goes back in time, from {last} to {time}"
        last = time
        times.setdefault(name, {})[what] = time
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
        yield f"is {result}, and its events leave it in {state.name}"


def _wrong_times(row: Mapping[str, Any], times: Mapping[str, float]) -> Iterator[str]:
    for event, column in COLUMNS.items():
        expected = known(row[column])
        if expected is not None and times and times.get(event) != expected:
            yield f"table says {column} {expected}, the eventlog {times.get(event)}"
