"""Limits of PBS on running and queued jobs: ``max_run``, ``max_queued``, ``max_run_res`` of queue or server.

``[u:PBS_GENERIC=5],[u:alice=10],[o:PBS_ALL=100]``: each user, one user, all jobs. The older attributes
``max_user_run``, ``max_running``, ``max_user_queuable`` and ``max_queuable`` have one number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.formats.machines.limits.limit_tables import HOLD, REJECT
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from simsched.formats.machines.limits.limit_tables import LimitTables

_JOBS = {"max_run": ("running-jobs", HOLD), "max_queued": ("submitted-jobs", REJECT)}
_OLD = {
    "max_user_run": ("running-jobs", HOLD, "user"),
    "max_running": ("running-jobs", HOLD, None),
    "max_user_queuable": ("submitted-jobs", REJECT, "user"),
    "max_queuable": ("submitted-jobs", REJECT, None),
}
_UNITS = {"ncpus": "cores", "procct": "cores", "nodect": "nodes", "ngpus": "gpus"}
_ENTRY = re.compile(r"\[\s*([ugpo]):([^=\]]+?)\s*=\s*(\d{1,12})\s*\]")


def take_limit(limits: LimitTables, queue: str | None, key: str, value: str, where: str) -> bool:
    """Add the limits of an attribute of a queue (None: the server); return whether it is one."""
    table, _, unit = key.lower().partition(".")
    base: dict[str, Any] = {} if queue is None else {"queue": queue}
    if table in _OLD and not unit:
        quantity, over, each = _OLD[table]
        limits.number({**base, "each": each} if each else base, quantity, value, where, over)
        return True
    if table in _JOBS and not unit:
        quantity, over = _JOBS[table]
    elif table == "max_run_res" and unit in _UNITS:
        quantity, over = _UNITS[unit], HOLD
    else:
        return False
    entries = _ENTRY.findall(value)
    if not entries:
        limits.notes.fault(f"{clip(value)!r} is not a limit", where, "such as [u:PBS_GENERIC=5]")
    for kind, text, number in entries:
        name = text.strip().strip('"')
        if kind == "o":
            limits.number(base, quantity, number, where, over)
        elif kind != "u":
            what = {"g": "groups", "p": "projects"}[kind]
            limits.notes.left_out(f"{table} of {what}", where, cause=f"{table} of {what}")
        elif name == "PBS_GENERIC":
            limits.number({**base, "each": "user"}, quantity, number, where, over)
        else:
            limits.number({**base, "user": name}, quantity, number, where, over)
    return True
