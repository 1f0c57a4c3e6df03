"""Worker processes that do not import the program that started them.

A process that is started afresh usually imports its parent's main module again, which runs a
script that has no ``if __name__ == "__main__"`` a second time.  Ours need nothing of it.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess


@contextmanager
def _no_main() -> Iterator[None]:
    """Hide the main module while a process is prepared."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class _Process(SpawnProcess):
    """A process that starts without its parent's main module."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802 - the name that multiprocessing calls
        with _no_main():
            return SpawnProcess._Popen(process_obj)


class WorkerContext(SpawnContext):
    """The start method of our workers; it remembers them, so that they can be ended."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Process] = []

    def Process(self, *arguments: Any, **options: Any) -> _Process:  # type: ignore[override]  # noqa: N802
        """Make a process (the executor starts it)."""
        process = _Process(*arguments, **options)
        self.started.append(process)
        return process

    def pids(self) -> list[int]:
        """Return the processes that are alive."""
        return [process.pid for process in self.started if process.is_alive() and process.pid is not None]

    def kill(self) -> None:
        """End all of them at once."""
        for process in self.started:
            if process.is_alive():
                process.kill()
        self.started.clear()


def context() -> WorkerContext:
    """Return a new context."""
    return WorkerContext()
