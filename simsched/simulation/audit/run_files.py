"""What the audit checks of files as such: the digests that were recorded; and how it reads tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simsched.errors import RunError
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.audit.job_life import read_meta
from simsched.simulation.record.file_digests import changed_files, changed_inputs, has_digests

SINCE_DIGESTS = "whole_nodes"
"""A key of ``run.json`` that only runs with digests have."""


def audit_files(directory: str | Path) -> AuditReport:
    """Check only that the files of a run directory, and its inputs, have the digests that were recorded.

    Raises
    ------
    RunError
        If ``run.json`` is missing or cannot be read.
    """
    report = AuditReport()
    check_digests(report, Path(directory))
    return report


def check_digests(report: AuditReport, path: Path) -> None:
    """Compare the files of the directory and the inputs with what ``run.json`` states (A10)."""
    meta = read_meta(path)
    if not has_digests(meta):
        text = "run.json has no digests of the files, so they were not compared"
        if SINCE_DIGESTS in meta:
            report.add("A10", "(all)", text)
        else:
            report.notes.append(text)
    else:
        for fault in changed_files(meta, path):
            report.add("A10", "(all)", fault)
    for changed, text in changed_inputs(meta):
        if changed:
            report.add("A10", "(all)", text)
        else:
            report.notes.append(text)


def read_table(path: Path) -> list[dict[str, Any]]:
    """Read a table of a run as one mapping per row.

    Raises
    ------
    RunError
        If it is not a Parquet file.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        try:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        except duckdb.Error:
            raise RunError("cannot be read", where=str(path), expected="a Parquet file") from None
