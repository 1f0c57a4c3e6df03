"""Baselines, and a linear policy that is trained by an evolution strategy: ``python -m analysis.rl``.

    python -m analysis.rl [--cluster tiny] [--workload month] [--actions next-easy] [--rounds 20]

The policy gives each visible job a score, the sum of its features times weights, and chooses the allowed job
with the highest.  Each round plays pairs of perturbed weights on the same episodes and moves the weights
along the perturbations, by the ranks of their returns (Salimans et al. 2017).  The table at the end is on
episodes that were not trained on.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np

import simsched.rl
from simsched.rl.baselines import baseline_table, play

PAIRS, SIGMA, RATE, EPISODES, TEST = 6, 0.5, 0.5, 2, 10
UNSEEN = 1_000_000
"""The first seed of the episodes of the table."""


def features(observation):
    """Wait, requested time, size, and requested time times size, of each visible job."""
    rows = observation["jobs"]
    return np.column_stack([rows[:, 1], rows[:, 2], rows[:, 3], rows[:, 2] * rows[:, 3]])


def linear(weights):
    """The agent of these weights; it never waits while it may start a job."""

    def agent(_env, observation, mask):
        scores = features(observation) @ weights
        allowed = mask[: len(scores)]
        return int(np.where(allowed, scores, -np.inf).argmax()) if allowed.any() else int(mask.argmax())

    return agent


def mean_return(env, weights, seeds):
    """The mean return over some episodes."""
    return float(np.mean([play(env, linear(weights), seed=seed)["return"] for seed in seeds]))


def train(env, rounds, seed=0, tell=None):
    """Return the weights, and the mean return of each round."""
    rng = np.random.default_rng(seed)
    weights, curve = np.zeros(4), []
    for number in range(rounds):
        seeds = [seed + EPISODES * number + at for at in range(EPISODES)]
        noise = rng.normal(size=(PAIRS, len(weights)))
        returns = np.array([
            [mean_return(env, weights + sign * SIGMA * one, seeds) for sign in (1, -1)] for one in noise
        ])  # fmt: skip
        ranks = returns.ravel().argsort().argsort().reshape(returns.shape) / (returns.size - 1) - 0.5
        weights = weights + RATE * (ranks[:, 0] - ranks[:, 1]) @ noise / PAIRS / SIGMA
        curve.append(float(returns.mean()))
        if tell is not None:
            tell(number, curve[-1], weights)
    return weights, curve


def lines(table):
    """The table as Markdown."""
    yield "| agent | mean bounded slowdown | mean wait (s) | utilisation |"
    yield "|---|---|---|---|"
    for name, row in table.items():
        yield (f"| {name} | {row['mean_bounded_slowdown']:.2f} | {row['mean_wait']:.0f} "
               f"| {row['utilisation']:.3f} |")  # fmt: skip


def main(arguments=None):
    """Train and print the curve and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cluster", default="flat240")
    parser.add_argument("--workload", default="month")
    parser.add_argument("--actions", default="next-easy", choices=simsched.rl.KINDS)
    parser.add_argument("--reward", default="bounded-slowdown", choices=simsched.rl.REWARDS)
    parser.add_argument("--jobs", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=TEST, help="of the table")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    env = gymnasium.make(
        "simsched/Backfill-v0", cluster=args.cluster, workload=args.workload, jobs=args.jobs, visible=64,
        actions=args.actions, reward=args.reward, disable_env_checker=True,
    )  # fmt: skip

    def tell(number, value, weights):
        print(
            f"round {number + 1:3}  return {value:10.3f}  weights {np.round(weights, 2).tolist()}", flush=True
        )

    weights, _ = train(env, args.rounds, args.seed, tell)
    table = baseline_table(env, args.episodes, args.seed + UNSEEN, [("trained", linear(weights))])
    print("\n".join(lines(table)))


if __name__ == "__main__":
    main()
