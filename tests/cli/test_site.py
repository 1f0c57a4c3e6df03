"""A centre's own files to a report in three commands, and ``--site`` on the verbs that take it."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from simsched.cli import main
from tests.site.made_up_sites import flux_site, slurm_site


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hill(here):
    """A site that a person wrote: two queues on six nodes."""
    (here / "hill").mkdir()
    (here / "hill" / "cluster.yaml").write_text(
        "name: hill\ngroups:\n"
        "- {name: n, count: 4, cores: 8, memory: 64000 MB, properties: [batch]}\n"
        "- {name: g, count: 2, cores: 8, gpus: 4, memory: 64000 MB, properties: [gpu]}\n"
    )
    (here / "hill" / "queues.toml").write_text(
        'order = "sjf"\n[queues.batch]\nrequires = ["batch"]\npolicy.limits.duration = "1h"\n'
        '[queues.gpu]\nrequires = ["gpu"]\n[policy.jobspec.defaults.system]\nqueue = "batch"\n'
    )
    (here / "jobs.yaml").write_text(
        "jobs:\n- {shape: slot=8/core, duration: 10m, runtime: 5m, count: 8}\n"
        "- {shape: slot=1/gpu, duration: 2h, runtime: 1h, queue: gpu}\n"
    )
    return here / "hill"


def waits(page):
    """The rows of the table of waits of a report, and its number of jobs."""
    head = re.search(r"^waits of ([\d,]+) jobs +mean +median +p95 +mean bsld +in use$", page, re.MULTILINE)
    assert head is not None, page
    rows = [page[head.end() :].splitlines()[at].split()[0] for at in (1, 2)]
    return int(head[1].replace(",", "")), rows


def three_commands(folder, log, capsys):
    assert main(["site", "import", folder, "-o", "site"]) == 0
    imported = capsys.readouterr()
    assert f"next: simsched run --site site {log} -o run" in imported.err
    assert main(["run", "--site", "site", log, "-o", "run"]) == 0
    said = capsys.readouterr().err
    assert main(["report", "run"]) == 0
    return said, capsys.readouterr().out


def test_slurm_to_recorded_and_simulated_waits_in_three_commands(here, capsys):
    jobs = slurm_site(here / "valley", lines=1_200)
    said, page = three_commands("valley", "valley/jobs.sacct", capsys)
    assert waits(page) == (jobs, ["recorded", "simulated"])
    assert said.count("note: jobs.sacct:") == 2  # the use of the log, and its heterogeneous jobs
    assert "its queue and restricts its nodes (batch, gpu); 2 processors are a core" in said
    assert main(["report", "run", "--audit"]) == 0


def test_flux_to_recorded_and_simulated_waits_in_three_commands(here, capsys):
    flux_site(here / "ridge", jobs=300)
    _, page = three_commands("ridge", "ridge/jobs.json", capsys)
    assert waits(page)[1] == ["recorded", "simulated"]
    assert (here / "site" / "cluster.yaml").read_text().startswith("name: ridge\n")


@pytest.mark.slow
def test_50000_lines_of_slurm_in_three_commands(here, capsys):
    jobs = slurm_site(here / "valley", lines=50_000)
    said, page = three_commands("valley", "valley/jobs.sacct", capsys)
    assert waits(page)[0] > 0.99 * jobs
    assert "ignored 37,5" in said
    assert "a step, not a job" in said


@pytest.mark.slow
def test_10000_jobs_of_flux_in_three_commands(here, capsys):
    flux_site(here / "ridge", jobs=10_000)
    _, page = three_commands("ridge", "ridge/jobs.json", capsys)
    assert waits(page)[0] > 9_000


def test_show_prints_the_site_that_was_imported(here, capsys):
    slurm_site(here / "valley", lines=10)
    assert main(["site", "import", "valley", "-o", "site"]) == 0
    imported = capsys.readouterr().out
    assert main(["site", "show", "site"]) == 0
    assert capsys.readouterr().out == imported
    assert main(["site", "show", "site", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["queue"] for row in shown["queues"]] == ["batch (default)", "gpu"]


def test_an_import_says_that_it_replaced_one(here, capsys):
    slurm_site(here / "valley", lines=10)
    for expected in (False, True):
        assert main(["site", "import", "valley", "-o", "site", "--quiet"]) == 0
        out, err = capsys.readouterr()
        assert (out, "replaced the earlier import in site" in err) == ("", expected)


def test_each_verb_takes_a_site_in_place_of_the_cluster(hill, capsys):
    assert main(["feasible", "--site", "hill", "slot=8/core"]) == 0
    assert main(["feasible", "--site", "hill", "slot=4/gpu", "--queue", "gpu"]) == 0
    assert main(["match", "--site", "hill", "slot=8/core", "--format", "table"]) == 0
    assert main(["run", "--site", "hill", "jobs.yaml", "-o", "run", "--quiet"]) == 0
    assert main(["forecast", "--site", "hill", "jobs.yaml", "--at", "60"]) == 0
    assert main(["forecast", "run", "--at", "60"]) == 0
    capsys.readouterr()
    common = ["--site", "hill", "jobs.yaml", "--target", "mean_wait<=10h", "--seeds", "1", "--workers", "0"]
    capsys.readouterr()
    assert main(["size", *common, "--grow", "batch"]) == 0
    assert main(["headroom", *common]) == 0


def test_the_configuration_is_the_site_s_and_options_override_it(hill, capsys):
    def config(*more):
        assert main(["run", "--site", "hill", "jobs.yaml", "-o", "run", "--quiet", *more]) == 0
        return json.loads((hill.parent / "run" / "run.json").read_text())["config"]

    assert config()["order"] == "sjf"
    assert config()["queues"] == ["batch", "gpu"]
    assert config("--order", "fifo")["order"] == "fifo"
    assert main(["report", "run", "--audit"]) == 0


def test_a_study_takes_a_site(hill, capsys):
    study = hill.parent / "study.yaml"
    study.write_text("site: hill\nworkload: jobs.yaml\nconfig: {epilog: 10s}\naxes: {order: [fifo, sjf]}\n")
    assert main(["sweep", "study.yaml", "-o", "study", "--workers", "0", "--quiet", "--no-report"]) == 0
    runs = sorted((hill.parent / "study" / "runs").glob("*/run.json"))
    configs = [json.loads(path.read_text())["config"] for path in runs]
    assert sorted(config["order"] for config in configs) == ["fifo", "sjf"]
    assert all(config["queues"] == ["batch", "gpu"] and config["epilog"] == [10, 10] for config in configs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run --site hill tiny jobs.yaml -o x", "the cluster tiny and the site hill are both given"),
        ("run --site hill jobs.yaml --config c.toml -o x", "--config and --site are both given"),
        ("run --site hill -o x", "the following arguments are required: WORKLOAD"),
        ("run tiny -o x", "the following arguments are required: WORKLOAD"),
        ("run -o x", "the following arguments are required: CLUSTER, WORKLOAD"),
        ("run --site nowhere jobs.yaml -o x", "nowhere: there is no such folder"),
        ("run --site jobs.yaml jobs.yaml -o x", "jobs.yaml: this is a file"),
        ("feasible --site hill tiny slot=1/core", "the cluster tiny and the site hill are both given"),
        ("feasible --site hill --cluster tiny slot=1/core", "--cluster and --site are both given"),
        ("match --site hill tiny slot=1/core", "the cluster tiny and the site hill are both given"),
        ("forecast --site hill", "the following arguments are required: SNAPSHOT|WORKLOAD"),
        ("forecast --site hill old --at 10", "a run directory has its own machine"),
        ("size --site hill tiny jobs.yaml --target mean_wait<=1h", "the cluster tiny and the site hill"),
        ("headroom --site hill --target mean_wait<=1h", "required: WORKLOAD"),
        ("sweep both.yaml -o x", "both.yaml:2:7: site: a cluster and a site are both given"),
        ("sweep none.yaml -o x", "the key 'cluster' is missing"),
        ("sweep lost.yaml -o x", "lost.yaml:1:7: site: lost: there is no such folder"),
        ("site import nowhere -o x", "nowhere: no such file"),
        ("site import jobs.yaml -o x", "jobs.yaml"),
        ("site show nowhere", "nowhere: there is no such folder"),
        ("site import", "required: FILE, -o/--output"),
    ],
)
def test_wrong_command_lines_are_one_message(hill, capsys, arguments, message):
    folder = hill.parent
    (folder / "old").mkdir()
    (folder / "old" / "run.json").write_text("{}")
    (folder / "both.yaml").write_text("cluster: tiny\nsite: hill\nworkload: jobs.yaml\n")
    (folder / "none.yaml").write_text("workload: jobs.yaml\n")
    (folder / "lost.yaml").write_text("site: lost\nworkload: jobs.yaml\n")
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert (out, message in err) == ("", True), err
    assert not (folder / "x").exists()


USE = "a job's partition is its queue and restricts its nodes (batch, gpu); 2 processors are a core"


def test_every_command_on_a_site_states_and_records_the_use_of_a_log(here, capsys):
    slurm_site(here / "valley", lines=150)
    assert main(["site", "import", "valley", "-o", "site"]) == 0
    log = "valley/jobs.sacct"
    assert main(["run", "--site", "site", log, "-o", "run"]) == 0
    assert json.loads((here / "run" / "run.json").read_text())["log_use"].startswith(USE)
    capsys.readouterr()
    target = ["--target", "p95_wait<=10d", "--seeds", "1", "--workers", "0", "-o", "answer"]
    main(["headroom", "--site", "site", log, *target, "--max", "1", "--min", "1"])
    assert capsys.readouterr().err.count(f"note: {log}: {USE}") == 1
    assert json.loads((here / "answer" / "answer.json").read_text())["log_use"].startswith(USE)
    main(["size", "--site", "site", log, *target, "--grow", "c", "--max", "96", "--min", "96"])
    assert capsys.readouterr().err.count(f"note: {log}: {USE}") == 1
    assert json.loads((here / "answer" / "answer.json").read_text())["log_use"].startswith(USE)
    ten_days = ["-t", "load(0.0006)", "--knobs", "overrun", "--workers", "0", "--format", "json"]
    main(["calibrate", "--site", "site", log, *ten_days])
    out, err = capsys.readouterr()
    assert err.count(f"note: {log}: {USE}") == 1
    assert json.loads(out)["log_use"].startswith(USE)
    (here / "study.yaml").write_text(f"site: site\nworkload: {log}\naxes: {{queue-policy: [fcfs, easy]}}\n")
    assert main(["sweep", "study.yaml", "-o", "study", "--workers", "0", "--no-report"]) == 0
    assert capsys.readouterr().err.count(f"note: {log}: {USE}") == 1
    record = json.loads((here / "study" / "study.json").read_text())
    (recorded,) = record["log_use"]
    assert recorded.startswith(f"{log}: {USE}")
    capsys.readouterr()
    assert main(["schema", "study-record"]) == 0
    jsonschema.validate(record, json.loads(capsys.readouterr().out))


def test_without_a_site_nothing_states_the_use_of_a_log(here):
    assert main(["run", "tiny", "first-steps", "-o", "run", "--quiet"]) == 0
    assert "log_use" not in json.loads((here / "run" / "run.json").read_text())
