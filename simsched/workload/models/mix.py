"""Model files, from which a workload is drawn: a mix of a few shapes, or the model of a log.

A mix (``parts``) has shapes, each with its share of the jobs and its run times; the model of a log has
``classes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.workload.job import MAX_JOBS, Job, Skips, Workload, assemble
from simsched.workload.models.distribution import Distribution
from simsched.workload.models.log_model import model_from_dict
from simsched.workload.models.lublin import users

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from simsched.workload.mapping import ReadOptions
    from simsched.workload.models.log_model import LogModel

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

_BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One line of a mix: a shape, how often it comes, and how long it takes.

    `duration` is the limit: None leaves it open, a plain number above 0 is a factor on the
    run time, a distribution is drawn on its own (and raised to the run time).
    """

    shape: str
    weight: float = 1.0
    runtime: Distribution
    duration: Distribution | float | None = None
    name: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A Poisson (or other) stream of jobs from weighted parts, for quick studies.

    `gap` is the time between two submissions; `jobs` and `span` (s) end the stream.
    """

    parts: tuple[Part, ...]
    gap: Distribution
    jobs: int | None = None
    span: float | None = None
    users: int = 0
    name: str = "mix"

    def make(self, rng: np.random.Generator) -> Workload:
        """Draw the jobs of the mix.

        Raises
        ------
        ConfigError
            When neither jobs nor span end the stream, a weight is negative, or all weights are 0.
        """
        import numpy as np

        submit = self._submits(rng)
        weights = np.array([part.weight for part in self.parts], dtype=float)
        if not len(weights) or (weights < 0).any() or not 0 < weights.sum() < np.inf:
            raise ConfigError(
                "invalid weights in the mix", expected="weights of 0 or more, at least one above 0"
            )
        which = rng.choice(len(self.parts), len(submit), p=weights / weights.sum())
        run = np.zeros(len(submit))
        limit = np.full(len(submit), np.inf)
        for index, part in enumerate(self.parts):
            here = np.flatnonzero(which == index)
            run[here] = np.maximum(1, np.floor(part.runtime.draw(len(here), rng)))
            limit[here] = _limits(part.duration, run[here], rng)
        names = users(len(submit), self.users, rng)
        return assemble(
            self._jobs(np.floor(submit), which, run, limit, names),
            Skips(),
            source=self.name,
            name=self.name,
            kind="model",
        )

    def _submits(self, rng: np.random.Generator) -> Floats:
        import numpy as np

        if self.jobs is None and self.span is None:
            raise ConfigError("the mix has no end", expected="a number of jobs or a span")
        number = self.jobs if self.jobs is not None else _BLOCK
        while True:
            if number > MAX_JOBS:
                raise ConfigError(
                    f"the mix has more than {MAX_JOBS:,} jobs", expected="fewer, or longer gaps"
                )
            submit = np.cumsum(self.gap.draw(number, rng))
            if self.span is None:
                return submit
            if self.jobs is not None or (number and submit[-1] > self.span):
                kept: Floats = submit[submit <= self.span]
                return kept
            number *= 2

    def _jobs(
        self, submit: Floats, which: Integers, run: Floats, limit: Floats, names: list[str | None]
    ) -> list[Job]:
        from simsched.formats.jobspec.jobspec import Jobspec

        specs = [Jobspec.from_shape(part.shape) for part in self.parts]
        return [
            Job(
                id=number,
                submit=int(at),
                jobspec=specs[index],
                runtime=int(took),
                duration=None if most == float("inf") else int(most),
                user=user,
                name=self.parts[index].name,
                queue=self.parts[index].queue,
            )
            for number, (at, index, took, most, user) in enumerate(
                zip(submit.tolist(), which.tolist(), run.tolist(), limit.tolist(), names, strict=True), 1
            )
        ]


def _limits(duration: Distribution | float | None, run: Floats, rng: np.random.Generator) -> Floats:
    import numpy as np

    if duration is None:
        return np.full(len(run), np.inf)
    if isinstance(duration, Distribution):
        return np.maximum(run, np.ceil(duration.draw(len(run), rng)))
    return np.ceil(run * duration)


_MIX_KEYS = frozenset(("name", "gap", "jobs", "span", "users", "parts", "description"))
_PART_KEYS = frozenset(("shape", "weight", "runtime", "duration", "name", "queue"))


def mix_from_dict(document: Any, where: str = "mix") -> Mix:
    """Read a mix from a mapping such as a YAML file holds.

    Keys: ``gap`` (distribution), ``jobs``, ``span``, ``users``, ``name`` and ``parts``, each
    with ``shape``, ``weight``, ``runtime``, ``duration`` (``x1.5`` is a factor), ``name``, ``queue``.

    Raises
    ------
    ConfigError
        With the place, when a key is unknown or a value is invalid.
    """
    document = _mapping(document, _MIX_KEYS, where)
    parts = document.get("parts")
    if not isinstance(parts, list) or not parts:
        raise ConfigError("the mix has no parts", where=where, expected="parts: a list")
    span = document.get("span")
    return Mix(
        parts=tuple(_part(part, f"{where}: parts[{index}]") for index, part in enumerate(parts)),
        gap=Distribution.parse(document.get("gap", "exp(60)"), f"{where}: gap"),
        jobs=_count(document.get("jobs"), f"{where}: jobs"),
        span=None if span is None else Distribution.parse(span, f"{where}: span").given[0],
        users=_count(document.get("users"), f"{where}: users") or 0,
        name=str(document.get("name", "mix")),
    )


def _part(document: Any, where: str) -> Part:
    document = _mapping(document, _PART_KEYS, where)
    if not isinstance(document.get("shape"), str) or "runtime" not in document:
        raise ConfigError("a part needs a shape and a runtime", where=where)
    weight = document.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) < 1e18:
        raise ConfigError(f"bad weight {weight!r}", where=where, expected="a number")
    return Part(
        shape=document["shape"],
        weight=float(weight),
        runtime=Distribution.parse(document["runtime"], f"{where}.runtime"),
        duration=_duration(document.get("duration"), f"{where}.duration"),
        name=document.get("name"),
        queue=document.get("queue"),
    )


def _duration(value: Any, where: str) -> Distribution | float | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip().startswith("x"):
        try:
            factor = float(value.strip()[1:])
        except ValueError:
            factor = 0.0
        if not 0 < factor < 1e9:
            raise ConfigError(f"bad factor {value!r}", where=where, expected="such as x1.5")
        return factor
    return Distribution.parse(value, where)


def _mapping(document: Any, known: frozenset[str], where: str) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise ConfigError("not a mapping", where=where)
    for key in document:
        if key not in known:
            raise ConfigError(f"unknown key {key!r}", where=where, expected=", ".join(sorted(known)))
    return document


def _count(value: Any, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ConfigError(f"bad number {value!r}", where=where, expected="a whole number")


def is_model_document(document: Any) -> bool:
    """Whether a document is a mix or a log's model."""
    return isinstance(document, dict) and any(
        isinstance(document.get(key), list) for key in ("parts", "classes")
    )


def model_of(document: Any, where: str = "mix") -> Mix | LogModel:
    """Return the mix or the log's model of a document.

    Raises
    ------
    ConfigError
        With the place, when a key is unknown or a value is invalid.
    """
    if isinstance(document, dict) and "classes" in document:
        return model_from_dict(document, where)
    return mix_from_dict(document, where)


def read_model(text: str, reading: ReadOptions) -> Workload:
    """Draw the jobs of a model file with the seed of the reading."""
    from dataclasses import replace

    import numpy as np

    from simsched.formats.text.documents import load_document

    model = model_of(load_document(text, reading.source), reading.source)
    workload = model.make(np.random.default_rng(reading.seed))
    jobs = workload.jobs if reading.limit is None else workload.jobs[: reading.limit]
    return replace(workload, jobs=jobs, source=reading.source, total_records=len(jobs))
