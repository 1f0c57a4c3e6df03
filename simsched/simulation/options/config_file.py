"""A configuration file (``--config``): TOML, YAML or JSON of one layout.

::

    queue-policy = "easy"            # and match-policy, order, seed, overrun, passes, candidates,
    order = "priority"               # think-times, on-failure, no-limit
    failures = "mtbf=30d,mttr=4h"

    [policy-options]                 # of the queue policy
    extra = false

    [[outages]]
    ranks = "0-15"
    start = "10d"
    end = "11d"
    kind = "maintenance"

    [policy.jobspec.defaults.system] # RFC 33
    queue = "batch"

    [queues.batch]
    requires = ["batch"]
    priority = 0
    [queues.batch.policy.limits]
    duration = "8h"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.text.documents import load_document, read_text
from simsched.formats.text.toml_text import load_toml
from simsched.simulation.options.run_config import from_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FLUX_TABLES = frozenset(
    {"access", "accounting", "archive", "bootstrap", "content", "content-s3", "cron", "dws", "exec"}
    | {"flux-accounting", "ingest", "job-exec", "job-manager", "job-ingest", "kvs", "modules", "rabbit"}
    | {"resource", "sdexec", "systemd", "tbon", "tbon-stats"}
)
"""Tables of a Flux configuration that are not about queues; those that begin with ``sched-`` are neither."""


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the fields of `RunConfig` that a file gives.

    Raises
    ------
    ConfigError, FormatError
        With the place of the error in the file.
    """
    return from_document(read_document(path), str(path))


def read_document(path: str | Path) -> dict[str, Any]:
    """Return the content of a file, checked only to be a table of keys; errors as `read_config`."""
    where = str(path)
    text = read_text(path)
    document = load_toml(text, where) if where.endswith(".toml") else load_document(text, where)
    if not isinstance(document, dict):
        raise ConfigError("not a configuration", where=where, expected="a table of keys")
    return document


def queue_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration, ours or that of Flux, without the tables that say nothing about queues.

    A policy without queues is dropped as well: in Flux it is that of the one queue without a name.
    """
    ignored = FLUX_TABLES if document.get("queues") else FLUX_TABLES | {"queues", "policy"}
    return {
        key: value
        for key, value in document.items()
        if key not in ignored and not str(key).startswith("sched-")
    }
