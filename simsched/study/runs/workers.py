"""`Workers`: what a study asks of the place where its runs are performed."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from simsched.study.runs.task import Input

#: what an exception means: the pool is lost; a worker died; a run kills its workers; the run raised
Fate = Literal["pool", "worker", "dead", "run"]


class Workers(ABC):
    """Some workers: an executor that can be made anew."""

    #: how many runs go on at once
    size: int = 1
    #: whether they write the run directories themselves
    shares_files: bool = True
    #: whether a broken pool tells nothing of which run broke it
    blames_all: bool = True
    #: whether `close` ends every run; what is cancelled before that, a pool of processes would stumble
    #: over in a thread of its own (CPython before 3.12 shows a traceback)
    ends_all: bool = False

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand in a call of a function of a module."""

    def send(self, sources: Sequence[Input]) -> None:  # noqa: B027 - most need not send anything
        """Make inputs known to the workers that share no files with us."""

    def fate(self, error: BaseException) -> Fate:
        """Say what an exception of a future means."""
        from concurrent.futures import BrokenExecutor, CancelledError

        return "pool" if isinstance(error, BrokenExecutor | CancelledError) else "run"

    @abstractmethod
    def renew(self) -> None:
        """Start anew after the pool was lost."""

    @abstractmethod
    def close(self) -> None:
        """End at once, runs that go on included."""


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def contents_of(sources: Sequence[Input]) -> Mapping[str, bytes]:
    """Return the contents of files by digest, once each."""
    from simsched.study.runs.cache import INPUTS

    found: dict[str, bytes] = {}
    for source in sources:
        if source.text is None:
            path = INPUTS.path_of(source)
            found[source.sha256] = path.read_bytes()
            found.update((digest, (path.parent / part).read_bytes()) for part, digest in source.parts.items())
    return found
