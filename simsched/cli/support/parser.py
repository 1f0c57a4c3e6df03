"""The argument parser of all verbs: options between positionals, and errors in one line."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from simsched.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence


class UsageError(Exception):
    """The arguments of a verb are wrong; `prog` is the verb whose help explains them."""

    def __init__(self, prog: str, message: str) -> None:
        super().__init__(message)
        self.prog = prog

    def __str__(self) -> str:
        return f"{self.prog}: error: {self.args[0]}\n(`{self.prog} --help` lists its arguments)"


class Subparsers(Protocol):
    """The verbs, actions or models of a parser."""

    dest: str
    choices: Any  # name → parser

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        """Add a verb and return its parser."""


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that raises `UsageError`; a page of usage would hide the line that matters.

    Attributes
    ----------
    verbs : the verbs, actions or models of this parser, if it has any.
    """

    verbs: Subparsers | None = None

    def add_subparsers(self, **options: Any) -> Any:
        """Add verbs, and keep them where `parse` finds them."""
        self.verbs = verbs = super().add_subparsers(**options)
        return verbs

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(self.prog, message)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is not a choice, and name the nearest choice."""
        choices = action.choices
        if choices is None or value in choices:
            return
        known = [str(choice) for choice in choices]
        meant = did_you_mean(str(value), known) or f" (choose from {', '.join(known)})"
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{meant}")


class Arguments(argparse.Namespace):
    """The values of a command line.  They remember which of them were looked at, so that none is ignored."""

    def __init__(self, values: argparse.Namespace, verb: argparse.ArgumentParser) -> None:
        super().__init__(**vars(values))
        self.__dict__.update(_verb=verb, _seen=set())

    def __getattribute__(self, name: str) -> Any:
        values = object.__getattribute__(self, "__dict__")
        if name in values and "_seen" in values:
            values["_seen"].add(name)
        return object.__getattribute__(self, name)

    def ignored(self) -> list[str]:
        """Return the options that have a value of their own and were never looked at."""
        values = self.__dict__
        return [
            action.option_strings[0]
            for action in values["_verb"]._actions
            if action.option_strings and values.get(action.dest, action.default) != action.default
            if action.dest not in values["_seen"]
        ]


def parse(parser: Parser, arguments: Sequence[str]) -> Arguments:
    """Return the values of a command line.

    argparse ends a list of positionals (``REQUEST …``) at the next option.  The rest is parsed once more by
    the innermost verb, options first.

    Raises
    ------
    UsageError
        if the arguments are wrong.
    SystemExit
        after the help or the version was printed.
    """
    try:
        args, unknown = parser.parse_known_args(arguments)
    except UsageError:
        # argparse reports a missing argument before an option that it does not know, but the misspelt
        # option is often the reason for both.
        _refuse_unknown_options(parser, arguments)
        raise
    verb, rest = _innermost(parser, list(arguments), args)
    if not unknown:
        return Arguments(args, verb)
    if verb is not parser and not any(word.startswith("-") and word != "-" for word in unknown):
        again = argparse.Namespace(**{name: getattr(args, name) for name in _chosen(parser, args)})
        args, unknown = verb.parse_known_intermixed_args(rest, again)
        if not unknown:
            return Arguments(args, verb)
    raise UsageError(verb.prog, f"unrecognized arguments: {' '.join(unknown)}{_meant(verb, unknown)}")


def _refuse_unknown_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Raise UsageError for the first long option that the innermost verb does not have."""
    verb = parser
    for word in arguments:
        name = word.partition("=")[0]
        if word == "--":
            return
        if (verbs := _verbs(verb)) and word in verbs.choices:
            verb = verbs.choices[word]
        elif name.startswith("--") and not any(known.startswith(name) for known in _long_options(verb)):
            raise UsageError(verb.prog, f"unrecognized arguments: {name}{_meant(verb, [name])}")


def _long_options(verb: argparse.ArgumentParser) -> list[str]:
    return re.findall(r"--[a-z][a-z-]*", verb.format_help())


def _meant(verb: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    options = [word.partition("=")[0] for word in unknown if word.startswith("--")]
    if not options:
        return ""
    known = _long_options(verb)
    if options[0] in known:
        return f"; it goes after the verb: {verb.prog} {options[0]} …"
    return did_you_mean(options[0], known, cutoff=0.7)


def _verbs(parser: argparse.ArgumentParser) -> Subparsers | None:
    return parser.verbs if isinstance(parser, Parser) else None


def _chosen(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[str]:
    """Return the attributes of `args` that hold the chosen verb, action or model."""
    verbs = _verbs(parser)
    chosen = verbs and getattr(args, verbs.dest, None)
    return [verbs.dest, *_chosen(verbs.choices[chosen], args)] if verbs and chosen else []


def _innermost(
    parser: argparse.ArgumentParser, rest: list[str], args: argparse.Namespace
) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of the innermost chosen verb, action or model, and the arguments after its name."""
    verbs = _verbs(parser)
    chosen = verbs and getattr(args, verbs.dest, None)
    if not (verbs and chosen):
        return parser, rest
    return _innermost(verbs.choices[chosen], rest[rest.index(chosen) + 1 :], args)
