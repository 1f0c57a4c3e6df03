"""What `size` and `headroom` are asked, checked, and the bench on which they try it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, check_whole, texts
from simsched.errors import ConfigError
from simsched.study.runs.cache import INPUTS
from simsched.study.runs.executors import open_executor
from simsched.study.runs.task import MODEL, Input, Measure, Task
from simsched.study.sizing.answer import Seeds
from simsched.study.sizing.evaluation import CRITERIA, EVERY, Bench, Rule, check_seeds, seeded, wanted
from simsched.study.sizing.search import Scan
from simsched.study.sizing.target import parse_targets
from simsched.study.spec.sweep_plan import is_random_run
from simsched.study.stats import CONFIDENCE, check_confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from simsched.graph.cluster import ClusterLike
    from simsched.study.sizing.evaluation import Trial
    from simsched.study.sizing.target import Target
    from simsched.workload.job import Workload

SEEDS = 5
#: the most probes on either side of the answer that may be asked for
MAX_CHECKS = 1000
#: what load is scaled by → the step of a workload
BY = {"arrival": "load", "runtime": "runtime", "users": "users", "jobs": "copies"}
#: those that draw at random
DRAWN = ("users", "jobs")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What both questions need to know; fields are those of `size` and `headroom`."""

    cluster: ClusterLike
    workload: Workload | str | Path
    targets: str | Target | Iterable[str | Target]
    load: float = 1.0
    by: str = "arrival"
    seeds: int = SEEDS
    seed: int = 0
    block: str | None = None
    shake: str | None = None
    meet: str = EVERY
    confidence: float = CONFIDENCE
    checks: int | None = None
    warm_up: float = 0.0
    drain: float = 0.0
    allow_infeasible: bool = False
    transforms: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: int | None = None
    scheduler: str | None = None
    hpc: str | None = None
    executor: Executor | None = None
    runs: Path | None = None
    progress: Callable[[Trial], None] | None = None


def wish_of(
    cluster: ClusterLike,
    workload: Workload | str | Path,
    targets: str | Target | Iterable[str | Target],
    ask: Mapping[str, Any],
) -> Ask:
    """Return the wish of a caller.

    Raises
    ------
    ConfigError
        for a keyword that does not exist, or a value of the wrong type.
    """
    from simsched.formats.rfc.duration import parse_duration
    from simsched.simulation.options.run_config import KEYS as OPTION_KEYS

    known = {item.name for item in fields(Ask)}
    given = {name: value for name, value in ask.items() if name in known}
    rest = {name: value for name, value in ask.items() if name not in known}
    for name in rest:
        if name.replace("_", "-") not in OPTION_KEYS:
            raise ConfigError(f"unknown keyword {name!r}", expected=", ".join(sorted(known)))
    for name in ("seeds", "seed"):
        check_number(name, given.get(name, 0), whole=True)
    for name in ("load", "confidence"):
        check_number(name, given.get(name, 1.0))
    for name in ("warm_up", "drain"):
        given[name] = parse_duration(given.get(name, 0.0), where=name)
    _check_given(given)
    given["options"] = {**given.get("options", {}), **rest}
    given["transforms"] = texts("transforms", given.get("transforms", ()))
    given["runs"] = Path(given["runs"]) if given.get("runs") is not None else None
    return Ask(cluster=cluster, workload=workload, targets=targets, **given)


def _check_given(given: Mapping[str, Any]) -> None:
    """Refuse what is of the wrong type among the keywords that were given."""
    if given.get("checks") is not None:
        check_whole("checks", given["checks"], 0, MAX_CHECKS)
    for name in ("options", "reading"):
        check(name, given.get(name, {}), Mapping, "a mapping")
    for name in ("by", "meet"):
        check(name, given.get(name, ""), str, "text")
    for name, example in (("block", "7d"), ("shake", "1m")):
        check(name, given.get(name), str | int | float | None, f"a duration such as {example}")
    check_callable("progress", given.get("progress"))
    if given.get("runs") is not None:
        check_path("runs", given["runs"])


def check_number(name: str, value: Any, *, whole: bool = False) -> None:
    """Refuse what is no number, or no whole one; `ConfigError`."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigError(f"{name} is {value!r}", expected="a whole number" if whole else "a number")


@contextmanager
def open_bench(wish: Ask) -> Iterator[tuple[Task, Bench, Seeds]]:
    """Check a wish, and open the workers; the bench lacks only what a value means (`Bench.make`)."""
    rule = rule_of(wish)
    base = Task(
        cluster_input(wish.cluster),
        workload_input(wish.workload, wish.reading),
        transforms=tuple(wish.transforms),
        options=dict(wish.options),
        seed=wish.seed,
        measure=Measure(wish.warm_up, wish.drain, figures=wanted(rule.targets)),
    )
    seeds = _seeds(wish, base)
    places = {"workers": wish.workers, "scheduler": wish.scheduler, "hpc": wish.hpc}
    with open_executor(**places, executor=wish.executor) as workers:  # type: ignore[arg-type]
        workers.send([base.cluster, base.workload])
        bench = Bench(
            lambda *_: base,
            rule,
            seeds.count,
            workers,
            allow_infeasible=wish.allow_infeasible,
            folder=wish.runs,
            progress=wish.progress,
        )
        yield base, bench, seeds


def scan_of(wish: Ask, bench: Bench) -> Scan:
    """Return how far the neighbourhood of the answer is tried: as asked for, or as the seeds' noise needs."""
    return Scan.of(wish.checks, lambda value: bench.rule.clear(bench.trial(value)))


