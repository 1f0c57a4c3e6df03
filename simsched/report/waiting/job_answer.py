"""`JobWait`: why one job waited, its causes, and its text and data.

`job_wait` finds the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.declare.answers import OrNull, extended, written
from simsched.formats.rfc.clock import Clock, ClockDocument
from simsched.report.waiting.noted_limits import LIMIT
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


class Cause:
    """The codes of causes of a wait.  The code of a shortage has the type behind it: ``short of core``.

    Of a run of which only the tables are available there are shortages, `NOT_ELIGIBLE` and `POLICY`.
    """

    DEPENDENCY, BEGIN, HELD_BACK, STOPPED = "dependency", "begin-time", "held", "queue-stopped"
    SHORT, PLACEMENT, UNAVAILABLE = "short", "placement", "unavailable"
    MAINTENANCE, RESERVATION, ORDER, IN_LOG = "maintenance", "reservation", "order", "recorded"
    ADVANCE, UNDECIDED, INTERRUPTED, BLOCKED = "advance-reservation", "policy", "interrupted", "blocked"
    NOT_ELIGIBLE, POLICY = "not eligible", "policy or placement"


CAUSES: dict[str, str] = {
    Cause.DEPENDENCY: "waits for other jobs, by a dependency or a think time",
    Cause.BEGIN: "may not start before its begin-time",
    Cause.HELD_BACK: "is held: its urgency is 0, or it was submitted on hold",
    Cause.STOPPED: "its queue is stopped",
    LIMIT: "a limit, its own or that of its user, account, queue, QoS or array, has no room for it",
    Cause.INTERRUPTED: "it ran, but was preempted or lost a node, and was queued again",
    Cause.SHORT: "fewer units of a type are free than it requests",
    Cause.PLACEMENT: "enough units are free, but not where and as it requests them",
    Cause.UNAVAILABLE: "enough units would be free if all nodes were up",
    Cause.MAINTENANCE: "it fits, but might still run when maintenance begins",
    Cause.ADVANCE: "it fits, but an advance reservation has the nodes, "
    "or its own does not admit it at that time",
    Cause.BLOCKED: "it fits, but a job before it in its queue waits for a limit that blocks",
    Cause.RESERVATION: "it fits, but might delay a job with a reservation",
    Cause.ORDER: "it fits, but jobs before it in the queue have to start first",
    Cause.IN_LOG: "it fits, but the run plays a log that starts it later",
    Cause.UNDECIDED: "it fits, but the queue policy did not start it yet",
}
"""Code of a cause → its meaning."""
MOST_PERIODS = 25
"""Periods that are printed; a longer list is cut in the middle."""
_WITH_A_JOB = {
    Cause.DEPENDENCY: "waited for job {}",
    Cause.BLOCKED: "fitted, but job {} was before it and waited for a limit that blocks",
    Cause.RESERVATION: "fitted, but might have delayed job {}, which had the reservation",
    Cause.ORDER: "fitted, but job {} was before it in the queue",
}


@dataclass(frozen=True, slots=True)
class WaitPeriod:
    """Some time (s) of a wait with one cause; `job` is the id of the job in the way, if there is one.

    `detail` is a sentence on a limit: how much it allows, and who used how much of it.
    """

    start: float
    end: float
    cause: str
    job: str | None = None
    detail: str = ""

    @property
    def length(self) -> float:
        """Seconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class UnitHolder:
    """A job that held units of a short type: its units, and the unit-seconds within the wait."""

    id: str
    user: str
    units: int
    unit_seconds: float
    until: OrNull


@dataclass(frozen=True, slots=True)
class NodeOutage:
    """Nodes that were unavailable while the job waited for them; `ranks` is an idset, times are seconds."""

    ranks: str
    kind: str
    start: float
    end: OrNull


@dataclass(frozen=True, slots=True)
class ReservedHours:
    """The hours of an advance reservation in which a job might run, in seconds."""

    name: str
    start: float
    end: OrNull


