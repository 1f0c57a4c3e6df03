"""Sections of reports from other packages: printed by ``report --section``, or on the page of a run."""

from __future__ import annotations

from copy import copy
from html import escape
from typing import TYPE_CHECKING, Protocol

from simsched.plugins.plugin_errors import failed, name_of
from simsched.plugins.plugin_kind import PluginKind
from simsched.text_table import PAGE_WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.report.data.tables import RunTables


class ReportSection(Protocol):
    """A part of the report of a run; its keyword-only arguments are options.

    If it has a method ``html(run)``, that returns its markup on an HTML page, in place of the text.
    """

    def __call__(self, run: RunTables, width: int) -> str:
        """Return the text of the section, with lines of at most `width` characters."""


KIND = PluginKind("report section", "simsched.report_sections", ReportSection)


def as_section(given: str | ReportSection) -> tuple[str, ReportSection]:
    """Return a section, given by name or as an object, with its name; errors as `PluginKind.installed`."""
    if not isinstance(given, str):
        return name_of(given), KIND.checked(given)
    found: ReportSection | None = KIND.installed(given)
    if found is None:
        raise KIND.unknown(given, ())
    return given, found


def section_text(run: RunTables, given: str | ReportSection, width: int = PAGE_WIDTH) -> str:
    """Return the text of a section; PluginError if it fails or does not return a text."""
    name, section = as_section(given)
    with KIND.named(section, name):
        return _text(section(_apart(run), width), section, name)


def section_markup(run: RunTables, given: str | ReportSection) -> str:
    """Return a section as a part of an HTML page; errors as `section_text`."""
    name, section = as_section(given)
    html = getattr(section, "html", None)
    if html is None:
        body = f"<pre>{escape(section_text(run, given))}</pre>"
    else:
        with KIND.named(section, name):
            body = _text(html(_apart(run)), section, name)
    title = escape(f"{name} of {run.name}")
    return f'<section class="run"><h2>{title}</h2>{body}</section>'


def with_sections(text: str, runs: Sequence[RunTables], sections: Iterable[str], width: int) -> str:
    """Return a page of plain text with sections of each run below it; of several runs with their names."""
    parts = [text.rstrip("\n")]
    for section in sections:
        for run in runs:
            head = f"{run.name}\n" if len(runs) > 1 else ""
            parts.append(head + section_text(run, section, width).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def _apart(run: RunTables) -> RunTables:
    """Return the run with copies of its frames: a section that changes them changes no other part."""
    apart = copy(run)
    for name, value in vars(run).items():
        if hasattr(value, "columns"):
            apart.__dict__[name] = value.copy()
    return apart


def _text(value: object, section: ReportSection, name: str) -> str:
    if not isinstance(value, str):
        raise failed(KIND.word, section, f"returned {type(value).__name__}, not a text", name)
    return value
