"""Queue policies and job orders of other packages: typed options, objects, and errors that name them."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import types

import numpy as np
import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import ConfigError, PluginError
from simsched.plugins.typed_options import typed_options
from simsched.schedule.orders.order import job_order
from simsched.schedule.orders.ranking import Order
from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.policies.easy import Easy
from simsched.schedule.policies.registry import POLICIES, queue_policy
from simsched.schedule.policies.selective import Selective
from simsched.schedule.policies.slack import Slack
from tests import REPOSITORY

SOURCE = """
import numpy as np
from simsched.match.policies.policy import MatchPolicy
from simsched.schedule.orders.ranking import Order

class Aging:
    def __init__(
        self, aging: float = 0.1, depth: "int | None" = None, label: str = "", fast: bool = False, free=0
    ):
        self.said = (aging, depth, label, fast, free)
        if label == "refuse":
            raise RuntimeError("no such label")

    def run_pass(self, context):
        for job in context.queue.listed():
            selection = context.fit(job)
            if selection is None:
                return
            context.start(job, selection)

class Failing(Aging):
    def run_pass(self, context):
        return 1 / len(context.queue.listed()[:0])

class NoPass:
    pass

last_first = Order("last-first", lambda table, jobs, now: -table.submits[jobs])
broken = Order("broken", lambda table, jobs, now: {}["no such key"])
short = Order("short", lambda table, jobs, now: np.zeros(1))
whole = MatchPolicy(
    name="x", says="last first", order=lambda c: np.arange(len(c.fits))[::-1], whole_nodes=True, static=True
)
def wrong_way(c):
    raise ValueError("nothing suits me")
