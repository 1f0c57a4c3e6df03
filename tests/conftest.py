"""What every test may use: the traces, and one hypothesis profile for all."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

# The same examples in every run, so that a red build is red again;
# HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", parent=settings.get_profile("fixed"), derandomize=False, max_examples=2000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what `make test` leaves out: all but the first cases of a test that draws its input."""
    cases: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("quick")
        drawn = "seed" in getattr(getattr(item, "callspec", None), "params", ())
        function = item.nodeid.partition("[")[0]
        cases[function] += 1
        if cases[function] > (mark.args[0] if mark else 2 if drawn else math.inf):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def traces() -> Path:
    """The directory of the Parallel Workloads Archive's traces, which are not ours to copy."""
    folder = Path(os.environ.get("SIMSCHED_TRACES") or REPOSITORY.parent / "shared" / "traces")
    if not folder.is_dir():
        pytest.skip(f"no traces: {folder} is not there; set SIMSCHED_TRACES")
    return folder


@pytest.fixture(scope="session")
def gone_pid() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@pytest.fixture
def heard() -> Iterator[None]:
    """Signals as a shell starts a command in the foreground: `make test` may run under nohup."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
