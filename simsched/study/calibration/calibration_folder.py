"""The directory of a calibration: a configuration, the table of settings, the record, and maybe the runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from simsched.folders import Layout, StagedFolder
from simsched.study.runs.study_folder import RUNS, strangers_among_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simsched.study.calibration.calibration import Calibration

RECORD, TABLE, CONFIG = "calibration.json", "settings.csv", "config.toml"


def write_calibration(found: Calibration, directory: Path) -> list[Path]:
    """Write a calibration and return the files.

    Raises
    ------
    RunError
        if the directory cannot be written, or holds anything but an earlier calibration, which is replaced.
    """
    with StagedFolder(directory, CALIBRATION) as staged:
        return finish_calibration(found, staged)


def finish_calibration(found: Calibration, staged: StagedFolder) -> list[Path]:
    """Write a calibration into a staged folder, give the folder its name, and return the files."""
    (staged.work / CONFIG).write_bytes(config_text(found).encode())
    (staged.work / TABLE).write_bytes(found.to_csv().encode())
    (staged.work / RECORD).write_bytes(found.to_json().encode())
    path = staged.finish()
    return [path / name for name in (CONFIG, TABLE, RECORD)]


def config_text(found: Calibration) -> str:
    """Return the configuration to use as TOML, with the result as comments."""
    import tomli_w

    lines = "".join(f"# {line}\n" for line in found.sentence.split(". "))
    return f"{lines}\n{tomli_w.dumps(found.config)}"


def strangers(folder: Path) -> Iterator[str] | None:
    """Yield the entries that do not belong to the calibration; None if the folder is not a calibration's."""
    return _strangers(folder) if _is_whole(folder) else None


def _strangers(folder: Path) -> Iterator[str]:
    own = {RECORD, TABLE, CONFIG}
    for path in sorted(folder.iterdir()):
        if path.name != RUNS and (path.name not in own or path.is_symlink() or not path.is_file()):
            yield path.name
    yield from strangers_among_runs(folder)


def _is_whole(folder: Path) -> bool:
    """Whether there is a whole ``calibration.json``; it is written last."""
    try:
        record = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.keys() >= {"format", "steps", "config", "blocks"}


CALIBRATION = Layout("calibration", strangers, _is_whole)
"""The layout of a calibration's directory, by which an earlier one is recognized."""
