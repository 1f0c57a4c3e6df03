"""Hours of queues by days of the week, dates of outages and windows, in the time zone of the log."""

from __future__ import annotations

import itertools

import pytest

from simsched import Cluster, load_cluster, load_workload, simulate
from simsched.errors import ConfigError
from simsched.formats.rfc.clock import Clock, parse_date
from simsched.simulation.queue_hours import stops_until, windows_of
from simsched.simulation.queues import Queues, WeeklyHours

HEADER = "; UnixStartTime: 1711785600\n; TimeZoneString: Europe/Berlin\n"  # Saturday 2024-03-30T09:00 there
CLOCK = Clock(1_711_785_600, "Europe/Berlin")


def swf(*jobs: tuple[int, int], header: str = HEADER) -> str:
    rows = (
        f"{n} {at} -1 {run} 1 -1 -1 1 {run} -1 1 1 1 -1 1 -1 -1 -1" for n, (at, run) in enumerate(jobs, 1)
    )
    return header + "\n".join(rows) + "\n"


@pytest.fixture
def cluster() -> Cluster:
    return load_cluster("tiny")


@pytest.fixture
def log(tmp_path):
    def written(*jobs, header=HEADER):
        (tmp_path / "log.swf").write_text(swf(*jobs, header=header))
        return load_workload(tmp_path / "log.swf")

    return written


def starts(cluster, workload, **options) -> list[str]:
    result = simulate(cluster, workload, **options)
    return [CLOCK.text(float(start)) for start in result.jobs["start"]]


@pytest.mark.parametrize(
    ("text", "days", "begin", "end"),
    [
        ("Mon-Fri 08:00-18:00", (0, 1, 2, 3, 4), 480, 1080),
        ("sat,Sunday", (5, 6), 0, 1440),
        ("22:00-6:00", (0, 1, 2, 3, 4, 5, 6), 1320, 360),
        ("Fri-Mon 00:00-24:00", (0, 4, 5, 6), 0, 1440),
        ("daily 12:00-13:00", (0, 1, 2, 3, 4, 5, 6), 720, 780),
    ],
)
def test_weekly_hours(text, days, begin, end):
    found = WeeklyHours.parse(text)
    assert (found.days, found.begin, found.end, str(found)) == (days, begin, end, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Mon-",
        "Funday",
        "Mon 8-18",
        "Mon 08:00-08:00",
        "Mon 25:00-26:00",
        "08:60-09:00",
        "Mo 08:00-09:00x",
    ],
)
def test_bad_hours_are_refused_with_their_place(text):
    with pytest.raises(ConfigError) as error:
        Queues.from_dict({"day": {"closed": [text]}})
    assert error.value.where == "queues.day.closed"


def test_hours_are_local_on_both_sides_of_the_change_to_summer_time():
    hours = WeeklyHours.parse("Sat-Mon 08:00-18:00").on_clock(CLOCK)
    found = [tuple(map(CLOCK.text, window)) for window in itertools.islice(hours.windows(0), 3)]
    assert found == [(f"2024-{day}T08:00:00", f"2024-{day}T18:00:00") for day in ("03-30", "03-31", "04-01")]


def test_windows_of_all_forms_are_joined():
    queues = Queues.from_dict(
        {"q": {"closed": [["1h", "2h"], "Sat 10:30-12:00", ["2024-03-30T11:30", "2024-03-30T13:00"]]}}
    )
    windows = itertools.islice(windows_of(queues.on_clock(CLOCK).queues["q"], 0), 2)
    assert [tuple(map(CLOCK.text, window)) for window in windows] == [
        ("2024-03-30T10:00:00", "2024-03-30T13:00:00"),
        ("2024-04-06T10:30:00", "2024-04-06T12:00:00"),
    ]


def test_hours_without_a_gap_close_the_queue_for_ever():
    queue = Queues.from_dict({"q": {"closed": ["Mon-Sat", "Sun 00:00-24:00"]}}).on_clock(CLOCK).queues["q"]
    assert stops_until(queue, 10) == [(0, None)]


def test_jobs_start_when_the_queue_opens_in_local_time(cluster, log):
    """The clocks go forward in the night to Sunday, so its 08:00 comes an hour sooner."""
    workload = log((0, 60), (40000, 60), (90000, 60), (206_000, 60))
    queues = {"1": {"closed": ["18:00-08:00"]}}
    assert starts(cluster, workload, queues=queues) == [
        "2024-03-30T09:00:00",
        "2024-03-31T08:00:00",  # submitted at 20:06
        "2024-03-31T11:00:00",
        "2024-04-02T08:00:00",  # submitted at 19:13 of Monday
    ]


def test_hours_end_with_the_jobs_and_before_jobs_that_can_never_start(cluster, log):
    result = simulate(cluster, log((0, 60)), queues={"1": {"closed": ["Mon-Fri 08:00-18:00"]}})
    assert result.meta["queue_stops"] == {"1": []}
    away = [{"ranks": "0-3", "start": 0}]
    never = simulate(cluster, log((0, 60)), queues={"1": {"closed": ["Mon-Fri 08:00-18:00"]}}, outages=away)
    assert result.timeline["time"].max() == 60
    assert never.meta["counts"]["run"] == 0


