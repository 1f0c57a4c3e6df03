"""What runs in a worker: a task in, an answer out, both as bytes and plain values.

A run that raises is an answer like another; only the death of the worker itself is seen by
the executor.  Nothing of a run but its files and its figures leaves the worker.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.study.runs.task import Row


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker says of one task.

    Attributes
    ----------
    row : the figures, as `Row.to_bytes`; None if the run failed.
    seconds, worker : how long it took, and where.
    error, passing : why it failed, and whether that may be otherwise another time.
    files : the run directory's files, if the caller shares none with the worker.
    """

    row: bytes | None
    seconds: float = 0.0
    worker: str = ""
    error: str = ""
    passing: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)


def work(task: bytes, folder: str | None, packed: bool, version: str) -> dict[str, Any]:
    """Perform a task and return a `Reply` as a dictionary.

    Parameters
    ----------
    task : `Task.to_bytes`.
    folder : where the run directory goes; None: nowhere.
    packed : the run directory is returned file by file, and `folder` is not looked at.
    version : the client's; another one here is a failure, since results could differ.
    """
    from simsched.study.runs.task import Task

    worker = f"{socket.gethostname()}:{os.getpid()}"
    try:
        _same_version(version)
        wanted = Task.from_bytes(task)
        row, files = _packed(wanted) if packed else (_performed(wanted, folder), {})
    except (SimschedError, OSError, MemoryError) as error:
        passing = not isinstance(error, SimschedError) or isinstance(error.__cause__, OSError)
        return {"row": None, "worker": worker, "error": _said(error), "passing": passing}
    except Exception as error:  # noqa: BLE001 - whatever a run raises is its answer
        return {"row": None, "worker": worker, "error": _said(error)}
    return {"row": row.to_bytes(), "seconds": row.seconds, "worker": worker, "files": files}


def _said(error: BaseException) -> str:
    """Return why a run failed, in one line that is the same on every worker."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, SimschedError) else f"{type(error).__name__}: {text}"


def _same_version(wanted: str) -> None:
    from simsched.errors import RunError
    from simsched.study.runs.task import version

    if version() != wanted:
        raise RunError(f"the worker has simsched {version()}", expected=f"{wanted}, as the client")


def _performed(task: Any, folder: str | None) -> Row:
    from simsched.study.runs.run_task import perform

    return perform(task, None if folder is None else Path(folder))


def _packed(task: Any) -> tuple[Row, dict[str, bytes]]:
    """Perform a task in a directory of this machine, and return its files."""
    from tempfile import TemporaryDirectory

    from simsched.study.runs.run_task import perform

    with TemporaryDirectory(prefix="simsched-run-") as folder:
        row = perform(task, Path(folder))
        run = Path(folder) / task.key
        return row, {path.name: path.read_bytes() for path in sorted(run.iterdir())}


# --- the life of a worker process ----------------------------------------------------


def begin_worker(contents: Mapping[str, bytes] | None = None) -> None:
    """Set up a worker process of this machine: Ctrl-C is its client's affair, whose end is its own end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # as in the client
    _follow_parent()
    if contents:
        from simsched.study.runs.cache import INPUTS

        INPUTS.send(contents)


def _follow_parent() -> None:
    """End this process when the one that started it is gone, however that went."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="simsched-parent", daemon=True).start()
