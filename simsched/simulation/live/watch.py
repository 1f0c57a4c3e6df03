"""`Watch`: tells jobs and callbacks of a program of the events of an open simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.arguments import check_callable, wrong
from simsched.errors import ConfigError, RunError, did_you_mean
from simsched.simulation.jobs.lifecycle import ENDED
from simsched.simulation.listeners import Listener

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import Start
    from simsched.simulation.engine import Engine
    from simsched.simulation.live.growth import Arrivals, Growth
    from simsched.simulation.live.live_job import LiveJob

EVENTS = ("submit", "start", "end", "requeue", "change", "pass")
"""The events that callbacks may be registered for; ``change`` is a change of a job's resources."""


class Watch(Listener):
    """The jobs that have not ended, by number, and the callbacks by event.

    Attributes
    ----------
    jobs : number → job, until it is inactive.
    coming : ticket → job that was handed in for a later time.
    calling : the event whose callbacks are called at present, or None.
    """

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        self.jobs: dict[int, LiveJob] = {}
        self.coming: dict[int, LiveJob] = {}
        self.calling: str | None = None
        self._callbacks: dict[str, list[Callable[[Any], None]]] = {name: [] for name in EVENTS}
        self._starts, self._ends = self._callbacks["start"], self._callbacks["end"]
        self._submits, self._passes = self._callbacks["submit"], self._callbacks["pass"]

    def add(self, event: str, callback: Callable[[Any], None]) -> None:
        """Call `callback` at each event of a kind, with the job, or with the simulation for ``pass``.

        Raises
        ------
        ConfigError
            For an unknown event, or a callback that is not a function.
        """
        if event not in self._callbacks:
            meant = did_you_mean(str(event), EVENTS)
            raise ConfigError(f"unknown event {event!r}{meant}", expected=", ".join(EVENTS))
        check_callable("callback", callback)
        if callback is None:
            raise wrong("callback", callback, "a function")
        self._callbacks[event].append(callback)

    @property
    def is_half_done(self) -> bool:
        """Whether an event is half done; a pass is over, unless each event has a pass of its own."""
        each_event = self._simulation.config.passes == "event"
        return self.calling is not None and (self.calling != "pass" or each_event)

    def refuse_halves(self, act: str) -> None:
        """Raise a RunError within a callback whose event is half done, so that there is no whole state."""
        if self.is_half_done:
            raise RunError(
                f"a callback for {self.calling!r} cannot {act} the simulation: its event is not over",
                expected="a process",
            )

    def _call(self, event: str, value: Any) -> None:
        self.calling = event
        for callback in self._callbacks[event]:
            try:
                callback(value)
            except Exception as error:
                name = getattr(callback, "__qualname__", None) or repr(callback)
                what = f"{type(error).__name__}: {error}"
                at = f"{self._simulation.now:g} s"
                raise RunError(f"the callback {name} for {event!r} failed at {at}: {what}") from error
        self.calling = None

    def take_over(self, other: Watch, make: Callable[[LiveJob], LiveJob]) -> None:
        """Watch copies of the jobs of another simulation, without its callbacks."""
        self.jobs = {number: make(job) for number, job in other.jobs.items()}
        self.coming = {ticket: make(job) for ticket, job in other.coming.items()}

    def find_jobs(self, engine: Engine, growth: Growth, arrivals: Arrivals) -> None:
        """Watch the jobs of an engine that was restored: those that have not ended, and those to come."""
        from simsched.simulation.live.live_job import LiveJob

        for number, job in enumerate(growth.handed_in):
            if engine.progress.states[number].name != "INACTIVE":
                self.jobs[number] = live = LiveJob(self._simulation, job)
                live.number = number
                if number in engine.plan.held:
                    live.note_resources(engine.plan.held[number])
        for ticket, job in arrivals.tickets:
            self.coming[ticket] = live = LiveJob(self._simulation, job)
            live.ticket = ticket

    # -- `Listener` -------------------------------------------------------------------------------

    def numbered(self, tickets: Sequence[int], first: int) -> None:
        """Give jobs their numbers."""
        for number, ticket in enumerate(tickets, first):
            live = self.jobs[number] = self.coming.pop(ticket)
            live.number = number

    def submitted(self, job: int, now: float) -> None:
        """Tell of a submission."""
        if self._submits:
            self._call("submit", self.jobs[job])

    def eligible(self, job: int, now: float) -> None:
        """Tell of a change of the state."""
        live = self.jobs[job]
        live.note_change()

    def changed(self, job: int) -> None:
        """Tell of another change of the state."""
        live = self.jobs.get(job)
        if live is None:
            return
        if live.is_watched:
            live.note_change()
        if self._simulation.config.epilog[1]:
            self._forget(live)

    def begun(self, started: Sequence[Start], now: float) -> None:
        """Tell of starts."""
        for job, selection, _ in started:
            live = self.jobs.get(job)
            if live is not None:
                live.note_start(selection)
                if self._starts:
                    self._call("start", live)

    def requeued(self, job: int, now: float, reason: str) -> None:
        """Tell that a job waits again."""
        live = self.jobs[job]
        live.note_requeue()
        self._call("requeue", live)

    def ended(self, job: int, now: float, result: int, reason: str | None) -> None:
        """Tell of an end."""
        live = self.jobs[job]
        live.note_end()
        self._forget(live)
        if self._ends:
            self._call("end", live)

    def passed(self, now: float) -> None:
        """Tell of a scheduling pass."""
        if self._passes:
            self._call("pass", self._simulation)

    def resized(self, job: int, selection: Selection) -> None:
        """Tell that a running job has other resources now."""
        live = self.jobs[job]
        live.note_resources(selection)
        self._call("change", live)

    def _forget(self, live: LiveJob) -> None:
        """Let go of a job that is inactive; one that cleans up changes its state once more."""
        number = live.number
        if number is not None and self._simulation.engine.progress.states[number] is ENDED:
            self.jobs.pop(number, None)
