"""`PriorityRules`: the priority of a job as a weighted sum of named factors, as a configuration states it.

`FACTORS` is the table of all kinds of factors, and `PLUGINS` has those of other packages, as Slurm's plug-ins
of the type site_factor. `PRESETS` has the formulas of Slurm and flux-accounting with a site's own lines.
``docs/priorities.md`` describes the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from simsched.errors import ConfigError, SimschedError, did_you_mean
from simsched.formats.accounts import AccountRow, finite, rows_of
from simsched.formats.rfc.duration import parse_time
from simsched.plugins.plugin_errors import failed, name_of, number_of, shown
from simsched.plugins.plugin_kind import PluginKind, options_of
from simsched.schedule.orders.fair_share import RULES, WEEK, tree_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


# -- factors of other packages ------------------------------------------------------------------------


class PriorityFactor(Protocol):
    """The value of a job, made once, when it is submitted; keyword-only arguments are options."""

    def __call__(self, job: Any) -> float:
        """Return the value of a `simsched.Job`, usually from 0 to 1."""


PLUGINS = PluginKind("priority factor", "simsched.priority_factors", PriorityFactor)


def options_of_factor(name: str) -> dict[str, Any] | None:
    """Return the options of an installed factor with their defaults; None if it is not installed."""
    found = PLUGINS.found(name)
    if found is None:
        return None
    return options_of(found, keyword_only=not isinstance(found, type))


def installed_factor(name: str, options: Mapping[str, Any]) -> PriorityFactor:
    """Return an installed factor with its options; errors as `PluginKind.installed`."""
    found: PriorityFactor = PLUGINS.made(name, PLUGINS.found(name), options)
    return found


def values_of(
    factor: PriorityFactor, jobs: Sequence[Any], name: str | None = None
) -> npt.NDArray[np.float64]:
    """Return the value of each job; PluginError for a value that is not a finite number."""
    found = np.zeros(len(jobs))
    with PLUGINS.named(factor, name):
        for at, job in enumerate(jobs):
            value: Any = factor(job)
            number = number_of(value) if isinstance(value, int | float | np.number) else None
            if number is None or not isfinite(number):
                problem = f"returned {shown(value)} for job {job.id}, which is not a finite number"
                raise failed(PLUGINS.word, factor, problem, name or name_of(factor))
            found[at] = number
    return found


# -- the rules -----------------------------------------------------------------------------------------

NAME = "multifactor"
HELD, EXPEDITED = 0, 31
"""The urgencies of RFC 21 that stand for the least and the greatest priority."""


def _number(value: Any, where: str) -> float:
    return finite(value, where)


def _seconds(value: Any, where: str) -> float:
    found = parse_time(value, where=where)
    if not found > 0:
        raise ConfigError(f"{value!r} is not a time", where=where, expected="a duration above 0, or inf")
    return found


def _period(value: Any, where: str) -> float:
    found = parse_time(value, where=where)
    if found == inf:
        raise ConfigError("the period is infinite", where=where, expected="a duration, 0s for each pass")
    return found


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{value!r} is not a truth value", where=where, expected="true or false")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{value!r} is not a name", where=where, expected="a text")
    return value


def _among(*known: str) -> Callable[[Any, str], str]:
    def read(value: Any, where: str) -> str:
        if value not in known:
            raise ConfigError(f"unknown value {value!r}", where=where, expected=", ".join(known))
        return str(value)

    return read


def _numbers(value: Any, where: str) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{value!r} is not a table", where=where, expected="name → number")
    return tuple((str(name), finite(number, f"{where}.{name}")) for name, number in value.items())


class FactorKind(NamedTuple):
    """One kind of factor: its options (name → reader), a sentence, and the source."""

    options: Mapping[str, Callable[[Any, str], Any]]
    text: str
    source: str


_BY_NAME = {"values": _numbers, "default": _number, "normalise": _flag}
_UNITS = FactorKind(
    {"of": _among("machine", "queue", "nothing")},
    "units that the job requests over those of its queue or of the machine",
    "Slurm, PriorityWeightTRES",
)
FACTORS: dict[str, FactorKind] = {
    "age": FactorKind({"max": _seconds}, "time since the job is eligible over `max` (7 d), at most 1",
                      "Slurm, PriorityWeightAge"),
    "size": FactorKind(
        {"favour": _among("large", "small"), "relative-to-time": _flag},
        "the mean of the parts of all nodes and of all cores that the job requests",
        "Slurm, PriorityWeightJobSize",
    ),
    "queue": FactorKind(_BY_NAME, "a number per queue", "Slurm, PriorityWeightPartition; flux-accounting"),
    "qos": FactorKind(_BY_NAME, "a number per QOS", "Slurm, PriorityWeightQOS"),
    "account": FactorKind(
        _BY_NAME, "a number per account (bank)", "flux-accounting; Slurm, PriorityWeightAssoc"
    ),
    "user": FactorKind(_BY_NAME, "a number per user", "Maui, CREDWEIGHT"),
    "urgency": FactorKind({"origin": _number}, "the urgency less `origin` (16)", "flux-accounting"),
    "fair-share": FactorKind({}, "the fair-share factor of the job's user, from 0 to 1",
                             "Slurm, PriorityWeightFairshare; flux-accounting"),
    "nodes": _UNITS,
    "cores": _UNITS,
    "gpus": _UNITS,
    "memory": _UNITS,
    "duration": FactorKind(
        {"max": _seconds, "favour": _among("long", "short")},
        "the requested time over `max` (1 d), at most 1",
        "Maui, RESWEIGHT",
    ),
    "attribute": FactorKind(
        {"key": _text, **_BY_NAME}, "an attribute of the job: a number, or a name with a number", "simsched"
    ),
    "constant": FactorKind({}, "1 for every job", "simsched"),
}  # fmt: skip
"""Kind of factor → its options, meaning and source."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor: `weight` × a value of the job, which lies from 0 to 1 unless the kind says otherwise.

    least, most : bounds of the value before it is weighted.
    options : those of its kind (`FACTORS`), as pairs.
    compute : the factor of another package; None for our own kinds.
    """

    name: str
    kind: str
    weight: float
    least: float = -inf
    most: float = inf
    options: tuple[tuple[str, Any], ...] = ()
    compute: PriorityFactor | None = field(default=None, compare=False, repr=False)

    def option(self, name: str, usual: Any) -> Any:
        """Return an option, or the usual value."""
        return dict(self.options).get(name, usual)


@dataclass(frozen=True, slots=True)
class FairShareRules:
    """How usage becomes the factor ``fair-share``.

    Attributes
    ----------
    method : a key of `RULES`.
    half_life : seconds after which usage counts half; inf: it does not decay.
    reset : usage is set to 0 at each multiple of these seconds.
    dampening : of the classic factor.
    charged : whether jobs are charged ``while-running`` or ``at-end``.
    usage : use of a job per second: units of these resources times the numbers.
    qos_usage : QOS → a factor of the usage of its jobs.
    unknown : whether a user without an account is refused (``refuse``) or gets one share (``add``).
    """

    method: str = "fair-tree"
    half_life: float = WEEK
    reset: float = inf
    dampening: float = 1.0
    charged: str = "while-running"
    usage: tuple[tuple[str, float], ...] = (("cores", 1.0),)
    qos_usage: tuple[tuple[str, float], ...] = ()
    unknown: str = "refuse"


@dataclass(frozen=True, slots=True)
class PriorityRules:
    """The priority of a job: the sum of its factors.

    Attributes
    ----------
    period : priorities are those of the last multiple of these seconds; 0: of each pass.
    rounding : to whole numbers ``down``, to the ``nearest``, or ``none``.
    least, most : bounds of the sum.
    age_from : whether age counts from the time that a job is ``eligible`` or from its ``submit``.
    expedite : whether jobs of urgency 31 have the greatest priority.
    accounts : the accounts and users; None: those of the jobs, with one share each.
    """

    factors: tuple[Factor, ...]
    fair_share: FairShareRules = field(default_factory=FairShareRules)
    period: float = 0.0
    rounding: str = "none"
    least: float = -inf
    most: float = inf
    age_from: str = "eligible"
    expedite: bool = False
    accounts: tuple[AccountRow, ...] | None = None

    def uses(self, kind: str) -> bool:
        """Whether a factor of this kind has a weight."""
        return any(factor.kind == kind and factor.weight for factor in self.factors)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain data, for ``run.json``."""
        plain = asdict(self)
        for factor in plain["factors"]:
            del factor["compute"]
        if self.accounts is not None:
            names = AccountRow.__struct_fields__
            plain["accounts"] = [{name: getattr(row, name) for name in names} for row in self.accounts]
        return plain


