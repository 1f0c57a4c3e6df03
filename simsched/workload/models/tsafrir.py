"""Users' estimates of run times: a few round values, and always at least the run time.

D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", Job
Scheduling Strategies for Parallel Processing 2005, and the authors' program ``m_tsafrir05`` of the
Parallel Workloads Archive, from which the constants are taken.  Twenty head values are used by 89 % of
the jobs; the longest estimate is the most popular one unless `max_share` gives the share of jobs that use it.
Fifteen head values are those that four sites have in common, multiples of round times complete them.
The popularity of head values follows the same four sites: short times are popular where they were
there, and chance chooses between the sites.  The other values follow a fractional function of their
rank in time and a power law of their rank in popularity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from simsched.arrays import Floats, Integers


HEAD = 20
HEAD_SHARE = 0.89
_HEAD_SIZE = (14.0491, -0.177531, 0.462513)  # percent of rank x: a e^(b x) + c
_TAIL_SIZE = (795.6, -2.267)  # percent of rank x: a x^b
_TIMES = (12.1039, -0.6026)  # a = 1 + p K^q of time(x) = (a - 1) x / (a - x)
#: Number of values by number of jobs, linear between these points and constant after the last.
_VALUES = ((0, 0), (20, 10), (200, 20), (1000, 35), (10_000, 90), (70_000, 340), (250_000, 565))
#: A tail value that is taken already moves by one of these (s).
_OFFSETS = (0, 30, -30, 20, -20, 10, -10)

_MINUTE, _HOUR = 60, 3600
#: The estimates that are among the twenty most popular ones of all four sites, in seconds.
JOINT = tuple(
    [minutes * _MINUTE for minutes in (5, 10, 15, 20, 30)]
    + [hours * _HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)]
)
#: Multiples of these complete the head, from the limit down; the last is ours, for limits below three hours.
_STEPS = tuple(
    [hours * _HOUR for hours in (200, 100, 50, 10, 5, 2, 1)]
    + [minutes * _MINUTE for minutes in (20, 10, 5, 1)]
)
#: Popularity ranks of the head values of a site: of the longest, then of the others in order of time.
SITES = {
    "SDSC SP2": (3, 1, 4, 17, 13, 7, 8, 18, 2, 6, 16, 10, 5, 15, 14, 19, 11, 12, 9, 20),
    "CTC SP2": (1, 3, 4, 2, 12, 9, 8, 18, 6, 7, 11, 20, 16, 5, 14, 13, 10, 15, 17, 19),
    "KTH SP2": (1, 4, 10, 14, 20, 2, 3, 7, 12, 6, 19, 5, 18, 16, 9, 17, 15, 13, 8, 11),
    "SDSC Blue Horizon": (1, 6, 5, 3, 7, 2, 18, 19, 4, 11, 20, 9, 10, 14, 13, 16, 15, 17, 8, 12),
}


@dataclass(frozen=True, slots=True)
class Estimates:
    """A distribution of estimates: distinct `times` (seconds) and their `shares` (sum 1).

    Both are in order of popularity, the most popular first.
    """

    times: Integers
    shares: Floats

    def draw(self, number: int, rng: np.random.Generator) -> Integers:
        """Draw estimates for `number` jobs, whatever their run times.

        Every value is used by its share of the jobs, rounded up or down by chance (systematic sampling).
        """
        places = (np.arange(number) + rng.random()) / max(number, 1)
        which = np.searchsorted(np.cumsum(self.shares)[:-1], places, side="right")
        return rng.permutation(self.times[which])


def estimates(
    jobs: int, max_estimate: int, rng: np.random.Generator, *, max_share: float | None = None
) -> Estimates:
    """Make the distribution of estimates of a site with this many jobs and this limit.

    Parameters
    ----------
    jobs : number of jobs, which sets how many distinct values there are.
    max_estimate : the longest time that may be requested, in seconds.
    max_share : share of jobs that request exactly that (None: it is the most popular value).

    Raises
    ------
    ConfigError
        When `max_estimate` is below a minute or `max_share` is not between 0 and 1.
    """
    if max_estimate < _MINUTE:
        raise ConfigError(f"a longest estimate of {max_estimate} s is too short", expected="at least 60 s")
    if max_share is not None and not 0 <= max_share < 1:
        raise ConfigError(f"a share of {max_share} is out of range", expected="at least 0, less than 1")
    head = head_times(max_estimate)
    values = number_of_values(jobs)
    tail = _tail_times(values, max_estimate, head)
    part = np.concatenate([_head_shares(len(head), max_share, rng), _tail_shares(len(tail), max_share, rng)])
    part /= part.sum()
    order = np.argsort(-part, kind="stable")
    return Estimates(np.array([*head, *tail], dtype=np.int64)[order], part[order])


def number_of_values(jobs: int) -> int:
    """Return how many distinct estimates this many jobs use.

    >>> number_of_values(1000), number_of_values(20_000), number_of_values(10**6)
    (35, 132, 565)
    """
    numbers, values = zip(*_VALUES, strict=True)
    return round(float(np.interp(jobs, numbers, values)))


def head_times(max_estimate: int) -> list[int]:
    """Return the most popular estimates (s): the longest, then the others in ascending order.

    They are those of `JOINT`, completed by round times to twenty, or fewer where the limit is short.

    >>> [time // 3600 for time in head_times(24 * 3600) if time >= 10 * 3600]
    [24, 10, 12, 15, 16, 18, 20, 22]
    """
    found = {max_estimate, *(time for time in JOINT if time < max_estimate)}
    for step in _STEPS:
        for time in range(max_estimate // step * step, 0, -step):
            if len(found) == HEAD:
                break
            found.add(time)
    return [max_estimate, *sorted(found - {max_estimate})]


def head_ranks(rng: np.random.Generator, longest: int = 1) -> list[int]:
    """Draw a popularity rank for each of the twenty head values, in the order of `head_times`.

    The ranks of a place come from those that the sites have there or before, the more popular of two draws.
    A rank is given at the latest where the last site has it.  `longest` is the rank of the longest value.
    """
    due = {rank: max(site.index(rank) for site in SITES.values()) for rank in range(1, HEAD + 1)}
    ranks, pool = [longest], [site[0] for site in SITES.values()]
    for place in range(1, HEAD):
        pool += [site[place] for site in SITES.values()]
        pool = [rank for rank in pool if rank not in ranks]
        late = [rank for rank, last in due.items() if last <= place and rank not in ranks]
        ranks.append(late[0] if late else min(pool[int(at)] for at in rng.integers(len(pool), size=2)))
    return ranks


def shares(values: int) -> Floats:
    """Return the share of jobs that use the value of each popularity rank of the head.

    >>> [round(float(share), 3) for share in shares(20)[:3]], round(float(shares(20).sum()), 3)
    ([0.217, 0.103, 0.087], 0.89)
    """
    a, b, c = _HEAD_SIZE
    head: Floats = (a * np.exp(b * np.arange(1, values + 1)) + c) / 100
    head[0] = HEAD_SHARE - head[1:].sum()
    return head


def _head_shares(values: int, max_share: float | None, rng: np.random.Generator) -> Floats:
    sizes = shares(values)
    if max_share is not None and values > 1:
        sizes[1:] *= max(HEAD_SHARE - max_share, 0.0) / sizes[1:].sum()
        sizes[0] = max_share
    ranks = head_ranks(rng, 1 + int((sizes[1:] > sizes[0]).sum()))
    others = np.argsort(ranks[1:values], kind="stable")
    part = sizes.copy()
    part[1:][others] = sizes[1:]
    return part


def _tail_shares(values: int, max_share: float | None, rng: np.random.Generator) -> Floats:
    """Return the shares of the tail values, shuffled: any of them may be the more popular one."""
    a, b = _TAIL_SIZE
    sizes = a * np.arange(HEAD + 1, HEAD + 1 + values, dtype=float) ** b
    rest = 1 - max(HEAD_SHARE, max_share or 0.0)
    return rng.permutation(sizes * (rest / sizes.sum())) if values else sizes


def _tail_times(values: int, max_estimate: int, head: list[int]) -> list[int]:
    """Return the other estimates (s): whole minutes, or some seconds off where that is taken already."""
    bend = 1 + _TIMES[0] * max(values, 1) ** _TIMES[1]
    number = max(values - len(head), 0)
    taken, tail = set(head), []
    for rank in range(1, number + 1):
        place = rank / number
        near = round(max_estimate * (bend - 1) * place / (bend - place) / _MINUTE) * _MINUTE
        free = (near + o for o in _OFFSETS if 0 < near + o < max_estimate and near + o not in taken)
        if (time := next(free, None)) is not None:
            taken.add(time)
            tail.append(time)
    return tail


def assign(run_times: Integers, drawn: Integers, rng: np.random.Generator) -> Integers:
    """Give each job one of the drawn estimates, at random among those not below its run time.

    Jobs are served longest first, so the drawn values are all used as long as they can be;
    a job for which none is left gets the largest of all (and will be ended there).
    O(n log n).
    """
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
