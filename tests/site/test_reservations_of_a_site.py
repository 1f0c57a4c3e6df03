"""Advance reservations of a Slurm site: the text and the JSON of scontrol, and a run with them."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import FormatError
from simsched.formats.machines.read import describe_text
from simsched.site.import_site import import_site

CONF = """\
ClusterName=tux
SchedulerType=sched/backfill
NodeName=n[1-4] CPUs=4 Feature=fast
PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=1-0
"""
TEXT = """\
ReservationName=course StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T12:00:00 Duration=02:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=batch Flags=WEEKLY,SPEC_NODES
   TRES=cpu=8
   Users=ann,bob Groups=(null) Accounts=bio Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=repair StartTime=2026-03-02T11:00:00 EndTime=2026-03-02T14:00:00 Duration=03:00:00
   Nodes=ALL NodeCnt=4 CoreCnt=16 Features=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES,ALL_NODES
   TRES=cpu=16
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)
"""
COURSE = {
    "name": "course",
    "start": "2026-03-02T10:00:00",
    "duration": 7200,
    "hosts": "n[1-2]",
    "users": ["ann", "bob"],
    "accounts": ["bio"],
    "match": "all",
    "repeat": "weekly",
    "times": 53,
}
REPAIR = {
    "name": "repair",
    "start": "2026-03-02T11:00:00",
    "duration": 10800,
    "hosts": "all",
    "users": ["root"],
    "overlaps": True,
    "ignore-jobs": True,
}


def site_of(tmp_path, text=TEXT, **options):
    etc = tmp_path / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "slurm.conf").write_text(CONF)
    (etc / "reservations.txt").write_text(text)
    return import_site(etc, **options)


def texts(site, kind):
    return [note.text for note in site.notes if note.kind == kind]


def test_the_text_of_scontrol(tmp_path):
    site = site_of(tmp_path)
    assert site.config["reservations"] == [COURSE, REPAIR]
    assert texts(site, "fault") == []
    assumed = texts(site, "assumed")
    assert "reservation course: weekly from its start on, 53 times" in assumed
    assert "reservation repair: MAINT; reports count its nodes as available" in assumed


def test_one_line_per_reservation_and_nodes_in_one_text():
    lines = "\n".join(" ".join(block.split()) for block in TEXT.split("\n\n"))
    assert describe_text(lines, "r.txt").config["reservations"] == [COURSE, REPAIR]
    nodes = "NodeName=n1 Arch=x86_64 CoresPerSocket=4\n   CPUAlloc=0 CPUTot=4 Sockets=1 State=IDLE\n\n"
    found = describe_text(nodes + TEXT, "all.txt")
    assert (len(found.recipe.groups), len(found.config["reservations"])) == (1, 2)


def test_the_json_of_scontrol(tmp_path):
    """Times are seconds since 1970; an end without a limit is a year."""
    number = lambda value: {"set": True, "infinite": False, "number": value}  # noqa: E731
    rows = [
        {
            "name": "course",
            "start_time": number(1772445600),
            "end_time": number(1772452800),
            "node_list": "n[1-2]",
            "node_count": 2,
            "flags": ["WEEKLY", "SPEC_NODES"],
            "users": "ann,bob",
            "accounts": "bio",
            "licenses": "",
            "max_start_delay": 0,
            "watts": {"set": False, "infinite": False, "number": 0},
        },
        {
            "name": "study",
            "start_time": 1772445600,
            "end_time": {"set": True, "infinite": True, "number": 0},
            "node_list": "n4",
            "users": "root",
            "core_specializations": [{"node": "n4", "core": "0-1"}],
        },
    ]
    site = site_of(tmp_path, json.dumps({"reservations": rows}))
    first, second = site.config["reservations"]
    assert first == {**COURSE, "start": "2026-03-02T10:00:00Z"}
    assert second == {
        "name": "study", "start": "2026-03-02T10:00:00Z", "duration": 365 * 86400, "hosts": "n4",
        "users": ["root"], "cores": {"n4": "0-1"},
    }  # fmt: skip


def test_a_number_of_nodes_with_features_and_older_forms_of_a_duration(tmp_path):
    """Duration=120 is minutes, and 4294967295 has no end (Slurm 2)."""
    text = """\
ReservationName=a StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T12:00:00 Duration=120
   Nodes=(null) NodeCnt=2 Features=fast PartitionName=batch Flags= Users=ann Accounts=(null)

ReservationName=b StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T09:59:59 Duration=4294967295
   Nodes=n4 NodeCnt=1 Features=(null) PartitionName=(null) Flags=FLEX Users=-ann Accounts=bio

ReservationName=c StartTime=2026-03-02T10:00:00 EndTime=2026-03-03T10:00:00 Duration=N/A
   Nodes=n3 NodeCnt=1 Flags=DAILY Users=ann
