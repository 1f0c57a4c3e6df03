"""Fair share: jobs of the users and accounts with the least recent usage go first.

`AccountTree` has the accounts and their users, and `UsageLedger` their decayed usage. A rule (`RULES`) turns
usage and shares into the factor of each user, for the order ``multifactor``. `FairShare` is an order by
itself, without a tree.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from math import exp2, floor, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.cycles import find_cycle
from simsched.errors import ConfigError, did_you_mean
from simsched.formats.machines.accounts import PARENT, ROOT, AccountRow
from simsched.match.kernel import view
from simsched.schedule.orders.ranking import by_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from simsched.arrays import Bools, Floats, Integers
    from simsched.schedule.job_table import JobTable


WEEK = 7 * 86400.0
MOST = 500.0
"""After this many halvings magnified usage is scaled down again, well before it overflows."""


# -- the accounts -------------------------------------------------------------------------------------

DEEP = 64
"""More levels than the accounts of a site have."""


@dataclass(frozen=True, eq=False)
class AccountTree:
    """Accounts and their users as arrays, from the root down.

    A node is an account or one user in one account. Node 0 is the root, and a node follows its parent. An
    account with the shares ``parent`` is left out of the comparison: its children compete with its siblings.

    Attributes
    ----------
    names : account, or (account, user), of each node.
    parents : the node with which a node is compared: that of its account, or of the nearest account above
        that has shares of its own; the root's is 0.
    charged : the node above, to which usage is passed on; the root's is 0.
    shares : shares of each node; NaN: those of its parent count.
    usage : usage of each node at second 0, without that of the nodes below.
    is_user : whether a node is a user.
    priorities : the priority of each node for the factor ``account``; NaN: none is given.
    levels : the nodes by depth, from the children of the root down; parents come before children.
    charge_levels : the same by the depth of `charged`.
    """

    names: tuple[str | tuple[str, str], ...]
    parents: Integers
    charged: Integers
    shares: Floats
    usage: Floats
    is_user: Bools
    priorities: Floats
    levels: tuple[Integers, ...]
    charge_levels: tuple[Integers, ...]
    _of_user: Mapping[str, tuple[int, ...]] = field(repr=False, default_factory=dict)
    _default: Mapping[str, int] = field(repr=False, default_factory=dict)
    _number: Mapping[str | tuple[str, str], int] = field(repr=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def totals(self, own: Floats) -> Floats:
        """Return the sum over each node and all nodes below it."""
        if len(self.charge_levels) <= DEEP:
            found = own.copy()
            for level in reversed(self.charge_levels):
                found += np.bincount(self.charged[level], weights=found[level], minlength=len(found))
            return found
        # The same sums in the same order: an array of all nodes for each level costs the square of a chain.
        sums, above = own.tolist(), self.charged.tolist()
        below = [0.0] * len(sums)
        for level in reversed(self.charge_levels):
            for at in level.tolist():
                sums[at] += below[at]
                below[above[at]] += sums[at]
        sums[0] += below[0]
        return np.array(sums)

    def node(self, user: str | None, account: str | None) -> int | None:
        """Return the node to which jobs of this user and account are charged; None if not in the tree.

        A job without an account is charged to the default account of its user, or to its only one; a job
        without a user to the account itself.
        """
        if user is None:
            return None if account is None else self._number.get(account)
        if account is not None:
            return self._number.get((account, user))
        if user in self._default:
            return self._default[user]
        mine = self._of_user.get(user, ())
        return mine[0] if len(mine) == 1 else None

    def accounts_of(self, user: str) -> list[str]:
        """Return the accounts of a user."""
        return [self.names[node][0] for node in self._of_user.get(user, ())]


def tree_of(rows: Iterable[AccountRow], where: str = "accounts") -> AccountTree:
    """Return the tree of some rows; accounts without a row of their own are children of the root.

    Raises
    ------
    ConfigError
        For an account or a user that occurs twice, an account that is its own ancestor, or a parent that
        does not exist; with the place of the row.
    """
    accounts, users = _apart(rows, where)
    # the root is the account ``root``, or the only one without a parent if all others have one
    tops = [name for name, row in accounts.items() if row.parent is None]
    root = ROOT
    if ROOT not in accounts and len(tops) == 1 and any(row.parent == tops[0] for row in accounts.values()):
        root = tops[0]
    else:
        accounts = {ROOT: AccountRow(ROOT), **accounts}
    _check_parents(accounts, root, where)
    children: dict[str, list[str]] = defaultdict(list)
    for name, row in accounts.items():
        if name != root:
            children[row.parent or root].append(name)
    order = [root]
    for name in order:  # grows while it is read
        order += children[name]
    names: list[str | tuple[str, str]] = [*order]
    below: dict[str, list[AccountRow]] = defaultdict(list)
    for row in users.values():
        below[row.account].append(row)
    listed = [accounts[name] for name in order]
    for name in order:
        for row in below[name]:
            names.append((name, str(row.user)))
            listed.append(row)
    number = {name: at for at, name in enumerate(names)}
    nodes: dict[str, tuple[int, ...]] = {}
    default: dict[str, int] = {}
    for at, row in enumerate(listed):
        if row.user is not None:
            nodes[row.user] = (*nodes.get(row.user, ()), at)
            if row.default:
                default.setdefault(row.user, at)
    charged = [number[row.account if row.user is not None else row.parent or root] for row in listed]
    charged[0] = 0
    parents = [0] * len(listed)
    for at in range(1, len(listed)):  # what is above a node has a lower number
        above = charged[at]
        parents[at] = parents[above] if above and _is_skipped(listed[above]) else above
    return AccountTree(
        tuple(names),
        np.array(parents, dtype=np.int64),
        np.array(charged, dtype=np.int64),
        np.array([float("nan") if row.shares == PARENT else row.shares for row in listed], dtype=np.float64),
        _own_usage(listed, charged),
        np.array([row.user is not None for row in listed], dtype=np.bool_),
        np.array(
            [float("nan") if row.priority is None else row.priority for row in listed], dtype=np.float64
        ),
        _levels(parents, [at for at, row in enumerate(listed) if at and not _is_skipped(row)]),
        _levels(charged, list(range(1, len(listed)))),
        nodes,
        default,
        number,
    )


def _apart(
    rows: Iterable[AccountRow], where: str
) -> tuple[dict[str, AccountRow], dict[tuple[str, str], AccountRow]]:
    """Return the accounts and the users of the rows; the root is always an account."""
    accounts: dict[str, AccountRow] = {}
    users: dict[tuple[str, str], AccountRow] = {}
    for row in rows:
        key = (row.account, row.user)
        known = users.get(key) if row.user is not None else accounts.get(row.account)  # type: ignore[arg-type]
        if known is not None:
            thing = f"user {row.user!r} of account" if row.user is not None else "account"
            text = f"the {thing} {row.account!r} occurs twice, first at {known.where or where}"
            raise ConfigError(text, where=row.where or where, expected="one row for each")
        if row.user is None:
            accounts[row.account] = row
        else:
            users[row.account, row.user] = row
    for row in users.values():
        accounts.setdefault(row.account, AccountRow(row.account, where=row.where))
    return accounts, users


def _check_parents(accounts: Mapping[str, AccountRow], root: str, where: str) -> None:
    for name, row in accounts.items():
        if row.parent is not None and row.parent not in accounts:
            hint = did_you_mean(row.parent, accounts)
            text = f"the parent {row.parent!r} of account {name!r} is not an account{hint}"
            raise ConfigError(text, where=row.where or where, expected="the name of another account")
    above = {
        name: [row.parent or root] if name != root or row.parent else [] for name, row in accounts.items()
    }
    cycle = find_cycle(above)
    if cycle:
        text = f"account {cycle[0]!r} is its own ancestor: {' → '.join(map(str, cycle))}"
        raise ConfigError(
            text, where=accounts[str(cycle[0])].where or where, expected="accounts up to the root"
        )


def _is_skipped(row: AccountRow) -> bool:
    """Whether an account is left out of the comparison, since its children compete above it."""
    return row.user is None and row.shares == PARENT


def _own_usage(rows: Sequence[AccountRow], charged: Sequence[int]) -> Floats:
    """Return the usage of each node without that of the nodes below; given usage of accounts has both."""
    given = np.array([row.usage for row in rows], dtype=np.float64)
    own = given.copy()
    for at in range(len(rows) - 1, 0, -1):
        if rows[at].user is None and own[at] < 0:  # less is given than the nodes below used
            given[at], own[at] = given[at] - own[at], 0.0
        own[charged[at]] -= given[at]
    # The rest of a difference of sums is not usage.
    return np.where(own > 1e-9 * np.maximum(given, 1.0), own, 0.0)


def _levels(parents: Sequence[int], nodes: Sequence[int]) -> tuple[Integers, ...]:
    depth = [0] * len(parents)
    found: dict[int, list[int]] = defaultdict(list)
    # Users come after all accounts, and an account after its parent, so a parent's depth is known.
    for at in nodes:
        depth[at] = depth[parents[at]] + 1
        found[depth[at]].append(at)
    return tuple(np.array(found[level], dtype=np.int64) for level in sorted(found))


# -- usage --------------------------------------------------------------------------------------------


class UsageLedger:
    """The decayed usage of the nodes of a tree, exact at any time.

    Usage is units × seconds; a second that is `half_life` old counts half. A job that runs with the rate r
    since s has used r (g(t) - g(s)) 2^(-t/h) at t, where g(t) = h/ln 2 (2^(t/h) - 1); without decay g(t) = t.
    So three sums per node are enough: of finished jobs, of the rates of running jobs, and of their r g(s).
    All are magnified by 2^(t/h), which does not change a comparison between nodes.

    Charges wait in a list until usage is asked for at their time or later. So usage as of the beginning of a
    period is known after charges within the period.

    Parameters
    ----------
    usage : usage of each node at second 0.
    half_life : seconds, inf without decay.
    reset : usage is set to 0 at each multiple of these seconds; inf: never.
    at_end : whether a job is charged when it ends, and not while it runs.
    """

    def __init__(self, usage: Floats, half_life: float, *, reset: float = inf, at_end: bool = False) -> None:
        self.half_life = half_life
        self.reset = reset
        self.at_end = at_end
        self._scale = half_life / log(2) if half_life < inf else 0.0
        self._origin = 0.0
        self._turn = 0
        self._waiting: list[tuple[float, int, float, float | None]] = []
        """Charges that are not in the sums yet: time, node, rate, and the begin of a job that ends."""
        self._usage: Any = view(np.zeros(len(usage)))
        self._set_sums(np.array(usage, dtype=np.float64), np.zeros(len(usage)), np.zeros(len(usage)))
        self._due = self._next_change()

    def begin(self, node: int, rate: float, now: float) -> None:
        """Charge a node for a job that starts now."""
        if not self.at_end:
            self._waiting.append((now, node, rate, None))

    def end(self, node: int, rate: float, begin: float, now: float) -> None:
        """Stop charging a node for a job that began at `begin` and ends now."""
        self._waiting.append((now, node, rate, begin))

    def magnified(self, time: float) -> Any:
        """Return the usage of each node times a factor that is the same for all; until the next call.

        Charges at `time` are included. No later time may have been asked for.
        """
        self._take(time)
        grown, usage, rate, known = self._grown(time), self._usage, self._rate, self._known
        for node in range(len(usage)):  # the rest of a difference of sums is not usage
            usage[node] = max(rate[node] * grown + known[node], 0.0)
        return usage

    def usage(self, time: float) -> Floats:
        """Return the usage of each node."""
        found = np.array(self.magnified(time))
        return found * exp2((self._origin - time) / self.half_life) if self._scale else found

    def _take(self, time: float) -> None:
        """Take charges into the sums up to this time."""
        waiting = self._waiting
        if waiting and waiting[0][0] <= time:
            taken = len(waiting)
            for at, charge in enumerate(waiting):
                if charge[0] > time:
                    taken = at
                    break
                now, node, rate, begin = charge
                self._charge(now, node, rate, begin)
            del waiting[:taken]
        if time >= self._due:
            self._advance(time)

    def _charge(self, now: float, node: int, rate: float, begin: float | None) -> None:
        if now >= self._due:
            self._advance(now)
        done, begun = self._done, self._begun
        if begin is None:
            self._rate[node] += rate
            begun[node] += rate * self._grown(now)
        else:
            start = max(begin, self._turn * self.reset) if self._turn else begin
            if self.at_end:
                magnified = exp2((now - self._origin) / self.half_life) if self._scale else 1.0
                done[node] += rate * (now - start) * magnified
            else:
                before = rate * self._grown(start)
                done[node] += rate * self._grown(now) - before
                self._rate[node] -= rate
                # The sum of no rates is 0, since rates are whole numbers, and no rounding stays behind.
                begun[node] = begun[node] - before if self._rate[node] else 0.0
        self._known[node] = done[node] - begun[node]

    def _grown(self, time: float) -> float:
        """Return g(t) from the present origin, which may lie after `time`."""
        since = time - self._origin
        return self._scale * math.expm1(since / self._scale) if self._scale else since

    def _next_change(self) -> float:
        """Return a time before which `_advance` need not be called."""
        overflow = self._origin + 0.99 * MOST * self.half_life if self._scale else inf
        return min((self._turn + 1) * self.reset, overflow)

    def _advance(self, now: float) -> None:
        """Reset usage whose time has come, and move the origin before the sums overflow."""
        if now >= (self._turn + 1) * self.reset:
            self._turn = floor(now / self.reset)
            grown = self._grown(self._turn * self.reset)
            rates = np.asarray(self._rate)
            self._set_sums(np.zeros(len(rates)), rates, rates * grown)
        if self._scale and now - self._origin > MOST * self.half_life:
            down = exp2((self._origin - now) / self.half_life)
            rates = np.asarray(self._rate)
            running = self._scale * rates
            begun = (np.asarray(self._begun) + running) * down - running
            self._set_sums(np.asarray(self._done) * down, rates, begun)
            self._origin = now
        self._due = self._next_change()

    def _set_sums(self, done: Floats, rates: Floats, begun: Floats) -> None:
        self._done: Any = view(done)
        self._rate: Any = view(rates)
        self._begun: Any = view(begun)
        self._known: Any = view(done - begun)

    def state(self) -> dict[str, Any]:
        """Return all that changes, as plain values."""
        sums = [list(self._done), list(self._rate), list(self._begun)]
        waiting = [list(charge) for charge in self._waiting]
        return {"origin": self._origin, "turn": self._turn, "sums": sums, "waiting": waiting}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal ledger."""
        self._origin, self._turn = state["origin"], state["turn"]
        self._set_sums(*(np.array(row, dtype=np.float64) for row in state["sums"]))
        self._due = self._next_change()
        self._waiting = [tuple(charge) for charge in state["waiting"]]


