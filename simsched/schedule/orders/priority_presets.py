"""Presets of priority: the formulas of Slurm and flux-accounting with a site's own lines.

A document with ``preset`` and ``lines`` becomes one without; the keys beside them count before the preset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, SimschedError, did_you_mean
from simsched.formats.accounts import finite

if TYPE_CHECKING:
    from collections.abc import Callable

#: The weights of flux-accounting (job-priorities.rst); the factor of the bank counts nothing.
FLUX_WEIGHTS = {"fairshare": 100_000, "queue": 10_000, "bank": 0, "urgency": 1_000}
_FLUX_FACTORS = {"fairshare": "fair-share", "queue": "queue", "bank": "account", "urgency": "urgency"}
_FLUX_KEYS = (*FLUX_WEIGHTS, "priority_decay_half_life", "priority_usage_reset_period", "decay_factor",
              "node_weight", "core_weight", "gpu_weight", "queues", "banks")  # fmt: skip
MOST = 2**32 - 1
"""The greatest priority of Slurm, and of Flux (FLUX_JOB_PRIORITY_MAX)."""


def expanded(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the document of a preset with the lines of a site.

    Raises
    ------
    ConfigError, FormatError
        For a preset that does not exist, or a line that it does not understand.
    """
    preset, lines = document["preset"], document.get("lines", {})
    if not isinstance(preset, str) or preset not in PRESETS:
        hint = did_you_mean(str(preset), PRESETS)
        raise ConfigError(
            f"unknown preset {preset!r}{hint}", where=f"{where}.preset", expected=", ".join(PRESETS)
        )
    if not isinstance(lines, Mapping):
        raise ConfigError(f"{lines!r} is not a table", where=f"{where}.lines", expected="key → value")
    found = PRESETS[preset][0](lines, f"{where}.lines")
    for key, item in document.items():
        if key in ("factors", "fair-share") and isinstance(item, Mapping):
            found[key] = {**found.get(key, {}), **item}
        elif key not in ("preset", "lines"):
            found[key] = item
    return found


def _slurm(lines: Mapping[str, Any], where: str) -> dict[str, Any]:
    from simsched.formats.machines.description import NoteCollector
    from simsched.formats.machines.slurm.config_lines import GLOBAL
    from simsched.formats.machines.slurm.settings import PriorityLines

    known = [name for key, name in GLOBAL.items() if key.startswith(("priority", "fairshare"))]
    values: dict[str, str] = {}
    for key, item in lines.items():
        if str(key).lower() not in {name.lower() for name in known}:
            hint = did_you_mean(str(key), known)
            raise ConfigError(f"unknown line {key!r}{hint}", where=where, expected=", ".join(known))
        values[str(key).lower()] = ("yes" if item else "no") if isinstance(item, bool) else str(item)
    notes = NoteCollector(strict=True)
    try:
        made = PriorityLines(values, notes, lambda key: f"{where}.{GLOBAL.get(key, key)}").options()
    except SimschedError as error:
        raise ConfigError(error.message, where=error.where, expected=error.expected) from None
    # without a weight all priorities are equal, and jobs go by submission
    found: dict[str, Any] = made.get("priority", {"factors": {"constant": 0}})
    return found


def _flux(lines: Mapping[str, Any], where: str) -> dict[str, Any]:
    for key in lines:
        if key not in _FLUX_KEYS:
            hint = did_you_mean(str(key), _FLUX_KEYS)
            raise ConfigError(f"unknown line {key!r}{hint}", where=where, expected=", ".join(_FLUX_KEYS))
    factors: dict[str, Any] = {}
    for key, name in _FLUX_FACTORS.items():
        factors[name] = {"weight": finite(lines.get(key, FLUX_WEIGHTS[key]), f"{where}.{key}")}
    for key, name in (("queues", "queue"), ("banks", "account")):
        if key in lines:
            factors[name]["values"] = lines[key]
    decay = finite(lines.get("decay_factor", 0.5), f"{where}.decay_factor", "0.5")
    if decay != 0.5:
        expected = "0.5: use the half-life for a faster or slower decay"
        raise ConfigError(f"a decay factor of {decay:g}", where=f"{where}.decay_factor", expected=expected)
    weights = {
        f"{name}s": finite(lines.get(f"{name}_weight", usual), f"{where}.{name}_weight")
        for name, usual in (("node", 1.0), ("core", 0.0), ("gpu", 0.0))
    }
    fair = {
        "method": "weighted-tree",
        "half-life": lines.get("priority_decay_half_life", "7d"),
        "charged": "at-end",
        "usage": {name: weight for name, weight in weights.items() if weight},
    }
    return {
        "rounding": "nearest",
        "least": 0,
        "most": MOST,
        "expedite": True,
        "factors": factors,
        "fair-share": fair,
    }


PRESETS: dict[str, tuple[Callable[[Mapping[str, Any], str], dict[str, Any]], str]] = {
    "slurm": (_slurm, "PriorityType=priority/multifactor, with the Priority lines of slurm.conf as `lines`"),
    "flux-accounting": (
        _flux,
        "fair share × 100000 + queue × 10000 + bank × 0 + (urgency - 16) × 1000; `lines` change the weights",
    ),
}
"""Name → a function from lines to a document, and a sentence."""
