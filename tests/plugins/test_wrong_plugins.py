"""Plug-ins that lack something, fail or return something else: one message each, which names them."""

# ruff: noqa: E501

from __future__ import annotations

import sys

import numpy as np
import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import PluginError
from simsched.match.policies import policy as match_policies
from tests.manual.installs import install

SOURCE = """
import simsched as ss

def policy_of_two(candidates, state): ...
def failing_policy(candidates): raise ValueError("no node suits me")
class OrderWithoutStatic:
    def ranked(self, table, jobs, now): return jobs
class OrderOfTwo:
    static = True
    def ranked(self, table, jobs): return jobs
class NoPass: ...
class PassOfNone:
    def run_pass(self): ...
class Unmade:
    def __init__(self, level: int = 0):
        raise RuntimeError("cannot be made")
    def run_pass(self, context): ...
def factor_of_two(job, now): ...
def failing_factor(job): return 1 / (job.submit * 0)
def endless_factor(job): return float("inf")
def huge_factor(job): return 10**400
class NoState:
    def learn(self, user, seconds): ...
    def predict(self, job, user): ...
class PredictOfOne(NoState):
    def predict(self, job): ...
    def state(self): ...
    def restore(self, state): ...
class FailingPredictor(PredictOfOne):
    def predict(self, job, user): return {}["user"]
class HugePredictor(PredictOfOne):
    def predict(self, job, user): return 10**400
class ListPredictor(PredictOfOne):
    def predict(self, job, user): return [60]
class TextPredictor(PredictOfOne):
    def predict(self, job, user): return "an hour"
def metric_of_one(jobs): ...
def failing_metric(jobs, timeline, totals): return jobs["no such column"]
def huge_metric(jobs, timeline, totals): return 10**5000
def text_metric(jobs, timeline, totals): return "much"
def reader_of_one(lines): ...
def failing_reader(lines, reading):
    return helper(lines)
def helper(lines):
    raise KeyError("column")
def reader_of_nothing(lines, reading): return [1, 2]
class Unrecognising:
    def __call__(self, text, name): ...
class WrongCluster:
    def recognises(self, text): return text.startswith("wrong")
    def __call__(self, text, name): return 5
class FailingCluster:
    def recognises(self, text): return text.startswith("failing")
    def __call__(self, text, name): return text.unknown
def section_of_one(run): ...
def failing_section(run, width): return run.nothing
def list_section(run, width): return ["a line"]
number = 7
"""
KINDS = {
    "match_policies": ("policy_of_two", "failing_policy", "number"),
    "job_orders": ("OrderWithoutStatic", "OrderOfTwo", "number"),
    "queue_policies": ("NoPass", "PassOfNone", "Unmade", "number"),
    "priority_factors": ("factor_of_two", "failing_factor", "endless_factor", "huge_factor"),
    "predictors": (
        "NoState",
        "PredictOfOne",
        "FailingPredictor",
        "TextPredictor",
        "HugePredictor",
        "ListPredictor",
        "number",
    ),
    "metrics": ("metric_of_one", "failing_metric", "text_metric", "huge_metric", "number"),
    "workload_readers": ("reader_of_one", "failing_reader", "reader_of_nothing"),
    "report_sections": ("section_of_one", "failing_section", "list_section", "gone"),
}


def project(folder, kinds):
    (folder / "src" / "wrongs").mkdir(parents=True)
    (folder / "src" / "wrongs" / "__init__.py").write_text(SOURCE)
    points = "".join(
        f'[project.entry-points."simsched.{kind}"]\n'
        + "".join(f'{name} = "wrongs:{name}"\n' for name in names)
        for kind, names in kinds.items()
    )
    (folder / "pyproject.toml").write_text(f'[project]\nname = "wrongs"\nversion = "1"\n{points}')
    return folder


@pytest.fixture
def wrongs(tmp_path, monkeypatch):
    """A function that installs a package with entry points by kind."""

    def installed(**kinds):
        install(project(tmp_path / "project", kinds), tmp_path / "site")
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        match_policies._plugged_in.cache_clear()

    yield installed
    sys.modules.pop("wrongs", None)
    match_policies._plugged_in.cache_clear()


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    ss.simulate("tiny", "first-steps").save(folder)
    return folder