def rule_of(wish: Ask) -> Rule:
    """Return what meeting the targets means; ConfigError for a criterion or a confidence that is none."""
    if wish.meet not in CRITERIA:
        raise ConfigError(f"unknown criterion {wish.meet!r}", where="--meet", expected=", ".join(CRITERIA))
    check_confidence(wish.confidence)
    check_seeds(wish.seeds)
    return Rule(parse_targets(wish.targets), wish.meet, wish.confidence)


def _seeds(wish: Ask, base: Task) -> Seeds:
    """Return the seeds: one if there is nothing to draw; an error if blocks do not fit."""
    from simsched.formats.rfc.duration import parse_duration
    from simsched.workload.transforms.resample import block_of

    model = base.workload.kind == MODEL
    workload = INPUTS.workload(base)
    if not len(workload):
        raise ConfigError("the workload has no job", where=base.workload.name, expected="some jobs")
    if not model and "queues" not in base.options:
        _check_queries(wish, workload)
    if wish.by in DRAWN:  # jobs without users are refused at once
        INPUTS.workload(seeded(base, 0, None, load_steps(wish.by, 1.5)))
    if wish.shake is not None:
        return _shaken(wish, base)
    if wish.seeds == 1 or model:
        return Seeds(wish.seeds, wish.seed)
    block = block_of(workload) if wish.block is None else parse_duration(wish.block, where="--block")
    if block is None:
        some = is_random_run(base.options) or wish.by in DRAWN
        return Seeds(wish.seeds if some else 1, wish.seed, burst=True)
    INPUTS.workload(seeded(base, 1, wish.block))  # a block that does not fit is refused at once
    return Seeds(wish.seeds, wish.seed, block)


def _shaken(wish: Ask, base: Task) -> Seeds:
    """Return the seeds of shaken copies of a trace; ConfigError where that is not to be had."""
    from simsched.formats.rfc.duration import parse_duration

    if base.workload.kind == MODEL:
        raise ConfigError("each seed is a draw of the model", where="--shake", expected="the file of a log")
    if wish.block is not None:
        raise ConfigError("seeds are resamples or shaken copies", where="--block", expected="no --shake")
    if wish.seeds == 1:
        raise ConfigError(
            "one seed is the workload as it is", where="--shake", expected="--seeds of 2 or more"
        )
    by = parse_duration(wish.shake, where="--shake")  # type: ignore[arg-type]
    INPUTS.workload(seeded(base, 1, None, shake=wish.shake))  # a time that is none is refused at once
    return Seeds(wish.seeds, wish.seed, shake=by)


def _check_queries(wish: Ask, workload: Workload) -> None:
    """Refuse a target of jobs that the workload does not have."""
    from simsched.workload.transforms.query import parse_query

    for target in parse_targets(wish.targets):
        if target.figure.query and not any(map(parse_query(target.figure.query), workload.jobs)):
            raise ConfigError(
                "the workload has no such job", where=str(target), expected="a query that some meet"
            )


def load_steps(by: str, load: float) -> tuple[str, ...]:
    """Return the steps that make a workload so many times the load; ConfigError if that is none."""
    if by not in BY:
        raise ConfigError(
            f"load cannot be scaled by {by!r}", where="--by", expected=f"one of {', '.join(BY)}"
        )
    if not 0 < load < 1e6:
        raise ConfigError(f"{load:g} times the load", where="--load", expected="a number above 0")
    return () if load == 1 else (f"{BY[by]}({load:.12g})",)


def about_of(base: Task, **more: Any) -> dict[str, Any]:
    """Return what identifies the inputs of an answer."""
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


def cluster_input(cluster: ClusterLike) -> Input:
    """Return the input that is a cluster: a file, a bundled name, ``-``, or a value."""
    from simsched.graph.cluster import as_cluster

    if isinstance(cluster, str | Path):
        return _input("clusters", str(cluster), {})
    cluster = as_cluster(cluster)
    return Input.of_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")), f"{cluster.name}.json")


def workload_input(workload: Workload | str | Path, reading: Mapping[str, Any]) -> Input:
    """Return the input that is a workload: a file (of jobs or a model), a bundled name, ``-``, or a value."""
    from simsched.study.runs.task import canonical

    if not isinstance(workload, str | Path):
        from simsched.workload.load import as_workload
        from simsched.workload.writers.save import lines_of

        workload = as_workload(workload)
        return Input.of_text("\n".join(lines_of(workload, "jsonl")) + "\n", f"{workload.name}.jsonl")
    model = _model(str(workload))
    if model is not None:
        return Input.of_text(canonical(model).decode(), str(workload), kind=MODEL)
    return _input("workloads", str(workload), reading)


def _input(room: str, name: str, reading: Mapping[str, Any]) -> Input:
    if name == "-":
        from simsched.formats.text.documents import read_text

        return Input.of_text(read_text("-"), "stdin", reading=reading)
    return Input.find(room, name, {key: value for key, value in reading.items() if value})


def _model(name: str) -> dict[str, Any] | None:
    """Return the model that a YAML or JSON file describes (`workload make mix`), or None."""
    from simsched.formats.text.documents import load_document, read_text

    path = Path(name)
    if path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
        return None
    document = load_document(read_text(path), name)
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("parts"), list):
        return {"mix": document}
    return document if set(document) <= {"lublin", "mix", "map"} and document else None
