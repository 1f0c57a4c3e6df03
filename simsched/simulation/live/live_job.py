"""`LiveJob`: a job of an open simulation, as the program that submitted it sees it."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Protocol

from simsched import human
from simsched.errors import RunError
from simsched.formats.cluster.rset import ResourceSet
from simsched.match.emit import to_rset
from simsched.match.state.selection import with_arrays
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.record.allocation_log import MOMENT
from simsched.simulation.record.recorder import CANCELED, RESULTS
from simsched.text_table import html_table

if TYPE_CHECKING:
    from simpy import Environment, Event

    from simsched.graph.cluster import Cluster
    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection
    from simsched.simulation.engine import Engine
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.workload.job import Job

UNLIMITED = float("inf")


class Owner(Protocol):
    """The simulation that a job was submitted to."""

    cluster: Cluster
    prepared: Prepared

    @property
    def engine(self) -> Engine:
        """The engine."""

    @property
    def env(self) -> Environment:
        """The simpy environment."""

    def cancel(self, job: LiveJob) -> None:
        """Cancel a job."""

    def update(self, job: LiveJob, duration: float | str) -> None:
        """Change the requested seconds of a job."""

    def resize(self, job: LiveJob, size: int, *, beside_queue: bool = False) -> Event:
        """Change the number of execution targets of a running job."""


class LiveJob:
    """A job that was submitted to an open simulation.

    Attributes
    ----------
    job : the job as it was submitted.
    number : its place among the jobs in submit order; None until its submit time.
    ticket : by which it can be withdrawn before its submit time.
    """

    __slots__ = ("_changed", "_ended", "_index", "_selection", "_sim", "_started", "_withdrawn",
                 "job", "number", "ticket")  # fmt: skip

    def __init__(self, sim: Owner, job: Job) -> None:
        """Use `Simulation.submit`."""
        self._sim = sim
        self.job = job
        self.number: int | None = None
        self.ticket = 0
        self._withdrawn = False
        self._selection: Selection | None = None
        self._index: Index | None = None  # of the selection: the cluster may grow afterwards
        self._started: Event | None = None
        self._ended: Event | None = None
        self._changed: Event | None = None

    def copy_in(self, sim: Owner) -> LiveJob:
        """Return the same job in a copy of its simulation."""
        made = LiveJob(sim, self.job)
        made.number, made.ticket, made._withdrawn = self.number, self.ticket, self._withdrawn
        made._selection, made._index = self._selection, self._index
        return made

    def __repr__(self) -> str:
        return f"<LiveJob {self.id}: {self.result or self.state}>"

    def _repr_html_(self) -> str:
        """Return the request, the times and the state of the job as a table, for a notebook."""
        return html_table(f"job {self.id}: {self.result or self.state}", list(self._facts().items()))

    def _facts(self) -> dict[str, str]:
        """Return what a table says of the job, by name."""
        limit, times = self.job.duration, {"start": self.start, "end": self.end}
        known = {name: f"{value:,.10g} s" for name, value in times.items() if value is not None}
        return {
            "user": self.job.user or "-",
            "queue": self.job.queue or "-",
            "request": self.job.jobspec.to_shape(),
            "limit": "none" if limit is None or limit == UNLIMITED else human.seconds(limit),
            "submitted": f"{self.submit:,.10g} s",
            "start": "-",
            "end": "-",
            **known,
            "wait": "-" if self.wait is None else human.seconds(self.wait),
            **({"reason": self.reason} if self.reason else {}),
        }

    @property
    def id(self) -> int | str:
        """The id of the job in the records."""
        return self.job.id

    @property
    def submit(self) -> float:
        """The submit time, in seconds."""
        return self.job.submit

    @property
    def state(self) -> str:
        """The state after RFC 21: NEW until its submit time, then DEPEND, SCHED, RUN, CLEANUP or INACTIVE."""
        if self.number is None:
            return JobState.INACTIVE.name if self._withdrawn else JobState.NEW.name
        return JobState(self._sim.engine.progress.states[self.number]).name

    @property
    def suspended(self) -> bool:
        """Whether the job is suspended for others: its state is RUN, and it holds no resources."""
        return self.state == JobState.RUN.name and self.number not in self._sim.engine.plan.until

    @property
    def result(self) -> str | None:
        """How the job ended, as in the table of jobs; None before its end."""
        if self.number is None:
            return RESULTS[CANCELED] if self._withdrawn else None
        name = RESULTS[self._sim.engine.recorder.result[self.number]]
        return None if name in ("PENDING", "RUNNING") else name

    @property
    def reason(self) -> str | None:
        """Why the job was rejected, interrupted or queued again, if it was."""
        return None if self.number is None else self._sim.engine.recorder.reasons.get(self.number)

    @property
    def start(self) -> float | None:
        """When the job started, in seconds; None if it did not yet."""
        return None if self.number is None else _known(self._sim.engine.recorder.start[self.number])

    @property
    def end(self) -> float | None:
        """When the job ended, in seconds; None if it did not yet."""
        return None if self.number is None else _known(self._sim.engine.recorder.end[self.number])

    @property
    def wait(self) -> float | None:
        """Seconds from the submit time to the start; None before the start."""
        start = self.start
        return None if start is None else start - self.submit

    @property
    def R(self) -> ResourceSet | None:  # noqa: N802 (as `Outcome.R`)
        """The resources that the job has, or had until its end (RFC 20); None before its start.

        Those of a job that had ended before this object was made (`Simulation.job`) are read from the
        records.  Without records they are None.
        """
        start = self.start
        if start is None or self.number is None:
            return None
        if self._selection is None:
            return self._recorded_r()
        seconds = self._sim.prepared.table.durations[self.number]
        expiration = 0 if seconds == UNLIMITED else start + (seconds or MOMENT)
        assert self._index is not None
        selection = with_arrays(self._selection)
        return to_rset(selection, self._index, starttime=start, expiration=expiration)

    def _recorded_r(self) -> ResourceSet | None:
        """Return the R of an ended job from the records; None for a job that waits again."""
        log = self._sim.engine.recorder.log
        found = None if self.result is None or log is None else log.last_r(self.number or 0)
        return None if found is None else ResourceSet.from_dict(found)

    # -- events -----------------------------------------------------------------------------------

    @property
    def started(self) -> Event:
        """An event that succeeds when the job starts, with the job as its value.

        If the job ends without a start, the event fails with a `RunError`.
        """
        if self._started is None:
            self._started = self._sim.env.event()
            if self.start is not None:
                self._started.succeed(self)
            elif self.result is not None:
                self._fail_start()
        return self._started

    @property
    def ended(self) -> Event:
        """An event that succeeds when the job ends, however it ends, with the job as its value."""
        if self._ended is None:
            self._ended = self._sim.env.event()
            if self.result is not None:
                self._ended.succeed(self)
        return self._ended

    @property
    def state_changed(self) -> Event:
        """An event that succeeds at the next change of the state, with the name of the new state.

        RunError if the job is INACTIVE: its state does not change any more.
        """
        if self.state == JobState.INACTIVE.name:
            raise RunError(f"job {self.id} has ended ({self.result}), so its state does not change any more")
        if self._changed is None:
            self._changed = self._sim.env.event()
        return self._changed

    def _fail_start(self) -> None:
        event = self._started
        assert event is not None
        why = f": {self.reason}" if self.reason else ""
        event.fail(RunError(f"job {self.id} ended without a start ({self.result}{why})"))
        event.defused = True  # only a process that waits for the start is told

    # -- called by the simulation ------------------------------------------------------------------

    @property
    def is_watched(self) -> bool:
        """Whether anything waits for a change of the state."""
        return self._changed is not None

    def note_resources(self, selection: Selection) -> None:
        """Note that the job has other resources."""
        self._selection, self._index = selection, self._sim.cluster.index

    def note_change(self) -> None:
        """Tell those who wait for a change of the state."""
        event, self._changed = self._changed, None
        if event is not None:
            event.succeed(self.state)

    def note_start(self, selection: Selection) -> None:
        """Note the resources, and tell those who wait for the start."""
        self.note_resources(selection)
        if self._started is not None and not self._started.triggered:
            self._started.succeed(self)
        if self._changed is not None:
            self.note_change()

    def note_end(self) -> None:
        """Tell those who wait for the end, or for a start that will not come."""
        if self._ended is not None:
            self._ended.succeed(self)
        if self._started is not None and not self._started.triggered:
            self._fail_start()
        if self._changed is not None:
            self.note_change()

    def note_requeue(self) -> None:
        """Note that the job waits again; a later start has an event of its own."""
        self._selection = self._started = None
        if self._changed is not None:
            self.note_change()

    def note_withdrawal(self) -> None:
        """Note that the job was cancelled before its submit time."""
        self._withdrawn = True
        self.note_end()

    # -- actions ------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Cancel the job now; one whose submit time is still to come does not take part in the run.

        RunError if the job has ended.
        """
        self._sim.cancel(self)

    def update(self, *, duration: float | str) -> None:
        """Change the requested seconds of the job now, which may be running; an RFC 23 duration is accepted.

        RunError if the job has ended; ConfigError if it has run for longer, or for another value.
        """
        self._sim.update(self, duration)

    def resize(self, size: int, *, beside_queue: bool = False) -> Event:
        """Let the running job shrink or grow to `size` execution targets now; the rest of its work scales.

        The request must be malleable: ``slot=2-8/node``, a range of execution targets.  The event that is
        returned succeeds with the number of targets after the change.  A job grows by all free targets,
        and not at all while jobs wait, unless `beside_queue`.

        RunError for a job that does not run or is not malleable, ConfigError for a size out of its range.
        """
        return self._sim.resize(self, size, beside_queue=beside_queue)


def _known(time: float) -> float | None:
    return None if isnan(time) else time
