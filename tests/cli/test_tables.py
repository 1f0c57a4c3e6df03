"""``workload columns``, ``workload presets``, and ``--columns`` of the verbs that read workloads."""

from __future__ import annotations

import pytest

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
