"""jobs.yaml and JSON Lines: stories, faults with their places, and the way back."""

from __future__ import annotations

import json
from math import inf

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.declare.table import fields_of
from simsched.errors import FormatError, SimschedError, WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.workload.job import Job, Skips, assemble
from simsched.workload.load import detect, load_workload
from simsched.workload.mapping import ReadOptions
from simsched.workload.readers.jobs import JobEntry, jobs_schema, read_jobs_yaml, read_jsonl
from simsched.workload.save import write_jobs_yaml, write_jsonl


def table(text: str) -> list[str]:
    """The jobs of a document as one line each: id name submit duration runtime shape."""
    return [
        f"{j.id} {j.name} {j.submit} {j.duration} {j.runtime} {j.jobspec.to_shape()}"
        for j in read_jobs_yaml(text)
    ]


def test_a_list_of_jobs():
    text = """
    - {shape: slot=2/core, duration: 1h, runtime: 30m, submit: 1.5m, name: b}
    - {shape: slot=2/core, runtime: 10}
    - shape: node=2
      duration: inf
      count: 3
      every: 5m
      id: sweep
      name: c
    """
    assert table(text) == [
        "2 None 0 None 10 slot=2/core",
        "sweep.1 c 0 None None node=2",
        "1 b 90 3600 1800 slot=2/core",
        "sweep.2 c 300 None None node=2",
        "sweep.3 c 600 None None node=2",
    ]


def test_equal_requests_share_one_jobspec():
    jobs = read_jobs_yaml("- {shape: slot=2/core, runtime: 1}\n- {shape: slot=2/core, runtime: 2, count: 5}")
    assert len({id(job.jobspec) for job in jobs}) == 1


def test_defaults_a_name_and_limits():
    text = """
    name: mine
    defaults: {shape: slot=1/core, duration: 1h, user: ada, queue: debug, urgency: 20}
    jobs:
    - {}
    - {user: bob, shape: slot=1/core=2}
    - jobspec: {version: 1, resources: [{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}],
                tasks: [{command: [app], slot: a, count: {per_slot: 1}}],
                attributes: {system: {duration: 60}}}
    """
    workload = read_jobs_yaml(text)
    assert workload.name == "mine"
    assert [(j.user, j.duration, j.queue, j.urgency) for j in workload] == [
        ("ada", 3600, "debug", 20),
        ("bob", 3600, "debug", 20),
        ("ada", 60, "debug", 20),  # the jobspec's own limit counts before the default
    ]


def test_dependencies_by_name_id_and_number():
    text = """
    - {id: 10, name: prep, shape: slot=1/core, runtime: 1, count: 1}
    - {name: part, shape: slot=1/core, runtime: 1, count: 2}
    - {id: end, shape: slot=1/core, runtime: 1, depends: ['afterok:prep', 'afterany:part', 'begin-time:99']}
    """
    end = next(job for job in read_jobs_yaml(text) if job.id == "end")
    assert list(map(str, end.dependencies)) == ["afterok:10", "afterany:2", "afterany:3", "begin-time:99"]


