"""`FutureEvents`: the events of a run that are still to come, in a simpy environment.

The environment may be the run's own or be shared with other processes.  Only simpy's public
interface is used, and other events in the environment never change the order of those of the run.
Events of a run are ordered by (time, class, order of entry).  Class and order of entry are the
priority in simpy, so events of other processes at the same instant usually come first.

The classes order the events of one instant: ends, then disruptions, then submissions and met
dependencies, then the scheduling pass.  (`EARLY_END` is for a variation of EASY in which ends before
the requested end come after submissions; `WAKE` is the start of a reservation.)
"""

from __future__ import annotations

from math import inf, nextafter
from typing import TYPE_CHECKING, Any, NamedTuple

from simpy import Environment, Event

from simsched.errors import ConfigError
from simsched.simulation.event_frames import fire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Handler = Callable[[Any], None]

CLASS = 2**40
"""Priorities of simpy in one class: this many events have different ones by their order of entry."""
FIRST, END, DISRUPTION, SUBMISSION, EARLY_END, WAKE, PASS, LAST = (n * CLASS for n in range(8))


class FutureEvent(NamedTuple):
    """An event to come, as data: `kind` names the handler, which is called with `payload`.

    `order` is its class at its instant, one of the constants above.
    """

    time: float
    order: int
    kind: str
    payload: Any


CALLBACKS: list[Callable[[Any], None]] = [fire]
"""Of every call; simpy only reads them."""


class ScheduledCall(Event):
    """A simpy event at which something happens in a run.

    It cannot fail, so it counts as successful from the start, as a simpy timeout does.  Its `entry`
    is (time of the run, priority, kind, payload), or None if it was dropped; a spare call keeps that of its
    last event.  The time is carried because that of a shared environment may have another origin; slots,
    because a run makes several for each job.
    """

    __slots__ = ("callbacks", "entry", "handle")
    _ok = True
    entry: tuple[float, int, str, Any] | None
    handle: Handler

    def __init__(self) -> None:
        """Leave all to `FutureEvents`, which uses a call again once it was due."""


