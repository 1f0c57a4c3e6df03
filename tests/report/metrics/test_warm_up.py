"""The warm-up of a run by MSER-5."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.report.metrics.warm_up import mser


def brute(values: np.ndarray) -> int:
    """The definition: the number of batches of five whose omission minimises s² / n of the rest."""
    means = values[: len(values) // 5 * 5].reshape(-1, 5).mean(axis=1)
    errors = [means[cut:].var() / (len(means) - cut) for cut in range(len(means) // 2 + 1)]
    return 5 * int(np.argmin(errors))


@pytest.mark.parametrize("seed", range(8))
def test_mser_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    values = rng.exponential(1, 403) + 20 * np.exp(-np.arange(403) / rng.integers(5, 200))
    assert mser(values)[0] == brute(values)


def test_a_run_that_fills_up_loses_its_beginning():
    rng = np.random.default_rng(1)
    values = np.where(np.arange(2000) < 300, 0.0, 100.0) + rng.normal(0, 10, 2000)
    number, settled = mser(values)
    assert 295 <= number <= 310
    assert settled


def test_a_queue_that_grows_without_end_has_no_steady_state():
    number, settled = mser(np.arange(1000.0))
    assert number >= 500
    assert not settled


def test_equal_waits_need_no_warm_up():
    assert mser(np.full(100, 7.0)) == (0, True)
