"""The README's blocks are run and say what really comes out; ``…`` stands for any number of lines."""

from __future__ import annotations

import doctest
import re
import shlex

import pytest

from simsched.cli import main
from tests import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def console_steps():
    """(command, expected output) of every console block, in order."""
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            yield command, expected


def as_pattern(expected):
    """A pattern for the expected text: a line ``…`` matches any lines, trailing blanks do not count."""
    lines = [r"(?:.*\n)*?" if line == "…" else re.escape(line) + r" *\n" for line in expected.splitlines()]
    return "".join(lines) + r"\s*"


def test_the_console_blocks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    steps = list(console_steps())
    assert len(steps) > 5
    status = 0
    for command, expected in steps:
        if command == "echo $?":
            assert f"{status}\n" == expected
            continue
        program, *arguments = shlex.split(command)
        assert program == "simsched"
        status = main(arguments)
        out = capsys.readouterr().out
        assert status in {0, 1}
        assert re.fullmatch(as_pattern(expected), out), f"$ {command}\n{out}"


def test_the_python_blocks():
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(verbose=False)
    blocks = re.findall(r"```pycon\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        runner.run(parser.get_doctest(block, {}, "README", "README.md", 0))
    assert runner.failures == 0


@pytest.mark.parametrize("target", re.findall(r"`((?:docs|clusters|workloads|analysis)/[\w./]*)`", README))
def test_what_it_points_to_exists(target):
    assert (REPOSITORY / target).exists()