"""
POINTS = {
    "simsched.queue_policies": {"aging": "Aging", "failing": "Failing", "nopass": "NoPass"},
    "simsched.job_orders": {"last-first": "last_first", "broken": "broken", "short": "short"},
    "simsched.match_policies": {"wholelast": "whole", "wrongway": "wrong_way"},
}


@pytest.fixture
def theirs(monkeypatch, tmp_path):
    """A module of another package whose policies and orders are installed."""
    from importlib.metadata import EntryPoint, EntryPoints

    import simsched.match.policies.policy as policies

    file = tmp_path / "theirs.py"
    file.write_text(SOURCE)
    module = types.ModuleType("theirs")
    exec(compile(SOURCE, str(file), "exec", dont_inherit=True), module.__dict__)
    monkeypatch.setitem(sys.modules, "theirs", module)

    points = EntryPoints(
        EntryPoint(name, f"theirs:{attr}", group) for group, of in POINTS.items() for name, attr in of.items()
    )
    monkeypatch.setattr("importlib.metadata.entry_points", points.select)
    policies._plugged_in.cache_clear()
    yield module
    policies._plugged_in.cache_clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({"aging": "0.2"}, (0.2, None, "", False, 0)),
        ({"aging": "2", "depth": "7"}, (2.0, 7, "", False, 0)),
        ({"label": "7", "fast": "yes"}, (0.1, None, "7", True, 0)),
        ({"label": "yes", "free": "yes"}, (0.1, None, "yes", False, True)),
        ({"free": "1e-3", "depth": "none"}, (0.1, None, "", False, 0.001)),
        ({"free": "nan"}, (0.1, None, "", False, "nan")),
    ],
)
def test_options_are_read_as_the_annotations_say(theirs, text, expected):
    found = queue_policy("aging", text).said
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_an_option_of_another_type_is_refused(theirs):
    with pytest.raises(ConfigError, match=r"aging is 'much' \(expected a number\)"):
        queue_policy("aging", {"aging": "much"})
    with pytest.raises(ConfigError, match="has no option 'aign'"):
        queue_policy("aging", {"aign": "1"})


def test_a_text_stays_where_an_annotation_names_a_type_of_its_own():
    def maker(path: Path, mode: int | str = 0): ...  # noqa: F821

    assert typed_options(maker, {"path": "a/b", "mode": "x"}) == {"path": "a/b", "mode": "x"}


@pytest.fixture
def line(tmp_path):
    """Runs the command line on a bundled workload; the status comes back."""
    return lambda *more: main(["run", "tiny", "first-steps", "-o", str(tmp_path / "run"), "--quiet", *more])


def test_an_option_of_the_command_line_reaches_the_policy_as_a_number(theirs, line, tmp_path):
    assert line("--queue-policy", "aging", "--option", "aging=0.2", "--option", "label=007") == 0
    config = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    assert config["queue_options"] == {"aging": 0.2, "label": "007"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("--queue-policy", "failing"),
            "theirs.py:23: the queue policy 'failing' failed in run_pass: ZeroDivisionError",
        ),
        (
            ("--queue-policy", "aging", "--option", "label=refuse"),
            "theirs.py:12: the queue policy 'aging' failed in __init__: RuntimeError: no such label",
        ),
        (
            ("--queue-policy", "nopass"),
            "the queue policy 'nopass' is a NoPass without a method run_pass",
        ),
        (
            ("--order", "broken"),
            "theirs.py:29: the job order 'broken' failed in <lambda>: KeyError: 'no such",
        ),
        (("--order", "short"), "the job order 'short' did not return one number for each of its"),
        (
            ("--match-policy", "wrongway"),
            "the match policy 'wrongway' failed in wrong_way: ValueError: nothing",
        ),
        (("--queue-policy", "agin"), "did you mean 'aging'?"),
        (("--order", "lastfirst"), "did you mean 'last-first'?"),
        (("--match-policy", "wholelats"), "did you mean 'wholelast'?"),
        (("--order", "nothing-like-it"), "starving(ORDER, T), last-first, broken, short"),
        (("--queue-policy", "nothing-like-it"), f"{', '.join(sorted(POLICIES))}, aging, failing, nopass"),
    ],
)
def test_an_error_names_the_plug_in_and_its_place(theirs, line, capsys, arguments, text):
    assert line(*arguments) == 2
    err = capsys.readouterr().err
    assert text in err
    assert "internal error" not in err


def test_a_whole_node_policy_of_somebody_else_is_audited_as_one(theirs, line, tmp_path, capsys):
    assert line("--match-policy", "wholelast", "--audit") == 0
    assert "audit: clean" in capsys.readouterr().err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["whole_nodes"] is True


def test_policies_and_orders_may_be_given_as_objects(theirs):
    mine = theirs.Aging(0.5)
    found = ss.simulate("tiny", "first-steps", mine, theirs.whole, order=theirs.last_first)
    again = ss.simulate("tiny", "first-steps", "aging", "wholelast", order="last-first")
    assert found.jobs.equals(again.jobs)
    config = found.meta["config"]
    assert (config["queue_policy"], config["match_policy"], config["order"]) == ("Aging", "x", "last-first")
    assert json.dumps(found.meta)


def test_an_object_is_copied_for_each_run(theirs):
    class Counting(theirs.Aging):
        passes = 0

        def run_pass(self, context):
            self.passes += 1
            super().run_pass(context)

    mine = Counting()
    ss.simulate("tiny", "first-steps", mine)
    assert mine.passes == 0


@pytest.mark.parametrize("value", [5, None, object()])
def test_what_is_no_policy_or_order_is_refused(value):
    with pytest.raises(ConfigError, match="queue_policy is"):
        queue_policy(value)
    with pytest.raises(ConfigError, match="order is"):
        job_order(value)
    with pytest.raises(ConfigError, match="has no option 'aging'"):
        queue_policy(Idle(), {"aging": 1})


class Idle:
    """A policy that starts nothing."""

    def run_pass(self, context):
        raise LookupError("idle")


def test_an_object_that_fails_is_named():
    with pytest.raises(PluginError, match="the queue policy 'Idle' failed in run_pass: LookupError: idle"):
        ss.simulate("tiny", "first-steps", Idle())
    with pytest.raises(PluginError, match="the job order 'late' did not return one number"):
        ss.simulate("tiny", "first-steps", order=Order("late", lambda table, jobs, now: None))


def test_the_queue_policy_and_the_order_of_the_example_package():
    """docs/examples/simsched-evenfirst, as the manual shows it."""
    import importlib.util

    folder = REPOSITORY / "docs" / "examples" / "simsched-evenfirst" / "src"
    spec = importlib.util.spec_from_file_location("evenfirst", folder / "simsched_evenfirst" / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert queue_policy(module.Patient(0.5)).patience == 0.5
    assert typed_options(module.Patient, {"patience": "0.5"}) == {"patience": 0.5}
    found = ss.simulate("tiny", "first-steps", module.Patient(), order=module.NARROW_FIRST)
    assert found.meta["counts"]["run"] == 17


# --- our policies as objects ---------------------------------------------------


class Eager(Conservative):
    """A class of somebody else, derived from a policy that may be compiled."""


def crowd(sizes=(2, 1, 2, 1, 1, 2)):
    shapes = [f"slot={size}/node" for size in sizes]
    jobs = [
        ss.Job(
            id=n, submit=0, runtime=10, duration=10 + n, jobspec=ss.Jobspec.from_shape(one, duration=10 + n)
        )
        for n, one in enumerate(shapes, start=1)
    ]
    return ss.Workload(jobs=tuple(jobs), name="crowd")


@pytest.mark.parametrize("made", [Conservative, Eager, Selective, Slack, Easy])
def test_our_policies_may_be_given_as_objects(made):
    assert list(ss.simulate("tiny", crowd(), queue_policy=made()).jobs["start"])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_derived_policy_keeps_its_options(again):
    assert (again(Eager("start", 1)).compress, again(Eager("start", 1)).depth) == ("start", 1)


def test_a_policy_with_a_depth_as_object_is_the_one_with_a_name():
    starts = [
        list(ss.simulate("tiny", crowd(), queue_policy=policy).jobs["start"])
        for policy in (Eager(depth=1), "hybrid:depth=1")
    ]
    assert starts[0] == starts[1]


def test_keys_that_no_float_is_equal_to_are_refused():
    order = ss.Order("ns", lambda table, jobs, now: 2**60 + 1 - np.arange(len(table.submits))[jobs])
    with pytest.raises(PluginError, match="returned whole numbers that no float64 is equal to"):
        ss.simulate("tiny", crowd(), order=order)


class Careless:
    """Takes out a job that does not wait."""

    def run_pass(self, context):
        assert -1 not in context.queue
        for job in [*context.queue.listed(), 0]:
            context.queue.remove(job)


def test_a_job_that_does_not_wait_cannot_be_taken_out():
    with pytest.raises(PluginError, match="job 0 does not wait"):
        ss.simulate("tiny", crowd(), queue_policy=Careless())
