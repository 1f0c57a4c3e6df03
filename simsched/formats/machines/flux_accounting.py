"""flux-accounting's limits: the tables of associations and of queues as CSV (``export-db``).

flux-accounting's guide, "limits": an association is a user in a bank. Beyond max_active_jobs a job is
rejected; beyond max_running_jobs, max_nodes or max_cores it waits.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.machines.limit_tables import HOLD, REJECT, UNLIMITED, LimitTables
from simsched.formats.machines.site_facts import SiteFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.machines.description import NoteCollector


FORMAT = "flux-accounting"
_OF_USER: dict[str, Any] = {"each": ["user", "account"]}
_OF_JOB: dict[str, Any] = {"each": "job"}
_ASSOCIATION = {
    "maxrunningjobs": ("running-jobs", HOLD),
    "maxactivejobs": ("submitted-jobs", REJECT),
    "maxnodes": ("nodes", HOLD),
    "maxcores": ("cores", HOLD),
}
_QUEUE = {
    "maxrunningjobs": ("running-jobs", HOLD, _OF_USER),
    "maxnodesperassoc": ("nodes", HOLD, _OF_USER),
    "maxnodesperjob": ("nodes", REJECT, _OF_JOB),
}


def read_flux_accounting(text: str, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the limits of a table of associations or of queues.

    Raises
    ------
    FormatError
        if the table is neither, or has a line that cannot be read; under strict `notes` for the first value
        that is not understood.
    """
    limits = LimitTables(notes)
    rows = csv.reader(text.splitlines())
    try:
        head = [cell.strip().lower().replace("_", "") for cell in next(rows, [])]
        if "queue" not in head and not {"username", "bank"} <= set(head):
            notes.refuse("neither associations nor queues", where, "username,bank,… or queue,…")
        line = rows.line_num + 1
        for cells in rows:
            place, line = f"{where}:{line}", rows.line_num + 1  # a cell in quotes may have several lines
            if len(cells) == len(head):
                values = dict(zip(head, map(str.strip, cells), strict=True))
                (_take_queue if "queue" in head else _take_association)(limits, values, place)
            elif any(cells):
                notes.fault(f"{len(cells)} columns", place, f"{len(head)}, as in the header")
    except csv.Error as error:  # a cell of more than 128 KB
        raise FormatError(f"the line cannot be read: {error}", where=f"{where}:{rows.line_num}") from None
    tables = limits.tables()
    return SiteFacts(form=FORMAT, notes=notes, config={"limits": tables} if tables else {})


def _take_association(limits: LimitTables, values: Mapping[str, str], where: str) -> None:
    if values.get("active", "1") not in ("0", "false", "False"):
        scope: dict[str, Any] = {"user": values["username"], "account": values["bank"]}
        for key, (quantity, over) in _ASSOCIATION.items():
            limits.number(scope, quantity, values.get(key), where, over)


def _take_queue(limits: LimitTables, values: Mapping[str, str], where: str) -> None:
    queue: dict[str, Any] = {"queue": values["queue"]}
    for key, (quantity, over, each) in _QUEUE.items():
        limits.number({**queue, **each}, quantity, values.get(key), where, over)
    minutes = values.get("maxtimeperjob", "")
    if minutes.lower() not in UNLIMITED:
        if minutes.isdecimal() and len(minutes) < 16:
            limits.add({**queue, **_OF_JOB}, "duration", f"{int(minutes)}m", REJECT)
        else:
            limits.notes.fault(f"{minutes!r} is not a number of minutes", where, "a whole number")
    if values.get("minnodesperjob", "") not in ("", "0", "1"):
        limits.notes.left_out("min_nodes_per_job of a queue", where)