RULES = "[priority.factors]\n{} = {{weight = 5}}\n"
RUN = ("run", "tiny", "first-steps", "-o", "out", "--quiet")
MESSAGES = [
    ("--match-policy policy_of_two", "'policy_of_two' has policy_of_two(candidates, state) (expected arguments (candidates))"),
    ("--match-policy failing_policy", "the match policy 'failing_policy' failed in failing_policy: ValueError: no node suits me"),
    ("--match-policy number", "the match policy 'number' is an int that cannot be called (expected a function of (candidates))"),
    ("--order OrderWithoutStatic", "the job order 'OrderWithoutStatic' is an OrderWithoutStatic without the attribute static"),
    ("--order OrderOfTwo", "the job order 'OrderOfTwo' has ranked(table, jobs) (expected ranked(table, jobs, now))"),
    ("--order number", "the job order 'number' is an int without the attribute static"),
    ("--queue-policy NoPass", "the queue policy 'NoPass' is a NoPass without a method run_pass(context)"),
    ("--queue-policy PassOfNone", "the queue policy 'PassOfNone' has run_pass() (expected run_pass(context))"),
    ("--queue-policy Unmade", "the queue policy 'Unmade' failed in __init__: RuntimeError: cannot be made"),
    ("--queue-policy Unmade:level=high", "level is 'high' (expected a whole number)"),
    ("--queue-policy Unmade:levl=1", "queue policy 'Unmade' has no option 'levl'; did you mean level?"),
    ("--queue-policy Unmade:level", "'level' is not an option of the queue policy 'Unmade' (expected Unmade:NAME=VALUE,…)"),
    ("--queue-policy number", "the queue policy 'number' cannot be called to make a policy"),
    ("factor_of_two", "the priority factor 'factor_of_two' has factor_of_two(job, now) (expected arguments (job))"),
    ("failing_factor", "the priority factor 'failing_factor' failed in failing_factor: ZeroDivisionError"),
    ("endless_factor", "the priority factor 'endless_factor' returned inf for job 1, which is not a finite number"),
    ("huge_factor", "the priority factor 'huge_factor' returned 1000000"),
    ("--predictor HugePredictor", "the predictor 'HugePredictor' predicted 1000000"),
    ("--predictor ListPredictor", "the predictor 'ListPredictor' predicted [60], not seconds from 0 on"),
    ("--predictor NoState", "the predictor 'NoState' is a NoState without a method state()"),
    ("--predictor PredictOfOne", "the predictor 'PredictOfOne' has predict(job) (expected predict(job, user))"),
    ("--predictor FailingPredictor", "the predictor 'FailingPredictor' failed in predict: KeyError: 'user'"),
    ("--predictor TextPredictor", "the predictor 'TextPredictor' predicted 'an hour', not seconds from 0 on"),
    ("--predictor number", "the predictor 'number' is an int without a method learn(user, seconds)"),
    ("--predictor number:k=3", "the predictor 'number' is an int without a method learn(user, seconds)"),
    ("--as reader_of_one", "the workload reader 'reader_of_one' has reader_of_one(lines) (expected arguments (lines, reading))"),
    ("--as failing_reader", "the workload reader 'failing_reader' failed in helper: KeyError: 'column'"),
    ("--as reader_of_nothing", "the workload reader 'reader_of_nothing' returned list, not a Workload"),
    ("--as failing_reader:skip=1", "the workload reader 'failing_reader' has no option 'skip' (expected no options)"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "text"), MESSAGES, ids=[given for given, _ in MESSAGES])
