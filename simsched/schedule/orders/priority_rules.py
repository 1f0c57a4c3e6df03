"""`PriorityRules`: the priority of a job as a weighted sum of named factors, as a configuration states it.

`FACTORS` is the table of all kinds of factors, and `PLUGINS` has those of other packages, as Slurm's plug-ins
of the type site_factor. `PRESETS` has the formulas of Slurm and flux-accounting with a site's own lines.
``docs/priorities.md`` describes the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf, isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from simsched.declare.kinds import ANYTHING, HIDDEN, ValueKind, by_name, choice, in_turn, unread
from simsched.declare.table import Declared, field, fields_of, kinds_of, read_keys
from simsched.errors import ConfigError, SimschedError, did_you_mean, path_step
from simsched.formats.machines.accounts import FINITE, AccountRow, finite, read_accounts, rows_of
from simsched.formats.rfc.declared import DURATION, seconds
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


_ABOVE_ZERO = seconds(zero=False)


def _half_life(value: Any, where: str) -> float:
    try:
        negative = not isinstance(value, bool) and float(value) < 0
    except (TypeError, ValueError, OverflowError):
        negative = isinstance(value, str) and value.strip().startswith("-")
    if negative:
        raise ConfigError(f"a half-life of {value}", where=where, expected="a duration above 0, or inf")
    found: float = _ABOVE_ZERO.read(value, where)
    return found


def _positive(value: Any, where: str) -> float:
    found = finite(value, where, "a number above 0")
    if found <= 0:
        raise ConfigError(f"{value!r} is not above 0", where=where, expected="a number above 0")
    return found


def _usage(value: Any, where: str) -> dict[str, float]:
    found: dict[str, float] = by_name(FINITE, "name → number").read(value, where)
    for name, number in found.items():
        if name not in ("nodes", "cores", "gpus", "memory") or number < 0:
            expected = "nodes, cores, gpus or memory → a number of 0 or more"
            raise ConfigError(f"{name} = {number:g} is not a part of usage", where=where, expected=expected)
    return found


Finite = Annotated[float, FINITE]
Numbers = Annotated[Mapping[str, float], by_name(FINITE, "name → number")]
Positive = Annotated[float, _ABOVE_ZERO]


class Factor(Declared, frozen=True, kw_only=True):
    """One factor: `weight` × a value of the job, which lies from 0 to 1 unless the kind says otherwise.

    weight : a number.
    least : the least value before it is weighted.
    most : the greatest value before it is weighted.
    kind : a kind of factor, by default the name.
    name : its key among the factors.
    options : those of another package's factor.
    compute : the factor of another package; None for our own kinds.
    """

    weight: Finite
    least: Finite = -inf
    most: Finite = inf
    kind: str = ""
    name: Annotated[str, HIDDEN] = ""
    options: Annotated[Mapping[str, Any], HIDDEN] = field(default_factory=dict)
    compute: Annotated[PriorityFactor | None, HIDDEN] = None

    def checked(self, where: str) -> Self:
        """Refuse bounds without a value between them."""
        if self.least > self.most:
            text = f"the least value {self.least:g} is above the greatest {self.most:g}"
            raise ConfigError(text, where=where, expected="least <= most")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the factor as plain data, with the options that do not have their defaults."""
        common = {name: getattr(self, name) for name in ("name", "kind", "weight", "least", "most")}
        own = {key: item for key, item in super().to_dict().items() if key not in fields_of(Factor)}
        pairs = {key: list(item.items()) if key == "values" else item for key, item in own.items()}
        return {**common, "options": list({**pairs, **self.options}.items())}


class AgeFactor(Factor, frozen=True, kw_only=True):
    """The time for which a job waits.

    max : the time from which on the value is 1.
    """

    max: Positive = WEEK


class SizeFactor(Factor, frozen=True, kw_only=True):
    """The size of a job.

    favour : ``large`` or ``small`` jobs.
    relative_to_time : whether the size is that per minute of the requested time.
    """

    favour: Literal["large", "small"] = "large"
    relative_to_time: bool = False


class NamedNumbers(Factor, frozen=True, kw_only=True):
    """A number for each name.

    values : name → number.
    default : the number of other names.
    normalise : whether numbers are divided by the greatest.
    """

    values: Numbers | None = None
    default: Finite = 0.0
    normalise: bool = False