def test_two_queues_whose_hours_never_overlap_both_run(cluster, log):
    workload = log((0, 60), (10, 60))
    jobs = [job.__class__(**{**{f: getattr(job, f) for f in job.__struct_fields__}, "queue": name})
            for job, name in zip(workload.jobs, ("a", "b"), strict=True)]  # fmt: skip
    queues = {"a": {"closed": ["Sat-Thu"]}, "b": {"closed": ["Fri-Wed"]}}
    found = starts(cluster, workload.with_jobs(jobs, "queues"), queues=queues)
    assert found == ["2024-04-05T00:00:00", "2024-04-04T00:00:00"]


def test_outages_and_the_end_of_the_run_take_dates(cluster, log):
    workload = log((0, 60), (3600, 60))
    outages = [
        {"ranks": "0-3", "start": "2024-03-30T09:30", "end": "2024-03-30T12:00+01:00", "kind": "drain"},
        {"ranks": "0", "start": "2020-01-01", "end": "2020-01-02"},
    ]
    result = simulate(cluster, workload, outages=outages, until="2024-03-30T13:00")
    assert [CLOCK.text(float(s)) for s in result.jobs["start"]] == [
        "2024-03-30T09:00:00",
        "2024-03-30T12:00:00",
    ]
    assert [(o["start"], o["end"]) for o in result.meta["config"]["outages"]] == [(1800, 10800)]
    assert (result.meta["until"], result.meta["clock"]["zone"]) == (14400, "Europe/Berlin")


def test_the_same_run_by_dates_and_by_seconds(cluster, log):
    workload = log((0, 60), (3600, 60))
    by_date = simulate(
        cluster, workload, queues={"1": {"closed": [["2024-03-30T09:50", "2024-03-30T11:00"]]}}
    )
    by_seconds = simulate(cluster, workload, queues={"1": {"closed": [[3000, 7200]]}})
    assert by_date.jobs["start"].tolist() == by_seconds.jobs["start"].tolist() == [0, 7200]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"until": "2024-03-31"}, "until"),
        ({"measure_from": "2024-03-31"}, "from"),
        ({"outages": [{"ranks": "0", "start": "2024-03-31"}]}, r"outages\[0\]"),
        ({"queues": {"1": {"closed": ["Mon-Fri"]}}}, "queues.1.closed"),
        ({"queues": {"1": {"closed": [["2024-03-31", "2024-04-01"]]}}}, "queues.1.closed"),
        ({"checkpoints": {"2024-03-31": "x"}}, "checkpoint"),
    ],
)
def test_a_date_for_a_log_without_dates_is_one_error(cluster, log, options, place):
    with pytest.raises(ConfigError, match=f"^{place}: the workload has no dates"):
        simulate(cluster, log((0, 60), header=""), **options)


def test_dates_outside_of_the_log_say_which_dates_it_has(cluster, log):
    with pytest.raises(ConfigError, match="from 2024-03-30T09:00:00 to 2024-03-30T10:00:00, Europe/Berlin"):
        simulate(cluster, log((0, 60), (3600, 60)), until="2024-03-29")
    with pytest.raises(ConfigError, match="no job is submitted at 2025-01-01T00:00:00 or later"):
        simulate(cluster, log((0, 60)), measure_from="2025-01-01")


def test_windows_and_outages_that_run_backwards_are_refused(cluster, log):
    for options in (
        {"outages": [{"ranks": "0", "start": "2024-04-01", "end": "2024-03-31"}]},
        {"queues": {"1": {"closed": [["2024-04-01", "2024-03-31"]]}}},
    ):
        with pytest.raises(ConfigError, match="2024-04-01"):
            simulate(cluster, log((0, 60)), **options)


def test_a_run_of_a_log_without_dates_records_no_clock(cluster, log):
    assert "clock" not in simulate(cluster, log((0, 60), header="; UnixStartTime: 0\n")).meta


def test_a_checkpoint_within_the_hours_continues_the_same(cluster, log, tmp_path):
    workload, queues = log((0, 60), (40000, 60), (400_000, 60)), {"1": {"closed": ["18:00-08:00"]}}
    file = tmp_path / "state"
    whole = simulate(cluster, workload, queues=queues, checkpoints={"2024-03-30T23:00": file})
    again = simulate(cluster, workload, queues=queues, resume=file)
    assert whole.jobs["start"].tolist() == again.jobs["start"].tolist()
    assert whole.meta["queue_stops"] == again.meta["queue_stops"]


def test_rebase_keeps_dates_and_slices_take_them(log):
    from numpy.random import default_rng

    from simsched.workload.transforms.steps import apply_steps

    workload = log((0, 60), (3600, 60), (90000, 60))
    cut = apply_steps(workload, ["slice(2024-03-30T10:00, 2024-03-31)", "rebase"], default_rng(0))
    assert [job.submit for job in cut.jobs] == [0]
    assert cut.clock.text(0) == "2024-03-30T10:00:00"
    assert cut.clock.seconds(parse_date("2024-03-30T11:00")) == 3600
