"""The pages of the manual print what they show, and their links lead somewhere."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from simsched.match.requests import dialect
from tests import REPOSITORY
from tests.manual.pages import Player, blocks

if TYPE_CHECKING:
    from pathlib import Path

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("CONTRIBUTING.md")), *sorted(DOCS.glob("*.md"))]
EXAMPLES = {"console", "pycon", "python"}
PLAYED = [page for page in PAGES if any(b.language in EXAMPLES and not b.file for b in blocks(page))]


def called(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def marked(page: Path) -> object:
    slow = page.stem in {"reality", "sizing", "studies"}
    return pytest.param(page, marks=pytest.mark.slow) if slow else page


@pytest.mark.quick(2)
@pytest.mark.parametrize("page", [marked(page) for page in PLAYED], ids=called)
def test_the_examples_of_a_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dialect, "DIALECTS", dict(dialect.DIALECTS))
    shutil.copytree(REPOSITORY / "workloads" / "jobspecs", tmp_path / "jobspecs")
    player = Player(called(page), tmp_path, capsys, {"__name__": "manual", "folder": tmp_path})
    for block in blocks(page):
        player.play(block)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the manual give to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_the_links_of_a_page(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_the_paths_that_a_page_names(page):
    made = {block.file for block in blocks(page)}
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:docs|clusters|workloads|analysis|tests|simsched)/[\w./]*)`", text):
        assert path in made or (REPOSITORY / path).exists(), path


def test_each_page_is_in_the_manual_once():
    listed = [
        re.sub(r".*<(.+)>", r"\1", line)
        for block in re.findall(r"```{toctree}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
        for line in block.splitlines()
        if line and not line.startswith(":")
    ]
    assert sorted(listed) == sorted(page.stem for page in DOCS.glob("*.md") if page.stem != "index")


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = page.read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    table = section[section.index("|") :].partition("\n\n")[0].splitlines()
    assert lines[: len(table)] == table
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_each_word_of_the_glossary_is_explained_once():
    words = [row[0] for row in rows(DOCS / "concepts.md", "Glossary")]
    assert words == sorted(set(words), key=str.lower)


def test_the_table_of_verbs_is_complete():
    from simsched.cli import VERBS

    named = re.findall(r"`(\w+)`", " ".join(row[0] for row in rows(DOCS / "commands.md", "Command line")))
    assert sorted(named) == sorted(VERBS)


def test_the_layout_names_every_package():
    text = (DOCS / "house.md").read_text(encoding="utf-8")
    package = REPOSITORY / "simsched"
    for folder in sorted(path.parent for path in package.rglob("*/__init__.py")):
        name = folder.relative_to(package).as_posix()
        assert f"`{name}`" in text or f"`{name}/" in text or f" {name}  →" in text, name
