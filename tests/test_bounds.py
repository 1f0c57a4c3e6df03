"""A few characters of input cannot ask for hours or gigabytes: each bound has a message with its place."""

from __future__ import annotations

import json
import os
import time

import pytest

import simsched as ss
from simsched.cli import DEBUG, main
from simsched.errors import ConfigError, FormatError, SimschedError, WorkloadError
from simsched.formats.rfc.duration import MAX_SECONDS, format_date, parse_time
from simsched.formats.text.json_text import load_json
from simsched.formats.text.yaml_text import load_yaml
from simsched.graph.inspect import view
from simsched.simulation.options.run_config import make_config
from simsched.simulation.record.run_origin import read_origin
from simsched.simulation.simulate import simulate
from simsched.study.runs import sweep_plan as plans
from simsched.study.spec.study_file import study_from_dict
from simsched.workload.job import Workload
from simsched.workload.models.lublin import MAX_USERS, LublinWorkload, users
from simsched.workload.models.model_files import Distribution
from simsched.workload.readers.jobs import read_jobs_yaml
from simsched.workload.transforms.transforms import repeat

JOBS = "- {id: 1, shape: slot/core, runtime: 4, duration: 9, queue: a}"
LONG = {"ranks": "0", "start": 0, "end": "1000000000d"}


@pytest.fixture
def said(capsys, monkeypatch):
    """Run a command line that is wrong: its one message comes back, and no exception that is not ours."""
    monkeypatch.setenv(DEBUG, "1")

    def run(*words):
        began = time.monotonic()
        assert main([str(word) for word in words]) == 2
        assert time.monotonic() - began < 100
        return capsys.readouterr().err

    return run


# -- how many --------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["", JOBS])
def test_a_workload_is_repeated_up_to_ten_million_jobs(jobs):
    workload = read_jobs_yaml(jobs)
    with pytest.raises(
        ConfigError, match=r"100,000,000 times . jobs are too many .expected at most 10,000,000 jobs in all"
    ):
        repeat(workload, 100_000_000, 1)
    assert repeat(Workload(()), 1_000_000, 1).jobs == ()


def test_the_users_of_a_model_are_bounded(said, tmp_path):
    with pytest.raises(ConfigError, match="users is 1000000000"):
        users(3, 10**9, None)
    with pytest.raises(ConfigError, match="users is 1000001"):
        LublinWorkload(machine=4, jobs=3, users=MAX_USERS + 1)._check()
    model = ("workload", "make", "lublin", "--machine", 4, "--jobs", 3)
    assert "--users: 1000000000 is out of range" in said(*model, "--users", 10**9)
    study = tmp_path / "s.yaml"
    study.write_text("cluster: tiny\nworkload: {lublin: {machine: 4, jobs: 3, users: 1000000000}}\n")
    place = f"{study}:2:49: workload.lublin.users"
    assert f"{place}: 1000000000 is out of range (expected a whole number from 0 to 1,000,000)" in said(
        "sweep", study, "--dry-run"
    )


def test_a_plan_counts_a_large_model_without_drawing_it(monkeypatch):
    drawn = []
    make = LublinWorkload.make
    monkeypatch.setattr(
        LublinWorkload, "make", lambda self, *more: drawn.append(self.jobs) or make(self, *more)
    )
    monkeypatch.setattr(plans, "MAX_DRAWN", 50)
    model = {"machine": 4, "jobs": 10_000_000, "load": 0.5}
    found = plans.plan(study_from_dict({"cluster": "tiny", "workload": {"lublin": model}}))
    assert found.jobs == 10_000_000
    assert found.seconds > 0
    assert set(drawn) == {50}


@pytest.mark.parametrize(
    "options",
    [
        {"outages": [LONG]},
        {"epilog": "1000000000d"},
        {"queues": {"a": {"closed": [["1d", "1000000000d"]]}}},
    ],
)
def test_failures_are_not_drawn_until_a_far_end(options):
    from simsched.graph.cluster import load_cluster

    with pytest.raises(ConfigError, match=r"failures: about 13.,...,... random failures until"):
        simulate(load_cluster("tiny"), read_jobs_yaml(JOBS), failures="mtbf=30d,mttr=4h", **options)


def test_a_topology_of_ranks_that_are_not_there_is_refused_before_they_are_written_out(said, tmp_path):
    path = tmp_path / "r.json"
    execution = {
        "R_lite": [{"rank": "0-3", "children": {"core": "0-3"}}], "nodelist": ["n[0-3]"],
        "starttime": 0, "expiration": 0,
    }  # fmt: skip
    topology = {"writer": "TreePool", "children": [{"ranks": "0-999999999", "topo": {"cores": "0-3"}}]}
    path.write_text(json.dumps({"version": 1, "execution": execution, "scheduling": topology}))
    assert "the topology has rank 4 (expected only ranks of R_lite)" in said("cluster", "show", path)


