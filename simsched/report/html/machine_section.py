"""The part of a page about the machine: its map, the use of its parts, the locality of jobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.errors import RunError
from simsched.report.columns import HELD
from simsched.report.groups import heading
from simsched.report.html import charts, markup
from simsched.report.metrics import machine_use

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.data.tables import RunTables

#: most nodes of a map
MAX_NODES = 20_000


def section(run: RunTables, prefix: str, drawn: charts.Charts) -> str:
    """Return the tables of the machine and add its map; empty without nodes or allocations."""
    if run.nodes.empty or not run.has_allocations:
        return ""
    try:
        held = run.allocations
    except RunError as error:  # for example more rows than memory should hold
        return f'<p class="note">No tables of the machine: {error.message}.</p>'
    parts = [_map(run, held, prefix, drawn)]
    if run.nodes["properties"].map(len).any():
        parts.append(_use(run, held, "property", prefix))
    places = machine_use.distinct_places(run.nodes)
    parts += [_use(run, held, place, prefix) for place in places]
    if places:
        parts.append(_locality(run, held, prefix))
    return "".join(parts)


def main_type(run: RunTables) -> str:
    """Return the type whose use colours the map: cores, else gpus, else whole nodes."""
    known = machine_use.kinds(run.nodes)
    return next(kind for kind in ("core", "gpu", "node") if kind in known)


def _map(run: RunTables, held: pd.DataFrame, prefix: str, drawn: charts.Charts) -> str:
    """Return one cell per node, and a note about the balance of their use."""
    if len(run.nodes) > MAX_NODES:
        return ""
    kind = main_type(run)
    table = machine_use.node_use(run.nodes, held, run.window)
    found = machine_use.use_balance(run.nodes, held, run.window, kind)
    shares = table.assign(share=100 * table[machine_use.USE + kind]).reset_index()
    width = min(math.ceil(math.sqrt(2.6 * len(shares))), len(shares))
    drawn.add(f"{prefix}-map", charts.map_chart(shares, width, f"{human.plural(kind)} in use"))
    idle = f"{found.unused:,} were never used" if found.unused else "every node was used at least once"
    note = (
        f"Share of each node's {human.plural(kind)} in use over the makespan, by rank."
        f" The Jain index of the nodes is {human.number(found.jain)} (1 is even); {idle}."
    )
    return markup.panel("The nodes by use", f"{prefix}-map", note)


def _use(run: RunTables, held: pd.DataFrame, key: str, prefix: str) -> str:
    table = machine_use.use_by(run.nodes, held, run.window, key)
    shown = [c for c in table if _is_shown(str(c), table[c].to_numpy(dtype=np.float64))]
    head = [(key, "text"), *((heading(str(c)), _unit(str(c))) for c in shown)]
    rows: list[list[Any]] = [
        [name, *row] for name, row in zip(table.index, table[shown].to_numpy().tolist(), strict=True)
    ]
    note = "Groups may overlap. Capacity is that of the nodes that were up when the run began."
    return markup.table(f"{prefix}-by-{key}", f"Use by {key}", head, rows, note if key == "property" else "")


def _is_shown(name: str, shares: np.ndarray) -> bool:
    kind = name.removeprefix(machine_use.USE)
    return not name.startswith(machine_use.USE) or kind in HELD or bool(np.nansum(shares) > 0)


def _unit(name: str) -> str:
    return "share" if name.startswith(machine_use.USE) else ""


def _locality(run: RunTables, held: pd.DataFrame, prefix: str) -> str:
    table = machine_use.locality(run.nodes, held)
    head = (("type", "text"), ("number", ""), ("jobs on several nodes", ""), ("spanned, mean", ""),
            ("spanned / fewest possible, mean", "ratio"), ("in the fewest possible", "share"))  # fmt: skip
    rows = [[name, *row] for name, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
    note = "Racks, switches … that contain the nodes of a job, against the fewest that its nodes need."
    return markup.table(f"{prefix}-locality", "Locality of jobs", head, rows, note)
