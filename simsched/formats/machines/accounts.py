"""Accounts (banks) and their users, with shares and usage, from the files of accounting databases.

A table has a header line and cells between commas, bars, tabs or, as Slurm prints for people, in
columns over dashes.  Its columns are recognised by name, so that these are all one format: ``accounts.csv``
(account, parent, user, shares, usage …), ``sshare -a`` (``-P``, ``-l`` …), ``sacctmgr show assoc -P``,
``flux account view-bank -t`` and the tables of ``flux account export-db``.  In the trees that sshare and
flux-accounting print, an account is indented by one blank more than its parent.

The file of ``sacctmgr dump CLUSTER`` has one thing and its options per line, after sacctmgr(1), "FLAT FILE
DUMP AND LOAD".  Accounts and users belong to the last ``Parent`` before them.  Its limits are not read here::

    Cluster - 'tux':Fairshare=1:QOS='normal'
    Parent - 'root'
    Account - 'physics':Description='physics':Organization='science':Fairshare=40
    Parent - 'physics'
    User - 'adam':DefaultAccount='physics':Fairshare=10
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from simsched.declare.kinds import HIDDEN, ValueKind
from simsched.declare.table import Declared, fields_of
from simsched.errors import ConfigError, FormatError, clip
from simsched.formats.machines.recognition import SACCTMGR_DUMP, machine_parts
from simsched.formats.text.documents import load_document, name_of, read_text
from simsched.formats.text.sniffing import outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


ROOT = "root"
PARENT = "parent"
"""The shares of an account or user that has the share of its parent (``FairShare=parent``)."""


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


def _name(value: Any, where: str) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool)  # as users of many logs are
    if is_number or (isinstance(value, str) and value):
        return str(value)
    raise ConfigError(f"{value!r} is not a name", where=where, expected="a text")


NAME = ValueKind(_name, {"type": ["string", "integer"]})
FINITE = ValueKind(finite, {"type": ["number", "string"]})


class AccountRow(Declared, frozen=True):
    """One account, or one user in one account.

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

    account: Annotated[str, NAME] = ""
    parent: Annotated[str | None, NAME] = None
    user: Annotated[str | None, NAME] = None
    shares: Annotated[float | str, ValueKind(shares_of, {"type": ["number", "string"]})] = 1.0
    usage: Annotated[float, ValueKind(amount_of, {"type": ["number", "string"]})] = 0.0
    default: bool = False
    priority: Annotated[float | None, FINITE] = None
    where: str = ""
    cluster: Annotated[str, HIDDEN] = ""
    partition: Annotated[str, HIDDEN] = ""

    def checked(self, where: str) -> AccountRow:
        """Return the row; ConfigError for one without an account."""
        if self.account:
            return self
        expected = "account = the name of an account"
        raise ConfigError("the row names no account", where=where, expected=expected)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, without values that are the usual ones but for the shares."""
        found = {"shares": self.shares, **super().to_dict()}
        return {key: found[key] for key in fields_of(AccountRow) if key in found}


def rows_of(entries: Sequence[Any], where: str) -> tuple[AccountRow, ...]:
    """Return the rows of plain data, each entry a table with the fields of `AccountRow` as its keys.

    Raises
    ------
    ConfigError
        For an entry that is not such a table.
    """
    return tuple(AccountRow.read(entry, f"{where}[{at}]") for at, entry in enumerate(entries))


def plain_rows(rows: Iterable[AccountRow]) -> list[dict[str, Any]]:
    """Return rows as the plain data that `rows_of` reads."""
    return [row.to_dict() for row in rows]


_LINE = re.compile(
    r"(Cluster|ClusterName|QOS|Parent|Account|User)\s*-\s*(?:'([^']*)'|\"([^\"]*)\"|([^:]+?))\s*(?::(.*))?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\s*([A-Za-z]\w*)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^:]*(?::\d+(?=:|$))*))\s*(?::|$)")
_FORM = "Cluster, Parent, Account or User - 'name':Option=value"


def dump_records(text: str, where: str) -> Iterator[tuple[str, dict[str, str], str, str]]:
    """Yield (kind, values, strange, place) of each line of a dump but those of parents.

    The values have the names of ``sacctmgr show`` in lower case; a cluster is the association of its root.
    A line of another form has no kind, and `strange` is the part of a line that is not understood.
    """
    cluster = parent = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        found, place = _LINE.fullmatch(bare), f"{where}:{number}"
        if found is None:
            yield "", {}, bare, place
            continue
        kind, name = found[1].lower().removesuffix("name"), _unquoted(found.groups()[1:4])
        values, rest, end = dict[str, str](), found[5] or "", 0
        for option in _OPTION.finditer(rest):
            end = option.end() if option.start() == end else end
            values[option[1].lower()] = _unquoted(option.groups()[1:]).strip()
        if kind == "parent":
            parent = name
        elif kind == "qos":
            yield kind, {**values, "name": name}, rest[end:], place
        else:
            cluster = name if kind == "cluster" else cluster
            own = {"cluster": {"account": ROOT, "user": ""}, "user": {"account": parent, "user": name}}
            of_account = {"account": name, "user": "", "parentname": parent}
            yield kind, {**values, **own.get(kind, of_account), "cluster": cluster}, rest[end:], place


def _unquoted(groups: Iterable[str | None]) -> str:
    return next(filter(None, groups), "")


def _dump_rows(text: str, where: str) -> Iterator[AccountRow]:
    for kind, values, strange, place in dump_records(text, where):
        if not kind or strange:
            what = "an option" if kind else "a line of sacctmgr dump"
            raise FormatError(f"{clip(strange)!r} is not {what}", where=place, expected=_FORM)
        if kind not in ("account", "user"):
            continue
        account, priority = values["account"] or ROOT, values.get("priority")
        yield _row(
            {**values, "account": account},
            values.get("parentname") or ROOT,
            place,
            shares_of(values.get("fairshare", values.get("shares", "1")), f"{place}: Fairshare"),
            default=kind == "user" and values.get("defaultaccount") == account,
            priority=None if priority is None else finite(priority, f"{place}: Priority"),
        )


def _row(
    names: Mapping[str, str], parent: str | None, where: str, shares: float | str, **more: Any
) -> AccountRow:
    """Return the row of an association with these names; a user has no parent but the account."""
    user = names.get("user") or None
    return AccountRow(
        names["account"],
        None if user else parent or None,
        user,
        shares,
        where=where,
        cluster=names.get("cluster", ""),
        partition=names.get("partition", ""),
        **more,
    )


KNOWN = (
    "accounts.csv with the columns account, parent, user, shares, usage; sshare; sacctmgr dump; "
    "sacctmgr show assoc -P; or an export of flux-accounting"
)
#: Column → names of it in lower case, without blanks and marks; the first that a table has counts.
NAMES: dict[str, tuple[str, ...]] = {
    "account": ("account", "bank"),
    "parent": ("parent", "parentbank", "parname", "parentname", "parentaccount"),
    "user": ("user", "username"),
    "shares": ("shares", "rawshares", "share"),
    "usage": ("usage", "rawusage", "jobusage"),
    "default": ("default", "defaultbank", "defacct"),
    "priority": ("priority",),
    "active": ("active",),
    "cluster": ("cluster",),
    "partition": ("partition",),
}
_MARKS = re.compile(r"[^a-z]")


def read_accounts(
    paths: str | Path | Sequence[str | Path], cluster: str = "", note: Callable[[str], None] | None = None
) -> tuple[AccountRow, ...]:
    """Return the rows of one file, or of several, such as the two tables of flux-accounting.

    Of the associations of several clusters of Slurm, those of `cluster` count, or without any those of the
    first; of several of one user in one account, that of no partition, or the first.  `note` hears of the
    others.

    Raises
    ------
    FormatError, ConfigError
        If a file is of no known format or a value in it is not valid; with the line.
    """
    listed = [paths] if isinstance(paths, str | Path) else paths
    found: list[AccountRow] = []
    for path in listed:
        found += accounts_of_text(read_text(path), name_of(path))
    clusters = dict.fromkeys(row.cluster.lower() for row in found if row.cluster)
    cluster = cluster.lower() if cluster.lower() in clusters else next(iter(clusters), "")
    others = {row.cluster for row in found if row.cluster.lower() not in ("", cluster)}
    if others and note:
        note(f"accounts of clusters other than {cluster}: {clip(', '.join(sorted(others)))}")
    found = [row for row in found if row.cluster not in others]
    chosen = {(row.account, row.user): row for row in reversed(found) if row.partition}
    chosen |= {(row.account, row.user): row for row in found if not row.partition}
    apart = [row for row in found if row.partition and chosen[row.account, row.user] is not row]
    if apart and note:
        names = ", ".join(dict.fromkeys(row.user or "" for row in apart))
        note(f"shares of associations with a partition: {clip(names)} ({len(apart):,})")
    return tuple(row for row in found if not row.partition or chosen[row.account, row.user] is row)


def accounts_of_text(text: str, where: str) -> tuple[AccountRow, ...]:
    """Return the rows of a text; errors as `read_accounts`."""
    if text.lstrip()[:1] in ("{", "["):
        return tuple(_of_document(load_document(text, where), where))
    if _is_dump(text):
        return tuple(_dump_rows(text, where))
    return tuple(_table_rows(text, where))


def _is_dump(text: str) -> bool:
    """Whether a text is the file of ``sacctmgr dump``, and nothing else."""
    return [*machine_parts(text)] == [SACCTMGR_DUMP]


def looks_like_accounts(text: str) -> bool:
    """Whether a text begins like one of the formats that name accounts (`accounts.csv` and others)."""
    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        return "shares_raw" in outline(text).get("associations", ("", ()))[1]
    if _is_dump(text):
        return True
    head, _ = next(table_lines(text[:4096], ""), ([], ""))
    return {"account", "shares"} <= _columns(head).keys()


# -- JSON -----------------------------------------------------------------------------------------


def _of_document(document: Any, where: str) -> Iterator[AccountRow]:
    """Yield the rows of a list of rows, or of ``flux account export-db --fairshare-emulate``."""
    if isinstance(document, list):
        yield from rows_of(document, where)
        return
    if isinstance(document.get("associations"), list):
        yield from _associations(document["associations"], where)
        return
    root = document.get("root")
    if not isinstance(root, dict) or "bank" not in root:
        raise FormatError("the format of the accounts is not recognised", where=where, expected=KNOWN)
    # An explicit stack: the depth of a document is not bounded by that of Python's.
    pending: list[tuple[Any, str | None, str]] = [(root, None, f"{where}: root")]
    while pending:
        node, parent, place = pending.pop()
        if not isinstance(node, dict) or not isinstance(node.get("username", node.get("bank")), str):
            expected = "bank or username, shares, usage"
            raise FormatError("this is not a bank or a user", where=place, expected=expected)
        shares = shares_of(node.get("shares", 1), f"{place}.shares")
        usage = amount_of(node.get("usage", 0), f"{place}.usage")
        if "username" in node:
            if parent is None:
                raise FormatError("the root is a user", where=place, expected="a bank")
            yield AccountRow(parent, None, node["username"], shares, usage, where=place)
            continue
        yield AccountRow(node["bank"], parent, None, shares, usage, where=place)
        children = node.get("children", [])
        if not isinstance(children, list):
            raise FormatError("children is not a list", where=place, expected="a list of banks and users")
        below = [(child, node["bank"], f"{place}.children[{at}]") for at, child in enumerate(children)]
        pending += reversed(below)


_OF_PARENT = 0x7FFFFFFF
"""The shares of a user who has those of the account (slurmdb.h, ``SLURMDB_FS_USE_PARENT``)."""


def association_names(item: Any) -> dict[str, str] | None:
    """Return the names in an association of ``sacctmgr show assoc --json``; None if it is not one."""
    keys = ("cluster", "account", "user", "partition", "parent_account")
    found = {key: item.get(key) or "" for key in keys} if isinstance(item, dict) else {}
    return found if found.get("account") and all(isinstance(name, str) for name in found.values()) else None


def _associations(items: Sequence[Any], where: str) -> Iterator[AccountRow]:
    for at, item in enumerate(items):
        place, names = f"{where}: associations[{at}]", association_names(item)
        if names is None:
            raise FormatError("this is not an association", where=place, expected="account, user, shares_raw")
        given = item.get("shares_raw", 1)
        number = given.get("number", 1) if isinstance(given, dict) else given
        shares = shares_of(PARENT if number == _OF_PARENT else number, f"{place}.shares_raw")
        default = bool(names["user"]) and item.get("is_default") is True
        yield _row(names, names["parent_account"], place, shares, default=default)


# -- tables ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class IndentedAccounts:
    """The accounts above the present line of a table in which depth is indentation."""

    above: list[tuple[int, str]] = field(default_factory=list)
    indented: bool = False

    def parent(self, cell: str, *, is_user: bool) -> str | None:
        """Return the account above that of the cell; None without one, or if nothing is indented."""
        depth, name = len(cell) - len(cell.lstrip(" ")), cell.strip()
        self.indented = self.indented or depth > 0
        if is_user:
            return None
        while self.above and self.above[-1][0] >= depth:
            self.above.pop()
        parent = self.above[-1][1] if self.above else None
        self.above.append((depth, name))
        return parent if self.indented else None


def _table_rows(text: str, where: str) -> Iterator[AccountRow]:
    rows = table_lines(text, where)
    head, place = next(rows, (None, where))
    if head is None:
        raise FormatError("the file has no accounts", where=where, expected=KNOWN)
    columns = _columns(head)
    if not {"account", "shares"} <= columns.keys():
        raise FormatError("the format of the accounts is not recognised", where=place, expected=KNOWN)
    tree = IndentedAccounts()
    for cells, place in rows:
        numbered = dict(enumerate(cells))
        raw = {name: numbered.get(columns.get(name, -1), "") for name in NAMES}
        values = {name: cell.strip() for name, cell in raw.items()}
        account, user = values["account"], values["user"]
        if not account:
            raise FormatError("the line names no account", where=place, expected="the name of an account")
        cut = next((name for name in (account, user) if name.endswith("+")), None)
        if cut is not None:
            text, expected = f"the name {cut!r} is cut short", "the output of sshare -P"
            raise FormatError(text, where=place, expected=expected)
        parent = values["parent"] or tree.parent(raw["account"], is_user=bool(user))
        if values["active"].lower() not in ("0", "false", "no"):
            yield _row(
                values,
                parent,
                place,
                shares_of(values["shares"] or 1, f"{place}: shares"),
                usage=amount_of(values["usage"] or 0, f"{place}: usage"),
                default=values["default"].lower() in ("1", "true", "yes") or values["default"] == account,
                priority=finite(values["priority"], f"{place}: priority") if values["priority"] else None,
            )


def table_lines(text: str, where: str, *, quotes: bool = True) -> Iterator[tuple[list[str], str]]:
    """Yield the cells and the place of each line of a table, those of the header first.

    Between the cells is a mark, or blanks: then the columns are over dashes.  With `quotes`, cells may be in
    quotation marks.

    Raises
    ------
    FormatError
        For a cell of more than 128 KB.
    """
    lines = [(at, line) for at, line in enumerate(text.splitlines(), 1) if line.strip() and line[:1] != "#"]
    mark = next((mark for mark in "|,\t;^~" if lines and mark in lines[0][1]), "")
    spans = []
    if not mark and lines[1:] and not lines[1][1].replace("-", "").strip():
        spans = [found.span() for found in re.finditer("-+", lines.pop(1)[1])]
    for at, line in lines:
        place, cells = f"{where}:{at}", [line[begin:end].rstrip() for begin, end in spans]
        if mark and quotes:
            try:
                cells = next(csv.reader([line], delimiter=mark))
            except csv.Error as error:
                raise FormatError(f"the line cannot be read: {error}", where=place) from None
        elif mark:
            cells = line.split(mark)
        yield cells, place


def _columns(names: Sequence[str]) -> dict[str, int]:
    """Return column → its place; ``FairShare`` of sshare is the factor, and not the shares."""
    words = [_MARKS.sub("", name.lower()) for name in names]
    given = {column: [word for word in known if word in words] for column, known in NAMES.items()}
    return {column: words.index(known[0]) for column, known in given.items() if known}