def test_lines_of_their_own_are_for_machines_that_somebody_reads(said, monkeypatch):
    monkeypatch.setattr(view, "MAX_APART", 5)
    assert "--apart: 11 vertices with a line each (expected at most 5;" in said(
        "cluster", "show", "tiny", "--apart"
    )


# -- how long --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"epilog": "1e308"},
        {"epilog": (0, 1e308)},
        {"outages": [{**LONG, "end": 1e308}]},
        {"failures": "mtbf=1e300,mttr=1"},
        {"queues": {"a": {"closed": [[1, 1e300]]}}},
        {"queues": {"a": {"policy": {"limits": {"duration": 1e300}}}}},
    ],
)
def test_no_time_of_a_configuration_is_beyond_the_last_second(options):
    with pytest.raises(SimschedError, match=r"9\.0072e\+15"):
        make_config(**options)


def test_no_job_is_submitted_after_the_last_second():
    from simsched.graph.cluster import load_cluster
    from simsched.workload.job import change

    (job,) = read_jobs_yaml(JOBS).jobs
    late = Workload(jobs=(change(job, submit=1e18),))
    with pytest.raises(WorkloadError, match=r"job 1: submit is 1e\+18 .expected seconds from 0 to 9"):
        simulate(load_cluster("tiny"), late)


def test_times_and_dates_at_their_ends():
    assert parse_time(MAX_SECONDS) == 2**53
    with pytest.raises(FormatError, match="too late"):
        parse_time(2 * MAX_SECONDS)
    assert format_date(1e18) == "1e+18 s"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["lognormal(1, 1e300)", "weibull(1e-300, 1e308)", "gamma(1e308, 1e308)"])
def test_what_a_distribution_draws_is_a_time(text):
    import numpy as np

    drawn = Distribution.parse(text).draw(20, np.random.default_rng(0))
    assert (drawn <= MAX_SECONDS).all()


# -- how large, and of what type -------------------------------------------------------------


@pytest.mark.parametrize("digits", [5000, 400])
@pytest.mark.parametrize("load", [load_json, load_yaml])
def test_numbers_of_many_digits_are_refused_at_their_place(load, digits):
    with pytest.raises(FormatError, match=r"f:1:8: the number has too many digits .expected at most 300"):
        load(f'{{"a": [{"9" * digits}]}}', "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = " + "9" * 5000, "not TOML"),
        ("seed = " + "9" * 400, "seed: the number has too many digits"),
        ("epilog = inf", "epilog: inf is not a finite number"),
        ("epilog = 2026-01-01", "epilog: 2026-01-01 is a date or time"),
    ],
)
def test_what_only_toml_can_say_is_refused(said, tmp_path, text, message):
    config = tmp_path / "c.toml"
    config.write_text(text)
    assert f"{config}: {message}" in said(
        "run", "tiny", "first-steps", "--config", config, "-o", tmp_path / "o"
    )


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"command": 5}, "$.command"),
        ({"command": {"cluster": 5, "workload": "w", "rules": {}, "reading": {}}}, "$.command.cluster"),
        ({"command": {"cluster": "c", "workload": "w", "rules": [], "reading": {}}}, "$.command.rules"),
        (
            {"command": {"cluster": "c", "workload": "w", "rules": {}, "reading": {"limit": "x"}}},
            "reading.limit",
        ),
        ({"inputs": {}}, "$.inputs"),
        ({"inputs": [{"role": "other", "sha256": None}]}, "$.inputs"),
    ],
)
def test_a_run_json_of_other_types_is_refused_at_its_place(tmp_path, change, place):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"inputs": [], **change}))
    with pytest.raises(FormatError) as caught:
        read_origin(path)
    assert place in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "group",
    [
        {"count": 2.0},
        {"numa": 1.0},
        {"memory": "8 GB\n"},
        {"memory": 8.0},
        {"pools": [{"type": "x", "count": 1.0}]},
    ],
)
def test_a_recipe_takes_no_float_for_a_count_and_no_line_end_after_a_unit(said, tmp_path, group):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"groups": [{"name": "n", "count": 2, "cores": 4, **group}]}))
    assert f"{path}: groups[0]." in said("cluster", "show", path)


@pytest.mark.parametrize("key", ["kind", "x"])
def test_a_checkpoint_with_bytes_that_are_no_text(said, tmp_path, key):
    path = tmp_path / "s.json"
    path.write_bytes(b'{"' + key.encode() + b'\xff": 1}')
    assert "not a checkpoint" in said("run", "tiny", "first-steps", "--resume", path, "-o", tmp_path / "o")


