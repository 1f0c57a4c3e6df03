"""RFC 25: its use cases validate as V1, by our rules and by our schema."""

from __future__ import annotations

import json

import pytest

from simsched.cli.schema import schema_text
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.validation_rules import faults_of
from simsched.formats.text.yaml_text import load_yaml
from simsched.formats.validate import validate_text

ATTRIBUTES = """\
attributes:
  system:
    duration: 3600.
    cwd: "/home/flux"
    environment:
      HOME: "/home/flux"
"""

#: use case of RFC 25 -> the part above its attributes, and the shape of its resources
USE_CASES = {
    "example": (
        """\
version: 1
resources:
  - type: node
    count: 4
    with:
      - type: slot
        count: 1
        label: default
        with:
          - type: core
            count: 2
tasks:
  - command: [ "app" ]
    slot: default
    count:
      per_slot: 1
""",
        "node=4/slot/core=2",
    ),
    "1.1": (
        """\
version: 1
resources:
  - type: node
    count: 4
    with:
    - type: slot
      count: 1
      label: default
      with:
        - type: core
          count: 1
tasks:
  - command: [ "flux", "start" ]
    slot: default
    count:
      per_slot: 1
""",
        "node=4/slot/core",
    ),
    "2.1": (
        """\
version: 1
resources:
  - type: node
    count: 4
    with:
      - type: slot
        count: 1
        label: myslot
        with:
          - type: core
            count: 1
tasks:
  - command: [ "hostname" ]
    slot: myslot
    count:
      total: 5
""",
        "node=4/slot{myslot}/core",
    ),
    "2.2": (
        """\
version: 1
resources:
  - type: slot
    label: default
    count: 10
    with:
      - type: core
        count: 2
tasks:
  - command: [ "myapp" ]
    slot: default
    count:
      per_slot: 1
""",
        "slot=10/core=2",
    ),
    "2.3": (
        """\
version: 1
resources:
  - type: slot
    count: 10
    label: default
    with:
      - type: core
        count: 2
      - type: gpu
        count: 1
tasks:
  - command: [ "myapp" ]
    slot: default
    count:
      per_slot: 1
""",
        "slot=10/[core=2;gpu]",
    ),
    "2.4": (
        """\
version: 1
resources:
  - type: node
    count: 4
    with:
    - type: slot
      count: 4
      label: default
      with:
        - type: core
          count: 1
        - type: gpu
          count: 1
tasks:
  - command: [ "myapp" ]
    slot: default
    count:
      per_slot: 1
""",
        "node=4/slot=4/[core;gpu]",
    ),
}


def validator(name):
    from jsonschema import Draft202012Validator

    schema = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("case", USE_CASES)
def test_use_case_validates_as_v1(case):
    text, shape = USE_CASES[case]
    text += ATTRIBUTES
    document = load_yaml(text)
    assert faults_of(document, v1=True) == []
    assert validate_text(text, "job.yaml").is_valid
    assert validator("v1").is_valid(document)
    assert validator("rfc14").is_valid(document)
    job = Jobspec.from_dict(document)
    assert job.to_shape() == shape
    assert job.to_v1() is job
    assert job.duration == 3600.0
    assert job.to_dict() == document


def test_the_readings_where_text_and_schema_differ():
    document = load_yaml(USE_CASES["1.1"][0] + ATTRIBUTES)
    document["resources"][0]["exclusive"] = True  # R1: on a node
    document["resources"][0]["with"][0]["exclusive"] = False  # R1: and on a slot
    assert faults_of(document, v1=True) == []
    assert validator("v1").is_valid(document)
    for change in ({"attributes": {"system": {}}}, {"attributes": None}, {"tasks": []}):  # R2, R3
        assert faults_of(document | change, v1=True)
        assert not validator("v1").is_valid(document | change)
