"""Verbs of the command line from declared structs: the flags are the fields, the texts the docstring."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.declare.flags import add_flags
from simsched.declare.table import ENTRY, Declared, is_declared

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from simsched.cli.support.parser import Subparsers

    Part: TypeAlias = type[Declared] | Callable[[argparse.ArgumentParser], object]


def add_verb(
    verbs: Subparsers,
    name: str,
    run: Callable[..., int],
    *parts: Part,
    answers: Sequence[str] = (),
    **more: Any,
) -> argparse.ArgumentParser:
    """Add a verb whose texts are in the docstring of its first struct, and return its parser.

    The docstring begins with the line of a list of verbs and, where it says more, with the description.
    Paragraphs after the entries of its fields are the end of the help.

    run : function of the arguments that returns the exit status.
    parts : structs of flags, and functions that add others, in the order of the help.
    answers : names of the schemas of its answers in JSON, which the help names.
    more : keywords of `add_parser`; the lines of an ``epilog`` are kept.
    """
    text = next((part.__doc__ for part in parts if is_declared(part)), None) or ""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    entries = [at for at, text in enumerate(paragraphs) if ENTRY.match(text)] or [len(paragraphs)]
    about, end = paragraphs[: entries[0]], paragraphs[entries[0] + 1 :]
    if answers:
        names = " or ".join(filter(None, (", ".join(answers[:-1]), answers[-1])))
        end.append(f"JSON Schema of the answer: simsched schema {names}.")
    texts: dict[str, Any] = {
        "help": about[0][:1].lower() + about[0][1:].removesuffix("."),
        "description": "\n\n".join(about[1:] or about),
        "epilog": "\n\n".join(end) or None,
    }
    if "epilog" in more:
        import argparse

        texts["formatter_class"] = argparse.RawDescriptionHelpFormatter
        more["epilog"] = "\n\n".join(filter(None, (more["epilog"], texts["epilog"] if answers else "")))
    else:  # shells show the first line of a description
        texts["description"] = "\n\n".join(" ".join(one.split()) for one in about[1:] or about)
    parser = verbs.add_parser(name, **{**texts, **more})
    for part in parts:
        add_flags(parser, part) if is_declared(part) else part(parser)
    parser.set_defaults(run=run)
    return parser
