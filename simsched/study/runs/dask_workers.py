"""Runs on the workers of a Dask scheduler, which need not share files with the client.

Inputs are sent once to each worker, by the digest of their content, as a plugin that Dask also installs
on workers that join later.  Results return as bytes.
"""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, RunError
from simsched.extras import needs
from simsched.study.runs.workers import Fate, Workers, contents_of

try:
    from distributed import Client, KilledWorker, WorkerPlugin
    from distributed.comm.core import CommClosedError
except ModuleNotFoundError as missing:
    raise needs("a Dask scheduler", missing, extra="dask") from None

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.study.spec.run_task import TaskInput

CONNECT = 5.0
"""Seconds within which a scheduler has to answer."""
RECOUNT = 1.0
"""Seconds after which the workers are counted again."""
PATIENCE = 120.0
"""Seconds to wait for a scheduler that has gone away."""
_ADDRESS = re.compile(r"(?:tcp|tls|ucx|ucxx|ws|wss)://[^\s/]+")


class SendInputs(WorkerPlugin):  # type: ignore[misc,unused-ignore]
    """Puts contents into a worker's cache and removes them at the end of the study."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.contents = contents

    def setup(self, worker: Any) -> None:  # noqa: ARG002 - Dask's signature
        """Store the contents; Dask calls this on every worker, including later ones."""
        from simsched.study.runs.input_cache import INPUTS

        INPUTS.send(self.contents)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - Dask's signature
        """Drop the contents; Dask calls this when the plugin is unregistered."""
        from simsched.study.runs.input_cache import INPUTS

        INPUTS.drop(self.contents)


class DaskWorkers(Workers):
    """The workers of one scheduler."""

    shares_files = False
    blames_all = False

    def __init__(self, address: str) -> None:
        if not _ADDRESS.fullmatch(address):
            raise ConfigError(
                f"{address!r} is not the address of a scheduler",
                where="--scheduler",
                expected="tcp://host:8786",
            )
        self.address = address
        self._sources: dict[str, TaskInput] = {}
        self._plugins: set[str] = set()
        self._count, self._counted = 1, -RECOUNT
        self._levels = {
            name: logging.getLogger(name).level
            for name in ("distributed", *logging.root.manager.loggerDict)
            if name.startswith("distributed")
        }
        self._log(dict.fromkeys(self._levels, logging.CRITICAL + 1))  # it tells of each lost connection
        self._client: Any = None
        self._connect(CONNECT)

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of workers of the scheduler, at least one since more may join."""
        if time.monotonic() > self._counted + RECOUNT:
            self._count, self._counted = max(1, len(self.addresses())), time.monotonic()
        return self._count

    def addresses(self) -> list[str]:
        """Return the addresses of the workers."""
        return list(self._client.scheduler_info(n_workers=-1).get("workers", ()))

    def _connect(self, patience: float) -> None:
        try:
            make: Any = Client  # untyped in some versions of Dask
            self._client = make(self.address, timeout=patience, set_as_default=False)
        except (OSError, ValueError, RuntimeError) as error:
            self._log(self._levels)
            reason = " ".join(str(error).split()).removesuffix(".")[:200]
            raise ConfigError(
                f"no Dask scheduler answers: {reason}",
                where=self.address,
                expected="a `dask scheduler`",
            ) from None
        self._executor = self._client.get_executor(pure=False)

    def send(self, sources: Sequence[TaskInput]) -> None:
        """Send the contents that were not sent before."""
        new = {s.sha256: s for s in sources if s.sha256 not in self._sources and s.text is None}
        if new:
            self._sources.update(new)
            self._register(list(new.values()))

    def _register(self, sources: Sequence[TaskInput]) -> None:
        for digest, content in contents_of(sources).items():
            self._plugins.add(name := f"{self._client.id}-{digest[:20]}")
            self._client.register_plugin(SendInputs({digest: content}), name=name)

    def fate(self, error: BaseException) -> Fate:
        """Distinguish a run that killed several workers from a scheduler that is gone."""
        if isinstance(error, KilledWorker):  # Dask has tried it on several by now
            return "dead"
        return "pool" if isinstance(error, CommClosedError | TimeoutError) else super().fate(error)

    def renew(self) -> None:
        """Wait for the scheduler to return and send the inputs again.

        Raises
        ------
        RunError
            if it does not return.
        """
        self._leave()
        self._plugins.clear()
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._connect(CONNECT)
                self._register(list(self._sources.values()))
            except (ConfigError, OSError) as error:
                if time.monotonic() > end:
                    raise RunError("the Dask scheduler did not return", where=self.address) from error
                time.sleep(0.5)
            else:
                return

    def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close(timeout=1)

    def close(self) -> None:
        """Cancel runs under way, remove the inputs, and disconnect."""
        try:
            if self._client is not None and self._client.status == "running":
                self._executor.shutdown(wait=False)
                for name in self._plugins:
                    self._client.unregister_worker_plugin(name)
        except Exception:  # noqa: BLE001, S110 - a scheduler that is gone keeps nothing
            pass
        finally:
            self._leave()
            self._log(self._levels)

    @staticmethod
    def _log(levels: Mapping[str, int]) -> None:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
