"""The environment of Gymnasium: its interface, and what the actions do to a schedule."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import simsched as ss
from simsched.errors import ConfigError
from simsched.rl import KINDS, baseline_table, play, rule

HOUR = 3600


NODES = (("slot={}/node", 5),)
SEVERAL = (("slot={}/core", 9), ("slot={}/core=2", 6), ("slot={}/node", 4))
"""Shapes and what their copies stay below, in turn; of these, several requests fit beside the first job."""


def crowd(count=60, seed=3, gap=900, shapes=NODES):
    """Jobs with wrong requested times, that come faster than they end."""
    rng = np.random.default_rng(seed)
    at, jobs = 0, []
    for number in range(1, count + 1):
        at += int(rng.integers(0, gap))
        runtime = int(rng.integers(60, 2 * HOUR))
        shape, most = shapes[number % len(shapes)]
        jobs.append(ss.Job(
            id=number, submit=at, jobspec=ss.Jobspec.from_shape(shape.format(rng.integers(1, most))),
            runtime=runtime, duration=int(runtime * rng.uniform(1, 4)),
        ))  # fmt: skip
    return ss.Workload(tuple(jobs), name="crowd")


def make(**options):
    options = {"cluster": "tiny", "workload": crowd(), "jobs": 60, "visible": 16, **options}
    return gymnasium.make("simsched/Backfill-v0", disable_env_checker=True, **options)


def starts(env):
    recorder = env.unwrapped.simulation.engine.recorder
    return list(recorder.start)


@pytest.mark.parametrize("actions", KINDS)
@pytest.mark.parametrize("jobs", [5, 40])
def test_gymnasiums_own_checker(actions, jobs):
    env = gymnasium.make(
        "simsched/Backfill-v0", cluster="tiny", workload=crowd(), jobs=jobs, visible=8, actions=actions
    )
    check_env(env.unwrapped, skip_render_check=True)


def mixed(workload, exact=False):
    """The same jobs, a third of them with a request of another kind, so that the matcher decides."""
    begin = workload.jobs[0].submit
    return ss.Workload(tuple(
        ss.Job(id=job.id, submit=job.submit - begin, duration=job.duration,
               jobspec=job.jobspec if number % 3 else ss.Jobspec.from_shape("slot=3/core"),
               runtime=job.duration if exact else job.runtime)
        for number, job in enumerate(workload.jobs)
    ), name="mixed")  # fmt: skip


@pytest.mark.parametrize(
    ("actions", "policy", "workload"),
    [
        ("backfill", "easy", crowd()),
        ("next-easy", "easy", crowd()),
        ("next-easy", "easy", mixed(crowd())),
        ("next-easy", "easy", crowd(60, 0, 300, SEVERAL)),
        ("next-easy", "easy", crowd(60, 1, 300, SEVERAL)),
        ("next", "fcfs", crowd()),
        ("next", "fcfs", mixed(crowd())),
    ],
)
def test_first_come_first_served_is_the_queue_policy(actions, policy, workload):
    env = make(workload=workload, actions=actions, jobs=len(workload.jobs), visible=60)
    play(env, rule("fcfs"), begin=0)
    run = ss.simulate("tiny", workload, queue_policy=policy)
    origin = workload.jobs[0].submit
    assert starts(env) == (run.jobs["start"] - origin).tolist()


@pytest.mark.parametrize("actions", KINDS)
def test_random_schedules_pass_the_audit(actions):
    env = make(actions=actions, records=True)
    play(env, rule("random"), seed=5)
    report = env.unwrapped.simulation.audit()
    assert report, report
    assert not np.isnan(starts(env)).any()


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_backfilled_job_never_delays_the_first(seed):
    """Run times are the requested ones, so the first job starts by the shadow time of its first choice."""
    exact = mixed(crowd(seed=seed), exact=True)
    env = make(workload=exact)
    observation, info = env.reset(options={"begin": 0})
    promised, over, agent = {}, False, rule("random", 4)
    while not over:
        choice = env.unwrapped.choice
        if choice is not None:
            promised.setdefault(int(choice.jobs[0]), choice.shadow.time(choice.context.supply))
        observation, _, over, _, info = env.step(agent(env, observation, info["action_mask"]))
    assert promised
    began = starts(env)
    assert all(began[job] <= time for job, time in promised.items())


def test_equal_seeds_give_equal_episodes_and_others_other_windows():
    env = make(jobs=20)
    seen = []
    for seed in (1, 1, 2):
        observation, info = env.reset(seed=seed)
        seen.append((info["begin"], observation["jobs"].tolist()))
    assert seen[0] == seen[1] != seen[2]


def test_the_return_is_the_metric_over_all_jobs():
    for reward, key, factor in (
        ("bounded-slowdown", "mean_bounded_slowdown", -1), ("wait", "mean_wait", -1 / HOUR),
        ("utilisation", "utilisation", 1),
    ):  # fmt: skip
        found = play(make(reward=reward), rule("sjf"), begin=0)
        assert found["return"] == pytest.approx(factor * found[key])
        assert found["started"] == 60


def test_metrics_agree_with_the_report_of_the_run():
    env = make(records=True)
    found = play(env, rule("sjf"), begin=0)
    jobs = env.unwrapped.simulation.result().jobs
    assert found["mean_wait"] == pytest.approx((jobs["start"] - jobs["submit"]).mean())
    work = ((jobs["end"] - jobs["start"]) * jobs["nodes"]).sum()
    assert found["utilisation"] == pytest.approx(work / 4 / jobs["end"].max())


def test_a_reward_function_sees_the_started_jobs():
    seen = []
    env = make(reward=lambda env, started: seen.extend(job.number for job in started) or 1.0)
    play(env, rule("fcfs"), begin=0)
    assert sorted(seen) == list(range(60))


def test_an_episode_without_any_choice_has_one_step():
    lonely = ss.Workload(
        (ss.Job(id=1, submit=5, jobspec=ss.Jobspec.from_shape("slot=1/node"), runtime=50, duration=60),),
        name="one",
    )
    env = make(workload=lonely)
    _, info = env.reset()
    assert info["action_mask"].nonzero()[0].tolist() == [16]
    _, reward, over, _, info = env.step(16)
    assert (reward, over, info["metrics"]["utilisation"]) == (-1.0, True, 0.25)
    with pytest.raises(ConfigError, match=r"there is no episode, or it is over \(expected reset\(\) first\)"):
        env.step(16)


@pytest.mark.parametrize("action", [-1, 17, "x", None, 1.5, True])
def test_an_action_that_does_not_exist(action):
    env = make()
    env.reset(seed=1)
    with pytest.raises(ConfigError, match=r"action is .* \(expected a whole number from 0 to 16\)"):
        env.step(action)


def test_a_masked_action_is_an_error_or_replaced():
    for masked in ("first", "error"):
        env = make(masked=masked)
        _, info = env.reset(seed=1)
        bad = int((~info["action_mask"]).argmax())
        if masked == "first":
            assert env.step(bad)[4]["replaced"] is True
        else:
            with pytest.raises(ConfigError, match=rf"action {bad} is masked at \d+ s \(expected [\d, …]+\)"):
                env.step(bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actions": "nxt"}, "unknown value 'nxt' of actions; did you mean next?"),
        ({"reward": "waits"}, "unknown reward 'waits'; did you mean wait?"),
        ({"jobs": 0}, "jobs is 0"),
        ({"visible": 1.5}, "visible is 1.5"),
        ({"cluster": None}, "neither a cluster nor a site"),
        ({"workload": None}, "there is no workload"),
        ({"queue_policy": "easy"}, "the option queue_policy is given"),
        ({"seed": 1}, "the option seed is given (expected reset(seed=…))"),
        ({"ordr": "sjf"}, "ordr"),
        ({"workload": ss.Workload((), name="none")}, "the workload has no jobs"),
    ],
)
def test_a_wrong_option_is_one_message(options, message):
    with pytest.raises(ss.SimschedError) as error:
        make(**options)
    assert message in str(error.value)


def test_wrong_options_of_reset():
    env = make(jobs=20)
    with pytest.raises(ConfigError, match="begin is 41"):
        env.reset(options={"begin": 41})
    with pytest.raises(ConfigError, match="unknown option 'start' of reset"):
        env.reset(options={"start": 1})


def test_a_site_brings_its_queues(tmp_path):
    (tmp_path / "cluster.json").write_text(__import__("json").dumps(ss.load_cluster("tiny").to_dict()))
    (tmp_path / "queues.toml").write_text(
        "queue-policy = 'easy'\n[queues.low]\npriority = 1\n[queues.high]\npriority = 5\n"
    )
    jobs = tuple(
        ss.Job(id=job.id, submit=job.submit, jobspec=job.jobspec, runtime=job.runtime, duration=job.duration,
               queue="high" if job.id % 2 else "low")
        for job in crowd().jobs
    )  # fmt: skip
    for actions in KINDS:
        env = make(
            cluster=None, site=tmp_path, workload=ss.Workload(jobs, name="two queues"), actions=actions
        )
        assert play(env, rule("random"), seed=1)["started"] == 60


def test_the_table_of_baselines():
    env = make(actions="next-easy", jobs=40)
    table = baseline_table(env, episodes=3, seed=1, agents=[("mine", rule("sjf"))])
    assert list(table) == ["fcfs", "sjf", "f1", "random", "mine"]
    assert table["mine"] == table["sjf"]
    assert table["sjf"]["mean_wait"] < table["fcfs"]["mean_wait"]
    with pytest.raises(ConfigError, match="unknown rule 'fifo'"):
        rule("fifo")


def test_a_reward_function_that_fails_is_named():
    def no_number(env, started):
        return "much"

    def no_job(env, started):
        return started[1000].wait

    for reward, text in (
        (no_number, "'no_number' returned 'much'"),
        (no_job, "'no_job' failed in no_job: Index"),
    ):
        env = gymnasium.make(
            "simsched/Backfill-v0", cluster="flat240", workload="month", jobs=8, reward=reward
        )
        _, info = env.reset(seed=1)
        with pytest.raises(ss.PluginError, match=text):
            env.step(int(info["action_mask"].nonzero()[0][0]))


@pytest.mark.parametrize("seed", range(4))
def test_each_job_is_allowed_for_itself(seed):
    """A job is masked only if it delays the first by itself, and not beside another that was tried."""
    env = make(workload=crowd(120, seed, 300, SEVERAL), jobs=120, visible=60)
    observation, info = env.reset(options={"begin": 0})
    seen, over, agent = set(), False, rule("random", 4)
    while not over:
        choice = env.unwrapped.choice
        if choice is not None and choice.shadow is not None:
            supply, first = choice.context.supply, int(choice.jobs[0])
            for job, fits, allowed in zip(choice.jobs[1:], choice.fits[1:], choice.allowed[1:], strict=True):
                alone = supply.shadow(first, fixed=True)
                ends = choice.context.now + choice.context.table.judged[job]
                passes = ends <= alone.time(supply) or alone.fit_beside(supply, int(job)) is not None
                assert bool(allowed) == bool(fits and passes)
                seen.add((bool(allowed), passes))
        observation, _, over, _, info = env.step(agent(env, observation, info["action_mask"]))
    assert seen >= {(True, True), (False, False)}
