"""`AccountTree`: accounts and their users as arrays, from the root down, for fair share.

A node is an account or one user in one account.  Node 0 is the root, and a node follows its parent.  An
account with the shares ``parent`` is left out of the comparison: its children compete with its siblings.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from simsched.cycles import find_cycle
from simsched.errors import ConfigError, did_you_mean
from simsched.formats.accounts import PARENT, ROOT, AccountRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]


DEEP = 64
"""More levels than the accounts of a site have."""


@dataclass(frozen=True, eq=False)
class AccountTree:
    """The nodes of a tree of accounts.

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
    root, accounts = _with_root(accounts)
    _check_parents(accounts, root, where)
    order = _from_the_root(accounts, root)
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
        *_users(names, listed),
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


def _with_root(accounts: dict[str, AccountRow]) -> tuple[str, dict[str, AccountRow]]:
    """Return the name of the root, and all accounts with a row for it.

    The root is the account ``root``, or the only one without a parent if all others have one.
    """
    tops = [name for name, row in accounts.items() if row.parent is None]
    if ROOT not in accounts and len(tops) == 1 and any(row.parent == tops[0] for row in accounts.values()):
        return tops[0], accounts
    return ROOT, {ROOT: AccountRow(ROOT), **accounts}


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


def _from_the_root(accounts: Mapping[str, AccountRow], root: str) -> list[str]:
    """Return the accounts so that each follows its parent, those of one parent in the order of the rows."""
    below: dict[str, list[str]] = defaultdict(list)
    for name, row in accounts.items():
        if name != root:
            below[row.parent or root].append(name)
    order = [root]
    for name in order:  # grows while it is read
        order += below[name]
    return order


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


def _users(
    names: Sequence[str | tuple[str, str]], rows: Sequence[AccountRow]
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Return user → its nodes, and user → the node of its default account."""
    nodes: dict[str, tuple[int, ...]] = {}
    default: dict[str, int] = {}
    for at, (_, row) in enumerate(zip(names, rows, strict=True)):
        if row.user is not None:
            nodes[row.user] = (*nodes.get(row.user, ()), at)
            if row.default:
                default.setdefault(row.user, at)
    return nodes, default
