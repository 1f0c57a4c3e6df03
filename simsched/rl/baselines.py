"""Rules to compare an agent with, and episodes under a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.arguments import check_whole
from simsched.errors import ConfigError, did_you_mean
from simsched.schedule.orders.order import job_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    Observation = dict[str, npt.NDArray[np.float32]]
    Rule = Callable[[Any, Observation, npt.NDArray[np.bool_]], int]

ORDERS = {"fcfs": "fifo", "sjf": "sjf", "f1": "f1"}
"""Rule → the job order whose first allowed job it chooses."""
RANDOM = "random"
BASELINES = (*ORDERS, RANDOM)


def rule(name: str, seed: int = 0) -> Rule:
    """Return a rule: a function of the environment, the observation and the mask, which returns an action.

    A rule never waits while it may start a job.

    Raises
    ------
    ConfigError
        For an unknown name.
    """
    if name == RANDOM:
        rng = np.random.default_rng(seed)
        return lambda _env, _observation, mask: int(rng.choice(np.flatnonzero(mask)))
    if name not in ORDERS:
        raise ConfigError(f"unknown rule {name!r}{did_you_mean(name, BASELINES)}",
                          expected=", ".join(BASELINES))  # fmt: skip
    order = job_order(ORDERS[name])

    def first(env: Any, _observation: Observation, mask: npt.NDArray[np.bool_]) -> int:
        choice = env.unwrapped.choice
        if choice is None:
            return int(mask.argmax())
        allowed = choice.allowed.nonzero()[0]
        jobs = choice.jobs[allowed]
        best = order.ranked(choice.context.table, jobs, choice.context.now)[0]
        return int(allowed[(jobs == best).argmax()])

    return first


def play(env: Any, agent: Rule, *, seed: int | None = None, begin: int | None = None) -> dict[str, float]:
    """Play one episode and return its metrics, with ``return``: the sum of the rewards."""
    options = None if begin is None else {"begin": begin}
    observation, info = env.reset(seed=seed, options=options)
    total, over = 0.0, False
    while not over:
        observation, reward, over, _, info = env.step(agent(env, observation, info["action_mask"]))
        total += float(reward)
    return {"return": total, **info["metrics"]}


def baseline_table(
    env: Any, episodes: int = 10, seed: int = 0, agents: Iterable[tuple[str, Rule]] = ()
) -> dict[str, dict[str, float]]:
    """Return for each baseline, and for further agents by name, the mean metrics over the same episodes.

    ConfigError unless `episodes` is a whole number of 1 or more.
    """
    check_whole("episodes", episodes, 1)
    check_whole("seed", seed)
    found = {}
    for name, agent in (*((name, rule(name, seed)) for name in BASELINES), *agents):
        played = [play(env, agent, seed=seed + number) for number in range(episodes)]
        found[name] = {key: sum(one[key] for one in played) / episodes for key in played[0]}
    return found
