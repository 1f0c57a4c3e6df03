"""`RunDocument`: the content of ``run.json``, the record of a run, and the lines of the files beside it."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from simsched.declare.answers import WrittenKeys, extended
from simsched.formats.cluster.rset import WrittenR
from simsched.formats.rfc.clock import ClockDocument
from simsched.simulation.record.allocation_reader import AllocationRecord
from simsched.simulation.record.run_origin import Command

Allocation = extended("Allocation", AllocationRecord, event=Literal["alloc", "release"], R=WrittenR)
"""A line of ``allocations.jsonl``."""
Summary = dict[str, float | None]
"""The figures of ``summary.json``; one that could not be computed is null."""


class JobEvent(WrittenKeys):
    """A line of ``eventlog.jsonl``: an event of a job (RFC 18, 21)."""

    id: str
    timestamp: float
    name: str
    context: NotRequired[dict[str, Any]]


class InputOfRun(WrittenKeys):
    """An input: its name and the digest of its content; null for a folder."""

    role: Literal["cluster", "workload"]
    name: str
    sha256: str | None


class MachineOfRun(WrittenKeys):
    """The cluster: its number of execution targets, and the units of each type of resource."""

    name: str | None
    targets: int
    totals: dict[str, int]


class WorkloadOfRun(WrittenKeys):
    """The workload, and the number of records that were not read, by reason."""

    name: str
    skipped: dict[str, int]


class WindowOfReservation(WrittenKeys):
    """A time (s) of a reservation, and its targets; the end is null if it has none.

    cores : rank: idset of the reserved cores, if not all of them.
    """

    start: float
    end: float | None
    ranks: str
    hosts: str
    cores: NotRequired[dict[str, str]]


class ReservationOfRun(WrittenKeys):
    """An advance reservation.

    longer : seconds for which it may be longer.
    announced : time (s) from which it was known, if not from the beginning.
    refused : why it was refused.
    """

    name: str
    windows: list[WindowOfReservation]
    overlaps: NotRequired[bool]
    flex: NotRequired[bool]
    magnetic: NotRequired[bool]
    licenses: NotRequired[dict[str, int]]
    longer: NotRequired[float]
    announced: NotRequired[float]
    refused: NotRequired[str]


class UseOfLog(WrittenKeys):
    """The largest use in a log that was played, and the seconds for which it is more than the machine has."""

    unit: str
    capacity: int
    peak: int
    peak_time: float | None
    over: float


class ReplayFigures(UseOfLog):
    """The differences between a run and the log that it played; times in seconds.

    jobs : number of jobs that started.
    late : number of jobs that started later than in the log.
    mean_delay, max_delay : of these jobs.
    latest : the job with the longest delay.
    without_start : number of jobs without a start in the log.
    before_submission : number of jobs that start before their submission in the log.
    named : number of jobs whose nodes the log names.
    elsewhere : number of them that started on other nodes.
    missing_nodes : the most frequent names of nodes that the machine does not have.
    missing_node_count : number of these names.
    """

    jobs: int
    late: int
    mean_delay: float
    max_delay: float
    latest: str | None
    without_start: int
    before_submission: int
    named: int
    elsewhere: int
    missing_nodes: dict[str, int]
    missing_node_count: int


RunTimes = TypedDict("RunTimes", {"complete": bool, "until": float | None, "from": float | None})


class RunDocument(WrittenKeys, RunTimes):
    """The record of a run; times in seconds.

    simsched : version that made it.
    created : date.
    complete : whether the run was not interrupted.
    until : time of a run that was ended before all jobs had; null for the end of the last job.
    from : submissions before it are not measured.
    config : the configuration of the run.
    queue_stops : queue: the times in which it starts no job; the end is null if it has none.
    counts : number of jobs, of those that ran, and by result.
    wall_seconds : seconds that the simulation took.
    command : the command line of the run.
    log_use : how the log uses the machine.
    drawn : whether the jobs were drawn from a model.
    files : file of the run: its digest (SHA-256).
    sha256 : digest of this record, without the date and the speed.
    """

    simsched: str
    format: int
    created: str
    seed: int
    config: dict[str, Any]
    whole_nodes: bool
    inputs: list[InputOfRun]
    cluster: MachineOfRun
    workload: WorkloadOfRun
    queue_stops: dict[str, list[tuple[float, float | None]]]
    clock: NotRequired[ClockDocument]
    counts: dict[str, int]
    wall_seconds: float
    jobs_per_second: float
    reservations: NotRequired[list[ReservationOfRun]]
    replay: NotRequired[ReplayFigures]
    command: NotRequired[Command]
    log_use: NotRequired[str]
    drawn: NotRequired[bool]
    renewals: NotRequired[list[Any]]
    live: NotRequired[bool]
    files: dict[str, str]
    sha256: str
