"""The formats that a run can be written in for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.report.data.tables import RunTables


@dataclass(frozen=True, slots=True)
class RunFormat:
    """One format: a line for the help, and the function (``module:name``) that yields its text."""

    summary: str
    written_by: str


FORMATS: dict[str, RunFormat] = {
    "swf": RunFormat("Standard Workload Format 2.2 with the simulated waits", "swf_run:swf_lines"),
    "evalys": RunFormat("the _jobs.csv of evalys and Batsim", "evalys_jobs:evalys_lines"),
    "perfetto": RunFormat(
        "trace events (JSON) of the jobs on each node, for Perfetto", "trace_events:trace_text"
    ),
    "flux-fiction": RunFormat(
        "the CSV of flux-fiction, of the jobs that ran", "flux_fiction_run:flux_fiction_lines"
    ),
}


def export_text(run: RunTables, to: str) -> Iterator[str]:
    """Yield the text of a run in a format of `FORMATS`.

    Raises
    ------
    ConfigError
        for an unknown format.
    RunError
        if the run is too large for the format.
    """
    if to not in FORMATS:
        raise ConfigError(f"unknown format {to!r}{did_you_mean(to, FORMATS)}", expected=", ".join(FORMATS))
    module, _, name = FORMATS[to].written_by.partition(":")
    written: Iterator[str] = getattr(import_module(f"simsched.report.exports.{module}"), name)(run)
    return written
