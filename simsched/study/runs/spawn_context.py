"""The start method of worker processes, which do not import the main module of their parent.

A spawned process imports its parent's main module again, which would run a script without
``if __name__ == "__main__"`` a second time.  Our workers need nothing of it.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.process import BaseProcess


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
