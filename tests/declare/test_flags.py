"""Flags and arguments of the command line from declared structs."""

from __future__ import annotations

import argparse
from typing import Annotated, Literal

import pytest

from simsched.declare.flags import Flags, add_flags, field, flag, flags_given
from simsched.declare.table import Declared
from simsched.errors import ConfigError
from simsched.formats.rfc.declared import seconds


class Freight(Flags, frozen=True, kw_only=True):
    """What is loaded.

    goods : the goods; 5 % may be lost.
    crew : how many go with it.
    start : when it leaves.
    insured : whether it is insured.
    class_ : how fast it is.
    stop : a stop, may be repeated.
    """

    goods: Annotated[tuple[str, ...], flag("GOODS", positional=True, nargs="+")]
    crew: int = 2
    start: Annotated[str | None, flag("T", "-s")] = field(name="from", default=None)
    insured: bool = False
    class_: Literal["slow", "fast"] = field(name="class", default="slow")
    stop: Annotated[tuple[str, ...], flag("PORT")] = ()


class Voyage(Declared, frozen=True, kw_only=True):
    """Flags that are given or not."""

    ship: str = "tug"
    speed: float = 3.0
    rest: Annotated[float, seconds("a time such as 5m")] = 0


def parser_of(struct):
    parser = argparse.ArgumentParser(prog="load")
    add_flags(parser, struct)
    return parser


def test_fields_are_arguments_and_flags_with_their_defaults():
    found = parser_of(Freight).parse_args(["tea", "silk", "-s", "3d", "--stop", "a", "--stop", "b"])
    assert vars(found) == {
        "goods": ["tea", "silk"], "crew": 2, "start": "3d", "insured": False, "class_": "slow",
        "stop": ["a", "b"],
    }  # fmt: skip
    found = parser_of(Freight).parse_args(
        ["tea", "--crew", "0", "--insured", "--class", "fast", "--from", "x"]
    )
    assert (found.crew, found.insured, found.class_, found.start, found.stop) == (0, True, "fast", "x", [])


def test_placeholders_are_kinds_and_texts_are_meanings():
    text = " ".join(parser_of(Voyage).format_help().split())
    assert "--ship NAME" in text
    assert "--speed N" in text
    assert "--rest TIME" in text
    assert "the goods; 5 % may be lost" in " ".join(parser_of(Freight).format_help().split())


def test_flags_that_are_given_are_checked():
    parser = parser_of(Voyage)
    assert flags_given(parser.parse_args(["--rest", "5m"]), Voyage) == {"rest": "5m"}
    with pytest.raises(ConfigError, match="--rest: the time has no end"):
        flags_given(parser.parse_args(["--rest", "inf"]), Voyage)
