"""`SubmissionReader`: submissions of a program as `Job`."""

from __future__ import annotations

from functools import partial
from math import inf
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypedDict, get_args

import msgspec

from simsched.arguments import MOST, check, check_real, check_whole, wrong
from simsched.errors import ConfigError, FormatError
from simsched.formats.jobspec.jobspec import Jobspec, as_jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.duration import MAX_SECONDS, parse_duration
from simsched.workload.job import Job, KnownTasks, note_task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class JobFields(TypedDict, total=False):
    """The fields of a `Job` that a submission may have beside its request and times.

    Parameters
    ----------
    id, name : its own, a number by default; its name.
    user, group, bank, queue, qos, partition : where it belongs; names.
    urgency, priority : 0 to 31, 16 by default; that of another scheduler.
    dependencies : RFC 26 dependencies.
    preceding, think_time : the job that precedes it, and the seconds after the end of that job.
    hold : whether it is held.
    cancel_at, deadline : times (s) at which it is cancelled, and by which it should have ended.
    procs, nodes, memory, energy, wait, status, nodelist : columns of a log.
    """

    id: int | str
    user: str | None
    group: str | None
    queue: str | None
    bank: str | None
    name: str | None
    urgency: int
    priority: int | None
    dependencies: str | Dependency | Sequence[str | Dependency]
    preceding: int | str | None
    think_time: float | None
    procs: int | None
    hold: bool
    cancel_at: float | None
    deadline: float | None
    nodes: int | None
    memory: int | None
    energy: int | None
    partition: str | None
    wait: float | None
    status: str | None
    qos: str | None
    nodelist: str | None


HIGHEST = 31
"""The highest urgency (RFC 21)."""


class SubmissionReader:
    """Makes jobs of requests; equal shapes share one jobspec, so that each is compiled once.

    Attributes
    ----------
    ids : the ids of all jobs so far, as text.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._specs: dict[str, Jobspec] = {}
        self._tasks: KnownTasks = {}
        self._last = 0

    def read(
        self,
        request: Any,
        duration: Any,
        runtime: Any,
        at: float | None,
        now: float,
        attributes: Mapping[str, Any],
    ) -> Job:
        """Return the job of a submission; without `at` it comes `now`, or at the submit time of a job.

        Raises
        ------
        ConfigError, FormatError
            For a value that it cannot have.
        """
        jobspec = self._jobspec(request)
        if jobspec is None:
            return self._adapted(request, duration, runtime, at, attributes)
        fields = _checked(attributes)
        requested = read_seconds("duration", duration)
        if requested is None:
            requested = jobspec.duration or None
        id_ = fields.get("id")
        own = self._next_id() if id_ is None else self._own(id_)
        seconds = read_seconds("runtime", runtime)
        self.ids.add(own)
        fields["id"] = self._last if id_ is None else id_
        fields["submit"] = now if at is None else at
        fields["jobspec"], fields["duration"], fields["runtime"] = jobspec, requested, seconds
        return Job(**fields)

    def copy(self) -> SubmissionReader:
        """Return an equal reader that changes by itself."""
        made = SubmissionReader()
        made.restore(self.state())
        made._specs = self._specs
        return made

    def state(self) -> dict[str, Any]:
        """Return the ids so far as plain values."""
        tasks = {array: [limit, sorted(indices)] for array, (limit, indices) in self._tasks.items()}
        return {"ids": sorted(self.ids), "last": self._last, "tasks": tasks}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the ids of an equal reader."""
        self.ids, self._last = set(state["ids"]), state["last"]
        self._tasks = {array: (limit, set(indices)) for array, (limit, indices) in state["tasks"].items()}

    def _adapted(
        self, job: Job, duration: Any, runtime: Any, at: float | None, attributes: Mapping[str, Any]
    ) -> Job:
        """Return a job of a workload, with the values that are given beside it."""
        changes = _checked(attributes)
        if duration is not None:
            changes["duration"] = read_seconds("duration", duration)
        if runtime is not None:
            changes["runtime"] = read_seconds("runtime", runtime)
        if at is not None:
            changes["submit"] = at
        else:
            check_real("at", job.submit, 0, MAX_SECONDS)
        if changes:
            job = Job(**{**{name: getattr(job, name) for name in job.__struct_fields__}, **changes})
        _id("id", job.id)
        own = self._own(job.id)
        if job.array_task is not None:
            note_task(job, self._tasks)
        self.ids.add(own)
        return job

    def _jobspec(self, request: Any) -> Jobspec | None:
        """Return the jobspec of a request; None of a job."""
        if isinstance(request, str):
            known = self._specs.get(request)
            if known is None:
                known = self._specs[request] = as_jobspec(request)
            return known
        if isinstance(request, Jobspec):
            return request
        if isinstance(request, Job):
            return None
        if not isinstance(request, dict):
            raise wrong("request", request, "a shape, a jobspec or a job")
        return as_jobspec(request)

    def _next_id(self) -> str:
        """Let the last number be the next one that is not an id, and return it as text."""
        self._last += 1
        while (text := str(self._last)) in self.ids:
            self._last += 1
        return text

    def _own(self, id_: Any) -> str:
        """Return as text the id that a job has of its own."""
        if (text := str(id_)) in self.ids:
            raise ConfigError(f"there is a job {id_} already", expected="an id that no job has")
        return text


