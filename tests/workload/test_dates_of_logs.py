"""The clock of logs by format, and the options that give a log its zone and its dates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simsched import load_workload
from simsched.cli import main
from simsched.errors import ConfigError, FormatError
from simsched.formats.rfc.clock import Clock

SACCT = """\
JobIDRaw|Submit|Start|End|ElapsedRaw|NCPUS|State
1|2024-03-31T01:30:00|2024-03-31T01:30:00|2024-03-31T03:30:00|3600|4|COMPLETED
2|2024-03-31T03:30:00|2024-03-31T03:40:00|2024-03-31T04:30:00|3000|4|COMPLETED
"""
CSV = "id,submit,runtime,cores\n1,2024-03-31 01:30:00,60,1\n2,2024-03-31 03:30:00,60,1\n"
MAP = {"columns": {"id": "id", "submit": "submit", "runtime": "runtime", "cores": "cores"}}


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return name

    return write


def test_local_times_of_sacct_are_an_hour_closer_when_summer_time_begins(written):
    """From 01:30 to 03:30 of that night one hour passes in Berlin, and two hours in UTC."""
    log = written("log.sacct", SACCT)
    assert [job.submit for job in load_workload(log).jobs] == [0, 7200]
    berlin = load_workload(log, time_zone="Europe/Berlin")
    assert [job.submit for job in berlin.jobs] == [0, 3600]
    assert [job.wait for job in berlin.jobs] == [0, 600]
    assert berlin.clock.text(0) == load_workload(log).clock.text(0) == "2024-03-31T01:30:00"
    assert (berlin.clock.zone_text, load_workload(log).clock.assumed) == ("Europe/Berlin", True)


def test_times_with_an_offset_keep_their_instant(written):
    log = written("log.sacct", SACCT.replace(":00|2", ":00+0000|2").replace("00|3600", "00+0000|3600")
                  .replace("00|3000", "00+0000|3000"))  # fmt: skip
    tokyo = load_workload(log, time_zone="Asia/Tokyo")
    assert [job.submit for job in tokyo.jobs] == [0, 7200]
    assert tokyo.clock.text(0) == "2024-03-31T10:30:00"


def test_local_times_of_tables(written):
    log = written("log.csv", CSV)
    assert [job.submit for job in load_workload(log, columns=MAP).jobs] == [0, 7200]
    berlin = load_workload(log, columns=MAP, time_zone="Europe/Berlin")
    assert [job.submit for job in berlin.jobs] == [0, 3600]
    assert berlin.clock.text(3600) == "2024-03-31T03:30:00"


def test_epochs_are_shown_in_the_zone(written):
    job = {"id": 1, "t_submit": 1_711_848_600.0, "t_run": 1_711_848_600.0, "t_cleanup": 1_711_848_660.0,
           "t_inactive": 1_711_848_660.0, "ncores": 4, "nnodes": 1, "state": "INACTIVE",
           "result": "COMPLETED", "duration": 60.0}  # fmt: skip
    log = written("jobs.json", json.dumps({"jobs": [job]}))
    assert load_workload(log).clock.text(0) == "2024-03-31T01:30:00"
    assert load_workload(log, time_zone="America/New_York").clock.text(0) == "2024-03-30T21:30:00"


def test_a_log_without_dates_gets_them():
    assert load_workload("first-steps").clock is None
    dated = load_workload("first-steps", start_date="2024-03-04T08:00", time_zone="-08:00")
    assert dated.clock == Clock(1_709_568_000, "-08:00")
    assert load_workload("first-steps", start_date="2024-03-04").clock.assumed


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"time_zone": "Europe/Berln"}, ConfigError),
        ({"time_zone": 7}, ConfigError),
        ({"start_date": "yesterday"}, FormatError),
        ({"start_date": "1970-01-01"}, ConfigError),
        ({"start_date": "2024-03-31T02:30", "time_zone": "Europe/Berlin"}, ConfigError),
    ],
)
def test_odd_options_are_refused(options, error):
    with pytest.raises(error):
        load_workload("first-steps", **options)


def test_errors_of_the_command_line_name_the_option(written, capsys):
    written("log.sacct", SACCT)
    for option, value in (("--time-zone", "Mars"), ("--start-date", "2024-3-1")):
        assert main(["workload", "show", "log.sacct", option, value]) == 2
        assert f"simsched: error: {option}: " in capsys.readouterr().err


def test_forecasts_and_descriptions_take_and_show_dates(written, capsys):
    written("log.sacct", SACCT)
    zone = ["--time-zone", "Europe/Berlin"]
    assert main(["forecast", "tiny", "log.sacct", "--at", "2024-03-31T03:30", *zone, "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("as of 2024-03-31T03:30:00, Europe/Berlin\n")
    assert main(["workload", "show", "log.sacct", *zone]) == 0
    shown = capsys.readouterr().out
    assert "dates            2024-03-31T01:30:00 to 2024-03-31T03:30:00, Europe/Berlin\n" in shown
    assert "  2024-03-31" in shown.partition("by week")[2]
    assert main(["workload", "show", "log.sacct", "-t", "slice(2025-01-01)", *zone]) == 0
    assert "the workload is from 2024-03-31T01:30:00 to 2024-03-31T03:30:00" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_is_repeated_with_its_zone(written, capsys):
    written("log.sacct", SACCT)
    run = ["run", "tiny", "log.sacct", "-o", "run", "--time-zone", "Europe/Berlin", "--quiet", "--audit"]
    assert main([*run, "--until", "2024-03-31T04:00"]) == 0
    record = json.loads(Path("run/run.json").read_text(encoding="utf-8"))
    assert record["command"]["reading"]["time_zone"] == "Europe/Berlin"
    assert record["until"] == 5400
    assert main(["why", "run", "2"]) == 0
    assert main(["report", "run", "--audit"]) == 0
    assert main(["forecast", "run", "--at", "2024-03-31T03:00"]) == 0
    assert "as of 2024-03-31T03:00:00, Europe/Berlin" in capsys.readouterr().out


def dated(tmp_path, name, start, zone="Europe/Berlin", jobs=1):
    path = tmp_path / name
    lines = [f"{n} {60 * n} 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1" for n in range(1, jobs + 1)]
    head = [] if start is None else [f"; UnixStartTime: {start}", f"; TimeZoneString: {zone}"]
    path.write_text("\n".join([*head, *lines]) + "\n")
    return load_workload(path)


def test_merged_logs_of_one_zone_keep_their_dates(tmp_path):
    from simsched.workload.transforms.transforms import merge

    january, march = dated(tmp_path, "jan.swf", 1704067200), dated(tmp_path, "mar.swf", 1709251200)
    both = merge([march, january])
    assert both.clock == january.clock
    assert [job.submit for job in both] == [60, 60 + 60 * 86400]
    assert [both.clock.text(job.submit) for job in both] == [
        january.clock.text(january.jobs[0].submit),
        march.clock.text(march.jobs[0].submit),
    ]
    assert any("the last of them begins 60 days after the first" in note for note in both.notes)
    same = merge([january, dated(tmp_path, "again.swf", 1704067200, jobs=2)])
    assert same.clock == january.clock
    assert not same.notes


def test_merged_logs_whose_clocks_do_not_agree_say_so(tmp_path):
    from simsched.workload.transforms.transforms import merge

    berlin = dated(tmp_path, "berlin.swf", 1704067200)
    rome, none = dated(tmp_path, "rome.swf", 1709251200, "America/Lima"), dated(tmp_path, "none.swf", None)
    for other, text in (
        (rome, "their time zones are Europe/Berlin and America/Lima"),
        (none, "those of none are not known"),
    ):
        both = merge([berlin, other])
        assert both.clock is None
        assert {job.submit for job in both} == {60}
        assert any(note.startswith("the merged logs have no dates") and text in note for note in both.notes)
    assert merge([none, none]).notes == ()
