"""A study of a log says how near its first setting is to the log."""

from __future__ import annotations

import json

import pytest
import yaml

import simsched as ss
from simsched.report.metrics.agreement import agreement
from simsched.simulation.simulate import simulate
from simsched.study.grid import summary
from simsched.study.study_folder import load_study_result
from simsched.study.sweep import sweep
from simsched.workload.save import save_workload
from tests.study.search.loglab import machine_and_log


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    cluster, log = machine_and_log(jobs=150, days=4, order="sjf")
    (folder / "m.json").write_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")))
    save_workload(log, folder / "log.jsonl")
    return folder, cluster, log


def swept(inputs, name, **more):
    folder = inputs[0]
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"cluster": "m.json", "workload": "log.jsonl", **more}))
    sweep(ss.load_study(str(file)), folder / name, workers=0, report=False)
    return load_study_result(folder / name)


def test_the_error_of_the_first_setting_is_printed(inputs):
    shaken = {"file": "log.jsonl", "transforms": ["shake(1m)"]}
    result = swept(inputs, "plain", axes={"queue-policy": ["easy", "fcfs"]}, workload=shaken, seeds=[1, 2])
    _, cluster, log = inputs
    found = agreement(_jobs(cluster, log))
    reality = result.record["reality"]
    assert reality["error"] == pytest.approx(found.error)
    assert reality["simulated_mean_wait"] == pytest.approx(found.simulated.mean)
    text = summary(result)
    assert f"error {found.error:.2f}" in text
    assert "Not calibrated to the log" in text


def _jobs(cluster, log):
    import pandas as pd

    return pd.DataFrame(simulate(cluster, log, allocations=False).jobs)


def test_a_calibrated_study_says_on_which_log(inputs):
    calibration = {"log": "log.jsonl", "error_before": 0.5, "error": 0.25, "held_out": "2 days"}
    result = swept(inputs, "calibrated", config={"order": "sjf", "calibration": calibration})
    assert result.record["reality"]["error"] == pytest.approx(0, abs=1e-9)
    assert "Calibrated on log.jsonl" in summary(result)


@pytest.mark.parametrize(
    "more", [{"axes": {"load": [1.1, 1.2]}}, {"workload": "first-steps", "cluster": "tiny"}]
)
def test_nothing_to_compare(inputs, more):
    result = swept(inputs, f"other-{len(more)}", **more)
    assert "reality" not in result.record
    assert "calibrated" not in summary(result)
