"""`FutureEvents`: the events of a run that are still to come, in a simpy environment.

The environment may be the run's own or be shared with other processes.  Only simpy's public
interface is used, and other events in the environment never change the order of those of the run.
Events of a run are ordered by (time, class, order of entry); the last two make up the priority in
simpy, so that they follow the usual events of other processes at the same instant.  The classes order the events of one
instant: ends, then disruptions, then submissions and met dependencies, then the scheduling
pass.  (`EARLY_END` is for a variation of EASY in which ends before the requested end come after
submissions; `WAKE` is the start of a reservation.)
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simpy import Environment, Event

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Handler = Callable[[Any], None]

FIRST, END, DISRUPTION, SUBMISSION, EARLY_END, WAKE, PASS, LAST = range(8)

#: Priorities of simpy in one class: so many events can be told apart by their order of entry.
CLASS = 2**40


class FutureEvent(NamedTuple):
    """An event to come, as data: `kind` names the handler, which is called with `payload`."""

    time: float
    order: int
    kind: str
    payload: Any


class Call(Event):
    """A simpy event at which something happens in a run.

    It cannot fail, so it counts as successful from the start, as a simpy timeout does.  It carries
    the time of the run itself, because the time of a shared environment may have another origin.
    """

    __slots__ = ("kind", "payload", "priority", "time")
    _ok = True

    def __init__(
        self, callbacks: list[Callable[[Event], None]], time: float, priority: int, kind: str, payload: Any
    ) -> None:
        self.callbacks = callbacks
        self.time = time
        self.priority = priority
        self.kind = kind
        self.payload = payload


class FutureEvents:
    """The event list of one run.

    Second 0 of the run is the time that the environment has when the list is made.

    Attributes
    ----------
    env : the simpy environment in which the events take place.
    now : the time of the run (seconds); exact, whatever the origin of the environment's time.
    over : a simpy event that succeeds when the run has no more events, or was closed.
    """

    def __init__(self, env: Environment | None = None) -> None:
        self.env = Environment() if env is None else env
        if not 0 <= self.env.now < inf:
            raise ConfigError(f"the environment's time is {self.env.now}", expected="a time from 0 on")
        self.now: float = 0
        self.over = self.env.event()
        self._origin = self.env.now
        self._handlers: dict[str, Handler] = {}
        self._pending: dict[Call, None] = {}
        self._callbacks: list[Callable[[Event], None]] = [self._fire]
        self._entered = 0
        self._closing = False

    def handle(self, kind: str, handler: Handler) -> None:
        """Let events of a kind call `handler(payload)`."""
        self._handlers[kind] = handler

    def at(self, time: float, order: int, kind: str, payload: Any = None) -> None:
        """Enter an event at `time` (seconds of the run) in a class of its instant."""
        self._entered += 1
        call = Call(self._callbacks, time, order * CLASS + self._entered, kind, payload)
        self._pending[call] = None
        self._schedule(call)

    def _schedule(self, call: Call) -> None:
        """Give an event to the environment, for exactly its time.

        simpy takes delays and rounds the sum of now and delay.  A rounded sum would put events of one
        instant on two.  From half of the time on, the difference of two floats is exact and so is
        the sum; if it is rounded before, another event on the way schedules the call from there.
        """
        env = self.env
        now, there = env.now, self._origin + call.time
        delay = there - now
        if now + delay == there:
            env.schedule(call, call.priority, delay)  # type: ignore[arg-type]
        else:
            hop = Call([lambda _: self._schedule(call)], call.time, call.priority, "", None)
            env.schedule(hop, call.priority, 0.75 * there - now)  # type: ignore[arg-type]

    def run(self) -> None:
        """Run the environment until the run is over."""
        try:
            if self.start():
                self.env.run(until=self.over)
        finally:
            self._pending.clear()

    def start(self) -> bool:
        """Return whether there are events; without any the run is over at once."""
        if not self._pending and not self.over.triggered:
            self.over.succeed()
        return bool(self._pending)

    def close(self) -> None:
        """End the run once the present event is handled; later events of the run do not happen."""
        self._closing = True

    def is_last_of_instant(self) -> bool:
        """Whether the environment has no further event at the present time, of this run or of others."""
        return self.env.peek() > self.env.now

    def has(self, kind: str) -> bool:
        """Whether an event of a kind is to come."""
        return any(call.kind == kind for call in self._pending)

    def only(self, kind: str) -> bool:
        """Whether all events to come are of one kind; checkpoints and the end of the run do not count."""
        return all(call.kind == kind for call in self._pending if _order(call) not in (FIRST, LAST))

    def pending(self) -> Iterator[FutureEvent]:
        """Yield the events to come in their order, without checkpoints and the end of the run.

        These two belong to the run that wrote them and not to one that continues from its state.
        """
        for call in sorted(self._pending, key=lambda call: (call.time, call.priority)):
            order = _order(call)
            if order not in (FIRST, LAST):
                yield FutureEvent(call.time, order, call.kind, call.payload)

    def restore(self, now: float, events: Iterable[FutureEvent]) -> None:
        """Replace the time of the run and all events to come.

        Raises
        ------
        LookupError
            If no handler is known for an event.
        """
        self._pending.clear()  # those already in the environment do nothing when they are due
        self.now = now
        for event in events:
            if event.kind not in self._handlers:
                raise LookupError(event.kind)
            self.at(*event)

    def _fire(self, call: Event) -> None:
        """Handle an event that is due."""
        assert isinstance(call, Call)
        try:
            del self._pending[call]
        except KeyError:  # the run was closed or restored since; in a shared environment it is still due
            return
        self.now = call.time
        self._handlers[call.kind](call.payload)
        if self._closing or not self._pending:
            self._pending.clear()
            if not self.over.triggered:
                self.over.succeed()


def _order(call: Call) -> int:
    """Return the class of an event at its instant."""
    return call.priority // CLASS