# -- from usage to factors ----------------------------------------------------------------------------

# The rules compare usage over shares, the least first, which is the order of shares over usage. Values that
# agree in 30 bits, or nine digits, are equal: usage is a sum whose last bits depend on the order of its
# terms.
_DROPPED = 22
"""The bits of a level fair share that do not count: it has 52 behind its first."""
_HALF = 1 << (_DROPPED - 1)
_RANK = 44
"""The bits below the rank of the entry above in the key of an entry."""


class FairShareRule:
    """Turns the usage of a tree into factors."""

    def factors(self, own: Any) -> Any:
        """Return the factors of users, from 0 to 1, by their nodes, for this usage; until the next call.

        own : the usage of each node without that of the nodes below, in any unit.
        """
        raise NotImplementedError


class RankedTree(FairShareRule):
    """Fair tree, and the weighted tree unless users and accounts tie (`ties_across`).

    Fair tree (Slurm, `fair_tree.shtml`): siblings are compared by their level fair share, their part of the
    shares over their part of the usage; a walk in that order ranks all users, and the factor is the rank over
    the number of users. Siblings with equal values tie: users share a rank, accounts merge their children,
    and the highest user of an account shares the rank of a user who ties with the account. The weighted tree
    of flux-accounting (`fair-share.rst`) is the same walk, in which a user and an account do not tie.

    The walk goes down the tree a depth at a time. A user beside accounts goes down with them, so that the
    last depth has all users. Siblings are sorted by insertion from their order at the last call, which
    differs little.
    """

    def __init__(self, tree: AccountTree, *, ties_across: bool = True) -> None:
        self._across = ties_across
        self._parents, self._charged = view(tree.parents), view(tree.charged)
        norm = _part_of_siblings(tree)
        inherits = np.isnan(tree.shares)
        # A share of 0 comes last, whatever the usage; who has the shares of the parent comes first.
        by_share = 1.0 / np.where(norm > 0, norm, 1.0)
        by_share[inherits] = 0.0
        by_share[(norm == 0) & ~inherits] = inf
        self._by_share: Any = view(by_share)
        self._sums: Any = view(np.zeros(len(tree)))
        level = np.zeros(len(tree))
        self._level: Any = view(level)
        # The bits of positive floats are ordered as the floats are. No method both writes `_level` and reads
        # `_bits`: compiled, it might read first.
        self._bits: Any = view(level.view(np.int64))
        self._factors: Any = view(np.zeros(len(tree)))
        users = np.flatnonzero(tree.is_user)
        self._of_rank: Any = view(1.0 - np.arange(len(users) + 1) / max(1, len(users)))
        depths = [(np.zeros(1, dtype=np.int64), users[:0]), *_distinct(_paths(tree, users))]
        begins = np.cumsum([0, *(len(nodes) for nodes, _ in depths)])
        self._begins = view(begins)
        self._nodes = view(np.concatenate([nodes for nodes, _ in depths]))
        """The nodes of each depth, from the root on: an entry is a node at a depth."""
        above = np.concatenate([users[:0], *(depths[at][1] + begins[at - 1] for at in range(1, len(depths)))])
        self._above = view(np.concatenate([np.zeros(1, dtype=np.int64), above]))
        """The entry above each."""
        entries = len(self._nodes)
        self._below = view(np.bincount(above, minlength=entries))
        """The number of entries below each."""
        self._is_account = view((~tree.is_user[np.asarray(self._nodes)]).astype(np.int64))
        self._order = view(np.arange(entries))
        """The entries of each depth in the order of the walk, and so are the keys."""
        self._keys, self._before, self._first, self._ranks, self._tied = (
            view(np.zeros(entries, dtype=np.int64)) for _ in range(5)
        )

    def factors(self, own: Any) -> Any:
        """Return rank / number of users."""
        self._compare(own)
        for depth in range(1, len(self._begins) - 1):
            self._sort(self._begins[depth - 1], self._begins[depth], self._begins[depth + 1])
            self._rank(self._begins[depth], self._begins[depth + 1])
        return self._factors

    def _compare(self, own: Any) -> None:
        """Find the level fair share of each node, upside down: of siblings, the least goes first.

        It is usage over shares. Usage is that of a node and all nodes below it, as a part of the usage of the
        node above.
        """
        sums, level = self._sums, self._level
        parents, charged, by_share, last = self._parents, self._charged, self._by_share, inf
        sums[:] = own
        up = -1
        for node in range(len(sums) - 1, 0, -1):  # a node follows the one above it, and mostly a sibling
            if charged[node] != up:
                up = charged[node]
                total = sums[up]
            total += sums[node]
            sums[up] = total
        for node in range(len(sums)):
            above = sums[parents[node]]
            if by_share[node] == last:
                level[node] = last
            elif above > 0:
                level[node] = sums[node] / above * by_share[node]
            else:
                level[node] = 0.0

    def _sort(self, above: int, begin: int, end: int) -> None:
        """Sort a depth, from `begin` to `end`, by the ranks of the depth above, which begins at `above`."""
        order, keys, before, first = self._order, self._keys, self._before, self._first
        entry_above, below, nodes, bits = self._above, self._below, self._nodes, self._bits
        is_account, ranks = self._is_account, self._ranks
        at, up, rank = begin, -1, 0
        for place in range(above, begin):
            entry = order[place]
            first[entry] = at
            at += below[entry]
        for place in range(begin, end):
            entry = order[place]
            if entry_above[entry] != up:  # mostly it is a sibling
                up = entry_above[entry]
                at, rank = first[up], ranks[up] << _RANK
            before[at] = entry
            level = (bits[nodes[entry]] + _HALF) >> _DROPPED
            keys[at] = rank + (level << 1) + is_account[entry]
            at += 1
            first[up] = at
        for place in range(begin, end):
            entry, key, at = before[place], keys[place], place
            while at > begin and keys[at - 1] > key:
                keys[at], order[at] = keys[at - 1], order[at - 1]
                at -= 1
            keys[at], order[at] = key, entry

    def _rank(self, begin: int, end: int) -> None:
        """Rank a sorted depth by place; equal keys share a rank, and a tie lasts down to the users."""
        order, keys, ranks, tied, above = self._order, self._keys, self._ranks, self._tied, self._above
        nodes, of_rank, found = self._nodes, self._of_rank, self._factors
        has_users = end == len(order)
        before, rank, factor, ties = -1, 0, 0.0, False
        for place in range(begin, end):
            entry, key = order[place], keys[place]
            if key != before:
                if key >> _RANK != before >> _RANK:  # the first below an account
                    ties = tied[above[entry]] != 0
                else:  # a user (even) and the account after it (odd) differ by one if their values are equal
                    ties = self._across and key - before == 1 and before % 2 == 0
                if not (ties and has_users):
                    rank = place - begin
                    factor = of_rank[rank]  # no depth has more entries than users
                before = key
            if has_users:
                found[nodes[entry]] = factor
            else:
                ranks[entry], tied[entry] = rank, ties


