"""Flags and arguments of the command line from declared structs, one per field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.declare.kinds import ValueKind
from simsched.declare.table import Declared, fields_of
from simsched.declare.table import field as field  # noqa: PLC0414 (for those that declare)

if TYPE_CHECKING:
    import argparse


class Flags(Declared, frozen=True):
    """Options whose flags of the command line have their defaults where they are not given."""


def flag(metavar: str | tuple[str, ...] = "", *short: str, **more: Any) -> ValueKind:
    """Return the kind of a flag's texts.

    metavar, short : placeholder of the value in the help, and the short names.
    more : ``positional``, or keywords of `add_argument`.
    """
    return ValueKind(lambda value, _: value, flag={"metavar": metavar, "short": short, **more})


def whole(text: str) -> int:
    """Read a whole number of 0 or more."""
    from argparse import ArgumentTypeError

    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


_METAVARS = {"integer": "N", "number": "N"}


def add_flags(parser: argparse._ActionsContainer, struct: type[Declared], *names: str) -> None:
    """Add a flag for each field of a struct, or for those named, with its words and its meaning.

    The default of a flag is None, unless the struct is one of `Flags`.
    """
    for one in fields_of(struct).values():
        if names and one.name not in names:
            continue
        schema = one.kind.schema.get("anyOf", [one.kind.schema])[0]
        word = schema.get("type", "array" if "oneOf" in schema else "string")
        metavar = "TIME" if isinstance(word, list) else _METAVARS.get(word, "NAME")
        more = {"metavar": metavar, **one.kind.flag}
        short, positional = more.pop("short", ()), more.pop("positional", False)
        if one.kind.choices:
            more |= {"choices": one.kind.choices, "metavar": None}
        elif word == "boolean":
            more = {"action": "store_const", "const": True}
        elif word in ("integer", "number"):
            more.setdefault("type", whole if word == "integer" else float)
        elif word == "array" and "nargs" not in more:
            more["action"] = "append"
        if issubclass(struct, Flags):
            more["default"] = None if one.required else one.default
            if more.get("action") == "append" and one.default == ():
                more["default"] = []
        more["help"] = one.text.replace("%", "%%")
        if positional:
            parser.add_argument(one.name, **more)
        else:
            if one.required and issubclass(struct, Flags):
                more["required"] = True
            parser.add_argument(*short, f"--{one.key}", dest=one.name, **more)


def flags_given(args: argparse.Namespace, struct: type[Declared]) -> dict[str, Any]:
    """Return name → value of the flags of a struct that are given, as they are given.

    Raises
    ------
    ConfigError, FormatError
        for a value that its field does not accept, with the flag as its place.
    """
    found = {}
    for one in fields_of(struct).values():
        value = getattr(args, one.name, None)
        if value is not None:
            one.kind.read(value, f"--{one.key}")
            found[one.name] = value
    return found
