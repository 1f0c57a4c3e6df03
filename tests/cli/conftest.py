"""What the tests of the command line share."""

from __future__ import annotations

import io
import sys

import pytest

from simsched.cli import main


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command line, with a text on standard input; (status, stdout, stderr) comes back."""

    def runner(*arguments, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return runner
