"""Runs within an allocation of Flux or Slurm by executorlib; its nodes share files with the client."""

from __future__ import annotations

from shutil import which

from simsched.errors import ConfigError
from simsched.extras import needs
from simsched.study.runs.workers import Fate, Workers, cores

try:
    import executorlib
except ModuleNotFoundError as missing:
    raise needs("--hpc", missing, extra="hpc") from None


#: system → class of executorlib; ``local`` is for tests on this machine
CLASSES = {"flux": "FluxJobExecutor", "slurm": "SlurmJobExecutor", "local": "SingleNodeExecutor"}


class HpcWorkers(Workers):
    """Workers that executorlib starts for the time of the study, each in its own process."""

    def __init__(self, system: str, size: int | None = None) -> None:
        if system not in CLASSES:
            raise ConfigError(f"unknown system {system!r}", where="--hpc", expected=", ".join(CLASSES))
        self.system = system
        self.size = size or cores()
        self._start()

    def _start(self) -> None:
        make = getattr(executorlib, CLASSES[self.system])
        try:
            if self.system == "slurm" and which("srun") is None:
                raise FileNotFoundError("srun is not installed")
            self._executor = make(max_workers=self.size, block_allocation=True, resource_dict={"cores": 1})
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            text = " ".join(str(error).split())
            raise ConfigError(
                f"{CLASSES[self.system]} does not start: {text}",
                where="--hpc",
                expected=f"to run within an allocation of {self.system}",
            ) from None

    def fate(self, error: BaseException) -> Fate:
        """Recognize a worker that is gone by the error of its socket."""
        return "pool" if "Socket" in type(error).__name__ else super().fate(error)

    def renew(self) -> None:
        """Start new workers."""
        self.close()
        self._start()

    def close(self) -> None:
        """End the workers."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
