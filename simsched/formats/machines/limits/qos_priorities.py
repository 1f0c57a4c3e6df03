"""The priorities and usage factors of QOS, from sacctmgr, as values of the priority of a slurm.conf.

slurm.conf has the weight of the factor (PriorityWeightQOS), the accounting database the priority of each
QOS. So a description of a slurm.conf has its priority with a QOS factor without values as `awaits_qos`, and
that of sacctmgr's output has `qos`; `with_qos` puts them together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simsched.formats.machines.description import Note

if TYPE_CHECKING:
    from simsched.formats.machines.description import MachineDescription

NO_VALUES = "PriorityWeightQOS: the priorities of QOS are in the accounting database"
"""The beginning of the note of a slurm.conf whose QOS factor has no values."""


def with_qos(description: MachineDescription) -> MachineDescription:
    """Return a description whose priority has the values of its QOS; the same one without such values."""
    rows = description.qos
    if not rows:
        return description
    config, notes = dict(description.config), list(description.notes)
    where = rows[0].where.rpartition(":")[0]
    waits = description.awaits_qos
    if waits and any(row.priority for row in rows):
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