class ClassicFairShare(FairShareRule):
    """Slurm's factor before fair tree (`classic_fair_share.shtml`).

    It is 2^(-UE / S / dampening), UE the effective usage, S the norm shares.
    """

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

    def factors(self, own: Any) -> Any:
        """Return the factors of all nodes."""
        tree = self._tree
        totals = tree.totals(np.asarray(own))
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
            return view(np.where(self._shares > 0, 2.0**-exponents, 0.0))


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
        way, node = [user], user
        while tree.parents[node]:
            node = int(tree.parents[node])
            way.append(node)
        ways.append(way)
    deepest = max(map(len, ways), default=1)
    rows = [[*reversed(way), *way[:1] * (deepest - len(way))] for way in ways]
    return np.array(rows, dtype=np.int64).T.reshape(deepest, len(ways))


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


# -- the order fairshare ------------------------------------------------------------------------------


class FairShare:
    """The job order ``fairshare``; it remembers usage, so every queue has an order of its own.

    When a job ends, its size × seconds are charged to its user and to its bank, and a charge decays with a
    half-life. The key of a waiting job is the share of its bank in all usage plus the share of its user; the
    smallest goes first. All charges decay by the same factor and only ratios matter. So the old charges stay
    as they are, and a new charge is multiplied by the inverse of that factor.
    """

    name = "fairshare"
    static = False

    def __init__(self, half_life: float = WEEK) -> None:
        if not half_life > 0:
            text = f"a half-life of {half_life} s"
            raise ConfigError(text, where="order fairshare", expected="a positive number of seconds")
        self.half_life = half_life
        self._origin = 0.0
        self._users = np.zeros(0)
        self._banks = np.zeros(0)

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs by (share used, priority, submit time, workload order)."""
        return by_keys(table, jobs, self.keys(table, jobs, now))

    def charge(self, table: JobTable, job: int, seconds: float, now: float) -> None:
        """Charge a job that ended at `now` after a run of `seconds`."""
        self._grow(table)
        halvings = (now - self._origin) / self.half_life
        if halvings > MOST:
            self._users *= 0.5**halvings
            self._banks *= 0.5**halvings
            self._origin, halvings = now, 0.0
        amount = float(table.sizes[job]) * seconds * 2.0**halvings
        self._users[table.users[job]] += amount
        self._banks[table.banks[job]] += amount

    def keys(self, table: JobTable, jobs: Integers, now: float) -> Floats:  # noqa: ARG002
        """Return the share of each job's bank plus that of its user."""
        self._grow(table)
        keys: Floats = _shares(self._banks)[table.banks[jobs]] + _shares(self._users)[table.users[jobs]]
        return keys

    def _grow(self, table: JobTable) -> None:
        """Make an account for every user and bank of the table, the first time."""
        if not len(self._users) and len(table):
            self._users, self._banks = map(np.zeros, table.accounts)

    def enlarge(self, table: JobTable) -> None:
        """Make accounts for the users and banks that a growing table got since."""
        if len(self._users):
            users, banks = table.accounts
            self._users, self._banks = _longer(self._users, users), _longer(self._banks, banks)


def _longer(used: Floats, length: int) -> Floats:
    return used if length <= len(used) else np.concatenate([used, np.zeros(length - len(used))])


def _shares(used: Floats) -> Floats:
    total = used.sum()
    shares: Floats = used / total if total else used
    return shares
