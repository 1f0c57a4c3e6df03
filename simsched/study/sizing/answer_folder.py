"""The directory of an answer: ``answer.json``, ``trials.csv``, ``answer.png`` and perhaps ``runs/``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from simsched.errors import ConfigError
from simsched.folders import Layout, StagedFolder
from simsched.study.runs.study_folder import RUNS, strangers_among_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
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


def strangers(folder: Path) -> Iterator[str] | None:
    """Yield the names of entries that do not belong to the answer; None if the folder is not an answer's."""
    return _strangers(folder) if _is_whole(folder) else None


def _strangers(folder: Path) -> Iterator[str]:
    own = {RECORD, TABLE, FIGURE}
    for path in sorted(folder.iterdir()):
        if path.name != RUNS and (path.name not in own or path.is_symlink() or not path.is_file()):
            yield path.name
    yield from strangers_among_runs(folder)


def _is_whole(folder: Path) -> bool:
    """Whether there is a whole ``answer.json``; it is written last."""
    try:
        record = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.keys() >= {"question", "answer", "trials"}


ANSWER = Layout("answer", strangers, _is_whole)
"""The layout of an answer's directory, by which an earlier answer is recognized."""
