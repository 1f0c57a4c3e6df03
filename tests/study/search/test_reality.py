"""Answers of `size` and `headroom` for a log say how near the simulation of today's machine is to it."""

import msgspec
import pytest

from simsched.study.search.size import headroom, size
from tests.simulation.simworld import workload
from tests.study.search.loglab import machine_and_log

FAST = {"workers": 0, "seeds": 1, "checks": 0}


def test_a_log_that_the_simulation_plays_exactly_has_no_error():
    cluster, log = machine_and_log(jobs=120, days=5, order="sjf")
    found = size(cluster, log, "mean_wait<=2h", order="sjf", **FAST)
    reality = found.to_dict()["reality"]
    assert reality["error"] == pytest.approx(0, abs=1e-6)
    assert reality["jobs"] == 120
    assert reality["recorded_mean_wait"] == reality["simulated_mean_wait"]


def test_the_answer_states_the_error_and_warns_where_nothing_is_calibrated():
    cluster, log = machine_and_log(jobs=120, days=5, order="sjf")
    text = headroom(cluster, log, "mean_wait<=30d", step=0.5, most=1.5, **FAST).text()
    assert "today's machine has a mean wait of" in text
    assert "in the log (120 jobs, rank correlation" in text
    assert "not calibrated to the log" in text
    calibration = {"log": "log.swf", "error": 0.5, "error_before": 1.25, "held_out": "4 weeks"}
    found = size(cluster, log, "mean_wait<=30d", options={"calibration": calibration}, most=17, **FAST)
    assert "calibrated on log.swf: error 0.50 on 4 weeks that were held out, 1.25 before" in found.text()


@pytest.mark.parametrize("steps", [("load(1.5)",), ("where(user == u1)",)])
def test_nothing_is_compared_if_the_jobs_are_not_those_of_the_log(steps):
    cluster, log = machine_and_log(jobs=60, days=5)
    found = size(cluster, log, "mean_wait<=30d", transforms=steps, most=17, **FAST)
    assert "reality" not in found.to_dict()


def test_nothing_is_compared_without_recorded_starts():
    cluster, log = machine_and_log(jobs=60, days=5)
    plain = workload(*(msgspec.structs.replace(job, wait=None) for job in log.jobs))
    found = size(cluster, plain, "mean_wait<=30d", most=17, **FAST)
    assert "reality" not in found.to_dict()
    assert "calibrat" not in found.text()