def test_messages_clip_what_they_quote(said, tmp_path):
    long = "x" * 1_000_000
    error = SimschedError(f"unknown key {long!r}, really", where=long, expected=long)
    assert str(error).count("x") < 1500
    assert "really" in str(error)
    path = tmp_path / "j.json"
    path.write_text(json.dumps([{"shape": "slot/core", "runtime": 3, "hold": long}]))
    assert len(said("workload", "show", path)) < 400


@pytest.mark.parametrize("key", ["procs", "nodes", "memory", "priority", "count"])
def test_no_count_of_a_job_is_beyond_what_a_table_holds(key):
    """A run with such a job was lost when its tables were written."""
    with pytest.raises(SimschedError, match=f"jobs.0.*{key}|more than 1,000,000 jobs"):
        read_jobs_yaml(f"- {{shape: slot/core, runtime: 4, {key}: 10000000000000000000}}")


# -- numbers that a program gives --------------------------------------------------------------


@pytest.mark.parametrize("ranks", ["0-999999999", range(10**9)])
@pytest.mark.parametrize("verb", ["drain", "fail", "undrain", "remove", "add", "remove_nodes", "absent"])
def test_ranks_of_an_open_simulation_are_compared_before_they_are_written_out(verb, ranks):
    with pytest.raises(ConfigError, match="the cluster has no rank 4"):
        ss.Simulation("tiny", absent=ranks) if verb == "absent" else getattr(ss.Simulation("tiny"), verb)(
            ranks
        )


def test_a_rank_is_a_whole_number():
    with pytest.raises(ConfigError, match=r"ranks are \[1.5\]"):
        ss.Simulation("tiny").drain([1.5])


def test_ranks_that_a_pool_does_not_have_are_passed_over():
    from simsched.flux.pool_state import PoolState

    pool = PoolState(ss.load_cluster("tiny").to_dict("r"))
    pool.set_status("0,2-999999999", up=False)
    assert pool._down() == [0, 2, 3]
    pool.remove(range(3, 10**9))
    assert pool._here("all") == [0, 1, 2]


@pytest.mark.parametrize("policy", ["easy++", "conservative"])
@pytest.mark.parametrize("predictor", ["last-two", "last-two(doubling)"])
def test_predictions_of_endless_jobs_grow(policy, predictor):
    jobs = "".join(f"- {{id: {n}, shape: slot=1/core, runtime: 10m, user: u}}\n" for n in range(2))
    jobs += "- {id: b, shape: slot=1/core, runtime: 69444444d, submit: 1h, user: u}\n"
    options = {} if policy == "easy++" else {"predictor": predictor}
    run = simulate(ss.load_cluster("tiny"), read_jobs_yaml(jobs), policy, **options)
    assert max(run.jobs["end"]) == 3600 + 69444444 * 86400


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_a_file_that_another_one_names_is_a_file(said, tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "slurm.conf").write_text(f"NodeName=n1 CPUs=4\nInclude {name}\n")
    (tmp_path / "flux.toml").write_text(f'[resource]\npath = "{name}"\n')
    (tmp_path / "rules.toml").write_text(f'[priority]\naccounts = "{name}"\nfactors = {{age = 1}}\n')
    assert main(["cluster", "show", str(tmp_path / "slurm.conf")]) == 0
    assert "this is a pipe or a device (expected a file)" in said("cluster", "show", tmp_path / "flux.toml")
    run = ("run", "tiny", "first-steps", "-o", tmp_path / "out", "--config", tmp_path / "rules.toml")
    assert "this is a pipe or a device (expected a file)" in said(*run)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("sleep_ms(100000)", "the function sleep_ms is not allowed"),
        ("length(repeat('x', 2000000000))", "the function repeat is not allowed"),
        ("len(range(10000000000))", "the function range is not allowed"),
        ("cores + random()", "the function random is not allowed"),
        ("lpad('x', 2000000000, 'y')", "the function lpad is not allowed"),
    ],
)
def test_functions_of_a_column_map_that_wait_or_repeat_are_refused(said, tmp_path, expression, text):
    (tmp_path / "log.csv").write_text("id,submit,runtime,cores\n1,0,60,4\n")
    columns = {"id": "id", "submit": "submit", "runtime": "runtime", "cores": {"expression": expression}}
    (tmp_path / "map.yaml").write_text(json.dumps({"columns": columns}))
    message = said("workload", "show", tmp_path / "log.csv", "--columns", tmp_path / "map.yaml")
    assert f"columns.cores: {text}" in message
