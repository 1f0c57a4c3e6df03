"""Run directories that are changed in one place, with their digests, and audited."""

from __future__ import annotations

import json

import duckdb
import pandas as pd

from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.record.file_digests import with_digests


def sealed_again(path):
    """Give ``run.json`` the digests of the files as they are now."""
    meta = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(with_digests(meta, path)))


def rewrite(file, change):
    """Rewrite a table after an SQL change of it."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{file}')")
        con.execute(change)
        con.execute(f"COPY t TO '{file}' (FORMAT parquet)")


def recorded(result):
    """The lines and the rows of a run, to be changed."""
    lines = [json.loads(line) for line in result.log.text().splitlines()]
    columns = {name: column.tolist() for name, column in result.jobs.items()}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for row in rows:
        for name in ("start", "end"):
            row[name] = None if row[name] != row[name] else row[name]
    return lines, rows


def saved(result, path, lines=None, rows=None):
    """The directory of a run, with other lines and rows and their digests."""
    result.save(path)
    if lines is not None:
        text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        (path / "allocations.jsonl").write_text(text)
    if rows is not None:
        file, frame = path / "jobs.parquet", pd.DataFrame(rows)
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE t AS FROM read_parquet('{file}') LIMIT 0")
            if rows:
                con.register("frame", frame)
                con.execute("INSERT INTO t BY NAME SELECT * FROM frame")
            con.execute(f"COPY t TO '{file}' (FORMAT parquet)")
    sealed_again(path)
    return path


def audited(result, cluster, path, lines=None, rows=None):
    """The audit of a run with other lines and rows."""
    return audit_run(saved(result, path / "tampered", lines, rows), cluster, result.workload)
