"""`rule`: the table of the rules that find faults of the files of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.check.site_files import SiteFault, SiteFiles

    Look = Callable[[SiteFiles], Iterator[SiteFault]]

Severity = Literal["error", "warning", "note"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
NOTE: Severity = "note"
"""A remark and not a fault: a site with notes alone is sound."""


class SiteRule(NamedTuple):
    """One rule: how grave its findings are, its meaning as the manual has it, and where it is."""

    severity: Severity
    meaning: str
    look: Look


RULES: dict[str, SiteRule] = {}
"""Code → rule, in the order of the manual: those on nodes, on queues, and on storage."""


def rule(code: str, severity: Severity, meaning: str) -> Callable[[Look], Look]:
    """Return a decorator that adds a function to `RULES`."""

    def add(look: Look) -> Look:
        RULES[code] = SiteRule(severity, meaning, look)
        return look

    return add
