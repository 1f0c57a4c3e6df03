"""Sphinx configuration of the manual; `make docs` builds it."""

from __future__ import annotations

import re
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "simsched"
author = "The simsched developers"
copyright = "2026, The simsched developers"  # noqa: A001 (Sphinx's name)
release = version = installed_version("simsched")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {
    "description": "Simulated scheduler and matching engine for Flux-style clusters",
    "page_width": "1180px",  # the output of commands is up to 110 characters wide
    "body_max_width": "none",
    "code_font_size": "0.8em",
}
html_static_path = ["_static"]
html_css_files = ["manual.css"]

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


def setup(app: Sphinx) -> None:
    """Register the hook; 400 is before napoleon, which has the default 500."""
    app.connect("autodoc-process-docstring", _complete, priority=400)
