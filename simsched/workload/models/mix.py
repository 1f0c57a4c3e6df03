"""Model files, from which a workload is drawn: a mix of a few shapes, or the model of a log.

A mix (``parts``) has shapes, each with its share of the jobs and its run times; the model of a log has
``classes``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from simsched.declare.kinds import ANYTHING, ValueKind, kind_of, listed, number
from simsched.declare.table import Declared
from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.workload.job import MAX_JOBS, Job, Skips, Workload, assemble
from simsched.workload.models.distribution import Distribution
from simsched.workload.models.log_model import Drawn, Text, model_from_dict
from simsched.workload.models.lublin import users

if TYPE_CHECKING:
    from simsched.arrays import Floats
    from simsched.workload.mapping import ReadOptions
    from simsched.workload.models.log_model import LogModel


_BLOCK = 4096


def _limit(value: Any, where: str) -> Distribution | float:
    """Return a distribution, or the factor of ``x1.5``."""
    if not isinstance(value, str) or not value.strip().startswith("x"):
        return Distribution.parse(value, where)
    try:
        factor = float(value.strip()[1:])
    except ValueError:
        factor = 0.0
    if not 0 < factor < 1e9:
        raise ConfigError(f"bad factor {value!r}", where=where, expected="such as x1.5")
    return factor


Limit = ValueKind(
    _limit, Drawn.schema, lambda limit: f"x{limit:g}" if isinstance(limit, float) else str(limit)
)
Span = ValueKind(lambda value, where: Distribution.parse(value, where).given[0], Drawn.schema)


class Part(Declared, frozen=True, kw_only=True):
    """One line of a mix: a shape, how often it comes, and how long it takes.

    shape : the request (RFC 46).
    weight : its share of the jobs, beside the weights of the other parts.
    runtime : the distribution of the run times.
    duration : the limit: None leaves it open, ``x1.5`` is a factor on the run time, a distribution is drawn
        on its own (and raised to the run time).
    name, queue : those of the jobs.
    """

    shape: str
    weight: Annotated[float, number(most=1e18)] = 1.0
    runtime: Annotated[Distribution, Drawn]
    duration: Annotated[Distribution | float | None, Limit] = None
    name: str | None = None
    queue: str | None = None


_PARTS = listed(kind_of(Part))
_PARTS = replace(_PARTS, schema={**_PARTS.schema, "minItems": 1})


class Mix(Declared, frozen=True, kw_only=True):
    """A Poisson (or other) stream of jobs from weighted parts, for quick studies.

    parts : the shapes with their weights.
    gap : the distribution of the time between two submissions.
    jobs, span : the number of jobs and the seconds, which end the stream.
    users : the number of users; 0: jobs without users.
    name : the name of the workload.
    description : a text for people.
    """

    join = ": "

    parts: Annotated[tuple[Part, ...], _PARTS] = ()
    gap: Annotated[Distribution, Drawn] = Distribution("exp", (60.0,))
    jobs: int | None = None
    span: Annotated[float | None, Span] = None
    users: int = 0
    name: Text = "mix"
    description: Annotated[Any, ANYTHING] = None

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """See `Declared`; that parts are given is for `checked`, which says more."""
        return super().schema() | {"required": ["parts"]}

    def checked(self, where: str) -> Self:
        """Return the mix; ConfigError for one without parts."""
        if not self.parts:
            raise ConfigError("the mix has no parts", where=where, expected="parts: a list")
        return self

    def make(self, rng: np.random.Generator) -> Workload:
        """Draw the jobs of the mix.

        Raises
        ------
        ConfigError
            When neither jobs nor span end the stream, a weight is negative, or all weights are 0.
        """
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
            if isinstance(part.duration, Distribution):
                limit[here] = np.maximum(run[here], np.ceil(part.duration.draw(len(here), rng)))
            elif part.duration is not None:
                limit[here] = np.ceil(run[here] * part.duration)
        names = users(len(submit), self.users, rng)
        specs = [Jobspec.from_shape(part.shape) for part in self.parts]
        columns = (np.floor(submit).tolist(), which.tolist(), run.tolist(), limit.tolist(), names)
        jobs = [
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
            for number, (at, index, took, most, user) in enumerate(zip(*columns, strict=True), 1)
        ]
        return assemble(jobs, Skips(), source=self.name, name=self.name, kind="model")

    def _submits(self, rng: np.random.Generator) -> Floats:
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
    return Mix.read(document, where)


def read_model(text: str, reading: ReadOptions) -> Workload:
    """Draw the jobs of a model file with the seed of the reading."""
    from simsched.formats.text.documents import load_document

    model = model_of(load_document(text, reading.source), reading.source)
    workload = model.make(np.random.default_rng(reading.seed))
    jobs = workload.jobs if reading.limit is None else workload.jobs[: reading.limit]
    return replace(workload, jobs=jobs, source=reading.source, total_records=len(jobs))
