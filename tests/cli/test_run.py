"""``simsched run`` as its users meet it: what is printed, what is written, and the exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from simsched.cli import main
from simsched.formats.jobspec.jobspec import Jobspec

CLUSTER = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-3", "children": {"core": "0-1"}}],
        "nodelist": ["n[0-3]"],
        "starttime": 0,
        "expiration": 0,
    },
}
SWF = """; MaxProcs: 8
1 0 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1
2 1 -1 5 8 -1 -1 8 10 -1 1 2 1 1 1 1 -1 -1
3 2 -1 5 2 -1 -1 2 5 -1 1 1 1 1 1 1 -1 -1
4 3 -1 5 99 -1 -1 99 5 -1 1 1 1 1 1 1 -1 -1
5 4 -1 -1 -1 -1 -1 2 5 -1 5 1 1 1 1 1 -1 -1
"""


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "jobs.swf").write_text(SWF)
    return tmp_path


def run(folder, *arguments, cluster="cluster.json", workload="jobs.swf", out="out"):
    line = ["run", str(folder / cluster), str(folder / workload), "-o", str(folder / out), *arguments]
    return main(line)


def test_a_run_prints_its_summary_and_names_its_directory(inputs, capsys):
    assert run(inputs, "--audit") == 0
    out, err = capsys.readouterr()
    assert "infeasible 1" in out
    assert "dropped 1" in out
    assert "ignored 1 record: cancelled before it started" in err
    assert f"written: {inputs / 'out'}" in err
    assert "audit: clean (4 jobs, 3 allocations, 3 releases)" in err
    names = {"run.json", "summary.json", "jobs.parquet", "timeline.parquet", "nodes.parquet"}
    names |= {"allocations.jsonl"}
    assert {path.name for path in (inputs / "out").iterdir()} == names
    summary = json.loads((inputs / "out" / "summary.json").read_text())
    assert summary["jobs_run"] == 3


def test_quiet_says_nothing_but_what_was_left_out(inputs, capsys):
    assert run(inputs, "--quiet") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(":")[0] for line in err.splitlines()] == ["ignored 1 record", "note"]


def test_options_reach_the_run(inputs):
    assert (
        run(
            inputs,
            *("--queue-policy", "easy", "--match-policy", "hinode", "--order", "sjf", "--seed", "5"),
            *("--overrun", "allow", "--map", "slot={procs}/core", "--quiet", "--no-allocations"),
            *("--option", "extra=no", "--option", "pass=event", "--option", "candidates=actual"),
        )
        == 0
    )
    config = json.loads((inputs / "out" / "run.json").read_text())["config"]
    assert config["queue_options"] == {"extra": False}
    assert (config["passes"], config["candidates"], config["order"]) == ("event", "actual", "sjf")
    assert (config["match_policy"], config["seed"], config["overrun"]) == ("hinode", 5, "allow")
    assert not (inputs / "out" / "allocations.jsonl").exists()


def test_strict_refuses_bad_records(inputs, capsys):
    assert run(inputs, "--strict") == 2
    assert "cancelled before it started" in capsys.readouterr().err
    assert not (inputs / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--queue-policy", "esay"),
            "unknown queue policy 'esay' (expected conservative, easy, easy+, easy++, fcfs, hybrid",
        ),
        (("--match-policy", "frist"), "unknown match policy 'frist'"),
        (("--order", "x"), "unknown job order 'x' (expected fifo,"),
        (("--option", "extra"), "'extra' is not an option"),
        (("--option", "refresh=never"), "policy-options.refresh: unknown value 'never'"),
        (("--option", "speed=11"), "queue policy 'easy'"),
        (("--option", "pass=often"), "passes: unknown value 'often'"),
        (("--seed", "-1"), "is not a whole number"),
        (("--audit", "--no-allocations"), "an audit needs the allocations"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_written(inputs, capsys, arguments, message):
    assert run(inputs, *arguments) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in inputs.iterdir()) == ["cluster.json", "jobs.swf"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        (json.dumps({"version": 1, "execution": {"R_lite": [], "nodelist": []}}), "empty"),
    ],
)
def test_a_cluster_that_is_none(inputs, capsys, text, message):
    (inputs / "cluster.json").write_text(text)
    assert run(inputs) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_files_that_are_not_there(inputs, capsys):
    assert run(inputs, workload="nope.swf") == 2
    assert "nope.swf" in capsys.readouterr().err


def test_a_directory_that_is_no_run_is_refused_before_anything_is_read(inputs, capsys):
    (inputs / "out").mkdir()
    (inputs / "out" / "thesis.tex").write_text("…")
    assert run(inputs, cluster="nope.json") == 2
    assert "not a run" in capsys.readouterr().err


def test_a_long_run_is_told_that_the_kernel_is_interpreted(tmp_path, capsys, monkeypatch):
    (tmp_path / "site.yaml").write_text("groups: [{name: n, count: 2, cores: 4, memory: 8 GiB}]\n")
    job = {"submit": 0, "runtime": 5, "duration": 9}
    lines = [job | {"id": 1, "shape": "slot=1/[core;memory]"}, job | {"id": 2, "shape": "slot=1/node"}]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ["run", str(tmp_path / "site.yaml"), str(tmp_path / "jobs.jsonl"), "-o", str(tmp_path / "out")]
    monkeypatch.setattr("simsched._version.kernel_is_compiled", lambda: False)
    for most, told in ((3, False), (2, True)):
        monkeypatch.setattr("simsched.cli.run.LONG", most)
        assert main([*command, "--quiet"]) == 0
        assert ("the kernel is interpreted" in capsys.readouterr().err) == told


def test_an_empty_workload_is_a_run(inputs, capsys):
    (inputs / "jobs.swf").write_text("; nothing came in\n")
    assert run(inputs, "--audit") == 0
    assert "audit: clean (0 jobs" in capsys.readouterr().err


def test_a_folder_of_flux_jobs_is_a_workload(inputs, capsys):
    job = inputs / "jobs" / "7"
    job.mkdir(parents=True)
    (job / "jobspec").write_text(json.dumps(Jobspec.from_shape("slot=2/core", duration=60).to_dict()))
    events = [(5, "submit"), (6, "start"), (16, "finish")]
    lines = [json.dumps({"timestamp": at, "name": name, "context": {}}) for at, name in events]
    (job / "eventlog").write_text("\n".join(lines) + "\n")
    assert run(inputs, workload="jobs", out="folder") == 0
    assert "completed 1" in capsys.readouterr().out
    made = json.loads((inputs / "folder" / "run.json").read_text())["inputs"]
    assert [(one["role"], one["sha256"] is None) for one in made] == [("cluster", False), ("workload", True)]


def test_a_line_that_is_no_record_is_left_out_and_the_run_is_told(inputs, capsys):
    (inputs / "odd.swf").write_text(SWF + "nonsense\n")
    assert run(inputs, workload="odd.swf", out="odd") == 0
    assert "dropped: not a record of 18 numbers" in capsys.readouterr().out
    assert main(["report", str(inputs / "odd"), "-o", str(inputs / "odd.html")]) == 0


@pytest.mark.integration
def test_ctrl_c_stops_cleanly_and_marks_what_was_done(inputs):
    lines = [f"{n} {n} -1 5 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 400_000)]
    (inputs / "long.swf").write_text("\n".join(lines))
    command = [
        sys.executable,
        "-m",
        "simsched",
        "run",
        str(inputs / "cluster.json"),
        str(inputs / "long.swf"),
    ]
    process = subprocess.Popen([*command, "-o", str(inputs / "out")], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # the simulation has begun once the allocations flow
        if any(path.stat().st_size for path in inputs.glob(".out.*/allocations.jsonl")):
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert not (inputs / "out").exists()
    assert json.loads((inputs / "out.partial" / "run.json").read_text())["complete"] is False
    assert not list(inputs.glob(".out.*"))


def test_an_earlier_run_is_replaced_with_a_word_and_a_users_file_refused(inputs, capsys):
    out = inputs / "out"
    assert run(inputs, "--quiet") == 0
    assert "replaced" not in capsys.readouterr().err
    assert run(inputs, "--quiet", "--order", "sjf") == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"note: replaced the earlier run in {out}"
    assert json.loads((out / "run.json").read_text())["config"]["order"] == "sjf"
    for name in ("notes.txt", "report.html"):
        (out / name).write_text("mine")
        assert run(inputs, "--quiet") == 2
        assert capsys.readouterr().err.splitlines()[-1] == (
            f"simsched: error: {out}: {name!r} is not part of the run in this directory and would be lost "
            "(expected another directory, or that file elsewhere)"
        )
        assert (out / name).read_text() == "mine"
        (out / name).unlink()


@pytest.mark.parametrize("record", ["{}", "[]", '{"simsched": "0.1"}', "nonsense", '{"complete": true}'])
def test_a_run_json_of_somebody_else_makes_no_run_of_a_directory(inputs, capsys, record):
    (inputs / "out").mkdir()
    (inputs / "out" / "run.json").write_text(record)
    assert run(inputs, "--quiet") == 2
    assert "this directory holds something that is not a run" in capsys.readouterr().err
    assert (inputs / "out" / "run.json").read_text() == record


def test_a_link_to_a_run_is_kept_and_the_run_replaced(inputs):
    assert run(inputs, "--quiet", out="real") == 0
    (inputs / "link").symlink_to("real")
    assert run(inputs, "--quiet", "--order", "sjf", out="link") == 0
    assert (inputs / "link").is_symlink()
    assert json.loads((inputs / "real" / "run.json").read_text())["config"]["order"] == "sjf"


def test_warnings_of_libraries_do_not_reach_the_user(inputs):
    """Times that no calendar has: what NumPy says of them is not said, what we say is."""
    (inputs / "odd.jsonl").write_text('{"shape": "slot=1/core", "submit": 1e300, "runtime": 1e300}\n')
    command = [sys.executable, "-m", "simsched", "run", "cluster.json", "odd.jsonl", "-o", "out"]
    done = subprocess.run(command, cwd=inputs, capture_output=True, text=True, check=False)
    assert "Warning" not in done.stderr
    script = (
        "import numpy as np, simsched.cli as cli\n"
        "cli._run = lambda _: int(np.float64(1e308) * 10 > 0) * 7\n"
        "raise SystemExit(cli.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_configuration_and_what_is_said_beside_it(inputs):
    (inputs / "c.toml").write_text('order = "sjf"\nqueue-policy = "fcfs"\n[policy-options]\n')
    (inputs / "o.json").write_text('[{"ranks": "0", "start": 1, "end": 2, "kind": "drain"}]')
    assert run(inputs, "--config", str(inputs / "c.toml"), "--order", "ljf", "--quiet", "--eventlog") == 0
    config = json.loads((inputs / "out" / "run.json").read_text())["config"]
    assert (config["order"], config["queue_policy"]) == ("ljf", "fcfs")
    assert (inputs / "out" / "eventlog.jsonl").read_text().count("\n") == 3 * 10 + 4
    more = ("--outages", str(inputs / "o.json"), "--failures", "mtbf=1d,mttr=1h", "--on-failure", "fail")
    assert run(inputs, *more, "--quiet", "--audit") == 0
    config = json.loads((inputs / "out" / "run.json").read_text())["config"]
    assert config["outages"] == [{"ranks": "0", "start": 1, "end": 2, "kind": "drain", "note": ""}]
    assert config["failures"]["mttr"] == 3600


def test_a_configuration_that_is_none(inputs, capsys):
    (inputs / "c.toml").write_text("ordr = 3")
    assert run(inputs, "--config", str(inputs / "c.toml")) == 2
    assert "unknown key 'ordr'" in capsys.readouterr().err


def test_forecast(inputs, capsys):
    line = ["forecast", str(inputs / "cluster.json"), str(inputs / "jobs.swf"), "--at", "2"]
    assert main(line) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["JOB", "USER", "QUEUE", "PLACE", "SUBMIT", "START", "IN", "SHAPE"]
    assert out[1].split() == ["2", "2", "1", "1", "1", "20", "18", "s", "slot=8/core"]
    assert main([*line, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["start"] == 20
    assert main([*line[:-1], "inf"]) == 2
    assert main([*line[:-1], "soon"]) == 2


def test_until(inputs):
    assert run(inputs, "--until", "5s", "--quiet", "--audit") == 0
    counts = json.loads((inputs / "out" / "run.json").read_text())["counts"]
    assert (counts["running"], counts["pending"]) == (2, 1)


def test_forecast_of_a_run_plays_its_inputs_by_its_rules(inputs, capsys):
    rules = ["--queue-policy", "easy", "--order", "sjf", "--limit", "3"]
    assert run(inputs, *rules, "--quiet") == 0
    files = [str(inputs / "cluster.json"), str(inputs / "jobs.swf")]
    assert main(["forecast", *files, *rules, "--at", "2"]) == 0
    expected = capsys.readouterr().out
    assert main(["forecast", str(inputs / "out"), "--at", "2"]) == 0
    assert capsys.readouterr().out == expected
    assert expected.count("\n") > 1


def test_forecast_of_a_run_whose_inputs_or_rules_are_not_its_own(inputs, capsys):
    assert run(inputs, "--quiet") == 0
    out = str(inputs / "out")
    assert main(["forecast", out, "--at", "2", "--order", "sjf"]) == 2
    assert "--order: a run directory has its own options" in capsys.readouterr().err
    assert main(["forecast", out]) == 2
    assert main(["forecast", str(inputs), "--at", "2"]) == 2
    assert "there is no workload" in capsys.readouterr().err
    with (inputs / "jobs.swf").open("a") as stream:
        stream.write("; one more line\n")
    assert main(["forecast", out, "--at", "2"]) == 2
    assert "has changed since" in capsys.readouterr().err
    document = json.loads((inputs / "out" / "run.json").read_text())
    del document["command"]
    (inputs / "out" / "run.json").write_text(json.dumps(document))
    assert main(["forecast", out, "--at", "2"]) == 2
    assert "the run does not record its command" in capsys.readouterr().err


def test_a_run_without_jobs_says_so(inputs, capsys):
    (inputs / "empty.swf").write_text("; an empty trace\n")
    assert run(inputs, "--quiet", workload="empty.swf") == 0
    assert capsys.readouterr().err == "note: the workload has no jobs\n"


# --- jobs that can never run ---- --------------------------------------------------------------------------

TOO_LARGE = """\
1 0 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1
2 1 -1 5 9 -1 -1 9 10 -1 1 2 1 1 1 1 -1 -1
3 2 -1 5 99 -1 -1 99 5 -1 1 1 1 1 1 1 -1 -1
"""


def test_jobs_that_can_never_run_are_one_line_even_of_a_quiet_run(inputs, capsys):
    (inputs / "large.swf").write_text(TOO_LARGE)
    assert run(inputs, "--quiet", workload="large.swf") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: 2 of 3 jobs can never run: slot: 9-99 needed, 8 available")
    assert line.endswith("(2)")
    assert run(inputs, "--quiet", "--strict", workload="large.swf") == 1
    assert (inputs / "out" / "run.json").is_file()


def test_a_run_in_which_no_job_runs_says_so_and_fails_under_strict(inputs, capsys):
    (inputs / "large.swf").write_text(TOO_LARGE.partition("\n")[2])
    (inputs / "none.swf").write_text("; Note: no job\n")
    for workload in ("large.swf", "none.swf"):
        said = "note: no job ran" if workload == "large.swf" else "note: the workload has no jobs"
        assert run(inputs, "--quiet", workload=workload, out=f"of-{workload}") == 0
        assert capsys.readouterr().err.splitlines()[-1] == said
        assert run(inputs, "--quiet", "--strict", workload=workload, out=f"of-{workload}") == 1


def test_a_run_without_such_jobs_is_silent_and_strict_passes(inputs, capsys):
    (inputs / "good.swf").write_text("".join(TOO_LARGE.splitlines(keepends=True)[:1]))
    assert run(inputs, "--quiet", "--strict", workload="good.swf") == 0
    assert capsys.readouterr().err == ""


# --- the audit of a run that was made earlier ------------------------------------------------------------


def test_a_run_is_audited_again_with_its_inputs(inputs, capsys):
    assert run(inputs, "--quiet", "-t", "first(3)") == 0
    folder = str(inputs / "out")
    assert main(["report", folder, "--audit"]) == 0
    assert f"{folder}: audit: clean (3 jobs, 3 allocations, 3 releases)" in capsys.readouterr().out
    (inputs / "jobs.swf").rename(inputs / "moved.swf")
    assert main(["report", folder, "--audit"]) == 1
    shown = capsys.readouterr().out
    assert "audit: not complete (6 files were compared with their digests" in shown
    assert "jobs.swf is missing and was not compared" in shown
    (inputs / "jobs.swf").write_text(SWF.replace("1 0 -1 10", "1 0 -1 11"))
    assert main(["report", folder, "--audit"]) == 1
    assert "has changed since the run was made" in capsys.readouterr().out
    (inputs / "moved.swf").replace(inputs / "jobs.swf")
    (inputs / "out" / "timeline.parquet").unlink()
    assert main(["report", folder, "--audit"]) == 1
    assert "timeline.parquet is missing" in capsys.readouterr().out
    assert main(["report", str(inputs), "--audit"]) == 2
    assert "it has no run.json" in capsys.readouterr().err


def test_outages_without_a_file(capsys, tmp_path):
    assert main(["run", "tiny", "first-steps", "-o", str(tmp_path / "out"), "--outages", "node2"]) == 2
    message = "--outages: node2: no such file (expected a JSON or YAML file with a list of {ranks or hosts"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
