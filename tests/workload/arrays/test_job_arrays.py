"""Job arrays in workloads: their notation, jobs.yaml, logs, tables, and transforms."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.workload.dependencies import slurm_dependencies
from simsched.workload.job import ArrayTask, limit_of_line, parse_tasks
from simsched.workload.save import save_workload
from simsched.workload.transforms.transforms import merge


def load(tmp_path, text, name="jobs.yaml", **options):
    path = tmp_path / name
    path.write_text(text)
    return ss.load_workload(path, **options)


@pytest.mark.parametrize(
    ("text", "indices", "limit"),
    [
        ("0-3", [0, 1, 2, 3], None),
        ("1,3,5-7%2", [1, 3, 5, 6, 7], 2),
        ("0-15:4", [0, 4, 8, 12], None),
        ("7", [7], None),
        (7, [7], None),
        ("9,1-2%100", [1, 2, 9], 100),
    ],
)
def test_the_notation_of_slurm(text, indices, limit):
    assert parse_tasks(text) == (indices, limit)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "'' is not a range of tasks"),
        ("a-b", "'a-b' is not a range"),
        ("3-1", "the range 3-1 of tasks is empty"),
        ("0-9:0", "the range 0-9:0 of tasks is empty"),
        ("0-9%0", "'0' is not a limit of tasks at a time"),
        ("0-9%x", "'x' is not a limit"),
        ("1,1", "is given twice"),
        ("0-3999999", "more than 1,000,000 tasks"),
        ("4000000", "there is no task 4,000,000"),
        (True, "True is not the tasks"),
        (1.5, "1.5 is not the tasks"),
    ],
)
def test_bad_notation_is_an_error_with_its_place(text, fault):
    with pytest.raises(ss.WorkloadError, match=fault) as caught:
        parse_tasks(text, "jobs[0].array")
    assert "jobs[0].array" in str(caught.value)


@pytest.mark.parametrize("text", ["12", "12_", "_4", "12_x", "12_4%0", "12_4000000", "12_[4-9%2]"])
def test_a_text_that_is_not_a_task(text):
    with pytest.raises(ss.WorkloadError, match="is not a task of a job array"):
        ArrayTask.parse(text)


def test_the_limit_in_a_command_line():
    assert limit_of_line("sbatch -N2 --array 1,3,9-12%4 x.sh -a 1-2%9") == 4
    assert limit_of_line("sbatch --array='0-9%3' x.sh") == 3
    assert limit_of_line("sbatch my--array=0-9%3") is None


YAML = """
- {id: prep, shape: slot=1/core, runtime: 10, array: 0-3%2}
- {id: main, shape: slot=1/core, runtime: 10, array: "0-3", depends: "aftercorr:prep"}
- {id: last, shape: slot=1/core, runtime: 10, depends: ["afterok:main", "after:prep_3?delay=5m"]}
"""


def test_jobs_yaml_has_arrays_and_what_depends_on_them(tmp_path):
    found = load(tmp_path, YAML)
    assert [job.id for job in found] == [f"{name}_{n}" for name in ("prep", "main") for n in range(4)] + [
        "last"
    ]
    assert found.jobs[2].array_task == ArrayTask("prep", 2, 2)
    assert [str(item) for item in found.jobs[6].dependencies] == ["afterok:prep_2"]
    assert [str(item) for item in found.jobs[8].dependencies] == ["afterok:main", "after:prep_3?delay=5m"]
    run = ss.simulate(ss.load_cluster("tiny"), found)
    starts = dict(zip(run.jobs["id"], run.jobs["start"], strict=True))
    assert starts == {
        "prep_0": 0, "prep_1": 0, "prep_2": 10, "prep_3": 10,
        "main_0": 10, "main_1": 10, "main_2": 20, "main_3": 20, "last": 310,
    }  # fmt: skip


def test_arrays_survive_writing_and_reading(tmp_path):
    found = load(tmp_path, YAML)
    for name in ("copy.yaml", "copy.jsonl"):
        save_workload(found, tmp_path / name)
        assert ss.load_workload(tmp_path / name).jobs == found.jobs


def test_a_jobspec_may_be_an_array(tmp_path):
    spec = ss.Jobspec.from_shape("slot=1/core", duration=60).with_system(array="0-1%1")
    found = load(tmp_path, json.dumps([{"jobspec": spec.to_dict(), "id": "x"}]), "jobs.json")
    assert [str(job.array_task) for job in found] == ["x_0%1", "x_1%1"]


def test_names_of_arrays(tmp_path):
    text = """
- {name: prep, shape: slot=1/core, runtime: 1, array: 0-1}
- {shape: slot=1/core, runtime: 1, array: 0-1, depends: "aftercorr:prep"}
- {shape: slot=1/core, runtime: 1, depends: "afterany:prep"}
"""
    found = load(tmp_path, text)
    assert [[str(item) for item in job.dependencies] for job in found] == [
        [], [], ["afterok:1_0"], ["afterok:1_1"], ["afterany:1"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("{array: 0-1, depends: 'aftercorr:b'}", "array 'b' has no task 0"),
        ("{depends: 'aftercorr:b'}", "is not a task of a job array"),
        ("{array: 0-1, depends: 'aftercorr:c'}", "does not name a job array"),
        ("{depends: 'afterok:b_9'}", "depends on 'b_9', which is not a task of this workload"),
        ("{depends: 'afterok:nobody'}", "which is not a job of this workload"),
        ("{id: z, array: 0-1, depends: 'afterok:z'}", "depends on its own array"),
        ("{array: 0-1, array_task: z_1}", "found array and array_task"),
        ("{array_task: z}", "is not a task of a job array"),
        ("{array: 5-1}", "the range 5-1 of tasks is empty"),
        ("{depends: 'afterok:b?delay=5'}", "afterok has no delay"),
        ("{depends: 'after:b?delay=soon'}", "'soon' is not a time"),
        ("{id: b_1}", "job id 'b_1' occurs twice"),
    ],
)
def test_bad_arrays_in_jobs_yaml(tmp_path, entry, fault):
    first = "{shape: slot=1/core, runtime: 1, "
    text = f"- {first}id: b, array: '1'}}\n- {first}id: c}}\n- {first}{entry[1:]}\n"
    with pytest.raises(ss.SimschedError, match=fault):
        load(tmp_path, text)


def test_arrays_that_wait_for_each_other(tmp_path):
    text = """
