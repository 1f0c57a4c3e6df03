"""Slurm's lines about preemption as the table ``preemption`` of a configuration.

PreemptType, PreemptMode, PreemptExemptTime and PreemptParameters of the cluster, PreemptMode and GraceTime of
partitions.  With ``preempt/qos`` the accounting database says which QOS preempts another.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from simsched.formats.machines.slurm.notation import comma_parts, stated, time_limit, whole_number
from simsched.formats.machines.slurm.settings import BY_PARTITION, BY_QOS, YOUNGEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.machines.description import QosRow
    from simsched.formats.machines.shared.note_collector import NoteCollector
    from simsched.formats.machines.slurm.settings import Settings
    from simsched.formats.machines.slurm.slurm_records import Line

MODES = ("requeue", "cancel", "suspend", "checkpoint", "off")
ENDING = ("requeue", "cancel")
"""The modes for which Slurm honours PreemptExemptTime (slurm.conf(5))."""
SUSPENDS = "PreemptMode=SUSPEND: the nodes of a suspended job run only jobs that may preempt it"
"""The note on the mode of suspended jobs."""


def preemption_of(
    settings: Settings,
    tiers: Mapping[str, int],
    partitions: Mapping[str, Line],
    qos: Sequence[QosRow] = (),
) -> dict[str, Any]:
    """Return the table ``preemption``; empty if no partition and no QOS preempts another.

    `tiers` is partition → PriorityTier, `qos` the QOS of the accounting database.
    """
    kind, mode = settings.get("preempttype"), settings.get("preemptmode")
    where = settings.where("preempttype")
    if kind != BY_QOS and any(row.preempts for row in qos):
        shown = "; ".join(f"QOS {row.name} preempts {', '.join(row.preempts)}" for row in qos if row.preempts)
        text = f"{shown}: no slurm.conf has PreemptType=preempt/qos"
        settings.notes.left_out(text, qos[0].where.rpartition(":")[0])
    if kind in ("", "preempt/none"):
        _note_idle(settings, partitions)
        return {}
    if kind == BY_QOS:
        _note_rest(settings, mode)
        if qos:
            return _by_qos(settings, qos)
        text = "preemption with preempt/qos: which QOS preempts another is in the accounting database"
        settings.notes.left_out(text, where)
        return {}
    if kind != BY_PARTITION:
        settings.notes.left_out(f"PreemptType={settings.values['preempttype']}", where)
        return {}
    if len(set(tiers.values())) < 2:
        return {}
    common, exempt = mode_of(mode) or "off", _exempt(settings)
    found = _common(settings, common, exempt)
    tables = {}
    for name, (values, place) in partitions.items():
        table = _victims(settings, values, place)
        if table and name in tiers:
            tables[name] = with_exempt(table, common, exempt)
    if tables:
        found["queues"] = tables
    used = {common, *(table["mode"] for table in tables.values() if "mode" in table)}
    if used == {"off"}:
        return {}
    _note_rest(settings, mode)
    if "suspend" in used:
        settings.notes.assumed(SUSPENDS, where)
    return found


def _note_idle(settings: Settings, partitions: Mapping[str, Line]) -> None:
    """Note modes and grace times of a cluster without PreemptType, where no job is preempted."""
    own = [(settings.get("preemptmode"), "", settings.where("preemptmode"))]
    for name, (values, place) in partitions.items():
        own.append((stated(values, "preemptmode"), f"partition {name}: ", place))
    for mode, whose, where in own:
        if mode.lower() not in ("", "off"):
            text = f"{whose}PreemptMode={mode}: without PreemptType, no job is preempted"
            settings.notes.left_out(text, where, cause="preemptmode without preempttype")


def _by_qos(settings: Settings, rows: Sequence[QosRow]) -> dict[str, Any]:
    """Return the table ``preemption`` of these QOS; empty if none preempts another."""
    notes, where = settings.notes, rows[0].where.rpartition(":")[0]
    priorities = {row.name: row.priority for row in rows}
    mode, exempt = mode_of(settings.get("preemptmode")) or "off", _exempt(settings)
    tables: dict[str, dict[str, Any]] = {}
    for row in rows:
        for name in row.preempts:
            if name == row.name:
                notes.left_out(f"QOS {name} preempts its own jobs", row.where)
            elif name not in priorities:
                notes.fault(f"QOS {row.name} preempts {name!r}, which the file does not have", row.where)
        found = dict(row.victims)
        if "exempt" not in found:
            found = dict(with_exempt(found, mode, exempt))
        if found.get("mode", mode) == "suspend" and found.get("exempt"):
            found["exempt"] = 0  # Slurm ignores that of jobs that are suspended
        others = [name for name in row.preempts if name in priorities and name != row.name]
        if others:  # Slurm preempts jobs of the QOS of the lowest priority first
            found["preempts"] = sorted(others, key=priorities.__getitem__)
        if found:
            tables[row.name] = found
    victims = {name for table in tables.values() for name in table.get("preempts", ())}
    modes = {tables.get(name, {}).get("mode", mode) for name in victims}
    if modes <= {"off"}:
        return {}
    if "suspend" in modes:
        notes.assumed(SUSPENDS, where)
    shown = "; ".join(
        f"{name}: {', '.join(table['preempts'])}" for name, table in tables.items() if "preempts" in table
    )
    notes.assumed(f"the QOS preempt these, the first one first: {shown}", where)
    return {"by": "qos", **_common(settings, mode, exempt), "qos": tables}


def _common(settings: Settings, mode: str, exempt: float) -> dict[str, Any]:
    """Return the values for all victims."""
    youngest = YOUNGEST in settings.get("schedulerparameters") or "youngest_first" in _parameters(settings)
    found: dict[str, Any] = {"mode": mode, "order": "youngest" if youngest else "priority"}
    return found | ({"exempt": exempt} if exempt and mode in ENDING else {})


def with_exempt(table: dict[str, Any], common: str, exempt: float) -> dict[str, Any]:
    """Return a table of victims with its exempt time where it differs from that of the common mode."""
    mode = table.get("mode", common)
    if exempt and (mode in ENDING) != (common in ENDING) and mode != "off":
        return {**table, "exempt": exempt if mode in ENDING else 0}
    return table


def _exempt(settings: Settings) -> float:
    """Return the seconds of PreemptExemptTime; 0 without a time, and for -1."""
    text = stated(settings.values, "preemptexempttime") or "0:00"
    where = settings.where("preemptexempttime")
    found = settings.notes.attempt(time_limit, text, where, "preemptexempttime")
    return 0 if found is None or found == inf else found


def _parameters(settings: Settings) -> list[str]:
    return comma_parts(settings.get("preemptparameters"))


def _note_rest(settings: Settings, mode: str) -> None:
    """Note the parts of the lines that affect which jobs are preempted, and are not kept."""
    left = [name for name in _parameters(settings) if name != "youngest_first"]
    if left:
        settings.notes.left_out(f"PreemptParameters: {', '.join(left)}", settings.where("preemptparameters"))
    note_words(settings.notes, mode, settings.where("preemptmode"), "PreemptMode")


def note_words(notes: NoteCollector, text: str, where: str, what: str) -> None:
    """Note the words of a PreemptMode that are not kept; GANG is a part of every mode SUSPEND."""
    words = text.lower().split(",")
    if "within" in words:
        notes.left_out(f"{what}=WITHIN (jobs preempt others of their own QOS)", where, cause="within")
    if "priority" in words:
        notes.left_out(f"{what}=PRIORITY (only jobs of a higher priority preempt)", where, cause="priority")
    if "gang" in words and "suspend" not in words:
        notes.left_out(f"{what}=GANG (jobs that share nodes take turns)", where, cause="gang")


def _victims(settings: Settings, values: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return the values for victims that a partition states."""
    table: dict[str, Any] = {}
    own = stated(values, "preemptmode")
    if own:
        mode = mode_of(own.lower())
        if mode is None:
            settings.notes.left_out(f"PreemptMode={own}", place, cause="partition preemptmode")
        else:
            table["mode"] = mode
    grace = stated(values, "gracetime")
    if grace:
        seconds = settings.notes.attempt(grace_time, grace, place, "gracetime")
        if seconds:
            table["grace"] = seconds
    return table


def grace_time(text: str) -> float:
    """Return the seconds of a GraceTime, which is a number of seconds or a time.  Raises `FormatError`."""
    return whole_number(text) if ":" not in text and "-" not in text else time_limit(text)


def mode_of(text: str) -> str | None:
    """Return the mode of victims in a PreemptMode, which may state GANG, PRIORITY and WITHIN beside it."""
    return next((word for word in text.lower().split(",") if word in MODES), None)
