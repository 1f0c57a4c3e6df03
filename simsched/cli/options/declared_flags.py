"""Options of the command line from declared structs: a field is a flag, its default None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.cli.options.workloads import whole
from simsched.declare.table import fields_of

if TYPE_CHECKING:
    import argparse

    from simsched.declare.table import Declared


def add_flags(parser: argparse._ActionsContainer, struct: type[Declared]) -> None:
    """Add a flag for each field of a struct, with its words and its meaning."""
    for field in fields_of(struct).values():
        is_whole = field.kind.schema.get("type") == "integer"
        more: dict[str, Any] = {"type": whole} if is_whole else {}
        more |= {"choices": field.kind.choices} if field.kind.choices else {"metavar": field.key[0].upper()}
        parser.add_argument(f"--{field.key}", help=field.text.replace("%", "%%"), **more)


def flags_given(args: argparse.Namespace, struct: type[Declared]) -> dict[str, Any]:
    """Return key → value of the flags of a struct that are given, as a document has them.

    Raises
    ------
    ConfigError, FormatError
        for a value that its field does not accept, with the flag as its place.
    """
    found = {key: getattr(args, field.name) for key, field in fields_of(struct).items()}
    given = {key: value for key, value in found.items() if value is not None}
    for key, value in given.items():
        fields_of(struct)[key].kind.read(value, f"--{key}")
    return given
