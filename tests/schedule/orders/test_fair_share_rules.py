"""Fair share equal to the worked examples of Slurm and flux-accounting."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError
from simsched.formats.machines.accounts import AccountRow
from simsched.schedule.orders import fair_share
from simsched.schedule.orders.fair_share import fair_share_rule, tree_of

#: account → (shares, usage, user → (shares, usage)), all below the root
NO_TIE = {
    "account1": (1000, 121, {"1.1": (10000, 100), "1.2": (1000, 11), "1.3": (100000, 10)}),
    "account2": (100, 11, {"2.1": (100000, 8), "2.2": (10000, 3)}),
    "account3": (10, 1, {"3.1": (100, 0), "3.2": (10, 1)}),
}
TIE = {
    "account1": (1000, 120, {"1.1": (10000, 100), "1.2": (1000, 10), "1.3": (100000, 10)}),
    "account2": (100, 12, {"2.1": (10000, 10), "2.2": (1000, 1), "2.3": (100000, 1)}),
    "account3": (10, 1, {"3.1": (100, 0), "3.2": (10, 1)}),
}
TIE_ALL = {
    "account1": TIE["account1"],
    "account2": TIE["account2"],
    "account3": (10000, 1200, {"3.1": (10000, 1000), "3.2": (1000, 100), "3.3": (100000, 100)}),
}


def rows(accounts, of_root=()):
    found = [AccountRow("root", usage=sum(usage for _, usage, _ in accounts.values()))]
    for account, (shares, usage, users) in accounts.items():
        found.append(AccountRow(account, "root", None, shares, usage))
        found += [AccountRow(account, None, user, *values) for user, values in users.items()]
    return [*found, *of_root]


def factors(method, given, dampening=1.0):
    """User → factor, in six digits."""
    tree = tree_of(given)
    users = np.flatnonzero(tree.is_user)
    found = fair_share_rule(method, tree, dampening).factors(tree.usage)
    found = [found[user] for user in users.tolist()]
    return {tree.names[at][1]: round(float(x), 6) for at, x in zip(users, found, strict=True)}


@pytest.mark.parametrize("method", ["weighted-tree", "fair-tree"])
def test_the_worked_example_of_flux_accounting(method):
    """Its document `fair-share.rst`: the last table."""
    assert factors(method, rows(NO_TIE)) == {
        "1.1": 0.285714, "1.2": 0.142857, "1.3": 0.428571, "2.1": 0.714286, "2.2": 0.571429, "3.1": 1.0,
        "3.2": 0.857143,
    }  # fmt: skip


@pytest.mark.parametrize("method", ["weighted-tree", "fair-tree"])
def test_ties_of_accounts_and_users(method):
    """Flux-accounting's tests of print-hierarchy: `small_tie.txt` and `small_tie_all.txt`."""
    assert factors(method, rows(TIE)) == {
        "1.1": 0.5, "1.2": 0.5, "1.3": 0.75, "2.1": 0.5, "2.2": 0.5, "2.3": 0.75, "3.1": 1.0, "3.2": 0.875,
    }  # fmt: skip
    first, second, third = 1.0, 0.666667, 0.666667
    assert list(factors(method, rows(TIE_ALL)).values()) == [third, second, first] * 3


def test_a_user_and_an_account_tie_in_slurm_only():
    """Flux-accounting, `small_tie_diff_type`; the last rule on ties of Slurm, `fair_tree.html`."""
    given = rows(
        {"account1": TIE["account1"], "account3": TIE["account3"]},
        [AccountRow("root", None, "0.1", 100, 12)],
    )
    given[0] = AccountRow("root", usage=133)
    flux, slurm = factors("weighted-tree", given), factors("fair-tree", given)
    order = sorted(flux, key=lambda user: -flux[user])
    assert order[:4] == ["3.1", "3.2", "0.1", "1.3"]
    assert (flux["0.1"], flux["1.3"]) == (0.666667, 0.5)
    assert (slurm["0.1"], slurm["1.3"]) == (0.666667, 0.666667)


def test_shares_of_zero_come_last():
    """Flux-accounting's test tree `small_zero_shares`."""
    none = {**TIE, "account2": (100, 12, {"2.1": (0, 10), "2.2": (0, 1), "2.3": (100000, 1)})}
    found = factors("weighted-tree", rows(none))
    assert sorted(found, key=lambda user: -found[user])[:4] == ["3.1", "3.2", "2.3", "1.3"]
    assert found["2.1"] == found["2.2"] == min(found.values())


