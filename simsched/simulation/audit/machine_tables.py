"""Rules of the audit for ``nodes.parquet``, ``timeline.parquet`` and ``run.json`` against the machine (A9).

The timeline is also checked against the R documents: running jobs and used units after each instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.simulation.audit.allocation_pass import column

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from simsched.simulation.audit.audit_tables import AuditTables
    from simsched.simulation.audit.inventory import Inventory
    from simsched.simulation.audit.recorded_run import RecordedRun

UNITS = ("core", "gpu")
"""Types whose units R lists by id."""


def check_machine(tables: AuditTables, inventory: Inventory) -> None:
    """Check the tables of the machine and over time."""
    report = tables.report
    for fault in _wrong_totals(tables.recorded, inventory):
        report.add("A9", "(all)", fault)
    report.checked["A9", "totals of run.json"] = len(tables.recorded.totals or ())
    for name, check in (("nodes", _check_nodes), ("timeline", _check_timeline)):
        path = tables.path / f"{name}.parquet"
        if path.is_file():
            check(tables, inventory, tables.load(name, path).keys())
        else:
            report.notes.append(f"there is no {name}.parquet, so it was not compared")


def _wrong_totals(recorded: RecordedRun, inventory: Inventory) -> Iterator[str]:
    """Yield the numbers of ``run.json`` that differ from the machine."""
    expected = {"node": len(inventory.targets)}
    for type_ in UNITS:
        if type_ in inventory.unit_types:
            expected[type_] = sum(
                target.usable.get(type_, 0).bit_count() for target in inventory.targets.values()
            )
    for type_, number in expected.items():
        if recorded.totals is not None and recorded.totals.get(type_) != number:
            yield f"run.json has {recorded.totals.get(type_)} of type {type_}, the cluster has {number}"
    if recorded.targets is not None and recorded.targets != len(inventory.targets):
        yield f"run.json has {recorded.targets} targets, the cluster has {len(inventory.targets)}"


def _check_nodes(tables: AuditTables, inventory: Inventory, columns: Set[str]) -> None:
    targets = list(inventory.targets.values())
    machine = {
        "rank": column(list(inventory.targets), int),
        "m_host": column([target.host for target in targets]),
        "m_properties": column([sorted(target.properties) for target in targets]),
        "usable": column([bool(target.usable) for target in targets], bool),
        **{
            type_: column([target.units.get(type_, 0).bit_count() for target in targets], int)
            for type_ in UNITS
        },
    }
    tables.add("machine", machine, m_host="VARCHAR", m_properties="VARCHAR[]")
    tables.run("nodes")
    for type_ in UNITS:
        if f"total_{type_}" in columns:
            tables.rule("A9", "nodes", f"""
                SELECT '(all)', total_{type_} <> {type_}, 'rank ' || rank || ' has ' || total_{type_}
                    || ' of type {type_} instead of ' || {type_} FROM sides""")  # fmt: skip


def _check_timeline(tables: AuditTables, inventory: Inventory, columns: Set[str]) -> None:
    """Check the timeline.  Targets that are down in the cluster need no outage, and are in no total."""
    recorded = tables.recorded
    tables.run("timeline")
    down = {"node": sum(not target.up for target in inventory.targets.values())}
    for type_, total in (recorded.totals or {}).items():
        names = [f"{state}_{type_}" for state in ("free", "used", "down")]
        if columns >= set(names):
            free, used, out = (f'"{name}"' for name in names)
            lost = f"NOT disrupted() AND {out} <> {down.get(type_, 0)}"
            tables.rule("A9", "rows of the timeline", f"""
                SELECT '(all)', adds OR ({lost}), if(adds, 'units of type {type_} at ' || t(time)
                    || ' do not add up to {total}', {out} || ' of type {type_} are down at ' || t(time)
                    || ' without an outage')
                FROM (SELECT *, {free} + {used} + {out} <> {total} OR least({free}, {used}, {out}) < 0 AS adds
                    FROM timeline)""")  # fmt: skip
    if not recorded.complete:
        tables.report.notes.append("the run was interrupted, so its timeline was not compared with R")
    elif recorded.epilog:  # units are in use by jobs that have ended: the sums of R do not show them
        tables.report.notes.append("units in use were not compared: in an epilog they are those of no job")
    elif tables.vague:
        tables.report.notes.append(
            "units in use were not compared: requests share units, and R does not tell which"
        )
    else:
        for type_ in UNITS:
            if f"used_{type_}" in columns:
                tables.rule("A9", "rows of the timeline", f"""
                    SELECT '(all)',
                        used_{type_} NOT BETWEEN coalesce(least_{type_}, 0) AND coalesce(most_{type_}, 0),
                        used_{type_} || ' of type {type_} in use at ' || t(l.time) || ', '
                        || t(coalesce(most_{type_}, 0)) || ' by R'
                    FROM timeline l ASOF LEFT JOIN use ON l.time >= use.time""")  # fmt: skip
