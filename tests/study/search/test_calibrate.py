"""Calibration: known rules are found again, chance is not taken for a rule, bad logs are refused."""

import json
import tomllib
from dataclasses import replace as replaced
from types import SimpleNamespace

import numpy as np
import pytest

from simsched.cli import main
from simsched.errors import ConfigError
from simsched.simulation.options.config_file import read_config
from simsched.simulation.options.run_config import make_config
from simsched.study.search.calibrate import _Search, calibrate
from simsched.study.search.knobs import KNOBS, WEEK, Knob, knobs_named
from simsched.study.search.search_request import CalibrationRequest
from simsched.study.search.trials import TimeSplit, Trial, Trials, WaitBlocks
from simsched.workload.save import save_workload
from tests.simulation.simworld import job, machine, workload
from tests.study.search.loglab import machine_and_log

FEW = ("order", "epilog")


def test_the_order_of_a_log_is_found_and_explains_all_of_it():
    cluster, log = machine_and_log(jobs=300, order="smallest-area")
    found = calibrate(cluster, log, knobs=FEW, workers=0)
    assert found
    assert found.final.label == "order: smallest-area"
    assert found.after.held_out.estimate == pytest.approx(0, abs=1e-9)
    assert found.gain.held_out.low > 0
    assert "falls from" in found.sentence
    assert found.config["order"] == "smallest-area"


@pytest.mark.slow
def test_two_rules_are_found_together_and_each_is_needed():
    cluster, log = machine_and_log(jobs=420, order="smallest-area", epilog="15m")
    found = calibrate(cluster, log, knobs=FEW, workers=0)
    assert {knob for knob, _ in found.final.choice} == {"order", "epilog"}
    assert found.after.held_out.estimate == pytest.approx(0, abs=1e-9)
    assert set(found.without) == {"order", "epilog"}
    assert all(effect.held_out.estimate < 0 for effect in found.without.values())


def test_of_each_knob_the_best_settings_are_tried_beside_others(monkeypatch):
    """Eight orders are tried by themselves; beside the epilog that is chosen only the best two are."""
    tried = []
    make = Trials.make
    monkeypatch.setattr(Trials, "make", lambda self, choices: tried.extend(choices) or make(self, choices))
    cluster, log = machine_and_log(jobs=200, epilog="15m")
    found = calibrate(cluster, log, knobs=FEW, beside=2, workers=0)
    beside = {dict(choice)["order"].label for choice in tried if len(choice) == 2}
    orders = [effect for effect in found.alone if effect.trial.choice[0][0] == "order"]
    best = sorted(orders, key=lambda effect: -effect.training.estimate)
    assert len(best) > 2
    assert beside
    assert beside <= {effect.trial.choice[0][1].label for effect in best[:2]}


def test_priorities_of_queues_are_learnt_from_the_training_waits():
    queues = {"fast": {"priority": 9}, "slow": {"priority": 0}}
    cluster, log = machine_and_log(names=("fast", "slow", "slow"), queues=queues)
    found = calibrate(cluster, log, knobs=("queue-priority",), workers=0)
    assert found.final.label == "queue-priority: fast before slow"
    assert found.after.held_out.estimate == pytest.approx(0, abs=1e-9)


def test_nothing_is_kept_where_the_log_is_the_baseline():
    cluster, log = machine_and_log(jobs=200)
    found = calibrate(cluster, log, knobs=("order", "depth"), workers=0)
    assert not found
    assert found.final is found.base
    assert found.steps == ()
    assert found.before.held_out.estimate == pytest.approx(0, abs=1e-9)
    assert "The run as given has the waits of the log" in found.sentence
    assert set(found.config) == {"calibration"}


def test_waits_by_chance_do_not_choose_a_setting():
    cluster, log = machine_and_log(jobs=300, noise=1.0)
    found = calibrate(cluster, log, knobs=("order",), workers=0)
    assert not found


@pytest.mark.slow
def test_the_held_out_days_do_not_choose():
    cluster, log = machine_and_log(jobs=300, order="sjf")
    whole = calibrate(cluster, log, knobs=("order",), workers=0)
    end = whole.split.training_end()
    import msgspec

    changed = [item if item.submit < end else msgspec.structs.replace(item, wait=7.0) for item in log.jobs]
    other = calibrate(cluster, workload(*changed), knobs=("order",), workers=0)
    assert other.final.label == whole.final.label == "order: sjf"
    assert [e.training for e in other.alone] == [e.training for e in whole.alone]
    assert other.after.held_out.estimate > whole.after.held_out.estimate


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_on_any_workers(tmp_path):
    cluster, log = machine_and_log(jobs=200, order="sjf")
    texts = []
    for name, workers in (("a", 0), ("b", 1)):
        found = calibrate(cluster, log, knobs=("order",), workers=workers)
        files = found.write(tmp_path / name)
        texts.append([file.read_bytes() for file in files])
    assert texts[0] == texts[1]