class FutureEvents:
    """The event list of one run.

    Second 0 of the run is the time that the environment has when the list is made.

    Attributes
    ----------
    env : the simpy environment in which the events take place.
    now : the time of the run (seconds); exact, whatever the origin of the environment's time.
    here : the environment's time at the present event.
    peek : returns the environment's time at its next event; inf without one.
    over : a simpy event that succeeds when the run has no more events, or was closed.
    """

    def __init__(self, env: Environment | None = None) -> None:
        self.env = Environment() if env is None else env
        if not 0 <= self.env.now < inf:
            raise ConfigError(f"the environment's time is {self.env.now}", expected="a time of 0 or more")
        self.now: float = 0
        self.over = self.env.event()
        self._origin = self.here = self.env.now
        self._handlers: dict[str, Handler] = {}
        self._calls: list[ScheduledCall] = []
        """All calls in use, the spare ones included."""
        self._entered = 0
        self._spare: list[ScheduledCall] = []
        """Calls that were due; to use them again is cheaper than to make others."""
        self._schedule: Any = self.env.schedule
        self.peek = self.env.peek
        self._closing = False

    def handle(self, kind: str, handler: Handler) -> None:
        """Let events of a kind call `handler(payload)`."""
        self._handlers[kind] = handler

    def at(self, time: float, order: int, kind: str, payload: Any = None) -> None:
        """Enter an event at `time` (seconds of the run) in a class of its instant.

        Events are entered by handlers and before the run, when the environment's time is known without
        asking for it; simpy's property `now` would be a tenth of the cost.
        """
        self._entered = entered = self._entered + 1
        priority = order + entered
        spare = self._spare
        if spare:
            call = spare.pop()
        else:
            call = ScheduledCall()
            call.handle = self._fire
            self._calls.append(call)
        call.callbacks, call.entry = CALLBACKS, (time, priority, kind, payload)
        now, there = self.here, self._origin + time
        delay = there - now
        if now + delay == there:
            self._schedule(call, priority, delay)
        else:
            self._hop(call, priority, there)

    def _hop(self, call: ScheduledCall, priority: int, there: float) -> None:
        """Enter a call whose time is not reached exactly from now.

        simpy takes delays and rounds the sum of now and delay, and a rounded sum would put events of
        one instant on two.  From half of the time on, the difference of two floats is exact and so
        is the sum.  Therefore another event on the way there schedules the call.
        """

        def enter(_: Event) -> None:
            self._schedule(call, priority, there - self.env.now)

        on_the_way = ScheduledCall()
        on_the_way.callbacks = [enter]
        self._schedule(on_the_way, priority, 0.75 * there - self.env.now)

    def move_to(self, env: Environment, elapsed: float) -> None:
        """Drop all events, and go on in another environment `elapsed` seconds after second 0 of the run."""
        self._drop()
        self.env, self.over = env, env.event()
        self._schedule, self.peek = env.schedule, env.peek
        self.now, self.here, self._origin = elapsed, env.now, env.now - elapsed

    def come_to_present(self) -> float:
        """Bring the time of the run to that of the environment, and return it; whole seconds are an int.

        A process beside the run may act when the last event of the run is long over.
        """
        here = self.env.now
        if here != self.here:
            now = here - self._origin
            if self._origin + now < here:  # rounded down: an event now would be in the past
                now = nextafter(now, inf)
            self.now = int(now) if isinstance(now, float) and now.is_integer() else now
            self.here = here
        return self.now

    def run(self) -> None:
        """Run the environment until the run is over."""
        try:
            if self.start():
                self.env.run(until=self.over)
        finally:
            self._drop()

    def start(self) -> bool:
        """Return whether there are events; without any the run is over at once."""
        any_to_come = len(self._spare) < len(self._calls)
        if not any_to_come and not self.over.triggered:
            self.over.succeed()
        return any_to_come

    def close(self) -> None:
        """End the run once the present event is handled; later events of the run do not happen."""
        self._closing = True

    def dismiss(self) -> None:
        """Forget who handles the events of a run that is over, which is then freed without a collection."""
        self._handlers.clear()
        self._calls.clear()
        self._spare.clear()

    def has(self, kind: str) -> bool:
        """Whether an event of a kind is to come."""
        return any(event.kind == kind for event in self.pending())

    def only(self, *kinds: str) -> bool:
        """Whether all events to come are of these kinds; checkpoints and the end of the run do not count."""
        return all(entry[2] in kinds for entry in self._entries() if _counts(entry))

    def pending(self) -> Iterator[FutureEvent]:
        """Yield the events to come in their order, without checkpoints and the end of the run.

        These two belong to the run that wrote them and not to one that continues from its state.
        """
        for entry in self._entries():
            if _counts(entry):
                time, priority, kind, payload = entry
                yield FutureEvent(time, priority // CLASS * CLASS, kind, payload)

    def marks(self) -> Iterator[FutureEvent]:
        """Yield the events to come that `pending` leaves out: pauses and the end of the run."""
        for entry in self._entries():
            if not _counts(entry):
                time, priority, kind, payload = entry
                yield FutureEvent(time, priority // CLASS * CLASS, kind, payload)

    def take_over(self, other: FutureEvents) -> None:
        """Go on in the place of another list, at its time; that one drops its events."""
        self.env, self.over = other.env, other.over
        self._schedule, self.peek = other._schedule, other.peek
        self.now, self.here, self._origin = other.now, other.here, other._origin
        other._drop()
        other.over = self.env.event()

    def restore(self, now: float, events: Iterable[FutureEvent]) -> None:
        """Replace the time of the run and all events to come.

        Raises
        ------
        LookupError
            If no handler is known for an event.
        """
        self._drop()
        self.now, self.here = now, self.env.now
        for event in events:
            if event.kind not in self._handlers:
                raise LookupError(event.kind)
            self.at(*event)

    def _fire(self, call: Any) -> None:
        """Handle an event that is due."""
        entry, spare = call.entry, self._spare
        if entry is None:  # the run was closed or restored since; in a shared environment it is still due
            return
        now, _, kind, payload = entry
        self.now, self.here = now, self._origin + now
        spare.append(call)
        self._handlers[kind](payload)
        if len(spare) == len(self._calls) or self._closing:
            self._drop()
            if not self.over.triggered:
                self.over.succeed()

    def _entries(self) -> list[tuple[float, int, str, Any]]:
        """Return the entries of the events to come, in their order."""
        spare = set(map(id, self._spare))
        found = [call.entry for call in self._calls if id(call) not in spare and call.entry is not None]
        return sorted(found, key=lambda entry: entry[:2])

    def _drop(self) -> None:
        """Forget all events to come; those in the environment do nothing when they are due."""
        for call in self._calls:
            call.entry = None
        self._calls.clear()
        self._spare.clear()


def _counts(entry: tuple[float, int, str, Any]) -> bool:
    """Whether an event is neither a checkpoint nor the end of the run."""
    return END <= entry[1] < LAST
