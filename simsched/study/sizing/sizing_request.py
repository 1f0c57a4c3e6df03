"""The request of `size` and `headroom`: its fields, their checks, and the evaluator that it leads to."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.errors import ConfigError
from simsched.site.log_use import use_sentence
from simsched.site.site_folder import site_given
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.sweep_plan import is_random_run, warn_of_rules
from simsched.study.runs.worker_pools import open_workers
from simsched.study.search_values import TARGETS, SizingRequest, fields_given
from simsched.study.sizing.answer import SearchSeeds
from simsched.study.sizing.evaluation import (
    AcceptanceRule,
    Evaluator,
    seeded,
    wanted,
)
from simsched.study.sizing.search import Scan
from simsched.study.spec.run_task import MODEL, Measure, RunTask, TaskInput, canonical_json
from simsched.study.spec.study_tables import model_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from simsched.graph.cluster import ClusterLike
    from simsched.study.spec.target import SizingTarget
    from simsched.workload.job import Workload
    from simsched.workload.load import WorkloadLike

    EvaluatorFactory: TypeAlias = Callable[[Callable[[int, int], RunTask]], Evaluator]

#: way to scale load → the step of a workload
BY = {"arrival": "load", "runtime": "runtime", "users": "users", "jobs": "copies"}
#: ways to scale load that are random
DRAWN = ("users", "jobs")
UNITS = ("users", "sessions")
"""What seeds resample in place of blocks of time."""


def read_request(
    cluster: ClusterLike,
    workload: WorkloadLike,
    targets: str | SizingTarget | Iterable[str | SizingTarget],
    keywords: Mapping[str, Any],
) -> SizingRequest:
    """Return the request of a call with these keywords.

    Raises
    ------
    ConfigError
        for a keyword that does not exist, or a value of the wrong type.
    """
    site = site_given(cluster)
    given = fields_given(SizingRequest, keywords, site)
    if site is not None:
        cluster = site.cluster_file or site.cluster
        given.setdefault("log_use", partial(use_sentence, site))
    return SizingRequest(cluster=cluster, workload=workload, targets=TARGETS.read(targets, ""), **given)


@contextmanager
def open_search(request: SizingRequest) -> Iterator[tuple[RunTask, SearchSeeds, EvaluatorFactory]]:
    """Check a request, open the workers, and yield the base task, the seeds and a factory of the evaluator.

    The factory takes the function that turns a value and the number of a seed into a task.
    """
    rule = rule_of(request)
    base = RunTask(
        cluster_input(request.cluster),
        workload_input(request.workload, request.reading),
        transforms=tuple(request.transforms),
        options=dict(request.options),
        seed=request.seed,
        measure=Measure(request.warm_up, request.drain, figures=wanted(rule.targets)),
    )
    seeds = _seeds(request, base)
    warn_of_rules([base])
    with open_workers(**request.places) as workers:
        workers.send([base.cluster, base.workload])
        yield (
            base,
            seeds,
            partial(
                Evaluator,
                rule=rule,
                seeds=seeds.count,
                workers=workers,
                allow_infeasible=request.allow_infeasible,
                folder=request.runs,
                progress=request.progress,
            ),
        )


def scan_of(request: SizingRequest, evaluator: Evaluator) -> Scan:
    """Return how far the neighbourhood of the answer is tried: as requested, or as the noise requires."""
    return Scan.of(request.checks, lambda value: evaluator.rule.clear(evaluator.evaluate(value)))


def rule_of(request: SizingRequest) -> AcceptanceRule:
    """Return the rule by which targets are met."""
    return AcceptanceRule(request.targets, request.meet, request.confidence)


def _seeds(request: SizingRequest, base: RunTask) -> SearchSeeds:
    """Return the seeds: one if nothing is random; ConfigError if blocks do not fit the workload."""
    from simsched.formats.rfc.duration import parse_duration
    from simsched.workload.transforms.resample import block_of

    model = base.workload.kind == MODEL
    workload = INPUTS.workload(base)
    if not len(workload):
        raise ConfigError("the workload has no jobs", where=base.workload.name, expected="at least one job")
    if not model and "queues" not in base.options:
        _check_queries(request, workload)
    if request.by in DRAWN:  # jobs without users are refused before the first run
        INPUTS.workload(seeded(base, 0, None, load_steps(request.by, 1.5)))
    if request.shake is not None:
        return _shaken(request, base)
    if request.seeds == 1 or model:
        return SearchSeeds(request.seeds, request.seed)
    if request.block in UNITS:
        INPUTS.workload(seeded(base, 1, request.block))  # refuses jobs without users before the first run
        return SearchSeeds(request.seeds, request.seed, unit=request.block)
    block = block_of(workload) if request.block is None else parse_duration(request.block, where="--block")
    if block is None:
        some = is_random_run(base.options) or request.by in DRAWN
        return SearchSeeds(request.seeds if some else 1, request.seed, burst=True)
    INPUTS.workload(seeded(base, 1, request.block))  # as is a block that does not fit
    return SearchSeeds(request.seeds, request.seed, block)


def _shaken(request: SizingRequest, base: RunTask) -> SearchSeeds:
    """Return the seeds of shaken copies of a trace; ConfigError where copies cannot be shaken."""
    from simsched.formats.rfc.duration import parse_duration

    if base.workload.kind == MODEL:
        raise ConfigError("a model draws new jobs for each seed", where="--shake", expected="a trace")
    if request.block is not None:
        raise ConfigError(
            "seeds are either resampled or shaken", where="--block", expected="--block or --shake, not both"
        )
    if request.seeds == 1:
        raise ConfigError(
            "with one seed only the workload as it is would run",
            where="--shake",
            expected="--seeds of 2 or more",
        )
    by = parse_duration(request.shake, where="--shake")
    INPUTS.workload(seeded(base, 1, None, shake=request.shake))  # as is a time that is not valid
    return SearchSeeds(request.seeds, request.seed, shake=by)


def _check_queries(request: SizingRequest, workload: Workload) -> None:
    """Raise ConfigError for a target whose query no job of the workload matches."""
    from simsched.workload.transforms.query import parse_query

    for target in request.targets:
        if target.figure.query and not any(map(parse_query(target.figure.query), workload.jobs)):
            raise ConfigError(
                "no job of the workload matches the query",
                where=str(target),
                expected="a query that some jobs match",
            )


def load_steps(by: str, load: float) -> tuple[str, ...]:
    """Return the steps that multiply the load of a workload; ConfigError for a load that is not valid."""
    if not 0 < load < 1e6:
        raise ConfigError(f"a load of {load:g} is not valid", where="--load", expected="a number above 0")
    return () if load == 1 else (f"{BY[by]}({load:.12g})",)


def log_use_of(request: SizingRequest, base: RunTask) -> dict[str, str]:
    """Return ``{"log_use": sentence}``; {} where nothing asks for it, and for a model, which is not a log."""
    if request.log_use is None or base.workload.kind == MODEL:
        return {}
    sentence = request.log_use(INPUTS.workload(base.changed(transforms=())))
    return {"log_use": sentence} if sentence else {}


def about_of(base: RunTask, **more: Any) -> Any:
    """Return an `AboutSearch` with `more`: the names and digests of inputs, and how they were run."""
    return {
        **more,
        "inputs": [
            {"role": role, "name": source.name, "sha256": source.sha256, "reading": dict(source.reading)}
            for role, source in (("cluster", base.cluster), ("workload", base.workload))
        ],
        "transforms": list(base.transforms),
        "options": dict(base.options),
        "measure": {"warm_up": base.measure.warm_up, "drain": base.measure.drain},
    }


def cluster_input(cluster: ClusterLike) -> TaskInput:
    """Return a cluster (a file, a bundled name, ``-`` or a value) as the input of a task."""
    from simsched.graph.cluster import as_cluster

    if isinstance(cluster, str | Path):
        return _input("clusters", str(cluster), {})
    cluster = as_cluster(cluster)
    return TaskInput.of_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")), f"{cluster.name}.json")


def workload_input(workload: WorkloadLike, reading: Mapping[str, Any]) -> TaskInput:
    """Return a workload (a file, a model, a bundled name, ``-`` or a value) as the input of a task."""
    if not isinstance(workload, str | Path):
        from simsched.workload.load import as_workload
        from simsched.workload.save import lines_of

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