class AttributeFactor(NamedNumbers, frozen=True, kw_only=True):
    """A number of an attribute.

    key : the name of an attribute.
    """

    key: str


class UrgencyFactor(Factor, frozen=True, kw_only=True):
    """The urgency of a job.

    origin : the urgency of the value 0.
    """

    origin: Finite = 16.0


class UnitFactor(Factor, frozen=True, kw_only=True):
    """Units that a job requests.

    of : the units by which they are divided.
    """

    of: Literal["machine", "queue", "nothing"] = "machine"


class DurationFactor(Factor, frozen=True, kw_only=True):
    """The requested time.

    max : the time from which on the value is 1.
    favour : ``long`` or ``short`` jobs.
    """

    max: Positive = 86400.0
    favour: Literal["long", "short"] = "long"


class FactorKind(NamedTuple):
    """One kind of factor: its table in a document, a sentence, and the source."""

    table: type[Factor]
    text: str
    source: str

    @property
    def options(self) -> tuple[str, ...]:
        """The keys that only this kind has."""
        return tuple(key for key in fields_of(self.table) if key not in fields_of(Factor))


_UNITS = FactorKind(
    UnitFactor, "units that the job requests over those of its queue or of the machine",
    "Slurm, PriorityWeightTRES",
)  # fmt: skip
FACTORS: dict[str, FactorKind] = {
    "age": FactorKind(AgeFactor, "time since the job is eligible over `max` (7 d), at most 1",
                      "Slurm, PriorityWeightAge"),
    "size": FactorKind(SizeFactor,
                       "the mean of the parts of all nodes and of all cores that the job requests",
                       "Slurm, PriorityWeightJobSize"),
    "queue": FactorKind(NamedNumbers, "a number per queue",
                        "Slurm, PriorityWeightPartition; flux-accounting"),
    "qos": FactorKind(NamedNumbers, "a number per QOS", "Slurm, PriorityWeightQOS"),
    "account": FactorKind(NamedNumbers, "a number per account (bank)",
                          "flux-accounting; Slurm, PriorityWeightAssoc"),
    "user": FactorKind(NamedNumbers, "a number per user", "Maui, CREDWEIGHT"),
    "urgency": FactorKind(UrgencyFactor, "the urgency less `origin` (16)", "flux-accounting"),
    "fair-share": FactorKind(Factor, "the fair-share factor of the job's user, from 0 to 1",
                             "Slurm, PriorityWeightFairshare; flux-accounting"),
    "nodes": _UNITS,
    "cores": _UNITS,
    "gpus": _UNITS,
    "memory": _UNITS,
    "duration": FactorKind(DurationFactor, "the requested time over `max` (1 d), at most 1",
                           "Maui, RESWEIGHT"),
    "attribute": FactorKind(AttributeFactor, "an attribute of the job: a number, or a name with a number",
                            "simsched"),
    "constant": FactorKind(Factor, "1 for every job", "simsched"),
}  # fmt: skip
"""Kind of factor → its table, meaning and source."""


class FairShareRules(Declared, frozen=True, kw_only=True):
    """How usage becomes the factor ``fair-share``.

    method : how shares and usage become the factor.
    half_life : time after which usage counts half; inf: it does not decay.
    reset : usage is set to 0 at each multiple of this time.
    dampening : of the classic factor.
    charged : whether jobs are charged ``while-running`` or ``at-end``.
    usage : use of a job per second: units of these resources times the numbers.
    qos_usage : QOS → a factor of the usage of its jobs.
    unknown : whether a user without an account is refused (``refuse``) or gets one share (``add``).
    """

    method: Annotated[str, choice(*RULES)] = "fair-tree"
    half_life: Annotated[float, ValueKind(_half_life, DURATION)] = WEEK
    reset: Positive = inf
    dampening: Annotated[float, ValueKind(_positive, FINITE.schema)] = 1.0
    charged: Literal["while-running", "at-end"] = "while-running"
    usage: Annotated[Mapping[str, float], ValueKind(_usage, by_name(FINITE).schema)] = field(
        default_factory=lambda: {"cores": 1.0}
    )
    qos_usage: Numbers = field(default_factory=dict)
    unknown: Literal["refuse", "add"] = field(name="unknown-users", default="refuse")


