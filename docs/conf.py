"""Sphinx configuration of the manual; `make docs` builds it."""

from __future__ import annotations

import argparse
import os
import re
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import Directive
from pygments.lexers.special import TextLexer

from simsched.cli import VERBS, build_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

os.environ.update(NO_COLOR="1", COLUMNS="100")  # for the usage that argparse writes
project = "simsched"
author = "The simsched developers"
copyright = "2026, The simsched developers"  # noqa: A001 (Sphinx's name)
release = version = installed_version("simsched")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "simsched"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
smartquotes = False  # options are printed as they are typed
pygments_style, pygments_dark_style = "default", "monokai"
man_pages = [("manpage/simsched", "simsched", "simulated scheduler for HPC clusters", author, 1)]

# the copy button takes the commands of an example without prompts and output
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

myst_heading_anchors = 3
suppress_warnings = [
    "myst.xref_missing",  # pages link to files outside the manual; tests/manual checks all links
    "ref.python",  # several classes have a `name`
]
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_ivar = True  # an attribute that autodoc lists as a member is not listed twice

_RULE = re.compile(r"-{4,}")
_ENTRY = re.compile(r"(?P<names>\w+(?:, \w+)*) : (?P<text>.+)")


def _complete(_app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Write a docstring as napoleon expects it, before napoleon reads it.

    In our docstrings the text after `` : `` describes an entry, where NumPy's style has the type, and
    examples after a section have no heading.
    """
    found: list[str] = []
    in_section = False
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if _RULE.fullmatch(line):
            in_section = True
        elif in_section and line.startswith(">>> "):
            if found[-1] == "":
                found += ["Examples", "--------"]
            in_section = False
        elif in_section and entry is not None:
            found += [entry["names"], "    " + entry["text"]]
            continue
        found.append(line)
    lines[:] = found


class Options(Directive):
    """All verbs with their arguments, from the parser of the command line itself."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each verb."""
        parser = build_parser(*VERBS)
        return [*_arguments(parser), *_sections(parser, parser.prog)]


def _sections(parser: argparse.ArgumentParser, name: str) -> Iterator[nodes.Node]:
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for word, verb in action.choices.items():
            title = f"{name} {word}"
            section = nodes.section(ids=[nodes.make_id(title)], names=[title])
            section += nodes.title(text=title)
            for text in filter(None, (verb.description or _help_of(action, word), verb.epilog)):
                section += nodes.paragraph(text=text)
            usage = verb.format_usage().removeprefix("usage: ")
            section += nodes.literal_block(usage, usage, language="text")
            section += [*_arguments(verb), *_sections(verb, title)]
            yield section


def _help_of(action: Any, word: str) -> str:
    found = next((one.help for one in action._choices_actions if one.dest == word), None)
    return f"{found[:1].upper()}{found[1:]}." if found else ""


def _arguments(parser: argparse.ArgumentParser) -> Iterator[nodes.Node]:
    """Yield an option list for each group of arguments, in the order of ``--help``."""
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        listed = nodes.option_list()
        for action in group._group_actions:
            if action.help is argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
                continue
            words = formatter._format_action_invocation(action).split(", ")
            item = nodes.option_group("", *(nodes.option("", nodes.option_string(text=w)) for w in words))
            text = nodes.paragraph(text=formatter._expand_help(action) if action.help else "")
            listed += nodes.option_list_item("", item, nodes.description("", text))
        if len(listed):
            standard = group.title in ("options", "positional arguments")
            yield from [] if standard else [nodes.paragraph("", "", nodes.strong(text=group.title))]
            yield listed


def setup(app: Sphinx) -> None:
    """Register what the pages use; 400 is before napoleon, which has the default 500."""
    app.add_directive("simsched-options", Options)
    app.add_lexer("csv", TextLexer)  # Pygments has none, and GitHub knows the word
    app.connect("autodoc-process-docstring", _complete, priority=400)
