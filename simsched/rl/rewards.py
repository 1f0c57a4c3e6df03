"""The rewards by name: each step is rewarded for the jobs that started in it.

The return of an episode is then a metric over all its jobs, with the sign by which more is better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import ConfigError, did_you_mean
from simsched.plugins.plugin_errors import failed, named_in_errors, number_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Reward = Callable[[Any, "Sequence[StartedJob]"], float]

BOUND = 10
"""Seconds below which a run time counts as this long in the bounded slowdown (Feitelson et al. 1997)."""
HOUR = 3600


class StartedJob(NamedTuple):
    """A job that has started: its wait and run time in seconds, its size as a share of the machine."""

    number: int
    wait: float
    runtime: float
    size: float

    @property
    def bounded_slowdown(self) -> float:
        """(wait + run time) / run time, where run times below ten seconds count as ten; at least 1."""
        return max(1.0, (self.wait + self.runtime) / max(self.runtime, BOUND))


def minus_bounded_slowdown(env: Any, started: Sequence[StartedJob]) -> float:
    """Minus the mean bounded slowdown, as a sum over the jobs of the episode."""
    return -sum(job.bounded_slowdown for job in started) / float(env.jobs)


def minus_wait(env: Any, started: Sequence[StartedJob]) -> float:
    """Minus the mean wait in hours, as a sum over the jobs of the episode."""
    return -sum(job.wait for job in started) / float(env.jobs) / HOUR


def utilisation(env: Any, _started: Sequence[StartedJob]) -> float:
    """The utilisation from the first submission to the last end, at the end of the episode; 0 before."""
    return float(env.metrics()["utilisation"]) if env.is_over else 0.0


REWARDS: dict[str, Reward] = {
    "bounded-slowdown": minus_bounded_slowdown,
    "wait": minus_wait,
    "utilisation": utilisation,
}
"""Name → the reward of a step, from the environment and the jobs that started in the step."""


def reward_of(given: str | Reward) -> Reward:
    """Return the reward with a name, or a function as it is.

    Raises
    ------
    ConfigError
        For an unknown name or another value.

    >>> reward_of("wait").__name__
    'minus_wait'
    """
    if callable(given):
        return given
    found = REWARDS.get(given) if isinstance(given, str) else None
    if found is None:
        meant = did_you_mean(given, REWARDS) if isinstance(given, str) else ""
        raise ConfigError(f"unknown reward {given!r}{meant}", expected=f"{', '.join(REWARDS)}, or a function")
    return found


def rewarded(reward: Reward, env: Any, started: Sequence[StartedJob]) -> float:
    """Return the reward of a step; PluginError with the function's name if it fails or returns no number."""
    with named_in_errors("reward", reward):
        found = reward(env, started)
    number = number_of(found)
    if number is None:
        raise failed("reward", reward, f"returned {shown(found)}, which is not a number")
    return number