@dataclass(frozen=True, slots=True)
class IdleNode:
    """A node when the free units were not arranged as requested: its free units, and who holds what it lacks.

    `idle` is type → free units, and `held` has (job, type, units) of the types that are too few on it.
    """

    host: str
    idle: dict[str, int]
    held: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class LimitUser:
    """A running job that used a limit: the cause, and its amount as text."""

    cause: str
    id: str
    user: str
    amount: str
    until: OrNull


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWait:
    """Why a job waited: the answer of `why`.

    Attributes
    ----------
    id, user, queue, shape : the job.
    submit : seconds.
    start : seconds; a job that did not start has none, and its wait ends with the run.
    limit : requested seconds; unlimited if infinite, which is null in JSON.
    periods : the causes in the order of time, without gaps; their lengths add up to the wait.
    outages : outages of the time in which the job would have fitted if all nodes were up, and maintenance
        that was to begin before its end.
    reservations : the windows of advance reservations that kept the nodes from it.
    idle : nodes with free units, when these were first not arranged as it requests.
    limit_users : the jobs that used most of a limit, when the job first waited for it.
    holders : jobs that held most of the types that were short, by unit-seconds.
    ahead : how many jobs waited before it at its submission, and their requested node-seconds.
    running : how many jobs ran then, and their remaining requested node-seconds.
    passed : how many jobs that were submitted later started before it, and how many of them by backfill.
    sooner : changes of the request with which it would have fitted sooner, each of them tried.
    clock : the dates of these times, if the run has them.
    """

    id: str
    user: str
    queue: str
    shape: str
    submit: float
    start: float | None
    limit: OrNull
    periods: tuple[WaitPeriod, ...]
    holders: tuple[UnitHolder, ...]
    ahead: tuple[int, float]
    running: tuple[int, float]
    passed: tuple[int, int]
    sooner: tuple[str, ...]
    outages: tuple[NodeOutage, ...] = ()
    reservations: tuple[ReservedHours, ...] = ()
    idle: tuple[IdleNode, ...] = ()
    limit_users: tuple[LimitUser, ...] = ()
    clock: Clock | None = None

    @property
    def wait(self) -> float:
        """Seconds from submission to start, or to the end of the run."""
        return sum(period.length for period in self.periods)

    def by_cause(self) -> dict[str, float]:
        """Return the seconds of each cause, the longest first."""
        found: dict[str, float] = {}
        for cause, periods in groupby(self.periods, key=lambda period: period.cause):
            together = list(periods)
            found[cause] = found.get(cause, 0.0) + (together[-1].end - together[0].start)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        return job_text(self)


def job_text(answer: JobWait) -> str:
    """Return the answer about one job; times are dates if the run knows them."""

    def at(seconds: float) -> str:
        return "the end" if seconds == float("inf") else _moment(answer.clock, seconds)

    lines = [_head(answer), _life(answer)]
    if answer.clock is not None:
        lines.append(f"times are local times: {answer.clock.zone_text}")
    if answer.wait > 0:
        causes = [
            (human.seconds(seconds), human.share(seconds / answer.wait), cause, meaning_of(cause))
            for cause, seconds in answer.by_cause().items()
        ]
        lines += ["", *table_lines(causes, right=(0, 1))]
        lines += ["", *table_lines([("from", "for", "cause"), *_periods(answer)], indent="  ")]
    users = [
        (one.id, one.user, f"{one.units:,}", f"{one.unit_seconds / 3600:,.1f}",
         _moment(answer.clock, one.until)) for one in answer.holders
    ]  # fmt: skip
    limited = [(one.id, one.user, one.amount, _moment(answer.clock, one.until)) for one in answer.limit_users]
    outages = [(one.ranks, one.kind, at(one.start), at(one.end)) for one in answer.outages]
    windows = [(one.name, at(one.start), at(one.end)) for one in answer.reservations]
    tables: tuple[tuple[str, tuple[str, ...], Sequence[tuple[str, ...]]], ...] = (
        ("resources that were short were held by", ("job", "user", "units", "unit hours", "until"), users),
        ("nodes with free units", ("node", "free", "held by"), [_idle(node) for node in answer.idle]),
        ("the limit was used by", ("job", "user", "amount", "until"), limited),
        ("nodes that were unavailable", ("ranks", "cause", "from", "until"), outages),
        ("advance reservations in the way", ("name", "from", "until"), windows),
    )
    for title, head, rows in tables:
        if rows:
            right = [column for column, name in enumerate(head) if name.startswith("unit")]
            lines += ["", title, *table_lines([head, *rows], right, indent="  ")]
    lines += ["", *_others(answer)]
    if answer.sooner:
        lines += ["it would have fitted sooner", *(f"  {change}" for change in answer.sooner)]
    return "\n".join(lines)


