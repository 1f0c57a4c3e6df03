"""Study files: what may be written in a ``study.yaml``, and where in it a fault is.

The JSON Schema ``schemas/study.json`` says what may be written; what it means is the room
`study`'s.  See docs/studies.md for the words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simsched.formats.text.diagnostics import Fault, located, shown
from simsched.formats.text.documents import load_document, name_of, read_text
from simsched.formats.text.schemas import first_error

if TYPE_CHECKING:
    from pathlib import Path

    from jsonschema import ValidationError

    from simsched.formats.text.excerpts import Path as Steps
    from simsched.formats.text.locations import Locations


@dataclass(frozen=True)
class StudyDocument:
    """A study file that the schema allows, and the text that it was read from.

    `text` is empty for a document that never was a file.
    """

    content: dict[str, Any]
    text: str = ""
    where: str = "study"

    def place(self, path: Steps, *, key: bool = False) -> str:
        """Return where a value (or its key) is: ``study.yaml:7:5: axes.load[1]``."""
        fault = Fault(path, "", at_key=key, where=self.where)
        if self.text:
            line, column = self._spots.key(path) if key else self._spots.value(path)
            fault = replace(fault, line=line, column=column)
        return fault.place

    @cached_property
    def _spots(self) -> Locations:
        """Where everything is in the text; found once, when the first place is asked for."""
        from simsched.formats.text.locations import Locations

        return Locations.of(self.text)


def read_study_document(path: str | Path) -> StudyDocument:
    """Read a study file, YAML or JSON.

    Raises
    ------
    FormatError
        With line, column and path of what the schema does not allow.
    """
    text, where = read_text(path), name_of(path)
    return study_document(load_document(text, where), text, where)


def study_document(content: Any, text: str = "", where: str = "study") -> StudyDocument:
    """Check a document against the schema.

    >>> study_document({"cluster": "tiny"})
    Traceback (most recent call last):
    simsched.errors.FormatError: study: the key 'workload' is missing
    """
    error = first_error("study", content)
    if error is None:
        return StudyDocument(content, text, where)
    fault = _in_our_words(error, where)
    raise (located([fault], text, where)[0] if text else fault).error()


def _in_our_words(error: ValidationError, where: str) -> Fault:
    path = tuple(error.absolute_path)
    schema: Any = error.schema
    instance: Any = error.instance
    rule, found = str(error.validator), f"found {shown(instance)}"
    if rule == "additionalProperties":
        known = schema.get("properties", {})
        odd = next(key for key in instance if key not in known)
        return Fault((*path, odd), f"unknown key {odd!r}", ", ".join(known), at_key=True, where=where)
    if rule == "required":
        missing = next(key for key in schema["required"] if key not in instance)
        return Fault(path, f"the key {missing!r} is missing", where=where)
    if rule == "type":
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return Fault(path, found, " or ".join(_KINDS.get(kind, str(kind)) for kind in kinds), where=where)
    if rule == "enum":
        words = [value for value in schema["enum"] if isinstance(value, str)]
        return Fault(path, found, ", ".join(words), where=where)
    if rule in _LIMITS:
        side, word = _LIMITS[rule]
        return Fault(path, f"{found}: too {word}", f"{side} {schema[rule]:,}", where=where)
    return Fault(path, f"{found}: {_RULES.get(rule, error.message)}"[:200], where=where)


_KINDS = {"object": "a mapping", "array": "a list", "string": "a text", "integer": "a whole number"}
_LIMITS = {"minimum": ("at least", "small"), "maximum": ("at most", "large")}
_RULES = {
    "minItems": "too few",
    "uniqueItems": "something occurs twice",
    "minProperties": "it names no axis",
    "pattern": "it is blank",
}
