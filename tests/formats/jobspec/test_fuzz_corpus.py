"""The seeds of the fuzz run (`fuzz_requests.py`): each gives a value or a SimschedError, and quickly."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fuzz_requests.py")
spec = importlib.util.spec_from_file_location("fuzz_requests", SCRIPT)
fuzz_requests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz_requests)

CASES = [(name, text) for name, texts in fuzz_requests.seeds().items() for text in texts]


@pytest.mark.parametrize(("name", "text"), CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)])
def test_seed(name, text):
    start = time.process_time()
    assert fuzz_requests.outcome(fuzz_requests.TARGETS[name], text)
    assert time.process_time() - start < fuzz_requests.SLOW


def test_every_target_has_seeds():
    assert {name for name, _ in CASES} == set(fuzz_requests.TARGETS)


def test_a_short_run_finds_nothing_bad(capsys):
    tried, bad = fuzz_requests.fuzz(2, seed=3)
    assert tried > 100
    assert bad == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_longer_run_finds_nothing_bad(capsys):
    _, bad = fuzz_requests.fuzz(20, seed=4)
    assert bad == 0, capsys.readouterr().out
