"""Readers of job logs from other packages: by name (``--as``), as objects, or by content."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from simsched.plugins.plugin_errors import failed, name_of
from simsched.plugins.plugin_kind import PluginKind
from simsched.workload.job import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.workload.mapping import ReadOptions
    from simsched.workload.source import Source


class WorkloadReader(Protocol):
    """Reads a log; its keyword-only arguments are options.

    If it has a method ``recognises(line)``, that is called with the first line of a file that is not blank,
    and the reader is used for the files for which it returns true.
    """

    def __call__(self, lines: Iterable[str], reading: ReadOptions) -> Workload:
        """Return the workload of the lines of a log."""


KIND = PluginKind("workload reader", "simsched.workload_readers", WorkloadReader)


@dataclass(frozen=True, slots=True)
class PluginReader:
    """A reader of another package, whose failures and answers name it; it reads as `load.Format` does."""

    function: WorkloadReader
    name: str

    def read(self, source: Source, reading: ReadOptions) -> Workload:
        """Read the lines of a source; PluginError if the reader fails or returns no workload."""
        with closing(source.lines()) as lines, KIND.named(self.function, self.name):
            found: Any = self.function(lines, reading)
        if not isinstance(found, Workload):
            problem = f"returned {type(found).__name__}, not a Workload"
            raise failed(KIND.word, self.function, problem, self.name)
        return found


def given_reader(value: str | WorkloadReader) -> PluginReader | None:
    """Return a reader of another package by name or as an object; None for a name that is not installed."""
    if not isinstance(value, str):
        return PluginReader(KIND.checked(value), name_of(value))
    found = KIND.installed(value)
    return None if found is None else PluginReader(found, value)


def recognising_reader(head: str) -> PluginReader | None:
    """Return the installed reader that recognises a text by its first line; None if none does."""
    line = next((line.strip() for line in head.splitlines() if line.strip()), "")
    for name in KIND.names() if line else ():
        recognises = getattr(KIND.found(name), "recognises", None)
        if recognises is None:
            continue
        reader = KIND.installed(name)
        assert reader is not None
        with KIND.named(reader, name):
            is_its = reader.recognises(line)
        if is_its:
            return PluginReader(reader, name)
    return None
