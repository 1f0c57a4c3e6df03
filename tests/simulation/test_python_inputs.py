"""What Python callers may give: names, paths, shapes and plain values; anything else is one clear error."""

from __future__ import annotations

import inspect
import typing

import numpy as np
import pandas as pd
import pytest

import simsched as ss
from simsched.declare.table import fields_of
from simsched.rl.backfill_env import BackfillEnv
from simsched.simulation.options.run_config import RunConfig


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
    assert run.config["epilog"] == [1, 2]
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


# --- jobs without a file --------------------------------------------------------------------

WHOLE = ss.Jobspec.from_shape("slot=16/core")  # all of tiny
TWO = [
    {"id": "late", "submit": 5, "shape": "slot=16/core", "duration": "100s", "user": None},
    {"id": "early", "submit": np.int64(0), "jobspec": WHOLE, "duration": 100.0, "runtime": float("nan")},
]


def starts(run):
    return run.jobs.set_index("id")["start"].to_dict()


@pytest.mark.parametrize(
    "jobs",
    [
        TWO,
        tuple(TWO),
        iter(TWO),
        (job for job in TWO),
        [ss.Job(id="late", submit=5, jobspec=WHOLE, duration=100), TWO[1]],
        ss.Workload(TWO),
        pd.DataFrame([{**TWO[0], "user": "ada"}, {**TWO[1], "jobspec": None, "shape": "slot=16/core"}]).drop(
            columns="jobspec"
        ),
    ],
    ids=["list", "tuple", "iterator", "generator", "mixed", "workload", "frame"],
)
def test_jobs_as_mappings_and_values_in_any_order(jobs):
    assert starts(ss.simulate("tiny", jobs)) == {"early": 0, "late": 100}


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([TWO[0], {"shap": "core", "runtime": 1}], "jobs[1]: unknown key 'shap'; did you mean shape?"),
        ([{"shape": "core", "runtime": "soon"}], "jobs[0].runtime: 'soon' is not a duration"),
        ([TWO[0], TWO[0]], "job id 'late' occurs twice"),
        ([{"shape": "core"}], "jobs[0]: a job needs a runtime or a duration"),
        ([{"shape": "core", "runtime": 1, "depends": "afterok:x"}], "jobs[0]: depends on 'x'"),
        (
            [{"shape": "core", "runtime": 1, "submit": float("nan")}],
            "jobs[0].submit: there is no submit time",
        ),
        ([3], "jobs[0]: 3 is not a job"),
        ("core", "jobs is 'core'"),
        ({"shape": "core"}, "jobs is {'shape': 'core'}"),
        (7, "jobs is 7"),
    ],
)
def test_a_wrong_record_is_named_when_the_workload_is_made(jobs, message):
    with pytest.raises(ss.SimschedError) as error:
        ss.Workload(jobs)
    assert message in str(error.value)


