"""The fair-share factor of each user of a tree of accounts, from shares and usage.

Fair tree (Slurm, `fair_tree.shtml`): siblings are compared by their level fair share, their part of
the shares over their part of the usage; a walk in that order ranks all users, and the factor is the rank
over the number of users.  Siblings with equal values tie: users share a rank, accounts merge
their children, and the highest user of an account shares the rank of a user who ties with the account.
The weighted tree of flux-accounting (`fair-share.rst`) is the same walk, in which a user and an account
do not tie.  The classic factor (Slurm, `classic_fair_share.shtml`) is 2^(-effective usage / shares).

The walk compares usage over shares, the least first, which is the same order.  Values that agree in 30
bits, or nine digits, are equal: usage is a sum whose last bits depend on the order of its terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simsched.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.schedule.orders.account_tree import AccountTree

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

_DROPPED = 22
_HALF = 1 << (_DROPPED - 1)
_RANK = 44
"""The bits below the rank of the account in the key of a user."""
_KEY = (1 << _RANK) - 1
_LARGEST = 1_000_000
"""Accounts × nodes up to which their sums are one product with a matrix."""
"""The bits of a level fair share that do not count: it has 52 behind its first."""


class FairShareRule(Protocol):
    """Turns the usage of a tree into factors."""

    def shares(self, own: Floats) -> Shares:
        """Return the factors of users, from 0 to 1, for this usage.

        own : the usage of each node without that of the nodes below, in any unit.
        """


#: Nodes of users → their factors.
Shares = Callable[["Integers"], "Floats"]


class RankedTree:
    """Fair tree, and the weighted tree unless users and accounts tie (`ties_across`).

    Each node has a whole number as its key, the least first.  Level by level, accounts are replaced by their
    rank in the walk, which becomes the upper part of the keys below.  So in the end the keys of users
    are in the order of the walk, and the rank of a user is the number of lesser keys.
    """

    def __init__(self, tree: AccountTree, *, ties_across: bool = True) -> None:
        self._tree = tree
        self._across = ties_across
        self._users = np.flatnonzero(tree.is_user)
        self._factors = 1.0 - np.arange(len(self._users) + 1) / max(1, len(self._users))
        norm = _part_of_siblings(tree)
        inherits = np.isnan(tree.shares)
        # A share of 0 comes last, whatever the usage; who has the shares of the parent comes first.
        self._by_share = 1.0 / np.where(norm > 0, norm, 1.0)
        self._by_share[inherits] = 0.0
        self._last = np.flatnonzero((norm == 0) & ~inherits)
        self._is_account = (~tree.is_user).astype(np.int64)
        self._paths = _paths(tree, self._users)
        self._levels = _distinct(self._paths)
        """For each depth but that of the users: its nodes, and the place of each in the depth above."""
        self._above = self._levels.pop()[1] if self._levels else np.zeros(0, dtype=np.int64)
        self._mixed = [len(set(tree.is_user[nodes].tolist())) > 1 for nodes, _ in self._levels]
        self._first_user = len(tree) - len(self._users)
        self._matrix = _sums(tree, self._first_user) if self._levels else None
        self._walked: _Walk | None = None
        """The last walk over the accounts; it holds while they keep their order."""

    def shares(self, own: Floats) -> Shares:
        """Return rank / number of users of users."""
        if not len(self._users):
            return lambda nodes: np.zeros(len(nodes))
        keys = self._ranking(own)
        sorted_keys = keys.copy()
        sorted_keys.sort()
        factors, first = self._factors, self._first_user

        def of(nodes: Integers) -> Floats:
            found: Floats = factors[sorted_keys.searchsorted(keys[nodes - first])]
            return found

        return of

    def _ranking(self, own: Floats) -> Integers:
        """Return a key for each user, in the order of the walk."""
        users = self._first_user
        if not self._levels:
            return self._keys(own, self._last)[users:]  # users have the highest numbers
        if self._matrix is None:
            return self._exact(own)
        # Siblings are compared as well without their account's usage, unless it ties with another one.
        totals = own.copy()
        totals[:users] = self._matrix @ own
        keys = self._keys(totals, self._last)
        if self._walked is None or not self._walked.holds(keys):
            self._walked = None
            lifted = self._walk_accounts(keys)
            if lifted is None:
                return self._exact(own)
        else:
            lifted = self._walked.lifted
        found: Integers = keys[users:]
        found += lifted
        return found

    def _walk_accounts(self, keys: Integers) -> Integers | None:
        """Return the upper part of the key of each user; None if a tie needs care."""
        above: Integers | None = None
        walked = _Walk()
        for (nodes, places), mixed in zip(self._levels, self._mixed, strict=True):
            mine = (keys[nodes] << 1) + self._is_account[nodes]
            if above is not None:
                mine += above[places] << _RANK
            order = mine.argsort()
            column = mine[order]
            steps = column[1:] - column[:-1]
            if self._needs_care(column, steps, mixed=mixed):
                return None
            walked.add(nodes[order], column, steps)
            above = np.zeros(len(order), dtype=np.int64)
            above[order[1:]] = (steps != 0).cumsum()
        assert above is not None
        above <<= _RANK
        walked.lifted = above[self._above]
        self._walked = walked.closed()
        return walked.lifted

    def _needs_care(self, column: Integers, steps: Integers, *, mixed: bool) -> bool:
        """Whether accounts with usage tie, or a user with an account; accounts without any just merge."""
        used = (column[1:] & _KEY) > 1
        if ((steps == 0) & used).any():
            return True
        return mixed and self._across and bool(((steps == 1) & (column[:-1] % 2 == 0)).any())

    def _exact(self, own: Floats) -> Integers:
        """Return what `_ranking` does, with each node's part of the usage of its account."""
        totals = self._tree.totals(own)
        above = totals[self._tree.parents]
        part = np.divide(totals, above, out=np.zeros(len(totals)), where=above > 0)
        return self._walk((self._keys(part, self._last) << 1) + self._is_account)

    def _keys(self, used: Floats, last: Integers) -> Integers:
        """Return usage over shares as a whole number for each node: of siblings, the least goes first."""
        level = used * self._by_share
        if len(last):
            level[last] = np.inf
        # The bits of positive floats are ordered as the numbers are.
        bits = level.view(np.int64)
        bits += _HALF
        bits >>= _DROPPED
        return bits

    def _walk(self, keys: Integers) -> Integers:
        """Return the keys of users from those of all nodes: their first places in the sorted paths."""
        columns = keys[self._paths]
        order = np.lexsort(columns[::-1])
        columns = columns[:, order]
        before, here = columns[:, :-1], columns[:, 1:]
        differs = before != here
        at, each = differs.argmax(axis=0), np.arange(len(order) - 1)
        # A user (even) and the account after it (odd) differ by one if their values are equal.
        tied = ~differs.any(axis=0)
        if self._across:
            tied |= (here[at, each] - before[at, each] == 1) & (before[at, each] % 2 == 0)
        first = np.arange(len(order))
        first[1:][tied] = 0
        np.maximum.accumulate(first, out=first)
        found = np.empty(len(order), dtype=np.int64)
        found[order] = first
        return found


