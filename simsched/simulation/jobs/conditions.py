"""Conditions of a job before it may be scheduled: dependencies, times, holds (RFC 26, RFC 21).

==============  ==========================================================================
after           the antecedent has started, and its ``delay`` has passed; one that ended without a start
                never will
afterany        it has ended, with any result
afterok         it has ended well (COMPLETED)
afternotok      it has ended badly
aftercorr       the task of the named array with the same index has ended well (Slurm)
begin-time      that time has come
singleton       all jobs of the same user and name that were submitted before have ended (Slurm)
string, fluid   ``in`` and ``inout`` wait until the last job before them with ``out`` or
                ``inout`` of the same value has ended well (``in`` without one: the first after
                it); with scope ``user`` only jobs of
                the same user count
think time      with ``think_times: honour``: the think time has passed since the preceding job's end
==============  ==========================================================================

A job array as the antecedent means all its tasks: they have started, have ended, have all ended well; for
``afternotok`` they have ended and at least one of them badly (Slurm, "Job Array Support").

A dependency that can never be met ends the job that has it, with result FAILED and the
reason; jobs that depend on that one see it end badly.  Jobs in a cycle of dependencies end in the same
way when they are submitted.

`Tasks`: how many tasks of a job array have started and ended, and how.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.cycles import cyclic_groups
from simsched.formats.rfc.dependency import AFTERCORR, SINGLETON
from simsched.simulation.record.recorder import COMPLETED, PENDING, RUNNING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from simsched.formats.rfc.dependency import Dependency
    from simsched.workload.job import Job


@dataclass(slots=True)
class Tasks:
    """The tasks of one job array.

    Attributes
    ----------
    array : the id of the array.
    number : its number, below 0, as jobs have numbers from 0 on.
    jobs : their job numbers; `by_index` has them by their indices.
    unstarted, unended : how many have not started, or not ended.
    bad : how many did not end well; `never` is how many of them did not start.
    """

    array: str
    number: int
    jobs: list[int] = field(default_factory=list)
    by_index: dict[int, int] = field(default_factory=dict)
    unstarted: int = 0
    unended: int = 0
    bad: int = 0
    never: int = 0

    def start(self) -> bool:
        """Note the first start of a task; return whether it was the last one to start."""
        self.unstarted -= 1
        return not self.unstarted

    def end(self, *, well: bool, ran: bool) -> bool:
        """Note the end of a task; return whether a dependency on all of them may be decided now."""
        self.unended -= 1
        self.bad += not well
        self.never += not ran
        return not self.unended or not well


SYMBOLIC = ("string", "fluid")
THINK = "think-time"
MOST_DIGITS = 18
"""Digits of the index of a task at most; Python reads no numbers of thousands of digits."""
NAMED = 5
"""Jobs of a cycle that a reason names at most."""

_SCHEMES = ("after", "afterany", "afterok", "afternotok", "afterexcept")


class Verdict(Enum):
    """The state of one link."""

    MET = "met"
    VAIN = "it can never be met"
    OPEN = "it is not known yet"
    TIMED = "it is met at a time that is known"


class Met(NamedTuple):
    """A job whose conditions are met (`reason` None), or can never be met."""

    job: int
    reason: str | None


class Link(NamedTuple):
    """A job waits for the start or end of another, and for `delay` seconds after it."""

    job: int
    scheme: str
    text: str
    delay: float = 0


class Namesakes:
    """All jobs of one user and name, in submit order."""

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self._skip: list[int] = []
        """Place → a place before it; all jobs in between have ended if its own has."""

    def add(self, job: int) -> None:
        """Add the next job."""
        self._skip.append(len(self.jobs) - 1)
        self.jobs.append(job)

    def last_before(self, job: int, ended: Collection[int]) -> int | None:
        """Return the last job before a job that has not ended; None without one.

        The jobs that have ended are skipped together the next time, so all questions together are quick.
        """
        at, passed = bisect_left(self.jobs, job) - 1, []
        while at >= 0 and self.jobs[at] in ended:
            passed.append(at)
            at = self._skip[at]
        for place in passed:
            self._skip[place] = at
        return self.jobs[at] if at >= 0 else None


class Conditions:
    """Counts the conditions that are still open for each job.

    `take_timers` gives the times at which the engine must call `elapsed`.
    """

    def __init__(self, *, honour_think_times: bool) -> None:
        self._jobs: list[Job] = []
        self._think = honour_think_times
        self._started: dict[int, float] = {}
        self._ended: dict[int, tuple[float, int]] = {}
        self._links: dict[int | str, list[Link]] = {}
        self._open: dict[int, int] = {}
        self._timers: list[tuple[float, int]] = []
        self.coming: Collection[str] = ()
        """The names (`names_of`) of jobs that will arrive; until then links have the name for a number."""
        self._number: dict[str, int] = {}
        self._arrays: dict[str, Tasks] = {}
        self._numbered: dict[int, Tasks] = {}
        """The same by the numbers of the arrays."""
        self._array_of: dict[int, Tasks] = {}
        """Job → the array of which it is a task."""
        self._producers: dict[str, list[int]] = {}
        """Symbol → the jobs that produce it, in submit order."""
        self._namesakes: dict[tuple[str | None, str | None], Namesakes] = {}
        """(User, name) → all their jobs, if there is a singleton of them."""
        self.conditional: set[int] = set()
        self._cycles: dict[int, str] = {}
        self._broken: list[Met] = []
        """The jobs that wait in a cycle that has closed, until they are taken."""

    def __len__(self) -> int:
        return len(self._jobs)

    def concerned(self, jobs: Iterable[tuple[int, Job]]) -> list[int]:
        """Return which jobs wait for more than resources; `jobs` are pairs of number and job."""
        think = self._think
        return [number for number, job in jobs if job.dependencies or (think and job.preceding is not None)]

    def extend(self, jobs: Sequence[Job]) -> None:
        """Add the next jobs of the run; all those before them are known."""
        first = len(self._jobs)
        self.conditional.update(self.concerned(enumerate(jobs, first)))
        new = {(job.user, job.name) for job in jobs if _is_singleton(job)} - self._namesakes.keys()
        self._namesakes |= {key: Namesakes() for key in new}
        for number, job in enumerate(self._jobs if new else ()):
            if (job.user, job.name) in new:
                self._namesakes[job.user, job.name].add(number)
        names: dict[str, int] = {}
        for number, job in enumerate(jobs, first):
            for own, place in self._add(number, job).items():
                names.setdefault(own, place)
        waited = self._links.keys() & names.keys()
        for name in waited:
            self._links.setdefault(names[str(name)], []).extend(self._links.pop(name))
        numbers, mine = set(names.values()), self.conditional.intersection(range(first, len(self._jobs)))
        named = (link[0] for number in mine for link in self._links_of(number) if not isinstance(link, str))
        if mine and (waited or not numbers.isdisjoint(named)):
            self._cycles = self._find_cycles()
            self._broken += [Met(one, text) for one, text in self._cycles.items() if one in self._open]

    def _add(self, number: int, job: Job) -> dict[str, int]:
        """Add a job, and return the names of `names_of` with the job or the array that each means."""
        self._jobs.append(job)
        self._number[str(job.id)] = number
        symbols = _produced(job)
        for symbol in symbols:
            self._producers.setdefault(symbol, []).append(number)
        if (key := (job.user, job.name)) in self._namesakes:
            self._namesakes[key].add(number)
        names = {str(job.id): number, **dict.fromkeys(symbols, number)}
        if (task := job.array_task) is not None:
            if task.array not in self._arrays:
                tasks = self._arrays[task.array] = Tasks(task.array, -1 - len(self._arrays))
                self._numbered[tasks.number] = tasks
            tasks = self._array_of[number] = self._arrays[task.array]
            tasks.jobs.append(number)
            tasks.by_index[task.index] = number
            tasks.unstarted += 1
            tasks.unended += 1
            names[task.array] = tasks.number
        return names

    def _find_cycles(self) -> dict[int, str]:
        """Return each job in a cycle of dependencies → the reason, which names the jobs of the cycle."""
        links: dict[Any, list[Any]] = {
            job: [link[0] for link in self._links_of(job) if isinstance(link[0], int)]
            for job in sorted(self.conditional)
        }
        if links:
            links |= {number: tasks.jobs for number, tasks in self._numbered.items()}
        free = -1 - len(links)  # below the numbers of arrays
        for namesakes in self._namesakes.values():
            # A number stands for all jobs up to a place, so that a singleton has one link and not thousands.
            for place, job in enumerate(namesakes.jobs):
                if place and _is_singleton(self._jobs[job]):
                    links[job].append(free)
                links[free - 1] = [job, *([free] if place else [])]
                free -= 1
        found: dict[int, str] = {}
        for group in cyclic_groups(links):
            names = [str(self._jobs[job].id) for job in group if job >= 0]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            reason = f"dependencies in a cycle can never be met: {', '.join(names[:NAMED])}{more}"
            found.update(dict.fromkeys(group, reason))
        return found

    def catch_up(self, starts: Sequence[float], ends: Sequence[float], results: Sequence[int]) -> None:
        """Note the jobs that started and ended before anything depended on them."""
        for job, (start, end, result) in enumerate(zip(starts, ends, results, strict=False)):
            if start == start:  # noqa: PLR0124 (not NaN)
                self._started[job] = start
            if result not in (PENDING, RUNNING):
                self._ended[job] = (0 if end != end else end, result)  # noqa: PLR0124
        self._count_tasks()

    def _count_tasks(self) -> None:
        """Count the tasks of arrays that have started and ended."""
        for job, tasks in self._array_of.items():
            if job in self._started:
                tasks.start()
            if job in self._ended:
                tasks.end(well=self._ended[job][1] == COMPLETED, ran=job in self._started)

    # -- questions of the engine ------------------------------------------------------------

    def arrive(self, job: int, now: float) -> Met | None:
        """Return whether a submitted job may be scheduled at once or never; None if it waits."""
        if job in self._cycles:
            return Met(job, self._cycles[job])
        waits = 0
        for link in self._links_of(job):
            if isinstance(link, str):
                return Met(job, link)
            antecedent, what = link
            verdict = self._judge(antecedent, what, now)
            if verdict is Verdict.VAIN:
                return Met(job, f"dependency {what.text} can never be met")
            if verdict is Verdict.OPEN:
                self._links.setdefault(antecedent, []).append(what)
            waits += verdict is not Verdict.MET
        waits += self._begin_times(job, now)
        if not waits:
            return Met(job, None)
        self._open[job] = waits
        return None

    def start(self, job: int, now: float) -> bool:
        """Note that a job started, and return whether others wait for its start."""
        tasks, waiting = self._array_of.get(job), [*self._links.get(job, ())]
        if tasks is not None and job not in self._started and tasks.start():
            waiting += self._links.get(tasks.number, ())
        self._started[job] = now
        return any(link.scheme == "after" for link in waiting)

    def started(self, job: int, now: float) -> list[Met]:
        """Return the jobs that no longer wait once the pass that started a job is over."""
        tasks = self._array_of.get(job)
        return self._settle(job, now) + ([] if tasks is None else self._settle(tasks.number, now))

    def ended(self, job: int, now: float, result: int) -> list[Met]:
        """Note how a job ended; return the jobs that no longer wait."""
        self._ended[job] = (now, result)
        tasks, well = self._array_of.get(job), result == COMPLETED
        decided = tasks is not None and tasks.end(well=well, ran=job in self._started)
        return self._settle(job, now) + (self._settle(tasks.number, now) if tasks and decided else [])

    def elapsed(self, job: int) -> list[Met]:
        """Note that a time has come for which a job waited."""
        return self._one_less(job)

    def withdrawn(self, names: Iterable[str], now: float) -> list[Met]:
        """Return the jobs that no longer wait since a job with these names was withdrawn before it came."""
        found: list[Met] = []
        for name in names:
            if name in self.coming:
                continue  # other tasks of the array are still to come
            if name in self._arrays:
                found += self._settle(self._arrays[name].number, now)
            for link in self._links.pop(name, ()):
                if link.scheme == THINK:  # there is no end to wait for, as if the preceding job were unknown
                    found += self._one_less(link.job)
                elif self._open.pop(link.job, None) is not None:
                    fault = "is produced by no" if "\n" in name else "does not name a"
                    found.append(Met(link.job, f"dependency {link.text} {fault} job of the workload"))
        return found

    def forget(self, job: int) -> None:
        """Drop the conditions of a job that was cancelled."""
        self._open.pop(job, None)

    def take_broken(self) -> list[Met]:
        """Return the jobs that wait in a cycle that has closed since the last call."""
        broken = [one for one in self._broken if self._open.pop(one.job, None) is not None]
        self._broken = []
        return broken

    def take_timers(self) -> list[tuple[float, int]]:
        """Return the (time, job) for which `elapsed` is to be called, each once."""
        timers, self._timers = self._timers, []
        return timers

    def state(self) -> dict[str, Any]:
        """Return the jobs that started or ended, and the open conditions, as plain values."""
        return {
            "started": self._started,
            "ended": self._ended,
            "open": self._open,
            "timers": self._timers,
            "links": {job: [tuple(link) for link in links] for job, links in self._links.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put the conditions into a state."""
        self._started = state["started"]
        self._ended = state["ended"]
        self._count_tasks()
        self._open = state["open"]
        self._timers = state["timers"]
        self._links = {job: [Link(*link) for link in links] for job, links in state["links"].items()}

    # -- how they are answered --------------------------------------------------------------

    def _links_of(self, job: int) -> Iterator[tuple[int | str, Link] | str]:
        """Yield (antecedent, link) for each dependency on a job, or why it can never be met."""
        mine = self._jobs[job]
        for dependency in mine.dependencies:
            text = str(dependency)
            if dependency.scheme in SYMBOLIC:
                yield from self._symbolic(job, dependency, text)
            elif dependency.scheme in _SCHEMES:
                yield self._named(job, dependency, text)
            elif dependency.scheme == AFTERCORR:
                yield self._corresponding(job, dependency.value, text)
            elif dependency.scheme == SINGLETON:
                earlier = self._namesake(job)
                if earlier is not None:
                    yield earlier, Link(job, SINGLETON, SINGLETON)
            elif dependency.scheme != "begin-time":
                yield f"dependency {text} has an unknown scheme"
        if self._think and mine.preceding is not None:
            name = str(mine.preceding)
            before: int | str | None = self._number.get(name, name if name in self.coming else None)
            if before is not None and before != job:
                yield before, Link(job, THINK, f"{THINK}:{mine.preceding}", mine.think_time or 0)

    def _namesake(self, job: int) -> int | None:
        """Return the last job of the same user and name before a job that has not ended; None without one."""
        mine = self._jobs[job]
        return self._namesakes[mine.user, mine.name].last_before(job, self._ended)

    def _named(self, job: int, dependency: Dependency, text: str) -> tuple[int | str, Link] | str:
        """Return the link to a job or an array by its id, or why there is none."""
        antecedent: int | str | None = self._antecedent(dependency.value)
        if antecedent is None and dependency.value in self.coming:
            antecedent = dependency.value
        if antecedent is None:
            return f"dependency {text} does not name a job of the workload"
        return antecedent, Link(job, dependency.scheme, text, dependency.delay)

    def _corresponding(self, job: int, array: str, text: str) -> tuple[int | str, Link] | str:
        """Return the link of a task to that of an array with the same index, or why there is none."""
        task = self._jobs[job].array_task
        tasks = self._arrays.get(array)
        other: int | str | None = None if task is None or tasks is None else tasks.by_index.get(task.index)
        if other is None and task is not None and f"{array}_{task.index}" in self.coming:
            other = f"{array}_{task.index}"
        if other is None:
            return f"dependency {text} does not name an array with a task of the same index"
        return other, Link(job, "afterok", text)

    def _antecedent(self, value: str) -> int | None:
        """Return the number of a job, or of a job array, by its id; None if there is none."""
        if value in self._arrays:
            return self._arrays[value].number
        array, _, index = value.rpartition("_")
        is_index = index.isascii() and index.isdigit() and len(index) <= MOST_DIGITS
        if value in self._number or array not in self._arrays or not is_index:
            return self._number.get(value)
        return self._arrays[array].by_index.get(int(index))

    def _symbolic(
        self, job: int, dependency: Dependency, text: str
    ) -> Iterator[tuple[int | str, Link] | str]:
        if dependency.params.get("type", "in") == "out":
            return
        symbol = _symbol(dependency, self._jobs[job])
        producers = self._producers.get(symbol, [])
        before, after = bisect_left(producers, job), bisect_right(producers, job)
        if before:
            yield producers[before - 1], Link(job, "afterok", text)
        elif dependency.params.get("type", "in") != "in":
            return  # the first job with ``inout``
        elif after < len(producers):
            yield producers[after], Link(job, "afterok", text)
        elif symbol in self.coming:
            yield symbol, Link(job, "afterok", text)
        else:
            yield f"dependency {text} is produced by no job of the workload"

    def _begin_times(self, job: int, now: float) -> int:
        times = [float(d.value) for d in self._jobs[job].dependencies if d.scheme == "begin-time"]
        later = [time for time in times if time > now]
        self._timers.extend((time, job) for time in later)
        return len(later)

    def _judge(self, antecedent: Any, link: Link, now: float) -> Verdict:
        if self._arrays and not isinstance(antecedent, str) and antecedent < 0:
            return self._judge_array(self._numbered[antecedent], link, now)
        ended = self._ended.get(antecedent)
        if link.scheme == "after" and antecedent in self._started:
            return self._judge_delay(self._started[antecedent], link, now)
        if ended is None:
            return Verdict.OPEN
        time, result = ended
        if link.scheme == THINK and time + link.delay > now:
            self._timers.append((time + link.delay, link.job))
            return Verdict.TIMED
        if link.scheme in ("afterany", SINGLETON, THINK):
            return Verdict.MET
        if link.scheme == "after":
            return Verdict.VAIN
        return Verdict.MET if (link.scheme == "afterok") == (result == COMPLETED) else Verdict.VAIN

    def _judge_delay(self, start: float, link: Link, now: float) -> Verdict:
        """Return whether the delay after a start is over."""
        if start + link.delay <= now:
            return Verdict.MET
        self._timers.append((start + link.delay, link.job))
        return Verdict.TIMED

    def _judge_array(self, tasks: Tasks, link: Link, now: float) -> Verdict:
        """Judge a link to all tasks of a job array."""
        more = tasks.array in self.coming
        if link.scheme == "after":
            if tasks.never:
                return Verdict.VAIN
            if tasks.unstarted or more:
                return Verdict.OPEN
            return self._judge_delay(max(self._started[job] for job in tasks.jobs), link, now)
        if link.scheme == "afterok" and tasks.bad:
            return Verdict.VAIN
        if tasks.unended or more:
            return Verdict.OPEN
        met = link.scheme in ("afterok", "afterany") or tasks.bad
        return Verdict.MET if met else Verdict.VAIN

    def _settle(self, antecedent: int, now: float) -> list[Met]:
        """Judge again each link to a job."""
        links = self._links.pop(antecedent, None)
        if not links:
            return []
        found: list[Met] = []
        for link in links:
            verdict = self._judge(antecedent, link, now)
            if link.scheme == SINGLETON and (other := self._namesake(link.job)) is not None:
                self._links.setdefault(other, []).append(link)
                continue
            if verdict is Verdict.OPEN:
                self._links.setdefault(antecedent, []).append(link)
            elif verdict is Verdict.MET:
                found += self._one_less(link.job)
            elif verdict is Verdict.VAIN and self._open.pop(link.job, None) is not None:
                found.append(Met(link.job, f"dependency {link.text} can never be met"))
        return found

    def _one_less(self, job: int) -> list[Met]:
        if job not in self._open:
            return []
        self._open[job] -= 1
        if self._open[job]:
            return []
        del self._open[job]
        return [Met(job, None)]


def _is_singleton(job: Job) -> bool:
    return any(item.scheme == SINGLETON for item in job.dependencies)


def names_of(job: Job) -> list[str]:
    """Return what dependencies name a job by: its id, that of its array, and the symbols that it produces."""
    names = [str(job.id)]
    if job.array_task is not None:
        names.append(job.array_task.array)
    if job.dependencies:
        names += _produced(job)
    return names


def _produced(job: Job) -> list[str]:
    """Return the symbols that a job produces."""
    given = job.dependencies
    return [_symbol(d, job) for d in given if d.scheme in SYMBOLIC and d.params.get("type", "in") != "in"]


def _symbol(dependency: Dependency, job: Job) -> str:
    """Return the key that symbolic dependencies on the same value share: scheme, scope and value."""
    scope = dependency.params.get("scope", "user")
    return "\n".join((dependency.scheme, "" if scope == "global" else str(job.user), dependency.value))
