"""The options of `size`, `headroom` and `calibrate`: keywords in Python, flags on the command line."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from simsched.declare.kinds import HIDDEN, ValueKind, number, text, whole
from simsched.declare.table import Declared
from simsched.errors import ConfigError
from simsched.formats.rfc.declared import DURATION
from simsched.formats.rfc.duration import parse_duration

Hidden = Annotated[Any, HIDDEN]


def _seconds(value: Any, where: str) -> float:
    return parse_duration(value, where=where)


def _length(value: Any, where: str) -> str | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{value!r} is not a duration", where=where, expected="a duration such as 7d")
    return value


Seconds = Annotated[float, ValueKind(_seconds, DURATION)]
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
    """

    cluster: Hidden
    workload: Hidden
    targets: Hidden
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

    held_out : share of the weeks, the last ones, that test and do not choose (default 0.333).
    beside : try only the N best settings of each knob beside others, which is quicker (default: all).
    """

    knobs: Hidden = ()
    held_out: Annotated[float, number(0, 1)] = 1 / 3
    beside: Annotated[int | None, whole(1, 1000)] = None
