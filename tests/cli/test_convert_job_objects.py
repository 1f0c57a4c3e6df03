"""Job Objects on the command line: convert, shape --from, match; what is said in vain is told."""

from __future__ import annotations

import pytest

from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.text.yaml_text import load_yaml
from tests import REPOSITORY

HERE = REPOSITORY / "tests" / "formats" / "sss"

REFUSED = "standard input:5:3: Reservation: there are no named reservations\n"
JOB = """<Job{policy}>
  <Id>1</Id>
  <User>amy</User>
  <Charge>3</Charge>
  <Reservation{own}>r7</Reservation>
  <Requested><Processors>4</Processors><Duration>60</Duration></Requested>
</Job>
"""


def test_the_three_examples_of_the_document_become_jobspecs(run):
    assert run("convert", HERE / "sss_simple.xml", "--to", "shape")[:2] == (0, "slot=16/core\n")
    status, out, err = run("convert", HERE / "sss_moderate.xml", "--to", "jobspec")
    job = Jobspec.from_dict(load_yaml(out))
    assert (status, job.to_shape(), job.duration) == (0, "slot=12+/[core;memory=2+{unit:GiB}]", 3600)
    assert job.system["environment"] == {"PATH": "/usr/bin:/home/peterk"}
    assert err == (
        "note: not in the jobspec: User, Application, Machine, QualityOfService, State, "
        "StartTime, EndTime, Charge, Delivered\n"
        f"note: {HERE / 'sss_moderate.xml'}: version 999 (RFC 14), which Flux does not take: "
        "resources[0].count: the count 12+ (expected an integer)\n"
    )
    elaborate = HERE / "sss_elaborate.xml"
    status, out, err = run("convert", elaborate, "--to", "shape")
    assert (status, out) == (2, "")
    assert f"{elaborate}:80:9: pattern 'fr15n.*' needs a cluster (expected hosts to match)" in err
    status, out, err = run("convert", elaborate, "--to", "shape", "--cluster", "colony")
    assert (status, out.count("\n")) == (0, 2)
    assert 'node=4{id:"fr15n[01-08]"}/slot=3-4{Slave}' in out
    assert "warning: " in err
    assert "Jumbo-Frame of one task group is put on the whole job" in err


@pytest.mark.parametrize(
    ("policy", "own", "status", "said"),
    [
        ("", "", 2, f"simsched: error: {REFUSED}"),
        (
            ' awarenessPolicy="Warn"',
            "",
            0,
            f"simsched: warning: {REFUSED}note: not in the jobspec: User, Charge\n",
        ),
        ("", ' awarenessPolicy="Ignore"', 0, "note: not in the jobspec: User, Charge\n"),
        (' awarenessPolicy="Ignore"', "", 0, ""),
    ],
)
def test_what_has_no_mapping_is_reported_as_the_policy_says(run, policy, own, status, said):
    text = JOB.format(policy=policy, own=own)
    found = run("convert", "-", "--to", "shape", stdin=text)
    assert found == (status, "slot=4/core\n" if status == 0 else "", said)


def test_job_objects_as_a_workload_keep_their_times(run, tmp_path):
    jobs = tmp_path / "jobs.yaml"
    text = run("convert", "job-objects.xml", "--to", "jobs")
    assert text[0] == 2  # a file, not a bundled name
    source = REPOSITORY / "workloads" / "job-objects.xml"
    status, out, _ = run("convert", source, "--to", "jobs")
    assert status == 0
    jobs.write_text(out)
    status, out, _ = run("workload", "show", jobs)
    assert (status, "5 jobs" in out) == (0, True)
    status, _, err = run("convert", "-", "--to", "jobs", stdin="slot=2/core")
    assert (status, "only Job Objects can be converted to a workload (jobs) here" in err) == (2, True)


def test_options_for_requests_are_refused_where_job_objects_stay_as_they_are(run):
    text = "<Job><Id>1</Id><Hold>User</Hold></Job>"
    for target in ("jobs", "jsonl", "sss"):
        status, out, err = run("convert", "-", "--to", target, "--queue", "fast", stdin=text)
        assert (status, out) == (2, "")
        assert f"--queue applies to requests, but --to {target} converts Job Objects as they are" in err
    assert run("convert", "-", "--to", "shape", stdin=text)[2] == "note: not in the jobspec: Hold\n"


def test_jobspecs_become_numbered_jobs_and_what_they_wait_for_in_vain_is_told(run):
    job = "<Job><Id>{}</Id><Dependency>{}</Dependency></Job>"
    text = f"<Data><Job><Id>1</Id></Job>{job.format('b', 1)}{job.format('c', 'b')}</Data>"
    specs = run("convert", "-", "--to", "jobspec", stdin=text)[1]
    status, out, err = run("convert", "-", "--to", "sss", stdin=specs)
    assert (status, out.count("<Id>")) == (0, 3)
    assert err == "note: jobs are numbered from 1; these dependencies match none of them: b\n"
    status, _, err = run("convert", "-", "--to", "sss", stdin="slot/core\ncore=4\n")
    assert (status, "request 2 of 2: a Job Object cannot express" in err) == (2, True)