- {id: a, shape: slot=1/core, runtime: 1, array: 0-1, depends: "afterok:b_1"}
- {id: b, shape: slot=1/core, runtime: 1, array: 0-1, depends: "afterok:a"}
"""
    with pytest.raises(ss.WorkloadError, match="jobs depend on each other"):
        load(tmp_path, text)


SACCT = """JobID|JobIDRaw|Submit|Start|End|ElapsedRaw|ReqCPUS|State|SubmitLine
100_0|101|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:01:00|60|1|COMPLETED|sbatch --array=0-2%2 a.sh
100_1|102|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:01:00|60|1|COMPLETED|sbatch --array=0-2%2 a.sh
100_2|100|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T00:02:00|60|1|COMPLETED|sbatch --array=0-2%2 a.sh
200_0|201|2024-01-01T00:00:10|2024-01-01T00:00:10|2024-01-01T00:01:00|50|1|COMPLETED|
200_[1-9%4]|200|2024-01-01T00:00:10|Unknown|Unknown|0|1|PENDING|
300|300|2024-01-01T00:00:20|2024-01-01T00:00:20|2024-01-01T00:01:00|40|1|COMPLETED|sbatch a.sh | tee
"""


def test_sacct_names_tasks_and_their_limits(tmp_path):
    found = load(tmp_path, SACCT, "log.txt")
    tasks = {job.id: None if job.array_task is None else str(job.array_task) for job in found}
    assert tasks == {101: "100_0%2", 102: "100_1%2", 100: "100_2%2", 201: "200_0%4", 300: None}
    assert any(note.startswith("job arrays: 2 with 4 tasks") for note in found.notes)


def test_json_of_slurm_names_tasks(tmp_path):
    job = {
        "job_id": 101, "time": {"submission": 100, "start": 100, "elapsed": 10},
        "state": {"current": ["COMPLETED"]}, "required": {"CPUs": 1},
        "array": {"job_id": 99, "limits": {"max": {"running": {"tasks": 3}}},
                  "task_id": {"set": True, "infinite": False, "number": 7}, "task": ""},
    }  # fmt: skip
    other = job | {"job_id": 102, "array": {"job_id": 0, "task_id": {"set": False, "number": 0}}}
    found = load(tmp_path, json.dumps({"jobs": [job, other], "meta": {}}), "sacct.json")
    assert [job.array_task for job in found] == [ArrayTask("99", 7, 3), None]


TABLE = """id,submit,start,seconds,cores,task,after
1,0,0,10,1,a_0%2,
2,0,0,10,1,a_1%2,
3,0,10,10,1,b_0,aftercorr:a
4,0,10,10,1,,afterok:1:2
5,0,0,10,1,odd,afternotok:77
6,0,0,10,1,,whatever
"""
MAP = {
    "columns": {
        "id": "id", "submit": {"column": "submit", "format": "epoch"},
        "start": {"column": "start", "format": "epoch"},
        "runtime": "seconds", "cores": "cores", "array_task": "task", "depends": "after",
    }
}  # fmt: skip


def test_tables_have_columns_of_tasks_and_dependencies(tmp_path):
    found = load(tmp_path, TABLE, "t.csv", columns=MAP)
    assert [str(job.array_task or "") for job in found] == ["a_0%2", "a_1%2", "b_0", "", "", ""]
    assert [[str(item) for item in job.dependencies] for job in found] == [
        [], [], ["aftercorr:a"], ["afterok:1", "afterok:2"], [], [],
    ]  # fmt: skip
    assert "array_task: 1 texts were not understood: 'odd'" in found.notes
    assert "depends: 1 texts were not understood: 'whatever'" in found.notes
    assert "dependencies on jobs that are not in the table: 1, left out" in found.notes


def test_the_notation_of_dependencies_in_slurm():
    found = slurm_dependencies("afterok:1:2_3(unfulfilled),aftercorr:4_*(unfulfilled),after:5+10:6,singleton")
    assert [str(item) for item in found] == [
        "afterok:1", "afterok:2_3", "aftercorr:4", "after:5?delay=600", "after:6", "singleton:name",
    ]  # fmt: skip
    assert slurm_dependencies("afterok:1?afterok:2") is None
    assert slurm_dependencies("afterok:x") is None


def test_merged_workloads_keep_their_arrays_apart(tmp_path):
    one = load(tmp_path, YAML)
    both = merge([one, one])
    arrays = {job.array_task.array for job in both if job.array_task is not None}
    assert arrays == {"prep", "main", "prep.2", "main.2"}
    run = ss.simulate(ss.load_cluster("tiny"), both)
    assert set(run.jobs["result"]) == {"COMPLETED"}
    last = {job.id: [str(item) for item in job.dependencies] for job in both if job.id in ("last", "last.2")}
    assert last["last.2"] == ["afterok:main.2", "after:prep_3.2?delay=5m"]
