"""A site whose files set options of Slurm's backfill runs under other queue policies as well."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import ConfigError, InputWarning
from simsched.simulation.options.run_config import from_document, make_config, merged
from simsched.study.spec.study_file import study_from_dict

CONF = """\
ClusterName=valley
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_max_job_test=50
NodeName=n[1-4] CPUs=4 State=UNKNOWN
PartitionName=cpu Nodes=n[1-4] Default=YES MaxTime=1-00:00:00 State=UP
"""
JOBS = """\
- {id: A, shape: slot=12/core, duration: 100s, queue: cpu}
- {id: B, shape: slot=16/core, duration: 50s, queue: cpu, submit: 1s}
- {id: C, shape: slot=4/core, duration: 50s, queue: cpu, submit: 2s}
"""
STARTS = {"slurm": [0, 100, 150], "easy": [0, 100, 2], "conservative": [0, 100, 2]}
NOTE = (
    "options of other queue policies do not apply to easy, which has its own defaults "
    "(slurm: interval, max-job-test)"
)


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    assert main(["site", "import", "slurm.conf", "-o", "site"]) == 0
    capsys.readouterr()
    return tmp_path


def starts(path):
    return ss.load_run(path).jobs["start"].tolist()


def test_options_are_in_a_table_of_their_policy(folder):
    text = (folder / "site" / "queues.toml").read_text()
    assert "[policy-options.slurm]\ninterval = 60\nmax-job-test = 50\n" in text


@pytest.mark.parametrize("plain", [False, True], ids=["table", "old site folder"])
@pytest.mark.parametrize("policy", STARTS)
def test_run(folder, capsys, policy, plain):
    if plain:
        queues = folder / "site" / "queues.toml"
        queues.write_text(queues.read_text().replace("[policy-options.slurm]", "[policy-options]"))
    assert main(["run", "--site", "site", "jobs.yaml", "--queue-policy", policy, "-o", "o", "--quiet"]) == 0
    assert starts("o") == STARTS[policy]
    assert capsys.readouterr().err.count("do not apply") == (policy != "slurm")
    options = json.loads((folder / "o" / "run.json").read_text())["config"]["queue_options"]
    assert options == ({"interval": 60, "max_job_test": 50} if policy == "slurm" else {})


def test_options_of_the_command_line_are_those_of_the_policy_in_use(folder, capsys):
    run = ["run", "--site", "site", "jobs.yaml", "-o", "o", "--quiet"]
    assert main([*run, "--queue-policy", "easy", "--option", "extra=no"]) == 0
    assert NOTE in capsys.readouterr().err
    assert main([*run, "--option", "interval=1"]) == 0
    assert starts("o") == [0, 100, 2]
    assert json.loads((folder / "o" / "run.json").read_text())["config"]["queue_options"]["interval"] == 1
    capsys.readouterr()
    assert main([*run, "--queue-policy", "easy", "--option", "interval=1"]) == 2
    assert "queue policy 'easy' has no option 'interval' (expected extra" in capsys.readouterr().err


def test_sweep(folder, capsys):
    (folder / "study.yaml").write_text(
        "site: site\nworkload: jobs.yaml\naxes:\n  queue-policy: [slurm, easy, conservative]\n"
    )
    assert main(["sweep", "study.yaml", "-o", "study", "--workers", "0"]) == 0
    assert NOTE in capsys.readouterr().err
    rows = ss.load_study("study.yaml").tasks
    assert [task.options["queue-policy"] for task in rows] == list(STARTS)
    found = {path.name: starts(path) for path in (folder / "study" / "runs").iterdir()}
    assert sorted(found.values()) == sorted(STARTS.values())


def test_a_study_sets_options_of_each_policy(folder):
    content = {
        "site": "site",
        "workload": "jobs.yaml",
        "axes": {"policy-options.slurm.interval": [30, 90], "queue-policy": ["slurm", "easy"]},
    }
    made = [make_config(**from_document(task.options)) for task in study_from_dict(content).tasks]
    assert [one.queue_options.get("interval") for one in made] == [30, None, 90, None]


@pytest.mark.quick(3)
@pytest.mark.parametrize("verb", ["size", "headroom", "forecast"])
@pytest.mark.parametrize("policy", STARTS)
def test_other_verbs(folder, verb, policy, capsys):
    more = ["--at", "5s"] if verb == "forecast" else ["--target", "p95_wait<=1h", "--workers", "0"]
    assert main([verb, "--site", "site", "jobs.yaml", "--queue-policy", policy, *more]) == 0


def test_python(folder):
    site = ss.load_site("site")
    for policy, expected in STARTS.items():
        options = {**from_document(site.config), "queue_policy": policy}
        rules = merged(site.config, {"queue-policy": policy})
        told = pytest.warns(InputWarning, match=f"do not apply to {policy}")
        with nullcontext() if policy == "slurm" else told:
            run = ss.simulate(site.cluster, "jobs.yaml", **options)
        with nullcontext() if policy == "slurm" else told:
            assert ss.size(site.cluster, "jobs.yaml", ["p95_wait<=1h"], workers=0, options=rules)
        assert run.jobs["start"].tolist() == expected


@pytest.mark.parametrize("search", [ss.size, ss.headroom])
@pytest.mark.parametrize("given", ["folder", "value"])
def test_a_search_takes_a_site_with_its_rules(folder, search, given):
    site = "site" if given == "folder" else ss.load_site("site")
    ask = {"targets": "p95_wait<=1h", "workers": 0, "seeds": 1, "queue_options": {"slurm": {"interval": 90}}}
    own = search(site, "jobs.yaml", **ask).about["options"]
    assert (own["queue-policy"], own["policy-options"]["slurm"]["interval"]) == ("slurm", 90)
    assert own["queues"] == ss.load_site("site").config["queues"]
    with pytest.warns(InputWarning, match="do not apply to easy"):
        other = search(site, "jobs.yaml", **ask, queue_policy="easy").about["options"]
    assert (other["queue-policy"], other["queues"]) == ("easy", own["queues"])
    with pytest.raises(ConfigError, match=r"^order is <object .*expected a name or plain data"):
        search(site, "jobs.yaml", **ask, order=object())


def test_a_wrong_table_is_one_error():
    with pytest.raises(ConfigError, match=r"policy-options.slrm: unknown queue policy 'slrm'.*'slurm'"):
        make_config(queue_options={"slrm": {"interval": 1}})
    with pytest.raises(ConfigError, match=r"policy-options.slurm: .*'intervall'; did you mean interval"):
        make_config(queue_options={"slurm": {"intervall": 1}})
