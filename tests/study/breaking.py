"""Runs that go wrong, for tests: what a worker does instead of the task it is given.

They are plain functions of a module, so that any executor can send them.  A folder that the
test makes holds one file for each time that something went wrong.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from simsched.study.runs.single_run import work


def _first_times(folder: str, key: str, times: int) -> bool:
    """Whether this is one of the first so many times for this key."""
    for number in range(times):
        try:
            (Path(folder) / f"{key}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return True
    return False


def dying(folder, key, times, task, *rest):
    """Kill this worker when it gets the task with this key, so many times."""
    from simsched.study.spec.run_task import RunTask

    if RunTask.from_bytes(task).key == key and _first_times(folder, key, times):
        os.kill(os.getpid(), signal.SIGKILL)
    return work(task, *rest)


def passing(folder, key, times, task, *rest):
    """Fail for want of disk, so many times."""
    from simsched.study.spec.run_task import RunTask

    if RunTask.from_bytes(task).key == key and _first_times(folder, key, times):
        return {"row": None, "error": "OSError: disk full", "passing": True}
    return work(task, *rest)


def slow(seconds, task, *rest):
    """Take longer."""
    time.sleep(seconds)
    return work(task, *rest)
