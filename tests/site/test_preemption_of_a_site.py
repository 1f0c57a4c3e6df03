"""Preemption of a Slurm site: its lines in slurm.conf, the QOS of sacctmgr, and a run with both."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.cli import main
from simsched.site.import_site import import_site

CONF = """\
ClusterName=tux
SchedulerType=sched/builtin
PreemptType=preempt/qos
PreemptMode=REQUEUE
PreemptExemptTime=00:10:00
NodeName=n[1-4] CPUs=4
PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=1-0
"""
ROWS = """\
Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageFactor
normal|10|00:00:00|scavenger||cluster||1.000000
scavenger|0|00:02:00||00:00:00|cancel||1.000000
high|100|00:00:30|normal,scavenger|00:00:00|cluster||1.000000
long|50|00:00:00|||suspend,gang||1.000000
"""


def site_of(tmp_path, conf=CONF, rows=ROWS):
    etc = tmp_path / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "slurm.conf").write_text(conf)
    if rows:
        (etc / "qos.txt").write_text(rows)
    return import_site(etc)


def texts(site, kind):
    return [note.text for note in site.notes if note.kind == kind]


def test_the_qos_of_sacctmgr_make_the_table(tmp_path):
    """Of several QOS that of the lowest priority is preempted first; suspended jobs have no exempt time."""
    site = site_of(tmp_path)
    assert site.config["preemption"] == {
        "by": "qos",
        "mode": "requeue",
        "order": "priority",
        "exempt": 600,
        "qos": {
            "normal": {"preempts": ["scavenger"]},
            "scavenger": {"mode": "cancel", "grace": 120, "exempt": 0},
            "high": {"grace": 30, "exempt": 0, "preempts": ["scavenger", "normal"]},
            "long": {"mode": "suspend", "exempt": 0},
        },
    }
    assert "the QOS preempt these, the first one first: normal: scavenger; high: scavenger, normal" in texts(
        site, "assumed"
    )
    assert not any("accounting database" in text for text in texts(site, "left out"))


def test_the_json_of_qos_says_the_same(tmp_path):
    number = lambda value: {"set": value is not None, "infinite": False, "number": value or 0}  # noqa: E731

    def item(name, priority, grace, names, mode, exempt):
        preempt = {"list": names, "mode": [mode], "exempt_time": number(exempt)}
        return {
            "name": name,
            "priority": number(priority),
            "preempt": preempt,
            "limits": {"grace_time": grace},
        }

    items = [
        item("normal", 10, 0, ["scavenger"], "DISABLED", None),
        item("scavenger", 0, 120, [], "CANCEL", 0),
        item("high", 100, 30, ["normal", "scavenger"], "DISABLED", 0),
        item("long", 50, 0, [], "SUSPEND", None),
    ]
    table = site_of(tmp_path).config["preemption"]
    assert site_of(tmp_path, rows=json.dumps({"qos": items})).config["preemption"] == table


def test_without_the_qos_the_note_says_what_is_missing(tmp_path):
    site = site_of(tmp_path, rows="")
    assert "preemption" not in site.config
    assert any(
        "which QOS preempts another is in the accounting database" in text for text in texts(site, "left out")
    )


def test_a_mode_of_the_cluster_that_is_off_leaves_the_modes_of_qos(tmp_path):
    """Exempt times are those of the modes that end jobs."""
    site = site_of(tmp_path, CONF.replace("=REQUEUE", "=OFF"))
    found = site.config["preemption"]
    assert (found["mode"], found.get("exempt")) == ("off", None)
    assert found["qos"]["scavenger"] == {"mode": "cancel", "grace": 120, "exempt": 0}
    assert found["qos"]["normal"] == {"preempts": ["scavenger"]}
    rows = ROWS.replace("cancel", "cluster").replace(
        "00:00:00|cluster||1.000000\nhigh", "|cluster||1.000000\nhigh"
    )
    assert "preemption" not in site_of(tmp_path, CONF.replace("=REQUEUE", "=OFF"), rows).config
    rows = ROWS.replace("|00:00:00|cancel|", "||cancel|")
    found = site_of(tmp_path, CONF.replace("=REQUEUE", "=SUSPEND,GANG"), rows).config["preemption"]
    assert ("exempt" in found, found["qos"]["scavenger"]["exempt"]) == (False, 600)


def test_parts_that_are_not_held_are_named(tmp_path):
    conf = CONF.replace("=REQUEUE", "=REQUEUE,WITHIN") + "PreemptParameters=youngest_first,reorder_count=2\n"
    rows = ROWS.replace("|normal,scavenger|", "|high,normal,nights|").replace("00:02:00", "soon")
    site = site_of(tmp_path, conf, rows)
    assert site.config["preemption"]["order"] == "youngest"
    assert site.config["preemption"]["qos"]["high"]["preempts"] == ["normal"]
    left = texts(site, "left out")
    assert "PreemptParameters: reorder_count=2" in left
    assert "PreemptMode=WITHIN (jobs preempt others of their own QOS)" in left
    assert "QOS high preempts its own jobs" in left
    faults = texts(site, "fault")
    assert "QOS high preempts 'nights', which the file does not have" in faults
    assert any(text.startswith("gracetime: 'soon'") for text in faults)


def test_a_file_with_names_and_preempt_alone_is_known(tmp_path):
    rows = "Name|Preempt|PreemptMode\nlow||cancel\nhigh|low|\n"
    assert site_of(tmp_path, rows=rows).config["preemption"]["qos"] == {
        "low": {"mode": "cancel"},
        "high": {"preempts": ["low"]},
    }


JOBS = """\
- {id: low, shape: slot=4/node, runtime: 2h, duration: 3h, user: ann, qos: scavenger}
- {id: high, shape: slot=1/node, runtime: 1h, duration: 1h, user: bob, qos: high, submit: 10m}
"""


def test_an_imported_site_preempts(tmp_path, capsys):
    site_of(tmp_path)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    assert main(["site", "import", str(tmp_path / "etc"), "-o", str(tmp_path / "site")]) == 0
    printed = capsys.readouterr().out
    readme = (tmp_path / "site" / "README.md").read_text()
    assert "## Preemption" in readme
    assert "| QoS high | scavenger, normal | requeue | 30s | - |" in readme
    assert "QoS scavenger" in printed
    run = ["run", "--site", str(tmp_path / "site"), str(tmp_path / "jobs.yaml"), "--quiet", "--audit"]
    assert main([*run, "-o", str(tmp_path / "run")]) == 0
    jobs = ss.load_run(tmp_path / "run").jobs.set_index("id")
    assert (jobs["end"]["low"], jobs["result"]["low"], jobs["start"]["high"]) == (720, "CANCELED", 720)


@pytest.mark.parametrize("mode", ["cancel", "requeue"])
def test_partitions_preempt_by_tier(tmp_path, mode):
    conf = CONF.replace("preempt/qos", "preempt/partition_prio") + (
        f"PartitionName=spare Nodes=n[1-4] PriorityTier=0 PreemptMode={mode.upper()} GraceTime=60\n"
    )
    site = site_of(tmp_path, conf, "")
    assert site.config["preemption"]["queues"] == {"spare": {"mode": mode, "grace": 60}}
    assert site.config["queues"]["batch"]["preempts"] is True


def test_qos_whose_jobs_preempt_each_other_are_imported_without_the_loop(tmp_path):
    """sacctmgr refuses such QOS, so the file was edited."""
    rows = "Name|Priority|Preempt\na|1|\nb|5|a,c|\nc|9|d\nd|7|a,b,e\ne|2|d\n"
    site = site_of(tmp_path, rows=rows)
    assert texts(site, "fault") == [
        "QOS d preempts b, whose jobs preempt its own",
        "QOS e preempts d, whose jobs preempt its own",
    ]
    tables = site.config["preemption"]["qos"]
    assert {name: table["preempts"] for name, table in tables.items() if "preempts" in table} == {
        "b": ["a", "c"],
        "c": ["d"],
        "d": ["a", "e"],
    }
