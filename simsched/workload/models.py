"""The Lublin-Feitelson model turned into `Workload` values, with Tsafrir's estimates.

Every function takes a `numpy.random.Generator`; nothing else decides what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.arguments import check_real, check_whole
from simsched.errors import ConfigError
from simsched.workload.job import MAX_JOBS, Job, Skips, Workload, assemble
from simsched.workload.lublin import MODELS, START_HOUR, Lublin
from simsched.workload.mapping import Flat, JobMap
from simsched.workload.tsafrir import assign, estimates

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

MAX_USERS = 1_000_000
"""The most users among whom the jobs of a model are shared out."""
MAX_PROCESSORS = 10**9
MOST = 1e15
"""The longest span and run time in seconds, and the greatest load and factor of run times."""
MAX_ESTIMATE = 10**9
"""The longest limit in seconds that Tsafrir's model gives."""
_BLOCK = 4096
_USER_SKEW = 1.1  # exponent of the Zipf law by which jobs fall to users


class Draft(NamedTuple):
    """What a model draws: submit times, sizes in processors, run times."""

    submit: Floats
    size: Integers
    run: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class LublinWorkload:
    """A workload by the Lublin-Feitelson model, drawn by `make`.

    Parameters
    ----------
    machine : the largest job in processors (the model's UHi is its log2).
    jobs, span : how many jobs, or for how many seconds they are submitted; with both, gaps
        are scaled to fit.
    model : typeless, batch, interactive, or both (batch and interactive, half each).
    load, capacity : offered load to reach, against so many processors (None: `machine`);
        sets the number of jobs from the span, or the span from the number.
    run_time_factor : multiplies run times.
    max_estimate : give Tsafrir estimates up to this limit (s); None leaves jobs unlimited.
    users : number of users, of which few submit most jobs (0: no user names).
    """

    machine: int
    jobs: int | None = None
    span: float | None = None
    model: str = "typeless"
    load: float | None = None
    capacity: int | None = None
    run_time_factor: float = 1.0
    max_estimate: int | None = None
    users: int = 0

    def make(self, rng: np.random.Generator, job_map: JobMap | None = None) -> Workload:
        """Draw the jobs; ConfigError on an unknown model or on numbers that make no workload."""
        self._check()
        parts = ("batch", "interactive") if self.model == "both" else (self.model,)
        draft = _merged([self._part(MODELS[part], len(parts), rng) for part in parts])
        limits: list[Any] = [None] * len(draft.submit)
        if self.max_estimate is not None:
            drawn = estimates(len(limits), self.max_estimate, rng).draw(len(limits), rng)
            limits = assign(draft.run, drawn, rng).tolist()
        job_map = job_map or JobMap.parse(None)
        jobs = _jobs(draft, limits, users(len(limits), self.users, rng), job_map)
        name = f"lublin-{self.model}"
        header = {
            "UnixStartTime": str(int(START_HOUR * 3600)),  # so that hours of the day come out right
            "MaxProcs": str(self.capacity or self.machine),
            "Map": job_map.default.text,
        }
        return assemble(jobs, Skips(), source=name, name=name, kind="model", header=header)

    def _check(self) -> None:
        if self.model != "both" and self.model not in MODELS:
            raise ConfigError(f"unknown model {self.model!r}", expected=", ".join((*MODELS, "both")))
        if self.jobs is None and self.span is None:
            raise ConfigError("neither a number of jobs nor a span is given", expected="one of them")
        check_whole("machine", self.machine, 1, MAX_PROCESSORS)
        for name, most in (("jobs", MAX_JOBS), ("capacity", MAX_PROCESSORS), ("users", MAX_USERS)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 0, most)
        if self.max_estimate is not None:
            check_real("max_estimate", self.max_estimate, 60, MAX_ESTIMATE)
        if self.load is not None and self.jobs is not None and self.span is not None:
            raise ConfigError("jobs, span and load are all given", expected="at most two of them")
        for name in ("span", "load", "capacity", "run_time_factor"):
            value = getattr(self, name)
            if value is not None:
                check_real(name, value, most=MOST)
                if value <= 0:
                    raise ConfigError(f"{name} is {value}", expected="a number above 0")

    def _part(self, part: Lublin, parts: int, rng: np.random.Generator) -> Draft:
        """Draw one type's share of the jobs."""
        model = part.for_machine(self.machine)
        capacity = self.capacity or self.machine
        if self.jobs is not None:
            size, run = self._work(model, -(-self.jobs // parts), rng)
            until = self.span
            if self.load is not None:
                until = float((size * run).sum()) / (capacity * self.load / parts)
            return Draft(model.arrivals(len(size), rng, until=until), size, run)
        span = self.span or 0.0
        if self.load is not None:
            size, run = self._work_of(model, span * capacity * self.load / parts, rng)
            return Draft(model.arrivals(len(size), rng, until=span), size, run)
        submit = _until(model, span, rng)
        return Draft(submit, *self._work(model, len(submit), rng))

    def _work(self, model: Lublin, number: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
        import numpy as np

        size = model.sizes(number, rng)
        run = np.clip(model.run_times(size, rng) * self.run_time_factor, 1, MOST).astype(np.int64)
        return size, run

    def _work_of(self, model: Lublin, work: float, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Draw jobs until their processor-seconds reach `work`."""
        import numpy as np

        sizes, runs, done, number = [], [], 0.0, 0
        while done < work:
            size, run = self._work(model, _BLOCK, rng)
            total = done + np.cumsum(size * run)
            keep = int(np.searchsorted(total, work)) + 1
            sizes.append(size[:keep])
            runs.append(run[:keep])
            done = float(total[-1])
            number += keep
            if number > MAX_JOBS:
                raise ConfigError(
                    f"this load and span need more than {MAX_JOBS:,} jobs", expected="less of either"
                )
        return np.concatenate(sizes), np.concatenate(runs)


def _until(model: Lublin, span: float, rng: np.random.Generator) -> Floats:
    """Draw arrivals at the model's own rate up to `span`, twice as many until they suffice."""
    number = _BLOCK
    while number <= MAX_JOBS:
        state = rng.bit_generator.state
        submit = model.arrivals(number, rng)
        if submit[-1] > span:
            kept: Floats = submit[submit <= span]
            return kept
        if span / submit[-1] * number > 2 * MAX_JOBS:
            break
        rng.bit_generator.state = state
        number *= 2
    raise ConfigError(f"a span of {span:g} s holds more than {MAX_JOBS:,} jobs", expected="a shorter one")


def _merged(drafts: list[Draft]) -> Draft:
    import numpy as np

    submit, size, run = (np.concatenate(column) for column in zip(*drafts, strict=True))
    order = np.argsort(submit, kind="stable")
    return Draft(submit[order], size[order], run[order])


def _jobs(draft: Draft, limits: list[Any], names: list[str | None], job_map: JobMap) -> list[Job]:
    """Number the drafts; submit times are whole seconds."""
    import numpy as np

    submit = np.floor(draft.submit).astype(np.int64).tolist()
    size = draft.size.tolist()
    specs = {procs: job_map.jobspec(Flat(procs=procs)) for procs in dict.fromkeys(size)}
    return [
        Job(id=number, submit=at, jobspec=specs[procs], procs=procs, runtime=run, duration=limit, user=user)
        for number, (at, procs, run, limit, user) in enumerate(
            zip(submit, size, draft.run.tolist(), limits, names, strict=True), 1
        )
    ]


def users(jobs: int, number: int, rng: np.random.Generator) -> list[str | None]:
    """Return a user number per job; user k submits in proportion to 1 / k**1.1 (ours, not Lublin's).

    Raises
    ------
    ConfigError
        Beyond `MAX_USERS`.
    """
    import numpy as np

    check_whole("users", number, 0, MAX_USERS)

    if not number:
        return [None] * jobs
    weight = np.arange(1, number + 1, dtype=float) ** -_USER_SKEW
    names = [str(index + 1) for index in range(number)]
    return [names[index] for index in rng.choice(number, jobs, p=weight / weight.sum()).tolist()]
