"""Dispatch of many tasks to workers: results are yielded as they come, lost runs are tried again.

A run that raises an exception fails at once, since it would raise it again.  A worker that dies breaks
its pool, and the pool does not report which run caused it.  The runs under way are therefore repeated
one at a time: the one that kills its worker is found, and the others do not fail with it.
"""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched._version import version
from simsched.errors import RunError
from simsched.folders import StagedFolder
from simsched.simulation.record.run_directory import RUN_OF_STUDY
from simsched.study.runs.single_run import RunRow, WorkerReply, work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.study.runs.workers import Workers
    from simsched.study.spec.run_task import RunTask

#: number of times in a row that a pool may break without a result in between
MAX_BREAKS = 20
DIED = "the worker died"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A task and its result."""

    task: RunTask
    row: RunRow
    seconds: float = 0.0
    attempts: int = 1
    worker: str = ""


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A task without a result, and the reason."""

    task: RunTask
    reason: str
    attempts: int = 1


def run_tasks(
    tasks: Iterable[RunTask], workers: Workers, *, folder: Path | None = None, retries: int = 2
) -> Iterator[FinishedRun | FailedRun]:
    """Perform tasks and yield the result of each, in the order in which they end.

    At most two tasks per worker are under way, so `tasks` may be a generator.
    The workers must have the inputs (`Workers.send`).

    Parameters
    ----------
    folder : folder of the run directories; None keeps only figures.
    retries : number of further attempts if a worker dies or lacks memory or disk.

    Raises
    ------
    RunError
        if the workers cannot be restarted.
    """
    return _Loop(tasks, workers, folder, retries).run()


def finished_runs(
    tasks: Iterable[RunTask], workers: Workers, folder: Path | None = None
) -> dict[str, FinishedRun]:
    """Perform tasks and return their results by key; equal tasks are performed once.

    Raises
    ------
    RunError
        if a run fails.
    """
    found: dict[str, FinishedRun] = {}
    for outcome in run_tasks({task.key: task for task in tasks}.values(), workers, folder=folder):
        if not isinstance(outcome, FinishedRun):
            raise RunError(outcome.reason)
        found[outcome.task.key] = outcome
    return found


class _Loop:
    """The state of `run_tasks`: tasks that wait, tasks under way, tasks suspected of killing workers."""

    def __init__(self, tasks: Iterable[RunTask], workers: Workers, folder: Path | None, retries: int) -> None:
        self.waiting = iter(tasks)
        self.workers = workers
        self.folder = folder
        self.retries = retries
        self.again: deque[RunTask] = deque()
        self.suspects: deque[RunTask] = deque()
        self.under_way: dict[Future[Any], RunTask] = {}
        self.attempts: Counter[str] = Counter()
        self.breaks = 0
        self.version = version()

    def run(self) -> Iterator[FinishedRun | FailedRun]:
        try:
            while self._fill():
                ready, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
                lost = []
                for future in ready:
                    task = self.under_way.pop(future)
                    found = self._outcome(future, task)
                    if isinstance(found, FinishedRun | FailedRun):
                        yield found
                    elif found == "pool":
                        lost.append(task)
                if lost:
                    yield from self._recover(lost)
        finally:
            for future in () if self.workers.ends_all else self.under_way:
                future.cancel()

    def _fill(self) -> bool:
        """Submit tasks while there is room; return whether any is under way or left."""
        if self.suspects:  # one at a time, so that a death has a single cause
            if not self.under_way:
                self._submit(self.suspects.popleft())
            return True
        while len(self.under_way) < 2 * self.workers.size:  # a worker that ends finds its next task waiting
            task = self.again.popleft() if self.again else next(self.waiting, None)
            if task is None:
                break
            self._submit(task)
        return bool(self.under_way)

    def _submit(self, task: RunTask) -> None:
        self.attempts[task.key] += 1
        packed = self.folder is not None and not self.workers.shares_files
        place = None if self.folder is None or packed else str(self.folder)
        future = self.workers.submit(work, task.to_bytes(), place, packed, self.version)
        self.under_way[future] = task

    def _outcome(self, future: Future[Any], task: RunTask) -> FinishedRun | FailedRun | str:
        """Return the result of a future, ``pool`` if it was lost, or ``again`` if it is repeated."""
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            fate = self.workers.fate(error)
            if fate == "pool":
                return fate
            told = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return self._once_more(task, told if fate == "run" else DIED, fate)
        self.breaks = 0
        reply = WorkerReply(**future.result())
        tries = self.attempts[task.key]
        if reply.row is None:
            return self._once_more(task, reply.error, "worker" if reply.passing else "run")
        if reply.files and self.folder is not None:
            unpack(reply.files, self.folder / task.key)
        return FinishedRun(task, RunRow.from_bytes(reply.row), reply.seconds, tries, reply.worker)

    def _once_more(self, task: RunTask, reason: str, fate: str) -> FailedRun | str:
        tries = self.attempts[task.key]
        if fate == "worker" and tries <= self.retries:
            self.again.append(task)
            return "again"
        return FailedRun(task, reason, tries)

    def _recover(self, lost: list[RunTask]) -> Iterator[FinishedRun | FailedRun]:
        """Restart the pool after it was lost; lost tasks are repeated or become suspects."""
        alone = len(lost) == 1 and not self.under_way  # nothing else can have broken the pool
        for future, task in list(self.under_way.items()):
            found = self._outcome(future, task) if future.done() else "pool"
            if isinstance(found, FinishedRun | FailedRun):
                yield found
            elif found == "pool":
                lost.append(task)
        self.under_way.clear()
        self.breaks += 1
        if self.breaks > MAX_BREAKS:
            raise RunError(
                f"the workers died {self.breaks} times in a row", expected="workers that keep running"
            )
        self.workers.renew()
        if not self.workers.blames_all:  # each lost run is innocent: it does not count as an attempt
            self.again.extendleft(lost)
            self.attempts.subtract(task.key for task in lost)
        elif alone and self.attempts[lost[0].key] > self.retries + 1:
            yield FailedRun(lost[0], DIED, self.attempts[lost[0].key])
        else:
            self.suspects.extend(lost)


def unpack(files: Any, target: Path) -> None:
    """Write the files of a run directory; it gets its name once it is whole."""
    with StagedFolder(target, RUN_OF_STUDY, durable=False) as staged:
        for name, data in files.items():
            (staged.work / Path(name).name).write_bytes(data)
        staged.finish()