def test_a_setting_under_which_jobs_never_run_is_refused_with_the_reason():
    cluster, log = machine_and_log(jobs=200)
    found = calibrate(cluster, log, knobs=("order",), workers=0)
    assert found.refused == ()
    options = {"queues": {"q": {"policy": {"limits": {"job-size": {"max": {"ncores": 4}}}}}}}
    only = {"small": {**options, "policy": {"jobspec": {"defaults": {"system": {"queue": "q"}}}}}}
    from simsched.study.search import knobs

    row = knobs.Knob("order", "a limit", lambda *_: only)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knobs, "KNOBS", (row,))
        found = calibrate(cluster, log, knobs=("order",), workers=0)
    assert [trial.refused.split(" ", 1)[1] for trial in found.refused] == ["jobs never run"]
    assert "cannot be compared: order: small" in found.text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"knobs": ("ordr",)}, "unknown knob 'ordr'; did you mean order"),
        ({"held_out": 1.5}, "held_out: 1.5 is out of range"),
        ({"queue_policy": "recorded"}, "leaves nothing to calibrate"),
        ({"nodes": 3}, "unknown option 'nodes'"),
        ({"held_out": 0.9}, "too short to learn from"),
        ({"beside": 0}, "beside: 0 is out of range .expected a whole number from 1 to 1,000"),
    ],
)
def test_wrong_arguments(options, message):
    cluster, log = machine_and_log(jobs=100)
    with pytest.raises(ConfigError, match=message):
        calibrate(cluster, log, workers=0, **options)


def test_a_short_log_and_a_log_without_starts_are_refused():
    cluster, log = machine_and_log(days=3, jobs=60)
    with pytest.raises(ConfigError, match="too short to learn from"):
        calibrate(cluster, log, workers=0)
    with pytest.raises(ConfigError, match="no recorded starts"):
        calibrate(machine(2), workload(job("a", 0, "slot=1/core", 5)), workers=0)
    with pytest.raises(ConfigError, match="no recorded starts"):
        calibrate(machine(2), workload(), workers=0)


def test_every_setting_of_every_knob_is_a_configuration():
    from simsched.study.search.knobs import LogFacts

    use = (50, (1, 2, 5, 9), (2, 20, 30, 40), 0.08, 0.0, 86_400.0 * 30)
    facts = LogFacts(50, tuple(range(50)), 0.5, {"a": 5.0, "b": 7.0}, 4, 3, 2, *use)
    for knob in KNOBS:
        settings = knob.settings(facts, {})
        assert settings, knob.name
        for setting in settings:
            options = setting.applied({"policy-options": {"queue_depth": 3}})
            from simsched.simulation.options.run_config import from_document

            make_config(**from_document(options))
        assert len({setting.label for setting in settings}) == len(settings)
    assert knobs_named(()) == KNOBS


def test_the_command_writes_a_configuration_that_a_run_takes(tmp_path, capfd):
    cluster, log = machine_and_log(jobs=300, order="sjf")
    machine_file, log_file, folder = tmp_path / "m.json", tmp_path / "log.jsonl", tmp_path / "cal"
    machine_file.write_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")))
    save_workload(log, log_file)
    command = ["calibrate", str(machine_file), str(log_file), "--knobs", "order", "--workers", "0"]
    assert main([*command, "-o", str(folder), "--quiet"]) == 0
    out = capfd.readouterr()
    assert "order: sjf" in out.out
    assert "left out by --knobs: queue-policy" in out.out
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["order"] == "sjf"
    assert config["calibration"]["error"] == 0
    assert read_config(folder / "config.toml") == {"order": "sjf"}
    record = json.loads((folder / "calibration.json").read_text())
    assert record["steps"][0]["settings"] == {"order": "sjf"}
    run = ["run", str(machine_file), str(log_file), "--config", str(folder / "config.toml")]
    assert main([*run, "-o", str(tmp_path / "run"), "--quiet"]) == 0
    assert main([*command, "-o", str(tmp_path / "run"), "--quiet"]) == 2  # a run is not a calibration
    assert main([*command, "--runs"]) == 2
    assert "there is no directory for the runs" in capfd.readouterr().err


