"""The queue policies by name, and those of other packages."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from simsched.arguments import wrong
from simsched.declare.kinds import number, whole
from simsched.declare.table import Declared, is_declared
from simsched.errors import ConfigError, did_you_mean
from simsched.plugins.plugin_errors import failed, is_ours, name_of
from simsched.plugins.plugin_kind import NAMED, PluginKind, options_of
from simsched.plugins.typed_options import typed_options
from simsched.schedule.pass_context import QueuePolicy
from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.policies.easy import EasyOptions, EasyPlus, EasyPlusPlus
from simsched.schedule.policies.fcfs import Fcfs
from simsched.schedule.policies.limited import Limited
from simsched.schedule.policies.recorded_policy import Recorded
from simsched.schedule.policies.replanning import Replanning
from simsched.schedule.policies.selective import Selective
from simsched.schedule.policies.slack import Slack
from simsched.schedule.policies.slurm import SlurmOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

OPTIONS = "policy-options"
"""The table of a configuration that has the options of the queue policy."""


class AnyPolicy(Declared, frozen=True, kw_only=True):
    """The option of every queue policy.

    queue_depth : a pass looks at the first N jobs of the queue (Fluxion, queue-depth).
    """

    queue_depth: Annotated[int | None, whole(1)] = None


class Compressing(Declared, frozen=True, kw_only=True):
    """The option of policies whose reservations last.

    compress : the order in which reservations move up after an early end (Mu'alem and Feitelson 2001).
    """

    compress: Literal["queue", "start", "none"] = "queue"


class Reserving(Declared, frozen=True, kw_only=True):
    """Every waiting job has a reservation (Mu'alem and Feitelson 2001).

    compress : the order in which reservations move up after an early end (Mu'alem and Feitelson 2001);
        ``replan`` plans all of them again at each pass.
    """

    compress: Literal["queue", "start", "none", "replan"] = "queue"

    def policy(self) -> QueuePolicy:
        """Return the policy whose reservations last, or the one that plans again at each pass."""
        return Replanning() if self.compress == "replan" else Conservative(self.compress)


class HybridOptions(Reserving, frozen=True, kw_only=True):
    """The first `depth` waiting jobs have reservations (Fluxion, reservation-depth).

    depth : the most jobs with reservations (Fluxion, reservation-depth).
    backfill_order : the order of the jobs without reservations, by name (Tsafrir et al. 2007).
    """

    depth: int = 8
    backfill_order: Annotated[Any | None, NAMED] = None

    def checked(self, where: str) -> Self:
        """Refuse an order of candidates for reservations that are made anew at each pass."""
        if self.backfill_order is not None and self.compress == "replan":
            text = "backfill-order with compress=replan"
            raise ConfigError(text, where=where, expected="one of the two")
        return self

    def policy(self) -> QueuePolicy:
        """Return the policy."""
        if self.backfill_order is not None:
            return Selective(1.0, self.compress, self.depth, self.backfill_order)
        return (
            Replanning(self.depth) if self.compress == "replan" else Conservative(self.compress, self.depth)
        )


class SelectiveOptions(Compressing, frozen=True, kw_only=True):
    """Promised starts for jobs whose expansion factor exceeds a threshold (Srinivasan et al. 2002).

    threshold : the expansion factor from which on a job has a reservation (Srinivasan et al. 2002).
    backfill_order : the order of the jobs without reservations, by name (Tsafrir et al. 2007).
    """

    threshold: Annotated[float, number(1)] = 2.0
    backfill_order: Annotated[Any | None, NAMED] = None

    def policy(self) -> QueuePolicy:
        """Return the policy."""
        return Selective(self.threshold, self.compress, None, self.backfill_order)


class SlackOptions(Compressing, frozen=True, kw_only=True):
    """Promised latest starts: a job may be delayed by its slack (Talby & Feitelson 1999).

    factor : the slack of a job, in units of its duration (Talby and Feitelson 1999).
    """

    factor: Annotated[float, number(0)] = 1.0

    def policy(self) -> QueuePolicy:
        """Return the policy."""
        return Slack(self.factor, self.compress)


POLICIES: dict[str, Callable[..., Any]] = {
    "conservative": Reserving,
    "easy": EasyOptions,
    "easy+": EasyPlus,
    "easy++": EasyPlusPlus,
    "fcfs": Fcfs,
    "hybrid": HybridOptions,
    "recorded": Recorded,
    "selective": SelectiveOptions,
    "slack": SlackOptions,
    "slurm": SlurmOptions,
}
"""Name → the declared options of a policy, whose method `policy` makes it; or a policy without options."""

PRESETS: dict[str, dict[str, Any]] = {
    "easy+": {"predictor": "last-two"},
    "easy++": {"predictor": "last-two"},
}
"""Name of a policy → the fields of the run's configuration that it sets unless they are given."""

KIND = PluginKind("queue policy", "simsched.queue_policies", QueuePolicy)


def queue_policy(given: str | QueuePolicy, options: Mapping[str, Any] | None = None) -> QueuePolicy:
    """Return a new queue policy of this name, or a copy of the given one.

    An option that is a text is read as the type with which its parameter is annotated.

    Raises
    ------
    ConfigError
        If neither simsched nor an installed package (``simsched.queue_policies``) has a policy of this
        name, or if the policy does not have an option or does not take its value.
    PluginError
        If the policy of another package cannot be made.

    >>> type(queue_policy("easy", {"extra": False})).__name__
    'Easy'
    """
    mine = known_options(given, options or {})
    common = AnyPolicy.read({key: mine.pop(key) for key in ("queue_depth",) if key in mine}, OPTIONS)
    maker = _maker(given)
    try:
        with naming_policy(given):
            made: Any = maker.read(mine, OPTIONS) if is_declared(maker) else maker(**mine)
            policy: QueuePolicy = made.policy() if hasattr(made, "policy") and is_declared(maker) else made
    except TypeError as error:
        raise ConfigError(f"queue policy {name_of(given)!r}: {error}") from error
    if not is_ours(policy):
        KIND.checked(policy, name_of(given))
    return policy if common.queue_depth is None else Limited(policy, common.queue_depth)


def known_options(given: str | QueuePolicy, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a queue policy with texts read as values; errors as `queue_policy`."""
    maker = _maker(given)
    depth = {name: value for name, value in options.items() if name == "queue_depth"}
    mine = {name: value for name, value in options.items() if name != "queue_depth"}
    known = options_of(maker)
    for option in mine:
        if option not in known and "**" not in known:
            shown = [name.replace("_", "-") for name in (*known, "queue_depth")]
            expected = ", ".join(shown) if known else "none but queue-depth"
            word = option.replace("_", "-")
            text = f"queue policy {name_of(given)!r} has no option {word!r}{did_you_mean(word, shown)}"
            raise ConfigError(text, expected=expected)
    strict = not is_declared(maker)  # a declared kind says which values it accepts
    return typed_options(maker, mine, strict=strict) | typed_options(AnyPolicy, depth, strict=False)


def _maker(given: str | QueuePolicy) -> Callable[..., QueuePolicy]:
    """Return a function that makes the policy; from an object it makes copies, so that no run changes it."""
    if isinstance(given, str):
        return POLICIES.get(given) or _installed(given)
    if not KIND.fits(given):
        raise wrong("queue_policy", given, "the name of a queue policy, or an object with run_pass(context)")
    return _Copies(given)


def naming_policy(given: str | QueuePolicy) -> AbstractContextManager[None]:
    """Return a context in which an exception of another package's policy becomes a `PluginError`."""
    return KIND.named(_maker(given), name_of(given))


class _Copies:
    """Makes copies of a policy that is an object; it has no options."""

    def __init__(self, inner: QueuePolicy) -> None:
        self.inner = inner
        self.name = name_of(inner)

    def __call__(self) -> QueuePolicy:
        return deepcopy(self.inner)


def _installed(name: str) -> Callable[..., QueuePolicy]:
    found: Any = KIND.found(name)
    if found is None:
        raise KIND.unknown(name, sorted(POLICIES))
    if KIND.fits(found):
        return _Copies(found)
    if not callable(found):
        raise failed(KIND.word, found, "cannot be called to make a policy", name)
    maker: Callable[..., QueuePolicy] = found
    return maker


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the options in ``name:key=value,…``; errors as `queue_policy`.

    >>> split_options("easy:extra=no,refresh=always")
    ('easy', {'extra': 'no', 'refresh': 'always'})
    """
    name, colon, rest = text.partition(":")
    return (name, KIND.read_options(name, rest)) if colon else (text, {})
