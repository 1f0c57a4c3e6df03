"""Study files: what may be written, and where a fault is said to be."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.cli import main
from simsched.errors import SimschedError
from simsched.match.policies.policy import POLICIES
from simsched.simulation.options.run_config import KEYS as OPTION_KEYS
from simsched.simulation.options.run_config import from_document, make_config
from simsched.study.runs.sweep_plan import is_random, plan
from simsched.study.spec.study_file import load_study, study_from_dict
from tests.study.studyworld import RECIPE, SMALL, small

STORY = """\
name: policies and loads
cluster: flat240
workload: {file: month, transforms: [first(500)], map: "slot={procs}/core"}
config: {order: sjf, policy-options: {extra: false}}
axes:
  queue-policy: [easy]
  load: [0.8, 1.0]
  nodes: {edit: "resize(all, {})", values: [200, 240]}
exclude:
  - {load: ">= 1", nodes: 200}
seeds: [1, 2]
"""


def written(tmp_path, text, name="study.yaml"):
    file = tmp_path / name
    file.write_text(text)
    return file


def test_a_whole_file(tmp_path):
    text = (
        STORY.replace("  rules:\n    - plain: ignored\n", "").replace("no}", '"no"}').replace('"no"', "false")
    )
    study = load_study(written(tmp_path, text))
    assert study.name == "policies and loads"
    assert study.axis_names == ("queue-policy", "load", "nodes", "seed")
    assert [(t.settings["load"], t.settings["nodes"], t.seed) for t in study.tasks] == [
        (0.8, 200, 1), (0.8, 200, 2), (0.8, 240, 1), (0.8, 240, 2), (1.0, 240, 1), (1.0, 240, 2),
    ]  # fmt: skip
    last = study.tasks[-1]
    assert last.transforms == ("first(500)", "load(1.0)")
    assert last.edits == ("resize(all, 240)",)
    assert last.options == {"order": "sjf", "policy-options": {"extra": False}, "queue-policy": "easy"}
    assert dict(last.workload.reading) == {"map": "slot={procs}/core"}


def test_keys_of_a_log_may_be_spelt_with_either_line():
    log = {"file": "month", "procs_per_node": 4, "time_zone": "Europe/Rome"}
    study = study_from_dict({"cluster": "tiny", "workload": log})
    assert dict(study.base.workload.reading) == {"procs_per_node": 4, "time_zone": "Europe/Rome"}
    with pytest.raises(SimschedError, match="applies to files, not to the model lublin"):
        study_from_dict(
            {"cluster": "tiny", "workload": {"lublin": {"jobs": 5, "machine": 64}, "time_zone": "UTC"}}
        )


FAULTS = [
    ("queue-policy: [fcfs, esay]", "4:24: axes.queue-policy[1]: unknown queue policy 'esay'"),
    ("queue-polcy: [fcfs]", "4:3: axes.queue-polcy: unknown axis 'queue-polcy'"),
    ("queue-polcy: [fcfs]", "unknown axis 'queue-polcy'; did you mean queue-policy? (expected "),
    (
        "policy: [fcfs, easy]",
        "4:3: axes.policy: unknown axis 'policy'; did you mean queue-policy? (expected ",
    ),
    ("policy: [{label: a, value: easy}]", "axes.policy: unknown axis 'policy'; did you mean queue-policy?"),
    ("Scheduler: [fcfs, easy]", "4:3: axes.Scheduler: unknown axis 'Scheduler'; did you mean queue-policy?"),
    ("machine: [tiny]", "unknown axis 'machine'; did you mean cluster?"),
    ("trace: [month]", "unknown axis 'trace'; did you mean workload?"),
    ("matching: [low]", "unknown axis 'matching'; did you mean match-policy?"),
    ("nodes: [3, 4]", "unknown axis 'nodes'; did you mean nodes: {edit: \"resize(all, {})\", values: […]}?"),
    ("zzz: [3, 4]", "unknown axis 'zzz' (expected "),
    ("load: [0.8, x]", "4:15: axes.load[1]: load(x): 'x' is not a number"),
    ("load: []", "4:9: axes.load: the number of items is 0 (expected at least 1 item)"),
    ("load: 3", "4:9: axes.load: 3 is not a list (expected a list or an object)"),
    ("load: [0.8, 0.8]", "4:15: axes.load[1]: the label 0.8 occurs twice"),
    ("load: [null]", "4:10: axes.load[0]: "),
    ('nodes: {edit: "resize(all)", values: [1]}', "4:10: axes.nodes: the axis has no template"),
    ('nodes: {edit: "resize({})", values: [1]}', "axes.nodes.values[0]: resize(1): resize has 1 argument"),
    ('nodes: {edit: "resize(all, {})", values: [[1]]}', "axes.nodes.values[0]: the value does not fit"),
    ('nodes: {edti: "resize(all, {})", values: [1]}', "4:11: axes.nodes.edti: unknown key 'edti'"),
    ("cluster: [nope]", "4:13: axes.cluster[0]: nope: no such file"),
    ("cluster: [{fle: x}]", "4:14: axes.cluster[0].fle: unknown key 'fle'; did you mean file?"),
    ("cluster: [{}]", "4:13: axes.cluster[0]: a key is missing"),
    ("workload: [{file: month, lublin: {machine: 3}}]", "axes.workload[0]: both file and lublin"),
    (
        "workload: [{lublin: {machine: 3}, as: swf}]",
        "workload[0].as: 'as' applies to files, not",
    ),
    ("seed: [1, 2]", "4:3: axes.seed: seeds are not an axis (expected `seeds: [1, 2]` beside axes)"),
    ("seeds: [x]", "4:3: axes.seeds: seeds are not an axis (expected `seeds: 5` beside axes)"),
    ("mean-wait: [{label: x}]", "4:3: axes.mean-wait: 'mean-wait' is reserved or empty"),
    ("epilog: [3x]", "4:12: axes.epilog[0]: epilog: unknown unit 'x'"),
    ("order: [1]", "4:11: axes.order[0]: order: 1 is not a name"),
    ("overrun: [maybe]", "4:13: axes.overrun[0]: overrun: unknown value 'maybe'"),
    ("failures: [mtbf=3]", "4:14: axes.failures[0]: 'mtbf=3' does not describe failures"),
    ("rules: [{label: a, config: {odrer: x}}]", "4:11: axes.rules[0]: unknown key 'odrer'"),
    ("rules: [{labl: a}]", "4:11: axes.rules[0]: the setting has no label"),
    ("rules: [{label: a, edit: x}]", "axes.rules[0].edit: unknown key 'edit'"),
    ("transforms: [[first(10), nope(1)]]", "axes.transforms[0][1]: unknown transform 'nope(1)'"),
    ("edits: [{label: a, value: [x]}]", "axes.edits[0].value[0]: unknown edit 'x'"),
    ('"q: x": 5', '4:11: axes["q: x"]: 5 is not a list'),
    ('"": 5', '4:7: axes[""]: 5 is not a list'),
    ("{a.b: [{label: 1}], a-b: [{label: 1}]}", "two axes have the column 'a_b'"),
]


@pytest.mark.parametrize("name", ["policy", "order", "load", "rules"])
def test_settings_with_labels_may_be_called_anything(tmp_path, name):
    """Law: an axis of settings of several things does not depend on its name."""
    setting = "{label: a, config: {queue-policy: fcfs}, transforms: [first(3)]}"
    text = f"cluster: tiny\nworkload: first-steps\naxes:\n  {name}: [{setting}]\n"
    (task,) = load_study(written(tmp_path, text)).tasks
    assert (task.options, task.transforms) == ({"queue-policy": "fcfs"}, ("first(3)",))


def test_words_for_axes_stand_for_axes():
    """Law: no word for an axis is the name of one, but `nodes`-like templates and tables; its meaning is."""
    from simsched.study.spec.study_file import NEAR, STEPS

    options = {*OPTION_KEYS, "policy-options.KEY", "cluster", "workload", "edits", "transforms", *STEPS}
    assert {meaning.partition(":")[0] for meaning in NEAR.values()} <= {*options, "nodes"}
    assert not {*NEAR} & (options - {"policy"})


@pytest.mark.parametrize(("axis", "said"), FAULTS)
def test_a_fault_of_an_axis_has_its_place(tmp_path, axis, said):
    text = f"cluster: tiny\nworkload: first-steps\naxes:\n  {axis}\n"
    file = written(tmp_path, text)
    with pytest.raises(SimschedError) as caught:
        load_study(file).tasks  # noqa: B018
    assert str(caught.value).startswith(f"{file}:")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster: tiny\n", "1:1: the key 'workload' is missing"),
        (
            "cluster: tiny\nworkload: month\ntransforms: [first(5)]\n",
            "3:1: transforms: unknown key 'transforms'; it belongs under 'workload'",
        ),
        ("workload: month\n", "1:1: the key 'cluster' is missing (expected cluster or site)"),
        ("cluster: tiny\nworkload: month\nseed: 3\n", "3:1: seed: unknown key 'seed'"),
        ("cluster: tiny\nworkload: month\nseeds: 0\n", "seeds: 0 is out of range (expected a whole number"),
        ("cluster: tiny\nworkload: month\nseeds: [1, 1]\n", "3:8: seeds: an item of the list occurs twice"),
        ("cluster: tiny\nworkload: month\nkeep: everything\n", "3:7: keep: unknown value 'everything' ("),
        ("cluster: tiny\nworkload: month\nzip: [[a, b]]\n", "3:7: zip[0]: there is no axis 'a'"),
        ("cluster: tiny\nworkload: month\nmeasure: {warm-up: soon}\n", "3:20: measure.warm-up:"),
        ("cluster: tiny\nworkload: month\nmeasure: {warm_up: soon}\n", "3:20: measure.warm_up:"),
        (
            "cluster: tiny\nworkload: month\nmeasure: {warm-up: 1h, warm_up: 2h}\n",
            "3:24: measure.warm_up: the key 'warm-up' is given twice",
        ),
        ("cluster: tiny\nworkload: {file: month, map: [a, {}]}\n", "2:34: workload.map[1]:"),
        ("cluster: tiny\nworkload:\n  constrain: [null]\n", "3:15: workload.constrain[0]:"),
        ("cluster: tiny\nworkload:\n  procs_per_node: []\n", "3:19: workload.procs_per_node:"),
        ("cluster: tiny\nworkload: month\nexclude: [{load: 1}]\n", "[0].load: there is no axis 'load'"),
        ("cluster: tiny\nworkload: month\nexclude: [{}]\n", "3:11: exclude[0]: the number of keys is 0"),
        ("cluster: tiny\nworkload: month\nconfig: {seed: 3}\n", "a configuration in a study has no seed"),
        ("cluster: tiny\nworkload: month\nconfig: {odrer: sjf}\n", "3:9: config: unknown key 'odrer'"),
        ("cluster: tiny\nworkload: month\nconfig: nowhere.toml\n", "nowhere.toml: no such file"),
        ("cluster: '-'\nworkload: month\n", "1:10: cluster: a study cannot read standard input"),
        ("cluster: /\nworkload: month\n", "is a directory"),
        ("- cluster\n", "1:1: ['cluster'] is not a table (expected name, "),
        ("cluster: tiny\ncluster: tiny\n", "occurs twice"),
    ],
)  # fmt: skip
def test_a_fault_of_the_file_has_its_place(tmp_path, text, said):
    file = written(tmp_path, text)
    with pytest.raises(SimschedError) as caught:
        load_study(file)
    assert str(caught.value).startswith((f"{file}:", f"{file} ", "nowhere.toml:"))
    assert said in str(caught.value)


def test_every_fault_of_a_study_is_told_with_its_place(tmp_path, capsys):
    file = written(
        tmp_path, "cluster: tiny\nworkload: first-steps\nseeds: x\nzip: 3\naxes: {load: 3, order: 4}\n"
    )
    assert main(["sweep", str(file), "--dry-run"]) == 2
    said = [line.partition("study.yaml:")[2] for line in capsys.readouterr().err.splitlines()]
    assert [line.partition(" is not")[0] for line in said] == [
        "5:14: axes.load: 3",
        "5:24: axes.order: 4",
        "4:6: zip: 3",
        "3:8: seeds: 'x'",
    ]


@pytest.mark.parametrize(
    ("zipped", "fault"),
    [
        ([["load", "queue-policy"]], "have different lengths: load 3, queue-policy 2"),
        ([["load", "order"], ["order", "queue-policy"]], "the axis 'order' is zipped twice"),
    ],
)
def test_zips_that_do_not_fit(zipped, fault):
    axes = {"load": [1, 2, 3], "queue-policy": ["fcfs", "easy"], "order": ["fifo", "sjf", "ljf"]}
    with pytest.raises(SimschedError, match=fault):
        small(axes=axes, zip=zipped)


@pytest.mark.parametrize("wanted", [{"a": 1}, None, "<= x", [["a"]]])
def test_a_condition_that_is_none(wanted):
    with pytest.raises(SimschedError, match=r"include\[0\].load"):
        small(include=[{"load": wanted}])


def test_an_option_that_only_one_policy_has_names_the_run():
    study = small(axes={"queue-policy": ["hybrid", "fcfs"], "policy-options.depth": [2]})
    with pytest.raises(SimschedError, match=r"study: queue-policy fcfs, .*: queue policy 'fcfs' has no"):
        plan(study, measure=False)


def test_paths_are_relative_to_the_study(tmp_path, monkeypatch):
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "small.json").write_text(json.dumps(RECIPE))
    (tmp_path / "inputs" / "rules.toml").write_text('order = "sjf"\n')
    text = "cluster: small.json\nworkload: first-steps\nconfig: rules.toml\n"
    file = written(tmp_path / "inputs", text)
    monkeypatch.chdir("/")
    study = load_study(file)
    assert study.base.options == {"order": "sjf"}
    assert study.base.cluster.path == str(tmp_path / "inputs" / "small.json")


def test_a_folder_does_not_hide_a_bundled_name(tmp_path, monkeypatch):
    (tmp_path / "tiny").mkdir()  # such as the output of a study of that name
    file = written(tmp_path, "cluster: tiny\nworkload: first-steps\n")
    monkeypatch.chdir(tmp_path)
    assert load_study(file).base.cluster.kind == "bundled"


@pytest.mark.parametrize(
    ("word", "kept"),
    [("figures", ()), ("jobs", ("jobs",)), (["jobs", "eventlog"], ("jobs", "eventlog"))],
)
def test_what_is_kept(word, kept):
    assert small(keep=word).base.keep == kept


@given(st.recursive(st.none() | st.booleans() | st.integers(-3, 9) | st.text("a{}(),<=", max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from([*SMALL, "label", "load", "edits", "zip", "exclude", "file"]), inner,
                        max_size=4), max_leaves=12))  # fmt: skip
@settings(max_examples=300)
def test_no_document_raises_anything_but_our_errors(document):
    """Whatever is put in place of a part of a good study, the fault is one that a user can read."""
    for key in ("axes", "cluster", "workload", "config", "zip", "exclude", "seeds", "measure", "keep"):
        with suppress(SimschedError):
            study_from_dict({**SMALL, key: document})


# --- plans


def test_a_plan_counts_runs_and_jobs():
    found = plan(small())
    assert (len(found.tasks), found.distinct, found.jobs) == (8, 8, 480)
    assert found.seconds is not None
    assert found.wall(2) < found.wall(1) + 1e-9
    assert found.notes == ()


def test_equal_runs_are_run_once():
    rules = [{"label": "a"}, {"label": "b", "config": {}}]
    found = plan(small(axes={"rules": rules}, seeds=None), measure=False)
    assert (len(found.tasks), found.distinct) == (2, 1)
    assert found.notes == ("1 runs are equal to others and are performed once",)


def test_seeds_that_change_nothing_are_told():
    found = plan(small(workload="first-steps"), measure=False)
    assert any("is random" in note for note in found.notes)


@pytest.mark.parametrize(
    ("changes", "random"),
    [
        ({"workload": "first-steps"}, False),
        ({"workload": {"file": "first-steps", "transforms": ["thin(0.5)"]}}, True),
        ({"workload": {"file": "first-steps", "transforms": ["estimates(tsafrir)"]}}, True),
        ({"workload": {"file": "first-steps", "transforms": ["estimates(2)"]}}, False),
        ({"workload": "first-steps", "config": {"match-policy": "random"}}, True),
        ({"workload": "first-steps", "config": {"failures": "mtbf=3d,mttr=4h"}}, True),
        ({"workload": "first-steps", "config": {"epilog": "1s..2s"}}, True),
        ({"workload": "first-steps", "config": {"epilog": "1s"}}, False),
        ({}, True),
    ],
)
def test_what_a_seed_decides(changes, random):
    assert is_random(small(axes=None, **changes).tasks[0]) is random


def test_a_seed_decides_under_no_built_in_match_policy_but_random():
    for name in POLICIES:
        config = {"workload": "first-steps", "config": {"match-policy": name}}
        assert is_random(small(axes=None, **config).tasks[0]) is (name == "random"), name


def test_a_cluster_that_cannot_be_read_names_the_run(tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    study = small(cluster=str(tmp_path / "bad.json"))
    with pytest.raises(SimschedError, match=r"bad\.json"):
        plan(study, measure=False)


def test_each_policy_is_sampled_on_its_own(monkeypatch):
    """One of two policies is a hundred times as slow: the mean of both holds for neither."""
    study = small(
        workload={"lublin": {"machine": 16, "jobs": 4000, "load": 0.9}},
        axes={"queue-policy": ["fcfs", "conservative"]},
        seeds=1,
    )
    seconds_per_job = {"fcfs": 1e-5, "conservative": 1e-3}

    def timed(task):
        assert task.transforms[-1] in {"first(10)", "first(2000)"}
        return 2000 * seconds_per_job[task.options["queue-policy"]], 2000

    monkeypatch.setattr("simsched.study.runs.sweep_plan._timed", timed)
    found = plan(study)
    assert found.seconds == pytest.approx(4000 * (1e-5 + 1e-3))
    assert found.samples == 2


def test_a_plan_of_many_rules_samples_some(monkeypatch):
    monkeypatch.setattr("simsched.study.runs.sweep_plan._timed", lambda task: (1.0, 1000))
    depths = [{"label": str(n), "config": {"policy-options": {"queue_depth": n}}} for n in range(1, 101)]
    found = plan(small(axes={"rules": depths}, seeds=1))
    assert 12 <= found.samples <= 24
    assert found.seconds == pytest.approx(100 * 60 * 1e-3)


def test_equal_runs_are_estimated_once(monkeypatch):
    monkeypatch.setattr("simsched.study.runs.sweep_plan._timed", lambda task: (1.0, 1000))
    found = plan(small(axes={"rules": [{"label": "a"}, {"label": "b", "config": {}}]}, seeds=None))
    assert found.seconds == pytest.approx(60 * 1e-3)


def test_measuring_ends_when_its_time_is_spent(monkeypatch):
    monkeypatch.setattr("simsched.study.runs.sweep_plan._timed", lambda task: (1.0, 1000))
    monkeypatch.setattr("simsched.study.runs.sweep_plan.BUDGET", -1.0)
    found = plan(small(axes={"queue-policy": ["fcfs", "easy"]}, seeds=1))
    assert found.samples == 1
    assert found.seconds == pytest.approx(2 * 60 * 1e-3)


def test_a_folder_of_jobs_is_refused_with_what_to_do(tmp_path):
    """Flux's jobs as files: they are many, and a worker elsewhere would need them all."""
    (tmp_path / "jobs" / "1").mkdir(parents=True)
    (tmp_path / "study.yaml").write_text("cluster: tiny\nworkload: jobs\n")
    with pytest.raises(SimschedError) as caught:
        load_study(tmp_path / "study.yaml")
    folder = tmp_path / "jobs"
    assert str(caught.value) == (
        f"{tmp_path}/study.yaml:2:11: workload: {folder}: a folder of jobs cannot be sent to workers "
        f"(expected a file: simsched workload convert {folder} -o jobs.jsonl)"
    )


