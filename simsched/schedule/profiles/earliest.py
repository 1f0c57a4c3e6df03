"""The earliest start of a request if nothing else starts: running jobs end and free their resources.

These searches look at expected ends alone. With reservations in between, more time may mean fewer free
resources; then the availability profile is searched (`Profile.earliest`, `GeneralReservations.earliest`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.maintenance import Calendar
    from simsched.schedule.profiles.plan import Moment, Plan

    Seek = Callable[[Availability], "Selection | None"]
    SeekAt = Callable[[Availability, float], "Selection | None"]


class EarliestStart(NamedTuple):
    """The earliest start of a request in seconds, the state of the cluster then, and a selection on it."""

    start: float
    available: Availability
    selection: Selection


def earliest_by_bisection(plan: Plan, request: Request, now: float, seek: Seek) -> EarliestStart | None:
    """Return the earliest start of a request, or None if it does not fit even when all jobs have ended.

    A release never makes a request fit less, so the search gallops over the releases and then bisects
    them. It begins where the sums of free units would suffice.
    """
    moments = plan.moments(now)
    at = _least(plan, request, moments)
    state = plan.available.copy(counts_only=plan.counts_only)
    plan.release_moments(state, moments[:at])
    found = seek(state)
    step = 1
    low, low_at = state, at
    while found is None:
        if at == len(moments):
            return None
        low, low_at = state, at
        at, step = min(at + step, len(moments)), step * 2
        state = low.copy(counts_only=plan.counts_only)
        plan.release_moments(state, moments[low_at:at])
        found = seek(state)
    while at - low_at > 1:
        middle = (low_at + at) // 2
        trial = low.copy(counts_only=plan.counts_only)
        plan.release_moments(trial, moments[low_at:middle])
        chosen = seek(trial)
        if chosen is None:
            low, low_at = trial, middle
        else:
            state, at, found = trial, middle, chosen
    return EarliestStart(moments[at - 1][0] if at else now, state, found)


def earliest_in_turn(plan: Plan, calendar: Calendar, now: float, seek: SeekAt) -> EarliestStart | None:
    """Return the earliest start where a later time may offer less, as a closure begins; None if never.

    Every release and every end of a closure is tried in turn.
    """
    moments = plan.moments(now)
    times = sorted({now, *(end for end, _ in moments), *calendar.reopenings(now)} - {NEVER})
    state = plan.available.copy(counts_only=plan.counts_only)
    done = 0
    for time in times:
        upto = done
        while upto < len(moments) and moments[upto][0] <= time:
            upto += 1
        plan.release_moments(state, moments[done:upto])
        done = upto
        state = calendar.opened(state, now, time, plan.outages)
        found = seek(state, time)
        if found is not None:
            return EarliestStart(time, state, found)
    return None


def _least(plan: Plan, request: Request, moments: Sequence[Moment]) -> int:
    """Return how many moments must pass before the sums of free units could suffice."""
    least = 0
    for type_, need in request.demand.items():
        free = plan.free(type_)
        at = 0
        while free < need and at < len(moments):
            free += sum(plan.held[job].counts.get(type_, 0) for job in moments[at][1])
            at += 1
        least = max(least, at)
    return least
