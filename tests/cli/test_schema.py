"""``simsched schema``: the schemas accept what the readers accept."""

from __future__ import annotations

import json

import jsonschema
import pytest

from simsched.cli import main
from simsched.errors import ConfigError
from simsched.simulation.options.run_config import KEYS, from_document
from simsched.workload.models.model_files import model_of
from tests.cli.test_bad_rules import EVERYTHING


def schema(capsys, name):
    assert main(["schema", name]) == 0
    return json.loads(capsys.readouterr().out)


def names(capsys):
    assert main(["schema"]) == 0
    return capsys.readouterr().out.split()


def test_every_name_that_is_listed_has_a_valid_schema(capsys):
    listed = names(capsys)
    assert {"config", "limits", "reservations", "queues", "study", "v1"} <= set(listed)
    for name in listed:
        found = schema(capsys, name)
        jsonschema.Draft202012Validator.check_schema(found)
        assert found["title"]


def test_a_configuration_that_is_read_is_valid(capsys):
    found = schema(capsys, "config")
    assert set(found["properties"]) == {*KEYS, "calibration"}
    jsonschema.validate(EVERYTHING, found)
    for key in set(EVERYTHING) & set(names(capsys)):
        jsonschema.validate(EVERYTHING[key], schema(capsys, key))


@pytest.mark.parametrize(
    "document",
    [
        {"priority": None, "failures": None, "queues": None, "passes": None},
        {"limits": {"submitted-jobs": 3}},
        {"reservations": {"name": "r", "nodes": 1, "start": 1, "duration": 3}},
        {"outages": {"outages": [{"ranks": "0", "start": 1, "end": 2}]}},
        {"policy-options": {"extra": False, "slurm": {"interval": "2m", "max-job-test": None}}},
        {"priority": {"factors": {"age": 1, "big": {"kind": "size", "weight": 2}}, "accounts": None}},
    ],
)
def test_one_table_and_null_are_valid_where_the_reader_takes_them(capsys, document):
    from_document(document)
    jsonschema.validate(document, schema(capsys, "config"))


@pytest.mark.parametrize(
    "document",
    [
        {"ordr": "fifo"},
        {"seed": -1},
        {"overrun": "never"},
        {"limits": [{"runing-jobs": 1}]},
        {"queues": {"a": {"policy": {"limits": {"size": 3}}}}},
        {"preemption": {"mode": "stop"}},
        {"reservations": [{"name": "r", "times": 0}]},
        {"reservations": [{"nodes": 1}]},
        {"policy-options": {"slurm": {"interval": []}}},
        {"priority": {"factors": {"age": {"max": "1d"}}}},
    ],
)
def test_a_configuration_that_is_refused_is_not(capsys, document):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema(capsys, "config"))


def test_models_that_are_read_are_valid_and_others_are_not(capsys):
    row = {"name": "a", "batches": 70, "requests": {"slot/core": 1}, "runtime": "30m", "hours": [1] * 24}
    model = {"span": "28d", "zone": "Europe/Rome", "start": "2024-03-04", "classes": [row]}
    mix = {"parts": [{"shape": "slot/core", "runtime": "exp(3m)", "duration": "x2.5"}], "span": "1d"}
    for name, document in (("log-model", model), ("mix", mix)):
        assert model_of(document)
        jsonschema.validate(document, schema(capsys, name))
        rows = "parts" if name == "mix" else "classes"
        wrongs = ({"spam": 1}, {"users": "5"}, {"name": [1]}, {rows: []})
        for wrong in ({}, *({**document, **one} for one in wrongs)):
            with pytest.raises(ConfigError):
                model_of(wrong)
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(wrong, schema(capsys, name))


def test_an_unknown_name_names_the_nearest(capsys):
    assert main(["schema", "reservation"]) == 2
    assert "there is no schema 'reservation'; did you mean reservations?" in capsys.readouterr().err


def test_queue_snapshots_and_their_details_have_schemas(capsys):
    held = {"id": 7, "start": 600, "expected_end": None, "R": {"version": 1}, "user": None}
    queued = {"id": "a", "submit": "15m", "duration": "1h", "shape": "core", "depends": "afterok:7"}
    document = {"kind": "simsched queue", "time": 3600, "running": [held], "waiting": [queued]}
    snapshot, details = schema(capsys, "queue-snapshot"), schema(capsys, "queue-details")
    jsonschema.validate(document, snapshot)
    jsonschema.validate({"id": 7, "R": {"version": 1}}, details)
    for key, value in (("time", None), ("waiting", [{}]), ("running", [{**held, "end": 3}]), ("queue", [])):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, key: value}, snapshot)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"R": {}}, details)