def test_constraints_are_anded_to_the_jobspecs_own():
    document = Jobspec.from_shape("slot=1/core", constraint="a").to_dict()
    entry = {"jobspec": document, "runtime": 1, "constraint": "b or c"}
    (job,) = read_jobs_yaml(json.dumps([entry]))
    assert str(job.jobspec.constraint) == "a and (b or c)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs: 3", "jobs.yaml: not a list of jobs"),
        ("hello", "jobs.yaml: not a list of jobs"),
        ("- 5", r"jobs\[0\]: not a job"),
        ("- {shape: slot=1/core}", r"jobs\[0\]: a job needs a runtime or a duration"),
        ("- {runtime: 5}", r"found none of them \(expected one of shape, jobspec, file, parts\)"),
        ("- {shape: a, file: b, runtime: 5}", "found shape and file"),
        ("- {shape: slot=1/core, runtme: 5}", r"jobs\[0\]: unknown key 'runtme'; did you mean runtime\?"),
        ("- {shape: 'slot=1/core[', runtime: 5}", r"jobs\[0\].shape: "),
        ("- {shape: 7, runtime: 5}", "7 is not a shape"),
        ("- {shape: slot=1/core, runtime: 5 parsecs}", r"jobs\[0\].runtime"),
        ("- {shape: slot=1/core, runtime: -5}", r"jobs\[0\].runtime"),
        ("- {shape: slot=1/core, runtime: inf}", r"jobs\[0\].runtime: the time has no end"),
        ("- {shape: slot=1/core, runtime: [1]}", r"jobs\[0\].runtime: \[1\] is not a duration"),
        ("- {shape: slot=1/core, runtime: 1, count: many}", r"jobs\[0\].count: 'many' is not a whole number"),
        ("- {shape: slot=1/core, runtime: 1, count: -1}", r"jobs\[0\].count: -1 is out of range"),
        ("- {shape: slot=1/core, runtime: 1, count: 99999999999}", "more than 1,000,000 jobs of one entry"),
        ("- {shape: slot=1/core, runtime: 1, urgency: 32}", r"32 is out of range \(expected .* 0 to 31"),
        ("- {shape: slot=1/core, runtime: 1, hold: maybe}", r"jobs\[0\].hold: 'maybe' is not true or false"),
        ("- {shape: slot=1/core, runtime: 1, id: [1]}", r"id: \[1\] is not a whole number or a text"),
        ("- {shape: slot=1/core, runtime: 1, name: [a]}", r"jobs\[0\].name: \['a'\] is not a text"),
        ("- {shape: slot=1/core, runtime: 1, preceding: [a]}", r"preceding: \['a'\] is not the id of a job"),
        ("- {shape: slot=1/core, runtime: 1, command: 5}", r"jobs\[0\].command: 5 is not a command"),
        ("- {shape: slot=1/core, runtime: 1, depends: nobody}", r"depends\[0\]"),
        ("- {shape: slot=1/core, runtime: 1, depends: 'afterok:x'}", "depends on 'x', which is not a job"),
        ("- {shape: slot=1/core, runtime: 1, depends: [7]}", r"depends\[0\]: 7 is not a dependency"),
        ("- {shape: slot=1/core, runtime: 1, name: x, depends: 'afterok:x'}", "job 1 depends on itself"),
        ("- {shape: slot=1/core, runtime: 1, id: a}\n- {shape: slot=1/core, runtime: 1, id: a}",
         r"jobs\[1\]: job id 'a' occurs twice, first at jobs.yaml: jobs\[0\]"),
        ("{defaults: {shape: gpu, runtime: 1}, jobs: [{id: a, depends: after:b}, {id: b, depends: after:a}]}",
         "jobs depend on each other: (a -> b -> a|b -> a -> b)"),
        ("- {file: nothing.json, runtime: 1}", "cannot name files"),
        ("- {jobspec: {version: 1}, runtime: 1}", r"jobs\[0\].jobspec"),
        ("- {shape: slot=1/core, runtime: 1, constraint: 'a and'}", r"jobs\[0\].constraint: the con"),
        ("{", "jobs.yaml"),
        ("- &a [*a]", "jobs.yaml"),
    ],
)  # fmt: skip
def test_faults_have_a_place(text, message):
    with pytest.raises(SimschedError, match=message):
        read_jobs_yaml(text)


def faults(read, text):
    with pytest.raises(SimschedError) as caught:
        read(text)
    return [f"{one.where}: {one.message}" for one in (caught.value, *caught.value.others)]


def test_all_faults_of_a_document_are_told_at_once():
    text = """
    nmae: x
    defaults: {queue: [a], user: ann}
    jobs:
    - {shape: core, runtme: 5, urgency: 40}
    """
    assert faults(read_jobs_yaml, text) == [
        "jobs.yaml: unknown key 'nmae'; did you mean name?",
        "jobs.yaml: defaults.queue: ['a'] is not a text",
    ]
    text = """
    defaults: {shape: cor e, runtime: 1}
    jobs:
    - {runtme: 5, urgency: 40}
    - {}
    - {}
    - {parts: [{shape: core, cuont: 2}, {shape: g pu}, 3]}
    - {parts: [{shape: c ore}, {shape: core, file: x}]}
    - {shape: core, id: a}
    - {shape: core, id: a, depends: [b, 3]}
    """
    assert [one.split("jobs.yaml: ")[1] for one in faults(read_jobs_yaml, text)] == [
        "jobs[0]: unknown key 'runtme'; did you mean runtime?",
        "jobs[0].urgency: 40 is out of range",
        "defaults.shape: unexpected 'e'",  # once
        "jobs[3].parts[0]: unknown key 'cuont'",
        "jobs[3].parts[2]: 3 is not a table",
        "jobs[4].parts[0].shape: unexpected 'o'",
        "jobs[4].parts[1]: found shape and file",
        "jobs[6].depends[0]: 'b' is not a dependency",
        "jobs[6].depends[1]: 3 is not a dependency",
    ]


