"""The queue policies by name, and those of other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.arguments import wrong
from simsched.errors import ConfigError, did_you_mean
from simsched.plugins.plugin_errors import failed, is_ours, name_of
from simsched.plugins.plugin_kind import PluginKind
from simsched.plugins.typed_options import typed_options
from simsched.schedule.pass_context import QueuePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager


def _fcfs() -> QueuePolicy:
    """First come, first served: jobs start strictly in order."""
    from simsched.schedule.policies.fcfs import Fcfs

    return Fcfs()


def _easy(
    extra: bool = True,
    refresh: str = "always",
    reservation: str = "hard",
    backfill_order: str | None = None,
    starvation: str | None = None,
) -> QueuePolicy:
    """EASY backfilling: later jobs pass the first that does not fit, unless they delay it (Lifka 1995)."""
    from simsched.schedule.policies.easy import REFRESH, RESERVATION, Easy, EasyOptions

    if not isinstance(extra, bool):
        raise ConfigError(f"unknown value {extra!r} of extra", expected="yes or no")
    _among("refresh", refresh, REFRESH)
    _among("reservation", reservation, RESERVATION)
    if reservation == "none" and starvation is not None:
        raise ConfigError("starvation with reservation=none", expected="a reservation that binds")
    return Easy(EasyOptions(extra, refresh, reservation, backfill_order, _seconds("starvation", starvation)))


def _easy_plus_plus(
    extra: bool = True,
    refresh: str = "always",
    backfill_order: str | None = "sjf",
    starvation: str | None = None,
) -> QueuePolicy:
    """EASY on predictions, with the shortest candidates first (Tsafrir, Etsion & Feitelson 2007)."""
    return _easy(extra, refresh, "hard", backfill_order, starvation)


def _easy_plus(
    extra: bool = True,
    refresh: str = "always",
    backfill_order: str | None = None,
    starvation: str | None = None,
) -> QueuePolicy:
    """EASY on predictions that are corrected (Tsafrir, Etsion & Feitelson 2007)."""
    return _easy(extra, refresh, "hard", backfill_order, starvation)


def _conservative(compress: str = "queue") -> QueuePolicy:
    """Every waiting job has a promised start (Mu'alem & Feitelson 2001)."""
    return _reserving(compress, None)


def _hybrid(depth: int = 8, compress: str = "queue", backfill_order: str | None = None) -> QueuePolicy:
    """Backfilling with promised starts for at most `depth` jobs, as Fluxion's reservation-depth."""
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
        raise ConfigError(f"depth is {depth!r}", expected="a whole number of 0 or more")
    return _reserving(compress, depth, backfill_order)


def _recorded() -> QueuePolicy:
    """Each job starts when the log says: the recorded schedule (simsched)."""
    from simsched.schedule.policies.recorded_policy import Recorded

    return Recorded()


def _selective(
    threshold: float = 2.0, compress: str = "queue", backfill_order: str | None = None
) -> QueuePolicy:
    """Promised starts for jobs whose expansion factor exceeds a threshold (Srinivasan et al. 2002)."""
    from simsched.schedule.policies.conservative import COMPRESS
    from simsched.schedule.policies.selective import Selective

    _among("compress", compress, COMPRESS)
    return Selective(_number("threshold", threshold, 1), compress, None, backfill_order)


def _slack(factor: float = 1.0, compress: str = "queue") -> QueuePolicy:
    """Promised latest starts: a job may be delayed by its slack (Talby & Feitelson 1999)."""
    from simsched.schedule.policies.conservative import COMPRESS
    from simsched.schedule.policies.slack import Slack

    _among("compress", compress, COMPRESS)
    return Slack(_number("factor", factor, 0), compress)


def _slurm(
    interval: str | float = 30,
    sched_interval: str | float = 0,
    window: str | float = "1d",
    resolution: str | float = 60,
    max_job_test: int | None = 500,
    max_job_start: int | None = None,
    max_job_user: int | None = None,
    max_job_part: int | None = None,
    min_age_reserve: str | float = 0,
    reservation_depth: int | None = None,
) -> QueuePolicy:
    """Slurm's main scheduler in priority order at events, and its backfill at intervals (slurm.conf)."""
    from simsched.schedule.policies.slurm import Slurm, SlurmOptions

    counts = (
        ("max-job-test", max_job_test),
        ("max-job-start", max_job_start),
        ("max-job-user", max_job_user),
        ("max-job-part", max_job_part),
        ("reservation-depth", reservation_depth),
    )
    for name, count in counts:
        least = 0 if name == "reservation-depth" else 1
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < least):
            raise ConfigError(f"{name} is {count!r}", expected=f"a whole number of {least} or more, or none")
    return Slurm(
        SlurmOptions(
            interval=_time("interval", interval),
            sched_interval=_time("sched-interval", sched_interval),
            window=_time("window", window, finite=False),
            resolution=_time("resolution", resolution),
            max_job_test=max_job_test,
            max_job_start=max_job_start,
            max_job_user=max_job_user,
            max_job_part=max_job_part,
            min_age_reserve=_time("min-age-reserve", min_age_reserve),
            reservation_depth=reservation_depth,
        )
    )