def _factors(value: Any, where: str) -> tuple[Factor, ...]:
    if not isinstance(value, Mapping) or not value:
        raise ConfigError(
            "there are no factors" if isinstance(value, Mapping) else f"{value!r} is not a table",
            where=where, expected="name → weight, such as age = 1000; or {weight, …}",
        )  # fmt: skip
    each = [
        partial(_factor, str(name).replace("_", "-"), item, f"{where}{path_step(str(name))}")
        for name, item in value.items()
    ]
    return tuple(in_turn(each))


def _factor(name: str, value: Any, where: str) -> Factor:
    given = dict(value) if isinstance(value, Mapping) else {"weight": value}
    kind, compute, own = given.pop("kind", name), None, {}
    if not isinstance(kind, str):
        if not PLUGINS.fits(kind):
            raise ConfigError(f"kind is {kind!r}", where=where, expected="a kind, or a priority factor")
        compute, kind = PLUGINS.checked(kind), name_of(kind)
    elif kind not in FACTORS:  # names of factors may be spelt with either sign
        kind = next((known for known in PLUGINS.names() if known.replace("_", "-") == kind), kind)
        found = PLUGINS.found(kind)
        if found is None:
            known = [*FACTORS, *PLUGINS.names()]
            text = f"unknown factor {kind!r}{did_you_mean(kind, known)}"
            raise ConfigError(text, where=where, expected=", ".join(known))
        options = options_of(found, keyword_only=not isinstance(found, type))
        kinds = {**kinds_of(Factor), **{option.replace("_", "-"): ANYTHING for option in options}}
        given = read_keys(given, where, kinds)
        own = {key: given.pop(key) for key in [*given] if key not in kinds_of(Factor)}
        compute = PLUGINS.made(kind, found, {key.replace("-", "_"): item for key, item in own.items()})
    table = FACTORS[kind].table if compute is None else Factor
    return table.read(given, where).replace(name=name, kind=kind, options=own, compute=compute)


def _accounts(value: Any, where: str) -> tuple[AccountRow, ...]:
    """Return accounts that are rows, or the names of one or several files."""
    if isinstance(value, list | tuple) and not all(isinstance(item, str) for item in value):
        return rows_of(value, where)
    if isinstance(value, str) or (isinstance(value, list | tuple) and value):
        return read_accounts(value if isinstance(value, str) else list(value))
    raise ConfigError(
        f"{value!r} is not a list of accounts", where=where, expected="rows, or the name of a file"
    )


def _factor_tables() -> dict[str, Any]:
    tables = {name: {"anyOf": [FINITE.schema, kind.table.schema()]} for name, kind in FACTORS.items()}
    return {
        "type": "object",
        "minProperties": 1,
        "properties": tables,
        "additionalProperties": {"type": ["number", "string", "object"]},
    }


def _account_rows() -> dict[str, Any]:
    text = {"type": "string"}
    return {"anyOf": [text, {"type": "array", "items": {"anyOf": [text, AccountRow.schema()]}}]}


