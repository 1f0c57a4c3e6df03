"""Promised beside real starts: what is counted, against independent figures, and what is refused."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main
from simsched.report.promise_report import promises_of
from simsched.report.run_views import load_run
from simsched.simulation.forecast.start_times import forecast, reserved_starts
from simsched.simulation.simulate import simulate
from simsched.workload.save import save_workload
from tests.study.search.loglab import machine_and_log


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("promises")
    cluster, log = machine_and_log(jobs=250, days=6)
    (folder / "m.json").write_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")))
    save_workload(log, folder / "log.jsonl")
    return folder


def played(inputs, name, *options):
    command = ["run", str(inputs / "m.json"), str(inputs / "log.jsonl"), "-o", str(inputs / name), "--quiet"]
    assert main([*command, "--no-allocations", *options]) == 0
    return inputs / name


@pytest.mark.parametrize("policy", ["conservative", "slack", "hybrid", "selective"])
def test_kept_promises(inputs, policy):
    found = promises_of(load_run(played(inputs, policy, "--queue-policy", policy)))
    jobs = load_run(inputs / policy).jobs
    assert len(found.table) == jobs["promised"].notna().sum() > 0
    assert found.broken.empty
    assert found.kind == "promise"


def test_broken_promises_and_their_causes(inputs, capsys):
    outages = inputs / "outages.json"
    outages.write_text(json.dumps([{"ranks": "0-11", "start": 300_000, "end": 900_000, "kind": "drain"}]))
    folder = played(inputs, "drained", "--queue-policy", "conservative", "--outages", str(outages))
    run = load_run(folder)
    found = promises_of(run)
    late = {row.id: row.start - row.promised for row in run.jobs.itertuples() if row.start > row.promised}
    assert dict(zip(found.broken["id"], found.broken["late"], strict=True)) == late
    assert len(late) > 5
    assert found.broken["cause"].str.startswith("drain from").all()
    assert list(found.broken["late"]) == sorted(late.values(), reverse=True)
    capsys.readouterr()
    assert main(["report", str(folder), "--promises"]) == 0
    text = capsys.readouterr().out
    assert f"{len(late):,} were broken" in text
    again = [str(inputs / "m.json"), str(inputs / "log.jsonl"), "-o", str(inputs / "dated"), "--quiet"]
    options = ["--queue-policy", "conservative", "--outages", str(outages), "--start-date", "2024-03-04"]
    assert main(["run", *again, *options]) == 0
    capsys.readouterr()
    assert main(["report", str(inputs / "dated"), "--promises"]) == 0
    first = load_run(inputs / "dated").clock.text(found.broken["promised"].iloc[0])
    assert first.startswith("2024-03-")
    assert f" {first} " in capsys.readouterr().out
    assert main(["report", str(folder), "--promises", "--format", "json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert document["broken"] == len(late)
    assert document["broken_max"] == max(late.values())
    assert main(["report", str(folder), "--promises", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found.table)
    assert main(["report", str(folder), "--promises", "--format", "markdown"]) == 0
    assert "| real start" in capsys.readouterr().out


@pytest.mark.parametrize("rules", [{}, {"order": "sjf"}, {"queue_options": {"refresh": "when-blocked"}}])
def test_a_reservation_of_easy_is_the_forecast_of_the_first_job(rules):
    cluster, log = machine_and_log(jobs=250, days=6)
    found = reserved_starts(cluster, log, **rules)
    assert found.starts == dict(
        zip(
            *(simulate(cluster, log, allocations=False, **rules).jobs[name] for name in ("id", "start")),
            strict=True,
        )
    )
    assert len(found.reserved) > 20
    if not rules.get("order"):
        for name, one in list(found.reserved.items())[::5]:
            first = next(item for item in forecast(cluster, log, one.made, **rules) if item.place == 1)
            assert (first.id, first.start) == (name, one.start)


def test_reservations_of_easy_are_reported(inputs, capsys):
    folder = played(inputs, "easy")
    found = promises_of(load_run(folder))
    assert found.kind == "reservation"
    assert (found.table["late"] <= 0).all()  # first come, first served: nobody takes the first place
    assert main(["report", str(folder), "--promises"]) == 0
    assert "EASY guarantees no start" in capsys.readouterr().out
    sjf = promises_of(load_run(played(inputs, "easy-sjf", "--order", "sjf")))
    assert (sjf.table["late"] > 0).any()  # a shorter job comes first in the queue


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--queue-policy", "fcfs"], "the queue policy fcfs promises no start"),
        (["--queue-policy", "conservative", "--option", "compress=replan"], "promises no start"),
        (["--queue-policy", "conservative", "--predictor", "last-two"], "promises no start"),
    ],
)
def test_policies_without_promises_are_refused(inputs, options, message, capsys):
    folder = played(inputs, "none", *options)
    assert main(["report", str(folder), "--promises"]) == 2
    assert message in capsys.readouterr().err


def test_a_changed_input_and_an_unknown_format_are_refused(inputs, tmp_path, capsys):
    folder = played(inputs, "changed")
    assert (
        main(["report", str(folder), "--promises", "--format", "html", "-o", str(tmp_path / "x.html")]) == 2
    )
    assert "there is no table --promises in the format html" in capsys.readouterr().err
    log = inputs / "log.jsonl"
    before = log.read_text()
    log.write_text("\n".join(before.splitlines()[:-1]) + "\n")
    assert main(["report", str(folder), "--promises"]) == 2
    log.write_text(before)
    assert "has changed since" in capsys.readouterr().err
