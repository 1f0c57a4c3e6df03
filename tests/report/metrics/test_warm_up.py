"""The warm-up of a run by MSER-5 and by Welch's rule."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.report.metrics.warm_up import mser, welch


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


def naive_welch(replications) -> int:
    """The procedure as it is described: average, batch, smooth; flat once in the range of the second half."""
    count = min(len(one) for one in replications) // 5
    means = [
        sum(sum(one[5 * n : 5 * n + 5]) / 5 for one in replications) / len(replications) for n in range(count)
    ]
    window, curve = count // 10, []
    for at in range(count - window):
        reach = min(at, window)
        part = means[at - reach : at + reach + 1]
        curve.append(sum(part) / len(part))
    later = curve[count // 2 :]
    return 5 * next(
        n for n, value in enumerate(curve) if min(later) <= value + 1e-9 and value <= max(later) + 1e-9
    )


@pytest.mark.parametrize("seed", range(8))
def test_welch_is_its_description(seed):
    rng = np.random.default_rng(seed)
    runs = []
    for length in (403, 390, 420)[: 1 + seed % 3]:
        rise = 1 - np.exp(-np.arange(length) / rng.integers(5, 100))
        runs.append(rng.exponential(1, length) + 20 * rise)
    assert welch(runs)[0] == naive_welch([one.tolist() for one in runs])


def test_welch_on_runs_that_fill_up_that_never_settle_and_that_are_flat():
    rng = np.random.default_rng(1)
    runs = [np.where(np.arange(2000) < 300, 0.0, 100.0) + rng.normal(0, 5, 2000) for _ in range(5)]
    number, settled = welch(runs)
    assert 300 <= number <= 600  # the window reaches 200 values to either side, and noise adds to that
    assert settled
    assert not welch([np.arange(1000.0)])[1]
    assert welch([np.full(100, 7.0)]) == (0, True)


def test_replications_sharpen_welch():
    """Bursts of single runs hide the beginning that the mean of ten runs shows."""
    rng = np.random.default_rng(4)
    rise = 10 * (1 - np.exp(-np.arange(1000) / 150))
    runs = [rise + rng.exponential(10, 1000) for _ in range(10)]
    alone = [welch([one])[0] for one in runs]
    assert welch(runs)[0] >= np.median(alone)
