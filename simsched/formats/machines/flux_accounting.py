"""flux-accounting's limits: the tables of associations and of queues as CSV (``export-db``).

flux-accounting's guide, "limits": an association is a user in a bank. Beyond max_active_jobs a job is
rejected; beyond max_running_jobs, max_nodes or max_cores it waits.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from simsched.formats.machines.limit_tables import HOLD, REJECT, UNLIMITED, LimitTables
from simsched.formats.machines.site_facts import SiteFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.machines.description import NoteCollector


FORMAT = "flux-accounting"
_ASSOCIATION = {
    "maxrunningjobs": ("running-jobs", HOLD),
    "maxactivejobs": ("submitted-jobs", REJECT),
    "maxnodes": ("nodes", HOLD),
    "maxcores": ("cores", HOLD),
}
_QUEUE = {"maxrunningjobs": ("running-jobs", HOLD), "maxnodesperassoc": ("nodes", HOLD)}


def read_flux_accounting(text: str, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the limits of a table of associations or of queues.

    Raises
    ------
    FormatError
        if the table is neither; under strict `notes` for the first value that is not understood.
    """
    limits = LimitTables(notes)
    rows = csv.reader(text.splitlines())
    head = [cell.strip().lower().replace("_", "") for cell in next(rows, [])]
    if "queue" not in head and not {"username", "bank"} <= set(head):
        notes.refuse("neither associations nor queues", where, "username,bank,… or queue,…")
    for number, cells in enumerate(rows, 2):
        place = f"{where}:{number}"
        if not any(cells):
            continue
        if len(cells) != len(head):
            notes.fault(f"{len(cells)} columns", place, f"{len(head)}, as in the header")
            continue
        values = dict(zip(head, map(str.strip, cells), strict=True))
        if "queue" in head:
            _take_queue(limits, values, place)
        elif values.get("active", "1") not in ("0", "false", "False"):
            scope = {"user": values["username"], "account": values["bank"]}
            for key, (quantity, over) in _ASSOCIATION.items():
                limits.number(scope, quantity, values.get(key), place, over)
    tables = limits.tables()
    return SiteFacts(form=FORMAT, notes=notes, config={"limits": tables} if tables else {})


def _take_queue(limits: LimitTables, values: Mapping[str, str], where: str) -> None:
    name = values["queue"]
    each: dict[str, Any] = {"queue": name, "each": ["user", "account"]}
    for key, (quantity, over) in _QUEUE.items():
        limits.number(each, quantity, values.get(key), where, over)
    job: dict[str, Any] = {"queue": name, "each": "job"}
    limits.number(job, "nodes", values.get("maxnodesperjob"), where, REJECT)
    minutes = values.get("maxtimeperjob", "")
    if minutes.lower() not in UNLIMITED:
        if minutes.isdecimal() and len(minutes) < 16:
            limits.add(job, "duration", f"{int(minutes)}m", REJECT)
        else:
            limits.notes.fault(f"{minutes!r} is not a number of minutes", where, "a whole number")
    if values.get("minnodesperjob", "") not in ("", "0", "1"):
        limits.notes.left_out("min_nodes_per_job of a queue", where)
