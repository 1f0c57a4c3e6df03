"""``workload columns``, ``workload presets``, and ``--columns`` of the verbs that read workloads."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.cli import main

TABLE = "number,queued,took,cores,mins\n1,2026-03-01 08:00:00,60,4,5\n2,2026-03-01 08:00:10,60,4,5\n"
MAP = "columns:\n  submit: queued\n  runtime: took\n  limit: {column: mins, unit: min}\n  cores: cores\n"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "m.yaml").write_text(MAP)
    return "t.csv"


def test_a_proposed_map_reads_the_table(table, capsys, tmp_path):
    assert main(["workload", "columns", table]) == 0
    proposed = capsys.readouterr().out
    assert "  submit: queued" in proposed
    assert "# not used:\n#   took" in proposed
    (tmp_path / "p.yaml").write_text(proposed.replace("# not used:", "  runtime: took\n# not used:"))
    assert main(["workload", "show", table, "--columns", "p.yaml"]) == 0
    assert "2 jobs of 2 records (table)" in capsys.readouterr().out


def test_the_presets_are_listed_and_shown(capsys):
    assert main(["workload", "presets"]) == 0
    out = capsys.readouterr().out
    assert "pm100" in out
    assert "doi:10.5281/zenodo.8129257" in out
    assert main(["workload", "presets", "pm100"]) == 0
    assert "unit: min" in capsys.readouterr().out
    assert main(["workload", "presets", "pm10"]) == 2
    assert "did you mean pm100" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    ["run tiny t.csv -o out", "workload convert t.csv --to swf", "forecast tiny t.csv --at 5",
     pytest.param("size tiny t.csv --grow node3 --target p95_wait<=1h", marks=pytest.mark.slow)],
)  # fmt: skip
def test_every_verb_takes_a_map(table, command, capsys):
    assert main([*command.split(), "--columns", "m.yaml"]) == 0


def test_faults_are_one_line_with_their_place(table, capsys, tmp_path):
    (tmp_path / "m.yaml").write_text(MAP.replace("cores: cores", "cores: coers"))
    assert main(["workload", "show", table, "--columns", "m.yaml"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("simsched: error: m.yaml: columns.cores: there is no column 'coers' in t.csv")
    assert "did you mean cores" in err
    assert err.count("\n") == 1
    (tmp_path / "t.csv").write_text("")
    assert main(["workload", "show", table, "--columns", "m.yaml"]) == 2
    assert "the table is empty" in capsys.readouterr().err


SLURM_DATABASE = """\
id_job,id_user,nodes_alloc,nodelist,cpus_req,mem_req,partition,state,timelimit,time_submit,time_eligible,time_start,time_end
11,5001,1,n1,4,9223372036854779904,p,3,60,1600000000,1600000000,1600000010,1600003000
12,5001,2,n[1-2],8,64000,p,6,4294967295,1600000100,1600000100,1600000110,1600009000
13,5002,1,n2,4,64000,p,4,120,1600000200,1600000200,0,1600000300
14,5002,1,n2,4,64000,p,1,4294967294,1600000300,1600000300,1600000400,0
"""


def test_a_table_of_the_database_of_slurm_is_read_by_the_proposed_map(tmp_path, capsys):
    (tmp_path / "jobs.csv").write_text(SLURM_DATABASE)
    assert main(["workload", "columns", str(tmp_path / "jobs.csv")]) == 0
    (tmp_path / "map.yaml").write_text(capsys.readouterr().out)
    found = ss.load_workload(tmp_path / "jobs.csv", columns=tmp_path / "map.yaml")
    first, second = found.jobs
    assert (first.id, first.duration, first.runtime, first.wait, first.procs) == (11, 3600, 2990, 10, 4)
    assert (first.user, first.queue, first.status, first.memory) == (
        "5001",
        "p",
        "COMPLETED",
        4096 * 1024,
    )
    assert (second.duration, second.status, second.memory) == (None, "TIMEOUT", 2 * 64000 * 1024 // 8)
    assert sum(found.skipped_counts.values()) == 2  # one never started, one was running


@pytest.mark.parametrize(
    ("head", "row", "expected"),
    [
        ("walltime,requested_walltime", "355,3600", ["runtime: walltime", "limit: requested_walltime"]),
        ("walltime,elapsed", "3600,355", ["runtime: elapsed", "limit: walltime"]),
        (
            "walltime,time_limit,run_time",
            "355,60,355",
            ["runtime: run_time", "{column: time_limit, unit: min}"],
        ),
        ("runtime,time_limit", "355,3600", ["runtime: runtime", "limit: time_limit "]),
        ("elapsed,TimelimitRaw", "10,60", ["{column: TimelimitRaw, unit: min}"]),
    ],
)
def test_a_run_time_is_proposed_as_the_run_time_and_a_limit_as_the_limit(
    tmp_path, capsys, head, row, expected
):
    path = tmp_path / "t.csv"
    path.write_text(f"id,submit,cores,{head}\n" + f"1,1600000000,4,{row}\n" * 3)
    assert main(["workload", "columns", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in expected), out


def test_a_proposal_does_not_read_nested_columns_of_parquet(tmp_path, capsys):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t.parquet"
    duckdb.sql(
        "copy (select range as job_id, 1600000000 + range as submit_time, 60 as runtime, 4 as cores, "
        f"[range, 7] as power from range(5)) to '{path}' (format parquet)"
    )
    assert main(["workload", "columns", str(path)]) == 0
    assert "power  BIGINT[]\n" in capsys.readouterr().out


def test_no_copy_of_a_packed_table_has_a_name_while_it_is_read(tmp_path, monkeypatch):
    import bz2
    import tempfile
    from pathlib import Path

    from simsched.workload.readers.tables import table_reader
    from simsched.workload.readers.tables.table_reader import Rows

    seen = []

    class Watched(Rows):
        def prepare(self, limit):
            seen.append(list((tmp_path / "temporary").iterdir()))
            super().prepare(limit)

    if not Path("/proc/self/fd").exists():
        pytest.skip("files are opened again by their number")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(TABLE.encode()))
    (tmp_path / "m.yaml").write_text(MAP)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(table_reader, "Rows", Watched)
    assert len(ss.load_workload(tmp_path / "t.csv.bz2", columns=tmp_path / "m.yaml").jobs) == 2
    assert seen == [[]]
