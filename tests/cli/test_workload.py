"""``simsched workload show|make|convert`` as a user meets them."""

from __future__ import annotations

import json

import pytest

from simsched.bundled import bundled
from simsched.cli import main
from simsched.formats.sss.document import read_document
from simsched.workload.load import load_workload
from tests import REPOSITORY

SWF = """\
; Version: 2.2
; MaxProcs: 16
; Queue: 1 batch
1 0 5 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1
2 600 5 60 16 -1 -1 16 3600 -1 1 2 1 -1 1 -1 -1 -1
3 700 -1 -1 -1 -1 -1 2 60 -1 5 2 1 -1 1 -1 -1 -1
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "small.swf"
    path.write_text(SWF)
    return path


def run(*words) -> int:
    return main(["workload", *map(str, words)])


def test_show_tells_the_story_of_a_trace(trace, capsys):
    assert run("show", trace) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "small: 2 jobs of 3 records (swf)\n"
        "\n"
        "ignored:\n"
        "          1  cancelled before it started  small.swf:6\n"
        "\n"
        "submitted over   10 min\n"
        "work             4 processor hours\n"
        "offered load     1.600 of 16 processors\n"
        "processors       min 4, median 10, mean 10, p95 15, max 16\n"
    )
    assert "jobs by processors:\n   3-4          1  ####" in out
    assert "popular limits:" in out


def test_show_as_data(trace, capsys):
    assert run("show", trace, "--format", "json", "--capacity", "32", "-t", "where(procs > 4)") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["jobs"], data["records"], data["capacity"]) == (1, 3, 32)
    assert data["skipped"] == [{"reason": "cancelled before it started", "count": 1, "first": "small.swf:6"}]
    assert data["users"] == {"number": 1, "top": [{"name": "2", "jobs": 1, "processor_hours": 16 / 60}]}


def test_an_empty_workload_is_shown(tmp_path, capsys):
    (tmp_path / "none.swf").write_text("; Version: 2.2\n")
    assert run("show", tmp_path / "none.swf") == 0
    assert "0 jobs of 0 records" in capsys.readouterr().out


def test_convert_merges_transforms_and_says_what_is_lost(trace, tmp_path, capsys):
    out = tmp_path / "both.yaml"
    assert run("convert", trace, "first-steps", "-t", "rebase", "-o", out) == 0
    err = capsys.readouterr().err
    assert "ignored:\n          1  cancelled before it started  small.swf:6" in err
    assert f"{out}: 20 jobs (jobs)" in err
    merged = load_workload(out)
    assert len(merged) == 20
    assert run("convert", out, "-o", tmp_path / "flat.swf.gz") == 0
    assert "note: swf cannot represent: jobspec, urgency, dependencies" in capsys.readouterr().err
    assert len(load_workload(tmp_path / "flat.swf.gz")) == 20
    assert run("convert", out, "--to", "jsonl") == 0
    assert len(capsys.readouterr().out.splitlines()) == 20


def test_make_lublin_twice_gives_the_same_bytes(tmp_path, capsys):
    words = [
        "make",
        "lublin",
        "--machine",
        64,
        "--jobs",
        50,
        "--load",
        0.5,
        "--estimates",
        "12h",
        "--seed",
        3,
    ]
    files = [tmp_path / "a.swf.gz", tmp_path / "b.swf.gz"]
    for path in files:
        assert run(*words, "-o", path) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    workload = load_workload(files[0])
    assert len(workload) == 50
    assert "simsched workload make lublin" in workload.header["Note"]
    assert "--seed 3" in workload.header["Note"]


def test_make_mix(tmp_path, capsys):
    spec = tmp_path / "mix.yaml"
    spec.write_text("{gap: exp(60), jobs: 20, parts: [{shape: slot=1/core, runtime: exp(5m), duration: 1h}]}")
    assert run("make", "mix", spec) == 0
    out = capsys.readouterr().out
    path = tmp_path / "made.yaml"
    path.write_text(out)
    assert len(load_workload(path)) == 20
    assert all(job.duration >= 3600 for job in load_workload(path))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "nowhere.swf"], "no such file"),
        (["show", "first-steps", "-t", "sort"], "unknown transform 'sort'"),
        (["show", "first-steps", "--as", "xls"], "unknown workload format 'xls'"),
        (["show", "month", "--map", "slot={proc}/core"], "unknown placeholder {proc}"),
        (["convert", "first-steps", "-o", "out.xls"], "no format belongs to the ending"),
        (["convert", "first-steps", "--to", "xls"], "cannot write 'xls'"),
        (["make", "lublin", "--machine", "8"], "neither a number of jobs nor a span"),
        (
            ["make", "lublin", "--machine", "8", "--jobs", "5", "--estimates", "1s"],
            "the longest limit is 1 s",
        ),
        (["make", "lublin", "--machine", "8", "--jobs", "5", "--seed", "-1"], "'-1' is not a whole number"),
        (["make", "mix", "nothing.yaml"], "nothing.yaml"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words, message, capsys):
    assert run(*words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_strict(trace, capsys):
    assert run("show", trace, "--strict") == 2
    assert "small.swf:6: record refused: cancelled before it started" in capsys.readouterr().err


@pytest.mark.parametrize(("workload", "jobs"), [("slurm-day", 1501), ("job-objects", 5), ("first-steps", 18)])
def test_a_mixed_study_on_one_racked_cluster(workload, jobs, tmp_path, capsys):
    """A sacct dump, Job Objects and a jobs.yaml with shapes: one command each."""
    out = tmp_path / "run"
    assert main(["run", "racked", workload, "-o", str(out), "--audit", "--quiet"]) == 0
    counts = json.loads((out / "run.json").read_text())["counts"]
    assert counts["jobs"] == jobs == len(load_workload(workload))


@pytest.mark.parametrize("name", ["first-steps", "month"])
def test_the_picture_is_the_same_every_time(name, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    for path in files:
        assert run("show", name, "--plot", path) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert run("show", name, "--plot", tmp_path / "a.gif") == 2
    assert "cannot be written as '.gif'" in capsys.readouterr().err


def test_the_picture_of_nothing(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    (tmp_path / "none.swf").write_text("; Version: 2.2\n")
    assert run("show", tmp_path / "none.swf", "--plot", tmp_path / "none.svg") == 0
    assert "<svg" in (tmp_path / "none.svg").read_text()


EXAMPLES = REPOSITORY / "tests" / "formats" / "sss"


@pytest.mark.parametrize(
    ("example", "processors", "nodes"),
    [("simple", ["16"], ["fr15n[01-02]"]), ("moderate", ["120"], ["fr15n[01-08],node[1-5],fat1"]),
     ("elaborate", ["2", "17"], ["fr15n[01-02]", "fr15n[01-04]"])],
)  # fmt: skip
def test_the_documents_examples_run_and_come_back_with_delivered(
    example, processors, nodes, tmp_path, capsys
):
    """Section 1.3's examples on the bundled cluster `colony`; holds are lifted so that all of them run."""
    document = EXAMPLES / f"sss_{example}.xml"
    directory, out = tmp_path / "run", tmp_path / "out.xml"
    assert (
        main(["run", "colony", str(document), "-t", "release", "-o", str(directory), "--audit", "--quiet"])
        == 0
    )
    assert run("deliver", document, directory, "-o", out) == 0
    after = read_document(out.read_text())
    jobs = [after.root] if after.root.name == "Job" else list(after.root.all("Job"))
    delivered = [job.first("Delivered") for job in jobs]
    assert [job.value("State") for job in jobs] == ["Completed"] * len(jobs)
    assert [part.value("Processors") for part in delivered] == processors
    assert [part.value("Node") for part in delivered] == nodes
    for job, part in zip(jobs, delivered, strict=True):
        assert int(job.value("EndTime")) - int(job.value("StartTime")) == int(part.value("Duration"))


