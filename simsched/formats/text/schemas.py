"""The JSON Schemas of the package, as validators that are as strict as our readers.

JSON Schema accepts 2.0 as an integer and lets ``$`` match before a last newline.  These validators accept
only an ``int`` as an integer, and a text must match to its end.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

SCHEMAS = ("rfc14", "v1")
"""The names of the JSON Schemas that are files of the package, after the RFCs; others are declared."""


@cache
def schema_text(name: str) -> str:
    """Return the text of a JSON Schema of this package, one of `SCHEMAS`.  Raises `ConfigError`."""
    from importlib.resources import files

    if name not in SCHEMAS:
        raise ConfigError(f"there is no schema {name!r}", expected=" or ".join(SCHEMAS))

    return (files("simsched.formats") / "schemas" / f"{name}.json").read_text(encoding="utf-8")


@cache
def validator(name: str) -> Validator:
    """Return the validator of a JSON Schema of this package, one of `SCHEMAS`."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    kinds = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_whole, "number": _is_number})
    rules: Any = {"pattern": _pattern}
    strict: Any = extend(Draft202012Validator, validators=rules, type_checker=kinds)  # type: ignore[no-untyped-call]
    made: Validator = strict(json.loads(schema_text(name)))
    return made


def _is_whole(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: Any, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    whole = pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern
    if isinstance(value, str) and not re.search(whole, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")
