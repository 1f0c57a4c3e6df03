"""`LogRecord`: one record of a log, with absolute times, before it becomes a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.dependency import Dependency


class LogRecord(NamedTuple):
    """One record on its way to a job; `submit`, `start` and times in `dependencies` are absolute seconds.

    `task` is the array and the index of a task of a job array.

    A `jobspec` that is a text is the reason why the record has no jobspec.
    """

    id: int | str
    submit: float | None
    jobspec: Jobspec | str
    start: float | None = None
    runtime: float | None = None
    duration: float | None = None
    user: str | None = None
    group: str | None = None
    queue: str | None = None
    bank: str | None = None
    name: str | None = None
    partition: str | None = None
    procs: int | None = None
    nodes: int | None = None
    memory: int | None = None
    status: str | None = None
    urgency: int = 16
    dependencies: tuple[Dependency, ...] = ()
    energy: int | None = None
    nodelist: str | None = None
    qos: str | None = None
    task: tuple[str, int] | None = None