def test_faults_of_many_lines_are_told_up_to_twenty():
    line = json.dumps({"shape": "core", "runtime": -1})
    assert len(faults(read_jsonl, [line] * 100)) == 20
    assert len(faults(read_jobs_yaml, f"[{', '.join([line] * 100)}]")) == 20


def test_json_lines_name_the_line():
    with pytest.raises(WorkloadError, match=r"jobs.jsonl:3: unknown key"):
        read_jsonl(['{"shape": "slot=1/core", "runtime": 1}', "", '{"nope": 1}'])
    with pytest.raises(FormatError, match=r"jobs.jsonl:3:11: not JSON"):
        read_jsonl(["", "", '{"shape": '])


def test_files_beside_the_document(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(Jobspec.from_shape("slot=3/core", duration=60).to_dict()))
    (tmp_path / "jobs.yaml").write_text("- {file: one.json}\n")
    (job,) = load_workload(tmp_path / "jobs.yaml").jobs
    assert (job.jobspec.to_shape(), job.duration) == ("slot=3/core", 60)
    (tmp_path / "jobs.yaml").write_text("- {file: two.json}\n")
    with pytest.raises(SimschedError, match=r"jobs\[0\].file: .*two.json"):
        load_workload(tmp_path / "jobs.yaml")


def test_an_empty_document_is_an_empty_workload():
    for text in ("", "[]", "jobs: []", "# nothing", "\n  # nothing\n\n # at all"):
        assert read_jobs_yaml(text).jobs == ()


def test_blank_lines_and_comments_before_the_jobs():
    (job,) = read_jobs_yaml("\n" * 1000 + "  \n" * 1000 + "# # #\n" * 1000 + "- {shape: core, runtime: 5}")
    assert job.runtime == 5
    for end in ("\r", "\r\n", "\u2028"):  # lines end where YAML ends them
        assert len(read_jobs_yaml(f"# two jobs{end}- {{shape: core, runtime: 5, count: 2}}{end}")) == 2


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("- shape: x", "jobs"),
        ("jobs: []", "jobs"),
        ("", "jobs"),
        ('[{"shape": "x"}]', "jobs"),
        ('{"name": "x", "jobs": []}', "jobs"),
        ('{"jobs": 3, "parts": [{"shape": "core", "runtime": "1m"}]}', "model"),
        ('{"parts": [], "jobs": [{"shape": "core"}]}', "jobs"),
        ('{"shape": "x", "runtime": 1}\n{"shape": "y"}', "jsonl"),
        ('{"jobspec": {}, "runtime": 1}', "jsonl"),
        ("; Version: 2.2\n", "swf"),
        ("1 2 3 4 5 6 7 8 9 -1 11 12 13 14 15 16 17 18\n", "swf"),
    ],
)
def test_detection(head, kind):
    assert detect(head) == kind


# ------------------------------------------------------------ the way back

seconds = st.integers(0, 10**7) | st.floats(0, 1e7, allow_nan=False)
texts = st.none() | st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8)
requests = st.sampled_from(
    [
        Jobspec.from_shape("slot=2/core"),
        Jobspec.from_shape("node=2{x}"),
        Jobspec.from_shape("slot=1-8/[core=2;gpu]", constraint="fast and not old"),
        Jobspec.from_shape("slot=1/core", command=["a", "b c"], name="n"),
    ]
)
drafts = st.lists(
    st.builds(
        dict,
        jobspec=requests,
        submit=seconds,
        runtime=seconds,
        duration=st.none() | seconds,
        user=texts,
        group=texts,
        queue=texts,
        bank=texts,
        name=st.text("abc", min_size=1, max_size=3),
        partition=texts,
        status=texts,
        urgency=st.integers(0, 31),
        hold=st.booleans(),
        cancel_at=st.none() | seconds,
        think_time=st.none() | seconds,
        procs=st.none() | st.integers(1, 10**6),
        nodes=st.none() | st.integers(1, 10**6),
        memory=st.none() | st.integers(1, 10**6),
        wait=st.none() | seconds,
        begin=st.booleans(),
    ),
    max_size=6,
)


