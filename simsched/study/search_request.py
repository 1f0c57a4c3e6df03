"""Arguments that the searches `size`, `headroom` and `calibrate` share: log, rules, workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, texts, wrong
from simsched.errors import ConfigError
from simsched.simulation.options.run_rules import PolicyRules
from simsched.study.stats import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from simsched.site.site import Site


class SearchOptions(PolicyRules, total=False):
    """The keywords that all searches share; rules are names or plain data, as other processes run them.

    Parameters
    ----------
    seed : of the runs, and of the resampling; 0.
    confidence : of intervals; 0.95.
    transforms, reading : steps of the workload, and keywords of `load_workload`.
    options : rules as the keys of a configuration file.
    workers, scheduler, hpc, executor : the workers, as for `sweep`.
    runs : folder that keeps the run directories.
    """

    seed: int
    confidence: float
    transforms: Iterable[str]
    reading: Mapping[str, Any]
    options: Mapping[str, Any]
    workers: int | None
    scheduler: str | None
    hpc: str | None
    executor: Executor | None
    runs: str | Path | None


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The values of `SearchOptions` with their defaults; all rules are among the `options`."""

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


def fields_given(
    request: type[SearchRequest], keywords: Mapping[str, Any], site: Site | None
) -> dict[str, Any]:
    """Return the fields of a request that a call gives; the rules, with those of a site, are ``options``.

    Raises
    ------
    ConfigError
        for a shared field of the wrong type.
    """
    from simsched.simulation.options.run_config import OPTIONS, merged
    from simsched.site.log_use import reading_on
    from simsched.study.spec.run_task import canonical_json

    known = {item.name for item in fields(request)}
    given = {name: value for name, value in keywords.items() if name in known}
    check_number("seed", given.get("seed", 0), whole=True)
    check_number("confidence", given.get("confidence", CONFIDENCE))
    for name in ("options", "reading"):
        check(name, given.get(name, {}), Mapping, "a mapping")
    check_callable("progress", given.get("progress"))
    if given.get("runs") is not None:
        check_path("runs", given["runs"])
        given["runs"] = Path(given["runs"])
    document = {str(key).replace("_", "-"): value for key, value in given.get("options", {}).items()}
    keys = {option.name: key for key, option in OPTIONS.items()}
    for name, value in keywords.items():
        if name not in known and value is not None:
            value = list(value) if isinstance(value, Iterator) else value  # noqa: PLW2901 (it is read once)
            try:
                document[keys[name]] = json.loads(canonical_json(value))
            except ConfigError:
                expected = (
                    "a name or plain data, as in a configuration file: other processes perform the runs"
                )
                raise wrong(name, value, expected) from None
    if site is not None:
        document = merged(site.config, document)
        given["reading"] = {"on_site": reading_on(site), **given.get("reading", {})}
    given["options"] = document
    given["transforms"] = texts("transforms", given.get("transforms", ()))
    return given


def check_number(name: str, value: Any, *, whole: bool = False) -> None:
    """Raise ConfigError unless the value is a number, or a whole number."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigError(f"{name} is {value!r}", expected="a whole number" if whole else "a number")
