"""Every study runs on a small part of its workload and writes its page and figures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests import REPOSITORY

STUDIES = ("queue_policies", "match_policies", "how_many_nodes", "estimates", "outages", "coverage")

OF_LOGS = ("forecasts", "four_logs")
"""Studies that need logs of the Parallel Workloads Archive."""


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_writes_its_page_and_figures(name, tmp_path):
    pytest.importorskip("matplotlib")
    environment = {**os.environ, "SIMSCHED_STUDIES": str(tmp_path), "SIMSCHED_STUDIES_QUICK": "1"}
    command = [sys.executable, "-m", f"analysis.studies.{name}"]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    page = (tmp_path / f"{name}.md").read_text()
    for part in ("## Question", "## Method", "## Result"):
        assert part in page
    assert not re.search(r"\bnan\b", page)
    figures = re.findall(r"\]\((figures/[^)]+)\)", page)
    assert figures
    for figure in figures:
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_LOGS)
def test_a_study_of_logs_writes_its_page_or_says_what_it_needs(name, tmp_path):
    pytest.importorskip("matplotlib")
    environment = {**os.environ, "SIMSCHED_STUDIES": str(tmp_path), "SIMSCHED_STUDIES_QUICK": "1"}
    command = [sys.executable, "-m", f"analysis.studies.{name}"]
    without = {key: value for key, value in environment.items() if key != "SIMSCHED_TRACES"}
    done = subprocess.run(command, cwd=REPOSITORY, env=without, capture_output=True, text=True, check=True)
    assert "needs SIMSCHED_TRACES" in done.stdout
    if "SIMSCHED_TRACES" not in os.environ:
        pytest.skip("no logs")
    subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    page = (tmp_path / f"{name}.md").read_text()
    assert "## Question" in page
    assert not re.search(r"\bnan\b", page)


@pytest.mark.parametrize("name", [*STUDIES, *OF_LOGS])
def test_a_study_uses_the_public_interface_only(name):
    """No underscored module, no room of the engine: what a study does, its reader can do."""
    source = (REPOSITORY / "analysis" / "studies" / f"{name}.py").read_text()
    imported = re.findall(r"^\s*(?:from|import) (simsched[\w.]*)", source, re.MULTILINE)
    assert imported
    for module in imported:
        assert module in {"simsched", "simsched.study.stats"} or module.startswith("simsched.report"), module


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_that_is_kept_has_its_figures(name):
    folder = REPOSITORY / "analysis" / "studies"
    page = (folder / f"{name}.md").read_text()
    for figure in re.findall(r"\]\((figures/[^)]+)\)", page):
        assert (folder / figure).is_file()


@pytest.mark.slow
def test_the_tour_runs_cell_by_cell(monkeypatch, tmp_path):
    pytest.importorskip("bokeh")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notebook = json.loads((REPOSITORY / "analysis" / "tour.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not any(o["output_type"] == "error" for o in cell["outputs"])
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert "<!DOCTYPE html>" in names["page"]


def test_the_folder_of_kept_parts_is_made(tmp_path, monkeypatch):
    from analysis.studies import common

    monkeypatch.setattr(common, "KEPT", str(tmp_path / "new" / "work"))
    file = common.kept_file("part.json")
    assert file == tmp_path / "new" / "work" / "part.json"
    assert file.parent.is_dir()
    monkeypatch.setattr(common, "KEPT", None)
    assert common.kept_file("part.json") is None
