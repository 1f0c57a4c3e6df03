"""The table of queue policies, and how one is found by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.arguments import check
from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from simsched.schedule.desk import QueuePolicy


def _fcfs() -> QueuePolicy:
    from simsched.schedule.fcfs import Fcfs

    return Fcfs()


def _easy(extra: bool = True, refresh: str = "always", reservation: str = "hard") -> QueuePolicy:
    from simsched.schedule.easy import REFRESH, RESERVATION, Easy, EasyOptions

    if not isinstance(extra, bool):
        raise ConfigError(f"unknown value {extra!r} of extra", expected="yes or no")
    _among("refresh", refresh, REFRESH)
    _among("reservation", reservation, RESERVATION)
    return Easy(EasyOptions(extra, refresh, reservation))


def _conservative(compress: str = "queue") -> QueuePolicy:
    return _reserving(compress, None)


def _hybrid(depth: int = 8, compress: str = "queue") -> QueuePolicy:
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
        raise ConfigError(f"depth is {depth!r}", expected="a whole number from 0 on")
    return _reserving(compress, depth)


def _reserving(compress: str, depth: int | None) -> QueuePolicy:
    """Return the policy that keeps reservations, or the one that plans anew at each pass."""
    from simsched.schedule.compression import COMPRESS, Compressing
    from simsched.schedule.conservative import Reserving

    _among("compress", compress, (*COMPRESS, "replan"))
    return Reserving(depth) if compress == "replan" else Compressing(compress, depth)


#: Name → maker; the keyword arguments are the policy's options.
POLICIES: dict[str, Callable[..., QueuePolicy]] = {
    "conservative": _conservative,
    "easy": _easy,
    "fcfs": _fcfs,
    "hybrid": _hybrid,
}


def queue_policy(name: str, options: Mapping[str, Any] | None = None) -> QueuePolicy:
    """Make the queue policy of that name.

    Raises
    ------
    ConfigError
        If there is none of that name here or among the installed ``simsched.queue_policies``,
        or if it has no such option.

    >>> type(queue_policy("easy", {"extra": False})).__name__
    'Easy'
    """
    check("queue_policy", name, str, "the name of a queue policy")
    maker = POLICIES.get(name) or _installed(name)
    mine = dict(options or {})
    depth = mine.pop("queue_depth", None)
    _known_options(name, maker, mine)
    try:
        policy = maker(**mine)
    except TypeError as error:
        raise ConfigError(f"queue policy {name!r}: {error}") from error
    return policy if depth is None else _limited(policy, depth)


def _limited(policy: QueuePolicy, depth: object) -> QueuePolicy:
    """Return the policy, looking only so deep into the queue; any policy can be limited."""
    from simsched.schedule.limited import Limited

    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        raise ConfigError(f"queue-depth is {depth!r}", expected="a whole number from 1 on")
    return Limited(policy, depth)


def _known_options(name: str, maker: Callable[..., QueuePolicy], options: Mapping[str, Any]) -> None:
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

    for entry in entry_points(group="simsched.queue_policies", name=name):
        maker: Callable[..., QueuePolicy] = entry.load()
        return maker
    raise ConfigError(f"unknown queue policy {name!r}", expected=", ".join(sorted(POLICIES)))


def _among(option: str, value: object, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise ConfigError(f"unknown value {value!r} of {option}", expected=", ".join(accepted))