# -- reading ------------------------------------------------------------------------------------------


def _usage(value: Any, where: str) -> tuple[tuple[str, float], ...]:
    found = _numbers(value, where)
    for name, number in found:
        if name not in ("nodes", "cores", "gpus", "memory") or number < 0:
            raise ConfigError(
                f"{name} = {number:g} is not a part of usage", where=where,
                expected="nodes, cores, gpus or memory → a number of 0 or more",
            )  # fmt: skip
    return found


def _half_life(value: Any, where: str) -> float:
    try:
        negative = not isinstance(value, bool) and float(value) < 0
    except (TypeError, ValueError, OverflowError):
        negative = isinstance(value, str) and value.strip().startswith("-")
    if negative:
        raise ConfigError(f"a half-life of {value}", where=where, expected="a duration above 0, or inf")
    return _seconds(value, where)


def _positive(value: Any, where: str) -> float:
    found = finite(value, where, "a number above 0")
    if found <= 0:
        raise ConfigError(f"{value!r} is not above 0", where=where, expected="a number above 0")
    return found


_FAIR_SHARE: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "method": ("method", _among(*RULES)),
    "half-life": ("half_life", _half_life),
    "reset": ("reset", _seconds),
    "dampening": ("dampening", _positive),
    "charged": ("charged", _among("while-running", "at-end")),
    "usage": ("usage", _usage),
    "qos-usage": ("qos_usage", _numbers),
    "unknown-users": ("unknown", _among("refuse", "add")),
}
_PLAIN: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "period": ("period", _period),
    "rounding": ("rounding", _among("none", "down", "nearest")),
    "least": ("least", _number),
    "most": ("most", _number),
    "age-from": ("age_from", _among("eligible", "submit")),
    "expedite": ("expedite", _flag),
}
_COMMON = {"weight": _number, "least": _number, "most": _number, "kind": _text}
KEYS = (*_PLAIN, "factors", "fair-share", "accounts", "preset", "lines")


