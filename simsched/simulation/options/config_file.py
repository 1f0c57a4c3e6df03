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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.text.documents import load_document, read_text, refuse_foreign
from simsched.formats.text.excerpts import clip
from simsched.simulation.outages.outages import Failures, Outage, read_outages
from simsched.simulation.queues import Queues

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Key of the file → field of `RunConfig`, for those that are taken as they are.
PLAIN = {
    "queue-policy": "queue_policy",
    "match-policy": "match_policy",
    "order": "order",
    "seed": "seed",
    "overrun": "overrun",
    "pass": "passes",
    "passes": "passes",
    "candidates": "candidates",
    "think-times": "think_times",
    "on-failure": "on_failure",
    "no-limit": "no_limit",
    "policy-options": "queue_options",
}
OTHERS = ("epilog", "failures", "outages", "queues", "policy")


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the fields of `RunConfig` that a file gives.

    Raises
    ------
    ConfigError, FormatError
        With the place in the file of what is wrong.
    """
    return from_document(read_document(path), str(path))


def read_document(path: str | Path) -> dict[str, Any]:
    """Return what a file says, not checked but for being a table of keys; errors as `read_config`."""
    where = str(path)
    text = read_text(path)
    document = _toml(text, where) if where.endswith(".toml") else load_document(text, where)
    if not isinstance(document, dict):
        raise ConfigError("not a configuration", where=where, expected="a table of keys")
    return document


def _toml(text: str, where: str) -> Any:
    import tomllib

    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a ValueError: more digits than Python reads
        raise ConfigError(f"not TOML: {clip(str(error), 200)}", where=where) from None
    refuse_foreign(document, where)
    return document


def from_document(document: dict[str, Any], where: str = "config") -> dict[str, Any]:
    """Return the fields of `RunConfig` that a document gives; keys may be spelt with ``_``.

    Raises
    ------
    ConfigError, FormatError
        For a key that does not exist, or a value that is none.
    """
    found: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in document.items():
        name = key.replace("_", "-")
        if name in PLAIN:
            found[PLAIN[name]] = _checked(name, value, where)
        elif name in OTHERS:
            rest[name] = value
        else:
            raise ConfigError(f"unknown key {key!r}", where=where, expected=", ".join([*PLAIN, *OTHERS]))
    for name, reader in _READERS.items():
        if name in rest:
            found[name] = reader(rest, where)
    if "policy" in rest and "queues" not in rest:
        raise ConfigError("a policy for queues, and no queues", where=f"{where}: policy")
    return found


def _checked(name: str, value: Any, where: str) -> Any:
    kind: type = {"seed": int, "policy-options": dict}.get(name, str)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ConfigError(f"{value!r} is no value of {name}", where=where, expected=kind.__name__)
    return policy_options(value) if isinstance(value, dict) else value


def read_option(name: str, value: Any) -> Any:
    """Return the field of `RunConfig` that a value stands for, as Python callers may give it.

    Queues, outages and failures may be given as a file has them, an epilog as a number or text.

    Raises
    ------
    ConfigError, FormatError
        For what is no such field's value.
    """
    if name == "queues" and not isinstance(value, Queues | None):
        return Queues.from_dict(value)
    if name == "failures" and not isinstance(value, Failures | None):
        return _failures({"failures": value}, "simulate")
    if name == "outages":
        return _given_outages(value)
    if name == "epilog" and not (isinstance(value, tuple) and len(value) == 2):
        return parse_epilog(value, "epilog")
    if name == "queue_options":
        return policy_options(value)
    return value


def policy_options(value: Any) -> dict[str, Any]:
    """Return the options of a queue policy: names are spelt with ``-`` or ``_``; the policy reads texts.

    Raises
    ------
    ConfigError
        If they are no names and values.
    """
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{value!r} are no options of a queue policy", expected="name → value")
    return {name.replace("-", "_"): said for name, said in value.items()}


def _given_outages(value: Any) -> tuple[Outage, ...]:
    given = list(value) if isinstance(value, list | tuple) else value
    if isinstance(given, list) and all(isinstance(outage, Outage) for outage in given):
        return tuple(given)
    return read_outages(given)


def _failures(rest: dict[str, Any], where: str) -> Failures:
    if not isinstance(rest["failures"], str):
        raise ConfigError("failures is a text", where=f"{where}: failures", expected="mtbf=30d,mttr=4h")
    return Failures.parse(rest["failures"])


def parse_epilog(text: Any, where: str) -> tuple[float, float]:
    """Read ``30s``, or ``10s..2m`` for whole seconds drawn from there.

    Raises
    ------
    ConfigError, FormatError
        If it is neither.
    """
    from simsched.formats.rfc.duration import parse_time

    least, dots, most = str(text).partition("..")
    first = parse_time(least, where=where)
    last = parse_time(most, where=where) if dots else first
    if not first <= last < float("inf"):
        raise ConfigError(f"{text!r} is no epilog", where=where, expected="30s, or 10s..2m")
    return first, last


def _epilog(rest: dict[str, Any], where: str) -> tuple[float, float]:
    return parse_epilog(rest["epilog"], f"{where}: epilog")


def _outages(rest: dict[str, Any], where: str) -> Any:
    return read_outages(rest["outages"], f"{where}: outages")


def _queues(rest: dict[str, Any], where: str) -> Queues:
    policy = rest.get("policy", {})
    found: Any = policy
    for key in ("jobspec", "defaults", "system", "queue"):
        found = found.get(key) if isinstance(found, dict) else None
    if found is not None and not isinstance(found, str):
        raise ConfigError(
            "the default queue is no name", where=f"{where}: policy.jobspec.defaults.system.queue"
        )
    return Queues.from_dict(rest["queues"], default=found, policy=policy, where=f"{where}: queues")


_READERS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "epilog": _epilog,
    "failures": _failures,
    "outages": _outages,
    "queues": _queues,
}
