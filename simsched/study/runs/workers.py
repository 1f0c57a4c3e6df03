"""`Workers`: the interface of everything that performs runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from simsched.study.spec.run_task import TaskInput

#: cause of an exception: the pool is lost, a worker died, a run kills its workers, the run raised it
Fate = Literal["pool", "worker", "dead", "run"]


class Workers:
    """An executor that can be restarted."""

    #: number of runs at a time
    size: int = 1
    #: whether workers share a file system with the client and write run directories themselves
    shares_files: bool = True
    #: whether a broken pool does not report which run broke it
    blames_all: bool = True
    #: whether `close` ends every run.  Futures of such a pool must not be cancelled before: a thread of
    #: the process pool would fail on them (CPython before 3.12 shows a traceback)
    ends_all: bool = False

    _executor: Any = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit a call of a module-level function."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def send(self, sources: Sequence[TaskInput]) -> None:
        """Send inputs to workers that do not share files with the client."""

    def fate(self, error: BaseException) -> Fate:
        """Return the cause of an exception of a future."""
        from concurrent.futures import BrokenExecutor, CancelledError

        return "pool" if isinstance(error, BrokenExecutor | CancelledError) else "run"

    def renew(self) -> None:
        """Restart after the pool was lost; by default workers start when they are needed."""
        self.close()

    def kill(self) -> None:
        """End the runs under way, in a process that a signal ends."""
        self.close()

    def close(self) -> None:
        """End at once, including runs under way; by default there is nothing to end."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def contents_of(sources: Sequence[TaskInput]) -> Mapping[str, bytes]:
    """Return the contents of the files of inputs, by digest."""
    from simsched.study.runs.input_cache import INPUTS

    found: dict[str, bytes] = {}
    for source in sources:
        if source.text is None:
            path = INPUTS.path_of(source)
            found[source.sha256] = path.read_bytes()
            found.update((digest, (path.parent / part).read_bytes()) for part, digest in source.parts.items())
    return found
