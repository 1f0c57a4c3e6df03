"""Sizes and loads whose answers can be worked out by hand, and what is said of them."""

from __future__ import annotations

import json
import math
import pickle
from functools import cache

import msgspec
import numpy as np
import pytest

import simsched as ss
from simsched.errors import ConfigError, FormatError, RunError, SimschedError
from simsched.study.search.evaluation import CRITERIA, AcceptanceRule
from simsched.workload.job import Job, Workload

MINUTES = 60


def machine(nodes: int, cores: int = 1) -> ss.Cluster:
    children = {"core": f"0-{cores - 1}" if cores > 1 else "0"}
    ranks = f"0-{nodes - 1}" if nodes > 1 else "0"
    return ss.Cluster.from_rset(ss.ResourceSet.of([(ranks, children)], f"n[{ranks}]"))


def burst(count: int, seconds: int = 600, shape: str = "slot=1/core", **fields) -> Workload:
    """So many equal jobs, all submitted at once."""
    spec = ss.Jobspec.from_shape(shape)
    jobs = [
        Job(id=n + 1, submit=0, runtime=seconds, duration=seconds, jobspec=spec, **fields)
        for n in range(count)
    ]
    return Workload(tuple(jobs), name="burst")


def stream(count: int, gap: int, seconds: int) -> Workload:
    """A job of one core every `gap` seconds."""
    spec = ss.Jobspec.from_shape("slot=1/core")
    jobs = [
        Job(id=n + 1, submit=n * gap, runtime=seconds, duration=seconds, jobspec=spec) for n in range(count)
    ]
    return Workload(tuple(jobs), name="stream")


def sized(cluster, workload, targets, **more):
    return ss.size(cluster, workload, targets, **{"workers": 0, "seeds": 1, **more})


def room(cluster, workload, targets, **more):
    return ss.headroom(cluster, workload, targets, **{"workers": 0, "seeds": 1, **more})


@cache
def searched(seeds: int, meet: str = "every"):
    """One search that several tests look at."""
    return sized(machine(20), noisy(), ("p95_wait<=3m", "utilisation>=10%"), seeds=seeds, meet=meet)


# ------------------------------------------------------------ worked out by hand


@pytest.mark.parametrize(
    ("target", "nodes"),
    [
        # 12 jobs of 600 s at once: on n nodes the last wave starts after (ceil(12 / n) - 1) · 600 s
        ("max_wait<=0", 12),
        ("max_wait<=10m", 6),
        ("max_wait<10m", 12),
        ("max_wait<=20m", 4),
        ("max_wait<=6000", 2),
        ("max_wait<=2h", 1),
        ("makespan<=20m", 6),
        ("max_turnaround<=30m", 4),
        ("median_wait<=0", 7),  # the 6th and the 7th job both start at once
    ],
)
def test_equal_jobs_at_once_come_in_waves(target, nodes):
    answer = sized(machine(3), burst(12), target)
    assert (answer.value, answer.number) == (nodes, nodes)
    assert answer.found
    assert answer.beyond == (nodes - 1 if nodes > 1 else None)
    assert nodes == 1 or not answer.trials[nodes - 1].met


def test_the_answer_in_a_sentence():
    answer = sized(machine(3), burst(12), "max_wait<=10m", checks=2)
    assert answer.text() == (
        "6 nodes: max_wait is 10 min (target at most 10 min). "
        "5 nodes: max_wait is 20 min (target at most 10 min). "
        "6 nodes is a threshold: the smaller sizes tried (3 to 5) miss a target, others were not tried; "
        "7 and 8 also meet every target.\n"
        "  - one seed: the effect of chance is unknown\n"
        "\n"
        "nodes  max_wait  meets      why\n"
        "3        30 min     no    start\n"
        "4        20 min     no  bracket\n"
        "6        10 min    yes  bracket\n"
        "5        20 min     no  halving\n"
        "7        10 min    yes     scan\n"
        "8        10 min    yes     scan\n"
    )


