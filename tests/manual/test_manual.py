"""The manual builds without a warning, and its manual page has every option of every verb."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from simsched.cli import VERBS, build_parser
from tests.manual.test_pages import DOCS

pytest.importorskip("furo", reason="the extra docs is not installed")


def options(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from options(verb)
        elif action.help != argparse.SUPPRESS:
            yield from action.option_strings


@pytest.mark.slow
@pytest.mark.integration
def test_the_manual_page_has_every_option(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "man",
        str(DOCS),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "simsched.1").read_text(encoding="utf-8").replace("\\-", "-")
    assert all(f"simsched {verb}" in text for verb in VERBS)
    assert [option for option in options(build_parser(*VERBS)) if option not in text] == []
