"""What the studies share: inputs made by the command line, a page written, pictures saved."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from analysis.pages import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    VIOLET,
    ResultPage,
    key,
    new_figure,
    tidy,
)
from simsched.cli import main

__all__ = ["BLUE", "CYCLE", "GREEN", "GREY", "ORANGE", "OUTPUT", "PURPLE", "QUICK", "SKY",
           "VERMILION", "VIOLET", "Page", "kept_file", "key", "new_figure", "scratch", "simsched",
           "tidy"]  # fmt: skip

HERE = Path(__file__).resolve().parent
#: a folder that keeps the parts of long studies that are done, so that an interrupted one continues
KEPT = os.environ.get("SIMSCHED_STUDIES_WORK")
OUTPUT = Path(os.environ.get("SIMSCHED_STUDIES") or HERE)
#: SIMSCHED_STUDIES_QUICK=1 runs every study on a small part of its workload, to see that it works
QUICK = bool(os.environ.get("SIMSCHED_STUDIES_QUICK"))


def simsched(*arguments: str) -> None:
    """Run one command line of simsched in this process; stop the study if it fails."""
    print("$ simsched", *arguments, flush=True)
    if main(list(arguments)) != 0:
        raise SystemExit(f"failed: simsched {' '.join(arguments)}")


def kept_file(name: str) -> Path | None:
    """Return the file that keeps a part of a study, in a folder that exists; None if nothing is kept."""
    if KEPT is None:
        return None
    folder = Path(KEPT)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


@contextmanager
def scratch():
    """A directory for inputs and runs, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="simsched-study-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Page(ResultPage):
    """The page of one study: question, method, result, figures; written when the study is done."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__(name, title, OUTPUT, f"python -m analysis.studies.{name}")
