"""`simsched report`: formats, names, files, and what is refused."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main


@pytest.fixture
def run_dir(tmp_path):
    """A run directory of two jobs, written by hand."""
    import duckdb

    folder = tmp_path / "easy"
    folder.mkdir()
    duckdb.sql(
        """select * from (values ('a', 0.0, 0.0, 60.0, 4, 'COMPLETED'), ('b', 10.0, 60.0, 90.0, 2, 'TIMEOUT'))
           t(id, submit, start, "end", cores, result)"""
    ).write_parquet(str(folder / "jobs.parquet"))
    duckdb.sql(
        """select * from (values (0.0, 4, 0), (10.0, 4, 1), (60.0, 2, 0), (90.0, 0, 0))
           t(time, used_core, queued_jobs)"""
    ).write_parquet(str(folder / "timeline.parquet"))
    meta = {"simsched": "0", "format": 1, "complete": True, "cluster": {"name": "x", "totals": {"core": 4}}}
    (folder / "run.json").write_text(json.dumps(meta))
    return folder


def test_text_is_the_default(run_dir, capsys):
    assert main(["report", str(run_dir)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("easy\nx: 4 cores\n")
    assert "utilisation      core 83.3 %" in out


def test_json_goes_to_stdout(run_dir, capsys):
    assert main(["report", str(run_dir), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"][0]["summary"]["mean_wait"] == 25


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.json", "{"), ("r.csv", "metric,unit,easy"), ("r.md", "|  | easy |"), ("r.txt", "easy\n")],
)
def test_the_ending_of_the_file_gives_the_format(run_dir, tmp_path, capsys, name, start):
    assert main(["report", str(run_dir), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text().startswith(start)
    assert capsys.readouterr().out == ""


def test_a_dash_is_stdout(run_dir, capsys):
    assert main(["report", str(run_dir), "-o", "-", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("metric,")


def test_runs_are_named_and_equal_names_numbered(run_dir, capsys):
    assert main(["report", f"mine={run_dir}", str(run_dir), str(run_dir), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("metric,unit,mine,easy,easy (2)\n")


def test_several_runs_are_compared(run_dir, capsys):
    assert main(["report", str(run_dir), f"b={run_dir}"]) == 0
    assert "b against easy, 2 jobs paired: within noise" in capsys.readouterr().out


def test_a_directory_with_an_equals_sign_is_a_directory(run_dir, capsys):
    moved = run_dir.rename(run_dir.parent / "k=v")
    assert main(["report", str(moved), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("metric,unit,k=v\n")


def test_no_such_run(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "there is no such run directory" in capsys.readouterr().err


def test_html_needs_a_file(run_dir, capsys):
    assert main(["report", str(run_dir), "--format", "html"]) == 2
    assert "expected -o FILE" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(run_dir, tmp_path, capsys):
    assert main(["report", str(run_dir), "-o", str(tmp_path / "no" / "r.csv")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_groups_and_warm_up(run_dir, capsys):
    assert main(["report", str(run_dir), "--by", "result", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("easy,COMPLETED,1,0,")
    assert main(["report", str(run_dir), "--warm-up", "5s", "--format", "csv"]) == 0
    assert "jobs,jobs,1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--warm-up", "msre"], "--warm-up: 'msre' is not a duration (expected"),
        (["--warm-up", "msre"], "or inf, or a date, or mser, or welch)"),
        (["--drain", "mser"], "or inf, or a date)"),
        (["--warm-up", "mser"], "2 jobs are too few for a warm-up by MSER-5"),
        (["--drain", "9d"], "no job was submitted between warm-up and drain"),
        (["--by", "user", "--format", "html", "-o", "x.html"], "there is no table --by in the format html"),
    ],
)
def test_what_cannot_be_left_out_or_grouped(run_dir, capsys, arguments, message):
    assert main(["report", str(run_dir), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_plot_lists_its_kinds_and_writes_a_picture(run_dir, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["plot", "list"]) == 0
    assert "gantt " in capsys.readouterr().out
    assert main(["plot", "wait", str(run_dir), "-o", str(tmp_path / "w.svg")]) == 0
    assert (tmp_path / "w.svg").read_text().startswith("<?xml")
    assert main(["plot", "pie", str(run_dir)]) == 2
    assert "expected gantt, utilisation" in capsys.readouterr().err
    assert main(["plot", "wait"]) == 2


def test_the_html_page_is_written(run_dir, tmp_path, capsys):
    pytest.importorskip("bokeh")
    assert main(["report", str(run_dir), "-o", str(tmp_path / "r.html")]) == 0
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")


def test_an_ending_that_tells_no_format_is_refused(capsys, tmp_path):
    from simsched.cli import main

    target = tmp_path / "x.zzz"
    assert main(["report", "nowhere", "-o", str(target)]) == 2
    assert (
        f"{target}: the ending .zzz does not select a format (expected .txt, .json" in capsys.readouterr().err
    )
    assert not target.exists()


def test_jobs_one_by_one_as_csv_have_every_column(run_dir, tmp_path, capsys):
    import pandas as pd

    import simsched as ss

    target = tmp_path / "jobs.csv"
    assert main(["report", str(run_dir), "--by", "job", "-o", str(target)]) == 0
    table = pd.read_csv(target)
    assert list(table["id"]) == ["a", "b"]
    assert list(table["wait"]) == [0.0, 50.0]
    assert set(ss.load_run(run_dir).jobs.columns) - {"id"} <= set(table.columns)


def test_jobs_one_by_one_as_text(run_dir, capsys):
    assert main(["report", str(run_dir), "--by", "job"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["job", "user", "queue", "submit", "wait", "end", "nodes", "result"]
    assert (first.split()[0], first.split()[-1]) == ("a", "COMPLETED")
    assert (second.split()[0], second.split()[-1]) == ("b", "TIMEOUT")


@pytest.fixture
def dated(tmp_path):
    """A run of three jobs in two weeks and two months, whose log has dates, accounts and starts."""
    log = tmp_path / "log.csv"
    log.write_text(
        "JobID|User|Account|Submit|Start|End|Timelimit|NCPUS|NNodes|State\n"
        "1|ann|bio|2024-01-30T10:00:00|2024-01-30T10:10:00|2024-01-30T11:00:00|02:00:00|4|1|COMPLETED\n"
        "2|bob|phys|2024-01-31T10:00:00|2024-01-31T10:00:00|2024-01-31T11:00:00|02:00:00|4|1|COMPLETED\n"
        "3|ann|bio|2024-02-06T10:00:00|2024-02-06T10:00:00|2024-02-06T11:00:00|02:00:00|4|1|COMPLETED\n"
    )
    assert main(["run", "tiny", str(log), "-o", str(tmp_path / "run"), "--quiet"]) == 0
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("key", "groups"),
    [
        ("week", ["2024-W05", "2024-W06"]),
        ("month", ["2024-01", "2024-02"]),
        ("account", ["bio", "phys"]),
        ("user", ["ann", "bob"]),
        ("all", ["all"]),
    ],
)
def test_one_list_of_groups_for_both_tables_of_groups(dated, capsys, key, groups):
    capsys.readouterr()
    for arguments in (["--by", key], ["--recorded", key], ["--recorded", "--by", key]):
        assert main(["report", str(dated), "--format", "csv", *arguments]) == 0
        captured = capsys.readouterr()
        head, *lines = captured.out.splitlines()
        assert head.split(",")[:2] == ["run", key]
        assert [line.split(",")[1] for line in lines] == groups
        assert captured.err == ""


def test_without_dates_there_are_weeks_and_no_months(run_dir, capsys):
    assert main(["report", str(run_dir), "--by", "week", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("easy,0,2,")
    assert main(["report", str(run_dir), "--by", "month"]) == 2
    assert "no dates" in capsys.readouterr().err


def test_options_of_another_table_are_named(run_dir, capsys):
    assert main(["report", str(run_dir), "--audit", "--by", "user"]) in (0, 1)
    assert "--by was not used" in capsys.readouterr().err


def test_tables_of_a_run_can_be_joined(dated):
    import duckdb

    rows = duckdb.sql(
        f"""select id, wait from read_parquet('{dated}/jobs.parquet')
            join read_json('{dated}/allocations.jsonl') using (id) where event = 'alloc' order by id"""
    ).fetchall()
    assert rows == [("1", 0.0), ("2", 0.0), ("3", 0.0)]


def test_three_runs_are_compared_pair_by_pair(tmp_path, run_dir, capsys):
    names = [f"{name}={run_dir}" for name in ("a", "b", "c")]
    assert main(["report", *names]) == 0
    assert "all pairs" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main(["report", *names, "-o", str(page)]) == 0
    assert "All pairs of runs" in page.read_text()


NEWER = [
    "report RUN",
    "report RUN --audit",
    "why RUN",
    "forecast RUN",
    "export RUN --to swf",
    "plot queue RUN",
]


@pytest.mark.parametrize("command", NEWER)
def test_a_run_of_a_newer_version_is_refused_by_its_format(run_dir, capsys, command):
    record = run_dir / "run.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "format": 7, "simsched": "9.1"}))
    assert main([str(run_dir) if word == "RUN" else word for word in command.split()]) == 2
    assert "run format 7 of simsched 9.1 is not known" in capsys.readouterr().err


def test_a_log_beyond_the_machine_is_stated_first(tmp_path, capsys):
    log = tmp_path / "jobs.yaml"
    lines = [
        f"- {{id: {n}, submit: {n * 10}, duration: 60, runtime: 60, shape: slot=16/core}}" for n in range(20)
    ]
    lines.append("- {id: big, submit: 5, duration: 60, shape: slot=17/core}")
    log.write_text("\n".join(["jobs:", *lines]))
    assert main(["run", "tiny", str(log), "-o", str(tmp_path / "r"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path / "r")]) == 0
    head = " ".join(capsys.readouterr().out.split("─")[0].split())
    assert "1 of 21 jobs need more than this machine has" in head
    assert "need 631.6 % of the machine" in head
