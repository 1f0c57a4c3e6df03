"""The directory of an answer: ``answer.json``, ``trials.csv``, ``answer.png``, ``runs/`` if asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, RunError
from simsched.study.folder import write_beside

if TYPE_CHECKING:
    from pathlib import Path

    from simsched.study.answer import Answer

RECORD, TABLE, PICTURE, RUNS = "answer.json", "trials.csv", "answer.png", "runs"


def refuse_other(directory: Path) -> None:
    """Raise `RunError` unless a directory may be written: it is not there, empty, or an earlier answer's."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise RunError("this is a file", where=str(directory), expected="a directory")
    inside = {path.name for path in directory.iterdir()}
    if not inside or inside <= {RUNS}:
        return
    try:
        ours = "question" in json.loads((directory / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        ours = False
    if not ours:
        raise RunError("this directory holds something else", where=str(directory),
                       expected="a new directory, or an earlier answer's")  # fmt: skip


def write_answer(answer: Answer, directory: Path) -> list[Path]:
    """Write an answer and return the files; without matplotlib there is no picture.

    Raises
    ------
    RunError
        if the directory holds something else.
    """
    refuse_other(directory)
    directory.mkdir(parents=True, exist_ok=True)
    picture, table, record = (directory / name for name in (PICTURE, TABLE, RECORD))
    written = [table, record]
    try:
        answer.plot(picture)
        written.insert(0, picture)
    except ConfigError:
        picture.unlink(missing_ok=True)
    write_beside(table, answer.to_csv().encode())
    write_beside(record, answer.to_json().encode())
    return written
