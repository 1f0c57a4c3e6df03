"""Arguments that the searches `size`, `headroom` and `calibrate` share: log, rules, workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, texts
from simsched.errors import ConfigError, did_you_mean
from simsched.study.stats import CONFIDENCE

if TYPE_CHECKING:
    from concurrent.futures import Executor


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The arguments that all searches share.

    Attributes
    ----------
    seed : of the runs, and of the resampling.
    confidence : of intervals.
    transforms, reading : steps of the workload, and keywords of `load_workload`.
    options : keys of a configuration file.
    workers, scheduler, hpc, executor : see `open_workers`.
    runs : folder that keeps the run directories.
    """

    seed: int = 0
    confidence: float = CONFIDENCE
    transforms: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: int | None = None
    scheduler: str | None = None
    hpc: str | None = None
    executor: Executor | None = None
    runs: Path | None = None

    @property
    def places(self) -> dict[str, Any]:
        """The keywords of `open_workers`."""
        names = ("workers", "scheduler", "hpc", "executor")
        return {name: getattr(self, name) for name in names}


def fields_given(request: type[SearchRequest], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that a call gives; keys of a configuration file are among ``options``.

    Raises
    ------
    ConfigError
        for a keyword that is neither, and for a shared field of the wrong type.
    """
    from simsched.simulation.options.run_config import KEYS

    known = {item.name for item in fields(request)}
    given = {name: value for name, value in keywords.items() if name in known}
    rest = {name: value for name, value in keywords.items() if name not in known}
    for name in rest:
        if name.replace("_", "-") not in KEYS:
            raise ConfigError(
                f"unknown keyword {name!r}{did_you_mean(name, known)}", expected=", ".join(sorted(known))
            )
    check_number("seed", given.get("seed", 0), whole=True)
    check_number("confidence", given.get("confidence", CONFIDENCE))
    for name in ("options", "reading"):
        check(name, given.get(name, {}), Mapping, "a mapping")
    check_callable("progress", given.get("progress"))
    if given.get("runs") is not None:
        check_path("runs", given["runs"])
        given["runs"] = Path(given["runs"])
    given["options"] = {**given.get("options", {}), **rest}
    given["transforms"] = texts("transforms", given.get("transforms", ()))
    return given


def check_number(name: str, value: Any, *, whole: bool = False) -> None:
    """Raise ConfigError unless the value is a number, or a whole number."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigError(f"{name} is {value!r}", expected="a whole number" if whole else "a number")
