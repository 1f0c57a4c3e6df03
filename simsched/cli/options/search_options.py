"""Parts that `size`, `headroom` and `calibrate` share: options, answers on the screen and in a folder."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from simsched.cli.options.run_options import add_rules, rules_document
from simsched.cli.options.workloads import READING, add_reading
from simsched.cli.support.messages import note
from simsched.cli.support.output import write
from simsched.declare.flags import add_flags, flags_given
from simsched.study.search_values import WorkerPlaces

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from simsched.folders import Layout, StagedFolder
    from simsched.site.site import Site
    from simsched.study.search_values import SearchRequest

FORMATS = ("text", "json", "csv")


class Found(Protocol):
    """The answer of a search."""

    def text(self) -> str:
        """Return the answer for a terminal."""

    def to_json(self) -> str:
        """Return the answer as JSON."""

    def to_csv(self) -> str:
        """Return the table of the values that were tried."""

    def __bool__(self) -> bool:
        """Whether something was found."""


def add_output(parser: argparse.ArgumentParser, files: str) -> None:
    """Add the options for the output; `files` names the files of the directory."""
    parser.add_argument("-o", "--output", metavar="DIR", help=f"write {files} to DIR")
    parser.add_argument("--runs", action="store_true", help="keep every run directory in DIR/runs")
    parser.add_argument("--format", choices=FORMATS, default="text", help="text (default), json or csv")
    parser.add_argument("--quiet", action="store_true", help="print neither progress nor notes on the inputs")


def add_work(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the workers, the rules of a run, and how the workload is read."""
    add_flags(parser.add_argument_group("workers"), WorkerPlaces)
    add_rules(parser)
    add_reading(parser)


def check_output(args: argparse.Namespace) -> None:
    """Raise ConfigError if the runs are to be kept and no directory is given."""
    from simsched.errors import ConfigError

    if args.runs and not args.output:
        raise ConfigError("there is no directory for the runs", where="--runs", expected="-o DIR")


def keywords_of(args: argparse.Namespace, site: Site | None, request: type[SearchRequest]) -> dict[str, Any]:
    """Return the keywords of a search, without ``runs``."""
    options = rules_document(args, site)
    return {
        **flags_given(args, request),
        "seed": options.pop("seed", 0),
        "transforms": tuple(args.transform),
        "reading": {name: getattr(args, name) for name in READING if name != "transform"},
        "options": options,
    }


def answered(
    args: argparse.Namespace,
    search: Callable[[Path | None], Found],
    layout: Layout,
    finish: Callable[[Any, StagedFolder], list[Path]],
) -> bool:
    """Search, print the answer, and write its directory if there is one; return whether something was found.

    `search` takes the folder that keeps the run directories, or None; `finish` writes the files.
    """
    from simsched.folders import StagedFolder

    if not args.output:
        found = search(None)
        _show(found, args.format)
        return bool(found)
    with StagedFolder(args.output, layout) as staged:
        found = search(staged.work / "runs" if args.runs else None)
        _show(found, args.format)
        written = finish(found, staged)
    if staged.replaced:
        note(f"replaced the earlier {layout.noun} in {args.output}")
    for path in written:
        sys.stderr.write(f"written: {path}\n")
    return bool(found)


def _show(found: Found, kind: str) -> None:
    if kind == "json":
        write(found.to_json(), "json")
    elif kind == "csv":
        write(found.to_csv(), "other")
    else:
        write(found.text())
