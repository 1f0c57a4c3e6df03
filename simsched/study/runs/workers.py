"""`Workers`: a `concurrent.futures.Executor` that performs runs, and can be made again when it was lost."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from shutil import which
from typing import TYPE_CHECKING, Any, Literal

from simsched.errors import ConfigError
from simsched.extras import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from simsched.study.spec.run_task import TaskInput


#: cause of an exception: the pool is lost, a worker died, a run kills its workers, the run raised it
Fate = Literal["pool", "worker", "dead", "run"]
#: system → class of executorlib; ``local`` is for tests on this machine
CLASSES = {"flux": "FluxJobExecutor", "slurm": "SlurmJobExecutor", "local": "SingleNodeExecutor"}


class Workers:
    """An executor, made by a function."""

    #: number of runs at a time
    size: int = 1
    #: whether workers share a file system with the client and write run directories themselves
    shares_files: bool = True
    #: whether a broken pool does not report which run broke it
    blames_all: bool = True
    #: whether `close` ends every run.  Futures of such a pool must not be cancelled before: a thread of
    #: the process pool would fail on them (CPython before 3.12 shows a traceback)
    ends_all: bool = False

    def __init__(self, make: Callable[[], Executor], size: int) -> None:
        self._make, self.size = make, size
        self._executor: Any = make()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit a call of a module-level function."""
        try:
            future: Future[Any] = self._executor.submit(function, *arguments)
        except BrokenExecutor as error:  # it broke after the last result
            future = Future()
            future.set_exception(error)
        return future

    def send(self, sources: Sequence[TaskInput]) -> None:
        """Send inputs to workers that do not share files with the client."""

    def fate(self, error: BaseException) -> Fate:
        """Return the cause of an exception of a future; executorlib reports a lost worker by its socket."""
        lost = isinstance(error, BrokenExecutor | CancelledError) or "Socket" in type(error).__name__
        return "pool" if lost else "run"

    def renew(self) -> None:
        """Restart after the pool was lost."""
        self.close()
        self._executor = self._make()

    def kill(self) -> None:
        """End the runs under way, in a process that a signal ends."""
        self.close()

    def close(self) -> None:
        """End at once, including runs under way."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)


class InProcessExecutor(Executor):
    """The calling process: one run at a time, which is done when it is submitted."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Call the function now."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.set_exception(error)
        return future


class CallerWorkers(Workers):
    """An executor that the caller made and will shut down; only the owner can restart it."""

    def renew(self) -> None:
        """Raise ConfigError."""
        raise ConfigError("the executor is broken", expected="an executor whose workers keep running")

    def close(self) -> None:
        """Leave it to the caller."""


def hpc_executor(system: str, size: int) -> Executor:
    """Return an executor of executorlib within an allocation of Flux or Slurm, whose nodes share files.

    Raises
    ------
    ConfigError
        for an unknown system, without executorlib, or outside of an allocation.
    """
    try:
        import executorlib
    except ModuleNotFoundError as missing:
        raise needs("--hpc", missing, extra="hpc") from None
    if system not in CLASSES:
        raise ConfigError(f"unknown system {system!r}", where="--hpc", expected=", ".join(CLASSES))
    try:
        if system == "slurm" and which("srun") is None:
            raise FileNotFoundError("srun is not installed")
        make: Any = getattr(executorlib, CLASSES[system])
        executor: Executor = make(max_workers=size, block_allocation=True, resource_dict={"cores": 1})
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise ConfigError(
            f"{CLASSES[system]} does not start: {text}",
            where="--hpc",
            expected=f"to run within an allocation of {system}",
        ) from None
    return executor


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
