"""The queue policies by name, and those of other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.arguments import wrong
from simsched.errors import ConfigError
from simsched.match.policies.plugins import (
    failed,
    installed_names,
    is_ours,
    load,
    name_of,
    named_in_errors,
    unknown,
)
from simsched.schedule.policies.options import typed_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from simsched.schedule.pass_context import QueuePolicy


def _fcfs() -> QueuePolicy:
    from simsched.schedule.policies.fcfs import Fcfs

    return Fcfs()


def _easy(extra: bool = True, refresh: str = "always", reservation: str = "hard") -> QueuePolicy:
    from simsched.schedule.policies.easy import REFRESH, RESERVATION, Easy, EasyOptions

    if not isinstance(extra, bool):
        raise ConfigError(f"unknown value {extra!r} of extra", expected="yes or no")
    _among("refresh", refresh, REFRESH)
    _among("reservation", reservation, RESERVATION)
    return Easy(EasyOptions(extra, refresh, reservation))


def _conservative(compress: str = "queue") -> QueuePolicy:
    return _reserving(compress, None)


def _hybrid(depth: int = 8, compress: str = "queue") -> QueuePolicy:
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
        raise ConfigError(f"depth is {depth!r}", expected="a whole number of 0 or more")
    return _reserving(compress, depth)


def _recorded() -> QueuePolicy:
    from simsched.schedule.policies.recorded import Recorded

    return Recorded()


def _reserving(compress: str, depth: int | None) -> QueuePolicy:
    """Return a policy whose reservations last, or the one that plans again at each pass."""
    from simsched.schedule.policies.conservative import COMPRESS, Conservative
    from simsched.schedule.policies.replanning import Replanning

    _among("compress", compress, (*COMPRESS, "replan"))
    return Replanning(depth) if compress == "replan" else Conservative(compress, depth)


POLICIES: dict[str, Callable[..., QueuePolicy]] = {
    "conservative": _conservative,
    "easy": _easy,
    "fcfs": _fcfs,
    "hybrid": _hybrid,
    "recorded": _recorded,
}
"""Name → a function that makes the policy; its keyword arguments are the policy's options."""

GROUP = "simsched.queue_policies"
"""The entry-point group in which other packages offer their policies."""
KIND = "queue policy"


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
    depth = mine.pop("queue_depth", None)
    maker = _maker(given)
    try:
        with naming_policy(given):
            policy = maker(**mine)
    except TypeError as error:
        raise ConfigError(f"queue policy {name_of(given)!r}: {error}") from error
    if not callable(getattr(policy, "run_pass", None)):
        raise failed(
            KIND, maker, f"is a {type(policy).__name__} without a method run_pass(context)", name_of(given)
        )
    return policy if depth is None else _limited(policy, depth)


def known_options(given: str | QueuePolicy, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a queue policy with texts read as values; errors as `queue_policy`."""
    maker = _maker(given)
    depth = {name: value for name, value in options.items() if name == "queue_depth"}
    mine = {name: value for name, value in options.items() if name != "queue_depth"}
    _refuse_unknown(name_of(given), maker, mine)
    strict = not is_ours(maker)  # our own policies check their options and name the accepted values
    return typed_options(maker, mine, strict=strict) | typed_options(_depth, depth, strict=False)


def _depth(queue_depth: int) -> None:
    """Declare the option that every policy has, for `typed_options`."""


def _maker(given: str | QueuePolicy) -> Callable[..., QueuePolicy]:
    """Return a function that makes the policy; from an object it makes copies, so that no run changes it."""
    if isinstance(given, str):
        return POLICIES.get(given) or _installed(given)
    if not callable(getattr(given, "run_pass", None)) or isinstance(given, type):
        raise wrong("queue_policy", given, "the name of a queue policy, or an object with run_pass(context)")
    return _Copies(given)


def naming_policy(given: str | QueuePolicy) -> AbstractContextManager[None]:
    """Return a context in which an exception of another package's policy becomes a `PluginError`."""
    return named_in_errors(KIND, _maker(given), name_of(given))


class _Copies:
    """Makes copies of a policy that is an object; it has no options."""

    def __init__(self, inner: QueuePolicy) -> None:
        self.inner = inner
        self.name = name_of(inner)

    def __call__(self) -> QueuePolicy:
        from copy import deepcopy

        return deepcopy(self.inner)


def _limited(policy: QueuePolicy, depth: object) -> QueuePolicy:
    """Return the policy limited to the first `depth` jobs of the queue; any policy can be limited."""
    from simsched.schedule.policies.limited import Limited

    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        raise ConfigError(f"queue-depth is {depth!r}", expected="a whole number of 1 or more")
    return Limited(policy, depth)


def _refuse_unknown(name: str, maker: Callable[..., QueuePolicy], options: Mapping[str, Any]) -> None:
    from inspect import Parameter, signature

    parameters = signature(maker).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for option in options:
        if option not in parameters:
            expected = ", ".join([*parameters, "queue-depth"]) if parameters else "none but queue-depth"
            raise ConfigError(f"queue policy {name!r} has no option {option!r}", expected=expected)


def _installed(name: str) -> Callable[..., QueuePolicy]:
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        maker: Callable[..., QueuePolicy] = load(KIND, name, entry)
        if not callable(maker):
            raise failed(KIND, maker, "cannot be called to make a policy", name)
        return maker
    raise unknown(KIND, name, [*sorted(POLICIES), *installed_names(GROUP)])


def _among(option: str, value: object, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise ConfigError(f"unknown value {value!r} of {option}", expected=", ".join(accepted))