def test_a_wrong_plug_in_of_a_run(wrongs, tmp_path, monkeypatch, capsys, given, text):
    wrongs(**{kind: names for kind, names in KINDS.items() if kind not in ("metrics", "report_sections")})
    monkeypatch.chdir(tmp_path)
    if not given.startswith("--"):
        (tmp_path / "rules.toml").write_text(RULES.format(given))
        given = "--config rules.toml"
    assert main([*RUN, *given.split()]) == 2
    err = capsys.readouterr().err
    assert text in err.splitlines()[-1 if "Traceback" not in err else 0]
    assert "internal error" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("--metric metric_of_one", "the metric 'metric_of_one' has metric_of_one(jobs) (expected arguments (jobs, timeline"),
        ("--metric failing_metric", "the metric 'failing_metric' failed in failing_metric: KeyError: 'no such column'"),
        ("--metric text_metric", "the metric 'text_metric' returned 'much', which is not a number"),
        ("--metric huge_metric", "the metric 'huge_metric' returned a number of thousands of digits"),
        ("--metric number", "the metric 'number' is an int that cannot be called"),
        ("--metric failing", "unknown metric 'failing'"),
        ("--section section_of_one", "the report section 'section_of_one' has section_of_one(run) (expected arguments (run, width))"),
        ("--section failing_section", "the report section 'failing_section' failed in failing_section: AttributeError"),
        ("--section list_section", "the report section 'list_section' returned list, not a text"),
        ("--section gone", "the report section 'gone' cannot be loaded: module 'wrongs' has no attribute 'gone'"),
        ("--section sectoin", "unknown report section 'sectoin'"),
    ],
)  # fmt: skip
def test_a_wrong_plug_in_of_a_report(wrongs, ran, capsys, given, text):
    wrongs(**{kind: KINDS[kind] for kind in ("metrics", "report_sections")})
    assert main(["report", str(ran), *given.split()]) == 2
    assert text in capsys.readouterr().err


def test_a_message_has_the_plug_ins_part_of_the_traceback(wrongs, tmp_path, capsys):
    wrongs(**KINDS)
    assert main(["workload", "show", "first-steps", "--as", "failing_reader"]) == 2
    lines = capsys.readouterr().err.splitlines()
    place = f"{tmp_path}/site/wrongs/__init__.py"
    assert lines[0].endswith("the workload reader 'failing_reader' failed in helper: KeyError: 'column'")
    assert lines[1] == "  Traceback (most recent call last):"
    assert [line.strip() for line in lines if place in line][1:] == [
        f'File "{place}", line {at}, in {name}' for at, name in ((43, "failing_reader"), (45, "helper"))
    ]
    assert not any("simsched/workload" in line for line in lines)


def test_a_metric_that_fails_does_not_lose_the_run(wrongs, tmp_path, capsys):
    wrongs(metrics=("failing_metric", "text_metric", "metric_of_one"))
    assert main(["run", "tiny", "first-steps", "-o", str(tmp_path / "out"), "--quiet"]) == 0
    err = capsys.readouterr().err
    assert "note: " in err
    assert "the metric 'failing_metric' failed in failing_metric" in err
    summary = (tmp_path / "out" / "summary.json").read_text()
    assert '"failing_metric": null' in summary
    assert '"text_metric": null' in summary
    assert "metric_of_one" not in summary


def test_wrong_cluster_readers(wrongs, tmp_path, capsys):
    wrongs(cluster_readers=("WrongCluster", "FailingCluster"))
    for text, expected in (
        ("wrong", "the cluster reader 'WrongCluster' returned int, not a networkx graph or a document"),
        ("failing", "the cluster reader 'FailingCluster' failed in __call__: AttributeError"),
    ):
        (tmp_path / "machine.txt").write_text(text)
        assert main(["feasible", str(tmp_path / "machine.txt"), "slot/core"]) == 2
        assert expected in capsys.readouterr().err


