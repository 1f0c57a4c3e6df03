"""docs/studies.md: its studies are studies, its commands and its Python say what really comes out."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil

import pytest
import yaml

from simsched.cli import main
from simsched.study.runs.sweep_plan import plan
from simsched.study.spec.study_file import load_study, study_from_dict
from tests import REPOSITORY

MANUAL = (REPOSITORY / "docs" / "studies.md").read_text(encoding="utf-8")
SWEEPS = sorted((REPOSITORY / "analysis" / "sweeps").glob("*.yaml"))


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", MANUAL, re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_the_studies_of_the_manual(text):
    assert len(study_from_dict(yaml.safe_load(text)).tasks) > 5


def test_the_first_study_is_the_one_that_is_there():
    there = load_study(REPOSITORY / "analysis" / "sweeps" / "first.yaml")
    written = study_from_dict(yaml.safe_load(blocks("yaml")[0]))
    assert [task.key for task in there.tasks] == [task.key for task in written.tasks]


@pytest.mark.parametrize("file", SWEEPS, ids=lambda file: file.stem)
def test_the_studies_that_are_there(file):
    assert plan(load_study(file), measure=False).notes == ()


def as_pattern(expected):
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r" *\n"
        for line in expected.splitlines()
    ]
    return "".join(lines)


@pytest.mark.slow
def test_the_commands(tmp_path, monkeypatch, capsys):
    shutil.copy(REPOSITORY / "analysis" / "sweeps" / "first.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    steps = [step for block in blocks("console") for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(steps) == 3
    for step in steps:
        command, _, expected = step.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "simsched"
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert re.fullmatch(as_pattern(expected), out), f"$ {command}\n{out}"
    assert (tmp_path / "first" / "report.html").is_file()


def test_the_python(tmp_path):
    runner = doctest.DocTestRunner(verbose=False)
    for block in blocks("pycon"):
        parser = doctest.DocTestParser()
        runner.run(parser.get_doctest(block, {"folder": tmp_path}, "studies", "studies.md", 0))
    assert runner.failures == 0


def test_every_word_of_the_schema_is_explained():
    import json

    schema = json.loads((REPOSITORY / "simsched" / "formats" / "schemas" / "study.json").read_text())
    words = [*schema["properties"], *schema["properties"]["measure"]["properties"]]
    words += schema["$defs"]["workload"]["properties"]
    assert [word for word in words if f"`{word}" not in MANUAL and f"{word}`" not in MANUAL] == []
