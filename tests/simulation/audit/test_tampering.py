"""Every column, field, key and file of a run directory is changed in turn: the audit finds it.

A change is found by the digests in ``run.json``.  Who changes those as well (`sealed_again`) is found
where the meaning of what was changed depends on something else; the lists below name what does not.
"""

from __future__ import annotations

import json
import shutil

import duckdb
import pytest

from simsched import simulate
from simsched.errors import RunError
from simsched.graph.cluster import load_cluster
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.audit.recorded_run import audit_files
from simsched.simulation.record.file_digests import VOLATILE
from simsched.workload.load import load_workload
from tests.simulation.audit.tampering import rewrite, sealed_again

CLUSTER = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-3", "children": {"core": "0-1", "gpu": "0"}}],
        "nodelist": ["n[0-3]"],
        "starttime": 0,
        "expiration": 0,
        "properties": {"ssd": "0-1"},
    },
}
#: id, submit, run time, processors, limit, status, user: B waits for A, C is backfilled, D never fits
JOBS = """\
1 0 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1
2 1 -1 5 8 -1 -1 8 10 -1 1 2 1 1 1 1 -1 -1
3 2 -1 5 2 -1 -1 2 5 -1 0 1 1 1 1 1 -1 -1
4 3 -1 5 99 -1 -1 99 5 -1 1 1 1 1 1 1 -1 -1
5 4 -1 9 3 -1 -1 3 4 -1 1 1 1 1 1 1 -1 -1
"""
OUTAGES = [{"ranks": "3", "start": 40, "end": 50, "kind": "drain"}]


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A folder with the inputs and the run directory ``run``."""
    folder = tmp_path_factory.mktemp("honest")
    (folder / "cluster.json").write_text(json.dumps(CLUSTER))
    (folder / "jobs.swf").write_text(JOBS)
    made = simulate(folder / "cluster.json", folder / "jobs.swf", eventlog=True, outages=OUTAGES)
    made.save(folder / "run")
    return folder


@pytest.fixture
def run(honest, tmp_path):
    """A copy of the run directory, to be changed."""
    return shutil.copytree(honest / "run", tmp_path / "run")


@pytest.fixture
def audited(honest):
    """Audits a run directory against the inputs."""
    cluster, workload = load_cluster(honest / "cluster.json"), load_workload(honest / "jobs.swf")
    return lambda path: audit_run(path, cluster, workload)


def columns(file):
    return dict(
        duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE FROM read_parquet('{file}'))").fetchall()
    )


def another(name, kind):
    """Return an SQL expression for another value of a column."""
    name = f'"{name}"'
    if kind == "VARCHAR":
        return f"'x' || coalesce({name}, '')"
    if kind == "BOOLEAN":
        return f"NOT {name}"
    return f"list_append({name}, 'x')" if kind.endswith("[]") else f"coalesce({name}, 0) + 1"


def test_the_run_itself_is_clean(run, audited, honest):
    report = audited(run)
    assert report, str(report)
    assert report.notes == []
    assert audit_files(run)
    sealed_again(run)
    assert audited(run)


# --- tables --------------------------------------------------------------------------------------------

#: table → columns of which only the digest knows: nothing else depends on them
ONLY_DIGESTS = {
    "jobs": {"reason"},
    "timeline": {"queued_jobs", "queued_cores"},
    "nodes": set(),
}
ROWS = {"jobs": "id IN ('1', 'x1')", "timeline": "time = 1", "nodes": "rank IN (0, 1)"}


@pytest.mark.slow
@pytest.mark.parametrize("table", ["jobs", "timeline", "nodes"])
def test_each_column_of_each_table_is_found(run, audited, table, tmp_path):
    for name, kind in columns(run / f"{table}.parquet").items():
        copy = shutil.copytree(run, tmp_path / name)
        rewrite(
            copy / f"{table}.parquet", f'UPDATE t SET "{name}" = {another(name, kind)} WHERE {ROWS[table]}'
        )
        assert f"{table}.parquet was changed" in str(audit_files(copy)), name
        sealed_again(copy)
        report = audited(copy)
        assert "A10" not in report.counts
        assert bool(report) == (name in ONLY_DIGESTS[table]), f"{name}: {report}"


@pytest.mark.slow
def test_jobs_that_were_removed_or_invented_are_found(run, audited, tmp_path):
    for number, change in enumerate(
        (
            "DELETE FROM t WHERE id = '3'",
            "INSERT INTO t SELECT * REPLACE ('9' AS id) FROM t WHERE id = '3'",
            "UPDATE t SET runtime = runtime + 1 WHERE id = '2'",
            "UPDATE t SET backfilled = true WHERE id = '2'",
            "UPDATE t SET backfilled = false WHERE id = '3'",
            "UPDATE t SET cores = 1 WHERE id = '4'",
        )
    ):
        copy = shutil.copytree(run, tmp_path / str(number))
        rewrite(copy / "jobs.parquet", change)
        sealed_again(copy)
        assert not audited(copy), change


# --- R ---------------------------------------------------------------------------------------------------


def leaves(value, path=()):
    """Yield the path of every value in a document, and of every object."""
    if path:
        yield path
    for key, item in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from leaves(item, (*path, key))


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return "1" if value == "0" else "7" if value.replace("-", "").isdigit() else value + "x"
    return (
        type(value)()
        if value
        else ["x"]
        if isinstance(value, list)
        else {"x": 1}
        if isinstance(value, dict)
        else 1
    )


def put(document, path, change):
    for key in path[:-1]:
        document = document[key]
    if change is None:
        del document[path[-1]]
    else:
        document[path[-1]] = change(document[path[-1]])


@pytest.mark.slow
@pytest.mark.parametrize("change", [changed, None], ids=["changed", "removed"])
def test_each_field_of_a_record_and_its_R_is_found(run, audited, tmp_path, change):
    lines = [json.loads(line) for line in (run / "allocations.jsonl").read_text().splitlines()]
    at = next(n for n, line in enumerate(lines) if line["id"] == "3" and line["event"] == "alloc")
    for number, path in enumerate(leaves(lines[at])):
        record = json.loads(json.dumps(lines[at]))
        put(record, path, change)
        copy = shutil.copytree(run, tmp_path / str(number))
        text = "\n".join(json.dumps(record if n == at else line) for n, line in enumerate(lines))
        (copy / "allocations.jsonl").write_text(text + "\n")
        assert "allocations.jsonl was changed" in str(audit_files(copy)), path
        sealed_again(copy)
        assert not audited(copy), path


# --- run.json --------------------------------------------------------------------------------------------


def keys_of(meta):
    for name, value in meta.items():
        if name not in (*VOLATILE, "files", "sha256"):
            yield (name,)
            if name in ("config", "cluster", "counts"):
                yield from ((name, key) for key in value)


@pytest.mark.slow
@pytest.mark.parametrize("change", [changed, None], ids=["changed", "removed"])
def test_each_key_of_run_json_is_found(run, tmp_path, change):
    meta = json.loads((run / "run.json").read_text())
    for number, path in enumerate([*keys_of(meta), ("files",), ("sha256",)]):
        said = json.loads(json.dumps(meta))
        put(said, path, change)
        copy = shutil.copytree(run, tmp_path / str(number))
        (copy / "run.json").write_text(json.dumps(said))
        assert found(audit_files, copy, "run.json"), path


def found(audited, path, text):
    """Whether the audit finds a fault, or refuses the run with a message."""
    try:
        report = audited(path)
        return text in str(report) and not report
    except RunError as error:
        return text in str(error)


@pytest.mark.quick(5)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), 8),
        (("config", "match_policy"), "lonode"),
        (("config", "queue_policy"), "fcfs"),
        (("config", "overrun"), "allow"),
        (("cluster", "totals"), {"node": 4, "core": 9, "gpu": 4}),
        (("cluster", "targets"), 5),
        (("config", "outages"), []),
        *((("counts", name), 7) for name in ("jobs", "run", "unfinished", "completed", "timeout", "failed")),
    ],
)
def test_what_run_json_says_is_held_against_the_rest(run, audited, path, value):
    meta = json.loads((run / "run.json").read_text())
    put(meta, path, lambda _: value)
    (run / "run.json").write_text(json.dumps(meta))
    sealed_again(run)
    report = audited(run)
    assert not report
    assert "A10" not in report.counts


def test_a_record_without_its_digests_is_found_by_the_tables(run, audited):
    meta = json.loads((run / "run.json").read_text())
    del meta["files"], meta["sha256"]
    (run / "run.json").write_text(json.dumps(meta))
    assert "run.json has no digests of the files" in str(audited(run))
    assert not audited(run)


def test_a_run_of_a_version_without_digests_is_clean_with_a_note(run, audited):
    rewrite(run / "jobs.parquet", "ALTER TABLE t DROP COLUMN recorded_state")
    meta = json.loads((run / "run.json").read_text())
    del meta["files"], meta["sha256"], meta["whole_nodes"]
    (run / "run.json").write_text(json.dumps(meta))
    report = audited(run)
    assert report, str(report)
    assert "so they were not compared" in report.notes[0]


# --- files -----------------------------------------------------------------------------------------------

NAMES = (
    *("run.json", "summary.json", "jobs.parquet", "timeline.parquet", "nodes.parquet"),
    *("allocations.jsonl", "eventlog.jsonl"),
)


@pytest.mark.quick(8)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["removed", "emptied", "cut", "flipped"])
def test_each_file_that_is_missing_cut_or_changed_is_found(run, audited, name, how):
    data = (run / name).read_bytes()
    (run / name).unlink()
    if how != "removed":
        kept = {
            "emptied": b"",
            "cut": data[: len(data) // 2],
            "flipped": data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        }
        (run / name).write_bytes(kept[how])
    assert found(audited, run, name)


@pytest.mark.slow
def test_an_eventlog_that_was_cut_at_a_line_is_found_by_what_it_says(run, audited):
    lines = (run / "eventlog.jsonl").read_text().splitlines(keepends=True)
    for kept in range(0, len(lines), 4):
        (run / "eventlog.jsonl").write_text("".join(lines[:kept]))
        sealed_again(run)
        assert "A9" in audited(run).counts, kept


# --- inputs ----------------------------------------------------------------------------------------------


def test_an_input_that_changed_is_found_and_one_that_is_gone_is_named(honest, tmp_path):
    for name in ("cluster.json", "jobs.swf"):
        shutil.copy(honest / name, tmp_path)
    cluster, workload = load_cluster(tmp_path / "cluster.json"), load_workload(tmp_path / "jobs.swf")
    path = simulate(tmp_path / "cluster.json", tmp_path / "jobs.swf").save(tmp_path / "run")
    (tmp_path / "jobs.swf").write_text(JOBS.replace("1 0 -1", "1 1 -1"))
    assert f"the workload {tmp_path / 'jobs.swf'} has changed since" in str(
        audit_run(path, cluster, workload)
    )
    (tmp_path / "jobs.swf").unlink()
    report = audit_run(path, cluster, workload)
    assert report
    assert report.notes == [f"the workload {tmp_path / 'jobs.swf'} is missing and was not compared"]
