"""The tables ``[[limits]]`` of a configuration: what is read, and the errors."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.simulation.limits.limit_rules import read_limits
from simsched.simulation.options.config_file import read_config
from tests.simulation.simworld import machine, workload


def test_a_rule_is_the_same_after_it_was_written():
    rules = [
        {"queue": "debug", "each": "user", "running-jobs": 2, "cores": 64, "over": "hold", "blocks": True},
        {"each": ["user", "account"], "core-hours": 12.5, "memory": "512 GB"},
        {"qos": "high", "each": "job", "nodes": 4, "duration": 3600},
        {"submitted-jobs": -1},
    ]
    read = read_limits(rules, "limits")
    assert [rule.to_dict() for rule in read] == rules
    assert read_limits(read, "limits") == read


def test_a_configuration_file_has_limits(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[[limits]]\neach = "user"\nrunning_jobs = 2\n\n[[limits]]\nduration = "8h"\n')
    found = read_config(file)["limits"]
    assert [rule.to_dict() for rule in found] == [{"each": "user", "running-jobs": 2}, {"duration": 28800}]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([{"each": "usr", "cores": 1}], "limits.each: unknown scope 'usr'; did you mean user?"),
        ([{"runing-jobs": 1}], "limits: unknown key 'runing-jobs'; did you mean running-jobs?"),
        ([{"each": "user"}], "limits: the table limits nothing"),
        ([{"cores": -2}], "limits.cores: the limit is -2"),
        ([{"cores": 1.5}], "limits.cores: 1.5 is not a whole number"),
        ([{"core-hours": "1"}], "limits.core-hours: '1' is not a number of hours"),
        ([{"user": "a", "each": "user", "cores": 1}], "limits.each: the rule is about one user"),
        ([{"each": "job", "running-jobs": 1}], "limits.running-jobs: running-jobs is not a limit on single"),
        ([{"each": ["job", "user"], "cores": 1}], "limits.each: a limit per job counts nothing else apart"),
        ([{"running-jobs": 5, "submitted-jobs": 2}], "limits.running-jobs: running-jobs is 5, but only 2"),
        ([{"cores": 1}, {"cores": 2}], "limits[1]: cores is given twice (expected once, as in limits[0])"),
        ([{"memory": "5 GHz"}], "limits.memory: GHz is not a unit of memory"),
        ([{"cores": 1, "over": "kill"}], "limits.over: unknown value 'kill' (expected reject or hold)"),
        ([{"user": 7, "cores": 1}], "limits.user: 7 is not a name"),
        ("cores", "limits: 'cores' is not a list of tables"),
        ([{"duration": "x"}], "limits.duration: "),
    ],
)
def test_an_error_has_its_place_and_the_nearest_name(rules, message):
    with pytest.raises(ss.SimschedError) as error:
        ss.simulate(machine(1), workload(), limits=rules)
    assert str(error.value).startswith(message)
