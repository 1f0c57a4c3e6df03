"""A real Dask scheduler and its workers, over TCP on the loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from tests import REPOSITORY


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class DaskCluster:
    """``dask scheduler`` and ``dask worker`` as processes; whatever was started is ended."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def start_scheduler(self) -> None:
        """Start the scheduler at our address."""
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"
        )
        _until(lambda: _listens(self.port))

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker process of one thread, in a folder of its own."""
        worker = self._start("worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
                             "--host", "127.0.0.1", "--memory-limit", "0")  # fmt: skip
        self.workers.append(worker)
        return worker

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments]
        env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}  # for the runs that go wrong
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)

    def wait_for(self, count: int) -> None:
        """Wait until the scheduler has so many workers."""
        from simsched.study.runs.worker_pools import open_workers

        with open_workers(scheduler=self.address) as known:
            _until(lambda: len(known.addresses()) == count)

    def ensure(self, count: int) -> None:
        """See to it that the scheduler and exactly so many workers are there."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.stop()
            self.start_scheduler()
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < count:
            self.start_worker()
        self.wait_for(count)

    def stop(self) -> None:
        """End everything."""
        every = [*self.workers, *([self.scheduler] if self.scheduler else [])]
        for process in every:
            process.kill()
        for process in every:
            process.wait()
        self.workers, self.scheduler = [], None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _until(holds, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def dask_processes():
    """The scheduler and workers of this session."""
    pytest.importorskip("distributed")
    cluster = DaskCluster()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def dask_cluster(dask_processes):
    """A scheduler with two workers that live."""
    dask_processes.ensure(2)
    return dask_processes
