"""Declared structs: readers with all faults, writers, JSON Schemas and texts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from simsched.declare.kinds import HIDDEN, kind_of, names, number, text, whole
from simsched.declare.table import Declared, fields_of, inherited
from simsched.errors import ConfigError, SimschedError
from simsched.simulation.options.run_config import RunConfig
from simsched.simulation.outages.outages import Outage
from simsched.simulation.preemption.checkpoint_rules import CheckpointRules
from simsched.simulation.preemption.preemption_rules import PreemptionRules, QosRule
from simsched.simulation.reservations.reservation_rules import AdvanceReservation
from simsched.study.search.search_request import CalibrationRequest, SizingRequest
from simsched.study.spec.study_tables import StudyTable
from simsched.workload.models.model_files import JobClass, Mix, Part
from simsched.workload.readers.tables.column_map import ColumnMap


class Crate(Declared, frozen=True):
    """One crate.

    label : its name.
    most_kg, count : the most that it holds, and how many there are
        of it (Freight 1999).
    """

    label: str
    most_kg: Annotated[float | None, number(0, 99, "a weight")] = None
    count: Annotated[int, whole(1)] = 1
    colour: Literal["red", "green"] = "red"
    sealed: bool = False
    owners: Annotated[tuple[str, ...], names()] = ()
    where: str = ""

    def checked(self, where: str) -> Crate:
        if self.sealed and self.most_kg is None:
            raise ConfigError("a sealed crate has no weight", where=f"{where}.sealed", expected="most-kg")
        return self


class Ship(Declared, frozen=True):
    """A ship."""

    crates: tuple[Crate, ...] = ()
    holds: Mapping[str, Crate] = {}
    age: Annotated[Any, HIDDEN] = 3


def faults(value: Any, of: type[Declared] = Ship) -> list[str]:
    with pytest.raises(SimschedError) as error:
        of.read(value, "ship")
    return [str(fault) for fault in (error.value, *error.value.others)]


def test_a_document_is_the_same_after_it_was_read_and_written():
    document = {
        "crates": [{"label": "a", "most-kg": 2.5}, {"label": "b", "owners": ["x", "y"], "count": 2}],
        "holds": {"fore": {"label": "c", "most-kg": 1, "sealed": True, "colour": "green"}},
    }
    found = Ship.read(document, "ship")
    assert found.to_dict() == document
    assert [crate.where for crate in found.crates] == ["ship.crates[0]", "ship.crates[1]"]
    assert found.holds["fore"].where == "ship.holds.fore"
    assert Ship.read(found, "elsewhere") is found
    jsonschema.validate(document, Ship.schema())


def test_keys_may_be_spelt_with_underscores_and_one_name_is_a_list():
    found = Crate.read({"label": "a", "most_kg": 3, "owners": "x"}, "crate")
    assert (found.most_kg, found.owners) == (3, ("x",))


def test_all_faults_are_reported_with_their_places_and_nearest_names():
    document = {
        "crates": [{"label": "", "clour": "red"}, {"label": "b", "colour": "gren", "count": True}],
        "holds": {"fore": {"most-kg": 1}, "aft": 7},
        "crate": [],
    }
    assert faults(document) == [
        "ship: unknown key 'crate'; did you mean crates? (expected crates, holds)",
        (
            "ship.crates[0]: unknown key 'clour'; did you mean colour? "
            "(expected label, most-kg, count, colour, sealed, owners)"
        ),
        "ship.crates[0].label: '' is not a name (expected a text)",
        "ship.crates[1].count: true is not a whole number (expected a whole number of 1 or more)",
        "ship.crates[1].colour: unknown value 'gren'; did you mean green? (expected red or green)",
        "ship.holds.fore: the key 'label' is missing (expected its name)",
        "ship.holds.aft: 7 is not a table (expected label, most-kg, count, colour, sealed, owners)",
    ]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([1], "ship: [1] is not a table (expected crates, holds)"),
        ({"crates": "a"}, "ship.crates: 'a' is not a list of tables"),
        ({"holds": []}, "ship.holds: [] is not a table (expected a table of names)"),
        ({"age": 3}, "ship: unknown key 'age' (expected crates, holds)"),
        (
            {"crates": [{"label": "a", "most-kg": 100}]},
            "ship.crates[0].most-kg: 100 is not a weight (expected a weight from 0 to 99)",
        ),
        (
            {"crates": [{"label": "a", "most-kg": float("nan")}]},
            "ship.crates[0].most-kg: nan is not a weight (expected a weight from 0 to 99)",
        ),
        (
            {"crates": [{"label": "a", "sealed": True}]},
            "ship.crates[0].sealed: a sealed crate has no weight (expected most-kg)",
        ),
        ({"crates": [{"label": "a", "sealed": 1}]}, "ship.crates[0].sealed: 1 is not true or false"),
        (
            {"crates": [{"label": "a", "owners": ["x", ""]}]},
            "ship.crates[0].owners[1]: '' is not a name (expected a text)",
        ),
    ],
)
def test_a_fault_has_its_place_and_the_expected_value(value, fault):
    assert faults(value) == [fault]


def test_values_are_quoted_as_documents_spell_them():
    document = {"crates": [{"label": {}, "owners": [date(2024, 1, 1), None], "sealed": None}]}
    assert faults(document) == [
        "ship.crates[0].label: an object is not a name (expected a text)",
        "ship.crates[0].sealed: null is not true or false",
        "ship.crates[0].owners[0]: 2024-01-01 is not a name (expected a text)",
        "ship.crates[0].owners[1]: null is not a name (expected a text)",
    ]


@pytest.mark.parametrize(
    ("table", "document", "fault"),
    [
        (
            StudyTable,
            {"workload": "w", "cluster": "c", "description": 5},
            "ship.description: 5 is not a text",
        ),
        (
            StudyTable,
            {"workload": "w", "cluster": "c", "name": 5},
            "ship.name: 5 is not a name that is not blank",
        ),
        (StudyTable, {"workload": "w", "cluster": "c", "zip": 5}, "ship.zip: 5 is not a list"),
        (StudyTable, {"cluster": "c"}, "ship: the key 'workload' is missing"),
        (
            Part,
            {"shape": "slot/core", "weight": "x"},
            "ship.weight: 'x' is not a number (expected a number up to 1,000,000,000,000,000,000)",
        ),
        (
            ColumnMap,
            {"columns": {"submit": {"column": "t", "missing": [True]}}},
            "ship: columns.submit.missing[0]: true is not a text or a number",
        ),
    ],
)
def test_an_expectation_does_not_repeat_the_fault(table, document, fault):
    assert faults(document, table)[0] == fault


def test_values_of_a_base_take_the_place_of_the_defaults():
    base = Crate("a", count=4)
    assert Crate.read({"colour": "green"}, "crate", base) == Crate(
        "a", count=4, colour="green", where="crate"
    )


def test_inner_tables_inherit_keys():
    table = {"label": "a", "count": 2, "age": 1, "holds": {"fore": {"count": 3}, "aft": 7}}
    assert inherited(table, Crate, "holds")["holds"] == {"fore": {"label": "a", "count": 3}, "aft": 7}


def test_the_schema_states_types_bounds_words_and_meanings():
    schema = Crate.schema()
    assert schema["required"] == ["label"]
    assert schema["properties"]["most-kg"] == {
        "anyOf": [{"type": "number", "minimum": 0, "maximum": 99}, {"type": "null"}],
        "description": "the most that it holds, and how many there are of it (Freight 1999)",
    }
    assert schema["properties"]["colour"] == {"enum": ["red", "green"]}
    assert fields_of(Crate)["count"].text == fields_of(Crate)["most-kg"].text
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"label": "a", "colur": "red"}, schema)


@pytest.mark.parametrize(
    "struct",
    [
        RunConfig,
        AdvanceReservation,
        Outage,
        PreemptionRules,
        QosRule,
        CheckpointRules,
        Mix,
        Part,
        JobClass,
        SizingRequest,
        CalibrationRequest,
    ],
)
def test_every_declared_field_has_a_meaning(struct):
    assert [key for key, field in fields_of(struct).items() if not field.text] == []


def test_an_annotation_without_a_kind_is_an_error_of_the_declaration():
    with pytest.raises(TypeError, match="has no kind"):
        kind_of(object)
    assert kind_of(Annotated[str | None, text(empty=True)]).read("", "x") == ""


def test_null_is_no_value_where_there_is_no_other_default():
    assert Crate.read({"label": "a", "most-kg": None}, "crate") == Crate("a", where="crate")
    assert faults({"label": "a", "count": None}, Crate)[0].startswith("ship.count: null is not")


def test_two_spellings_of_one_key_are_refused():
    assert faults({"label": "a", "most_kg": 1, "most-kg": 2}, Crate) == [
        "ship: the key 'most-kg' is given twice (expected one spelling of it)"
    ]
