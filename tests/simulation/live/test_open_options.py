"""Limits, the order ``multifactor`` and predictors in open simulations: the same bytes as `simulate`."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.errors import ConfigError, RunError

USERS = [{"account": name} for name in "ab"] + [
    {"account": "ab"[number % 2], "user": str(number), "shares": 1 + number % 3} for number in range(1, 61)
]
OPTIONS = {
    "easy++": {"queue_policy": "easy++"},
    "perfect": {"queue_policy": "conservative", "predictor": "perfect"},
    "predicted-graph": {"predictor": "quantile(0.5, 3)", "match_policy": "lonode", "order": "sjf"},
    "running": {"limits": [{"each": "user", "running-jobs": 2}]},
    "hours": {"limits": [{"node-hours": 500}, {"each": "user", "running-core-hours": 300}]},
    "submitted": {"limits": [{"each": "user", "submitted-jobs": 3, "over": "reject"}]},
    "held": {"limits": [{"each": "user", "cores": 20, "duration": "10h"}], "queue_policy": "conservative"},
    "blocking": {"limits": [{"user": "1", "running-jobs": 1, "blocks": True}]},
    "factors": {"priority": {"factors": {"age": 1000, "size": 500}}},
    "period": {"priority": {"period": "5m", "rounding": "down", "most": 900, "factors": {
        "age": {"weight": 1000, "max": "1d"}, "duration": {"weight": 500, "favour": "short"}}}},
    "fair-share": {"priority": {"accounts": USERS, "fair-share": {"half-life": "1d"},
                                "factors": {"fair-share": 1000, "age": 100}}},
    "all": {"priority": {"accounts": USERS, "factors": {"fair-share": 1000}}, "predictor": "last-two",
            "limits": [{"each": "user", "running-jobs": 3}]},
}  # fmt: skip


@pytest.fixture(scope="module")
def month():
    return ss.load_workload("month", limit=400)


def parts(run):
    return run.result.log.text(), run.jobs.to_csv(), run.timeline.to_csv()


@pytest.mark.parametrize("name", OPTIONS)
def test_the_records_are_those_of_simulate(month, name):
    """Submitted beforehand, one by one by a process, on a copy, and from a file."""
    options = OPTIONS[name]
    expected = parts(ss.simulate("flat240", month, **options))

    def begun():
        return ss.Simulation("flat240", expect=month, **options)

    sim = begun()
    sim.submit_all(month)
    sim.run(until=month.jobs[200].submit)
    twin = sim.copy()
    sim.run()
    twin.run()
    assert parts(sim.result()) == expected
    assert parts(twin.result()) == expected
    live = begun()

    def submitted():
        for job in month.jobs:
            yield live.env.timeout(job.submit - live.env.now)
            live.submit(job)

    live.env.process(submitted())
    live.run()
    assert parts(live.result()) == expected


def test_limits_hold_and_name_their_users():
    sim = ss.Simulation("tiny", limits=[{"each": "user", "running-jobs": 1}])
    first, second = (sim.submit("slot/core", 100, user="ann") for _ in range(2))
    other = sim.submit("slot/core", 100, user="bob")
    sim.run(until=50)
    assert (first.start, second.start, other.start) == (0, None, 0)
    shown = sim.result().jobs.set_index("id")["reason"].to_dict()
    assert (
        "each user may run 1 job" in shown[str(second.id)]
        or "user ann may run 1 job" in shown[str(second.id)]
    )
    assert second.reason is None  # the records do not change the run
    sim.run()
    assert second.start == 100
    assert sim.audit()


def test_a_job_that_a_limit_never_allows():
    sim = ss.Simulation("tiny", limits=[{"cores": 4, "over": "reject"}])
    job = sim.submit("slot=2/core=4", 100)
    sim.run()
    assert job.result == "FAILED"
    assert "may use at most 4 cores" in job.reason


@pytest.mark.parametrize("call", [lambda job: job.update(duration=50), lambda job: job.resize(1)])
def test_under_limits_a_job_does_not_change(call):
    sim = ss.Simulation("tiny", limits=[{"cores": 16}])
    job = sim.submit("slot=1-2/node", 100)
    sim.run(until=1)
    with pytest.raises(RunError, match="in a run with limits a job stays as it was submitted"):
        call(job)


def test_a_job_without_an_account_is_refused_when_it_is_submitted():
    sim = ss.Simulation("tiny", priority={"accounts": USERS, "factors": {"fair-share": 1}})
    with pytest.raises(ConfigError, match="the user 'eve' of job 1 is in no account"):
        sim.submit("slot/core", 10, user="eve")
    job = sim.submit("slot/core", 10, user="7")
    sim.run()
    assert job.result == "COMPLETED"


def test_an_attribute_that_is_no_number_is_refused_when_the_job_is_submitted():
    rules = {"factors": {"weight": {"kind": "attribute", "key": "system.level", "weight": 3}}}
    sim = ss.Simulation("tiny", priority=rules)
    spec = ss.Jobspec.from_shape("slot/core", duration=5).to_dict()
    spec["attributes"]["system"]["level"] = "high"
    with pytest.raises(ConfigError, match=r"the attribute system\.level of job 1 is 'high'"):
        sim.submit(spec)


@pytest.mark.parametrize(
    "more", [{}, {"accounts": USERS, "fair-share": {"unknown-users": "add"}}], ids=["none", "add"]
)
def test_fair_share_needs_accounts(more):
    with pytest.raises(ConfigError, match="does not make the accounts of fair share from its jobs"):
        ss.Simulation("tiny", priority={"factors": {"fair-share": 1}, **more})


def test_a_log_is_not_played():
    with pytest.raises(ConfigError, match="does not have the option queue-policy recorded"):
        ss.Simulation("tiny", queue_policy="recorded")


def test_a_changed_limit_changes_the_prediction():
    """A job that waits is predicted again, and one that runs ends by its new limit."""
    sim = ss.Simulation("tiny", queue_policy="easy++")
    for _ in range(2):
        sim.submit("slot=4/node", 1000, 100, user="ann")
    sim.run()
    long = sim.submit("slot=4/node", 1000, 900, user="ann")  # predicted: 100 s
    wide = sim.submit("slot=4/node", 50, user="bob")
    sim.run(until=sim.now + 150)
    long.update(duration=300)
    wide.update(duration=80)
    sim.run()
    assert (long.end - long.start, long.result) == (300, "TIMEOUT")
    assert wide.start == long.end
    assert wide.end - wide.start == 80
    assert sim.audit()
