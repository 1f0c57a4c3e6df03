"""The requests of `size`, `headroom` and `calibrate`: keywords in Python, flags on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from simsched.arguments import check, check_callable, check_path, check_whole, texts, wrong
from simsched.declare.flags import field, flag
from simsched.declare.kinds import HIDDEN, ValueKind, number, text, whole
from simsched.declare.table import Declared, fields_of
from simsched.errors import ConfigError
from simsched.formats.rfc.declared import DURATION
from simsched.formats.rfc.duration import parse_duration
from simsched.study.spec.run_task import MODEL, Measure, RunTask, TaskInput, canonical_json
from simsched.study.spec.target import SizingTarget, parse_targets

if TYPE_CHECKING:
    from simsched.graph.cluster import ClusterLike
    from simsched.study.runs.workers import Workers
    from simsched.workload.load import WorkloadLike

Hidden = Annotated[Any, HIDDEN]


def _length(value: Any, where: str) -> str | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{value!r} is not a duration", where=where, expected="a duration such as 7d")
    return value


def _checked(valid: Callable[[str, Any], None]) -> Callable[[Any, str], Any]:
    """Return the reader of values that a check of arguments accepts."""

    def read(value: Any, where: str) -> Any:
        valid(where, value)
        return value

    return read


TARGETS = ValueKind(
    lambda value, _: parse_targets(value),
    {"type": ["string", "array"], "description": "one or several targets, such as p95_wait<=1h"},
    lambda targets: list(map(str, targets)),
)
Seconds = Annotated[float, ValueKind(lambda value, where: parse_duration(value, where=where), DURATION)]
Length = Annotated[Any, ValueKind(_length, DURATION)]
Count = Annotated[int | None, ValueKind(_checked(check_whole), {"type": "integer"})]
Real = Annotated[
    float, ValueKind(_checked(partial(check, kinds=float | int, expected="a number")), {"type": "number"})
]


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

    cluster, workload : as for `simulate`.
    seed : seed of the runs and of the resampling (default 0).
    confidence : confidence of intervals (default 0.95).
    transforms : steps of the workload, in order.
    reading : keywords of `load_workload`.
    options : rules as the keys of a configuration file.
    runs : folder that keeps the run directories.
    progress : a function that is called after each evaluation; that of `calibrate` gets the number of runs
        that are done, and of those known to come.
    log_use : a function that is called once with the workload as it was read; returns the sentence on its
        use, which the answer records.
    """

    cluster: Hidden
    workload: Hidden
    seed: Annotated[int, whole()] = 0
    confidence: Annotated[float, number(0.5, 0.9999)] = 0.95
    transforms: Hidden = ()
    reading: Hidden = None
    options: Hidden = None
    runs: Hidden = None
    progress: Hidden = None
    log_use: Hidden = None

    @classmethod
    def of(
        cls, cluster: ClusterLike, workload: WorkloadLike, keywords: Mapping[str, Any], **more: Any
    ) -> Self:
        """Return the request of a call; the rules among its keywords, with those of a site, are ``options``.

        Raises
        ------
        ConfigError
            for a keyword that does not exist, or a value of the wrong type.
        """
        from simsched.simulation.options.run_config import OPTIONS, merged
        from simsched.site.log_use import reading_on, use_sentence
        from simsched.site.site_folder import site_given

        given = {name: value for name, value in keywords.items() if value is not None}
        rules = {name: given.pop(name) for name in tuple(given) if name not in cls.__struct_fields__}
        for one in fields_of(cls).values():
            if one.name in given:
                given[one.name] = one.kind.read(given[one.name], one.name)
        for name in ("options", "reading"):
            check(name, given.setdefault(name, {}), Mapping, "a mapping")
        for name in ("progress", "log_use"):
            check_callable(name, given.get(name))
        if "runs" in given:
            check_path("runs", given["runs"])
            given["runs"] = Path(given["runs"])
        for name in ("transforms", "knobs"):
            given[name] = texts(name, given.get(name, ()))
        document = {str(key).replace("_", "-"): value for key, value in given["options"].items()}
        keys = {option.name: key for key, option in OPTIONS.items()}
        for name, value in rules.items():
            plain = list(value) if isinstance(value, Iterator) else value  # it is read once
            try:
                document[keys[name]] = json.loads(canonical_json(plain))
            except ConfigError:
                expected = (
                    "a name or plain data, as in a configuration file: other processes perform the runs"
                )
                raise wrong(name, plain, expected) from None
        site = site_given(cluster)
        if site is not None:
            cluster = site.cluster_file or site.cluster
            document = merged(site.config, document)
            given["reading"] = {"on_site": reading_on(site), **given["reading"]}
            given.setdefault("log_use", partial(use_sentence, site))
        given |= {"cluster": cluster, "workload": workload, "options": document, **more}
        return cls(**{name: value for name, value in given.items() if name in cls.__struct_fields__})

    def base(self, measure: Measure | None = None) -> RunTask:
        """Return the run of today: the machine, the load and the rules as they are."""
        return RunTask(
            cluster_input(self.cluster),
            workload_input(self.workload, self.reading),
            transforms=self.transforms,
            options=self.options,
            seed=self.seed,
            measure=measure or Measure(),
        )

    def use_of(self, base: RunTask) -> dict[str, str]:
        """Return the sentence on the use of the log, if there is one; a model is not a log."""
        if self.log_use is None or base.workload.kind == MODEL:
            return {}
        from simsched.study.runs.input_cache import INPUTS

        sentence = self.log_use(INPUTS.workload(base.changed(transforms=())))
        return {"log_use": sentence} if sentence else {}


