"""The workers that perform runs: this process, local processes, Dask, or executorlib's Flux and Slurm.

All of them are a `concurrent.futures.Executor` behind the interface `Workers`, which can also restart
a broken executor and knows whether its workers share files with the client.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simsched.arguments import check
from simsched.errors import ConfigError
from simsched.files import undone
from simsched.study.runs.workers import Workers, cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_WORKERS = 1024


@contextmanager
def open_workers(
    workers: int | None = None,
    scheduler: str | None = None,
    hpc: str | None = None,
    *,
    executor: Executor | None = None,
) -> Iterator[Workers]:
    """Open workers for the time of the context.

    Parameters
    ----------
    workers : number of processes on this machine, by default one per core; 0 is this process itself.
    scheduler : address of a Dask scheduler (``tcp://host:8786``) whose workers have simsched installed.
    hpc : ``flux`` or ``slurm``: executorlib within an allocation of that system.
    executor : any executor whose workers share files with this process; it is not shut down.

    Raises
    ------
    ConfigError
        if more than one is given, an extra is not installed, or no scheduler answers at the address.
    """
    opened = _opened(workers, scheduler, hpc, executor)
    with undone(opened.kill):
        try:
            yield opened
        finally:
            opened.close()


def _opened(
    workers: int | None, scheduler: str | None, hpc: str | None, executor: Executor | None
) -> Workers:
    if workers is not None:
        check("workers", workers, int, "a whole number of 0 or more")
    for name, word in (("scheduler", scheduler), ("hpc", hpc)):
        check(name, word, str | None, "text")
    check("executor", executor, Executor | None, "a concurrent.futures.Executor")
    if sum(choice is not None for choice in (scheduler, hpc, executor)) > 1 or (workers and scheduler):
        raise ConfigError("more than one kind of workers is given", expected="one of workers, scheduler, hpc")
    if workers is not None and not 0 <= workers <= MAX_WORKERS:
        raise ConfigError(f"{workers} workers are out of range", expected=f"0 to {MAX_WORKERS}")
    if executor is not None:
        return CallerWorkers(executor, workers or cores())
    if scheduler is not None:
        from simsched.study.runs.dask_workers import DaskWorkers

        return DaskWorkers(scheduler)
    if hpc is not None:
        from simsched.study.runs.hpc_workers import HpcWorkers

        return HpcWorkers(hpc, workers)
    return InProcessWorkers() if workers == 0 else ProcessWorkers(workers or cores())


class InProcessWorkers(Workers):
    """The calling process: one run at a time."""

    size = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call the function now."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.set_exception(error)
        return future

    def renew(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class CallerWorkers(Workers):
    """An executor that the caller made and will shut down."""

    def __init__(self, executor: Executor, size: int) -> None:
        self._executor = executor
        self.size = size

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit a call."""
        return self._executor.submit(function, *arguments)

    def renew(self) -> None:
        """Raise ConfigError: only the owner can restart it."""
        raise ConfigError("the executor is broken", expected="an executor whose workers keep running")

    def close(self) -> None:
        """Leave the executor to its owner."""


class ProcessWorkers(Workers):
    """Processes of this machine, spawned and not forked, so that they inherit no threads and locks."""

    ends_all = True

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool: ProcessPoolExecutor | None = None
        self._context: Any = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit a call; processes start when they are needed."""
        from simsched.study.runs.spawn_context import WorkerContext, signals_held
        from simsched.study.runs.worker_entry import begin_worker

        try:
            with signals_held():
                if self._pool is None:
                    self._context = WorkerContext()
                    self._pool = ProcessPoolExecutor(self.size, self._context, begin_worker)
                return self._pool.submit(function, *arguments)
        except BrokenProcessPool as error:  # it broke after the last result
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    def renew(self) -> None:
        """Drop the broken pool; the next call starts another."""
        self.close()

    def kill(self) -> None:
        """End the processes, and wait for nothing else."""
        if self._context is not None:
            from multiprocessing.util import _run_finalizers  # type: ignore[attr-defined]

            self._context.kill()
            _run_finalizers(0)  # as at the end of a program: its semaphores have names, which would stay

    def close(self) -> None:
        """End the processes at once."""
        if self._pool is not None:
            self._context.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that are alive."""
        return self._context.pids() if self._context is not None else []