def read_rules(value: Any, where: str = "priority") -> PriorityRules | None:
    """Return the rules of a document (docs/priorities.md); a preset in it is expanded first.

    Raises
    ------
    ConfigError, FormatError
        For a key that does not exist, a value that it does not take, or accounts that are no tree.
    """
    if value is None or isinstance(value, PriorityRules):
        return value
    document = _mapping(value, where, KEYS)
    if "preset" in document:
        document = _mapping(expanded(document, where), where, KEYS)
    elif "lines" in document:
        raise ConfigError("lines without a preset", where=where, expected="preset = slurm or flux-accounting")
    found = _fields({key: item for key, item in document.items() if key in _PLAIN}, _PLAIN, where)
    factors = _factors(document.get("factors", {}), f"{where}.factors")
    fair = _mapping(document.get("fair-share", {}), f"{where}.fair-share", _FAIR_SHARE)
    accounts = document.get("accounts")
    rules = PriorityRules(
        factors,
        FairShareRules(**_fields(fair, _FAIR_SHARE, f"{where}.fair-share")),
        accounts=None if accounts is None else _accounts(accounts, f"{where}.accounts"),
        **found,
    )
    if rules.least > rules.most:
        text = f"the least priority {rules.least:g} is above the greatest {rules.most:g}"
        raise ConfigError(text, where=where, expected="least <= most")
    if rules.accounts is not None:
        tree_of(rules.accounts, f"{where}.accounts")
    return rules