def test_limits_of_users_that_the_log_keeps():
    from simsched.study.search.knobs import LogFacts

    cluster, log = machine_and_log(jobs=600, limits=[{"each": "user", "running-jobs": 2}])
    facts = LogFacts.of(cluster, log.jobs, log.jobs)
    assert facts.user_jobs[-1] == 2
    events = []  # counted once more, second by second at the starts of one user
    jobs = [item for item in log.jobs if item.user == "u3"]
    for item in jobs:
        start = item.submit + item.wait
        running = [o for o in jobs if o.submit + o.wait <= start < o.submit + o.wait + o.runtime]
        events.append(sum(o.procs for o in running))
    assert max(events) <= facts.user_cores[-1]
    found = {
        setting.label for setting in next(k for k in KNOBS if k.name == "user-limits").settings(facts, {})
    }
    assert "2 running jobs per user" in found


def test_calibration_finds_a_limit_of_users():
    cluster, log = machine_and_log(jobs=600, limits=[{"each": "user", "running-jobs": 1}])
    found = calibrate(cluster, log, knobs=("user-limits",), workers=0)
    assert found.helps
    assert found.config["limits"] == [{"each": "user", "running-jobs": 1}]
    assert found.after.held_out.estimate == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_calibration_finds_priorities_and_the_backfill_of_slurm():
    rules = {
        "order": "multifactor",
        "priority": {"factors": {"duration": {"weight": 1000, "favour": "short"}}},
    }
    cluster, log = machine_and_log(jobs=400, **rules)
    found = calibrate(cluster, log, knobs=("priority",), workers=0)
    assert found.final.label == "priority: age and short jobs"
    slurm = {"queue_policy": "slurm", "queue_options": {"interval": 300, "max_job_test": 50}}
    cluster, log = machine_and_log(jobs=400, **slurm)
    found = calibrate(cluster, log, knobs=("backfill",), workers=0)
    assert found.helps
    assert found.config["queue-policy"] == "slurm"


def test_idle_capacity_is_seen_in_the_log():
    """A quarter of the nodes is down; the log does not say so, but jobs wait that would fit."""
    from simsched.study.search.knobs import LogFacts

    outage = {"ranks": "12-15", "start": 0, "kind": "failure"}
    cluster, log = machine_and_log(jobs=700, outages=[outage])
    assert LogFacts.of(cluster, log.jobs, log.jobs).idle == pytest.approx(0.25, abs=0.07)
    cluster, log = machine_and_log(jobs=700, queue_policy="easy")
    assert LogFacts.of(cluster, log.jobs, log.jobs).idle < 0.07


def test_capacity_of_a_log_whose_largest_job_needs_the_machine():
    from simsched.simulation.options.run_config import from_document
    from simsched.study.search.knobs import LogFacts

    cluster, log = machine_and_log(jobs=300, nodes=8)
    facts = LogFacts.of(cluster, log.jobs, log.jobs)
    assert facts.largest == 1
    settings = next(knob for knob in KNOBS if knob.name == "capacity").settings(facts, {})
    for setting in settings:
        assert "but for one day a week" in setting.label
        config = make_config(**from_document(setting.applied({})))
        assert all(outage.end - outage.start == 6 * 86_400 for outage in config.outages)
        assert config.outages[-1].end > log.span[1]


def test_no_setting_of_capacity_is_tried_twice():
    """The share that the log shows may round to the same nodes as a share that is always tried."""
    from dataclasses import replace

    from simsched.study.search.knobs import LogFacts

    cluster, log = machine_and_log(jobs=200, nodes=20)
    facts = replace(LogFacts.of(cluster, log.jobs, log.jobs), idle=0.101)
    (row,) = knobs_named(["capacity"])
    found = [json.dumps(setting.options) for setting in row.settings(facts, {})]
    assert len(found) == len(set(found)) == 3  # 2 % of 20 nodes is none


@pytest.mark.parametrize(("often", "tried"), [(50, {60}), (9, {4, 60})])
def test_a_limit_that_the_log_breaks_at_more_than_a_hundredth_of_its_starts_is_not_tried(often, tried):
    from dataclasses import replace

    from simsched.study.search.knobs import LogFacts

    cluster, log = machine_and_log(jobs=100)
    numbers = [4] * (1000 - often) + [60] * often  # running jobs of the user at each start
    facts = replace(LogFacts.of(cluster, log.jobs, log.jobs), user_jobs=numbers, user_cores=[])
    (row,) = knobs_named(["user-limits"])
    rules = [rule for setting in row.settings(facts, {}) for rule in setting.options["limits"]]
    assert {rule["running-jobs"] for rule in rules if "running-jobs" in rule} == tried