@contextmanager
def opened(request: WorkerPlaces, *bases: RunTask) -> Iterator[Workers]:
    """Open the workers of a request and send them the inputs of its runs."""
    from simsched.study.runs.worker_pools import open_workers

    with open_workers(**request.places) as workers:
        workers.send([source for base in bases for source in (base.cluster, base.workload)])
        yield workers


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
    """

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


class SizeRequest(SizingRequest, frozen=True, kw_only=True):
    """The options of `size`.

    grow : vary this number: nodes (default), the nodes of a group (a property, the common part of names,
        a hostlist), gpus or cores per node, or a value of a recipe (groups[0].count).
    least : smallest size to try (default 1).
    most : largest size to try (default 16 times today's).
    """

    grow: Annotated[Any, flag("WHAT")] = "nodes"
    least: Count = field(name="min", default=None)
    most: Count = field(name="max", default=None)


class LoadRequest(SizingRequest, frozen=True, kw_only=True):
    """The options of `headroom`.

    step : precision, as a multiple of the load (default 0.01).
    least : lowest load to try (default 0.1).
    most : highest load to try (default 10).
    """

    step: Real = 0.01
    least: Real = field(name="min", default=0.1)
    most: Real = field(name="max", default=10.0)


class CalibrationRequest(SearchRequest, frozen=True, kw_only=True):
    """The options of `calibrate`.

    knobs : names of the knobs to try (default: all).
    held_out : share of the weeks, the last ones, that test and do not choose (default 0.333).
    beside : try only the N best settings of each knob beside others, which is quicker (default: all).
    """

    knobs: Hidden = ()
    held_out: Annotated[float, number(0, 1)] = 1 / 3
    beside: Annotated[int | None, whole(1, 1000)] = None


# --- inputs in any form


def cluster_input(cluster: ClusterLike) -> TaskInput:
    """Return a cluster (a file, a bundled name, ``-`` or a value) as the input of a task."""
    from simsched.graph.cluster import as_cluster

    if isinstance(cluster, str | Path):
        return _input("clusters", str(cluster), {})
    cluster = as_cluster(cluster)
    return TaskInput.of_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")), f"{cluster.name}.json")


def workload_input(workload: WorkloadLike, reading: Mapping[str, Any]) -> TaskInput:
    """Return a workload (a file, a model, a bundled name, ``-`` or a value) as the input of a task."""
    from simsched.study.spec.study_tables import model_in
    from simsched.workload.load import as_workload
    from simsched.workload.save import lines_of

    if not isinstance(workload, str | Path):
        workload = as_workload(workload)
        return TaskInput.of_text("\n".join(lines_of(workload, "jsonl")) + "\n", f"{workload.name}.jsonl")
    model = model_in(Path(workload))
    if model is not None:
        return TaskInput.of_text(canonical_json(model).decode(), str(workload), kind=MODEL)
    return _input("workloads", str(workload), reading)


def _input(room: str, name: str, reading: Mapping[str, Any]) -> TaskInput:
    if name == "-":
        from simsched.formats.text.documents import read_text

        return TaskInput.of_text(read_text("-"), "stdin", reading=reading)
    return TaskInput.find(room, name, {key: value for key, value in reading.items() if value})