def test_each_rule_of_a_site_is_an_axis():
    """Orders by factors too, whose factors are beside the axes or on another axis."""
    limits = [
        {"label": "none", "value": []},
        {"label": "two", "value": [{"each": "user", "running-jobs": 2}]},
    ]
    factors = [{"label": kind, "value": {"factors": {kind: 1}}} for kind in ("age", "size", "fair-share")]
    axes = {
        "order": ["multifactor", "fifo"],
        "limits": limits,
        "priority": factors,
        "predictor": ["limit", "last-two"],
        "policy-options.backfill-order": ["sjf", "fifo"],
    }
    tasks = small(axes=axes).tasks
    assert len({task.key for task in tasks}) == 2 * 2 * 3 * 2 * 2 * 2  # and two seeds
    beside = small(config={"priority": {"factors": {"age": 1}}}, axes={"order": axes["order"]}, seeds=1)
    for task in (*tasks, *beside.tasks):
        make_config(**from_document(dict(task.options))).refuse_contradictions()


# --- keys of tables ------------------------------------------------------------------------------

PRIORITY = {
    "factors": {"age": {"weight": 1000, "max": "7d"}, "fair-share": 10_000},
    "fair-share": {"half-life": "7d"},
}
QUEUES = {"batch": {"policy": {"limits": {"duration": "8h"}}}, "debug": {"priority": 5}}


