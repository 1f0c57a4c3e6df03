"""RFC 21 as one table."""

from __future__ import annotations

import pytest

from simsched.errors import RunError
from simsched.simulation.jobs.lifecycle import ENDED, STARTED, TRANSITIONS, JobState, mermaid, replay, step


def test_the_way_of_a_plain_job():
    events = ["submit", "validate", "depend", "priority", "alloc", "start", "finish", "release", "free"]
    states = [replay(events[: n + 1]).name for n in range(len(events))]
    assert states == ["NEW", "DEPEND", "PRIORITY", "SCHED", "RUN", "RUN", "CLEANUP", "CLEANUP", "CLEANUP"]
    assert STARTED is JobState.RUN
    assert ENDED is JobState.INACTIVE


def test_an_exception_ends_a_job_from_wherever_it_is():
    for state in JobState:
        if state not in (JobState.CLEANUP, JobState.INACTIVE):
            assert step(state, "exception") is JobState.CLEANUP


def test_every_state_but_the_last_has_a_way_to_the_end():
    reach = {JobState.INACTIVE}
    for _ in JobState:
        reach |= {before for (before, _), after in TRANSITIONS.items() if after in reach}
    assert reach == set(JobState)


def test_what_is_not_in_the_table_cannot_happen():
    with pytest.raises(RunError, match="'alloc' cannot happen in state DEPEND"):
        replay(["submit", "validate", "alloc"])


def test_the_diagram_has_every_transition():
    text = mermaid()
    assert text.startswith("stateDiagram-v2\n    [*] --> NEW\n")
    assert text.count("-->") == len(TRANSITIONS) + 2
