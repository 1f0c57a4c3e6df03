"""The yardstick: a simpy loop that fires one submit and one end event a job, and does nothing else.

Speeds of simulations are given as multiples of its CPU time, taken in the same session on the
same machine, so that they mean the same on a slow machine as on a fast one.
"""

from __future__ import annotations

import time

import simpy


def bare_loop(jobs: list[tuple[float, float]]) -> float:
    """Fire both events of every (submit, run time), one dispatcher with callbacks; return CPU seconds."""
    began = time.process_time()
    env = simpy.Environment()
    coming = iter(jobs)
    ended = 0

    def on_end(_event: simpy.Event) -> None:
        nonlocal ended
        ended += 1

    def on_submit(event: simpy.Event) -> None:
        env.timeout(event._value).callbacks.append(on_end)
        submit_next()

    def submit_next() -> None:
        job = next(coming, None)
        if job is not None:
            env.timeout(job[0] - env.now, value=job[1]).callbacks.append(on_submit)

    submit_next()
    env.run()
    if ended != len(jobs):
        raise AssertionError("the yardstick lost an event")
    return time.process_time() - began
