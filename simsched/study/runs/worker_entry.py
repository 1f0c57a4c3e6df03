"""The function that a worker runs: it takes a task and returns a reply, both as bytes and plain values.

A run that raises an exception also gives a reply; the executor only notices the death of a worker.
Nothing of a run but its files and its figures leaves the worker.
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

    from simsched.study.runs.run_row import RunRow


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """The reply of a worker to one task.

    Attributes
    ----------
    row : the figures, as `RunRow.to_bytes`; None if the run failed.
    seconds, worker : time of the run, and the worker that performed it.
    error, passing : reason of a failure, and whether another attempt may succeed.
    files : files of the run directory, if client and worker do not share files.
    """

    row: bytes | None
    seconds: float = 0.0
    worker: str = ""
    error: str = ""
    passing: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)


def work(task: bytes, folder: str | None, packed: bool, version: str) -> dict[str, Any]:
    """Perform a task and return a `WorkerReply` as a dictionary.

    Parameters
    ----------
    task : `RunTask.to_bytes`.
    folder : folder of the run directories; None keeps none.
    packed : return the files of the run directory and ignore `folder`.
    version : version of the client; another one here is a failure, since results could differ.
    """
    from simsched.study.spec.run_task import RunTask

    worker = f"{socket.gethostname()}:{os.getpid()}"
    try:
        _same_version(version)
        wanted = RunTask.from_bytes(task)
        row, files = _packed(wanted) if packed else (_performed(wanted, folder), {})
    except (SimschedError, OSError, MemoryError) as error:
        # Lack of memory or disk may pass; an error of the input or the options would return.
        passing = not isinstance(error, SimschedError) or isinstance(error.__cause__, OSError)
        return {"row": None, "worker": worker, "error": _reason_of(error), "passing": passing}
    except Exception as error:  # noqa: BLE001 - the reply carries it
        return {"row": None, "worker": worker, "error": _reason_of(error)}
    return {"row": row.to_bytes(), "seconds": row.seconds, "worker": worker, "files": files}


def _reason_of(error: BaseException) -> str:
    """Return the reason of a failure in one line, which is the same on every worker."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, SimschedError) else f"{type(error).__name__}: {text}"


def _same_version(wanted: str) -> None:
    from simsched._version import version
    from simsched.errors import RunError

    if version() != wanted:
        raise RunError(
            f"the worker has simsched {version()}", expected=f"{wanted}, the version of the client"
        )


def _performed(task: Any, folder: str | None) -> RunRow:
    from simsched.study.runs.single_run import perform

    return perform(task, None if folder is None else Path(folder))


def _packed(task: Any) -> tuple[RunRow, dict[str, bytes]]:
    """Perform a task in a temporary directory of this machine and return its files."""
    from tempfile import TemporaryDirectory

    from simsched.study.runs.single_run import perform

    with TemporaryDirectory(prefix="simsched-run-") as folder:
        row = perform(task, Path(folder))
        run = Path(folder) / task.key
        return row, {path.name: path.read_bytes() for path in sorted(run.iterdir())}


# --- the life of a worker process ----------------------------------------------------


def begin_worker(contents: Mapping[str, bytes] | None = None) -> None:
    """Set up a worker process: it ignores Ctrl-C, which the client handles, and ends with the client."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from simsched.study.runs.spawn_context import HELD

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
