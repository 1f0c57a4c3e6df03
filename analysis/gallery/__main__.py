"""``python -m analysis.gallery``: make pages of the gallery again."""

from __future__ import annotations

import argparse
import os
import tempfile
from importlib import import_module
from pathlib import Path

from analysis.gallery.logs import LOGS, TRACES, Setting

PAGES = ("mualem2001", "tsafrir2007", "carastan2017", "lelong2017")


def main(arguments: list[str] | None = None) -> None:
    """Make the pages that are named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m analysis.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PAGES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a few jobs of a bundled workload, as a test")
    parser.add_argument("-o", "--output", type=Path, help="another folder than this one")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in PAGES]
    if unknown:
        parser.error(f"{unknown[0]!r} is not a page (expected {', '.join(PAGES)})")
    if not given.quick and not any(log.path() for log in LOGS.values()):
        parser.error(
            f"there are no traces: {TRACES} is {os.environ.get(TRACES) or 'not set'}"
            f" (expected a folder with {', '.join(log.file for log in LOGS.values())}; or --quick)"
        )
    if given.quick and given.output is None:
        given.output = Path(tempfile.mkdtemp(prefix="simsched-gallery-"))  # the pages here are of full runs
    setting = Setting(given.quick, given.output or Path(__file__).resolve().parent)
    for name in given.names or PAGES:
        print(f"== {name}", flush=True)
        import_module(f"analysis.gallery.{name}").make(setting)


if __name__ == "__main__":
    main()
