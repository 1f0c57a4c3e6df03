"""Files, options, names and Python of the how-to pages are accepted; test_pages checks the output."""

from __future__ import annotations

import re
import shlex
import shutil

import numpy as np
import pytest

import simsched as ss
from simsched.cli import main
from simsched.match.policies.policy import POLICIES as MATCH_POLICIES
from simsched.match.policies.policy import MatchPolicy
from simsched.match.requests.dialect import DIALECTS
from simsched.schedule.orders.fairshare import FairShare
from simsched.schedule.orders.order import ORDERS
from simsched.schedule.orders.ranking import Order
from simsched.schedule.policies.registry import POLICIES as QUEUE_POLICIES
from simsched.workload.transforms.steps import STEPS
from tests import REPOSITORY
from tests.manual import pages


def page(name):
    return (REPOSITORY / "docs" / f"{name}.md").read_text(encoding="utf-8")


def blocks(name, language):
    found = pages.blocks(REPOSITORY / "docs" / f"{name}.md")
    return [block.text for block in found if block.language == language]


def section(name, title):
    return page(name).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_column(text):
    """The code spans of the first column of the tables in a text; headings such as `--order` do not count."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`(.+?)`", cell) if not word.startswith("--")]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- workloads -----------------------------------------------------------------------


def test_the_jobs_of_the_page(here, capsys):
    shutil.copytree(REPOSITORY / "workloads" / "jobspecs", here / "jobspecs")
    (here / "jobs.yaml").write_text(blocks("workloads", "yaml")[0])
    assert main(["workload", "show", "jobs.yaml"]) == 0
    assert "12 jobs" in capsys.readouterr().out


def test_the_mix_of_the_page(here, capsys):
    (here / "mix.yaml").write_text(blocks("workloads", "yaml")[1])
    assert main(["workload", "make", "mix", "mix.yaml", "--to", "jobs"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 100


@pytest.mark.parametrize("options", re.findall(r"^    (--map .*)", page("workloads"), re.MULTILINE))
def test_the_maps_of_the_page(options, capsys):
    assert main(["workload", "show", "slurm-day", "--limit", "50", *shlex.split(options, comments=True)]) == 0


def test_the_page_has_every_transform():
    steps = {step.partition("(")[0] for step in first_column(section("workloads", "Transforms"))}
    assert steps == set(STEPS)


# --- simulation ----------------------------------------------------------------------


def test_the_queues_of_the_page(here):
    (here / "config.toml").write_text(blocks("simulation", "toml")[0])
    (here / "outages.yaml").write_text(blocks("simulation", "yaml")[0])
    options = "--nodes 16 --cores 4 --gpus 2 --property batch -o cluster.json"
    assert main(["cluster", "make", *options.split()]) == 0
    options = "cluster.json first-steps --config config.toml --outages outages.yaml -o out --audit --quiet"
    assert main(["run", *options.split()]) == 0


def test_the_python_of_the_page(here):
    exec(blocks("simulation", "python")[0], {})
    assert (here / "easy" / "run.json").is_file()


def test_the_page_has_every_policy_and_order():
    assert set(first_column(section("queue_policies", "Queue policies"))) == set(QUEUE_POLICIES)
    assert set(first_column(section("queue_policies", "Job orders"))) == {*ORDERS, FairShare.name}


def test_the_policy_and_the_order_of_the_page():
    names = {"Order": Order}
    exec(blocks("queue_policies", "python")[0].replace(": ...", ": self.aging = aging"), names)
    assert "run_pass" in dir(names["Patient"])
    found = ss.simulate("tiny", "first-steps", names["Patient"](0.2), order=names["NARROW_FIRST"])
    assert (found.jobs["result"] == "COMPLETED").sum() == 16


# --- matching ------------------------------------------------------------------------


def test_the_python_of_matching():
    first, policy, dialect = blocks("matching", "python")
    names = {"np": np, "MatchPolicy": MatchPolicy, "cluster": "tiny"}
    exec(first, names)
    assert str(names["got"].R.ranks) == "0-1"
    exec(policy, names)
    matched = ss.Matcher("tiny", policy=names["EVEN_FIRST"]).match(ss.Jobspec.from_shape("slot=2/node"))
    assert str(matched.R.ranks) == "0,2"
    try:
        exec(dialect, names)
    finally:
        DIALECTS.pop("sharing")


def test_the_page_has_every_match_policy():
    listed = first_column(section("matching", "Match policies").partition("On 4 nodes")[0])
    assert set(listed) == set(MATCH_POLICIES)


# --- reports -------------------------------------------------------------------------


def test_the_python_of_reports(here, capsys):
    for policy in ("easy", "fcfs"):
        ss.simulate("tiny", "first-steps", policy).save(policy)
    names = {}
    for block in blocks("reports", "python"):
        exec(block, names)
    assert names["found"].verdict == "no difference shown"
    table = section("reports", "Columns").partition("### `run.timeline`")[0]
    columns = re.findall(r"^\| ([a-z_, ]+) \|", table.partition("|---|")[2], re.MULTILINE)
    assert [name for cell in columns for name in cell.split(", ")] == list(names["run"].jobs.columns)
