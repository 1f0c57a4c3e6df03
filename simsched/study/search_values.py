"""The options of `size`, `headroom` and `calibrate`: keywords in Python, flags on the command line."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from simsched.arguments import check, check_callable, check_path, texts, wrong
from simsched.declare.answers import WrittenKeys, meaning
from simsched.declare.kinds import HIDDEN, ValueKind, number, text, whole
from simsched.declare.table import Declared, fields_of
from simsched.errors import ConfigError
from simsched.folders import StagedFolder
from simsched.formats.rfc.declared import DURATION
from simsched.formats.rfc.duration import parse_duration
from simsched.study.spec.target import SizingTarget, parse_targets

if TYPE_CHECKING:
    import pandas as pd

    from simsched.folders import Layout
    from simsched.site.site import Site

Hidden = Annotated[Any, HIDDEN]


def _length(value: Any, where: str) -> str | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{value!r} is not a duration", where=where, expected="a duration such as 7d")
    return value


TARGETS = ValueKind(
    lambda value, _: parse_targets(value),
    {"type": ["string", "array"], "description": "one or several targets, such as p95_wait<=1h"},
    lambda targets: list(map(str, targets)),
)
Seconds = Annotated[float, ValueKind(lambda value, where: parse_duration(value, where=where), DURATION)]
Length = Annotated[Any, ValueKind(_length, DURATION)]


class WorkerPlaces(Declared, frozen=True, kw_only=True):
    """The workers that perform runs; at most one of them is given.

    workers : number of processes on this machine (default one per core; 0: this process).
    scheduler : use the workers of a Dask scheduler at this address, such as tcp://host:8786.
    hpc : use executorlib within an allocation of Flux or Slurm.
    executor : an executor of `concurrent.futures`.
    """

    workers: Annotated[int | None, whole()] = None
    scheduler: Annotated[str | None, text("an address", "such as tcp://host:8786")] = None
    hpc: Literal["flux", "slurm"] | None = None
    executor: Hidden = None

    @property
    def places(self) -> dict[str, Any]:
        """The keywords of `open_workers`."""
        return {name: getattr(self, name) for name in WorkerPlaces.__struct_fields__}


class SearchRequest(WorkerPlaces, frozen=True, kw_only=True):
    """What all searches share; all rules are among the `options`.

    seed : seed of the runs and of the resampling (default 0).
    confidence : confidence of intervals (default 0.95).
    transforms : steps of the workload, in order.
    reading : keywords of `load_workload`.
    options : rules as the keys of a configuration file.
    runs : folder that keeps the run directories.
    progress : a function that is called after each evaluation; that of `calibrate` gets the number of runs
        that are done, and of those known to come.
    """

    seed: Annotated[int, whole()] = 0
    confidence: Annotated[float, number(0.5, 0.9999)] = 0.95
    transforms: Hidden = ()
    reading: Hidden = None
    options: Hidden = None
    runs: Hidden = None
    progress: Hidden = None


class SizingRequest(SearchRequest, frozen=True, kw_only=True):
    """The inputs and options of `size` and `headroom`.

    targets : one or several, such as p95_wait<=1h.
    by : scale load by denser ``arrival`` (default; days become shorter, while run times, limits and time
        windows do not change), by longer ``runtime`` and limits, or by removed or copied ``users`` or
        ``jobs``.
    load : today's load, as a multiple of the workload's (default 1).
    seeds : simulate the workload as it is and N - 1 resamples of it (default 5).
    block : length of the blocks of a resample, such as 7d; or users or sessions, to resample these.
    shake : move each submission at random by up to a time, such as 1m, instead of resampling.
    meet : require a target for ``every`` seed (default), for the ``mean``, or for its whole confidence
        interval (``confident``).
    checks : number of sizes or loads to try on each side of the answer (default: 3 to 10, until their
        results are clearer than the noise between seeds).
    warm_up : ignore jobs submitted in this first time, such as 3d.
    drain : ignore jobs submitted in this last time.
    allow_infeasible : ignore jobs that can never run on the machine.
    log_use : a function that is called once with the workload as it was read; returns the sentence on its
        use, which the answer records.
    """

    cluster: Hidden
    workload: Hidden
    targets: Annotated[tuple[SizingTarget, ...], TARGETS]
    by: Literal["arrival", "runtime", "users", "jobs"] = "arrival"
    load: Annotated[float, number(0, 1e6)] = 1.0
    seeds: Annotated[int, whole(1, 1000)] = 5
    block: Length = None
    shake: Length = None
    meet: Literal["every", "mean", "confident"] = "every"
    checks: Annotated[int | None, whole(0, 1000)] = None
    warm_up: Seconds = 0.0
    drain: Seconds = 0.0
    allow_infeasible: bool = False
    log_use: Hidden = None


class CalibrationRequest(SearchRequest, frozen=True, kw_only=True):
    """The options of `calibrate`.

    knobs : names of the knobs to try (default: all).
    held_out : share of the weeks, the last ones, that test and do not choose (default 0.333).
    beside : try only the N best settings of each knob beside others, which is quicker (default: all).
    """

    knobs: Hidden = ()
    held_out: Annotated[float, number(0, 1)] = 1 / 3
    beside: Annotated[int | None, whole(1, 1000)] = None


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
    for one in fields_of(request).values():
        if one.name in given:
            given[one.name] = one.kind.read(given[one.name], one.name)
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


# --- `SearchAnswer`: the answer of `size`, `headroom` or `calibrate`, which can be read, printed and written


Ends = tuple[float | None, float | None]
"""The ends of an interval; null if they are not known."""


class InputOfSearch(WrittenKeys):
    """An input: its name and digest, and how it was read."""

    role: Literal["cluster", "workload"]
    name: str
    sha256: str
    reading: dict[str, Any]


class MeasuredJobs(WrittenKeys):
    """Times of submissions (s) that are ignored at the beginning and at the end."""

    warm_up: float
    drain: float


class AboutSearch(WrittenKeys):
    """The inputs of a search, and how they were run."""

    inputs: Annotated[list[InputOfSearch], meaning("the cluster and the workload")]
    transforms: Annotated[list[str], meaning("steps that change the workload")]
    options: Annotated[
        dict[str, Any], meaning("the rules of the runs, a configuration (its schema is config)")
    ]
    measure: Annotated[MeasuredJobs, meaning("the jobs that are measured")]


class SearchAnswer(ABC):
    """The answer of a search; it is true if something was found.

    Attributes
    ----------
    layout : the files of its directory, by which an earlier answer is recognized.
    """

    layout: ClassVar[Layout]

    @abstractmethod
    def __bool__(self) -> bool:
        """Whether something was found."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer in a few sentences."""

    @property
    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """The values that were tried, one row each."""

    @abstractmethod
    def text(self) -> str:
        """Return the whole answer for a terminal."""

    @abstractmethod
    def to_dict(self) -> Mapping[str, Any]:
        """Return the answer as plain data; equal searches give equal data."""

    @abstractmethod
    def write_files(self, folder: Path) -> list[str]:
        """Write the files of the answer into a folder, the record last, and return their names."""

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return `frame` as CSV, times in seconds."""
        from simsched.report.export import csv_text

        return csv_text(self.frame)

    @property
    def title(self) -> str:
        """The title of the answer in a notebook."""
        return self.layout.noun

    def _repr_html_(self) -> str:
        """Return the whole answer for a notebook."""
        from simsched.text_table import html_text

        return html_text(self.title, self.text())

    def write(self, directory: str | Path) -> list[Path]:
        """Write the directory of the answer and return its files.

        Raises
        ------
        RunError
            if the directory cannot be written, or holds anything but an earlier answer, which is replaced.
        """
        with StagedFolder(directory, self.layout) as staged:
            return self.finish(staged)

    def finish(self, staged: StagedFolder) -> list[Path]:
        """Write the answer into a staged folder, give the folder its name, and return the files."""
        names = self.write_files(staged.work)
        path = staged.finish()
        return [path / name for name in names]


def plain(value: float | None, digits: int = 9) -> float | None:
    """Return a number for JSON: rounded, and None (null) unless it is finite."""
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None
