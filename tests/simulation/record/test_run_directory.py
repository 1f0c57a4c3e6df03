"""A run directory: the public data contract, written whole or not at all."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import duckdb
import pytest

from simsched.errors import ConfigError, RunError
from simsched.simulation.record.run_directory import RunDirectory
from simsched.simulation.simulate import simulate
from simsched.workload.job import Skip, Workload
from simsched.workload.load import load_workload
from tests.simulation.simworld import job, machine, run, workload

JOBS_COLUMNS = [
    *(
        "id",
        "name",
        "user",
        "bank",
        "queue",
        "urgency",
        "submit",
        "eligible",
        "start",
        "wait",
        "end",
        "duration",
    ),
    *("runtime", "nodes", "cores", "gpus", "slots", "procs", "result", "reason", "backfilled"),
    *("promised", "shape", "recorded_state", "recorded_start", "recorded_wait"),
]
QUEUE = (
    job(1, 0, "slot=3/core", 6, user="ann", queue="batch"),
    job(2, 1, "slot=4/core", 4, procs=4),
    job(3, 2, "slot=1/core", 4, float("inf")),
    job(4, 2, "slot=5/core", 4),
)


def table(path):
    return duckdb.sql(f"SELECT * FROM read_parquet('{path}')")


def test_the_tables_have_the_columns_of_the_contract(tmp_path):
    path = run(machine(4), *QUEUE).save(tmp_path / "run")
    jobs = table(path / "jobs.parquet")
    assert jobs.columns == JOBS_COLUMNS
    types = dict(zip(jobs.columns, map(str, jobs.types), strict=True))
    assert {types[name] for name in ("id", "user", "result", "reason", "shape")} == {"VARCHAR"}
    assert {
        types[name] for name in ("submit", "eligible", "start", "end", "duration", "runtime", "promised")
    } == {"DOUBLE"}
    assert {types[name] for name in ("urgency", "nodes")} == {"INTEGER"}
    assert {types[name] for name in ("cores", "gpus", "slots", "procs")} == {"BIGINT"}
    assert types["backfilled"] == "BOOLEAN"
    first, second, third, never = jobs.fetchall()
    assert first == (
        *("1", None, "ann", None, "batch", 16, 0.0, 0.0, 0.0, 0.0, 6.0, 6.0, 6.0),
        *(3, 3, 0, 3, None, "COMPLETED", None, False, None, "slot=3/core", None, None, None),
    )
    assert second[JOBS_COLUMNS.index("procs")] == 4
    assert third[JOBS_COLUMNS.index("duration")] == float("inf")
    assert never[JOBS_COLUMNS.index("start")] is None
    assert never[JOBS_COLUMNS.index("reason")].startswith("slot: 5 needed, 4 available")


def test_the_timeline_says_what_is_free_used_and_down_after_each_instant(tmp_path):
    path = run(machine(4), *QUEUE[:2]).save(tmp_path / "run")
    rows = table(path / "timeline.parquet")
    assert rows.columns == [
        *("time", "free_node", "used_node", "down_node", "free_core", "used_core", "down_core"),
        *("queued_jobs", "queued_cores", "running_jobs"),
    ]
    assert rows.fetchall() == [
        (0.0, 1, 3, 0, 1, 3, 0, 0, 0, 1),
        (1.0, 1, 3, 0, 1, 3, 0, 1, 4, 1),
        (6.0, 0, 4, 0, 0, 4, 0, 0, 0, 1),
        (10.0, 4, 0, 0, 4, 0, 0, 0, 0, 0),
    ]


def test_allocations_are_one_r_a_line_and_releases_add_up(tmp_path):
    path = run(machine(4), *QUEUE[:2]).save(tmp_path / "run")
    lines = [json.loads(line) for line in (path / "allocations.jsonl").read_text().splitlines()]
    assert [(line["id"], line["event"], line["time"]) for line in lines] == [
        ("1", "alloc", 0),
        ("1", "release", 6),
        ("2", "alloc", 6),
        ("2", "release", 10),
    ]
    assert lines[0]["R"] == lines[1]["R"]
    execution = lines[0]["R"]["execution"]
    assert execution["R_lite"] == [{"rank": "0-2", "children": {"core": "0"}}]
    assert (execution["starttime"], execution["expiration"], execution["nslots"]) == (0, 6, 3)
    scheduler = lines[0]["R"]["attributes"]["system"]["scheduler"]
    assert scheduler == {"queue": "batch", "policy": "first", "queue_policy": "easy"}


def test_run_json_says_what_was_run(tmp_path):
    path = run(machine(4), *QUEUE, seed=7, order="sjf").save(tmp_path / "run")
    meta = json.loads((path / "run.json").read_text())
    assert meta["complete"] is True
    assert meta["seed"] == 7
    assert meta["config"]["order"] == "sjf"
    assert meta["cluster"] == {"name": "machine", "targets": 4, "totals": {"node": 4, "core": 4}}
    assert meta["counts"]["jobs"] == 4
    assert meta["counts"]["run"] == 3
    assert meta["counts"]["infeasible"] == 1


def test_dropped_records_stand_in_the_table_of_jobs(tmp_path):
    dropped = Skip("trace.swf:9", "never started", "9 0 …", 9, 77)
    made = Workload(
        jobs=workload(*QUEUE).jobs, skipped=(dropped,), skipped_counts={"never started": 1}, total_records=5
    )
    result = simulate(machine(4), made)
    assert result.jobs["id"].tolist()[-1] == "9"
    assert result.jobs["result"].tolist()[-1] == "DROPPED"
    assert result.jobs["reason"].tolist()[-1] == "never started"
    assert result.meta["counts"]["dropped"] == 1
    assert table(result.save(tmp_path / "run") / "jobs.parquet").fetchall()[-1][6] == 77.0


def test_the_state_that_a_trace_recorded_is_in_the_table_of_jobs(tmp_path):
    text = "\n".join(
        f"{n} {n} 0 9 1 -1 -1 1 20 -1 {status} 1 1 1 1 -1 -1 -1"
        for n, status in ((1, 1), (2, 0), (3, 5), (4, -1))
    )
    trace = tmp_path / "trace.swf"
    trace.write_text(text + "\n")
    path = simulate(machine(4), load_workload(trace)).save(tmp_path / "run")
    rows = duckdb.sql(f"SELECT id, recorded_state FROM '{path}/jobs.parquet' ORDER BY id").fetchall()
    assert rows == [("1", "COMPLETED"), ("2", "FAILED"), ("3", "CANCELED"), ("4", None)]


def test_the_starts_that_a_trace_recorded_are_beside_the_simulated_ones(tmp_path):
    rows = ((1, 10, 5), (2, 20, -1), (3, 30, 0))  # id, submission, wait; -1 is unknown
    text = "\n".join(f"{n} {at} {wait} 9 1 -1 -1 1 20 -1 1 1 1 1 1 -1 -1 -1" for n, at, wait in rows)
    trace = tmp_path / "trace.swf"
    trace.write_text(text + "\n")
    path = simulate(machine(4), load_workload(trace)).save(tmp_path / "run")
    names = "submit, recorded_start, recorded_wait"
    rows = duckdb.sql(f"SELECT {names} FROM '{path}/jobs.parquet' ORDER BY id").fetchall()
    assert rows == [(10, 15, 5), (20, None, None), (30, 30, 0)]


def test_an_empty_run_can_be_written(tmp_path):
    path = run(machine(1)).save(tmp_path / "run")
    assert table(path / "jobs.parquet").fetchall() == []


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@pytest.mark.parametrize("match", ["first", "random"])
def test_the_same_seed_gives_the_same_bytes(tmp_path, policy, match):
    jobs = [job(n, n // 3, f"slot={1 + n % 5}/core", 1 + n % 7, 9) for n in range(60)]
    made = [
        run(machine(6, cores=2), *jobs, policy=policy, match_policy=match, seed=3).save(tmp_path / name)
        for name in ("one", "two")
    ]
    for name in ("jobs.parquet", "timeline.parquet", "allocations.jsonl"):
        first, second = ((path / name).read_bytes() for path in made)
        assert first == second, name
    other = run(machine(6, cores=2), *jobs, policy=policy, match_policy=match, seed=4).save(
        tmp_path / "other"
    )
    same = (other / "allocations.jsonl").read_bytes() == (made[0] / "allocations.jsonl").read_bytes()
    assert same == (match == "first")


def test_streaming_gives_the_same_lines_as_memory(tmp_path):
    kept = run(machine(4), *QUEUE)
    with RunDirectory(tmp_path / "run") as directory:
        sink = directory.allocations()
        streamed = run(machine(4), *QUEUE, sink=sink)
        path = directory.finish(streamed, {"note.txt": "hello"})
    assert (path / "allocations.jsonl").read_text() == kept.log.text()
    assert (path / "note.txt").read_text() == "hello"


# --- what is there already -------------------------------------------------------------------------------


def test_an_earlier_run_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "run"
    run(machine(4), *QUEUE).save(target, files={"extra.txt": "of the earlier run"})
    run(machine(4), *QUEUE[:1]).save(target)
    assert len(table(target / "jobs.parquet").fetchall()) == 1
    assert not (target / "extra.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_empty_directory_is_taken(tmp_path):
    (tmp_path / "run").mkdir()
    run(machine(4), *QUEUE).save(tmp_path / "run")


def test_anything_else_is_refused_and_left_alone(tmp_path):
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter1.tex").write_text("…")
    with pytest.raises(RunError, match="not a run"):
        run(machine(4), *QUEUE).save(precious)
    file = tmp_path / "file"
    file.write_text("…")
    with pytest.raises(RunError, match="this is a file"):
        run(machine(4), *QUEUE).save(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "thesis"]
    assert [path.name for path in precious.iterdir()] == ["chapter1.tex"]


def test_a_run_that_fails_leaves_nothing(tmp_path):
    def explode(tmp):
        with RunDirectory(tmp) as directory:
            directory.allocations().write(b"half a line")
            raise RuntimeError("the machine caught fire")

    with pytest.raises(RuntimeError, match="fire"):
        explode(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_stopped_is_marked_partial_and_replaces_nothing(tmp_path):
    run(machine(4), *QUEUE).save(tmp_path / "run")
    stop = threading.Event()
    stop.set()
    result = run(machine(4), *QUEUE, stop=stop)
    assert result.meta["complete"] is False
    assert result.jobs["result"].tolist() == ["RUNNING", "PENDING", "PENDING", "PENDING"]
    path = result.save(tmp_path / "run")
    assert path.name == "run.partial"
    assert json.loads((path / "run.json").read_text())["complete"] is False
    assert json.loads((tmp_path / "run" / "run.json").read_text())["complete"] is True


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match="unknown option 'quue'"):
        run(machine(1), quue=1)
    with pytest.raises(ConfigError, match="overrun: unknown value 'kill'"):
        run(machine(1), overrun="kill")
    with pytest.raises(ConfigError, match="seed"):
        run(machine(1), seed=-1)
    with pytest.raises(ConfigError, match="unknown match policy"):
        run(machine(1), QUEUE[0], match_policy="frist")


def test_sha256_of_the_inputs(tmp_path):
    source = tmp_path / "cluster.json"
    source.write_text("{}")
    cluster = machine(1)
    cluster.source = str(source)
    inputs = run(cluster, job(1, 0, "slot=1/core", 1)).meta["inputs"]
    assert inputs[0] == {
        "role": "cluster",
        "name": str(source),
        "sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    }
    assert Path(inputs[0]["name"]).is_file()
    assert inputs[1]["sha256"] is None


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(tmp_path):
    (tmp_path / "file").write_text("…")
    target = tmp_path / "file" / "run"
    with pytest.raises(RunError, match="cannot be written") as found:
        run(machine(1)).save(target)
    assert found.value.where == str(target)