def workload_of(drafts):
    jobs = []
    for number, draft in enumerate(drafts, 1):
        begin = draft.pop("begin")
        known = {"id": number if number % 3 else f"job-{number}", **draft}
        waits = [Dependency("begin-time", "77")] if begin else []
        if jobs and begin:
            waits.append(Dependency("afterok", str(jobs[-1].id)))
        jobs.append(Job(dependencies=tuple(waits), **known))
    return assemble(jobs, Skips(), source="s", name="w", kind="jobs")


@settings(max_examples=40)
@given(drafts)
def test_both_forms_are_read_back_as_they_were(drafts):
    """read(write(w)) = w: nothing of a job is lost in jobs.yaml or JSON Lines."""
    workload = workload_of(drafts)
    from_yaml = read_jobs_yaml("\n".join(write_jobs_yaml(workload)))
    assert from_yaml.jobs == workload.jobs
    assert from_yaml.name == "w"
    from_lines = read_jsonl(write_jsonl(workload), ReadOptions(source="x"))
    assert from_lines.jobs == workload.jobs


def test_first_steps_is_what_its_comments_say():
    workload = load_workload("first-steps")
    by_name = {job.name: job for job in workload}
    assert len(workload) == 18
    assert sum(job.name == "ensemble" for job in workload) == 10
    assert str(by_name["evaluate"].dependencies[0]) == f"afterok:{by_name['train'].id}"
    assert (by_name["late"].duration, by_name["late"].runtime) == (600, 3600)
    assert str(by_name["train"].jobspec.constraint) == "batch"
    assert by_name["elastic"].jobspec.to_shape() == "slot/core=2-4"
    assert inf not in [job.duration for job in workload]


@pytest.mark.parametrize("key", ["submit", "runtime", "duration"])
def test_times_that_a_clock_cannot_tell_apart_are_refused(key):
    with pytest.raises(FormatError, match=rf"jobs\[0\]\.{key}: 1e\+300 s is too late"):
        read_jobs_yaml(json.dumps([{"shape": "core", "runtime": 1, key: 1e300}]))


@pytest.mark.parametrize(
    "text", ["[{shape: slot=1/core, runtime: 5}]", '{"jobs": [{"shape": "slot=1/core", "runtime": 5}]}']
)
def test_flow_yaml_and_json_are_the_same_list(text):
    (job,) = read_jobs_yaml(text).jobs
    assert (job.jobspec.to_shape(), job.runtime) == ("slot/core", 5)


def test_a_large_list_in_json_is_not_read_as_yaml(monkeypatch):
    monkeypatch.setattr("simsched.formats.text.documents.load_yaml", lambda *_: pytest.fail("read as YAML"))
    assert len(read_jobs_yaml(json.dumps([{"shape": "slot=1/core", "runtime": 5}] * 3))) == 3


def test_a_task_of_an_array_by_the_name_of_the_array(tmp_path):
    text = (
        "- {id: 7, name: sim, submit: 0, shape: slot=1/core, runtime: 5, array: 0-3}\n"
        "- {id: 8, submit: 0, shape: slot=1/core, runtime: 5, depends: 'afterok:%s'}\n"
    )
    for name in ("sim_2", "7_2", "sim_4"):
        (tmp_path / f"{name}.yaml").write_text(text % name)
    for name in ("sim_2", "7_2"):
        found = load_workload(tmp_path / f"{name}.yaml")
        assert [str(item) for item in found.jobs[-1].dependencies] == ["afterok:7_2"]
    with pytest.raises(WorkloadError, match="depends on 'sim_4', which is not a"):
        load_workload(tmp_path / "sim_4.yaml")


