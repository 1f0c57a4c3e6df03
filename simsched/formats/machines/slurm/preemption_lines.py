"""Slurm's lines about preemption as the table ``preemption`` of a configuration.

PreemptType, PreemptMode and PreemptExemptTime of the cluster, PreemptMode and GraceTime of partitions, and
``preempt_youngest_first`` of SchedulerParameters.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from simsched.formats.machines.slurm.notation import stated, time_limit, whole_number
from simsched.formats.machines.slurm.settings import YOUNGEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.machines.slurm.settings import Settings

MODES = ("requeue", "cancel", "suspend", "checkpoint", "off")


def preemption_of(
    settings: Settings, tiers: Mapping[str, int], partitions: Mapping[str, tuple[Mapping[str, str], str]]
) -> dict[str, Any]:
    """Return the table ``preemption``; empty if no partition preempts another.

    `tiers` is partition → PriorityTier, `partitions` partition → its keys and their place.
    """
    kind, mode = settings.get("preempttype"), settings.get("preemptmode")
    if kind in ("", "preempt/none") or (kind != "preempt/partition_prio" and mode in ("", "off")):
        return {}
    where = settings.where("preempttype")
    if kind != "preempt/partition_prio":
        text = f"preemption with {settings.values['preempttype']}: which QOS preempts another is in the"
        settings.notes.left_out(f"{text} accounting database", where)
        return {}
    if len(set(tiers.values())) < 2:
        return {}
    common = _mode(mode) or "off"
    found: dict[str, Any] = {"mode": common, "order": "priority"}
    exempt = settings.notes.attempt(
        time_limit,
        stated(settings.values, "preemptexempttime") or "0:00",
        settings.where("preemptexempttime"),
        "preemptexempttime",
    )
    if exempt is not None and 0 < exempt < inf:
        found["exempt"] = exempt
    if YOUNGEST in settings.get("schedulerparameters"):
        found["order"] = "youngest"
    tables = {}
    for name, (values, place) in partitions.items():
        table = _victims(settings, values, place)
        if table and name in tiers:
            tables[name] = table
    if tables:
        found["queues"] = tables
    used = {common, *(table["mode"] for table in tables.values() if "mode" in table)}
    if used == {"off"}:
        return {}
    if "suspend" in used:
        text = "PreemptMode=SUSPEND: the nodes of a suspended job run only jobs that may preempt it"
        settings.notes.assumed(text, where)
    return found


def _victims(settings: Settings, values: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return the values for victims that a partition states."""
    table: dict[str, Any] = {}
    own = stated(values, "preemptmode")
    if own:
        mode = _mode(own.lower())
        if mode is None:
            settings.notes.left_out(f"PreemptMode={own}", place, cause="partition preemptmode")
        else:
            table["mode"] = mode
    grace = stated(values, "gracetime")
    if grace:
        seconds = settings.notes.attempt(whole_number, grace, place, "gracetime")
        if seconds:
            table["grace"] = seconds
    return table


def _mode(text: str) -> str | None:
    """Return the mode of victims in a PreemptMode, which may state GANG, PRIORITY and WITHIN beside it."""
    return next((word for word in text.split(",") if word in MODES), None)
