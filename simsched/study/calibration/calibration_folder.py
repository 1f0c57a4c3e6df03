"""The directory of a calibration: a configuration, the table of settings, the record, and maybe the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.folders import StagedFolder
from simsched.study.runs.study_folder import search_layout

if TYPE_CHECKING:
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


CALIBRATION = search_layout(
    "calibration", RECORD, (TABLE, CONFIG), frozenset({"format", "steps", "config", "blocks"})
)
"""The layout of a calibration's directory, by which an earlier one is recognized."""