SPEC = Jobspec.from_shape("slot=2/[core=2;gpu]", duration=60, queue="batch", constraint="ssd").to_dict()
CHANGES = [
    ("attributes", "system", "resource-parts", 3),
    ("attributes", "system", "resource-parts", [{"resources": 2}]),
    ("attributes", "system", "constraints", {"nor": []}),
    ("attributes", "system", "dependencies", [{"scheme": 1}]),
    ("attributes", "system", "duration", -1),
    ("attributes", "system", "environment", {"A": 1}),
    ("attributes", "system", "cwd", None),
    ("attributes", "system", "anything", {"else": [1, None]}),
    ("attributes", "user", {"deep": {"er": 1}}),
    ("attributes", None),
    ("resources", 0, "count", 0),
    ("resources", 0, "count", "2-9:3"),
    ("resources", 0, "count", {"min": 2, "max": 1}),
    ("resources", 0, "label", None),
    ("resources", 0, "with", []),
    ("resources", 0, "with", 0, "with", []),
    ("resources", 0, "with", 0, "count", True),
    ("resources", 0, "with", 0, "colour", 1),
    ("tasks", 0, "slot", "other"),
    ("tasks", 0, "count", {"per_slot": 1, "total": 2}),
    ("tasks", 0, "count", {"per_resource": {"type": "node", "count": 1}}),
    ("tasks", 0, "command", "app"),
    ("version", 2.0),
    ("version", 7),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_jobspec_in_json_lines_is_judged_as_in_a_document(change):
    spec = json.loads(json.dumps(SPEC))
    *way, key, value = change
    inside = spec
    for step in way:
        inside = inside[step]
    inside[key] = value

    def outcome(read, text, place):
        try:
            (job,) = read(text, ReadOptions(source="f")).jobs
        except SimschedError as error:
            return str(error).replace(place, "f:", 1)
        return job

    entry = json.dumps({"runtime": 5, "jobspec": spec})
    assert outcome(read_jsonl, [entry], "f:1") == outcome(read_jobs_yaml, f"[{entry}]", "f: jobs[0]")


VALUES = (
    *("null", "true", "0", "-1", "7", "2.0", "2.5", "1e400", "9007199254740992", "32", '""', '"a"', '"30m"'),
    *('"inf"', "[]", "{}", '[{"shape": "core"}]', '{"a": 1, "a": 2}', '"\\ud800"', '"slot=1/core"', "NaN"),
    *(
        '{"interval": "1h"}',
        '"fast and not old"',
        '"afterok:x"',
        '"0-3%2"',
        '"x_4%2"',
        '"caf\\u00e9 \\u0022:"',
    ),
)


def read_line(line):
    """The jobs of a line, or the class and the parts of its error."""
    try:
        return read_jsonl([line]).jobs
    except SimschedError as error:
        return type(error), error.message, error.expected


@pytest.mark.parametrize("key", sorted(fields_of(JobEntry)))
@pytest.mark.parametrize("request_", ["shape", "jobspec", "none"])
def test_a_line_of_json_is_read_as_the_same_entry_in_detail(key, request_):
    requests = {
        "shape": {"shape": "slot=1/core"},
        "jobspec": {"jobspec": Jobspec.from_shape("core").to_dict()},
    }
    for value in VALUES:
        known = {
            "runtime": "5",
            **{name: json.dumps(one) for name, one in requests.get(request_, {}).items()},
        }
        known[key] = value
        line = "{" + ", ".join(f'"{name}": {text}' for name, text in known.items()) + "}"
        in_detail = line.replace('":', '" :')  # which the fast reader does not take
        assert read_line(line) == read_line(in_detail), line


@pytest.mark.parametrize("extra", ['"user": "b"', '"runtime": 6', '"jobspec": {}', '"id": 1', '"user" : "b"'])
def test_a_key_that_occurs_twice_is_refused_beside_a_known_request(extra):
    spec = json.dumps(Jobspec.from_shape("slot=1/core").to_dict())
    plain = f'"id": 1, "runtime": 5, "user": "a", "jobspec": {spec}'
    again = plain.replace('"id": 1', '"id": 2')
    with pytest.raises(FormatError, match=r"f:2:\d+: key '\w+' occurs twice in one object"):
        read_jsonl([f"{{{plain}}}", f"{{{again}, {extra}}}"], ReadOptions(source="f"))


def test_the_schema_accepts_what_the_reader_accepts():
    schema = jobs_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    documents = [
        {
            "name": "x",
            "defaults": {"user": "a", "duration": "1h"},
            "jobs": [{"shape": "core", "depends": []}],
        },
        [{"jobspec": {}, "id": 1, "submit": 2.5, "count": 3, "licenses": {"matlab": 1}, "user": None}],
        None,
    ]
    for document in documents:
        jsonschema.validate(document, schema)
    for entry in (
        {"shap": "core"},
        {"count": -1},
        {"urgency": 32},
        {"id": []},
        {"hold": "yes"},
        {"user": [1]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([entry], schema)
