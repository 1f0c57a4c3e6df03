"""FCFS and EASY with preemption by queue, and a limit of nodes, event by event, by the manual alone.

It shares no code with simsched and none with the other programs here.  A node is a number; a job takes the
lowest free ones.  What becomes of a victim: ``requeue``, ``cancel``, ``suspend`` or ``checkpoint``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Task:
    """A job: its request, and below it what changes."""

    number: int
    submit: float
    size: int
    work: float
    limit: float
    rank: int  # the priority of its queue
    takes: bool = False  # whether its queue preempts
    user: str = ""
    saved: float = 0
    attempts: int = 0
    first: float | None = None
    start: float | None = None
    end: float | None = None
    result: str = ""
    nodes: frozenset[int] = frozenset()
    stood: float = 0  # seconds for which this attempt was suspended
    left: float = 0  # seconds that are left of it, while it is suspended
    since: float = 0  # of the suspension
    due: float = inf  # when it ends by itself or at its limit
    gone: float = inf  # when it has to go
    stopped: float | None = None  # seconds of the attempt after which it only writes


@dataclass
class Rules:
    """What becomes of victims, and the checkpoints of all jobs; times in seconds."""

    mode: str = "requeue"
    grace: float = 0
    exempt: float = 0
    interval: float = inf
    cost: float = 0
    restart: float = 0
    easy: bool = True
    youngest: bool = False  # the order of victims
    most: float = inf  # nodes that each user may have


@dataclass
class Machine:
    """The jobs that wait, run and stand still on some nodes."""

    nodes: int
    rules: Rules
    waiting: list[Task] = field(default_factory=list)
    running: list[Task] = field(default_factory=list)
    halted: list[Task] = field(default_factory=list)
    alarms: set[float] = field(default_factory=set)
    now: float = 0

    # -- what is free ------------------------------------------------------------------------------

    def open_nodes(self, task: Task | None) -> set[int]:
        """Nodes that are not kept for a suspended job, unless this one may preempt it."""
        kept: set[int] = set()
        for other in self.halted:
            if task is None or not (task.takes and other.rank < task.rank):
                kept |= other.nodes
        return set(range(self.nodes)) - kept

    def free(self, task: Task | None) -> set[int]:
        found = self.open_nodes(task)
        for other in self.running:
            found -= other.nodes
        return found

    # -- the work of attempts ----------------------------------------------------------------------

    def length(self, task: Task) -> float:
        """Seconds of an attempt, all checkpoints included."""
        rest = task.work - task.saved
        if self.rules.interval == inf:
            return rest
        reads = self.rules.restart if task.saved else 0
        return reads + rest + max(0, ceil(rest / self.rules.interval) - 1) * self.rules.cost

    def progress(self, task: Task, seconds: float) -> tuple[float, float]:
        """Work that is done, and work in complete checkpoints, after some seconds of an attempt."""
        rules, rest = self.rules, task.work - task.saved
        clock, done, kept = (rules.restart if task.saved else 0), 0.0, 0.0
        if rules.interval == inf:
            return max(0, min(seconds, rest)), 0
        while clock < seconds and done < rest:
            step = min(rules.interval, rest - done, seconds - clock)
            done, clock = done + step, clock + step
            if step == rules.interval and done < rest:
                if clock + rules.cost <= seconds:
                    kept = done
                clock += rules.cost
        return done, kept

    def ran(self, task: Task) -> float:
        assert task.start is not None
        return self.now - task.start - task.stood

    # -- actions -----------------------------------------------------------------------------------

    def begin(self, task: Task, nodes: set[int]) -> None:
        self.waiting.remove(task)
        self.running.append(task)
        task.nodes = frozenset(sorted(nodes)[: task.size])
        task.start, task.stood, task.gone, task.stopped = self.now, 0, inf, None
        task.first = self.now if task.first is None else task.first
        length = self.length(task)
        task.result = "COMPLETED" if length <= task.limit else "TIMEOUT"
        task.due = self.now + min(length, task.limit)

    def finish(self, task: Task, result: str) -> None:
        task.end, task.result = self.now, result
        self.running.remove(task)

    def remove(self, task: Task) -> None:
        """Let a victim go whose time has come."""
        mode = self.rules.mode
        if mode == "cancel":
            self.finish(task, "CANCELED")
            return
        self.running.remove(task)
        if mode == "suspend":
            task.left, task.since = task.due - self.now, self.now
            self.halted.append(task)
            return
        seconds = self.ran(task)
        if task.stopped is not None:
            seconds = min(seconds, task.stopped)
        done, kept = self.progress(task, seconds)
        writes = mode == "checkpoint" and self.rules.interval < inf
        task.saved += done if writes else kept
        task.attempts += 1
        task.start, task.nodes = None, frozenset()
        self.waiting.append(task)

    def preempt(self, task: Task) -> None:
        """Choose a running job as a victim; there is a pass, too, when it would have ended."""
        self.alarms.add(task.due)
        grace = 0 if self.rules.mode == "suspend" else self.rules.grace
        writes = self.rules.mode == "checkpoint" and self.rules.interval < inf
        stop = self.now + grace
        if writes and task.due > stop:
            task.stopped = self.ran(task) + grace
            task.due = inf
        time = stop + (self.rules.cost if writes else 0)
        if time <= self.now:
            self.remove(task)
        else:
            task.gone = time
            self.alarms.add(time)

    def expected(self, task: Task) -> float:
        """The end that a plan counts with: the limit, or the time at which a victim goes."""
        assert task.start is not None
        return min(task.start + task.stood + task.limit, task.gone)

    # -- a pass ------------------------------------------------------------------------------------

    def order(self) -> list[Task]:
        return sorted(self.waiting, key=lambda task: (-task.rank, task.submit, task.number))

    def is_over(self, task: Task, gone: Sequence[Task] = (), promised: Sequence[Task] = ()) -> bool:
        """Whether a user would have too many nodes, once some jobs are gone and others have started."""
        theirs = [*self.running, *self.halted, *promised]
        if self.rules.mode != "suspend":
            theirs = [other for other in theirs if other not in gone]
        return sum(other.size for other in theirs if other.user == task.user) + task.size > self.rules.most

    def view(self) -> list[Task]:
        """The jobs in order that are over no limit."""
        return [task for task in self.order() if not self.is_over(task)]

    def serve(self) -> None:
        """Let the jobs at the head of the queue that preempt start, or find victims."""
        promised: list[Task] = []  # jobs before it that wait for their victims
        held: set[int] = set()
        seen: list[Task] = []
        while True:
            task = next((one for one in self.view() if one not in seen), None)
            if task is None or not task.takes:
                return
            seen.append(task)
            if not promised and self.try_start(task):
                continue
            soon = self.free(task) - held
            leaving = [other for other in self.running if other.gone < inf]
            for other in leaving:
                soon |= other.nodes & self.open_nodes(task) - held
            if len(soon) < task.size or self.is_over(task, leaving, promised):
                victims = self.choose(task, len(soon), leaving, promised)
                if victims is None:
                    ripe = [self.ripens(one) for one in self.lower(task)]
                    self.alarms |= {
                        time
                        for time in ripe
                        if time > self.now and time == min(other for other in ripe if other > self.now)
                    }
                    ready = [one for one in self.lower(task) if self.ripens(one) <= self.now]
                    if len(soon) + sum(one.size for one in ready) >= task.size:
                        continue  # a limit keeps it, and not those behind it
                    return
                for victim in victims:
                    soon |= victim.nodes
                    self.preempt(victim)
            if not promised and self.try_start(task):
                continue
            promised.append(task)
            held |= set(sorted(soon)[: task.size])

    def try_start(self, task: Task) -> bool:
        nodes = self.free(task)
        if len(nodes) < task.size:
            return False
        self.begin(task, nodes)
        return True

    def lower(self, task: Task) -> list[Task]:
        return [other for other in self.running if other.rank < task.rank and other.gone == inf]

    def ripens(self, task: Task) -> float:
        assert task.start is not None
        return task.start + task.stood + self.rules.exempt

    def choose(self, task: Task, soon: int, leaving: list[Task], promised: list[Task]) -> list[Task] | None:
        """Victims until it fits, the last queue and the last start first; then without needless ones."""

        def fits(chosen: list[Task]) -> bool:
            room = soon + sum(other.size for other in chosen)
            return room >= task.size and not self.is_over(task, [*leaving, *chosen], promised)

        candidates = [other for other in self.lower(task) if self.ripens(other) <= self.now]
        by = self.rules.youngest
        candidates.sort(key=lambda other: (0 if by else other.rank, -(other.start or 0), -other.number))
        chosen = next((some for at in range(len(candidates)) if fits(some := candidates[: at + 1])), None)
        for other in chosen[-2::-1] if chosen else ():
            less = [one for one in chosen or () if one is not other]
            chosen = less if fits(less) else chosen
        return chosen

    def resume(self) -> None:
        """Let suspended jobs go on whose nodes are free and not kept for a job that they may not preempt."""
        for task in list(self.halted):
            self.halted.remove(task)
            busy = any(other.nodes & task.nodes for other in self.running)
            kept = any(other.nodes & task.nodes and other.rank >= task.rank for other in self.halted)
            if busy or kept:
                self.halted.append(task)
                continue
            task.stood += self.now - task.since
            task.due = self.now + task.left
            self.running.append(task)
        self.halted.sort(key=lambda task: task.since)

    def schedule(self) -> None:
        """FCFS; with EASY later jobs pass the first one if they do not delay it."""
        while (queue := self.view()) and len(self.free(None)) >= queue[0].size:
            self.begin(queue[0], self.free(None))
        if not queue or not self.rules.easy:
            return
        head = queue[0]
        service, free = self.open_nodes(None), len(self.free(None))
        shadow, extra = inf, inf
        room = free
        ends = sorted((self.expected(other), len(other.nodes & service)) for other in self.running)
        for at, (end, nodes) in enumerate(ends):
            room += nodes
            last = at + 1 == len(ends) or ends[at + 1][0] > end
            if room >= head.size and last:
                shadow, extra = max(end, self.now), room - head.size
                break
        for task in queue[1:]:
            if task.size > free or self.is_over(task):
                continue
            if self.now + task.limit > shadow:
                if task.size > extra:
                    continue
                extra -= task.size
            free -= task.size
            self.begin(task, self.free(None))


def simulate(tasks: list[Task], nodes: int, rules: Rules) -> list[Task]:
    """Run all tasks to their ends; those that could never start stay without one."""
    machine = Machine(nodes, rules)
    coming = sorted(tasks, key=lambda task: (task.submit, task.number))
    while True:
        times = [task.due for task in machine.running] + [task.submit for task in coming[:1]]
        times += [time for time in machine.alarms if time > machine.now]
        machine.now = min((time for time in times if time < inf), default=inf)
        if machine.now == inf:
            return tasks
        for task in [task for task in machine.running if task.due <= machine.now]:
            machine.finish(task, task.result)
        for task in [task for task in machine.running if task.gone <= machine.now]:
            machine.remove(task)
        while coming and coming[0].submit <= machine.now:
            machine.waiting.append(coming.pop(0))
        machine.serve()
        machine.resume()
        machine.schedule()
