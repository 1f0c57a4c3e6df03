"""What docs/sizing.md shows is what comes out; ``…`` stands for any number of lines."""

from __future__ import annotations

import doctest
import re
import shlex

import pytest

from simsched.cli import main
from tests import REPOSITORY

MANUAL = (REPOSITORY / "docs" / "sizing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", MANUAL, re.DOTALL)


def as_pattern(expected):
    lines = [r"(?:.*\n)*?" if line == "…" else re.escape(line) + r" *\n" for line in expected.splitlines()]
    return "".join(lines) + r"\s*"


@pytest.mark.parametrize(("command", "expected"), BLOCKS)
def test_the_commands(command, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(command)
    assert program == "simsched"
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(as_pattern(expected), out), out


def test_there_are_commands():
    assert [command.split()[1] for command, _ in BLOCKS] == ["size", "headroom"]


def test_the_python_block():
    blocks = re.findall(r"```pycon\n(.*?)```", MANUAL, re.DOTALL)
    runner = doctest.DocTestRunner(verbose=False)
    for number, block in enumerate(blocks):
        runner.run(doctest.DocTestParser().get_doctest(block, {}, f"sizing {number}", "sizing.md", 0))
    assert runner.summarize() == (0, runner.tries)
    assert runner.tries > 5
