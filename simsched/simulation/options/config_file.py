"""A configuration file (``--config``): TOML, YAML or JSON of one layout.

::

    queue-policy = "easy"            # and match-policy, order, seed, overrun, passes, candidates,
    order = "priority"               # think-times, on-failure, no-limit
    failures = "mtbf=30d,mttr=4h"

    [policy-options]                 # of the queue policy
    extra = false

    [priority.factors]               # of the order multifactor, see docs/priorities.md
    age = 1000
    fair-share = 10000

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

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.machines.flux_config import OTHER_TABLES
from simsched.formats.text.documents import load_document, read_text
from simsched.formats.text.toml_text import load_toml
from simsched.simulation.options.run_config import from_document

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    return _with_accounts(document, where)


def _with_accounts(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a document with the accounts of ``priority`` in place of their files, which are beside it."""
    priority = document.get("priority")
    names = priority.get("accounts") if isinstance(priority, dict) else None
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return document
    from simsched.formats.machines.accounts import plain_rows, read_accounts
    from simsched.formats.text.documents import named

    folder = Path() if where == "-" else Path(where).parent
    rows = plain_rows(read_accounts([named(folder / name) for name in names]))
    return {**document, "priority": {**document["priority"], "accounts": rows}}


def queue_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration, ours or that of Flux, without the tables that say nothing about queues.

    A policy without queues is that of one queue, which Flux gives no name and simsched calls ``default``.
    """
    found = {
        key: value
        for key, value in document.items()
        if key not in ("resource", *OTHER_TABLES) and not str(key).startswith("sched-")
    }
    if document.get("queues"):
        return found
    policy = found.pop("policy", None)
    found.pop("queues", None)
    if not policy:
        return found
    system = policy
    for key in ("jobspec", "defaults", "system"):
        system = system.get(key, {}) if isinstance(system, dict) else None
    if isinstance(system, dict):  # else the reader reports what is not a table
        policy = {**policy, "jobspec": {"defaults": {"system": {**system, "queue": "default"}}}}
    return {**found, "queues": {"default": {}}, "policy": policy}
