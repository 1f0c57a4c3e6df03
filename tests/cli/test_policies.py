"""``simsched policies``: all that can be chosen, from the registries."""

from __future__ import annotations

import json
import re

from simsched.cli import main
from simsched.match.policies.policy import POLICIES as MATCH_POLICIES
from simsched.schedule.orders.order import ORDERS
from simsched.schedule.orders.priority_rules import FACTORS
from simsched.schedule.policies.registry import POLICIES
from simsched.schedule.predictors.predictor import PREDICTORS
from simsched.simulation.limits.limit_kinds import KINDS
from simsched.simulation.reservations.reservation_rules import AdvanceReservation
from simsched.workload.transforms.steps import STEPS


def test_every_registry_is_listed(capsys):
    assert main(["policies", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = {kind: [entry["name"] for entry in listed["entries"]] for kind, listed in found.items()}
    assert set(names["queue-policies"]) >= set(POLICIES)
    assert set(names["orders"]) >= {*ORDERS, "multifactor"}
    assert names["factors"] == list(FACTORS)
    assert names["limits"] == list(KINDS)
    assert set(names["predictors"]) == {"limit", *PREDICTORS}
    assert names["reservations"] == list(AdvanceReservation.schema()["properties"])
    assert names["match-policies"] == list(MATCH_POLICIES)
    assert all(entry["text"] for listed in found.values() for entry in listed["entries"])


def test_every_option_of_backfill_belongs_to_a_queue_policy(capsys):
    assert main(["policies", "backfill", "queue-policies", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    taken = " ".join(entry["options"] for entry in found["queue-policies"]["entries"])
    for entry in found["backfill"]["entries"]:
        assert f"{entry['name']}=" in taken


def test_every_choice_of_a_site_has_a_source(capsys):
    kinds = ["queue-policies", "orders", "factors", "fair-share", "predictors", "limits", "backfill"]
    assert main(["policies", *kinds, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    source = re.compile(r"\d{4}|Slurm|slurm|flux|Fluxion|PBS|Maui|RFC|simsched|as F1")
    entries = [(kind, entry) for kind in kinds for entry in found[kind]["entries"]]
    assert [(kind, entry["name"]) for kind, entry in entries if not source.search(entry["text"])] == []


def test_one_kind(capsys):
    assert main(["policies", "fair-share"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "fair-share (priority.fair-share.method)"
    assert [line.split()[0] for line in lines[1:]] == ["fair-tree", "classic", "weighted-tree"]


def test_transforms_are_listed_by_form(capsys):
    assert main(["policies", "transforms", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["transforms"]
    assert found["option"] == "--transform"
    assert [re.split(r"\W", entry["name"])[0] for entry in found["entries"]] == list(STEPS)


def test_an_unknown_kind(capsys):
    assert main(["policies", "order"]) == 2
    assert "unknown kind 'order'; did you mean orders?" in capsys.readouterr().err


def test_policies_of_installed_packages_are_listed(capsys, tmp_path, monkeypatch):
    """Of each kind that has an entry-point group; one that cannot be loaded says why."""
    package = tmp_path / "listed-1.0.dist-info"
    package.mkdir()
    package.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: listed\nVersion: 1.0\n")
    groups = ("match_policies", "job_orders", "queue_policies", "priority_factors", "predictors", "metrics",
              "workload_readers", "cluster_readers", "report_sections")  # fmt: skip
    package.joinpath("entry_points.txt").write_text(
        "".join(f"[simsched.{group}]\nmine-{group} = listed:it\n" for group in groups)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for group in groups:
        (line,) = [line for line in lines if f"mine-{group}" in line]
        assert line.endswith("cannot be loaded: No module named 'listed'")


def test_kinds_without_plug_ins(capsys):
    assert main(["policies", "report-sections"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "report-sections (--section)",
        "  none of an installed package",
    ]


def test_a_policy_in_place_of_a_kind_is_answered_with_its_kind(capsys):
    assert main(["policies", "sjf"]) == 2
    assert "unknown kind 'sjf'; it is one of the orders" in capsys.readouterr().err
