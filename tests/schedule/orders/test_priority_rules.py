"""The document of priorities: presets, and one error for each thing that is wrong."""

from __future__ import annotations

import pytest

from simsched.errors import SimschedError
from simsched.schedule.orders.priority_rules import PriorityRules

AGE = {"age": 1000}


def read(document):
    return PriorityRules.read(document, "priority")


def options_of(factor):
    return dict(factor.to_dict()["options"])


def test_a_factor_is_a_weight_or_a_table():
    rules = read({"factors": {"age": 10, "big": {"kind": "size", "weight": -2, "favour": "large"}}})
    assert [(factor.name, factor.kind, factor.weight) for factor in rules.factors] == [
        ("age", "age", 10.0),
        ("big", "size", -2.0),
    ]


def test_the_lines_of_slurm():
    lines = {
        "PriorityWeightAge": 1000, "PriorityWeightFairShare": "10000", "PriorityDecayHalfLife": "14-0",
        "PriorityMaxAge": "1-0", "PriorityFavorSmall": "YES", "PriorityWeightJobSize": 5,
        "PriorityCalcPeriod": 2, "PriorityFlags": "NO_FAIR_TREE,ACCRUE_ALWAYS", "FairShareDampeningFactor": 3,
        "PriorityUsageResetPeriod": "WEEKLY", "PriorityWeightTRES": "CPU=10,Mem=20",
    }  # fmt: skip
    rules = read({"preset": "slurm", "lines": lines})
    fair = rules.fair_share
    assert (fair.method, fair.half_life, fair.dampening, fair.reset) == ("classic", 14 * 86400, 3, 7 * 86400)
    assert (rules.period, rules.rounding, rules.least, rules.age_from) == (120, "down", 1, "submit")
    assert {factor.name: (factor.weight, options_of(factor)) for factor in rules.factors} == {
        "age": (1000, {"max": 86400}),
        "fair-share": (10000, {}),
        "size": (5, {"favour": "small"}),
        "cores": (10, {"of": "queue"}),
        "memory": (20, {"of": "queue"}),
    }


def test_the_formula_of_flux_accounting():
    """The weights of its job-priorities.rst; a line changes one of them."""
    rules = read({"preset": "flux-accounting", "lines": {"bank": 10, "banks": {"A": 300}}})
    weights = {factor.name: factor.weight for factor in rules.factors}
    assert weights == {"fair-share": 100_000, "queue": 10_000, "account": 10, "urgency": 1_000}
    assert (rules.rounding, rules.least, rules.expedite) == ("nearest", 0, True)
    assert rules.fair_share.method == "weighted-tree"


def test_keys_beside_a_preset_count_before_it():
    rules = read(
        {"preset": "slurm", "lines": {"PriorityWeightAge": 1}, "period": "0s", "factors": {"size": 2}}
    )
    assert rules.period == 0
    assert [factor.name for factor in rules.factors] == ["age", "size"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"factors": {"age": "many"}}, "priority.factors.age.weight: 'many' is not a finite number"),
        ({"factors": {"age": float("nan")}}, "priority.factors.age.weight: nan is not a finite number"),
        (
            {"factors": {"age": {"weight": 1, "least": 2, "most": 1}}},
            "priority.factors.age: the least value 2",
        ),
        (
            {"preset": "slurm", "lines": {"PriorityWeightAge": "1", "PriorityMaxAge": "0"}},
            "priority.lines.PriorityMaxAge: PriorityMaxAge: '0' is too short",
        ),
        ({"factors": {"age": True}}, "priority.factors.age.weight: True is not a finite number"),
        ({"factors": {"agee": 1}}, "priority.factors.agee: unknown factor 'agee'; did you mean age"),
        ({"factors": {}}, "priority.factors: there are no factors"),
        ({"factors": {"age": {"max": "1d"}}}, "priority.factors.age: the key 'weight' is missing"),
        ({"factors": {"age": {"weight": 1, "maxx": 1}}}, "priority.factors.age: unknown key 'maxx'"),
        ({"factors": {"attribute": 1}}, "priority.factors.attribute: the key 'key' is missing"),
        (
            {"factors": AGE, "fair-share": {"half-life": "-1d"}},
            "priority.fair-share.half-life: a half-life of -1d",
        ),
        (
            {"factors": AGE, "fair-share": {"half-life": -5}},
            "priority.fair-share.half-life: a half-life of -5",
        ),
        ({"factors": AGE, "fair-share": {"half-life": 0}}, "priority.fair-share.half-life: 0 is not a time"),
        (
            {"factors": AGE, "fair-share": {"method": "fair"}},
            "priority.fair-share.method: unknown value 'fair'",
        ),
        (
            {"factors": AGE, "fair-share": {"usage": {"disk": 1}}},
            "priority.fair-share.usage: disk = 1 is not",
        ),
        ({"factors": AGE, "least": 2, "most": 1}, "priority: the least priority 2 is above the greatest 1"),
        ({"factors": AGE, "weights": {}}, "priority: unknown key 'weights'"),
        (
            {"factors": AGE, "accounts": [{"account": "a", "shares": -1}]},
            "priority.accounts[0].shares: -1 is negative",
        ),
        (
            {"factors": AGE, "accounts": [{"account": "a", "parent": "a"}]},
            "priority.accounts[0]: account 'a' is its own",
        ),
        (
            {"factors": AGE, "accounts": [{"acount": "a"}]},
            "priority.accounts[0]: unknown key 'acount'; did you mean",
        ),
        ({"factors": AGE, "accounts": 3}, "priority.accounts: 3 is not a list of accounts"),
        ({"preset": "slurmm"}, "priority.preset: unknown preset 'slurmm'; did you mean slurm"),
        (
            {"preset": "slurm", "lines": {"PriorityWeightAge": "x"}},
            "priority.lines.PriorityWeightAge: PriorityWeightAge",
        ),
        (
            {"preset": "slurm", "lines": {"PriorityWeightFairshare": 1, "PriorityDecayHalfLife": "-7"}},
            "priority.lines.PriorityDecayHalfLife: Prior",
        ),
        (
            {"preset": "slurm", "lines": {"PriorityFlags": "FAIR"}},
            "priority.lines.PriorityFlags: PriorityFlags: unkno",
        ),
        ({"preset": "slurm", "lines": {"Weight": 1}}, "priority.lines: unknown line 'Weight'"),
        (
            {"preset": "flux-accounting", "lines": {"bank": "x"}},
            "priority.lines.bank: 'x' is not a finite number",
        ),
        ({"lines": {}}, "priority: lines without a preset"),
        ([1], "priority: [1] is not a table"),
    ],
)
def test_faults_have_their_place(document, message):
    with pytest.raises(SimschedError) as error:
        read(document)
    assert str(error.value).startswith(message)
    assert "expected" in str(error.value) or "did you mean" in str(error.value)
