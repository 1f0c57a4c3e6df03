"""``simsched check`` and ``simsched feasible --config`` as stories: what they print, how they end."""

from __future__ import annotations

import json

import pytest

from tests.check.siteworld import PROPERTIES, QUEUES, r_document, written

LIMITS = """
[policy.jobspec.defaults.system]
queue = "long"
[queues.long]
[queues.short.policy.limits]
duration = "30m"
job-size.max.nnodes = 2
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The files of a sound site in the current folder."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, R_json=r_document(properties=PROPERTIES), queues_toml=QUEUES)


def test_a_sound_site_is_one_line(run, site):
    assert run("check", "R.json", "queues.toml") == (
        0,
        "no fault: 4 nodes, 16 cores; 2 queues; 2 files\n",
        "",
    )


def test_a_bundled_cluster_by_its_name(run, site):
    assert run("check", "tiny")[:2] == (0, "no fault: 4 nodes, 16 cores, 4 gpus; 1 file\n")


def test_a_fault_has_a_place_with_its_line_and_a_code(run, site, tmp_path):
    (tmp_path / "queues.toml").write_text(QUEUES.replace('["debug"]', '["debgu"]'))
    status, out, err = run("check", "R.json", "queues.toml")
    assert (status, err) == (1, "")
    assert out.splitlines()[0] == (
        "queues.toml:9: queues.debug.requires: error queue-property: "
        "no node has the property debgu; did you mean debug?"
    )
    assert out.splitlines()[-1] == "2 errors, 1 warning: 4 nodes, 16 cores; 2 queues; 2 files"


def test_json(run, site):
    status, out, _ = run("check", "R.json", "queues.toml", "--format", "json")
    document = json.loads(out)
    assert status == 0
    assert document["sound"] is True
    assert document["findings"] == []


def test_a_site_on_standard_input(run, site, tmp_path):
    text = (tmp_path / "R.json").read_text()
    assert run("check", "-", "queues.toml", stdin=text)[0] == 0
    assert run("check", "-", "-", stdin=text)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ((), "check: there is nothing to check (expected FILE…, or --site DIR)"),
        (("gone.json",), "gone.json"),
        (("empty.json",), "empty.json: the file is empty"),
        (("notes.txt",), "notes.txt: "),
        (("--site", "."), "the site has no cluster file"),
    ],
)
def test_a_wrong_input_is_status_2(run, site, tmp_path, arguments, fault):
    (tmp_path / "empty.json").write_text(" \n")
    (tmp_path / "notes.txt").write_text("Dear all,\nthe nodes are back.\n")
    status, out, err = run("check", *arguments)
    assert (status, out) == (2, "")
    assert fault in err
    assert "Traceback" not in err


def test_a_site_s_own_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nNodeName=n[0-3] CPUs=4 Sockets=1 CoresPerSocket=4\nPartitionName=p Nodes=n[0-1]\n"
    )
    status, out, _ = run("check", "slurm.conf")
    assert status == 1
    assert "warning node-unqueued: 2 of 4 nodes are in no queue: n[2-3]" in out


IN_LONG = """\
slot=3/node: yes in queue long
  note: default-queue: the request names no queue and goes to long
"""
NOT_IN_SHORT = """\
slot=3/node: never in queue short
  limit-duration: queue short allows 30m, the job asks for 1h
  limit-nodes-max: queue short allows 2 nodes, the job asks for 3
  would fit with: slot=2 instead of 3 and a duration of 30m
  queues that would take it: long
"""


def test_feasible_with_queues(run, tmp_path):
    (path,) = written(tmp_path, queues_toml=LIMITS)
    command = ("feasible", "tiny", "slot=3/node", "--config", path)
    assert run(*command) == (0, IN_LONG, "")
    assert run(*command, "--queue", "short", "--duration", "1h") == (1, NOT_IN_SHORT, "")


def test_feasible_in_a_queue_of_a_busy_cluster(run, tmp_path):
    (path,) = written(tmp_path, queues_toml=LIMITS)
    status, out, _ = run("feasible", "tiny", "slot=3/node", "--config", path, "--running", "slot=2/node")
    assert status == 1
    assert out.startswith("slot=3/node: later in queue long\n")
    assert "  graph-busy: slot/node: 3 needed, 2 available\n" in out


def test_feasible_as_table_and_json(run, tmp_path):
    (path,) = written(tmp_path, queues_toml=LIMITS)
    command = ("feasible", "tiny", "slot=3/node", "slot/core", "--config", path, "--queue", "short")
    assert run(*command, "--format", "table") == (
        1,
        "request      tiny\nslot=3/node  never\nslot/core    yes\n",
        "",
    )
    rows = json.loads(run(*command, "--format", "json")[1])
    assert [row["queues"]["short"] for row in rows] == [["limit-nodes-max"], []]


def test_feasible_on_a_site(run, tmp_path):
    written(tmp_path, cluster_yaml="groups:\n- {name: n, count: 4, cores: 4}\n", queues_toml=LIMITS)
    assert run("feasible", "--site", tmp_path, "slot=3/node", "--queue", "short")[0] == 1
    assert run("feasible", "--site", tmp_path, "slot=3/node")[:2] == (0, IN_LONG)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--queue", "a"), "--queue: --queue needs a configuration (expected --config FILE or --site DIR)"),
        (("--duration", "1h"), "--duration needs a configuration"),
        (("--config", "gone.toml"), "gone.toml"),
        (("--config", "bad.toml"), "bad.toml: not TOML"),
        (("--config", "odd.toml"), "unknown key 'quues'"),
        (("--config", "queues.toml", "--duration", "soon"), "--duration: "),
    ],
)
def test_wrong_options_of_feasible(run, tmp_path, monkeypatch, options, fault):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, queues_toml=LIMITS, bad_toml="[a", odd_toml="[quues.a]\n")
    status, out, err = run("feasible", "tiny", "core", *options)
    assert (status, out) == (2, "")
    assert fault in err
