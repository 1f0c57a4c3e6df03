"""Logs of known rules: runs of a random workload under these rules, with their starts as recorded ones."""

import msgspec
import numpy as np

from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, workload


def machine_and_log(days=12, jobs=500, nodes=16, seed=3, names=(), noise=0.0, **rules):
    """A machine and the log that these rules write; `noise` is a share of jobs with another wait."""
    rng = np.random.default_rng(seed)
    given = []
    for number, submit in enumerate(np.sort(rng.uniform(0, days * 86400, jobs)).astype(int).tolist()):
        size, run = int(2 ** rng.integers(0, 4)), int(min(rng.lognormal(8.6, 1.2), 86400))
        limit = 3600 * int(np.ceil(run * rng.uniform(1, 4) / 3600))
        more = {"queue": names[number % len(names)]} if names else {}
        user = f"u{number % 7}"
        given.append(
            job(number, submit, f"slot={size}/core", run, duration=limit, procs=size, user=user, **more)
        )
    cluster = machine(nodes)
    result = simulate(cluster, workload(*given), allocations=False, **rules)
    waits = (result.jobs["start"] - result.jobs["submit"]).tolist()
    odd = rng.random(jobs) < noise
    waits = [float(rng.exponential(20000)) if other else wait for wait, other in zip(waits, odd, strict=True)]
    logged = [msgspec.structs.replace(item, wait=wait) for item, wait in zip(given, waits, strict=True)]
    return cluster, workload(*logged)
