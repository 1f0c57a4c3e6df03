"""Users' estimates of run times: a few round values, and always at least the run time.

D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", Job
Scheduling Strategies for Parallel Processing 2005.  Twenty head values are used by 89 % of
the jobs (an exponential of the popularity rank), the others follow a power law, and the
times of the values follow a fractional function of their rank.

Ours: which round value has which popularity is drawn at random (the paper takes it from
the site), and the largest estimate is the most popular one unless `max_share` says how
many jobs use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

HEAD = 20
HEAD_SHARE = 0.89
_HEAD_SIZE = (14.0491, -0.177531, 0.462513)  # percent of rank x: a e^(b x) + c
_TAIL_SIZE = (795.6, -2.267)  # percent of rank x: a x^b
_VALUES = (0.653566, 0.547761)  # number of values of n jobs: a n^b
_TIMES = (12.1039, -0.6026)  # a = 1 + p K^q of time(x) = (a - 1) x / (a - x)

_MINUTE, _HOUR = 60, 3600
#: Round times that users like, the pool of the head, in seconds.
ROUND = tuple(
    [minutes * _MINUTE for minutes in (5, 10, 15, 20, 30, 45)]
    + [
        hours * _HOUR
        for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 18, 20, 24, 30, 36, 48, 60, 72, 96, 120, 144)
    ]
)


@dataclass(frozen=True, slots=True)
class Estimates:
    """A distribution of estimates: distinct `times` (seconds) and their `shares` (sum 1).

    Both are in order of popularity, the most popular first.
    """

    times: Integers
    shares: Floats

    def draw(self, number: int, rng: np.random.Generator) -> Integers:
        """Draw estimates for `number` jobs, whatever their run times."""
        return rng.choice(self.times, size=number, p=self.shares)


def shares(values: int) -> Floats:
    """Return the share of jobs that use the value of each popularity rank, sum 1.

    >>> [round(float(share), 3) for share in shares(200)[:3]], round(float(shares(200)[:20].sum()), 3)
    ([0.217, 0.103, 0.087], 0.89)
    """
    import numpy as np

    ranks = np.arange(1, values + 1, dtype=float)
    a, b, c = _HEAD_SIZE
    head = (a * np.exp(b * ranks[:HEAD]) + c) / 100
    head[0] = HEAD_SHARE - head[1:].sum()
    tail = _TAIL_SIZE[0] * ranks[HEAD:] ** _TAIL_SIZE[1]
    whole = np.concatenate([head, tail * ((1 - HEAD_SHARE) / tail.sum())]) if len(tail) else head
    result: Floats = whole / whole.sum()
    return result


def estimates(
    jobs: int, max_estimate: int, rng: np.random.Generator, *, max_share: float | None = None
) -> Estimates:
    """Make the distribution of estimates of a site with this many jobs and this limit.

    Parameters
    ----------
    jobs : number of jobs, which sets how many distinct values there are.
    max_estimate : the longest time that may be asked for, in seconds.
    max_share : share of jobs that ask for exactly that (None: it is the most popular value).

    Raises
    ------
    ConfigError
        When `max_estimate` is below a minute or `max_share` is not between 0 and 1.
    """
    import numpy as np

    if max_estimate < _MINUTE:
        raise ConfigError(f"a longest estimate of {max_estimate} s", expected="at least 60 s")
    if max_share is not None and not 0 <= max_share < 1:
        raise ConfigError(f"a share of {max_share}", expected="a number from 0 to below 1")
    values = max(HEAD + 1, round(_VALUES[0] * max(jobs, 1) ** _VALUES[1]))
    others = _other_times(values - 1, max_estimate, rng)
    times = np.concatenate([[max_estimate], others]).astype(np.int64)
    part = shares(len(times))
    if max_share is not None:
        part[1:] *= (1 - max_share) / part[1:].sum()
        part[0] = max_share
        order = np.argsort(-part, kind="stable")
        times, part = times[order], part[order]
    return Estimates(times, part)


def _other_times(number: int, max_estimate: int, rng: np.random.Generator) -> Integers:
    """Return distinct times below the largest: the head's round ones, then the tail's."""
    import numpy as np

    pool = np.array([time for time in ROUND if time < max_estimate], dtype=np.int64)
    head = rng.permutation(pool)[: HEAD - 1]
    bend = 1 + _TIMES[0] * max(number, 2) ** _TIMES[1]
    rank = np.arange(1, number + 1) / (number + 1)
    times = max_estimate * (bend - 1) * rank / (bend - rank)
    minutes = np.unique(np.maximum(1, np.floor(times / _MINUTE + 0.5)).astype(np.int64)) * _MINUTE
    rest = np.setdiff1d(minutes[minutes < max_estimate], head)
    tail = rng.permutation(rest)[: max(0, number - len(head))]
    return np.concatenate([head, tail]).astype(np.int64)


def assign(run_times: Integers, drawn: Integers, rng: np.random.Generator) -> Integers:
    """Give each job one of the drawn estimates, at random among those not below its run time.

    Jobs are served longest first, so the drawn values are all used as long as they can be;
    a job for which none is left gets the largest of all (and will be ended there).
    O(n log n).
    """
    import numpy as np

    order = np.argsort(-run_times, kind="stable").tolist()
    supply = np.sort(drawn)[::-1].tolist()
    picks = rng.random(len(order)).tolist()
    given = np.empty(len(order), dtype=np.int64)
    pool: list[int] = []
    used = 0
    for job, pick in zip(order, picks, strict=True):
        need = run_times[job]
        while used < len(supply) and supply[used] >= need:
            pool.append(supply[used])
            used += 1
        if pool:
            place = int(pick * len(pool))
            pool[place], pool[-1] = pool[-1], pool[place]
            given[job] = pool.pop()
        else:
            given[job] = supply[0]
    return given
