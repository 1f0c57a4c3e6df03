"""The outcome of a run, written back into its SSS Job Objects (the accounting use of the document)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import RunError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.sss.document import DeliveredValues, with_results

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.sss.document import Document
    from simsched.report.data.tables import RunTables


def delivered_document(document: Document, run: RunTables, *, second_zero: int = 0) -> Document:
    """Return the document with State, StartTime, EndTime and Delivered of its jobs as the run had them.

    `second_zero` is second 0 of the run in seconds since 1970.  Jobs of the run
    that the document does not have are ignored.  Processors are the allocated cores, Node the
    hosts; Memory is known if the request states a fixed amount.

    Raises
    ------
    RunError
        When the run has no job of the document.
    """
    hosts = _hosts(run)
    results = {row["id"]: _result(row, hosts, second_zero) for row in _rows(run.jobs)}
    ids = {element.value("Id") for element in _jobs(document.root)}
    if not ids & set(results):
        raise RunError(
            "the run has no job of this document", where=run.name, expected="a run of this document"
        )
    return with_results(document, results)


def _rows(jobs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows, with None for missing values."""
    columns = ["id", "start", "end", "cores", "procs", "result", "reason", "shape"]
    table = jobs[columns].astype(object)
    return [dict(zip(columns, row, strict=True)) for row in table.where(table.notna(), None).values.tolist()]


def _hosts(run: RunTables) -> dict[str, Hostlist]:
    """Return the hosts of each job's allocation; empty for a run without allocations."""
    if not run.has_allocations:
        return {}
    shards = run.shards
    held = shards[shards["event"] == "alloc"].drop_duplicates("record")
    return {
        id_: Hostlist.parse(hosts)
        for id_, hosts in zip(held["id"].tolist(), held["hosts"].astype(str).tolist(), strict=True)
    }


def _result(row: Mapping[str, Any], hosts: Mapping[str, Hostlist], zero: int) -> DeliveredValues:
    ran = row["start"] is not None and row["end"] is not None
    return DeliveredValues(
        str(row["result"]),
        start=row["start"] + zero if row["start"] is not None else None,
        end=row["end"] + zero if row["end"] is not None else None,
        processors=(row["cores"] or row["procs"]) if ran else None,
        hosts=hosts.get(row["id"]) if ran else None,
        memory=_memory(row["shape"]) if ran else None,
        message=row["reason"],
    )


def _memory(shape: str | None) -> float | None:
    """Return the memory of a request whose counts are fixed; None for any other.

    It is in the MB of the document (powers of 1024), which is also the unit of a vertex without one.
    """
    if not shape:
        return None
    from simsched.formats.jobspec.shape import parse_shape
    from simsched.formats.rfc.units import convert

    total, found = 0.0, _pools(parse_shape(shape), 1)
    for vertex, units in found:
        if units is None:
            return None
        total += float(convert(units, vertex.unit, "MiB") if vertex.unit else units)
    return total if found else None


def _pools(
    vertices: tuple[ResourceVertex, ...], copies: int | None
) -> list[tuple[ResourceVertex, int | None]]:
    """Return the memory vertices with the units of all their copies, None for a range."""
    found: list[tuple[ResourceVertex, int | None]] = []
    for vertex in vertices:
        units = copies * vertex.count.min if copies is not None and vertex.count.is_fixed else None
        if vertex.type == "memory":
            found.append((vertex, units))
        found.extend(_pools(vertex.with_, units))
    return found


def _jobs(root: Any) -> list[Any]:
    if root.name == "Job":
        return [root]
    return [job for child in root.children if child.name in {"Job", "JobGroup"} for job in _jobs(child)]
