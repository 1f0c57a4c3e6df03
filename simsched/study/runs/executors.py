"""Where runs are performed: this process, local processes, Dask, or executorlib's Flux and Slurm.

All of them are a `concurrent.futures.Executor` behind one small face, `Workers`, that can also
be made anew when it is broken and says whether its workers share files with us.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simsched.arguments import check
from simsched.errors import ConfigError
from simsched.study.runs.workers import Workers, cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_WORKERS = 1024


@contextmanager
def open_executor(
    workers: int | None = None,
    scheduler: str | None = None,
    hpc: str | None = None,
    *,
    executor: Executor | None = None,
) -> Iterator[Workers]:
    """Open workers; at the end they are gone.

    Parameters
    ----------
    workers : processes of this machine, by default one a core; 0: this process itself.
    scheduler : address of a Dask scheduler (``tcp://host:8786``) whose workers have simsched.
    hpc : ``flux`` or ``slurm``: executorlib within an allocation of that system.
    executor : any executor of yours whose workers share files with us; it is not shut down.

    Raises
    ------
    ConfigError
        If more than one is asked for, an extra is not installed, or nobody answers at the address.
    """
    opened = _opened(workers, scheduler, hpc, executor)
    try:
        yield opened
    finally:
        opened.close()


def _opened(
    workers: int | None, scheduler: str | None, hpc: str | None, executor: Executor | None
) -> Workers:
    if workers is not None:
        check("workers", workers, int, "a whole number from 0 on")
    for name, word in (("scheduler", scheduler), ("hpc", hpc)):
        check(name, word, str | None, "text")
    check("executor", executor, Executor | None, "a concurrent.futures.Executor")
    if sum(choice is not None for choice in (scheduler, hpc, executor)) > 1 or (workers and scheduler):
        raise ConfigError("more than one place to run", expected="one of workers, scheduler, hpc")
    if workers is not None and not 0 <= workers <= MAX_WORKERS:
        raise ConfigError(f"{workers} workers", expected=f"0 to {MAX_WORKERS}")
    if executor is not None:
        return Given(executor, workers or cores())
    if scheduler is not None:
        from simsched.study.runs.on_dask import DaskWorkers

        return DaskWorkers(scheduler)
    if hpc is not None:
        from simsched.study.runs.on_hpc import HpcWorkers

        return HpcWorkers(hpc, workers)
    return InProcess() if workers == 0 else Processes(workers or cores())


class InProcess(Workers):
    """The process that asks: no parallel runs, nothing to break."""

    size = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call it now."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 - it is handed on
            future.set_exception(error)
        return future

    def renew(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing to end."""


class Given(Workers):
    """An executor that somebody else made and will end."""

    def __init__(self, executor: Executor, size: int) -> None:
        self._executor = executor
        self.size = size

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit."""
        return self._executor.submit(function, *arguments)

    def renew(self) -> None:
        """Raise: only its owner could."""
        raise ConfigError("the executor that was given is broken")

    def close(self) -> None:
        """Leave it to its owner."""


class Processes(Workers):
    """Processes of this machine, started afresh (no fork: threads and locks are not inherited)."""

    ends_all = True

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool: ProcessPoolExecutor | None = None
        self._context: Any = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit, starting processes as they are needed."""
        if self._pool is None:
            from simsched.study.runs.processes import context
            from simsched.study.runs.work import begin_worker

            self._context = context()
            self._pool = ProcessPoolExecutor(self.size, self._context, begin_worker)
        try:
            return self._pool.submit(function, *arguments)
        except BrokenProcessPool as error:  # it broke since we last looked
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    def renew(self) -> None:
        """Forget the broken pool; the next run starts another."""
        self.close()

    def close(self) -> None:
        """End the processes at once."""
        if self._pool is not None:
            self._context.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return self._context.pids() if self._context is not None else []
