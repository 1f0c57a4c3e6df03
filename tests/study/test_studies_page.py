"""docs/studies.md: its studies are valid, and it explains every word; `tests.manual` runs its examples."""

from __future__ import annotations

import pytest
import yaml

from simsched.study.runs.sweep_plan import plan
from simsched.study.spec.study_file import load_study, study_from_dict
from simsched.study.spec.study_tables import StudyTable
from tests import REPOSITORY
from tests.manual.pages import blocks

PAGE = REPOSITORY / "docs" / "studies.md"
MANUAL = PAGE.read_text(encoding="utf-8")
STUDIES = [block.text for block in blocks(PAGE) if block.language == "yaml"]
SWEEPS = sorted((REPOSITORY / "analysis" / "sweeps").glob("*.yaml"))


@pytest.mark.parametrize("text", STUDIES)
def test_the_studies_of_the_manual(text):
    assert len(study_from_dict(yaml.safe_load(text)).tasks) > 5


def test_the_first_study_is_the_one_that_is_there():
    there = load_study(REPOSITORY / "analysis" / "sweeps" / "first.yaml")
    written = study_from_dict(yaml.safe_load(STUDIES[0]))
    assert [task.key for task in there.tasks] == [task.key for task in written.tasks]


@pytest.mark.parametrize("file", SWEEPS, ids=lambda file: file.stem)
def test_the_studies_that_are_there(file):
    assert plan(load_study(file), measure=False).notes == ()


def test_every_word_of_the_schema_is_explained():
    keys = StudyTable.schema()["properties"]
    words = [*keys, *keys["measure"]["properties"], *keys["workload"]["properties"]]
    assert [word for word in words if f"`{word}" not in MANUAL and f"{word}`" not in MANUAL] == []
