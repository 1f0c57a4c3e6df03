"""Tasks: what decides their key, what is kept of inputs in a process, edits of clusters as text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError, RunError, SimschedError
from simsched.study.runs.input_cache import InputCache, LruCache
from simsched.study.runs.single_run import RunRow, options_of, perform, same_task
from simsched.study.spec.edits import apply_edits, edit_recipe, parsed_edit
from simsched.study.spec.run_task import MODEL, Measure, RunTask, TaskInput, canonical_json
from tests.study.studyworld import RECIPE, small

NAMES = st.text("abc-", min_size=1, max_size=6)
OPTIONS = st.dictionaries(st.sampled_from(["order", "queue-policy"]), NAMES, max_size=2)


def source(text="content", name="name", **more):
    return TaskInput.of_text(text, name, **more)


@st.composite
def tasks(draw):
    return RunTask(
        source(draw(NAMES)),
        source(draw(NAMES), kind=draw(st.sampled_from(["text", MODEL]))),
        edits=tuple(draw(st.lists(NAMES, max_size=2))),
        transforms=tuple(draw(st.lists(NAMES, max_size=2))),
        options=draw(OPTIONS),
        seed=draw(st.integers(0, 9)),
        measure=Measure(draw(st.floats(0, 9)), 0.0, by_queue=draw(st.booleans())),
        keep=tuple(draw(st.lists(st.sampled_from(["jobs", "eventlog"]), max_size=2, unique=True))),
        settings=draw(st.dictionaries(NAMES, st.integers() | NAMES, max_size=2)),
    )


@given(tasks())
def test_a_task_survives_being_sent(task):
    """from_bytes(to_bytes(task)) is the task, under the same key."""
    again = RunTask.from_bytes(task.to_bytes())
    assert again == task
    assert again.key == task.key


@given(tasks(), tasks())
def test_the_key_is_the_digest_of_what_decides_the_result(one, other):
    """key(a) == key(b) if and only if identity(a) == identity(b)."""
    assert (one.key == other.key) == (canonical_json(one.identity()) == canonical_json(other.identity()))


@given(tasks(), NAMES)
def test_names_places_and_labels_do_not_decide(task, name):
    """A renamed input, another path, other labels, other things kept: the same run."""
    moved = TaskInput(task.cluster.kind, name, task.cluster.sha256, "/elsewhere/" + name, task.cluster.text)
    assert task.changed(cluster=moved, settings={"axis": name}, keep=()).key == task.key


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"edits": ("resize(all, 2)",)},
        {"transforms": ("first(3)",)},
        {"options": {"order": "sjf"}},
        {"measure": Measure(warm_up=1.0)},
        {"cluster": source("another")},
        {"workload": source("content", reading={"limit": 3})},
        {"workload": source("content", kind=MODEL)},
    ],
)
def test_whatever_has_a_say_changes_the_key(change):
    task = RunTask(source(), source())
    assert task.changed(**change).key != task.key


def test_the_key_of_a_known_task():
    """Keys outlive versions of Python and the order in which options are written."""
    task = RunTask(source(), source(), options={"order": "sjf", "passes": "event"})
    assert task.key == RunTask(source(), source(), options={"passes": "event", "order": "sjf"}).key
    assert task.key == "fc6386446c599f965457"


def test_what_is_no_json_is_refused():
    with pytest.raises(ConfigError, match="not plain JSON data"):
        RunTask(source(), source(), options={"order": float("nan")}).key  # noqa: B018 - the key is made


@given(st.dictionaries(NAMES, st.floats(allow_nan=True, allow_infinity=False), max_size=4))
def test_a_row_is_the_same_after_a_round_trip(figures):
    """Twelve digits are kept, and once they are, the bytes do not change again."""
    first = RunRow("k", figures, {"batch": figures}, {"jobs": 1}, 3)
    second = RunRow.from_bytes(first.to_bytes())
    assert second.to_bytes() == first.to_bytes()
    assert second.seed == 3
    assert {n for n, v in second.metrics.items() if v != v} == {n for n, v in figures.items() if v != v}


# --- performing


def test_a_run_is_the_same_however_often_and_in_whatever_order():
    """The cache is no part of the result: forward, backward, and with nothing kept."""
    from simsched.study.runs.input_cache import INPUTS

    every = small().tasks
    there = [perform(task).to_bytes() for task in every]
    back = [perform(task).to_bytes() for task in reversed(every)]
    fresh = []
    for task in every:
        INPUTS.forget()
        fresh.append(perform(task).to_bytes())
    assert there == back[::-1] == fresh
    assert len(set(there)) > len(there) // 2


def test_a_run_directory_says_which_task_it_is_of(tmp_path):
    task = small().tasks[0].changed(keep=("jobs", "allocations", "eventlog"))
    row = perform(task, tmp_path)
    place = tmp_path / task.key
    assert {"jobs.parquet", "timeline.parquet", "allocations.jsonl", "eventlog.jsonl"} <= {
        file.name for file in place.iterdir()
    }
    assert same_task(task, (place / "task.json").read_bytes())
    assert not same_task(task.changed(seed=9), (place / "task.json").read_bytes())
    assert (place / "row.json").read_bytes() == row.to_bytes()
    inputs = json.loads((place / "run.json").read_text())["inputs"]
    assert [(i["role"], i["sha256"]) for i in inputs] == [
        ("cluster", task.cluster.sha256),
        ("workload", task.workload.sha256),
    ]


def test_figures_alone_leave_no_tables(tmp_path):
    task = small().tasks[0].changed(keep=())
    perform(task, tmp_path)
    assert sorted(p.name for p in (tmp_path / task.key).iterdir()) == [
        "row.json",
        "run.json",
        "summary.json",
        "task.json",
    ]


def test_a_run_is_measured_without_its_warm_up():
    """Figures of a window are those that `Run.steady` gives."""
    import simsched as ss

    task = small().tasks[0]
    window = Measure(warm_up=3600.0, drain=1800.0)
    row = perform(task.changed(measure=window))
    from simsched.study.runs.input_cache import INPUTS

    run = ss.simulate(INPUTS.cluster(task.cluster), INPUTS.workload(task), **_simulated(task))
    assert row.metrics["mean_wait"] == pytest.approx(run.steady(3600, 1800).summary["mean_wait"])
    assert row.metrics["jobs"] < perform(task).metrics["jobs"]


def _simulated(task):
    return {**options_of(task), "allocations": False}


def test_queues_have_figures_of_their_own():
    jobs = [
        {"shape": "slot=1/core", "runtime": 10, "queue": queue, "submit": second}
        for second, queue in enumerate(["a", "b", "a"])
    ]
    queues = {"a": {}, "b": {}}
    study = small(workload={"jobs": jobs}, axes=None, seeds=None, config={"queues": queues},
                  measure={"by-queue": True})  # fmt: skip
    row = perform(study.tasks[0])
    assert {queue: figures["jobs"] for queue, figures in row.queues.items()} == {"a": 2, "b": 1}


# --- inputs


def test_the_shelf_lets_the_least_recently_used_go():
    shelf: LruCache[str] = LruCache(6, len)
    for word in ("aaa", "bbb", "aaa", "ccc"):
        shelf.get(word, lambda word=word: word)
    made = []
    for word in ("aaa", "ccc", "bbb"):
        shelf.get(word, lambda word=word: made.append(word) or word)
    assert made == ["bbb"]
    assert len(shelf) == 2


def test_one_thing_that_is_too_large_is_still_kept():
    shelf: LruCache[str] = LruCache(2, len)
    assert shelf.get("x", lambda: "large") == "large"
    assert shelf.get("x", lambda: "never") == "large"


def test_an_input_that_has_changed_is_refused(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(canonical_json(RECIPE).decode())
    found = TaskInput.find("clusters", str(file))
    assert len(InputCache().cluster(found).index) == 4
    file.write_text(canonical_json({**RECIPE, "name": "other"}).decode())
    with pytest.raises(RunError, match=r"small.yaml: the input has changed"):
        InputCache().cluster(found)
    file.unlink()
    with pytest.raises(RunError, match="is not on this machine"):
        InputCache().cluster(found)


@pytest.mark.parametrize("sent", [False, True])
def test_a_faulty_input_is_named_as_the_user_named_it(tmp_path, monkeypatch, sent):
    """Not by the place where a worker reads it, which may be a temporary copy."""
    from simsched.study.runs.workers import contents_of

    monkeypatch.chdir(tmp_path)
    Path("wrong.swf").write_text("no log\n")
    Path("wrong.yaml").write_text("groups: 3\n")
    inputs = InputCache()
    for room, name in (("workloads", "wrong.swf"), ("clusters", "wrong.yaml")):
        found = TaskInput.find(room, name)
        if sent:
            inputs.send(contents_of([found]))
            Path(name).unlink()
        read = inputs.cluster if room == "clusters" else lambda it: inputs.workload(RunTask(it, it))
        with pytest.raises(SimschedError) as caught:
            read(found)
        assert caught.value.where.startswith(name)
        assert str(tmp_path) not in str(caught.value)


def test_an_input_that_was_sent_needs_no_file_here(tmp_path):
    """What a list of jobs names is sent along, and found in the same place beside it."""
    folder = tmp_path / "here"
    (folder / "specs").mkdir(parents=True)
    shutil.copy("workloads/jobspecs/one-core.json", folder / "specs")
    (folder / "jobs.yaml").write_text("- {file: specs/one-core.json, runtime: 5}\n")
    found = TaskInput.find("workloads", str(folder / "jobs.yaml"))
    assert list(found.parts) == ["specs/one-core.json"]
    from simsched.study.runs.workers import contents_of

    contents = contents_of([found])
    shutil.rmtree(folder)
    task = RunTask(source(canonical_json(RECIPE).decode(), "small"), found)
    inputs = InputCache()
    inputs.send(contents)
    inputs.send(contents)
    assert len(inputs.workload(task)) == 1
    inputs.drop(contents)
    inputs.forget()
    assert len(inputs.workload(task)) == 1  # its other user still has it
    inputs.drop(contents)
    inputs.forget()
    with pytest.raises(RunError, match="is not on this machine"):
        inputs.workload(task)


def test_a_changed_part_is_another_task(tmp_path):
    (tmp_path / "one.json").write_text("{}")
    (tmp_path / "jobs.jsonl").write_text('{"file": "one.json", "runtime": 5}\n')
    first = TaskInput.find("workloads", str(tmp_path / "jobs.jsonl"))
    (tmp_path / "one.json").write_text("[]")
    second = TaskInput.find("workloads", str(tmp_path / "jobs.jsonl"))
    assert first.sha256 == second.sha256
    assert first.identity() != second.identity()


@pytest.mark.parametrize("name", ["../outside.json", "/etc/hostname", "nowhere.json"])
def test_parts_stay_below_their_folder(tmp_path, name):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "outside.json").write_text("{}")
    (tmp_path / "jobs" / "jobs.yaml").write_text(f"- {{file: {name}, runtime: 5}}\n")
    assert TaskInput.find("workloads", str(tmp_path / "jobs" / "jobs.yaml")).parts == {}


def test_a_model_is_drawn_with_the_seed_of_the_task_alone():
    study = small(axes={"queue-policy": ["fcfs", "easy"]}, seeds=[3, 4])
    inputs = InputCache()
    drawn = [inputs.workload(task) for task in study.tasks]
    assert drawn[0] is drawn[2]
    assert drawn[1] is drawn[3]
    assert drawn[0].jobs != drawn[1].jobs


def test_a_trace_is_read_once_for_all_seeds():
    study = small(workload={"file": "first-steps", "transforms": ["first(5)"]}, axes=None, seeds=3)
    inputs = InputCache()
    assert len({id(inputs.workload(task)) for task in study.tasks}) == 1
    for step in ("thin(0.5)", "estimates(uniform, 2)"):
        drawn = small(workload={"file": "first-steps", "transforms": [step]}, axes=None, seeds=3)
        assert len({id(inputs.workload(task)) for task in drawn.tasks}) == 3


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ({"lublin": {"jobs": 3}}, "the key 'machine' is missing"),
        ({"lublin": {"machine": 4, "job": 3}}, "workload.lublin.job: unknown key 'job'; did you mean jobs?"),
        ({"lublin": {"machine": 4}}, "neither a number of jobs nor a span"),
        ({"mix": {"parts": []}}, "the mix has no parts"),
    ],
)
def test_a_model_that_is_none(model, fault):
    with pytest.raises(ConfigError, match=fault):
        perform(small(workload=model, axes=None, seeds=None).tasks[0])


# --- edits


def cluster(recipe=RECIPE):
    return InputCache().cluster(source(canonical_json(recipe).decode(), "small"))


@pytest.mark.parametrize(
    ("edit", "hosts"),
    [
        ("resize(all, 6)", ["n0", "n1", "n2", "n3", "n4", "n5"]),
        ("resize(n[0-3], 2)", ["n0", "n1"]),
        ("remove(n[1,3])", ["n0", "n2"]),
        ("restrict(ranks:1-2)", ["n1", "n2"]),
        ("restrict(not ranks:1-2)", ["n0", "n3"]),
        ("add(x[7-8], n0)", ["n0", "n1", "n2", "n3", "x7", "x8"]),
        ("set(groups[0].count, 3)", ["n0", "n1", "n2"]),
    ],
)
def test_edits(edit, hosts):
    text = canonical_json(RECIPE).decode()
    assert list(InputCache().cluster(source(text, "small"), (edit,)).index.hosts) == hosts


def test_edits_of_state_and_properties():
    edited = apply_edits(cluster(), ["property(n[0-1], big)", "status(properties:big, drained)"])
    assert set(edited.index.property_rows) == {"big"}
    again = apply_edits(edited, ["property(all, -big)"])
    assert set(again.index.property_rows) == set()


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("grow(all, 2)", "unknown edit 'grow\\(all, 2\\)'"),
        ("resize all", "unknown edit"),
        ("resize(all)", "resize has 1 argument \\(expected 2\\)"),
        ("resize(all, x)", "'x' is not a number of targets"),
        ("resize(m7, 2)", "no execution target is called 'm7'"),
        ("status(all, broken)", "unknown status 'broken'"),
        ("remove(all)", "the cluster is empty"),
    ],
)
def test_edits_that_are_none_say_which(edit, fault):
    with pytest.raises(SimschedError, match=fault) as caught:
        apply_edits(cluster(), [edit])
    assert edit in str(caught.value)


@pytest.mark.parametrize("edit", ["set(groups[3].count, 1)", "set(groups.x, 1)", "set(a.b, 1)"])
def test_a_recipe_without_such_a_place(edit):
    with pytest.raises(ConfigError, match="the recipe has no"):
        edit_recipe(RECIPE, [edit])


def test_only_recipes_have_values():
    with pytest.raises(ConfigError, match="only the values of a recipe can be set"):
        InputCache().cluster(TaskInput.find("clusters", "flat240"), ("set(groups[0].count, 3)",))


@settings(max_examples=50)
@given(st.lists(st.text("ab[],() ", max_size=8), min_size=2, max_size=2))
def test_taking_edits_apart_never_fails_otherwise(arguments):
    try:
        name, found = parsed_edit(f"resize({', '.join(arguments)})")
    except ConfigError:
        return
    assert (name, len(found)) == ("resize", 2)
