"""Arguments that the searches `size`, `headroom` and `calibrate` share: log, rules, workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, texts, wrong
from simsched.declare.table import fields_of
from simsched.errors import ConfigError
from simsched.simulation.options.run_rules import PolicyRules

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from simsched.site.site import Site
    from simsched.study.search_values import SearchRequest


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

    known = request.__struct_fields__
    given = {name: value for name, value in keywords.items() if name in known and value is not None}
    for field in fields_of(request).values():
        if field.name in given:
            given[field.name] = field.kind.read(given[field.name], field.name)
    for name in ("options", "reading"):
        check(name, given.get(name, {}), Mapping, "a mapping")
    for name in ("progress", "log_use"):
        check_callable(name, given.get(name))
    if "runs" in given:
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
    given.setdefault("reading", {})
    given["options"] = document
    given["transforms"] = texts("transforms", given.get("transforms", ()))
    return given


def check_number(name: str, value: Any, *, whole: bool = False) -> None:
    """Raise ConfigError unless the value is a number, or a whole number."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigError(f"{name} is {value!r}", expected="a whole number" if whole else "a number")