class _Walk:
    """A walk over accounts: neighbours in it, and what it adds to the keys of users.

    Usage changes with every second, but accounts seldom change places.  A walk holds for other keys if
    siblings that are neighbours in it are in the same relation.

    Attributes
    ----------
    lifted : the upper part of the key of each user.
    """

    def __init__(self) -> None:
        self.lifted: Integers = np.zeros(0, dtype=np.int64)
        self._lasts = True
        self._before: list[Integers] = []
        self._after: list[Integers] = []
        self._merged: list[Integers] = []

    def add(self, nodes: Integers, column: Integers, steps: Integers) -> None:
        """Add a level: its nodes in order, their keys with the account above, and the steps between these."""
        siblings = (column[1:] >> _RANK) == (column[:-1] >> _RANK)
        # A user and an account may have equal values and different keys.
        self._lasts = self._lasts and not ((steps == 1) & siblings).any()
        apart, merged = siblings & (steps != 0), siblings & (steps == 0)
        self._before.append(nodes[:-1][apart])
        self._after.append(nodes[1:][apart])
        self._merged += [nodes[:-1][merged], nodes[1:][merged]]

    def closed(self) -> _Walk | None:
        """Return the walk after its last level; None if it cannot be checked for other keys."""
        self._neighbours = np.concatenate(self._before), np.concatenate(self._after)
        self._unused = np.concatenate(self._merged)
        return self if self._lasts else None

    def holds(self, keys: Integers) -> bool:
        """Whether accounts with these keys are in the same order, and the same ones merge."""
        before, after = self._neighbours
        if np.count_nonzero(keys[before] >= keys[after]):
            return False
        # Only accounts without usage merge here.
        return not (len(self._unused) and keys[self._unused].any())


