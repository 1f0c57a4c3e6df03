"""The console blocks of the manual are run and print the output on the page.

A line that begins with ``$`` is a command, and the lines after it are its output; ``…`` stands for any
number of lines.  ``$ echo $?`` prints the exit status of the command before it.  Pages that are not listed
here have test files of their own.
"""

from __future__ import annotations

import re
import shlex
import shutil

import pytest

from simsched.cli import main
from tests import REPOSITORY

MANUAL = REPOSITORY / "docs"
REQUESTS = REPOSITORY / "workloads" / "jobspecs"
PAGES = [
    f"{name}.md"
    for name in ("requests", "clusters", "matching", "workloads", "simulation", "audit", "reports", "sss")
]


def steps(page):
    """Yield (command, expected output) of every console block of a page, in order."""
    for block in re.findall(r"```console\n(.*?)```", (MANUAL / page).read_text(encoding="utf-8"), re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            yield command, expected


def as_pattern(expected):
    """Return a pattern of the expected text: a line ``…`` matches any lines, trailing blanks do not count."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r" *\n"
        for line in expected.splitlines()
    ]
    return "".join(lines) + r"\s*"


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(REQUESTS, tmp_path / "jobspecs")
    status = 0
    for command, expected in steps(page):
        if command == "echo $?":
            assert f"{status}\n" == expected
            continue
        program, *arguments = shlex.split(command, comments=True)
        assert program == "simsched"
        status = main(arguments)
        shown = capsys.readouterr()
        pattern = as_pattern(expected)
        if not re.fullmatch(pattern, shown.out):
            assert re.fullmatch(pattern, shown.err + shown.out), f"$ {command}\n{shown.err}{shown.out}"


@pytest.mark.parametrize("page", PAGES)
def test_the_page_has_commands(page):
    assert list(steps(page))
