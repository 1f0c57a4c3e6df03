"""`AccountRow`: one account, or one user of an account, with its shares and its usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = "root"
PARENT = "parent"
"""The shares of an account or user that has the share of its parent (``FairShare=parent``)."""
COLUMNS = ("account", "parent", "user", "shares", "usage", "default", "priority")


@dataclass(frozen=True, slots=True)
class AccountRow:
    """One account, or one user in one account.

    Attributes
    ----------
    account : the account; that of the user if there is a `user`.
    parent : the account above it, of a row without a user; None: the root.
    user : None for the account itself.
    shares : shares beside its siblings, 0 or more; `PARENT`: those of the parent count.
    usage : resources used so far, decayed up to second 0: units × seconds, such as core-seconds.
    default : whether jobs of the user that name no account are charged to this one.
    priority : the priority of an account or association, for the factor ``account``.
    where : the place of the row, for messages.
    cluster, partition : those of an association of Slurm; empty: any.
    """

    account: str
    parent: str | None = None
    user: str | None = None
    shares: float | str = 1.0
    usage: float = 0.0
    default: bool = False
    priority: float | None = None
    where: str = ""
    cluster: str = ""
    partition: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, without values that are the usual ones."""
        usual = {"parent": None, "user": None, "usage": 0.0, "default": False, "priority": None}
        plain = {name: value for name, value in asdict(self).items() if name in COLUMNS}
        return {name: value for name, value in plain.items() if name not in usual or usual[name] != value}


def rows_of(entries: Sequence[Any], where: str) -> tuple[AccountRow, ...]:
    """Return the rows of plain data, each entry a table with `COLUMNS` as its keys.

    Raises
    ------
    ConfigError
        For an entry that is not such a table.
    """
    return tuple(_row(entry, f"{where}[{at}]") for at, entry in enumerate(entries))


def _row(entry: Any, where: str) -> AccountRow:
    if isinstance(entry, AccountRow):
        return entry
    if not isinstance(entry, Mapping):
        raise ConfigError(
            f"{entry!r} is not an account", where=where, expected="a table of account, shares …"
        )
    for key in entry:
        if key not in COLUMNS:
            hint = did_you_mean(str(key), COLUMNS)
            raise ConfigError(f"unknown key {key!r}{hint}", where=where, expected=", ".join(COLUMNS))
    texts = {key: _text(entry.get(key), f"{where}.{key}") for key in ("account", "parent", "user")}
    if texts["account"] is None:
        raise ConfigError(
            "the row names no account", where=where, expected="account = the name of an account"
        )
    default = entry.get("default", False)
    if not isinstance(default, bool):
        raise ConfigError(
            f"{default!r} is not a truth value", where=f"{where}.default", expected="true or false"
        )
    priority = entry.get("priority")
    return AccountRow(
        texts["account"],
        texts["parent"],
        texts["user"],
        shares_of(entry.get("shares", 1), f"{where}.shares"),
        amount_of(entry.get("usage", 0), f"{where}.usage"),
        default,
        None if priority is None else finite(priority, f"{where}.priority"),
        where,
    )


def _text(value: Any, where: str) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # users of many logs are numbers
    raise ConfigError(f"{value!r} is not a name", where=where, expected="a text")


def shares_of(value: Any, where: str) -> float | str:
    """Return shares: a number of 0 or more, or `PARENT`; ConfigError for anything else."""
    if isinstance(value, str) and value.strip().lower() == PARENT:
        return PARENT
    return amount_of(value, where, "a number of 0 or more, or parent")


def amount_of(value: Any, where: str, expected: str = "a number of 0 or more") -> float:
    """Return a finite number of 0 or more, from a number or its text; ConfigError for anything else."""
    number = finite(value, where, expected)
    if number < 0:
        raise ConfigError(f"{value!r} is negative", where=where, expected=expected)
    return number


def finite(value: Any, where: str, expected: str = "a number") -> float:
    """Return a finite number, from a number or its text; ConfigError for anything else."""
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number):
        raise ConfigError(f"{value!r} is not a finite number", where=where, expected=expected)
    return number


def plain_rows(rows: Iterable[AccountRow]) -> list[dict[str, Any]]:
    """Return rows as the plain data that `rows_of` reads."""
    return [row.to_dict() for row in rows]