def _reserving(compress: str, depth: int | None, backfill_order: str | None = None) -> QueuePolicy:
    """Return a policy whose reservations last, or the one that plans again at each pass."""
    from simsched.schedule.policies.conservative import COMPRESS, Conservative
    from simsched.schedule.policies.replanning import Replanning

    _among("compress", compress, (*COMPRESS, "replan"))
    if backfill_order is not None:
        from simsched.schedule.policies.selective import Selective

        if compress == "replan":
            raise ConfigError("backfill-order with compress=replan", expected="one of the two")
        return Selective(1.0, compress, depth, backfill_order)
    return Replanning(depth) if compress == "replan" else Conservative(compress, depth)


POLICIES: dict[str, Callable[..., QueuePolicy]] = {
    "conservative": _conservative,
    "easy": _easy,
    "easy+": _easy_plus,
    "easy++": _easy_plus_plus,
    "fcfs": _fcfs,
    "hybrid": _hybrid,
    "recorded": _recorded,
    "selective": _selective,
    "slack": _slack,
    "slurm": _slurm,
}
"""Name → a function that makes the policy; its keyword arguments are the policy's options."""

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
    depth = mine.pop("queue_depth", None)
    maker = _maker(given)
    try:
        with naming_policy(given):
            policy = maker(**mine)
    except TypeError as error:
        raise ConfigError(f"queue policy {name_of(given)!r}: {error}") from error
    if not is_ours(policy):
        KIND.checked(policy, name_of(given))
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
            known = [parameter.replace("_", "-") for parameter in (*parameters, "queue_depth")]
            expected = ", ".join(known) if parameters else "none but queue-depth"
            shown = option.replace("_", "-")
            meant = did_you_mean(shown, known)
            raise ConfigError(f"queue policy {name!r} has no option {shown!r}{meant}", expected=expected)


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


def _seconds(option: str, value: Any) -> float | None:
    """Read an option that is a time, such as ``90`` or ``12h``; None if it is not one."""
    return None if value is None else _time(option, value, finite=False)


def _number(option: str, value: Any, least: float) -> float:
    """Read an option that is a number of at least some size."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < float("inf"):
        raise ConfigError(f"{option} is {value!r}", expected=f"a number of {least} or more")
    return value


def _time(option: str, value: Any, *, finite: bool = True) -> float:
    """Read an option that is a time of 0 seconds or more."""
    from simsched.formats.rfc.duration import parse_time

    if isinstance(value, bool) or value is None:
        raise ConfigError(f"{option} is {value!r}", expected="a duration, such as 90 or 12h")
    seconds = parse_time(value, where=option)
    if finite and seconds == float("inf"):
        raise ConfigError(f"{option} is infinite", expected="seconds, or a finite duration")
    return seconds


def _among(option: str, value: object, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise ConfigError(f"unknown value {value!r} of {option}", expected=", ".join(accepted))