def test_an_error_of_the_programs_generator_is_its_own():
    def jobs():
        yield TWO[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ss.simulate("tiny", jobs())
    assert len(ss.simulate("tiny", []).jobs) == 0


def test_a_frame_without_a_submit_time_in_a_row_is_refused():
    frame = pd.DataFrame({"submit": [0, np.nan], "shape": "core", "runtime": 5})
    with pytest.raises(ss.WorkloadError, match="data frame:2: there is no submit time"):
        ss.simulate("tiny", frame)


def test_mappings_are_submitted_to_an_open_simulation():
    sim = ss.Simulation("tiny", expect=TWO)
    jobs = sim.submit_all(TWO)
    sim.run()
    assert {job.id: job.start for job in jobs} == {"early": 0, "late": 100}


# --- sites ----------------------------------------------------------------------------------

SLURM = """\
NodeName=n[1-4] CPUs=8
PartitionName=batch Nodes=ALL MaxTime=60 Default=YES
SchedulerParameters=bf_interval=60
"""


def test_a_site_and_its_folder_bring_the_queues_and_the_rules(tmp_path, recwarn):
    (tmp_path / "slurm.conf").write_text(SLURM)
    site = ss.import_site(tmp_path / "slurm.conf")
    ss.save_site(site, tmp_path / "site")
    node = ss.Jobspec.from_shape("slot=1/node")
    for given in (site, tmp_path / "site", str(tmp_path / "site")):
        run = ss.simulate(given, [{"shape": "slot=4/node", "duration": "2h"}])
        assert run.config["queue_policy"] == "slurm"
        assert run.jobs["reason"][0] == "rejected: queue batch allows 1h, the job asks for 2h"
        # the options of the site's policy are not those of another
        assert ss.simulate(given, TWO[:1], "easy").config["queue_options"] == {}
        assert ss.simulate(given, TWO[:1], overrun="allow").config["queue_options"] == {"interval": 60}
        assert ss.Simulation(given).config.queues.default == "batch"
        assert not ss.feasible(given, node, duration=7200)
        assert ss.Matcher(given).match(node)
    saved = ss.simulate(tmp_path / "site", TWO[:1]).meta["inputs"][0]
    assert saved["name"] == str(tmp_path / "site" / "cluster.yaml")
    assert saved["sha256"]


# --- every option has a name ----------------------------------------------------------------


NAMED = [ss.simulate, ss.Simulation, ss.Simulation.submit, ss.feasible, ss.Matcher, ss.load_workload,
         ss.size, ss.headroom, ss.calibrate, ss.Run.plot, BackfillEnv]  # fmt: skip


@pytest.mark.parametrize("function", NAMED)
def test_every_option_is_a_named_parameter_and_a_wrong_name_says_which_is_meant(function):
    parameters = inspect.signature(function).parameters
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    assert all(
        one.annotation is not inspect.Parameter.empty for one in parameters.values() if one.name != "self"
    )
    name = list(parameters)[-1]
    with pytest.raises(ss.ConfigError, match=f"^unknown option '{name}x'; did you mean {name}\\?$"):
        function("tiny", **{f"{name}x": None})


@pytest.mark.parametrize("function", [ss.simulate, ss.Simulation, ss.size, ss.headroom, ss.calibrate])
def test_the_fields_of_a_configuration_are_all_there(function):
    names = set(RunConfig.__struct_fields__)
    assert names <= set(inspect.signature(function).parameters)
    if inspect.isfunction(function):
        assert all(f"{name} :" in function.__doc__ or f"{name}," in function.__doc__ for name in names)


def test_types_of_keywords_have_the_words_of_the_configuration():
    """A type checker reads them from a second list, `RunRules`."""
    words = {key: one.kind.choices for key, one in fields_of(RunConfig).items() if one.kind.choices}
    parameters = inspect.signature(ss.simulate).parameters
    for key, known in words.items():
        annotation = parameters[key.replace("-", "_")].annotation
        assert set(typing.get_args(typing.get_args(eval(annotation, vars(typing)))[0])) == set(known)
    assert len(words) > 4


@pytest.mark.parametrize("made", [list, tuple, iter])
def test_tables_of_rules_are_any_iterable(made):
    limits = [{"each": "user", "cores": 5}]
    assert ss.simulate("tiny", TWO, limits=made(limits)).config["limits"][0]["cores"] == 5
    ask = {"targets": "max_wait<=1d", "seeds": 1, "workers": 0, "most": 1.0, "least": 1.0}
    found = ss.headroom("tiny", TWO, **ask, limits=made(limits), epilog=(1, 2))
    assert found.about["options"] == {"limits": limits, "epilog": [1, 2]}
    with pytest.raises(ss.FormatError, match="epilog: 'x' is not a duration"):
        ss.simulate("tiny", TWO, epilog=("x", 2))


def test_a_seed_is_a_whole_number_of_any_kind():
    assert ss.simulate("tiny", TWO, seed=np.int64(3)).config["seed"] == 3
    for wrong in (1.5, True, -1, "x"):
        with pytest.raises(ss.ConfigError, match="expected a whole number of 0 or more"):
            ss.simulate("tiny", TWO, seed=wrong)


def test_a_wrong_value_says_which_is_meant():
    with pytest.raises(ss.ConfigError, match="overrun: unknown value 'allw'; did you mean allow"):
        ss.simulate("tiny", TWO, overrun="allw")


@pytest.mark.parametrize("policy", ["easy", "easy++", "hybrid", "selective"])
def test_an_order_of_candidates_may_be_an_object(policy):
    order = ss.Order("mine", lambda table, jobs, now: table.durations_array[jobs])
    said = [
        ss.simulate("tiny", "first-steps", queue_policy=policy, queue_options={"backfill_order": given})
        for given in (order, "sjf")
    ]
    starts = [run.jobs["start"].dropna().tolist() for run in said]
    assert starts[0] == starts[1]