def test_the_worked_example_of_the_classic_factor():
    """Slurm's `classic_fair_share.html`, section Example: effective usage and the factors of five users."""
    accounts = [
        ("A", "root", 40),
        ("D", "root", 60),
        ("B", "A", 30),
        ("C", "A", 10),
        ("E", "D", 25),
        ("F", "D", 35),
    ]
    users = [("B", "1", 20), ("C", "2", 25), ("C", "3", 0), ("E", "4", 25), ("F", "5", 0)]
    given = [AccountRow(name, parent, None, shares) for name, parent, shares in accounts]
    given += [AccountRow(account, None, user, 1, usage) for account, user, usage in users]
    # of the machine's usage, the users of the example have 70 of 100
    given.append(AccountRow("root", usage=100))
    found = factors("classic", given)
    expected = {"1": 0.408479, "2": 0.022097, "3": 0.125, "4": 0.5, "5": 0.749154}
    assert found == pytest.approx(expected, abs=2e-6)
    assert factors("classic", given, dampening=2)["4"] == pytest.approx(0.5**0.5, abs=1e-6)


def test_nobody_used_anything():
    idle = {name: (shares, 0, dict.fromkeys(users, (1, 0))) for name, (shares, _, users) in TIE.items()}
    assert set(factors("fair-tree", rows(idle)).values()) == {1.0}
    assert set(factors("classic", rows(idle)).values()) == {1.0}


def test_shares_of_the_parent():
    """FairShare=parent: a user is first in its account; the children of an account compete above it."""
    given = [
        AccountRow("A", None, None, "parent"),
        AccountRow("A", None, "a1", 1, 10),
        AccountRow("B", None, None, 1),
        AccountRow("B", None, "b1", "parent", 5),
        AccountRow("B", None, "b2", 1, 1),
    ]
    assert factors("fair-tree", given) == {"b1": 1.0, "b2": 0.666667, "a1": 0.333333}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [AccountRow("a", "b", where="f:1"), AccountRow("b", "a", where="f:2")],
            "f:1: account 'a' is its own ancestor",
        ),
        ([AccountRow("a", "a", where="f:1")], "f:1: account 'a' is its own ancestor: a → a"),
        (
            [AccountRow("a", "phisics", where="f:1"), AccountRow("physics")],
            "f:1: the parent 'phisics' of account 'a' is",
        ),
        (
            [AccountRow("a", where="f:1"), AccountRow("a", where="f:2")],
            "f:2: the account 'a' occurs twice, first at f:1",
        ),
    ],
)
def test_what_is_no_tree(given, message):
    with pytest.raises(ConfigError) as error:
        tree_of(given)
    assert str(error.value).startswith(message)


def test_many_trees_against_a_walk_by_recursion():
    """Trees of up to four levels with many ties, against the recursion of the document.

    In every other one shares may be 0, also those of all children of an account: their level FS is 0.
    """
    from tests.reference import priorities as naive

    for seed in range(60):
        rng = np.random.default_rng(seed)
        accounts = {"root": None}
        for number in range(int(rng.integers(1, 7))):
            accounts[f"a{number}"] = (str(rng.choice(list(accounts))), int(rng.integers(seed % 2, 3)))
        del accounts["root"]
        users, used = {}, {}
        for number in range(int(rng.integers(1, 12))):
            pair = (str(rng.choice(["root", *accounts])), f"u{number}")
            users[pair], used[pair] = int(rng.integers(seed % 2, 3)), float(rng.integers(0, 3))
        rules = naive.Rules(accounts=accounts, users=users)
        given = [AccountRow(name, parent, None, shares) for name, (parent, shares) in accounts.items()]
        given += [AccountRow(pair[0], None, pair[1], users[pair], used[pair]) for pair in users]
        for method, reference in (("fair-tree", naive.fair_tree), ("classic", naive.classic)):
            expected = {pair[1]: x for pair, x in reference(rules, used).items()}
            assert factors(method, given) == pytest.approx(expected, abs=1e-6), (seed, method)


def test_a_long_chain_of_accounts_is_summed_as_any_tree(monkeypatch):
    rng = np.random.default_rng(3)
    given = [
        AccountRow(f"a{at}", f"a{at - 1}" if at else "root", None, "parent" if at % 3 else 1)
        for at in range(300)
    ]
    given += [AccountRow(f"a{rng.integers(300)}", None, f"u{at}") for at in range(20)]
    tree = tree_of(given)
    own = rng.random(len(tree))
    found = tree.totals(own)
    monkeypatch.setattr(fair_share, "DEEP", 1000)
    assert found.tolist() == tree.totals(own).tolist()


def test_a_rule_that_ranked_other_usage_before_ranks_as_a_fresh_one():
    """The order of the last call is where the sort begins, and decides nothing."""
    rng = np.random.default_rng(7)
    given = [AccountRow(f"a{at}", f"a{at % 3}" if at > 2 else "root", None, at % 4) for at in range(9)]
    given += [AccountRow(f"a{at % 9}" if at % 5 else "root", None, f"u{at}", at % 3) for at in range(40)]
    tree = tree_of(given)
    users = np.flatnonzero(tree.is_user)
    for method in ("fair-tree", "weighted-tree"):
        rule = fair_share_rule(method, tree)
        for most in (1, 2, 1_000_000, 3, 1):
            own = rng.integers(0, most, len(tree)).astype(float)
            expected = np.array(fair_share_rule(method, tree).factors(own))[users]
            assert np.array(rule.factors(own))[users].tolist() == expected.tolist()
