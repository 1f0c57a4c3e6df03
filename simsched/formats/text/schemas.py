"""The JSON Schemas of the package, as validators that are as strict as our readers.

JSON Schema accepts 2.0 as an integer and lets ``$`` match before a last newline.  These validators accept
only an ``int`` as an integer, and a text must match to its end.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from simsched.errors import ConfigError, clip, did_you_mean
from simsched.formats.text.diagnostics import Fault, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    from simsched.declare.table import Declared
    from simsched.formats.text.excerpts import Path

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
def validator(name: str | type[Declared]) -> Validator:
    """Return the validator of a JSON Schema of this package, or of that of a declared table."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    kinds = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_whole, "number": _is_number})
    rules: Any = {"pattern": _pattern}
    strict: Any = extend(Draft202012Validator, validators=rules, type_checker=kinds)  # type: ignore[no-untyped-call]
    made: Validator = strict(json.loads(schema_text(name)) if isinstance(name, str) else name.schema())
    return made


def first_fault(name: str | type[Declared], document: Any, where: str = "") -> Fault | None:
    """Return the most relevant fault of a document, without lines; None for a valid document.

    >>> print(first_fault("v1", {"version": 1}, "job.json"))
    job.json: the key 'resources' is missing
    """
    from jsonschema.exceptions import relevance

    error: ValidationError | None = max(validator(name).iter_errors(document), key=relevance, default=None)
    if error is None:
        return None
    while error.validator == "oneOf" and (inner := _intended(error)) is not None:
        error = inner
    return _fault_of(error, where)


def _intended(error: ValidationError) -> ValidationError | None:
    """Return the error within the one alternative whose type fits the value; None if none fits.

    An alternative whose type or constant differs was not intended: its other errors would mislead.
    """
    from jsonschema.exceptions import relevance

    alternatives: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        alternatives.setdefault(inner.schema_path[0], []).append(inner)
    for errors in alternatives.values():
        if not any(_is_about_kind(inner) for inner in errors):
            return max(errors, key=relevance)
    return None


def _is_about_kind(error: ValidationError) -> bool:
    """Whether an error is about the type of a value itself, or a constant that tells it from others."""
    depth = len(error.path)
    return (error.validator == "type" and not depth) or (error.validator == "const" and depth <= 1)


def _fault_of(error: ValidationError, where: str) -> Fault:
    """Return the fault of a JSON Schema error in our wording."""
    path: Path = tuple(error.absolute_path)
    rule, schema = str(error.validator), cast("dict[str, Any]", error.schema)
    instance: Any = error.instance
    if rule == "additionalProperties":
        known = schema.get("properties", {})
        odd = str(next(key for key in instance if key not in known))
        message = f"unknown key {clip(odd)!r}{_place_of(odd, known) or did_you_mean(odd, known)}"
        return Fault((*path, odd), message, ", ".join(known), at_key=True, where=where)
    if rule == "required":
        missing = next(key for key in schema["required"] if key not in instance)
        return Fault(path, f"the key {missing!r} is missing", where=where)
    if rule == "uniqueItems":
        return Fault(path, "an item of the list occurs twice", "each item once", where=where)
    return Fault(
        path, f"found {shown(instance)}", _expected(rule, schema) or error.message[:200], where=where
    )


def _place_of(odd: str, known: dict[str, Any]) -> str:
    """Return ``"; it belongs under KEY"`` for a key that one of the known keys takes, or nothing."""
    homes = [repr(key) for key, inner in known.items() if odd in inner.get("properties", {})]
    return f"; it belongs under {' or '.join(homes)}" if homes else ""


def _expected(rule: str, schema: dict[str, Any]) -> str:
    """Return the values that a rule of a schema accepts, as text; empty for a rule without a wording."""
    value = schema[rule]
    if rule == "type":
        return " or ".join(
            _TYPES.get(kind, str(kind)) for kind in (value if isinstance(value, list) else [value])
        )
    if rule == "enum":
        return ", ".join(str(one) for one in value if not isinstance(one, list))
    if rule == "oneOf":
        return " or ".join(sorted(_alternative(one) for one in value))
    if rule in _LIMITS:
        limit, noun = _LIMITS[rule]
        return f"{limit} {value:,}{noun}{'s' if noun and value != 1 else ''}"
    return str({"const": value, "pattern": schema.get("description", "")}.get(rule, ""))


def _alternative(schema: dict[str, Any]) -> str:
    """Return the name of an alternative: its constant ``type``, its description or its JSON type."""
    constant = schema.get("properties", {}).get("type", {}).get("const")
    return str(constant or schema.get("description") or _TYPES.get(schema.get("type", ""), "another value"))


_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_LIMITS = {
    "minimum": ("at least", ""),
    "maximum": ("at most", ""),
    "minItems": ("at least", " item"),
    "maxItems": ("at most", " item"),
    "minLength": ("at least", " character"),
    "minProperties": ("at least", " key"),
    "maxProperties": ("at most", " key"),
}


def _is_whole(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: Any, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    whole = pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern
    if isinstance(value, str) and not re.search(whole, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")
