"""A scheduler with advance reservations on equal nodes of one unit, written from the manual alone.

Plain lists of nodes by number, everything computed anew at each event.  It has FCFS and EASY, reservations
for users and accounts at a fixed time, every day, or as soon as possible.  The rules:

* A reservation gets the first nodes that no running job may hold by its limit as it begins, and that no other
  reservation has in one of its windows; it is refused if there are too few.
* A job of a reservation runs on its nodes within one window, by its limit.  Any other job keeps clear of the
  windows on their nodes.
* Each reservation has a queue of its own; the common queue goes first.  What still waits for a reservation as
  its last window ends never starts.
* At one instant: ends, announcements, submissions, and then one pass.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True)
class Task:
    """A rigid job of `size` nodes; `limit` seconds may be infinite."""

    number: int
    submit: int
    runtime: int
    limit: float
    size: int
    user: str = ""
    account: str = ""
    reservation: str | None = None


@dataclass(frozen=True)
class Booking:
    """A reservation as it is requested; without a start it begins as soon as it can."""

    name: str
    duration: int
    size: int
    start: int | None = None
    announced: int = 0
    earliest: int = 0
    latest: float = inf
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    days: int = 1

    def admits(self, task):
        """Whether the manual lets a task into the reservation."""
        named = self.users or self.accounts
        known = task.user in self.users or task.account in self.accounts
        return (known or not named) and task.limit <= self.duration

    def spans(self, start):
        """Begin and end of each window."""
        return [(start + 86400 * day, start + 86400 * day + self.duration) for day in range(self.days)]


@dataclass
class Site:
    """The nodes, the running tasks and the waiting ones."""

    size: int
    bookings: list[Booking]
    now: int = 0
    running: dict[Task, tuple[int, list[int]]] = field(default_factory=dict)
    windows: dict[str, list[tuple[int, int, set[int]]]] = field(default_factory=dict)
    queues: dict[str | None, list[Task]] = field(default_factory=dict)

    def free(self, time):
        """The nodes that are idle at a time, if running tasks use up their limits."""
        busy = set()
        for task, (start, nodes) in self.running.items():
            if time <= self.now or start + task.limit > time:
                busy.update(nodes)
        return [node for node in range(self.size) if node not in busy]

    def nodes_for(self, task, time, among):
        """The first nodes for a task from a time until its limit, or None."""
        end = time + task.limit
        if task.reservation is not None:
            mine = self.windows.get(task.reservation, ())
            open_ = [nodes for begin, last, nodes in mine if begin <= time and end <= last]
            found = [node for node in among if open_ and node in open_[0]][: task.size]
        else:
            closed = set()
            for spans in self.windows.values():
                for begin, last, nodes in spans:
                    if time < last and begin < end:
                        closed |= nodes
            found = [node for node in among if node not in closed][: task.size]
        return found if len(found) == task.size else None

    # -- announcements ------------------------------------------------------------------------------

    def announce(self, booking):
        """Give a reservation its nodes and its windows, or refuse it."""
        starts = [booking.start]
        if booking.start is None:
            first = max(self.now, booking.earliest)
            ends = {start + task.limit for task, (start, _) in self.running.items()}
            ends |= {last for spans in self.windows.values() for _, last, _ in spans}
            starts = [first, *sorted(end for end in ends if first < end <= booking.latest and end < inf)]
        for start in starts:
            nodes = self.idle_for(booking, start)
            if nodes is not None:
                self.windows[booking.name] = [(*span, nodes) for span in booking.spans(start)]
                return

    def idle_for(self, booking, start):
        """The nodes of a reservation that begins at a time, or None."""
        taken = set()
        for task, (begun, nodes) in self.running.items():
            if begun + task.limit > start:
                taken.update(nodes)
        for spans in self.windows.values():
            for begin, last, nodes in spans:
                if any(begin < end and first < last for first, end in booking.spans(start)):
                    taken |= nodes
        found = [node for node in range(self.size) if node not in taken][: booking.size]
        return set(found) if len(found) == booking.size else None

    # -- passes -------------------------------------------------------------------------------------

    def start(self, task, nodes, queue):
        """Start a waiting task."""
        self.running[task] = self.now, nodes
        queue.remove(task)

    def in_order(self, queue):
        """Start tasks until one does not fit."""
        while queue:
            nodes = self.nodes_for(queue[0], self.now, self.free(self.now))
            if nodes is None:
                return
            self.start(queue[0], nodes, queue)

    def earliest(self, task):
        """The first time at which a task fits if no other one starts; None if never."""
        times = {self.now} | {start + other.limit for other, (start, _) in self.running.items()}
        times |= {time for spans in self.windows.values() for span in spans for time in span[:2]}
        for time in sorted(time for time in times if self.now <= time < inf):
            if self.nodes_for(task, time, self.free(time)) is not None:
                return time
        return None

    def backfill(self, queue):
        """Start later tasks that leave the first one its earliest start."""
        if len(queue) < 2:
            return
        first, *others = queue
        shadow = self.earliest(first)
        for task in others:
            idle = self.free(self.now)
            nodes = self.nodes_for(task, self.now, idle)
            if nodes is None:
                continue
            if shadow is None or self.now + task.limit <= shadow:
                self.start(task, nodes, queue)
                continue
            then = self.free(shadow)
            kept = self.nodes_for(first, shadow, then)
            for among in (idle, [node for node in idle if node not in kept]):
                nodes = self.nodes_for(task, self.now, among)
                left = [node for node in then if nodes is not None and node not in nodes]
                if nodes is not None and self.nodes_for(first, shadow, left) is not None:
                    self.start(task, nodes, queue)
                    break

    def schedule(self, policy):
        """One pass over all queues."""
        for queue in self.queues.values():
            self.in_order(queue)
            if policy == "easy":
                self.backfill(queue)


def run(tasks, size, bookings, policy):
    """Return number → start, without the tasks that never start, and name → windows."""
    site, started = Site(size, list(bookings)), {}
    known = {booking.name: booking for booking in bookings}
    site.queues = {None: [], **{name: [] for name in known}}
    coming = sorted(tasks, key=lambda task: task.submit)
    announced = set()
    while True:
        times = [task.submit for task in coming[:1]]
        times += [start + min(task.runtime, task.limit) for task, (start, _) in site.running.items()]
        times += [one.announced for one in bookings if one.name not in announced]
        borders = {time for spans in site.windows.values() for span in spans for time in span[:2]}
        times += [time for time in borders if time > site.now]
        if not times:
            return started, site.windows
        site.now = min(times)
        for task, (start, _) in list(site.running.items()):
            if start + min(task.runtime, task.limit) <= site.now:
                del site.running[task]
        for name, spans in site.windows.items():
            if spans[-1][1] <= site.now:
                site.queues[name].clear()
        for booking in bookings:
            if booking.announced <= site.now and booking.name not in announced:
                announced.add(booking.name)
                site.announce(booking)
        while coming and coming[0].submit <= site.now:
            task = coming.pop(0)
            name = task.reservation
            if task.size <= size and (name is None or (name in known and known[name].admits(task))):
                site.queues[name].append(task)
        site.schedule(policy)
        started.update({task.number: start for task, (start, _) in site.running.items()})


def read_swf(path, records):
    """The tasks of the first records of a log: 18 columns, -1 is absent, ';' begins the header."""
    tasks = []
    with gzip.open(path, "rt", encoding="latin-1") as lines:
        for line in lines:
            fields = line.split(";")[0].split()
            if not fields:
                continue
            number, submit, runtime, given, wanted, requested = (int(fields[at]) for at in (0, 1, 3, 4, 7, 8))
            size = wanted if wanted > 0 else given
            if size > 0 and runtime >= 0:
                limit = requested if requested > 0 else inf
                tasks.append(Task(number, submit, runtime, limit, size, fields[11], fields[12]))
            if len(tasks) == records:
                break
    return tasks
