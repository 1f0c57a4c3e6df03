"""The part of a page about the machine: its map, the use of its parts, the locality of jobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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


def _map(run: RunTables, held: pd.DataFrame, prefix: str, drawn: charts.Charts) -> str:
    """Return one cell per node, and a note about the balance of their use."""
    if len(run.nodes) > MAX_NODES:
        return ""
    kind = machine_use.main_kind(run.nodes)
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
    uses = [c for c in map(str, table) if c.startswith(machine_use.USE)]
    unused = {c for c in uses if c.removeprefix(machine_use.USE) not in HELD and not np.nansum(table[c]) > 0}
    shown = [c for c in map(str, table) if c not in unused]
    head = [(key, "text"), *((heading(c), "share" if c in uses else "") for c in shown)]
    note = "Groups may overlap. Capacity is that of the nodes that were up when the run began."
    rows = markup.group_rows(table[shown])
    return markup.table(f"{prefix}-by-{key}", f"Use by {key}", head, rows, note if key == "property" else "")


def _locality(run: RunTables, held: pd.DataFrame, prefix: str) -> str:
    table = machine_use.locality(run.nodes, held)
    head = (("type", "text"), ("number", ""), ("jobs on several nodes", ""), ("spanned, mean", ""),
            ("spanned / fewest possible, mean", "ratio"), ("in the fewest possible", "share"))  # fmt: skip
    note = "Racks, switches … that contain the nodes of a job, against the fewest that its nodes need."
    return markup.table(f"{prefix}-locality", "Locality of jobs", head, markup.group_rows(table), note)
