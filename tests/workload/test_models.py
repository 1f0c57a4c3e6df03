"""Synthetic workloads: the papers' sanity figures, and that seeds decide everything."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError
from simsched.workload.distribution import KINDS, Distribution
from simsched.workload.lublin import BATCH, INTERACTIVE, MODELS, TYPELESS, _gamma_cdf
from simsched.workload.mix import Mix, Part, mix_from_dict
from simsched.workload.models import LublinWorkload
from simsched.workload.transforms import offered_work
from simsched.workload.tsafrir import HEAD, assign, estimates, shares

DRAWS = 200_000


@pytest.fixture(scope="module")
def typeless():
    """Sizes, run times and arrivals of 200,000 jobs of the typeless model."""
    rng = np.random.default_rng(2003)
    sizes = TYPELESS.sizes(DRAWS, rng)
    return sizes, TYPELESS.run_times(sizes, rng), TYPELESS.arrivals(DRAWS, rng)


# ------------------------------------------------------------ Lublin-Feitelson


def test_sizes(typeless):
    """Mean size 12.1 over 200,000 draws (sampling error 0.05); serial .244; mostly powers of two."""
    sizes, _, _ = typeless
    assert sizes.mean() == pytest.approx(12.1, abs=0.2)
    assert (sizes == 1).mean() == pytest.approx(0.244, abs=0.004)
    powers = (sizes & (sizes - 1)) == 0
    assert powers.mean() > 0.244 + 0.576  # the others hit one now and then
    assert sizes.min() >= 1
    assert sizes.max() <= 128


def test_run_times(typeless):
    """Median run time 108 s (sampling error about 2 %); none above exp(12); larger jobs run longer."""
    sizes, run, _ = typeless
    assert np.median(run) == pytest.approx(108, rel=0.05)
    assert run.max() <= np.exp(12)
    assert np.median(run[sizes >= 64]) > np.median(run[sizes == 1])


def test_the_cycle_of_a_day(typeless):
    """Busiest about 13:30, quietest about 05:00; half-hour counts follow the weights."""
    _, _, arrivals = typeless
    half_hours = (((arrivals + 8 * 3600) % 86400) // 1800).astype(int)
    counts = np.bincount(half_hours, minlength=48)
    by_two_hours = np.convolve(np.tile(counts, 3), np.ones(5) / 5, "same")[48:96]
    assert abs(by_two_hours.argmax() / 2 - 13.5) <= 1
    assert abs(by_two_hours.argmin() / 2 - 5) <= 1
    weights = TYPELESS.weights()
    assert weights.mean() == pytest.approx(1)
    assert (weights.argmax() / 2, weights.argmin() / 2) == (13.5, 5.0)
    assert np.corrcoef(counts, weights)[0, 1] > 0.99
    assert (np.diff(arrivals) >= 0).all()


def test_the_three_models_differ_as_the_paper_says():
    """Interactive jobs are short and small; batch jobs are long."""
    rng = np.random.default_rng(1)
    sizes = {name: model.sizes(20_000, rng) for name, model in MODELS.items()}
    run = {name: np.median(model.run_times(sizes[name], rng)) for name, model in MODELS.items()}
    assert run["interactive"] < run["typeless"] < run["batch"]
    assert sizes["interactive"].mean() < sizes["batch"].mean()
    assert INTERACTIVE.sizes(1000, rng).max() <= round(2**5.5)


def test_another_machine_moves_the_largest_sizes():
    """UHi = log2(nodes), UMed = UHi - 2.5; no job is larger than the machine."""
    model = BATCH.for_machine(1000)
    assert (model.high, model.medium) == (pytest.approx(9.966, abs=1e-3), pytest.approx(7.466, abs=1e-3))
    sizes = model.sizes(50_000, np.random.default_rng(1))
    assert 900 < sizes.max() <= 1000
    assert set(BATCH.for_machine(1).sizes(100, np.random.default_rng(1)).tolist()) == {1}
    with pytest.raises(ConfigError):
        BATCH.for_machine(0)


@pytest.mark.parametrize(
    ("shape", "x", "value"), [(1, 2, 0.864664717), (2, 2, 0.593994150), (8.17, 0, 0), (0.5, 0.5, 0.682689492)]
)
def test_the_gamma_cdf(shape, x, value):
    """P(1, x) = 1 - e^-x; P(2, x) = 1 - (1 + x) e^-x; P(1/2, z^2/2) = erf(z / sqrt 2)."""
    assert _gamma_cdf(shape, x) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "jobs", "span", "load"),
    [
        ({"jobs": 500}, 500, None, None),
        ({"jobs": 500, "span": 86400.0}, 500, 86400, None),
        ({"jobs": 5000, "load": 0.7}, 5000, None, 0.7),
        ({"span": 30 * 86400.0, "load": 0.9}, None, 30 * 86400, 0.9),
        ({"span": 7 * 86400.0}, None, None, None),
        ({"jobs": 401, "model": "both"}, 402, None, None),
        ({"jobs": 0}, 0, None, None),
        ({"span": 30 * 86400.0, "load": 0.5, "capacity": 1024}, None, 30 * 86400, 4.0),
    ],
)
def test_jobs_span_and_load(options, jobs, span, load):
    workload = LublinWorkload(machine=128, **options).make(np.random.default_rng(7))
    submits = [job.submit for job in workload]
    assert submits == sorted(submits)
    if jobs is not None:
        assert len(workload) == jobs
    if span is not None:
        assert submits[-1] == pytest.approx(span, abs=1)
    if load is not None:
        assert offered_work(workload) / (128 * submits[-1]) == pytest.approx(load, rel=0.03)


def test_a_seed_decides_everything():
    model = LublinWorkload(machine=64, jobs=300, max_estimate=86400, users=9)
    one, same, other = (model.make(np.random.default_rng(seed)).jobs for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert {job.user for job in one} <= {str(number) for number in range(1, 10)}
    assert all(job.runtime <= job.duration for job in one if job.runtime <= 86400)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"jobs": -1},
        {"jobs": 10, "model": "grid"},
        {"jobs": 10, "span": 5.0, "load": 1.0},
        {"span": float("inf")},
        {"span": 1e14},
        {"jobs": 10, "load": 0},
        {"jobs": 10, "run_time_factor": -1},
        {"jobs": 10, "machine": 0},
        {"jobs": 10, "max_estimate": 5},
    ],
)
def test_impossible_numbers_are_refused(options):
    with pytest.raises(ConfigError):
        LublinWorkload(**{"machine": 8, **options}).make(np.random.default_rng(1))


# ------------------------------------------------------------ Tsafrir


def test_head_and_tail_of_the_estimates():
    """Twenty values hold 89 % of the jobs; ranks fall as 14.05 e^(-0.1775 x) + 0.4625 percent."""
    part = shares(300)
    assert part[:HEAD].sum() == pytest.approx(0.89)
    assert part.sum() == pytest.approx(1)
    assert (np.diff(part[: HEAD + 1]) < 0).all()
    assert part[1] == pytest.approx((14.0491 * np.exp(-0.177531 * 2) + 0.462513) / 100)
    assert part[HEAD + 10] / part[HEAD] == pytest.approx((31 / 21) ** -2.267)


def test_estimates_are_round_and_the_limit_is_the_most_popular():
    found = estimates(30_000, 36 * 3600, np.random.default_rng(3))
    assert found.times[0] == 36 * 3600
    assert len(set(found.times.tolist())) == len(found.times) == len(found.shares)
    assert (found.times % 60 == 0).all()
    assert found.times.max() == 36 * 3600
    drawn = found.draw(100_000, np.random.default_rng(4))
    values, counts = np.unique(drawn, return_counts=True)
    assert np.sort(counts)[::-1][:20].sum() / 100_000 == pytest.approx(0.89, abs=0.01)
    assert counts[values == 36 * 3600][0] / 100_000 == pytest.approx(found.shares[0], abs=0.005)


def test_the_share_of_the_limit_may_be_given():
    found = estimates(10_000, 7200, np.random.default_rng(3), max_share=0.04)
    assert found.shares[found.times == 7200] == pytest.approx(0.04)
    assert found.shares.sum() == pytest.approx(1)
    with pytest.raises(ConfigError):
        estimates(10, 7200, np.random.default_rng(3), max_share=1.5)


def test_estimates_are_given_to_jobs_that_fit_below_them():
    """Every job gets an estimate not below its run time while there is one, and all are used."""
    rng = np.random.default_rng(5)
    run = rng.integers(1, 5000, 2000)
    drawn = np.maximum(run[rng.permutation(2000)], 60)
    given = assign(run, drawn, rng)
    assert (given >= run).all()
    assert sorted(given.tolist()) == sorted(drawn.tolist())
    assert assign(np.array([100]), np.array([60]), rng).tolist() == [60]


# ------------------------------------------------------------ mixes


def test_a_mix_has_its_weights_and_distributions():
    mix = mix_from_dict(
        {
            "gap": "exp(30)",
            "span": "10d",
            "users": 5,
            "parts": [
                {
                    "shape": "slot=1/core",
                    "weight": 3,
                    "runtime": "exp(10m)",
                    "duration": "x2",
                    "name": "small",
                },
                {
                    "shape": "node=4",
                    "weight": 1,
                    "runtime": "lognormal(1h, 0.5)",
                    "duration": "4h",
                    "queue": "big",
                },
                {"shape": "node=9", "weight": 0, "runtime": 60},
            ],
        }
    )
    workload = mix.make(np.random.default_rng(11))
    small = [job for job in workload if job.name == "small"]
    large = [job for job in workload if job.queue == "big"]
    assert len(workload) == pytest.approx(10 * 86400 / 30, rel=0.03)
    assert len(small) + len(large) == len(workload)
    assert len(small) / len(workload) == pytest.approx(0.75, abs=0.02)
    assert np.mean([job.runtime for job in small]) == pytest.approx(600, rel=0.05)
    assert np.median([job.runtime for job in large]) == pytest.approx(3600, rel=0.05)
    assert all(job.duration == 2 * job.runtime for job in small)
    assert all(job.duration >= 14400 for job in large)


def test_a_mix_by_number():
    part = Part(shape="slot=1/core", runtime=Distribution.parse("5m"))
    mix = Mix(parts=(part,), gap=Distribution.parse(60), jobs=5)
    jobs = mix.make(np.random.default_rng(0)).jobs
    assert [(job.submit, job.runtime, job.duration) for job in jobs] == [
        (60 * n, 300, None) for n in range(1, 6)
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "not a mapping"),
        ({"parts": []}, "a mix without parts"),
        ({"parts": [{"shape": "node"}]}, r"parts\[0\]: a part needs a shape and a runtime"),
        ({"parts": [{"shape": "node", "runtime": 1, "wait": 2}]}, "unknown key 'wait'"),
        ({"parts": [{"shape": "node", "runtime": "normal(1,2)"}]}, "unknown distribution 'normal'"),
        ({"parts": [{"shape": "node", "runtime": "exp(1,2)"}]}, "exp with 2 arguments"),
        ({"parts": [{"shape": "node", "runtime": "exp(0)"}]}, "exp with '0'"),
        ({"parts": [{"shape": "node", "runtime": "exp(inf)"}]}, "exp with 'inf'"),
        ({"parts": [{"shape": "node", "runtime": "uniform(2h,1h)"}]}, "runs backwards"),
        ({"parts": [{"shape": "node", "runtime": 1, "duration": "xx"}]}, "bad factor"),
        ({"parts": [{"shape": "node", "runtime": 1, "weight": "heavy"}]}, "bad weight"),
        ({"parts": [{"shape": "node", "runtime": 1}], "users": -1}, "bad number -1"),
    ],
)
def test_faults_of_a_mix_have_a_place(document, message):
    with pytest.raises(ConfigError, match=message):
        mix_from_dict(document)


def test_a_mix_must_end_and_weigh_something():
    part = Part(shape="slot=1/core", runtime=Distribution.parse("5m"), weight=0)
    with pytest.raises(ConfigError, match="nothing ends the mix"):
        Mix(parts=(part,), gap=Distribution.parse(60)).make(np.random.default_rng(0))
    with pytest.raises(ConfigError, match="weights"):
        Mix(parts=(part,), gap=Distribution.parse(60), jobs=1).make(np.random.default_rng(0))
    with pytest.raises(ConfigError, match="more than"):
        Mix(parts=(part,), gap=Distribution.parse("1ms"), span=1e9).make(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("text", "mean"),
    [("uniform(10, 30)", 20), ("exp(1m)", 60), ("gamma(2, 5)", 10), ("weibull(1, 7)", 7),
     ("choice(1, 2, 6)", 3),
     ("loguniform(1, 2.718281828)", 1.718281828), ("lognormal(10, 0.5)", 10 * np.exp(0.125)), ("42", 42)],
)  # fmt: skip
def test_means_of_the_distributions(text, mean):
    drawn = Distribution.parse(text).draw(50_000, np.random.default_rng(9))
    assert drawn.mean() == pytest.approx(mean, rel=0.03)
    assert Distribution.parse(text).kind in KINDS
    assert Distribution.parse(str(Distribution.parse(text))).kind == Distribution.parse(text).kind


# ------------------------------------------------------------ what is bundled


@pytest.mark.parametrize(
    ("name", "options", "seed"),
    [
        ("month", {"machine": 240, "load": 0.88, "run_time_factor": 0.15, "users": 60}, 20261),
        (
            "month-gpu",
            {"machine": 1152, "capacity": 4608, "load": 0.88, "run_time_factor": 0.3, "users": 200},
            20262,
        ),
    ],
)
def test_the_bundled_months_are_what_their_commands_make(name, options, seed):
    from simsched.workload.load import load_workload
    from simsched.workload.mapping import JobMap

    bundled = load_workload(name)
    model = LublinWorkload(span=30 * 86400.0, max_estimate=86400, **options)
    made = model.make(np.random.default_rng(seed), JobMap.parse(bundled.header["Map"]))
    assert bundled.jobs == made.jobs
    assert len(bundled) > 20_000