def read_seconds(name: str, value: Any) -> float | None:
    """Return seconds, a whole number as an int; None for no value and for a duration without a limit."""
    if value is None:
        return None
    seconds = value if type(value) is int else _parsed(name, value)
    if 0 <= seconds <= MAX_SECONDS:
        return seconds
    if seconds == inf:
        return None
    raise wrong(name, value, f"seconds from 0 to {MAX_SECONDS:g}")


def _parsed(name: str, value: Any) -> float:
    try:
        found = parse_duration(value.item() if hasattr(value, "item") else value)
    except FormatError as error:
        raise ConfigError(f"{name}: {error.message}", expected=error.expected) from None
    return int(found) if isinstance(value, str) and found.is_integer() else found


def _checked(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the further fields of a job; ConfigError for a value of another type."""
    return {name: None if value is None else READERS[name](name, value) for name, value in attributes.items()}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong(name, value, "a text")
    return value


def _truth(name: str, value: Any) -> bool:
    check(name, value, bool, "True or False")
    return bool(value)


def _whole(name: str, value: Any, **span: int) -> int:
    check_whole(name, value, **span)
    return int(value)  # NumPy's are not written to files


def _real(name: str, value: Any) -> Any:
    check_real(name, value, 0, MAX_SECONDS)
    return int(value) if isinstance(value, Integral) else float(value)


def _id(name: str, value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, Integral | str) or value == "":
        raise wrong(name, value, "a whole number or a text")
    return value if isinstance(value, str) else int(value)


def _dependencies(_: str, value: Any) -> tuple[Dependency, ...]:
    """Return dependencies given as one text, or as several texts or values."""
    some = (value,) if isinstance(value, str | Dependency) else value
    if not isinstance(some, list | tuple):
        raise wrong("dependencies", value, "dependencies such as 'afterok:7'")
    return tuple(_dependency(item) for item in some)


def _dependency(item: Any) -> Dependency:
    if isinstance(item, Dependency):
        return item
    if not isinstance(item, str):
        raise wrong("dependencies", item, "dependencies such as 'afterok:7'")
    return Dependency.parse(item, "dependencies")


def _reader_of(types: tuple[type, ...]) -> Callable[[str, Any], Any]:
    """Return what checks and returns values of these types."""
    if bool in types:
        return _truth
    if float in types:
        return _real
    if str not in types:
        return _whole
    return _id if int in types else _text


READERS: dict[str, Callable[[str, Any], Any]] = {
    one.name: _reader_of(get_args(one.type) or (one.type,))
    for one in msgspec.structs.fields(Job)
    if one.name in JobFields.__annotations__
}
"""Field of a job → what returns its values as a job has them; ConfigError for one of another type."""
READERS["urgency"] = partial(_whole, most=HIGHEST)
READERS["priority"] = partial(_whole, least=-MOST)  # that of another scheduler may be below 0
READERS["dependencies"] = _dependencies