def test_a_cluster_reader_that_lacks_a_method_is_named_for_each_file(wrongs, capsys):
    wrongs(cluster_readers=("Unrecognising",))
    assert main(["feasible", "tiny", "slot/core"]) == 2
    text = "the cluster reader 'Unrecognising' is an Unrecognising without a method recognises(text)"
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("value", [5, object(), ss.Workload])
def test_objects_of_the_wrong_kind_in_python(value):
    run = ss.simulate("tiny", "first-steps")
    for call, text in (
        (lambda: ss.simulate("tiny", "first-steps", predictor=value), "predictor is"),
        (lambda: ss.simulate("tiny", "first-steps", order=value), "order is"),
        (lambda: ss.simulate("tiny", "first-steps", value), "queue_policy is"),
        (lambda: ss.simulate("tiny", "first-steps", match_policy=value), "policy is"),
        (lambda: ss.simulate("tiny", "first-steps", priority={"factors": {"x": {"weight": 1, "kind": value}}}),
         "priority.factors.x: kind is"),
        (lambda: ss.load_workload("first-steps", as_=value), "as_ is|workload reader"),
        (lambda: ss.load_cluster("tiny", reader=value), "cluster reader"),
        (lambda: run.metric(value), "metric"),
        (lambda: run.section(value), "report section"),
    ):  # fmt: skip
        with pytest.raises(ss.ConfigError, match=text):
            call()


def test_a_function_is_a_match_policy_and_keeps_its_name():
    def last(candidates):
        return np.arange(len(candidates.ordinals))[::-1]

    def short(candidates):
        return np.arange(1)

    assert str(ss.Matcher("tiny", policy=last).match(ss.Jobspec.from_shape("slot/core")).R) == "rank3/core0"
    run = ss.simulate("tiny", "first-steps", match_policy=last)
    assert run.meta["config"]["match_policy"] == "last"
    with pytest.raises(ss.ConfigError, match="match policy 'short' did not return a permutation"):
        ss.simulate("tiny", "first-steps", match_policy=short)


def test_functions_and_objects_are_named_in_messages():
    def metric_of_one(jobs): ...

    class Reader:
        def recognises(self, text): ...
        def __call__(self, text): ...

    run = ss.simulate("tiny", "first-steps")
    with pytest.raises(ss.PluginError, match="the metric 'metric_of_one' has metric_of_one"):
        run.metric(metric_of_one)
    with pytest.raises(ss.PluginError, match="the metric '3' is an int that cannot be called"):
        run.metric(3)
    with pytest.raises(ss.PluginError, match=r"test_wrong_plugins.py:\d+: .*'Reader' has __call__\(text\)"):
        ss.load_cluster(__file__, reader=Reader())


def test_an_error_keeps_its_traceback_under_another_place():
    error = PluginError("it failed", where="log.swf:3")
    error.trace = "Traceback …"
    for placed in (error.at("here"), error.renamed("log.swf", "logs/log.swf")):
        assert placed.trace == "Traceback …"
    assert placed.where == "logs/log.swf:3"
    assert error.renamed("log.sw", "other") is error  # another file


def test_a_plug_in_that_writes_into_its_arguments_changes_nothing_else():
    """Arrays and frames of a plug-in are its own; columns of the job table are read-only."""

    class Reversing:
        static = False

        def ranked(self, table, jobs, now):
            found = jobs.copy()
            jobs[:] = 0
            return found

    class Resetting(Reversing):
        def ranked(self, table, jobs, now):
            table.submits[:] = 0

    def policy(candidates):
        positions = np.arange(len(candidates.ordinals))
        candidates.fits[:] = candidates.ordinals[:] = 0
        return positions

    def metric(jobs, timeline, totals):
        for name in list(jobs):
            del jobs[name]
        totals.clear()
        return 1.0

    def section(run, width):
        del run.jobs["start"]
        return "done"

    plain = ss.simulate("tiny", "first-steps")
    for options in ({"order": Reversing()}, {"match_policy": policy}):
        assert ss.simulate("tiny", "first-steps", **options).jobs["start"].equals(plain.jobs["start"])
    with pytest.raises(PluginError, match="'Resetting' failed in ranked: ValueError: assignment destination"):
        ss.simulate("tiny", "first-steps", order=Resetting())
    assert plain.metric(metric) == 1
    assert plain.section(section) == "done"
    assert "start" in plain.jobs
    assert plain.totals["core"] == 16
