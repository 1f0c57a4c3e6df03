"""``simsched forecast`` with what past forecasts teach."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main
from simsched.workload.save import save_workload
from tests.study.search.loglab import machine_and_log


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    cluster, log = machine_and_log(jobs=700, days=14)
    (folder / "m.json").write_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")))
    save_workload(log, folder / "log.jsonl")
    return [str(folder / "m.json"), str(folder / "log.jsonl")]


def test_quantiles_and_their_check_are_printed(inputs, capfd):
    assert main(["forecast", *inputs, "--at", "12d", "--quantiles", "0.2,80%", "--quiet"]) == 0
    out, err = capfd.readouterr()
    assert "20 %" in out.splitlines()[0]
    assert "checked on" in err
    assert main(["forecast", *inputs, "--at", "12d", "--quantiles", "--format", "json", "--quiet"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert rows
    for row in rows:
        starts = [float("inf") if start is None else start for start in row["quantiles"].values()]
        assert list(row["quantiles"]) == ["0.1", "0.5", "0.9"]
        assert starts == sorted(starts)
        assert starts[0] >= 12 * 86_400
    assert main(["forecast", *inputs, "--at", "12d", "--format", "json", "--quiet"]) == 0
    assert all("quantiles" not in row for row in json.loads(capfd.readouterr().out))


def test_errors_by_horizon_are_printed(inputs, capfd):
    assert main(["forecast", *inputs, "--errors", "--quiet"]) == 0
    assert "bias" in capfd.readouterr().out
    assert main(["forecast", *inputs, "--errors", "--format", "json", "--quiet"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert sum(row["forecasts"] for row in found["errors"]) > 100
    assert len(found["check"]["coverage"]) == 3


def test_a_queue_snapshot_learns_from_a_log(inputs, tmp_path, capfd):
    picture = tmp_path / "queue.yaml"
    picture.write_text(
        "kind: simsched queue\ntime: 0\nrunning:\n"
        "  - {id: 1, start: 0, duration: 1h, shape: slot=16/core,\n"
        "     R: {version: 1, execution: {R_lite: [{rank: 0-15, children: {core: '0'}}],\n"
        "         nodelist: ['n[0-15]']}}}\n"
        "waiting:\n  - {id: 2, submit: 0, duration: 1h, shape: slot=2/core}\n"
    )
    command = ["forecast", inputs[0], str(picture)]
    assert main([*command, "--learn-from", inputs[1], "--quiet"]) == 0
    out, err = capfd.readouterr()
    assert "50 %" in out
    assert "learnt from" in err
    # under `recorded` the quantiles come from the starts of the log, and the plan is that of the default
    assert main([*command, "--learn-from", inputs[1], "--queue-policy", "recorded", "--quiet"]) == 0
    played, err = capfd.readouterr()
    assert "learnt from" in err
    assert [line.split()[:6] for line in played.splitlines()] == [
        line.split()[:6] for line in out.splitlines()
    ]
    assert main([*command, "--queue-policy", "recorded", "--quiet"]) == 2
    assert "no recorded starts" in capfd.readouterr().err
    assert main([*command, "--quantiles", "--quiet"]) == 2
    assert "--learn-from LOG" in capfd.readouterr().err
    assert main([*command, "--errors", "--quiet"]) == 2
    assert "a queue snapshot has no earlier forecasts" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at", "12d", "--quantiles", "2"], "'2' is not the level of a quantile"),
        (["--at", "1d", "--quantiles"], "too little to learn from"),
        (["--at", "12d", "--learn-from", "log"], "a workload is learnt from itself"),
        (["--resume", "state.json", "--quantiles"], "does not have the forecasts before it"),
        (["--quantiles"], "there is no time"),
    ],
)
def test_wrong_options(inputs, options, message, capfd):
    assert main(["forecast", *inputs, *options, "--quiet"]) == 2
    out, err = capfd.readouterr()
    assert not out
    assert message in err