def _head(answer: JobWait) -> str:
    facts = [f"user {answer.user}" * bool(answer.user), f"queue {answer.queue}" * bool(answer.queue)]
    who = ", ".join(filter(None, facts))
    limit = "no limit" if answer.limit == float("inf") else f"limit {human.seconds(answer.limit)}"
    return f"job {answer.id}{f' ({who})' if who else ''}: {answer.shape or 'request unknown'}, {limit}"


def _life(answer: JobWait) -> str:
    submitted, waited = f"submitted at {_moment(answer.clock, answer.submit)}", human.seconds(answer.wait)
    if answer.start is None:
        return f"{submitted}, never started, waited {waited} to its end or that of the run"
    if answer.wait == 0:
        return f"{submitted}, started at once"
    return f"{submitted}, started at {_moment(answer.clock, answer.start)}, waited {waited}"


def meaning_of(cause: str) -> str:
    """Return the sentence of a cause."""
    return CAUSES.get(cause, CAUSES[LIMIT if cause.startswith(f"{LIMIT} ") else Cause.SHORT])


def _moment(clock: Clock | None, seconds: float) -> str:
    """Return a time of the run as a date, or counted from second 0."""
    return human.moment(seconds) if clock is None else clock.text(seconds)


def _periods(answer: JobWait) -> list[tuple[str, str, str]]:
    rows = [(_moment(answer.clock, p.start), human.seconds(p.length), _sentence(p)) for p in answer.periods]
    if len(rows) <= MOST_PERIODS:
        return rows
    half = MOST_PERIODS // 2
    between = f"{len(rows) - 2 * half:,} more periods (--format json lists them)"
    return [*rows[:half], ("…", "", between), *rows[-half:]]


def _sentence(period: WaitPeriod) -> str:
    if period.detail:
        return period.detail
    if period.job is not None and period.cause in _WITH_A_JOB:
        return _WITH_A_JOB[period.cause].format(period.job)
    return period.cause


def _idle(node: IdleNode) -> tuple[str, str, str]:
    free = ", ".join(f"{units or 'no'} {_unit(type_, units)}" for type_, units in node.idle.items())
    held = ", ".join(f"job {name} ({units:,} {_unit(type_, units)})" for name, type_, units in node.held)
    return node.host, free, held


def _unit(type_: str, units: int) -> str:
    return type_ if units == 1 or type_ == "memory" else f"{type_}s"


def _others(answer: JobWait) -> list[str]:
    (waiting, theirs), (running, left) = answer.ahead, answer.running
    lines = [
        f"at its submission {jobs_of(waiting)} waited before it, requesting {theirs / 3600:,.1f} node hours",
        f"{jobs_of(running)} ran, with {left / 3600:,.1f} node hours left by their limits",
    ]
    later, backfilled = answer.passed
    if later:
        by = f", {backfilled:,} of them by backfill" if backfilled else ""
        lines.append(f"{jobs_of(later)} submitted later started before it{by}")
    return lines


def jobs_of(number: int) -> str:
    """Return a number of jobs as text."""
    return f"{number:,} job{'' if number == 1 else 's'}"


def job_document(answer: JobWait) -> dict[str, Any]:
    """Return the answer about one job as JSON data, as `JobAnswers` declares; an unlimited time is null."""
    clock = None if answer.clock is None else answer.clock.to_dict()
    return {**written(answer), "clock": clock, "wait": answer.wait, "by_cause": answer.by_cause()}


JobAnswer: Any = extended(
    "JobWait", JobWait, clock=ClockDocument | None, wait=float, by_cause=dict[str, float]
)
JobAnswers = list[JobAnswer]
