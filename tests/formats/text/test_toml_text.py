"""TOML: the bound on dotted keys."""

from __future__ import annotations

import pytest

from simsched.errors import FormatError
from simsched.formats.text.toml_text import MOST_PARTS, load_toml

LONG = ".".join(["a"] * 20_000)


@pytest.mark.parametrize(
    "text", [f"\n{LONG} = 1", f"\n[[ {LONG} ]]", f"\nx = {{ {LONG.replace('.', ' . ')} = 1 }}"]
)
def test_a_dotted_key_has_a_bound(text):
    with pytest.raises(
        FormatError, match=r"^f:2: a dotted key of 20,000 parts \(expected at most 100 parts\)"
    ):
        load_toml(text, "f")


def test_dots_in_values_and_shorter_keys_are_read():
    key = ".".join(f"a{number}" for number in range(MOST_PARTS))
    text = (
        f'x = "{"." * 500}"\ny = [{", ".join(["1.5"] * 500)}]\nz = """\n{"One two. " * 500}\n"""\n{key} = 1\n'
    )
    assert list(load_toml(text, "f")) == ["x", "y", "z", "a0"]
