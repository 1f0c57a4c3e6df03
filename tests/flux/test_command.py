"""The console script ``flux-simsched``."""

from __future__ import annotations

import json
import stat

import pytest

from simsched.flux.command import main
from tests.flux.test_pool_state import resources


@pytest.fixture
def file(tmp_path):
    (tmp_path / "R.json").write_text(json.dumps(resources()))
    return str(tmp_path / "R.json")


@pytest.fixture
def flux(tmp_path, monkeypatch):
    """A command flux that runs a script."""

    def made(script):
        path = tmp_path / "bin" / "flux"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(path.parent), prepend=":")

    return made


def test_questions_about_the_resources_in_a_file(file, capsys):
    assert main(["feasible", "--R", file, "slot=4/core=4"]) == 0
    assert main(["feasible", "slot=5/core=4", "--R", file]) == 1
    assert "would fit with: slot=4" in capsys.readouterr().out
    assert main(["match", "--R", file, "slot/core"]) == 0
    assert json.loads(capsys.readouterr().out)["execution"]["R_lite"][0]["rank"] == "0"


def test_questions_about_the_instance(file, flux, capsys):
    flux(f'[ "$1 $2" = "resource R" ] && cat {file}')
    assert main(["show"]) == 0
    assert "4 execution targets" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (
            "echo 'flux-resource: ERROR: no instance' >&2; exit 1",
            "flux resource R failed: flux-resource: ERROR",
        ),
        ("exit 3", "flux resource R failed: status 3"),
        ("echo '{'", "R.json"),
    ],
)
def test_an_instance_that_does_not_answer(flux, capsys, script, text):
    flux(script)
    assert main(["show"]) == 2
    err = capsys.readouterr().err
    assert text in err
    assert "Traceback" not in err


def test_bad_arguments(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    for arguments, text in (
        (["shwo"], "unknown verb 'shwo'; did you mean show?"),
        (["show", "--R"], "--R without a file (expected --R FILE)"),
        (["show", "--R", "none.json"], "none.json"),
        (["show"], "there is no command flux (expected a Flux instance, or --R FILE)"),
        ([], "usage: flux-simsched"),
    ):
        assert main(arguments) == 2
        assert text in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "pool-class=simsched.flux:Pool" in capsys.readouterr().out