class ClassicFairShare:
    """Slurm's factor before fair tree: 2^(-UE / S / dampening), UE the effective usage, S the norm shares."""

    def __init__(self, tree: AccountTree, *, dampening: float = 1.0) -> None:
        self._tree = tree
        self._dampening = dampening
        self._part = _part_of_siblings(tree)
        self._shares = np.ones(len(tree))
        inherits = np.isnan(tree.shares)
        for level in tree.levels:
            above = self._shares[tree.parents[level]]
            self._shares[level] = np.where(inherits[level], above, above * self._part[level])
        self._inherits = inherits

    def shares(self, own: Floats) -> Shares:
        """Return the factors of users."""
        return self._factors(own).__getitem__

    def _factors(self, own: Floats) -> Floats:
        tree = self._tree
        totals = tree.totals(own)
        used = totals / totals[0] if totals[0] > 0 else np.zeros(len(tree))
        effective = np.ones(len(tree))
        for depth, level in enumerate(tree.levels):
            above = effective[tree.parents[level]]
            if depth == 0:
                effective[level] = used[level]
            else:
                effective[level] = used[level] + (above - used[level]) * self._part[level]
            mine = self._inherits[level]
            effective[level[mine]] = above[mine]
        with np.errstate(divide="ignore", invalid="ignore"):
            exponents = effective / self._shares / self._dampening
            found: Floats = np.where(self._shares > 0, 2.0**-exponents, 0.0)
        return found


def _part_of_siblings(tree: AccountTree) -> Floats:
    """Return the shares of each node over those of all its siblings; 0 where shares are the parent's."""
    shares = np.nan_to_num(tree.shares, nan=0.0)
    compared = np.concatenate([np.zeros(0, dtype=np.int64), *tree.levels])
    sums = np.bincount(tree.parents[compared], weights=shares[compared], minlength=len(tree))
    of_all = sums[tree.parents[compared]]
    found = np.zeros(len(tree))
    found[compared] = shares[compared] / np.where(of_all > 0, of_all, 1.0)
    return found


def _paths(tree: AccountTree, users: Integers) -> Integers:
    """Return for each depth the node on the way from the root to each user; below a user, itself."""
    ways = []
    for user in users.tolist():
        way = [user]
        while tree.parents[way[-1]]:
            way.append(int(tree.parents[way[-1]]))
        ways.append(way[::-1])
    deepest = max(map(len, ways), default=1)
    return np.array([[*way, *[way[-1]] * (deepest - len(way))] for way in ways], dtype=np.int64).T.reshape(
        deepest, len(ways)
    )


def _sums(tree: AccountTree, accounts: int) -> Floats | None:
    """Return the matrix that turns usage into the sums of accounts; None if it would be large."""
    if accounts * len(tree) > _LARGEST:
        return None
    found = np.eye(accounts, len(tree))
    for node in range(len(tree)):
        above = node
        while above:
            above = int(tree.charged[above])
            found[above, node] = 1.0
    return found


def _distinct(paths: Integers) -> list[tuple[Integers, Integers]]:
    """Return for each depth at which users differ: its nodes, and the place of each among those above.

    A depth that all users share does not order them.  The last depth is that of the users, by number.
    """
    found: list[tuple[Integers, Integers]] = []
    places = np.zeros(paths.shape[1] if len(paths) else 0, dtype=np.int64)
    for depth, row in enumerate(paths):
        is_last = depth == len(paths) - 1
        if not is_last and (row == row[:1]).all():
            continue
        nodes, first, own = np.unique(row, return_index=True, return_inverse=True)
        found.append((row, places) if is_last else (nodes, places[first]))
        places = own
    return found


RULES: dict[str, tuple[Callable[..., FairShareRule], str]] = {
    "fair-tree": (
        lambda tree, **_: RankedTree(tree),
        "users ranked by a walk over the tree in the order of shares over usage (Slurm, fair_tree.html)",
    ),
    "classic": (
        lambda tree, dampening=1.0: ClassicFairShare(tree, dampening=dampening),
        "2^(-effective usage / shares / dampening) (Slurm, classic_fair_share.html)",
    ),
    "weighted-tree": (
        lambda tree, **_: RankedTree(tree, ties_across=False),
        "the walk of fair-tree, in which users and accounts do not tie (flux-accounting, fair-share.rst)",
    ),
}
"""Name → a function that makes the rule of a tree, and a sentence with its source."""


def fair_share_rule(name: str, tree: AccountTree, dampening: float = 1.0) -> FairShareRule:
    """Return the rule of this name for a tree; ConfigError if there is none."""
    if name not in RULES:
        raise ConfigError(
            f"unknown method of fair share {name!r}{did_you_mean(name, RULES)}", expected=", ".join(RULES)
        )
    return RULES[name][0](tree, dampening=dampening)
