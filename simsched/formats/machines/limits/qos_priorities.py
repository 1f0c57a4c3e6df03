"""The priorities, usage factors and preemption of QOS, from sacctmgr, with the settings of a slurm.conf.

slurm.conf has the weight of the factor (PriorityWeightQOS) and PreemptType, the accounting database the
priority of each QOS and those that it preempts. So a description of a slurm.conf has its priority with a QOS
factor without values, and its preemption, as `awaits_qos`, and that of sacctmgr's output has `qos`.
`with_qos` puts them together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.formats.machines.description import Note
from simsched.formats.machines.slurm.preemption_lines import SUSPENDS, WAITS_FOR_QOS, with_exempt
from simsched.formats.machines.slurm.priority_lines import NO_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.machines.description import MachineDescription, QosRow


def with_qos(description: MachineDescription) -> MachineDescription:
    """Return a description whose priority and preemption have the values of its QOS.

    It is the same one without such values.
    """
    rows = description.qos
    if not rows:
        return description
    config, notes = dict(description.config), list(description.notes)
    where = rows[0].where.rpartition(":")[0]
    waits = description.awaits_qos
    if "preemption" in waits:
        config["preemption"], own = _preemption(waits["preemption"], rows, where)
        notes = [note for note in notes if note.text != WAITS_FOR_QOS] + own
        if config["preemption"] is None:
            del config["preemption"]
    elif any(row.preempts for row in rows):
        shown = "; ".join(
            f"QOS {row.name} preempts {', '.join(row.preempts)}" for row in rows if row.preempts
        )
        text = f"{shown}: no slurm.conf has PreemptType=preempt/qos"
        notes.append(Note("left out", text, where))
    if "priority" in waits and any(row.priority for row in rows):
        values = {row.name: row.priority for row in rows}
        factors = {**waits["priority"]["factors"]}
        factors["qos"] = {**factors["qos"], "values": values}
        config["order"] = waits["order"]
        config["priority"] = {**waits["priority"], **config.get("priority", {}), "factors": factors}
        notes = [note for note in notes if not note.text.startswith(NO_VALUES)]
        shown = ", ".join(f"{name} {value}" for name, value in values.items())
        weight = f"{factors['qos']['weight']:g}"
        notes.append(
            Note("assumed", f"QOS factor with the weight {weight}, of the priorities {shown}", where)
        )
    elif any(row.priority for row in rows):
        text = "the priorities of QOS: no slurm.conf gives them a weight (PriorityWeightQOS)"
        notes.append(Note("left out", text, where))
    used = {row.name: row.usage_factor for row in rows if row.usage_factor != 1}
    shares = config.get("priority", {}).get("fair-share")
    if used and shares is not None:
        config["priority"] = {**config["priority"], "fair-share": {**shares, "qos-usage": used}}
        shown = ", ".join(f"{name} {value:g}" for name, value in used.items())
        notes.append(Note("assumed", f"usage counts with the UsageFactor of its QOS: {shown}", where))
    elif used:
        notes.append(Note("left out", "UsageFactor of QOS: the priority of jobs has no fair share", where))
    return replace(description, config=config, notes=tuple(notes))


def _preemption(
    waits: Mapping[str, Any], rows: Sequence[QosRow], where: str
) -> tuple[dict[str, Any] | None, list[Note]]:
    """Return the table ``preemption`` of these QOS, None if none preempts another, and its notes."""
    priorities = {row.name: row.priority for row in rows}
    exempt = waits.get("exempt", 0)
    common = {key: value for key, value in waits.items() if key != "exempt"}
    tables: dict[str, dict[str, Any]] = {}
    notes: list[Note] = []
    for row in rows:
        notes += _odd_names(row, priorities)
        table = (
            with_exempt(dict(row.victims), waits["mode"], exempt)
            if "exempt" not in row.victims
            else row.victims
        )
        found = _honoured(table, waits["mode"])
        others = [name for name in row.preempts if name in priorities and name != row.name]
        if others:  # Slurm preempts jobs of the QOS of the lowest priority first
            found["preempts"] = sorted(others, key=priorities.__getitem__)
        if found:
            tables[row.name] = found
    victims = {name for table in tables.values() for name in table.get("preempts", ())}
    modes = {tables.get(name, {}).get("mode", waits["mode"]) for name in victims}
    if modes <= {"off"}:
        return None, notes
    if "suspend" in modes:
        notes.append(Note("assumed", SUSPENDS, where))
    if exempt and waits["mode"] in ("requeue", "cancel"):
        common["exempt"] = exempt
    shown = "; ".join(
        f"{name}: {', '.join(table['preempts'])}" for name, table in tables.items() if "preempts" in table
    )
    notes.append(Note("assumed", f"the QOS preempt these, the first one first: {shown}", where))
    return {**common, "qos": tables}, notes


def _honoured(table: Mapping[str, Any], common: str) -> dict[str, Any]:
    """Return a table of victims without the exempt time of jobs that are suspended, which Slurm ignores."""
    found = dict(table)
    if found.get("mode", common) == "suspend" and found.get("exempt"):
        found["exempt"] = 0
    return found


def _odd_names(row: QosRow, known: Mapping[str, int]) -> Iterator[Note]:
    """Yield a note for each name in Preempt that is not another QOS."""
    for name in row.preempts:
        if name == row.name:
            yield Note("left out", f"QOS {name} preempts its own jobs", row.where)
        elif name not in known:
            text = f"QOS {row.name} preempts {name!r}, which the file does not have"
            yield Note("fault", text, row.where)
