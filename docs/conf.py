"""Sphinx configuration of the manual; `make docs` builds it."""

from __future__ import annotations

from importlib.metadata import version as installed_version

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
}

myst_heading_anchors = 3
suppress_warnings = [
    "myst.xref_missing",  # pages link to files outside the manual; tests/manual checks all links
    "ref.python",  # several classes have a `name`
]
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_ivar = True  # an attribute that autodoc lists as a member is not listed twice
