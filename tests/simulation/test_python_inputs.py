"""What Python callers may give: names, paths, shapes and plain values; anything else is one clear error."""

from __future__ import annotations

import pytest

import simsched as ss


def test_clusters_workloads_and_shapes_by_name():
    assert len(ss.simulate("tiny", "first-steps").jobs) == 18
    assert ss.feasible("tiny", "slot=1/core")
    assert ss.Matcher("tiny").match("slot=1/core").R
    assert not ss.feasible("tiny", {"version": 999, **document("slot=900/core")})


def document(shape):
    found = ss.Jobspec.from_shape(shape).to_dict()
    return {key: found[key] for key in ("resources", "tasks", "attributes")}


def test_rules_as_a_file_has_them():
    run = ss.simulate(
        "tiny",
        "first-steps",
        epilog="1s..2s",
        failures="mtbf=30d,mttr=4h",
        outages=[{"ranks": "0", "start": "5m", "end": "9m"}],
        queues={"batch": {}},
    )
    assert run.config["epilog"] == (1, 2)
    assert run.config["queues"] == ["batch"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"extra": "no"}, {"extra": False}),
        ({"extra": "yes", "queue-depth": 3}, {"extra": True, "queue_depth": 3}),
    ],
)
def test_options_of_a_policy_as_the_command_line_and_files_have_them(given, meant):
    """One run, however its options are spelt; a file that says "no" is understood, too."""
    from simsched.simulation.options.run_config import from_document, make_config

    assert make_config(queue_options=given) == make_config(queue_options=meant)
    assert make_config(**from_document({"policy-options": given})) == make_config(queue_options=meant)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ss.simulate("tinny", "first-steps"),
        lambda: ss.simulate(3, "first-steps"),
        lambda: ss.simulate("tiny", None),
        lambda: ss.Matcher(3),
        lambda: ss.Matcher("tiny").match(5),
        lambda: ss.Matcher("tiny").match("slot=1/"),
        lambda: ss.feasible("tiny", {1: 2}),
        lambda: ss.load_cluster(5),
        lambda: ss.load_workload(5),
        lambda: ss.load_workload("first-steps", limit=-1),
        lambda: ss.load_workload("first-steps", limit="x"),
        lambda: ss.load_run(5),
        lambda: ss.Jobspec.from_dict({1: 2}),
        lambda: ss.Jobspec.from_shape(None),
        lambda: ss.Jobspec.from_shape("slot=1/core", constraint=5),
        lambda: ss.Jobspec.from_shape("slot=1/core", queue=5),
        lambda: ss.Jobspec.from_shape("slot=1/core", queue=""),
        *(
            lambda options=options: ss.simulate("tiny", "first-steps", **options)
            for options in (
                {"queue_policy": "hybrid", "queue_options": {"depth": True}},
                {"queue_options": {1: 2}},
                {"until": "x"},
                {"until": -1},
                {"measure_from": "x"},
                {"queue_options": 3},
                {"queues": 3},
                {"outages": 3},
                {"outages": [3]},
                {"failures": 3},
                {"epilog": (3,)},
                {"epilog": -1},
            )
        ),
    ],
)
def test_anything_else_is_one_clear_error(call):
    with pytest.raises(ss.SimschedError) as found:
        call()
    assert "\n" not in str(found.value).partition("(expected")[0]