def fields_of(study):
    return [make_config(**from_document(dict(task.options))) for task in study.tasks]


def test_an_axis_reaches_into_tables():
    axes = {
        "priority.fair-share.half-life": ["1d", "14d"],
        "priority.factors.age.weight": [0, 2000],
        "queues.batch.policy.limits.duration": ["4h"],
    }
    study = small(axes=axes, config={"priority": PRIORITY, "queues": QUEUES}, seeds=None)
    made, rules = fields_of(study), [task.options["priority"] for task in study.tasks]
    assert [one["fair-share"]["half-life"] for one in rules] == ["1d", "1d", "14d", "14d"]
    assert [one["factors"]["age"] for one in rules[:2]] == [{"weight": n, "max": "7d"} for n in (0, 2000)]
    assert {one.queues.queues["batch"].longest for one in made} == {4 * 3600}
    assert {one.queues.queues["debug"].priority for one in made} == {5}


def test_a_configuration_is_merged_with_that_of_the_study():
    """A setting changes the keys that it names, and takes out those without a value."""
    young = {"label": "young", "config": {"priority": {"factors": {"age": {"max": "1d"}}}}}
    alone = {"label": "alone", "config": {"priority": {"factors": {"fair-share": None}}}}
    queue = {"label": "queue", "config": {"queues": {"debug": {"priority": 9}}}}
    study = small(
        axes={"a": [young, alone, queue]}, config={"priority": PRIORITY, "queues": QUEUES}, seeds=None
    )
    made, factors = fields_of(study), [task.options["priority"]["factors"] for task in study.tasks]
    assert [sorted(each) for each in factors] == [["age", "fair-share"], ["age"], ["age", "fair-share"]]
    assert [each["age"]["max"] for each in factors] == ["1d", "7d", "7d"]
    assert [one.queues.queues["debug"].priority for one in made] == [5, 5, 9]
    assert all(one.queues.queues["batch"].longest == 8 * 3600 for one in made)


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"queues.btch.priority": [1]}, "there is no queue 'btch'; did you mean batch?"),
        ({"queues.batch.prioriti": [1]}, "prioriti"),
        ({"priorty.fair-share.half-life": ["1d"]}, "did you mean priority.fair-share.half-life?"),
        ({"priority.fair-share.half-live": ["1d"]}, "half-live"),
        ({"priority.fair-share.half-life.x": ["1d"]}, "priority.fair-share.half-life is not a table"),
        ({"priority..x": ["1d"]}, "'priority..x' names no key of a table"),
    ],
)
def test_a_key_that_does_not_exist_is_one_error(axes, says):
    with pytest.raises(SimschedError) as error:
        small(axes=axes, config={"priority": PRIORITY, "queues": QUEUES}, seeds=None)
    assert says in str(error.value)