class KnownTrials:
    """Trials whose errors by block are known; settings together do as the first of them does."""

    def __init__(self, errors):
        self.errors = errors
        self.made = []
        self.base = SimpleNamespace(options={})

    def make(self, choices):
        found = [self._trial(choice) for choice in choices]
        self.made += found
        return found

    def _trial(self, choice):
        errors = np.array(self.errors[choice[0][1].label if choice else "as given"], dtype=float)
        blocks = np.zeros((len(errors), 9))
        blocks[:, 0], blocks[:, 1] = 1, 3 * errors - 1  # no spread of ranks, equal means
        same = WaitBlocks(blocks)
        return Trial(choice, {}, same, same)


def test_a_large_gain_by_chance_does_not_hide_a_small_one_that_is_certain():
    """`wild` helps most, and in each third of the time, but not beyond chance; `sure` helps in each block."""
    errors = {"as given": [9] * 9, "wild": [1, 1, 16] * 3, "sure": [8] * 9}
    knobs = [Knob(name, "a rule", lambda *_, name=name: {name: {"order": name}}) for name in ("wild", "sure")]
    split = TimeSplit(0.0, WEEK, 1, 9, 9)
    found = _Search(
        KnownTrials(errors), split, None, knobs, CalibrationRequest(cluster=None, workload=None)
    ).run({})
    assert found.final.label == "sure: sure"
    assert found.gain.training.low > 0
    wild = next(effect for effect in found.alone if effect.trial.label == "wild: wild")
    assert wild.training.estimate > found.gain.training.estimate
    assert wild.training.low < 0


def test_settings_that_are_refused_together_are_no_step():
    """Both help by themselves; together some jobs never run, so that there are no errors to compare."""

    class RefusedTogether(KnownTrials):
        def _trial(self, choice):
            trial = super()._trial(choice)
            if len(choice) < 2:
                return trial
            unknown = WaitBlocks(np.full((1, 9), np.nan))
            return replaced(trial, training=unknown, held_out=unknown, refused="3 jobs never run")

    errors = {"as given": [9] * 9, "one": [8] * 9, "other": [7] * 9}
    knobs = [Knob(name, "a rule", lambda *_, name=name: {name: {"order": name}}) for name in ("one", "other")]
    request = CalibrationRequest(cluster=None, workload=None)
    found = _Search(RefusedTogether(errors), TimeSplit(0.0, WEEK, 1, 9, 9), None, knobs, request).run({})
    assert found.final.label == "other: other"
    assert [trial.label for trial in found.refused] == ["other: other, one: one"]


def test_jobs_that_the_machine_cannot_run_and_knobs_without_settings_are_stated():
    """A machine that is too small for most of the log would otherwise be calibrated without a word."""
    cluster, log = machine_and_log(jobs=300)
    assert "never ran" not in calibrate(cluster, log, knobs=("overrun",), workers=0).text()
    found = calibrate(machine(4), log, knobs=("overrun",), workers=0)
    number = found.to_dict()["never_ran"]
    assert 0 < number < 300
    text = found.text()
    assert f"{number} jobs with a recorded start never ran in the simulation and are not compared" in text
    assert text.startswith("No setting could be tried, so nothing explains the difference")
    assert "\n1 run; " in text
    assert text.count("left out by --knobs") == 1
    assert found.config["calibration"]["helps"] is False


def test_a_gain_beyond_chance_that_the_rule_leaves_out_is_named_with_the_power_of_the_rule():
    """Thirds of few weeks have no power: the interval of a gain is stated beside the rule."""
    cluster, log = machine_and_log(jobs=300, order="smallest-area")
    found = calibrate(cluster, log, knobs=FEW, workers=0)
    left_out = replaced(found, steps=(), final=found.base, gain=found.alone[0])
    assert left_out.sentence.startswith("No setting passes the rule: the error on ")
    assert "But order: smallest-area by itself gains +" in left_out.sentence
    assert "both beyond chance" in left_out.sentence
    assert "and no effect at all with 12.5 %." in left_out.sentence
    weak = [e for e in found.alone if e.held_out.low <= 0]
    assert "explains the difference" in replaced(left_out, alone=tuple(weak)).sentence
