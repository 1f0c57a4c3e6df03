"""The directory of an answer: ``answer.json``, ``trials.csv``, ``answer.png``, ``runs/`` if asked for."""

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

RECORD, TABLE, PICTURE = "answer.json", "trials.csv", "answer.png"


def write_answer(answer: Answer, directory: Path) -> list[Path]:
    """Write an answer and return the files; without matplotlib there is no picture.

    Raises
    ------
    RunError
        If the directory holds anything but an earlier answer, which is replaced, or cannot be written.
    """
    with StagedFolder(directory, ANSWER) as staged:
        return finish_answer(answer, staged)


def finish_answer(answer: Answer, staged: StagedFolder) -> list[Path]:
    """Write an answer into a folder in the making, give it its name, and return the files."""
    names = [TABLE, RECORD]
    try:
        answer.plot(staged.work / PICTURE)
        names.insert(0, PICTURE)
    except ConfigError:
        pass
    (staged.work / TABLE).write_bytes(answer.to_csv().encode())
    (staged.work / RECORD).write_bytes(answer.to_json().encode())
    path = staged.finish()
    return [path / name for name in names]


def strangers(folder: Path) -> Iterator[str] | None:
    """Yield the names of what is in a directory and not part of the answer; None if it is not an answer's."""
    return _strangers(folder) if _is_whole(folder) else None


def _strangers(folder: Path) -> Iterator[str]:
    own = {RECORD, TABLE, PICTURE}
    for path in sorted(folder.iterdir()):
        if path.name != RUNS and (path.name not in own or path.is_symlink() or not path.is_file()):
            yield path.name
    yield from strangers_among_runs(folder)


def _is_whole(folder: Path) -> bool:
    """Whether there is an ``answer.json`` of ours, which is written last."""
    try:
        record = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.keys() >= {"question", "answer", "trials"}


ANSWER = Layout("answer", strangers, _is_whole)
"""The layout of an answer's directory, by which earlier answers are told from anything else."""