class PriorityRules(Declared, frozen=True, kw_only=True):
    """The priority of a job: the sum of its factors (docs/priorities.md).

    period : priorities are those of the last multiple of this time; 0: of each pass.
    rounding : to whole numbers ``down``, to the ``nearest``, or ``none``.
    least : the least priority.
    most : the greatest priority.
    age_from : whether age counts from the time that a job is ``eligible`` or from its ``submit``.
    expedite : whether jobs of urgency 31 have the greatest priority.
    factors : name → weight, such as age = 1000; or {weight, …}.
    fair_share : how usage becomes the factor fair-share.
    accounts : the accounts and users; None: those of the jobs, with one share each.
    preset : formula whose keys count unless they are given.
    lines : lines of a site for the preset.
    """

    period: Annotated[float, seconds("a duration, 0s for each pass")] = 0.0
    rounding: Literal["none", "down", "nearest"] = "none"
    least: Finite = -inf
    most: Finite = inf
    age_from: Literal["eligible", "submit"] = "eligible"
    expedite: bool = False
    factors: Annotated[tuple[Factor, ...], ValueKind(_factors, _factor_tables)] = ()
    fair_share: FairShareRules = FairShareRules()
    accounts: Annotated[tuple[AccountRow, ...] | None, ValueKind(_accounts, _account_rows)] = None
    preset: Annotated[Any, unread(enum=["slurm", "flux-accounting"])] = None
    lines: Annotated[Any, unread(type="object")] = None

    @classmethod
    def read(cls, value: Any, where: str, base: Self | None = None) -> Self:
        """Return the rules of a document; a preset in it is expanded first.  Errors as `Declared.read`."""
        if isinstance(value, Mapping):
            value = {str(key).replace("_", "-"): item for key, item in value.items()}
            if "preset" in value:
                value = expanded(value, where)
            elif "lines" in value and value.keys() <= fields_of(cls).keys():  # else the key may be misspelt
                expected = "preset = slurm or flux-accounting"
                raise ConfigError("lines without a preset", where=where, expected=expected)
            value = {"factors": {}, **value}
        return super().read(value, where, base)

    def checked(self, where: str) -> Self:
        """Refuse bounds without a number between them, and accounts that are not a tree."""
        if self.least > self.most:
            text = f"the least priority {self.least:g} is above the greatest {self.most:g}"
            raise ConfigError(text, where=where, expected="least <= most")
        if self.accounts is not None:
            tree_of(self.accounts, f"{where}.accounts")
        return self

    def uses(self, kind: str) -> bool:
        """Whether a factor of this kind has a weight."""
        return any(factor.kind == kind and factor.weight for factor in self.factors)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain data, for ``run.json``."""
        fair = self.fair_share.asdict()
        fair |= {name: list(fair[name].items()) for name in ("usage", "qos_usage")}
        accounts = None if self.accounts is None else [row.asdict() for row in self.accounts]
        plain = {key: item for key, item in self.asdict().items() if key not in ("preset", "lines")}
        factors = [factor.to_dict() for factor in self.factors]
        first = {"factors": factors, "fair_share": fair}
        return {**first, **plain, **first, "accounts": accounts}


# -- presets -------------------------------------------------------------------------------------------

# A document with ``preset`` and ``lines`` becomes one without; the keys beside them count before the preset.

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
    from simsched.formats.machines.slurm.config_keys import GLOBAL
    from simsched.formats.machines.slurm.settings import Settings

    known = [name for key, name in GLOBAL.items() if key.startswith(("priority", "fairshare"))]
    settings = Settings(NoteCollector(strict=True))
    for key, item in lines.items():
        if str(key).lower() not in {name.lower() for name in known}:
            hint = did_you_mean(str(key), known)
            raise ConfigError(f"unknown line {key!r}{hint}", where=where, expected=", ".join(known))
        value = ("yes" if item else "no") if isinstance(item, bool) else str(item)
        settings.add({str(key).lower(): value}, f"{where}.{GLOBAL[str(key).lower()]}")
    try:
        made = settings.priority({}, ())
    except SimschedError as error:
        raise ConfigError(error.message, where=error.where, expected=error.expected) from None
    # without a weight all priorities are equal, and jobs go by submission
    found: dict[str, Any] = made.get("priority", {"factors": {"constant": 0}})
    return found


class FluxLines(Declared, frozen=True, kw_only=True, rename=None):
    """The weights of flux-accounting (job-priorities.rst); the factor of the bank counts nothing."""

    fairshare: Finite = 100_000
    queue: Finite = 10_000
    bank: Finite = 0
    urgency: Finite = 1_000
    priority_decay_half_life: Annotated[Any, ANYTHING] = "7d"
    priority_usage_reset_period: Annotated[Any, ANYTHING] = None
    decay_factor: Finite = 0.5
    node_weight: Finite = 1.0
    core_weight: Finite = 0.0
    gpu_weight: Finite = 0.0
    queues: Annotated[Any, ANYTHING] = None
    banks: Annotated[Any, ANYTHING] = None


def _flux(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    lines = FluxLines.read(given, where)
    factors: dict[str, Any] = {
        "fair-share": {"weight": lines.fairshare},
        "queue": {"weight": lines.queue, "values": lines.queues},
        "account": {"weight": lines.bank, "values": lines.banks},
        "urgency": {"weight": lines.urgency},
    }
    if lines.decay_factor != 0.5:
        expected = "0.5: use the half-life for a faster or slower decay"
        text = f"a decay factor of {lines.decay_factor:g}"
        raise ConfigError(text, where=f"{where}.decay_factor", expected=expected)
    weights = {"nodes": lines.node_weight, "cores": lines.core_weight, "gpus": lines.gpu_weight}
    fair = {
        "method": "weighted-tree",
        "half-life": lines.priority_decay_half_life,
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
