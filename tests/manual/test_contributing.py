"""The examples of CONTRIBUTING work as the page says, in a copy of the package and by their entry points."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests import REPOSITORY
from tests.manual.installs import install
from tests.manual.pages import blocks

PAGE = REPOSITORY / "CONTRIBUTING.md"


def patched(text: str, hunk: str) -> str:
    """Apply one hunk: lines that begin with a blank are there once, those with a plus are new."""
    lines = hunk.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[:1] in " -")
    after = "".join(line[1:] for line in lines if line[:1] in " +")
    assert text.count(before) == 1, before
    return text.replace(before, after)


def change(tree, diff):
    """Apply the hunks of a diff to the files that it names."""
    for name, hunks in re.findall(r"^--- (\S+)\n(.*?)(?=^--- |\Z)", diff, re.DOTALL | re.MULTILINE):
        file = tree / name
        for hunk in re.split(r"^@@\n", hunks, flags=re.MULTILINE):
            file.write_text(patched(file.read_text(), hunk))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package with all that the page adds to it, and the page's own package beside it."""
    tree = tmp_path_factory.mktemp("contributing")
    shutil.copytree(REPOSITORY / "simsched", tree / "simsched")
    for folder in ("clusters", "workloads"):
        (tree / folder).symlink_to(REPOSITORY / folder)
    for block in blocks(PAGE):
        if block.language == "diff":
            change(tree, block.text)
        elif block.file:
            name, _, more = block.file.partition(" ")
            file = tree / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a" if more else "x") as stream:
                stream.write(block.text)
    install(tree / "simsched-site", tree / "site")
    return tree


@pytest.mark.slow
def test_the_examples(tree):
    """The page's own tests pass."""
    tests = [tree / block.file for block in blocks(PAGE) if "/test_" in block.file]
    assert len(tests) == 7
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'site'}"}
    done = subprocess.run(
        [*command, *tests], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_the_examples_are_in_style(tree):
    """What the page adds is as ruff wants it here."""
    shutil.copy(REPOSITORY / "pyproject.toml", tree)
    changed = [name for block in blocks(PAGE) for name in re.findall(r"^--- (\S+)", block.text, re.MULTILINE)]
    added = [block.file for block in blocks(PAGE) if block.file.startswith("simsched/")]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", *changed, *added]
    assert len(command) == 12
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