def test_a_job_that_is_left_out_of_a_workload_is_told(run):
    early = "<Job><Id>1</Id><SubmitTime>9</SubmitTime><StartTime>3</StartTime></Job>"
    status, out, err = run("convert", "-", "--to", "jobs", stdin=f"<Data>{early}<Job><Id>2</Id></Job></Data>")
    assert (status, out.count('"id"')) == (0, 1)
    assert err == "ignored 1 record: starts before it is submitted (standard input:1)\n"


SHAPES = ["slot=16/core", "slot=3/core=2", "node=2/slot=4/core", "slot=2/[core=3;memory=2{unit:GiB}]"]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_go_to_job_objects_and_back(run, shape):
    status, text, _ = run("convert", "-", "--to", "sss", stdin=shape)
    assert status == 0
    assert run("convert", "-", "--to", "shape", stdin=text)[:2] == (0, f"{shape}\n")
    assert run("convert", "-", "--to", "sss", stdin=text)[1] == text


def test_what_no_job_object_can_say_is_named(run):
    for shape, what in (("core=4", "a request without a slot"), ("slot=2/[core;fpga]", "fpga in a slot")):
        status, out, err = run("convert", "-", "--to", "sss", stdin=shape)
        assert (status, out) == (2, "")
        assert f"a Job Object cannot express {what}" in err


def test_options_override_and_shapes_match_and_feasible_read_job_objects_too(run, tmp_path):
    path = tmp_path / "job.xml"
    path.write_text("<Job><Id>1</Id><Processors>2</Processors><Queue>slow</Queue></Job>")
    _, out, _ = run("convert", path, "--to", "v1", "--duration", "5m", "--queue", "quick", "--", "app", "-x")
    job = Jobspec.from_dict(load_yaml(out))
    assert (job.duration, job.queue, job.tasks[0].command) == (300, "quick", ("app", "-x"))
    assert run("shape", "--from", path)[:2] == (0, "slot=2/core\n")
    assert run("feasible", "tiny", path)[0] == 0
    assert '"core": "0-1"' in run("match", "tiny", path)[1]


def test_an_empty_input_is_an_error(run):
    nothing = "the file has no request (expected jobspecs, shapes or Job Objects)"
    said = f"simsched: error: standard input: {nothing}\n"
    assert run("shape", "-") == (2, "", said)
    assert run("shape", "-", "--jobspec", stdin="# nothing\n") == (2, "", said)
    assert run("convert", "-", "--to", "yaml", stdin="\n") == (2, "", said)


def test_validate_names_every_fault_and_tells_warnings_and_patterns_as_notes(run):
    def validate(text, *more):
        return run("validate", "-", "--as", "sss", *more, stdin=text)[:2]

    two = "<Job><Id>1</Id><Deadlin>9</Deadlin><Processors>x</Processors></Job>"
    assert validate(two) == (
        2,
        (
            "standard input:1:16: <Deadlin> is not known in <Job>\n"
            "standard input:1:36: Processors 'x' is not a whole number (expected a whole number)\n"
        ),
    )
    warned = '<Job awarenessPolicy="Warn"><Id>1</Id><Reservation>r</Reservation></Job>'
    notes = "warning: standard input:1:39: Reservation: there are no named reservations"
    assert validate(warned) == (0, f"standard input: valid (1 job; {notes})\n")
    pattern = '<Job><Id>1</Id><Requested><Node aggregation="Pattern">fr15n0[12]</Node></Requested></Job>'
    unmatched = "1 pattern was not checked, which needs --cluster"
    assert validate(pattern) == (0, f"standard input: valid (1 job; {unmatched})\n")
    assert validate(pattern, "--cluster", "colony") == (0, "standard input: valid (1 job)\n")
    assert validate(pattern.replace("0[12]", "0[12"))[0] == 2
    early = "<Job><Id>1</Id><SubmitTime>9</SubmitTime><StartTime>3</StartTime></Job>"
    assert validate(early) == (2, "standard input:1:1: starts before it is submitted\n")
    circle = "<Data><Job><Id>1</Id><Dependency>1</Dependency></Job></Data>"
    assert validate(circle)[1] == (
        "standard input:1:1: jobs wait for each other: 1 -> 1 (expected no cycle of dependencies)\n"
    )


def test_op_match_is_a_pattern_too(run, tmp_path):
    """`op="Match"` is expanded against the cluster as `aggregation="Pattern"` is."""
    path = tmp_path / "job.xml"
    path.write_text('<Job><Id>1</Id><Requested><Node op="Match">fr15n0[12]</Node></Requested></Job>')
    _, out, _ = run("convert", path, "--to", "jobspec", "--cluster", "colony")
    assert str(Jobspec.from_dict(load_yaml(out)).constraint) == "host:fr15n[01-02]"
    assert run("workload", "show", path, "--cluster", "colony")[0] == 0


@pytest.mark.parametrize(
    "words", ["run tiny {} --quiet -o {}.run", "workload show {}", "workload convert {}"]
)
def test_a_warning_reaches_whoever_reads_the_jobs(run, tmp_path, words):
    """The document, section 9: under Warn the requestor must be told what is not understood."""
    path = tmp_path / "jobs.xml"
    path.write_text(JOB.format(policy=' awarenessPolicy="Warn"', own=""))
    status, _, err = run(*words.replace("{}", str(path)).split())
    assert status == 0
    assert f"simsched: warning: {path.name}:5:3: Reservation: there are no named reservations\n" in err
