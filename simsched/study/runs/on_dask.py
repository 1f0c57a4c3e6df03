"""Runs on the workers of a Dask scheduler, which need share neither files nor memory with us.

Inputs are sent once to each worker, by the digest of their content, as a plugin that Dask also
gives to workers that come later.  Results come back as bytes.
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
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from simsched.study.runs.task import Input

CONNECT = 5.0
"""Seconds within which a scheduler has to answer at first."""
RECOUNT = 1.0
"""Seconds after which the workers are counted again."""
PATIENCE = 120.0
"""Seconds for which a scheduler that went away is waited for."""
_ADDRESS = re.compile(r"(?:tcp|tls|ucx|ucxx|ws|wss)://[^\s/]+")


class SendInputs(WorkerPlugin):  # type: ignore[misc,unused-ignore]
    """Puts contents into a worker's cache, and takes them out when the study is over."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.contents = contents

    def setup(self, worker: Any) -> None:  # noqa: ARG002 - Dask's signature
        """Dask calls it on every worker, later ones included."""
        from simsched.study.runs.cache import INPUTS

        INPUTS.send(self.contents)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - Dask's signature
        """Dask calls it when the plugin is taken back."""
        from simsched.study.runs.cache import INPUTS

        INPUTS.drop(self.contents)


class DaskWorkers(Workers):
    """The workers of one scheduler."""

    shares_files = False
    blames_all = False

    def __init__(self, address: str) -> None:
        if not _ADDRESS.fullmatch(address):
            raise ConfigError(
                f"{address!r} is no address of a scheduler", where="--scheduler", expected="tcp://host:8786"
            )
        self.address = address
        self._sources: dict[str, Input] = {}
        self._plugins: set[str] = set()
        self._count, self._counted = 1, -RECOUNT
        self._quiet = _Quiet()
        self._client: Any = None
        self._connect(CONNECT)

    @property
    def size(self) -> int:  # type: ignore[override]
        """Workers that the scheduler knows now; one at least, since more may come."""
        if time.monotonic() > self._counted + RECOUNT:
            self._count, self._counted = max(1, len(self.addresses())), time.monotonic()
        return self._count

    def addresses(self) -> list[str]:
        """Return the workers' addresses."""
        return list(self._client.scheduler_info(n_workers=-1).get("workers", ()))

    def _connect(self, patience: float) -> None:
        try:
            make: Any = Client
            self._client = make(self.address, timeout=patience, set_as_default=False)
        except (OSError, ValueError, RuntimeError) as error:
            self._quiet.end()
            raise ConfigError(
                f"no Dask scheduler answers: {_reason(error)}",
                where=self.address,
                expected="a `dask scheduler`",
            ) from None
        self._executor = self._client.get_executor(pure=False)

    def send(self, sources: Sequence[Input]) -> None:
        """Send the contents that were not sent yet."""
        new = {s.sha256: s for s in sources if s.sha256 not in self._sources and s.text is None}
        if new:
            self._sources.update(new)
            self._register(list(new.values()))

    def _register(self, sources: Sequence[Input]) -> None:
        for digest, content in contents_of(sources).items():
            self._plugins.add(name := f"{self._client.id}-{digest[:20]}")
            self._client.register_plugin(SendInputs({digest: content}), name=name)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def fate(self, error: BaseException) -> Fate:
        """Tell a run that killed worker after worker from a scheduler that is gone."""
        if isinstance(error, KilledWorker):  # Dask has tried it on several by now
            return "dead"
        return "pool" if isinstance(error, CommClosedError | TimeoutError) else super().fate(error)

    def renew(self) -> None:
        """Wait for the scheduler to come back, and send the inputs again.

        Raises
        ------
        RunError
            If it does not.
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
                    raise RunError("the Dask scheduler did not come back", where=self.address) from error
                time.sleep(0.5)
            else:
                return

    def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close(timeout=1)

    def close(self) -> None:
        """Cancel what is under way, take back the inputs, and leave."""
        try:
            if self._client is not None and self._client.status == "running":
                self._executor.shutdown(wait=False)
                for name in self._plugins:
                    self._client.unregister_worker_plugin(name)
        except Exception:  # noqa: BLE001, S110 - whoever is gone keeps nothing; the study is over
            pass
        finally:
            self._leave()
            self._quiet.end()


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()).removesuffix(".")[:200]


class _Quiet:
    """Dask's log of connections that come and go is kept from people's terminals."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("distributed")
        names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
        self._levels = {name: logging.getLogger(name).level for name in ["distributed", *names]}
        for name in self._levels:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    def end(self) -> None:
        """Restore the levels."""
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)
