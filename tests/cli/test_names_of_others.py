"""Names in a trace are only shown: by no output are they obeyed or computed."""

from __future__ import annotations

import csv
import io
import json

import pytest

from simsched.visible import cell, visible

ESCAPE = "\x1b]0;owned\x07\x9b31m\u202ered"
FORMULA = '=HYPERLINK("x")'


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    from simsched.cli import main

    folder = tmp_path_factory.mktemp("names")
    jobs = [
        {
            "id": 1,
            "submit": 0,
            "shape": "slot=1/core",
            "duration": 60,
            "user": f"al{ESCAPE}",
            "queue": FORMULA,
        },
        {"id": f"2{ESCAPE}", "submit": 1, "shape": "slot=4/node", "duration": 60, "user": "@bob"},
    ]
    workload = folder / "jobs.json"
    workload.write_text(json.dumps({"jobs": jobs}))
    assert main(["run", "tiny", str(workload), "-o", str(folder / "run"), "--quiet"]) == 0
    return folder, workload


@pytest.mark.parametrize("kind", ["text", "csv", "markdown", "json"])
@pytest.mark.parametrize("by", ["user", "queue", "job", None])
def test_reports_show_no_control_character(run, done, kind, by):
    folder, _ = done
    words = ["report", f"x{ESCAPE}={folder / 'run'}", "--format", kind, *(["--by", by] if by else [])]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert out == visible(out)
    target = folder / f"{by}.{kind}"
    assert run(*words, "-o", target)[0] == 0
    assert visible(target.read_text()) == target.read_text()
    if kind == "json":
        json.loads(out)


def test_a_csv_has_no_formula(run, done):
    folder, _ = done
    for by in ("user", "queue", "job"):
        out = run("report", folder / "run", "--by", by, "--format", "csv")[1]
        cells = [one for row in csv.reader(io.StringIO(out)) for one in row]
        assert [one for one in cells if one.startswith(("=", "@", "+"))] == []
    assert any(one.startswith("'@bob") for one in cells)


def test_other_verbs_show_no_control_character(run, done):
    _, workload = done
    for words in (["forecast", "tiny", workload, "--at", "0"], ["workload", "show", workload]):
        status, out, err = run(*words)
        assert status == 0, err
        assert out == visible(out)
        assert err == visible(err)


@pytest.mark.parametrize("value", [-1, 1.5, None, True])
def test_numbers_are_no_formulas(value):
    assert cell(value) is value
