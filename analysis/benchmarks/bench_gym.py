"""Steps per second of ``simsched/Backfill-v0``: ``python -m analysis.benchmarks.bench_gym``.

128 visible jobs on a machine of 256 nodes; the resets are part of the time.  The agent draws among the
allowed actions.  Seconds are those of the processor.
"""

from __future__ import annotations

import time

import gymnasium
import numpy as np

import simsched as ss
import simsched.rl
from analysis.benchmarks.bench_run import machine
from simsched.rl.chosen_jobs import KINDS

NODES, CORES, VISIBLE, JOBS, LOG, STEPS, ROUNDS = 256, 16, 128, 512, 5_000, 3_000, 3


def crowded() -> ss.Workload:
    """Jobs of 1 to 64 whole nodes that come faster than they end, so that the queue is long."""
    rng = np.random.default_rng(17)
    submits = np.cumsum(rng.integers(0, 60, LOG)).tolist()
    sizes = (2 ** rng.integers(0, 7, LOG)).tolist()
    runtimes = rng.integers(60, 7200, LOG).tolist()
    shapes = {size: ss.Jobspec.from_shape(f"slot={size}/node") for size in set(sizes)}
    jobs = [
        ss.Job(id=at, submit=submit, jobspec=shapes[size], runtime=runtime, duration=2 * runtime)
        for at, (submit, size, runtime) in enumerate(zip(submits, sizes, runtimes, strict=True), 1)
    ]
    return ss.Workload(jobs, name="crowded")


def steps_per_second(actions: str) -> float:
    """The best of a few rounds; other programs on the machine only slow a round down."""
    env = gymnasium.make(
        "simsched/Backfill-v0", cluster=machine(NODES, CORES), workload=crowded(), jobs=JOBS, visible=VISIBLE,
        actions=actions, disable_env_checker=True,
    )  # fmt: skip
    rng = np.random.default_rng(1)
    _, info = env.reset(seed=1)
    best = 0.0
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(STEPS):
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            _, _, over, _, info = env.step(action)
            if over:
                _, info = env.reset()
        best = max(best, STEPS / (time.process_time() - begin))
    return best


def main() -> None:
    """Print a line for each kind of actions."""
    for actions in KINDS:
        print(f"{actions:10} {steps_per_second(actions):8.0f} steps/s", flush=True)


if __name__ == "__main__":
    main()