def _mapping(value: Any, where: str, known: Any) -> dict[str, Any]:
    """Return a table whose keys are known, spelt with ``-``."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{value!r} is not a table", where=where, expected=", ".join(known))
    found = {str(key).replace("_", "-"): item for key, item in value.items()}
    for key in found:
        if key not in known:
            raise ConfigError(
                f"unknown key {key!r}{did_you_mean(key, known)}", where=where, expected=", ".join(known)
            )
    return found


def _fields(
    document: Mapping[str, Any], table: Mapping[str, tuple[str, Callable[[Any, str], Any]]], where: str
) -> dict[str, Any]:
    return {table[key][0]: table[key][1](item, f"{where}.{key}") for key, item in document.items()}


def _factors(value: Any, where: str) -> tuple[Factor, ...]:
    if not isinstance(value, Mapping) or not value:
        raise ConfigError(
            "there are no factors" if isinstance(value, Mapping) else f"{value!r} is not a table",
            where=where, expected="name → weight, such as age = 1000; or {weight, …}",
        )  # fmt: skip
    return tuple(
        _factor(str(name).replace("_", "-"), item, f"{where}.{name}") for name, item in value.items()
    )


def _factor(name: str, value: Any, where: str) -> Factor:
    given = dict(value) if isinstance(value, Mapping) else {"weight": value}
    kind = given.get("kind", name)
    compute = None
    if not isinstance(kind, str):
        if not PLUGINS.fits(kind):
            raise ConfigError(f"kind is {kind!r}", where=where, expected="a kind, or a priority factor")
        compute, kind = PLUGINS.checked(kind), name_of(kind)
    elif kind not in FACTORS:  # names of factors may be spelt with either sign
        kind = next((known for known in PLUGINS.names() if known.replace("_", "-") == kind), kind)
    readers = {**_COMMON, **_options_of_kind(kind, where, given=compute is not None)}
    given = _mapping({**given, "kind": kind}, where, readers)
    if "weight" not in given:
        raise ConfigError("the factor has no weight", where=where, expected="weight = a number")
    if kind == "attribute" and "key" not in given:
        raise ConfigError(
            "the factor names no attribute", where=where, expected="key = the name of an attribute"
        )
    read = {key: readers[key](item, f"{where}.{key}") for key, item in given.items()}
    options = tuple((key, item) for key, item in read.items() if key not in _COMMON)
    if kind not in FACTORS and compute is None:
        compute = installed_factor(kind, {key.replace("-", "_"): item for key, item in options})
    least, most = read.get("least", -inf), read.get("most", inf)
    if least > most:
        text = f"the least value {least:g} is above the greatest {most:g}"
        raise ConfigError(text, where=where, expected="least <= most")
    return Factor(name, kind, read["weight"], least, most, options, compute)


def _options_of_kind(kind: str, where: str, *, given: bool) -> Mapping[str, Callable[[Any, str], Any]]:
    """Return the readers of the options of a kind; the options of plug-ins are read when these are made."""
    if given:
        return {}
    if kind in FACTORS:
        return FACTORS[kind].options
    options = options_of_factor(kind)
    if options is None:
        known = [*FACTORS, *PLUGINS.names()]
        hint = did_you_mean(kind, known)
        raise ConfigError(f"unknown factor {kind!r}{hint}", where=where, expected=", ".join(known))
    return {name.replace("_", "-"): _as_given for name in options}


def _as_given(value: Any, _where: str) -> Any:
    return value


def _accounts(value: Any, where: str) -> tuple[AccountRow, ...]:
    """Return accounts that are rows, or the names of one or several files."""
    if isinstance(value, list | tuple) and not all(isinstance(item, str) for item in value):
        return rows_of(value, where)
    if isinstance(value, str) or (isinstance(value, list | tuple) and value):
        from simsched.formats.accounts import read_accounts

        return read_accounts(value if isinstance(value, str) else list(value))
    raise ConfigError(
        f"{value!r} is not a list of accounts", where=where, expected="rows, or the name of a file"
    )


# -- presets -------------------------------------------------------------------------------------------

# A document with ``preset`` and ``lines`` becomes one without; the keys beside them count before the preset.

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
