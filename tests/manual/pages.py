"""Run the examples of a page of the manual and compare what they print with what the page shows.

The fenced blocks of a page are played from top to bottom in one folder:

``console``
    Each line after ``$`` is a command, the lines below it are its output: standard output, or standard
    error and standard output.  A page shows the errors of a command with status 2 and above.
    ``simsched`` runs in this process, anything else in a shell.
``pycon``, ``python``
    Interactive examples are doctests; statements are executed, and functions ``test_…`` among them
    are called.  All of a page share their names.
Any language with a second word, such as ``yaml job.yaml``
    The text of a file of that name.

Other blocks are only shown.  In an expected output a line ``…`` stands for any number of lines, and
``…`` within a line for any text.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r"^```(?P<info>\w[^\n`]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^\$ ", re.MULTILINE)
_SHELL = re.compile(r"[|<>&;$*]")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page: its language, the file that it is (or ""), its text and first line."""

    language: str
    file: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page that have a language, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        language, _, file = match["info"].strip().partition(" ")
        found.append(Block(language, file.strip(), match["text"], text.count("\n", 0, match.start("text"))))
    return found


def steps(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with its expected output; lines after ``\\`` begin with ``>``."""
    for step in _STEP.split(block.text)[1:]:
        command, _, expected = step.partition("\n")
        while command.endswith("\\"):
            line, _, expected = expected.partition("\n")
            command = command.removesuffix("\\") + line.removeprefix(">").lstrip()
        yield command, expected


def as_pattern(expected: str) -> str:
    """Return the regular expression of an expected output; blanks at the ends of lines do not count."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + r" *\n"
        for line in expected.splitlines()
    ]
    return "".join(lines) + r"\s*"


@dataclass(slots=True)
class Player:
    """Plays blocks in a folder, which is the current one; `capture` is pytest's ``capsys``."""

    page: str
    folder: Path
    capture: Any
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "manual"})
    status: int = 0

    def play(self, block: Block) -> None:
        """Write the file, or run the example, that a block is."""
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            self._console(block)
        elif block.language == "pycon":
            self._interactive(block)
        elif block.language == "python":
            self._statements(block)

    def _console(self, block: Block) -> None:
        for command, expected in steps(block):
            out, err = self._run(command)
            where = f"{self.page}, block at line {block.line}"
            shown = [out, err + out] if self.status in {0, 1} else [err + out]
            assert any(re.fullmatch(as_pattern(expected), text) for text in shown), (
                f"{where}\n$ {command}\n{err}{out}"
            )

    def _run(self, command: str) -> tuple[str, str]:
        """Return what a command prints on standard output and on standard error."""
        if command == "echo $?":
            return f"{self.status}\n", ""
        program, *arguments = shlex.split(command)
        if program == "simsched" and not _SHELL.search(re.sub(r"'[^']*'", "", command)):
            self.status = main(arguments)
            out, err = self.capture.readouterr()
        else:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            shell = {"cwd": self.folder, "env": {**os.environ, "PATH": path}}
            done = subprocess.run(
                ["bash", "-c", command], capture_output=True, text=True, check=False, **shell
            )
            self.status, out, err = done.returncode, done.stdout, done.stderr
        return str(out), str(err)

    def _interactive(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(block.text, {}, self.page, self.page, block.line)
        test.globs = self.names
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        reports: list[str] = []
        runner.run(test, out=reports.append, clear_globs=False)
        assert not runner.failures, "".join(reports)

    def _statements(self, block: Block) -> None:
        code = "\n" * block.line + block.text  # so that a traceback has the page's lines
        exec(compile(code, self.page, "exec"), self.names)
        for name in [name for name in self.names if name.startswith("test_")]:
            self.names.pop(name)()