@pytest.mark.parametrize(
    ("target", "checks", "more", "title"),
    [
        ("max_wait<=10m", 2, {}, "max_wait<=10m: 6 nodes (a threshold)"),
        ("max_wait<=10m", 9, {}, "max_wait<=10m: 6 nodes (smallest)"),
        ("max_wait<=0", 1, {"most": 11}, "max_wait<=0d: none of 5 sizes tried"),
        (("max_wait<=10m", "utilization>=0.8"), None, {},
         "max_wait<=10m, utilisation>=0.8: 6 nodes (a threshold, not stable)"),
    ],
)  # fmt: skip
def test_the_picture_says_what_the_sentence_says(tmp_path, target, checks, more, title):
    sized(machine(3), burst(12), target, checks=checks, **more).plot(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text().replace("&lt;", "<").replace("&gt;", ">")
    assert f"<!-- {title} -->" in text


def test_no_size_in_the_range():
    answer = sized(machine(3), burst(12), "max_wait<=0", most=11)
    assert not answer
    assert (answer.value, answer.number) == (None, None)
    assert answer.sentence == (
        "None of the sizes tried (3, 4, 6 and 9 to 11 nodes) meets max_wait<=0d; "
        "at 11 nodes max_wait is 10 min (target at most 0 s)."
    )
    every = sized(machine(3), burst(12), "max_wait<=0", most=11, checks=11)
    assert every.sentence.startswith("No size from 1 node to 11 nodes, all tried, meets max_wait<=0d; ")


def test_the_least_size_in_the_range():
    answer = sized(machine(3), burst(12), "max_wait<=1d", least=2)
    assert answer.sentence == (
        "2 nodes: max_wait is 50 min (target at most 1 d). "
        "2 nodes is the smallest size of the range: 3 to 5 also meet every target."
    )


def test_load_growth_makes_the_machine_larger():
    """A job a minute for five minutes needs five cores; twice as dense it needs ten, twice as long too."""
    jobs = stream(200, 60, 300)
    assert sized(machine(2), jobs, "max_wait<=0").value == 5
    assert sized(machine(2), jobs, "max_wait<=0", load=2).value == 10
    assert sized(machine(2), jobs, "max_wait<=0", load=2, by="runtime").value == 10


def test_use_sets_a_largest_size():
    """12 jobs in waves: 6 nodes are fully used, 7 are used 12/14; so are 14, and 12 are fully used."""
    both = sized(machine(3), burst(12), ["max_wait<=10m", "utilization>=0.8"])
    assert (both.value, both.limit) == (6, 7)
    assert " Up to 7 nodes every size tried meets every target. 6 nodes is a threshold, " in both.sentence
    assert "but the answer is not stable (12 and 14 are even larger and meet every target): " in both.sentence
    assert (both.coverage.better, both.coverage.worse, both.coverage.stable) == ((12, 14), (), False)
    only = sized(machine(3), burst(12), "utilization>=0.9")
    assert (only.value, only.limit) == (1, 6)
    neither = sized(
        machine(3), burst(12), ["max_wait<=0", "utilisation_core>0.99", "mean_bsld<=1", "p99_wait<1"]
    )
    assert (neither.value, neither.limit) == (12, 12)


def test_targets_that_exclude_each_other():
    jobs = stream(50, 60, 90)  # needs 2 cores, which are then busy three quarters of the time
    answer = sized(machine(4), jobs, ["max_wait<=0", "utilisation>=0.9"])
    assert answer.value is None
    assert answer.sentence.startswith(
        "None of the sizes tried (1 to 5 nodes) meets every target (max_wait<=0d, utilisation>=0.9). "
        "2 nodes is the smallest size tried that meets the targets that a larger machine helps to meet, "
        "but there utilisation is 7"
    )


def test_jobs_that_never_fit_do_not_meet():
    jobs = Workload((*burst(2, shape="slot=5/core").jobs, *(Job(id=9, submit=0, runtime=1, duration=1,
                    jobspec=ss.Jobspec.from_shape("slot=1/core")),)))  # fmt: skip
    answer = sized(machine(2), jobs, "max_wait<=1d")
    assert answer.value == 5
    below = answer.trials[4]
    assert (below.refused, below.infeasible, below.figures) == (True, 2, {})
    assert "4 nodes: 2 jobs can never run (job 1: " in answer.sentence
    assert "jobs that never fit" in answer.table()

    allowed = sized(machine(2), jobs, "max_wait<=1d", allow_infeasible=True)
    assert allowed.value == 1
    assert allowed.notes[0].startswith("2 jobs can never run there and are ignored")
    none = sized(machine(2), jobs, "max_wait<=1d", most=4)
    assert none.sentence.startswith(
        "None of the sizes tried (2 to 4 nodes) meets max_wait<=1d; at 4 nodes 2 jobs can never run (job 1: "
    )


def test_targets_of_some_jobs():
    long = burst(4, 6000, user="ann").jobs
    short = tuple(
        Job(id=10 + n, submit=0, runtime=60, duration=60, jobspec=long[0].jobspec, user="bob", queue="debug")
        for n in range(4)
    )
    jobs = Workload((*long, *short))
    assert sized(machine(2), jobs, "max_wait[user == ann]<=0").value == 4
    assert sized(machine(2), jobs, "max_wait[queue=debug]<=0").value == 8
    assert sized(machine(2), jobs, "max_wait[queue=debug]<=3m").value == 5
    with pytest.raises(ConfigError, match="no job of the workload matches the query"):
        sized(machine(2), jobs, "max_wait[user == nobody]<=0")


def test_a_resample_without_such_jobs_breaks_no_bound():
    """One job of `rare` in a hundred: with some seed there is none."""
    jobs = stream(100, 60, 240)
    rare = Workload((*jobs.jobs[:50], msgspec.structs.replace(jobs.jobs[50], user="rare"), *jobs.jobs[51:]))
    answer = sized(machine(2), rare, "max_wait[user == rare]<=1m", seeds=6, least=2, checks=0)
    values = answer.chosen.figures[answer.rule.targets[0]]
    assert -math.inf in values
    assert values[0] >= 0
    assert "Infinity" not in answer.to_json()
    assert not answer.frame.isin([math.inf, -math.inf]).any(axis=None)


def test_seeds_of_a_burst_differ_where_the_run_draws():
    answer = sized(machine(3), burst(12), "max_wait<=2h", seeds=3, options={"failures": "mtbf=1h,mttr=30m"})
    assert answer.seeds.count == 3
    assert "seeds change only failures and random choices" in answer.notes[-1]
    assert len({row for trial in answer.trials.values() for row in trial.figures.values()}) > 1


def test_headroom_of_a_stream():
    """A job a minute for 240 s on 5 cores: the last core is free until jobs come every 48 s: 1.25 times."""
    answer = room(machine(5), stream(200, 60, 240), "max_wait<=0", by="runtime", step=0.05)
    assert (answer.number, answer.found) == (1.25, True)
    assert answer.sentence.startswith(
        "The machine takes 1.25 times the load: max_wait is 0 s (target at most 0 s). "
    )
    assert not answer.trials[answer.beyond].met


def test_no_headroom():
    answer = room(machine(5), stream(100, 60, 360), "max_wait<=0", by="runtime", step=0.01)
    assert answer.number == pytest.approx(0.83)  # 300 s of 360
    assert not answer.found
    assert answer.sentence.startswith(
        "No headroom: under today's load the machine does not meet max_wait<=0d. It would take 0.83"
    )


def test_headroom_where_today_is_too_little():
    """A job a minute for 60 s on 4 cores uses a quarter of them; at four times the load all of them."""
    targets = ("utilisation>=60%", "max_wait<=0")
    answer = room(machine(4), stream(200, 60, 60), targets, by="runtime", step=0.5, checks=0)
    assert answer.number == 4
    assert not answer.found
    assert not answer
    assert answer.sentence.endswith(" Today's load is too low: utilisation is 25 % (target at least 60 %).")
    more = room(machine(4), stream(200, 60, 60), targets, by="runtime", step=0.5, checks=0, most=3)
    assert (more.number, more.found) == (3, False)
    assert more.sentence.startswith("The machine takes 3 times the load, the upper end of the range: ")
    assert more.sentence.endswith(" Today's load is too low: utilisation is 25 % (target at least 60 %).")


def test_an_overloaded_machine_is_said_to_be():
    """A job of 240 s a minute takes 4 cores: 3 are overloaded, and the wait is that of the workload's end."""
    answer = room(machine(3), stream(31, 60, 240), "max_wait<=1h")
    assert answer.trials[0].offered == pytest.approx(31 * 240 / (3 * 30 * 60))
    assert answer.notes[0].startswith("overloaded: jobs demand ")
    easy = room(machine(8), stream(31, 60, 240), "max_wait<=0", most=1.5)
    assert easy.chosen.offered < 1
    assert "overloaded" not in " ".join(easy.notes)


def test_more_headroom_than_was_asked_for():
    answer = room(machine(50), stream(20, 60, 60), "max_wait<=0", most=3)
    assert answer.sentence == (
        "The machine takes 3 times the load, the upper end of the range: max_wait is 0 s (target at most "
        "0 s). No limit was found: of the lower loads 1, 1.08, 1.24, 1.56, 2.2, 2.98 and 2.99 were "
        "tried, others were not."
    )
    assert answer.beyond is None


def test_not_even_the_least_load():
    answer = room(machine(1), burst(3), "max_wait<=0")
    assert answer.value is None
    assert answer.sentence == (
        "None of the loads tried (0.1 to 0.13, 0.44, 0.76, 0.92 and 1 times the load) meets max_wait<=0d; "
        "at 0.1 times the load max_wait is 20 min (target at most 0 s)."
    )


def test_headroom_with_jobs_that_never_fit():
    answer = room(machine(2), burst(3, shape="slot=3/core"), "max_wait<=1d")
    assert "3 jobs can never run (job 1: " in answer.sentence
    assert len(answer.trials) < 12


# ------------------------------------------------------------ what grows


RECIPE = """
name: two
groups:
  - {name: cpu, count: 2, cores: 4}
  - {name: gpu, count: 1, cores: 4, gpus: 1, properties: [accelerated]}
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(RECIPE)
    return str(path)


@pytest.mark.parametrize(
    ("grow", "shape", "value", "noun"),
    [
        ("gpu", "slot=1/[core;gpu]", 8, "nodes of gpu"),
        ("accelerated", "slot=1/[core;gpu]", 8, "nodes of accelerated"),
        ("gpu0", "slot=1/[core;gpu]", 8, "nodes of gpu0"),
        ("gpus", "slot=1/gpu", 8, "gpus per node"),
        ("groups[1].gpus", "slot=1/gpu", 8, "units of groups[1].gpus"),
        ("cores", "slot=1/core", 3, "cores per node"),  # three nodes
        ("cpu", "slot=1/core", 1, "nodes of cpu"),  # and four cores of the gpu node
        ("groups[0].count", "slot=4/core", 7, "units of groups[0].count"),
    ],
)
def test_what_grows(recipe, grow, shape, value, noun):
    answer = sized(recipe, burst(8, shape=shape), "max_wait<=0", grow=grow, most=20)
    assert (answer.value, answer.axis.noun) == (value, noun)


def test_what_cannot_grow(recipe):
    jobs = burst(2)
    for grow, text in {
        "nodes": "not alike, so it is unclear which to add (expected a group: cpu, gpu)",
        "gpux": "'gpux' does not name anything that can grow",
        "groups[7].count": "the recipe has no groups[7].count",
        "groups[0].name": "groups[0].name is 'cpu' (expected a whole number)",
    }.items():
        with pytest.raises(ConfigError) as caught:
            sized(recipe, jobs, "max_wait<=0", grow=grow)
        assert text in str(caught.value), grow
    with pytest.raises(ConfigError, match="has gpus"):
        sized(machine(3), jobs, "max_wait<=0", grow="gpus")
    with pytest.raises(ConfigError, match=r"groups\[0\].count varies only in a recipe"):
        sized(machine(3), jobs, "max_wait<=0", grow="groups[0].count")


def test_cores_of_a_cluster_that_is_no_recipe_grow():
    answer = sized(machine(3, cores=2), burst(12, shape="node/slot=1/core=3"), "max_wait<=10m", grow="cores")
    assert (answer.value, answer.axis.noun) == (6, "cores per node")  # 3 nodes of 6 cores: six jobs at once
    assert answer.trials[2].refused
    cluster = ss.load_cluster("gpu1152")
    found = sized(
        cluster, burst(2400, shape="slot=1/[core;gpu]"), "max_wait<=10m", grow="gpus", least=1, most=8
    )
    assert (found.value, found.today) == (2, 4)  # 1,152 gpus take 1,152 of them, and 2,304 in two waves


# ------------------------------------------------------------ faults


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"targets": "p95_wait<=soon"}, "not a duration"),
        ({"targets": []}, "no target"),
        ({"seeds": 0}, "seeds: 0 is out of range"),
        ({"confidence": 2}, "confidence: 2 is out of range"),
        ({"meet": "most"}, "meet: unknown value 'most'"),
        ({"least": 9, "most": 3}, "the range 9 to 3 is empty"),
        ({"most": 10**9}, "a size of 1,000,000,000"),
        ({"load": 0}, "a load of 0 is not valid"),
        ({"by": "size"}, "by: unknown value 'size'"),
        ({"options": {"queue-policy": "lifo"}}, "lifo"),
        ({"options": {"colour": "red"}}, "unknown key 'colour'"),
        ({"transforms": ("turn(1)",)}, "unknown transform"),
        ({"transforms": ("first(0)",)}, "the workload has no job"),
        ({"workload": Workload(())}, "the workload has no job"),
        ({"workload": "nowhere.swf"}, "no such file"),
        ({"cluster": "nowhere.json"}, "no such file"),
        ({"workers": -1}, "workers: -1 is out of range"),
        ({"cluster": None}, "None"),
        ({"workload": 7}, "7"),
        ({"targets": None}, "None is not a target"),
        ({"targets": [3]}, "3 is not a target"),
        ({"grow": 3}, "3 is not the name of a number that can grow"),
        ({"seeds": 2.5}, "seeds: 2.5 is not a whole number (expected a whole number from 1 to 1,000)"),
        ({"load": "x"}, "load: 'x' is not a number"),
        ({"least": "x"}, "least is 'x' (expected a whole number of 0 or more)"),
        ({"warm_up": "soon"}, "not a duration"),
        ({"colour": "red"}, "unknown option 'colour'"),
        ({"queue_policy": "lifo"}, "unknown queue policy 'lifo'"),
    ],
)
def test_faults_are_named(more, text):
    given = {"cluster": machine(2), "workload": burst(3), "targets": "max_wait<=0", **more}
    with pytest.raises(SimschedError) as caught:
        sized(given.pop("cluster"), given.pop("workload"), given.pop("targets"), **given)
    assert text in str(caught.value)


def test_faults_of_headroom_are_named():
    for more, text in (
        ({"step": 0}, "a step of 0 is out of range"),
        ({"least": 2}, "loads from 2 to 10"),
        ({"most": 0.5}, "loads from 0.1 to 0.5"),
        ({"load": -1}, "load: -1 is out of range"),
    ):
        with pytest.raises(ConfigError, match=text):
            room(machine(2), burst(3), "max_wait<=0", **more)


def test_a_block_that_does_not_fit_is_refused_before_anything_is_run():
    with pytest.raises(ConfigError, match="at least two whole blocks"):
        sized(machine(2), stream(20, 60, 60), "max_wait<=0", seeds=3, block="1d")
    with pytest.raises(FormatError, match="not a duration"):
        sized(machine(2), stream(20, 60, 60), "max_wait<=0", seeds=3, block="soon")


# ------------------------------------------------------------ seeds, bytes, workers


@cache
def noisy() -> Workload:
    """Jobs that come at random, of random lengths and widths: about eleven cores are busy."""
    rng = np.random.default_rng(8)
    specs = [ss.Jobspec.from_shape(f"slot={n}/core") for n in (1, 1, 2, 5)]
    submits = np.cumsum(rng.exponential(60, 160)).astype(int).tolist()
    lengths = (1 + rng.exponential(300, 160)).astype(int).tolist()
    jobs = [
        Job(id=n + 1, submit=at, runtime=s, duration=2 * s, jobspec=specs[n % 4], user="ab"[n % 2])
        for n, (at, s) in enumerate(zip(submits, lengths, strict=True))
    ]
    return Workload(tuple(jobs), name="noisy")


def test_a_burst_has_nothing_to_resample():
    answer = sized(machine(3), burst(12), "max_wait<=10m", seeds=5)
    assert (answer.seeds.count, answer.seeds.block) == (1, None)
    assert "nothing to resample" in answer.notes[0]


def test_the_first_seed_is_the_workload_as_it_is():
    one, many = searched(1), searched(3)
    target = one.rule.targets[0]
    for value in set(one.trials) & set(many.trials):
        assert one.trials[value].figures[target][0] == many.trials[value].figures[target][0]
    assert 20 in set(one.trials) & set(many.trials)
    assert many.value >= one.value
    assert len(set(many.trials[20].figures[target])) == 3


def test_every_seed_meets_at_the_answer_and_not_one_step_below():
    answer = searched(3)
    target = answer.rule.targets[0]
    assert answer.value > 1
    assert all(map(target.met_by, answer.trials[answer.value].figures[target]))
    assert not all(map(target.met_by, answer.trials[answer.value - 1].figures[target]))


def test_what_it_is_to_meet():
    """Law: a mean is met wherever every seed is, and wherever its whole interval is."""
    for trial in searched(3).trials.values():
        met = {m: AcceptanceRule(searched(3).rule.targets, m) for m in CRITERIA}
        for target, values in trial.figures.items():
            verdict = {m: rule.met(target, values) for m, rule in met.items()}
            assert verdict["mean"] >= max(verdict["confident"], verdict["every"])
    assert searched(3, "mean").value <= searched(3).value
    assert "on average" in searched(3, "mean").sentence


@pytest.mark.integration
def test_equal_searches_give_equal_bytes_wherever_they_run():
    again = sized(machine(20), noisy(), ("p95_wait<=3m", "utilisation>=10%"), seeds=3, workers=2)
    assert again.to_json() == searched(3).to_json()
    assert again.to_csv() == searched(3).to_csv()


def test_an_answer_can_be_kept_and_compared():
    found = searched(2)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.search == found.search
    assert again.text() == found.text()


def test_the_answer_as_json():
    answer = searched(3)
    found = json.loads(answer.to_json())
    assert (found["question"], found["answer"], found["found"]) == ("size", answer.value, True)
    assert [t["text"] for t in found["targets"]] == ["p95_wait<=3m", "utilisation>=0.1"]
    trial = next(t for t in found["trials"] if t["value"] == answer.value)
    assert trial["meets"]
    assert len(trial["figures"]["p95_wait"]["values"]) == 3
    low, high = trial["figures"]["p95_wait"]["interval"]
    assert low <= trial["figures"]["p95_wait"]["mean"] <= high
    assert found["seeds"] == {"count": 3, "first": 0, "block": answer.seeds.block, "shake": None}
    assert (found["stable"], found["best_of_tried"], found["every_between_tried"]) == (
        answer.coverage.stable, True, answer.coverage.complete)  # fmt: skip
    assert found["tried"] == sorted(answer.trials)
    assert set(found["differences"]) == {"p95_wait", "utilisation"}
    assert len(answer.frame) == 3 * len(answer.trials)


def test_noise_is_said():
    notes = " ".join(searched(3).notes)
    assert "p95_wait is within noise of its target: another seed is expected to give between" in notes
    assert "the workload as it is and 2 resamples in blocks of " in notes
    assert "utilisation is within noise" not in notes


def test_warm_up_and_drain_are_left_out():
    """A burst at the beginning counts for nothing when the first minutes do not."""
    jobs = Workload((*burst(12, 60).jobs, *(Job(id=100 + n, submit=1000 + n, runtime=10, duration=10,
                    jobspec=burst(1).jobs[0].jobspec) for n in range(5))))  # fmt: skip
    assert sized(machine(1), jobs, "max_wait<=0").value == 12
    assert sized(machine(1), jobs, "max_wait<=0", warm_up=600).value == 5


# ------------------------------------------------------------ the directory


def test_the_directory_of_an_answer(tmp_path):
    answer = searched(3)
    files = answer.write(tmp_path / "a")
    assert sorted(path.name for path in files) == ["answer.json", "answer.png", "trials.csv"]
    assert (tmp_path / "a" / "answer.png").read_bytes().startswith(b"\x89PNG")
    answer.write(tmp_path / "b")
    for name in ("answer.json", "answer.png", "trials.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.tex").write_text("mine")
    with pytest.raises(RunError, match="holds something that is not an answer"):
        answer.write(tmp_path / "c")


def test_kept_runs_say_the_same(tmp_path):
    """Law: figures of an answer are those of the runs' own directories, computed from their jobs alone."""
    answer = sized(machine(20), noisy(), ["p80_wait<=3m", "max_wait[user == a]<=30m"], seeds=2, least=19,
                   checks=0, runs=tmp_path)  # fmt: skip
    wide, own = answer.rule.targets
    for trial in answer.trials.values():
        for place, key in enumerate(trial.keys):
            jobs = ss.load_run(tmp_path / key).jobs
            wait = jobs["start"] - jobs["submit"]
            assert wait.quantile(0.8) == pytest.approx(trial.figures[wide][place])
            assert wait[jobs["user"] == "a"].max() == pytest.approx(trial.figures[own][place])
