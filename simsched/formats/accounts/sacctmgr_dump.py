"""The file of ``sacctmgr dump CLUSTER``: the tree of accounts and users of a Slurm cluster.

Each line names one thing and its options, after sacctmgr(1), "FLAT FILE DUMP AND LOAD"::

    Cluster - 'tux':Fairshare=1:QOS='normal'
    Parent - 'root'
    Account - 'physics':Description='physics':Organization='science':Fairshare=40
    Parent - 'physics'
    User - 'adam':DefaultAccount='physics':Fairshare=10

Accounts and users belong to the last ``Parent`` before them.  Its limits are not read here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from simsched.errors import FormatError, SimschedError
from simsched.formats.accounts.account_rows import ROOT, AccountRow, finite, shares_of
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = re.compile(
    r"(Cluster|ClusterName|QOS|Parent|Account|User)\s*-\s*(?:'([^']*)'|\"([^\"]*)\"|([^:]+?))\s*(?::(.*))?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\s*([A-Za-z]+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^:]*))\s*(?::|$)")
_FORM = "Cluster, Parent, Account or User - 'name':Option=value"
_FIRST = re.compile(r"(?im)^(?:Cluster|ClusterName|QOS|Parent|Account)\s*-\s*['\"]?\w")


def is_dump(text: str) -> bool:
    """Whether a text begins like the file of ``sacctmgr dump``."""
    head = "\n".join(line for line in text[:4096].splitlines() if line.strip() and line[:1] != "#")
    return _FIRST.match(head) is not None


def read_dump(text: str, where: str) -> Iterator[AccountRow]:
    """Yield the accounts and users.

    Raises
    ------
    FormatError, ConfigError
        For a line of another form, or shares or a priority that are not numbers; with the line.
    """
    cluster, parent = "", ROOT
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        place = f"{where}:{number}"
        found = _LINE.fullmatch(bare)
        if found is None:
            raise FormatError(f"{clip(bare)!r} is not a line of sacctmgr dump", where=place, expected=_FORM)
        kind, name = found[1].lower(), next(filter(None, found.groups()[1:4]), "")
        options = _options(found[5] or "", place)
        if kind == "parent":
            parent = name
        elif kind in ("cluster", "clustername"):
            cluster = name
        elif kind in ("account", "user"):
            try:
                yield replace(_row(kind, name, parent, options, place), cluster=cluster)
            except SimschedError as error:
                raise error.at(place) from None


def _row(kind: str, name: str, parent: str, options: dict[str, str], place: str) -> AccountRow:
    shares = shares_of(options.get("fairshare", options.get("shares", "1")), "Fairshare")
    priority = finite(options["priority"], "Priority") if "priority" in options else None
    if kind == "account":
        return AccountRow(name, parent, None, shares, priority=priority, where=place)
    default = options.get("defaultaccount") == parent
    return AccountRow(parent, None, name, shares, default=default, priority=priority, where=place)


def _options(text: str, place: str) -> dict[str, str]:
    """Return the options of a line, by their names in lower case."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        option = _OPTION.match(text, at)
        if option is None:
            raise FormatError(f"{clip(text[at:])!r} is not an option", where=place, expected=_FORM)
        found[option[1].lower()] = next(filter(None, option.groups()[1:]), "").strip()
        at = option.end()
    return found
