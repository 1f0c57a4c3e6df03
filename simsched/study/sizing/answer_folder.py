"""The directory of an answer: ``answer.json``, ``trials.csv``, ``answer.png`` and perhaps ``runs/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import ConfigError
from simsched.folders import StagedFolder
from simsched.study.runs.study_folder import search_layout

if TYPE_CHECKING:
    from pathlib import Path

    from simsched.study.sizing.answer import Answer

RECORD, TABLE, FIGURE = "answer.json", "trials.csv", "answer.png"


def write_answer(answer: Answer, directory: Path) -> list[Path]:
    """Write an answer and return the files; without matplotlib there is no figure.

    Raises
    ------
    RunError
        if the directory cannot be written, or holds anything but an earlier answer, which is replaced.
    """
    with StagedFolder(directory, ANSWER) as staged:
        return finish_answer(answer, staged)


def finish_answer(answer: Answer, staged: StagedFolder) -> list[Path]:
    """Write an answer into a staged folder, give the folder its name, and return the files."""
    names = [TABLE, RECORD]
    try:
        answer.plot(staged.work / FIGURE)
        names.insert(0, FIGURE)
    except ConfigError:
        pass
    (staged.work / TABLE).write_bytes(answer.to_csv().encode())
    (staged.work / RECORD).write_bytes(answer.to_json().encode())
    path = staged.finish()
    return [path / name for name in names]


ANSWER = search_layout("answer", RECORD, (TABLE, FIGURE), frozenset({"question", "answer", "trials"}))
"""The layout of an answer's directory, by which an earlier answer is recognized."""
