"""What the tests of sweeps share: a small study, and its dataset as bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from simsched.study.spec.study_file import study_from_dict

RECIPE = {"name": "small", "groups": [{"name": "n", "count": 4, "cores": 4}]}
SMALL = {
    "name": "small",
    "cluster": {"recipe": RECIPE},
    "workload": {"lublin": {"machine": 16, "jobs": 60, "load": 0.9}},
    "axes": {"queue-policy": ["fcfs", "easy"], "load": [0.8, 1.2]},
    "seeds": 2,
}
#: what of a study's directory must not depend on where and in which order runs were performed
COMPARED = ("runs.parquet", "queues.parquet", "failures.json", "study.json")


def small(**changes):
    """The small study with some keys changed; None takes a key away."""
    content = {**SMALL, **changes}
    return study_from_dict({key: value for key, value in content.items() if value is not None})


def dataset(folder) -> dict[str, str]:
    """Digest of every file that has to be the same: the tables over all runs, and every run's own."""
    folder = Path(folder)
    files = [folder / name for name in COMPARED if (folder / name).is_file()]
    files += sorted(folder.glob("jobs/*/*.parquet")) + sorted(folder.glob("timeline/*/*.parquet"))
    files += sorted(folder.glob("runs/*/row.json"))
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def left_over(folder) -> list[str]:
    """What was begun and not finished."""
    return sorted(str(path) for path in Path(folder).rglob("*.writing*"))