"""
    first, second, third = site_of(tmp_path, text).config["reservations"]
    assert first == {
        "name": "a", "start": "2026-03-02T10:00:00", "duration": 7200, "nodes": 2, "requires": ["fast"],
        "users": ["ann"],
    }  # fmt: skip
    assert (second["duration"], second["flex"], second["accounts"]) == (365 * 86400, True, ["bio"])
    assert (third["duration"], third["repeat"], third["times"]) == (86400, "daily", 366)


def test_what_is_not_held_is_named(tmp_path):
    text = """\
ReservationName=a StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T12:00:00 Duration=02:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=2 Features=(null) Flags=NEWER,PURGE_COMP=00:05:00
     NodeName=n1 CoreIDs=0-1
   TRES=cpu=2
   Users=-eve Groups=staff Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=00:10:00

ReservationName=moves StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T12:00:00 Duration=02:00:00
   Nodes=n1 NodeCnt=1 Flags=TIME_FLOAT Users=ann

ReservationName=b StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T12:00:00 Duration=02:00:00
   Nodes=n1 NodeCnt=1 CoreCnt=2 Flags=MAINT Users=ann
     NodeName=n1 CoreIDs=0-1

ReservationName=licences StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T12:00:00 Duration=02:00:00
   Nodes= NodeCnt=0 Flags=ANY_NODES,MAGNETIC Users=ann Licenses=lustre*1000
"""
    site = site_of(tmp_path, text)
    assert [one["name"] for one in site.config["reservations"]] == ["a", "b", "licences"]
    assert not {"users", "repeat", "cores"} & site.config["reservations"][0].keys()
    left = texts(site, "left out")
    for part in (
        "a: NEWER",
        "a: PURGE_COMP (it ends once its last job has ended; here it lasts to its end)",
        "a: cores of some of its nodes; whole nodes are reserved",
        "a: users that may not use it (-eve)",
        "a: Groups=staff",
        "a: MaxStartDelay=00:10:00",
        "b: cores of a node with MAINT or OVERLAP; whole nodes are reserved",
        (
            "moves: TIME_FLOAT (its start moves with the time, by how much is not stated; "
            'write start = "now+1h" for an hour)'
        ),
        "licences: MAGNETIC of licences alone",
    ):
        assert f"reservation {part}" in left


PARTS = """\
ReservationName=cores StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T12:00:00 Duration=02:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=3 Features=(null) PartitionName=batch Flags=SPEC_NODES,WEEKDAY,MAGNETIC
     NodeName=n1 CoreIDs=0-1
     NodeName=n2 CoreIDs=3
   TRES=cpu=3
   Users=ann Groups=(null) Accounts=(null) Licenses=lustre:2 State=INACTIVE BurstBuffer=(null)

ReservationName=lustre StartTime=2026-03-07T10:00:00 EndTime=2026-03-07T12:00:00 Duration=02:00:00
   Nodes= NodeCnt=0 CoreCnt=0 Features=(null) PartitionName=(null) Flags=LICENSE_ONLY,WEEKEND
   TRES=(null)
   Users=root Groups=(null) Accounts=(null) Licenses=lustre*3,ansys State=INACTIVE BurstBuffer=(null)