def test_a_run_of_other_jobs_is_refused(tmp_path, capsys):
    directory = tmp_path / "run"
    assert main(["run", "tiny", "first-steps", "-o", str(directory), "--quiet"]) == 0
    assert run("deliver", EXAMPLES / "sss_simple.xml", directory) == 2
    assert "the run has no job of this document" in capsys.readouterr().err


def test_a_pattern_needs_a_cluster(capsys):
    assert run("convert", EXAMPLES / "sss_elaborate.xml") == 2
    assert "needs a cluster" in capsys.readouterr().err
    assert run("convert", EXAMPLES / "sss_elaborate.xml", "--cluster", "colony") == 0
    assert "fr15n[01-08]" in capsys.readouterr().out


def test_list(capsys):
    assert main(["workload", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(bundled("workloads"))


def test_convert_lists_what_no_job_object_can_say_and_strict_refuses_it(tmp_path, capsys):
    jobs, made = tmp_path / "jobs.yaml", tmp_path / "jobs.xml"
    jobs.write_text("- {id: a, shape: slot/core, runtime: 4}\n- {id: b, shape: rack/slot/core, runtime: 4}\n")
    assert main(["workload", "convert", str(jobs), "-o", str(made)]) == 0
    said = capsys.readouterr().err
    assert f"{made}: 1 jobs (sss)" in said
    assert "not written:\n" in said
    assert "a Job Object cannot express a request without a slot  job b\n" in said
    assert [job.id for job in load_workload(made)] == ["a"]
    made.unlink()
    assert main(["workload", "convert", str(jobs), "--strict", "-o", str(made)]) == 2
    assert "job b cannot be written" in capsys.readouterr().err
    assert not made.exists()
