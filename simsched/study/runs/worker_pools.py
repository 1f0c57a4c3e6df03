"""The workers that perform runs: this process, local processes, Dask, or executorlib's Flux and Slurm.

Each is a `concurrent.futures.Executor` behind `Workers`; the processes of this machine are here.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from concurrent.futures import Executor, Future
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import TYPE_CHECKING, Any

from simsched.arguments import check
from simsched.errors import ConfigError
from simsched.files import undone
from simsched.study.runs.workers import CallerWorkers, InProcessExecutor, Workers, cores, hpc_executor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.process import BaseProcess


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
    size = workers or cores()
    if executor is not None:
        return CallerWorkers(lambda: executor, size)
    if scheduler is not None:
        from simsched.study.runs.dask_workers import DaskWorkers

        return DaskWorkers(scheduler)
    if hpc is not None:
        return Workers(lambda: hpc_executor(hpc, size), size)
    return Workers(InProcessExecutor, 1) if workers == 0 else ProcessWorkers(size)


class ProcessWorkers(Workers):
    """Processes of this machine, spawned and not forked, so that they inherit no threads and locks."""

    ends_all = True

    def __init__(self, size: int) -> None:
        self._context: Any = WorkerContext()

        def make() -> ProcessPoolExecutor:
            with signals_held():
                return ProcessPoolExecutor(size, self._context, begin_worker)

        super().__init__(make, size)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit a call; processes start when they are needed."""
        with signals_held():
            return super().submit(function, *arguments)

    def kill(self) -> None:
        """End the processes, and wait for nothing else."""
        from multiprocessing.util import _run_finalizers  # type: ignore[attr-defined]

        self._context.kill()
        _run_finalizers(0)  # as at the end of a program: its semaphores have names, which would stay

    def close(self) -> None:
        """End the processes at once."""
        executor, self._executor = self._executor, None
        if executor is not None:
            self._context.kill()
            executor.shutdown(wait=True, cancel_futures=True)

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that are alive."""
        found: list[int] = self._context.pids()
        return found


# --- the start method of worker processes, which do not import the main module of their parent


HELD = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
"""The signals that wait while workers start."""


@contextmanager
def _no_main() -> Iterator[None]:
    """Hide the main module while a process is prepared.

    `multiprocessing` offers no option for this; it looks at ``sys.modules["__main__"]``.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def signals_held() -> Iterator[None]:
    """Let signals wait while workers start: one between two steps would leave a half-made process or pool.

    A process inherits that they are held; `begin_worker` lets through all but SIGINT, which is
    for its parent alone.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on every system
        yield
        return
    resource_tracker.ensure_running()  # it would let SIGINT and SIGTERM through when it starts
    came: list[int] = []
    handlers = _handlers()
    for number in handlers:
        signal.signal(number, lambda number, _frame: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def _handlers() -> dict[int, Callable[..., Any]]:
    """Return the functions that take the signals here, if this is the main thread.

    The system gives a signal that this thread holds to any other, which has Python call the function
    in the main thread all the same: holding alone is not enough.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in HELD}
    return {number: handler for number, handler in found.items() if callable(handler)}


class _Process(SpawnProcess):
    """A process that starts without the main module of its parent."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802 - the name that multiprocessing calls
        with _no_main():
            return SpawnProcess._Popen(process_obj)


class WorkerContext(SpawnContext):
    """A spawn context that keeps its processes, so that they can be killed."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Process] = []

    def Process(self, *arguments: Any, **options: Any) -> _Process:  # type: ignore[override]  # noqa: N802
        """Return a process; the executor starts it."""
        process = _Process(*arguments, **options)
        self.started.append(process)
        return process

    def pids(self) -> list[int]:
        """Return the numbers of the processes that are alive."""
        return [process.pid for process in self.started if process.is_alive() and process.pid is not None]

    def kill(self) -> None:
        """Kill all processes."""
        for process in self.started:
            if process.is_alive():
                process.kill()
        for process in self.started:
            process.join(1)
        self.started.clear()


def begin_worker(contents: Mapping[str, bytes] | None = None) -> None:
    """Set up a worker process: it ignores Ctrl-C, which the client handles, and ends with the client."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # not on every system
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # as in the client
    _follow_parent()
    if contents:
        from simsched.study.runs.input_cache import INPUTS

        INPUTS.send(contents)


def _follow_parent() -> None:
    """End this process when its parent has ended, even if the parent was killed."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="simsched-parent", daemon=True).start()