"""


@pytest.mark.parametrize("one_line", [False, True])
def test_cores_licences_weekdays_and_magnetic(tmp_path, one_line):
    text = "\n".join(" ".join(block.split()) for block in PARTS.split("\n\n")) if one_line else PARTS
    etc = tmp_path / "etc"
    etc.mkdir()
    (etc / "slurm.conf").write_text(CONF + "Licenses=lustre:4,ansys:1\n")
    (etc / "reservations.txt").write_text(text)
    site = import_site(etc)
    cores, lustre = site.config["reservations"]
    assert cores == {
        "name": "cores", "start": "2026-03-02T10:00:00", "duration": 7200, "hosts": "n[1-2]",
        "cores": {"n1": "0-1", "n2": "3"}, "licenses": {"lustre": 2}, "users": ["ann"],
        "repeat": "weekdays", "times": 261, "magnetic": True,
    }  # fmt: skip
    assert lustre == {
        "name": "lustre", "start": "2026-03-07T10:00:00", "duration": 7200,
        "licenses": {"lustre": 3, "ansys": 1}, "users": ["root"], "repeat": "weekends", "times": 105,
    }  # fmt: skip
    assert texts(site, "fault") == []
    (etc / "reservations.txt").write_text(text.replace("CoreIDs=3", "CoreIDs=4"))
    assert "cores" not in (found := import_site(etc)).config["reservations"][0]
    assert texts(found, "fault") == ["reservation cores: n2 has no core 4; whole nodes are reserved"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Duration=02:00:00", "Duration=soon", "'soon' is not a time"),
        ("Duration=02:00:00", "Duration=00:00:00", "it lasts 0 s"),
        ("StartTime=2026-03-02T10:00:00", "StartTime=later", "course: StartTime: 'later' is not a date"),
        ("StartTime=2026-03-02T10:00:00", "StartTime=1772438400000", "'1772438400000' is not a date"),
        ("StartTime=2026-03-02T10:00:00", f"StartTime={'9' * 30}", "9' is not a date"),
        ("Duration=02:00:00", "Duration=8-00:00:00", "it is weekly and lasts 691200 s"),
        ("Nodes=n[1-2]", "Nodes=n[2-1]", "nodes: "),
        ("Nodes=n[1-2]", "Nodes=n[1-2],m7", "reservation course: there is no node m7"),
        ("ReservationName=repair", "ReservationName=course", "the reservation 'course' occurs twice"),
    ],
)  # fmt: skip
def test_lines_that_are_not_understood(tmp_path, old, new, message):
    """Each is one note; --strict makes it the error."""
    text = TEXT.replace(old, new, 1)
    assert any(message in note for note in texts(site_of(tmp_path, text), "fault"))
    with pytest.raises(FormatError) as caught:
        site_of(tmp_path, text, strict=True)
    assert message in str(caught.value)


JOBS = """\
JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqNodes|ReqCPUS|Reservation
1|eve|phys|batch|COMPLETED|2026-03-02T09:00:00|2026-03-02T09:00:00|2026-03-02T09:30:00|1800|90|1|16|
2|ann|bio|batch|COMPLETED|2026-03-02T09:10:00|2026-03-02T10:00:00|2026-03-02T10:30:00|1800|40|1|4|course
3|ann|bio|batch|COMPLETED|2026-03-02T09:20:00|2026-03-02T10:00:00|2026-03-02T10:30:00|1800|90|1|4|course
4|ann|phys|batch|COMPLETED|2026-03-02T09:20:00|2026-03-02T10:00:00|2026-03-02T10:30:00|1800|40|1|4|course
5|eve|phys|batch|COMPLETED|2026-03-02T09:40:00|2026-03-02T10:00:00|2026-03-02T10:30:00|1800|60|1|8|
"""


def test_an_imported_site_keeps_its_nodes(tmp_path, capsys):
    """Job 1 would run into the window; 3 into the repair; 4 has another account; 5 takes the other nodes."""
    site_of(tmp_path)
    (tmp_path / "jobs.sacct").write_text(JOBS)
    assert main(["site", "import", str(tmp_path / "etc"), "-o", str(tmp_path / "site")]) == 0
    assert "course" in capsys.readouterr().out
    readme = (tmp_path / "site" / "README.md").read_text()
    assert (
        "| course | 2026-03-02T10:00:00 | 2h | n[1-2] | users ann, bob and accounts bio | weekly, 53 times |"
        in readme
    )
    run = ["run", "--site", str(tmp_path / "site"), str(tmp_path / "jobs.sacct"), "--quiet", "--audit"]
    assert main([*run, "-o", str(tmp_path / "run")]) == 0
    found = ss.load_run(tmp_path / "run")
    jobs = found.jobs.set_index("id")
    hour = 3600
    start = jobs["start"].to_dict()
    assert (start["2"], start["5"], start["1"]) == (hour, 40 * 60, 5 * hour)
    assert "is for users ann, bob and accounts bio" in jobs["reason"]["4"]
    assert jobs["result"]["3"] == "PENDING" or start["3"] > 7 * 86400


def test_the_log_of_a_site_is_played_without_its_reservations_and_preemption(tmp_path):
    """The recorded starts had to do with both; a job of an unknown reservation starts when the log says."""
    site_of(tmp_path)
    (tmp_path / "etc" / "slurm.conf").write_text(
        CONF.replace("NodeName", "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nNodeName")
        + "PartitionName=spare Nodes=n[1-4] PriorityTier=0\n"
    )
    (tmp_path / "jobs.sacct").write_text(JOBS.replace("|course", "|older"))
    assert main(["site", "import", str(tmp_path / "etc"), "-o", str(tmp_path / "site"), "--quiet"]) == 0
    run = ["run", "--site", str(tmp_path / "site"), str(tmp_path / "jobs.sacct"), "--quiet", "--audit"]
    assert main([*run, "--queue-policy", "recorded", "-o", str(tmp_path / "run")]) == 0
    found = ss.load_run(tmp_path / "run")
    assert found.jobs["start"].tolist() == [0, 3600, 3600, 3600, 5400]  # 16 cores are too few for all
    assert not {"preemption", "reservations"} & found.meta["config"].keys()
