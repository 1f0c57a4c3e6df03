"""Synthetic workloads: the papers' sanity figures, and that seeds decide everything."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError
from simsched.workload.models.lublin import BATCH, INTERACTIVE, MODELS, TYPELESS, LublinWorkload, _gamma_cdf
from simsched.workload.models.model_files import KINDS, Distribution, Mix, Part
from simsched.workload.models.tsafrir import HEAD, SITES, assign, estimates, head_ranks, head_times
from simsched.workload.transforms.transforms import offered_work

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
    """UHi and UMed move by log2(nodes / 128); no job is larger than the machine."""
    model = BATCH.for_machine(1024)
    assert (model.high, model.medium) == (pytest.approx(10), pytest.approx(8))
    model = TYPELESS.for_machine(1000)
    assert (model.high, model.medium) == (pytest.approx(9.966, abs=1e-3), pytest.approx(7.466, abs=1e-3))
    sizes = model.sizes(50_000, np.random.default_rng(1))
    assert 900 < sizes.max() <= 1000
    for model in MODELS.values():
        assert model.for_machine(128) == model
        assert set(model.for_machine(1).sizes(100, np.random.default_rng(1)).tolist()) == {1}
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
        ({"jobs": 401, "model": "both"}, 401, None, None),
        ({"jobs": 0, "model": "both"}, 0, None, None),
        ({"jobs": 500, "span": 86400.0, "model": "both"}, 500, 86400, None),
        ({"jobs": 5000, "load": 0.7, "model": "both"}, 5000, None, 0.7),
        ({"span": 30 * 86400.0, "load": 0.9, "model": "both"}, None, 30 * 86400, 0.9),
        ({"span": 7 * 86400.0, "model": "both"}, None, None, None),
        ({"jobs": 0}, 0, None, None),
        ({"span": 30 * 86400.0, "load": 0.5, "capacity": 1024}, None, 30 * 86400, 4.0),
        ({"span": 30 * 86400.0, "load": 0.5, "capacity": 1024, "model": "both"}, None, 30 * 86400, 4.0),
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


def shares_of_interactive(workload):
    """Return the shares of interactive jobs among the jobs and in the processor-seconds."""
    jobs = np.array([job.queue == "interactive" for job in workload])
    work = np.array([job.procs * job.runtime for job in workload])
    return jobs.mean(), work[jobs].sum() / work.sum()


def test_both_classes_have_the_shares_of_the_authors_program():
    """m_lublin99.c (Parallel Workloads Archive), compiled as it is, sixteen seeds of 200,000 jobs.

    Interactive jobs are 0.850 of the jobs (standard deviation between seeds 0.005) and 0.093 of the work
    (0.005); the last job arrives after 104.8 million seconds (2.1).  Mean sizes are 8.02 to 8.09 and
    13.7 to 13.95 nodes, mean run times 231 to 247 s and 9,433 to 9,544 s.
    """
    workload = LublinWorkload(machine=128, jobs=200_000, model="both").make(np.random.default_rng(11))
    jobs, work = shares_of_interactive(workload)
    assert jobs == pytest.approx(0.850, abs=0.014)
    assert work == pytest.approx(0.093, abs=0.015)
    assert workload.jobs[-1].submit == pytest.approx(104.8e6, rel=0.06)
    for name, size, run in (("interactive", 8.05, 241), ("batch", 13.86, 9_496)):
        mine = [job for job in workload if job.queue == name]
        assert np.mean([job.procs for job in mine]) == pytest.approx(size, rel=0.02)
        assert np.mean([job.runtime for job in mine]) == pytest.approx(run, rel=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {"jobs": 20_000},
        {"jobs": 20_000, "span": 90 * 86400.0},
        {"jobs": 20_000, "load": 0.6},
        {"span": 90 * 86400.0, "load": 0.9},
        {"span": 200 * 86400.0},
    ],
)
def test_both_classes_arrive_side_by_side_to_the_end(options):
    """However many jobs are asked for, the shares stay and both classes fill the whole span."""
    workload = LublinWorkload(machine=128, model="both", **options).make(np.random.default_rng(5))
    jobs, work = shares_of_interactive(workload)
    assert jobs == pytest.approx(0.850, abs=0.03)
    assert work == pytest.approx(0.093, abs=0.03)
    last = workload.jobs[-1].submit
    for name in ("batch", "interactive"):
        submits = [job.submit for job in workload if job.queue == name]
        assert submits[-1] > 0.9 * last
        assert np.median(submits) == pytest.approx(last / 2, rel=0.1)


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
    part = estimates(60_000, 86400, np.random.default_rng(1)).shares
    assert part[:HEAD].sum() == pytest.approx(0.89)
    assert part.sum() == pytest.approx(1)
    assert (np.diff(part[: HEAD + 1]) < 0).all()
    assert part[1] == pytest.approx((14.0491 * np.exp(-0.177531 * 2) + 0.462513) / 100)
    assert part[HEAD + 10] / part[HEAD] == pytest.approx((31 / 21) ** -2.267)


def test_estimates_are_round_and_the_limit_is_the_most_popular():
    found = estimates(30_000, 36 * 3600, np.random.default_rng(3))
    assert found.times[0] == 36 * 3600
    assert len(set(found.times.tolist())) == len(found.times) == len(found.shares)
    assert (found.times % 10 == 0).all()
    assert found.times.max() == 36 * 3600
    assert set(found.times[:HEAD].tolist()) == set(head_times(36 * 3600))
    drawn = found.draw(100_000, np.random.default_rng(4))
    values, counts = np.unique(drawn, return_counts=True)
    assert np.sort(counts)[::-1][:20].sum() == pytest.approx(89_000, abs=20)
    assert counts[values == 36 * 3600][0] == pytest.approx(found.shares[0] * 100_000, abs=1)


def test_the_head_is_what_four_sites_share_completed_by_round_times():
    """The sets that m_tsafrir05 chooses for limits of 18, 24 and 120 hours."""
    minutes, hours = [5, 10, 15, 20, 30], [1, 2, 3, 4, 5, 6, 8, 10, 12]
    for limit, others in (
        (18, [13, 14, 15, 16, 17]),
        (24, [15, 16, 18, 20, 22]),
        (120, [18, 50, 90, 100, 110]),
    ):
        expected = [*(60 * m for m in minutes), *(3600 * h for h in sorted([*hours, *others]))]
        assert head_times(limit * 3600) == [limit * 3600, *expected]
    assert head_times(60) == [60]
    assert len(head_times(1200)) == len(set(head_times(1200))) == HEAD


@pytest.mark.parametrize("longest", [1, 2, 9, HEAD])
def test_popularity_follows_the_four_sites(longest):
    """Every rank is given once, from where a site has it at the earliest to where the last one has it."""
    drawn = [head_ranks(np.random.default_rng(seed), longest) for seed in range(200)]
    places: dict[int, set[int]] = {}
    for ranks in drawn:
        assert sorted(ranks) == list(range(1, HEAD + 1))
        assert ranks[0] == longest
        for place, rank in enumerate(ranks[1:], 1):
            places.setdefault(rank, set()).add(place)
    for rank in set(range(1, HEAD + 1)) - {1, longest}:
        known = [site.index(rank) for site in SITES.values()]
        assert min(known) <= min(places[rank])
        assert len(places[rank]) > 1
    assert np.mean([ranks.index(2) for ranks in drawn]) < 10 if longest != 2 else True


@pytest.mark.parametrize(
    ("jobs", "limit", "share", "values", "mean", "spread", "median"),
    [
        (20_000, 24 * 3600, None, 132, 31_957, 936, 14_017),
        (5_000, 120 * 3600, None, 59, 137_414, 4_321, 17_473),
        (1_000, 36 * 3600, None, 35, 46_381, 1_198, 15_934),
        (30_000, 100 * 3600, 0.05, 173, 57_194, 4_347, 6_500),
        (30_000, 24 * 3600, 0.3, 173, 37_674, 754, 20_099),
    ],
)
def test_estimates_have_the_distribution_of_the_authors_program(
    jobs, limit, share, values, mean, spread, median
):
    """m_tsafrir05 (Parallel Workloads Archive), compiled as it is, seeds 1 to 200.

    `mean` and `spread` are the mean and the standard deviation over the seeds of the mean estimate (s),
    `median` the mean over the seeds of the median estimate.
    """
    made = [estimates(jobs, limit, np.random.default_rng(seed), max_share=share) for seed in range(200)]
    means = np.array([(found.times * found.shares).sum() for found in made])
    assert {len(found.times) for found in made} == {values}
    assert means.mean() == pytest.approx(mean, abs=4 * spread / np.sqrt(200))
    assert means.std() == pytest.approx(spread, rel=0.25)
    medians = [np.median(found.draw(jobs, np.random.default_rng(1))) for found in made]
    assert np.mean(medians) == pytest.approx(median, rel=0.05)


@pytest.mark.parametrize("jobs", [0, 1, 3, 10, 200])
@pytest.mark.parametrize("limit", [60, 90, 1200, 3600, 7 * 3600])
@pytest.mark.parametrize("share", [None, 0.0, 0.95])
def test_few_jobs_and_short_limits_have_estimates_too(jobs, limit, share):
    found = estimates(jobs, limit, np.random.default_rng(jobs), max_share=share)
    assert found.shares.sum() == pytest.approx(1)
    assert (found.shares >= 0).all()
    assert found.times.max() == limit
    assert found.times.min() > 0
    assert len(found.draw(jobs, np.random.default_rng(1))) == jobs


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
    mix = Mix.read(
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
        },
        "mix",
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
        ([], "mix: \\[\\] is not a table"),
        ({"parts": []}, "the mix has no parts"),
        ({"parts": [{"shape": "node"}]}, r"parts\[0\]: the key 'runtime' is missing"),
        ({"parts": [{"shape": "node", "runtime": 1, "wait": 2}]}, "unknown key 'wait'"),
        ({"parts": [{"shape": "node", "runtime": "normal(1,2)"}]}, "unknown distribution 'normal'"),
        ({"parts": [{"shape": "node", "runtime": "exp(1,2)"}]}, "exp has 2 arguments"),
        ({"parts": [{"shape": "node", "runtime": "exp(0)"}]}, "'0' is not valid for exp"),
        ({"parts": [{"shape": "node", "runtime": "exp(inf)"}]}, "'inf' is not valid for exp"),
        ({"parts": [{"shape": "node", "runtime": "uniform(2h,1h)"}]}, "is not an ascending range"),
        ({"parts": [{"shape": "node", "runtime": 1, "duration": "xx"}]}, "bad factor"),
        ({"parts": [{"shape": "node", "runtime": 1, "weight": "heavy"}]}, "'heavy' is not a number"),
        ({"parts": [{"shape": "node", "runtime": 1}], "users": -1}, "mix: users: -1 is out of range"),
    ],
)
def test_faults_of_a_mix_have_a_place(document, message):
    with pytest.raises(ConfigError, match=message):
        Mix.read(document, "mix")


def test_a_mix_must_end_and_weigh_something():
    part = Part(shape="slot=1/core", runtime=Distribution.parse("5m"), weight=0)
    with pytest.raises(ConfigError, match="the mix has no end"):
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
def test_the_bundled_months_have_the_jobs_that_their_commands_make(name, options, seed):
    """Limits and users were drawn by an earlier version; times, sizes and run times are the model's."""
    from simsched.workload.load import load_workload
    from simsched.workload.mapping import JobMap

    bundled = load_workload(name)
    made = LublinWorkload(span=30 * 86400.0, **options).make(
        np.random.default_rng(seed), JobMap.parse(bundled.header["Map"])
    )
    assert len(bundled) == len(made) > 20_000
    for old, new in zip(bundled, made, strict=True):
        assert (old.id, old.submit, old.procs, old.runtime) == (new.id, new.submit, new.procs, new.runtime)
        assert old.jobspec.resources == new.jobspec.resources
