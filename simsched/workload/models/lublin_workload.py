"""The Lublin-Feitelson model turned into `Workload` values, with Tsafrir's estimates.

Every function takes a `numpy.random.Generator`; the same state gives the same workload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from simsched.arguments import check_real, check_whole
from simsched.errors import ConfigError
from simsched.workload.job import MAX_JOBS, Job, Skips, Workload, assemble
from simsched.workload.mapping import Flat, JobMap
from simsched.workload.models.lublin import MODELS, START_HOUR, Interleaved, Lublin, interleaved
from simsched.workload.models.tsafrir import assign, estimates

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

_T = TypeVar("_T")

MAX_USERS = 1_000_000
"""The most users of a model."""
MAX_PROCESSORS = 10**9
MOST = 1e15
"""The longest span and run time in seconds, and the greatest load and factor of run times."""
MAX_ESTIMATE = 10**9
"""The longest limit in seconds that Tsafrir's model gives."""
_BLOCK = 4096
_USER_SKEW = 1.1  # exponent of the Zipf law by which jobs fall to users


BOTH = ("batch", "interactive")


class DrawnJobs(NamedTuple):
    """Drawn jobs: submit times, sizes in processors, run times, and classes if the model has two."""

    submit: Floats
    size: Integers
    run: Integers
    which: Integers | None = None

    def sorted(self) -> DrawnJobs:
        """Return the jobs in order of submission."""
        import numpy as np

        order = np.argsort(self.submit, kind="stable")
        which = None if self.which is None else self.which[order]
        return DrawnJobs(self.submit[order], self.size[order], self.run[order], which)

    def queues(self) -> list[str | None]:
        """Return the class of each job as the name of its queue."""
        if self.which is None:
            return [None] * len(self.submit)
        return [BOTH[place] for place in self.which.tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class LublinWorkload:
    """A workload by the Lublin-Feitelson model, drawn by `make`.

    Parameters
    ----------
    machine : size of the machine in processors, which sets the largest job (see `Lublin.for_machine`).
    jobs, span : how many jobs, or for how many seconds they are submitted; with both, gaps
        are scaled to fit.
    model : typeless, batch, interactive, or both: two arrival processes side by side, as in the authors'
        program; the class of a job is then the name of its queue.
    load, capacity : offered load to reach on `capacity` processors (None: `machine`);
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
        """Draw the jobs; ConfigError on an unknown model or on numbers that describe no workload."""
        self._check()
        draft = self._both(rng) if self.model == "both" else self._one(rng)
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

    def _work_to_do(self) -> float | None:
        """Return the processor-seconds that load and span determine; None unless both are given."""
        if self.load is None or self.span is None:
            return None
        return self.span * (self.capacity or self.machine) * self.load

    def _until(self, size: Integers, run: Integers) -> float | None:
        """Return when the last of these jobs is to arrive; None: at the model's own rate."""
        if self.jobs is None and self.load is None:
            return None
        if self.load is None or self.span is not None:
            return self.span
        return float((size * run).sum()) / ((self.capacity or self.machine) * self.load)

    def _one(self, rng: np.random.Generator) -> DrawnJobs:
        """Draw the jobs of one class."""
        model = MODELS[self.model].for_machine(self.machine)
        work = self._work_to_do()
        if self.jobs is not None:
            size, run = self._work(model, self.jobs, rng)
        elif work is not None:
            size, run = self._work_of(model, work, rng)
        else:
            span = self.span or 0.0
            submit = _grown(lambda n: model.arrivals(n, rng), lambda made: made[-1] / span, rng)
            submit = submit[submit <= span]
            return DrawnJobs(submit, *self._work(model, len(submit), rng))
        return DrawnJobs(model.arrivals(len(size), rng, until=self._until(size, run)), size, run)

    def _both(self, rng: np.random.Generator) -> DrawnJobs:
        """Draw batch and interactive jobs in the shares in which the two processes bring them."""
        import numpy as np

        models = tuple(MODELS[name].for_machine(self.machine) for name in BOTH)
        work = self._work_to_do()
        kept = self.jobs or 0

        def draw(number: int) -> tuple[Interleaved, Integers, Integers]:
            flow = interleaved(models, number, rng)
            return flow, *self._work_of_each(models, flow.which, rng)

        if self.jobs is not None:
            flow, size, run = draw(self.jobs)
        elif work is not None:
            flow, size, run = _grown(draw, lambda made: float((made[1] * made[2]).sum()) / work, rng)
            kept = int(np.searchsorted(np.cumsum(size * run), work)) + 1
        else:
            span = self.span or 0.0
            flow, size, run = _grown(draw, lambda made: float(made[0].times()[-1]) / span, rng)
            kept = int((flow.times() <= span).sum())
        flow, size, run = flow.head(kept), size[:kept], run[:kept]
        return DrawnJobs(flow.times(self._until(size, run)), size, run, flow.which).sorted()

    def _work_of_each(
        self, models: tuple[Lublin, ...], which: Integers, rng: np.random.Generator
    ) -> tuple[Integers, Integers]:
        """Draw sizes and run times of jobs of several classes, class by class."""
        import numpy as np

        size, run = np.zeros_like(which), np.zeros_like(which)
        for place, model in enumerate(models):
            here = np.flatnonzero(which == place)
            size[here], run[here] = self._work(model, len(here), rng)
        return size, run

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


def _grown(draw: Callable[[int], _T], reached: Callable[[_T], float], rng: np.random.Generator) -> _T:
    """Draw twice as many jobs, from the same state, until they reach the requested work or span.

    Raises
    ------
    ConfigError
        when that takes more than `MAX_JOBS`.
    """
    number = _BLOCK
    while number <= MAX_JOBS:
        state = rng.bit_generator.state
        made = draw(number)
        share = reached(made)
        if share >= 1:
            return made
        if number > 2 * MAX_JOBS * share:
            break
        rng.bit_generator.state = state
        number *= 2
    raise ConfigError(f"this span or load needs more than {MAX_JOBS:,} jobs", expected="less of either")


def _jobs(draft: DrawnJobs, limits: list[Any], names: list[str | None], job_map: JobMap) -> list[Job]:
    """Number the drafts; submit times are whole seconds."""
    import numpy as np

    submit = np.floor(draft.submit).astype(np.int64).tolist()
    size = draft.size.tolist()
    specs = {procs: job_map.jobspec(Flat(procs=procs)) for procs in dict.fromkeys(size)}
    return [
        Job(
            id=number,
            submit=at,
            jobspec=specs[procs],
            procs=procs,
            runtime=run,
            duration=limit,
            user=user,
            queue=queue,
        )
        for number, (at, procs, run, limit, user, queue) in enumerate(
            zip(submit, size, draft.run.tolist(), limits, names, draft.queues(), strict=True), 1
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
