"""Many tasks on some workers: what is done comes out as it is done, what dies is tried again.

A run that raises fails at once, since it would raise again.  A worker that dies takes its pool
with it and nobody says which run it was on: those that were under way are tried one at a time,
so that the one that kills its worker is found and the others are not blamed for it.
"""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import RunError
from simsched.folders import StagedFolder
from simsched.simulation.record.run_directory import RUN_OF_STUDY
from simsched.study.runs.task import Row, version
from simsched.study.runs.work import Reply, work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.study.runs.task import Task
    from simsched.study.runs.workers import Workers

#: times that a pool may break in a row without a single answer in between
MAX_BREAKS = 20
DIED = "the worker died"


@dataclass(frozen=True, slots=True)
class Done:
    """A task and what it came to."""

    task: Task
    row: Row
    attempts: int = 1
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """A task that gave no result, and why."""

    task: Task
    reason: str
    attempts: int = 1


def run_tasks(
    tasks: Iterable[Task], workers: Workers, *, folder: Path | None = None, retries: int = 2
) -> Iterator[Done | Failed]:
    """Perform tasks and yield what comes of each, in the order in which they end.

    At most a few more than there are workers are under way, so `tasks` may be a generator.
    Their inputs have to be known to the workers (`Workers.send`).

    Parameters
    ----------
    folder : takes the run directories; None: figures only.
    retries : how often a task is tried again whose worker died, or that failed for want of
        memory or disk.

    Raises
    ------
    RunError
        If the workers cannot be brought back.
    """
    return _Loop(tasks, workers, folder, retries).run()


class _Loop:
    """The state of `run_tasks`: what waits, what is under way, who is suspected."""

    def __init__(self, tasks: Iterable[Task], workers: Workers, folder: Path | None, retries: int) -> None:
        self.waiting = iter(tasks)
        self.workers = workers
        self.folder = folder
        self.retries = retries
        self.again: deque[Task] = deque()
        self.suspects: deque[Task] = deque()
        self.under_way: dict[Future[Any], Task] = {}
        self.attempts: Counter[str] = Counter()
        self.breaks = 0
        self.version = version()

    def run(self) -> Iterator[Done | Failed]:
        try:
            while self._fill():
                ready, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
                lost = []
                for future in ready:
                    task = self.under_way.pop(future)
                    found = self._outcome(future, task)
                    if isinstance(found, Done | Failed):
                        yield found
                    elif found == "pool":
                        lost.append(task)
                if lost:
                    yield from self._recover(lost)
        finally:
            for future in () if self.workers.ends_all else self.under_way:
                future.cancel()

    def _fill(self) -> bool:
        """Hand in what there is room for; false when nothing is left to wait for."""
        if self.suspects:
            if not self.under_way:
                self._submit(self.suspects.popleft())
            return True
        while len(self.under_way) < 2 * self.workers.size:
            task = self.again.popleft() if self.again else next(self.waiting, None)
            if task is None:
                break
            self._submit(task)
        return bool(self.under_way)

    def _submit(self, task: Task) -> None:
        self.attempts[task.key] += 1
        packed = self.folder is not None and not self.workers.shares_files
        place = None if self.folder is None or packed else str(self.folder)
        future = self.workers.submit(work, task.to_bytes(), place, packed, self.version)
        self.under_way[future] = task

    def _outcome(self, future: Future[Any], task: Task) -> Done | Failed | str:
        """Return what came of a future, or ``pool`` if it was lost, or ``again``."""
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            fate = self.workers.fate(error)
            if fate == "pool":
                return fate
            return self._once_more(task, _line(error) if fate == "run" else DIED, fate)
        self.breaks = 0
        reply = Reply(**future.result())
        tries = self.attempts[task.key]
        if reply.row is None:
            return self._once_more(task, reply.error, "worker" if reply.passing else "run")
        if reply.files and self.folder is not None:
            unpack(reply.files, self.folder / task.key)
        row = Row.from_bytes(reply.row, settings=task.settings, seconds=reply.seconds)
        return Done(task, row, tries, reply.worker)

    def _once_more(self, task: Task, reason: str, fate: str) -> Failed | str:
        tries = self.attempts[task.key]
        if fate == "worker" and tries <= self.retries:
            self.again.append(task)
            return "again"
        return Failed(task, reason, tries)

    def _recover(self, lost: list[Task]) -> Iterator[Done | Failed]:
        """Take stock after the pool was lost, and start it anew."""
        alone = len(lost) == 1 and not self.under_way
        for future, task in list(self.under_way.items()):
            found = self._outcome(future, task) if future.done() else "pool"
            if isinstance(found, Done | Failed):
                yield found
            elif found == "pool":
                lost.append(task)
        self.under_way.clear()
        self.breaks += 1
        if self.breaks > MAX_BREAKS:
            raise RunError(f"the workers were lost {self.breaks} times in a row", expected="workers that run")
        self.workers.renew()
        if not self.workers.blames_all:
            self.again.extendleft(lost)
            self.attempts.subtract(task.key for task in lost)
        elif alone and self.attempts[lost[0].key] > self.retries + 1:
            yield Failed(lost[0], DIED, self.attempts[lost[0].key])
        else:
            self.suspects.extend(lost)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def unpack(files: Any, target: Path) -> None:
    """Write the files of a run directory, which has its name when it is whole."""
    with StagedFolder(target, RUN_OF_STUDY, durable=False) as staged:
        for name, data in files.items():
            (staged.work / Path(name).name).write_bytes(data)
        staged.finish()
