"""Options of the command line from declared structs: a field is a flag, whose default is None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.cli.options.workloads import whole
from simsched.declare.table import fields_of

if TYPE_CHECKING:
    import argparse

    from simsched.declare.table import Declared


def add_flags(parser: argparse._ActionsContainer, struct: type[Declared], *names: str) -> None:
    """Add a flag for each field of a struct, or for those named, with its words and its meaning."""
    for field in fields_of(struct).values():
        if names and field.name not in names:
            continue
        kind = field.kind.schema.get("type")
        more: dict[str, Any] = {"metavar": field.key[0].upper()}
        if kind == "boolean":
            more = {"action": "store_const", "const": True}
        elif field.kind.choices:
            more = {"choices": field.kind.choices}
        elif kind in ("integer", "number"):
            more = {"type": whole if kind == "integer" else float, "metavar": "N"}
        parser.add_argument(f"--{field.key}", help=field.text.replace("%", "%%"), **more)


def flags_given(args: argparse.Namespace, struct: type[Declared]) -> dict[str, Any]:
    """Return name → value of the flags of a struct that are given, as they are given.

    Raises
    ------
    ConfigError, FormatError
        for a value that its field does not accept, with the flag as its place.
    """
    found = {}
    for field in fields_of(struct).values():
        value = getattr(args, field.name, None)
        if value is not None:
            field.kind.read(value, f"--{field.key}")
            found[field.name] = value
    return found
