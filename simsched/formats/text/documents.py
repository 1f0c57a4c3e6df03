"""Documents: strict JSON and strict YAML as values, and the locations of faults in both.

Every fault of a file is one `FormatError` (or `LimitError`) with line and column.  The values are those of
JSON: dict with string keys, list, str, int, finite float, bool, None; at most `MAX_DEPTH` levels deep.
"""

from __future__ import annotations

import math
import re
from typing import Any

from simsched.errors import FormatError, LimitError
from simsched.formats.text.excerpts import MAX_DIGITS, clip, format_path, line_and_column, parse_path, place
from simsched.formats.text.input_files import MAX_TEXT, name_of, read_bytes, read_text
from simsched.formats.text.json_text import MAX_DEPTH, decode_json_bulk, load_json, load_json_line
from simsched.formats.text.locations import Locations, locate
from simsched.formats.text.sniffing import Kind, detect_kind
from simsched.formats.text.yaml_text import load_yaml, load_yaml_all, yaml_hint

__all__ = [
    "MAX_DEPTH",
    "MAX_TEXT",
    "Kind",
    "Locations",
    "clip",
    "decode_json_bulk",
    "detect_kind",
    "format_path",
    "line_and_column",
    "load_document",
    "load_documents",
    "load_json",
    "load_json_line",
    "load_yaml",
    "load_yaml_all",
    "locate",
    "name_of",
    "parse_path",
    "place",
    "read_bytes",
    "read_text",
    "refuse_foreign",
    "yaml_hint",
]


def load_document(text: str, where: str | None = None) -> Any:
    """Read one JSON or YAML document, whichever it is.

    >>> load_document("a: [1, 2]") == load_document('{"a": [1, 2]}')
    True
    """
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "[", '"'):
        return load_yaml(text, where)
    try:
        return load_json(text, where)
    except LimitError:
        raise
    except FormatError as error:
        if re.match(r'\s*(?:\{\s*"|\[\s*[\["{])', text):
            raise
        try:
            return load_yaml(text, where)  # a YAML flow mapping such as {a: 1}
        except FormatError:
            raise error from None


def load_documents(text: str, where: str | None = None) -> list[Any]:
    r"""Read a text of one JSON document, or of any number of YAML documents.

    >>> load_documents("[1]"), load_documents("a: 1\n---\nb: 2\n")
    ([[1]], [{'a': 1}, {'b': 2}])
    """
    is_json = text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}
    return [load_document(text, where)] if is_json else load_yaml_all(text, where)


def refuse_foreign(value: Any, where: str | None = None, path: tuple[str | int, ...] = ()) -> None:
    """Refuse the values that TOML has and JSON has not.

    Raises FormatError for numbers that are not finite and for dates, `LimitError` for whole numbers of
    more than `MAX_DIGITS`, each with its path.

    >>> refuse_foreign({"a": [1, float("inf")]}, "c.toml")
    Traceback (most recent call last):
    simsched.errors.FormatError: c.toml: a[1]: inf is not a finite number (expected a finite number)
    """
    at = ": ".join(part for part in (where, format_path(path)) if part)
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            refuse_foreign(item, where, (*path, step))
    elif isinstance(value, float) and not math.isfinite(value):
        raise FormatError(f"{value} is not a finite number", where=at, expected="a finite number")
    elif isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise LimitError("the number has too many digits", where=at, expected=f"at most {MAX_DIGITS}")
    elif not isinstance(value, str | int | float | None):
        raise FormatError(f"{value} is a date or time", where=at, expected="a text, a number, true or false")
