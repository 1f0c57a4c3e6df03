"""The manual's page on requests says what is true."""

from __future__ import annotations

import re

import pytest

from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.shape import MAX_LENGTH, MAX_LEVELS, MAX_VALUE_LEVELS, format_shape, parse_shape
from simsched.formats.rfc.constraint import MAX_LENGTH as CONSTRAINT_LENGTH
from simsched.formats.rfc.constraint import parse_constraint
from simsched.formats.rfc.count import MAX_COUNT, Count
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.duration import parse_duration
from simsched.formats.text.immutable import MAX_DEPTH
from simsched.formats.text.yaml_text import MAX_ALIASED, load_yaml
from tests import REPOSITORY

PAGE = (REPOSITORY / "docs" / "requests.md").read_text()


def block(title):
    """The first column of the text block under a title."""
    text = PAGE.split(f"## {title}")[1].split("```text\n")[1].split("```")[0]
    return [re.split(r"\s{2,}", line)[0] for line in text.splitlines()]


@pytest.mark.parametrize("shape", block("Shapes"))
def test_shapes(shape):
    assert parse_shape(format_shape(parse_shape(shape))) == parse_shape(shape)


@pytest.mark.parametrize("text", block("Constraints"))
def test_constraints(text):
    assert parse_constraint(str(parse_constraint(text))) == parse_constraint(text)


@pytest.mark.parametrize(
    "row",
    [line.split("|") for line in PAGE.splitlines() if re.match(r"\| `[0-9]", line)],
    ids=lambda row: row[1],
)
def test_counts(row):
    assert Count.parse(row[1].strip(" `")).to_json() == load_yaml(row[3].strip(" `"))


def test_the_shape_that_is_shown_without_its_output():
    (shape,) = re.findall(r"^    simsched shape '([^']+)'", PAGE, re.MULTILINE)
    assert parse_shape(shape)


def test_the_python_example():
    code = PAGE.split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(code.rsplit("\n", 2)[0], names)  # all but the file that is not there
    assert names["job"] == Jobspec.from_shape(
        "slot=4/[core=2;gpu]", duration=3600, constraint="ssd and not host:n[0-3]"
    )


def test_the_words_in_the_last_sections():
    part = PAGE.split("## Durations")[1]
    for text in re.findall(r"`([0-9][^`]*|inf)`", part.split("Dependencies")[0]):
        assert parse_duration(text) > 0
    for text in re.findall(r"`(\w+(?:-\w+)?:[^`]+)`", part.split("Units")[0]):
        assert str(Dependency.parse(text)) == text


def test_the_limits():
    assert f"{MAX_LENGTH:,}" in PAGE
    assert f"{CONSTRAINT_LENGTH:,}" in PAGE
    assert f"{MAX_ALIASED:,}" in PAGE
    assert (MAX_LEVELS, MAX_DEPTH, MAX_VALUE_LEVELS, MAX_COUNT) == (100, 100, 50, 2**53)
