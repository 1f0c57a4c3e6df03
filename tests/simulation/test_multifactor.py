"""Runs under the order ``multifactor``: factors, accounts, queues, checkpoints and forecasts."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.errors import InputWarning, SimschedError
from simsched.formats.rfc.dependency import Dependency
from simsched.simulation.checkpoint.checkpoint import read_checkpoint
from simsched.simulation.forecast.start_times import forecast
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of
from simsched.study.spec.study_file import study_from_dict

HOUR = 3600


def job(number, submit=0, cores=4, hours=1, **more):
    seconds = int(hours * HOUR)
    spec = ss.Jobspec.from_shape(f"slot={cores}/core", duration=seconds)
    return ss.Job(id=number, submit=submit, runtime=seconds, duration=seconds, jobspec=spec, **more)


def machine(cores=4):
    lite = [{"rank": f"0-{cores - 1}", "children": {"core": "0"}}]
    execution = {"R_lite": lite, "nodelist": [f"n[0-{cores - 1}]"], "starttime": 0, "expiration": 0}
    return ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))


def order_of(jobs, priority, **options):
    """The ids in the order of their starts."""
    workload = ss.Workload(jobs=tuple(sorted(jobs, key=lambda one: one.submit)), name="made")
    run = ss.simulate(machine(), workload, "fcfs", priority=priority, **options)
    return run.jobs.sort_values("start")["id"].astype(int).tolist()


FIRST = job(0, user="x", bank="b")
"""Takes the whole machine for an hour, so that the others wait."""


@pytest.mark.parametrize(
    ("factors", "others", "order"),
    [
        ({"size": 1}, [{"cores": 1, "hours": 2}, {"cores": 4}], [2, 1]),
        ({"size": {"weight": 1, "favour": "small"}}, [{"cores": 4}, {"cores": 1}], [2, 1]),
        ({"cores": -1}, [{"cores": 4}, {"cores": 1}], [2, 1]),
        ({"urgency": 1}, [{"urgency": 10}, {"urgency": 20}], [2, 1]),
        ({"user": {"weight": 1, "values": {"eve": 5}}}, [{"user": "bob"}, {"user": "eve"}], [2, 1]),
        (
            {"account": {"weight": 1, "values": {"a": 1}, "default": 2}},
            [{"bank": "a"}, {"bank": "b"}],
            [2, 1],
        ),
        ({"qos": {"weight": 1, "values": {"high": 9}}}, [{"qos": "low"}, {"qos": "high"}], [2, 1]),
        ({"duration": {"weight": 1, "favour": "short"}}, [{"hours": 2}, {"hours": 1}], [2, 1]),
        ({"attribute": {"weight": 1, "key": "priority"}}, [{"priority": 1}, {"priority": 2}], [2, 1]),
        ({"attribute": {"weight": 1, "key": "name", "values": {"n": 1}}}, [{}, {"name": "n"}], [2, 1]),
        ({"constant": 5}, [{}, {}], [1, 2]),
        ({"age": 1, "cores": {"weight": 1, "most": 0}}, [{"submit": 9}, {"submit": 7, "cores": 1}], [2, 1]),
    ],
)
def test_each_factor_moves_a_job(factors, others, order):
    others = [job(at, **{"submit": 1, **more}) for at, more in enumerate(others, 1)]
    assert order_of([FIRST, *others], {"factors": factors})[1:] == order


def test_the_worked_example_of_the_formula_of_flux():
    """Banks A and C of job-priorities.rst, of priority 300 and -5, with the weight 10: 53000 and 49950."""

    lines = {"bank": 10, "banks": {"A": 300, "B": 100, "C": -5}}
    # the document gives both users a fair share of 1/2, which takes a third user of two
    rows = [
        {"account": "A", "user": "user2", "usage": 1}, {"account": "C", "user": "user2", "usage": 1},
        {"account": "B", "user": "user3"}, {"account": "B", "user": "user4"},
    ]  # fmt: skip
    rows += [{"account": "A"}, {"account": "C"}, {"account": "B", "usage": 0}]
    jobs = (
        job(1, user="user2", bank="A"),
        job(2, user="user2", bank="C"),
        job(3, user="user2", bank="A", urgency=31),
    )
    priority = {"preset": "flux-accounting", "lines": lines, "accounts": rows}
    workload = ss.Workload(jobs=jobs, name="made")
    engine, prepared, _ = engine_of(machine(), workload, make_config(priority=priority))
    found = -engine.queues.priority.keys(prepared.table, np.arange(3), 0.0)
    assert found.tolist() == [53_000, 49_950, 2**32 - 1]


def test_fair_share_goes_by_the_use_of_running_jobs():
    """Ann's job has run for an hour when Bob's and her next one are compared; under FCFS hers came first."""
    jobs = [job(1, user="ann", bank="p"), job(2, 1, user="ann", bank="p"), job(3, 2, user="bob", bank="p")]
    rows = [{"account": "p", "user": "ann"}, {"account": "p", "user": "bob"}]
    assert order_of(jobs, {"factors": {"fair-share": 1}, "accounts": rows}) == [1, 3, 2]
    assert order_of(jobs, {"factors": {"fair-share": 1}}) == [1, 3, 2]
    given = [{**rows[0], "usage": 0}, {**rows[1], "usage": 10**9}]
    assert order_of(jobs, {"factors": {"fair-share": 1}, "accounts": given}) == [1, 2, 3]


@pytest.mark.parametrize(
    ("user", "bank", "message"),
    [
        ("eve", "p", "priority.accounts: the user 'eve' of job 1 is not in the account 'p'"),
        ("eve", None, "priority.accounts: the user 'eve' of job 1 is in no account"),
        (
            "ann",
            None,
            "priority.accounts: job 1 names no account, and its user 'ann' has no default (expected one of",
        ),
        (None, "p", "priority.accounts: job 1 has no user"),
    ],
)
def test_users_without_an_account(user, bank, message):
    rows = [{"account": "p", "user": "ann"}, {"account": "q", "user": "ann"}]
    priority = {"factors": {"fair-share": 1}, "accounts": rows}
    with pytest.raises(SimschedError) as error:
        order_of([job(1, user=user, bank=bank)], priority)
    assert str(error.value).startswith(message)
    assert order_of([job(1, user=user, bank=bank)], {**priority, "fair-share": {"unknown-users": "add"}}) == [
        1
    ]


def test_an_order_without_factors_is_refused():
    with pytest.raises(SimschedError, match="the order multifactor has no factors"):
        order_of([FIRST], None, order="multifactor")


def test_another_order_leaves_the_priority_aside():
    jobs = [FIRST, job(1, 1), job(2, 2, urgency=20)]
    assert order_of(jobs, {"factors": {"urgency": 1}}) == [0, 2, 1]
    with pytest.warns(InputWarning, match="priority is not used by the order fifo"):
        assert order_of(jobs, {"factors": {"urgency": 1}}, order="fifo") == [0, 1, 2]


PRIORITY = {
    "preset": "slurm",
    "lines": {
        "PriorityWeightAge": 1000, "PriorityWeightFairShare": 5000, "PriorityWeightJobSize": 100,
        "PriorityDecayHalfLife": "0-2", "PriorityMaxAge": "0-5", "PriorityUsageResetPeriod": "DAILY",
    },
}  # fmt: skip
QUEUES = {"a": {"hosts": "n[0-1]"}, "b": {"hosts": "n[2-3]"}}


def busy(seed=3, jobs=120):
    rng = np.random.default_rng(seed)
    made = [
        job(
            number, int(rng.integers(0, 100_000)), int(rng.integers(1, 3)), float(rng.choice([0.01, 0.3, 2])),
            user=f"u{rng.integers(4)}", bank=f"b{rng.integers(2)}", queue=str(rng.choice(["a", "b"])),
        )
        for number in range(jobs)
    ]  # fmt: skip
    return ss.Workload(jobs=tuple(sorted(made, key=lambda one: one.submit)), name="busy")


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@pytest.mark.parametrize("queues", [None, QUEUES])
def test_a_run_from_a_checkpoint_is_the_same(tmp_path, policy, queues):
    options = {"queue_policy": policy, "priority": PRIORITY, "queues": queues}
    file = tmp_path / "state.json"
    whole = ss.simulate(machine(), busy(), checkpoints={40_123: file}, **options)
    rest = ss.simulate(machine(), busy(), resume=file, **options)
    assert rest.jobs["start"].tolist() == whole.jobs["start"].tolist()
    assert read_checkpoint(file).time == 40_123
    if queues is None:
        predicted = forecast(machine(), busy(), 40_123, resume=file, **options)
        assert predicted == forecast(machine(), busy(), 40_123, **options)


def test_the_age_of_a_job_counts_from_the_end_of_its_dependencies():
    """Job 2 was submitted first and becomes eligible last; by its submission it is the oldest."""
    after = Dependency("afterany", "0")
    jobs = [FIRST, job(2, 1, dependencies=(after,)), job(1, 2), job(3, 3)]
    age = {"factors": {"age": 1000}}
    assert order_of(jobs, age) == [0, 1, 3, 2]
    assert order_of(jobs, {**age, "age-from": "submit"}) == [0, 2, 1, 3]


def test_priority_is_an_axis_of_a_study():
    study = study_from_dict(
        {
            "cluster": "tiny",
            "workload": "first-steps",
            "axes": {
                "priority": [{"label": name, "value": {"factors": {name: 1}}} for name in ("age", "size")]
            },
        }
    )
    assert [setting.label for setting in study.axes[0].settings] == ["age", "size"]
