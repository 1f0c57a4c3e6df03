"""The seeds of trials: which demand each of them is.

Seed 0 of a trace is the trace as it is; further seeds are resamples of it
(`simsched.workload.transforms.resample`) or shaken copies.  Each seed of a model is a draw of its own.
Seed *s* is the same demand in every trial (common random numbers): a draw never depends on the machine or
on the load.
"""

from __future__ import annotations

from dataclasses import dataclass

from simsched import human
from simsched.errors import ConfigError
from simsched.formats.rfc.duration import parse_duration
from simsched.study.runs.input_cache import INPUTS
from simsched.study.spec.run_task import MODEL, RunTask

#: what seeds resample in place of blocks of time
UNITS = ("users", "sessions")


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of trials: their number, the first, and the step by which the others change a trace.

    `block` (seconds) is None where nothing is resampled in blocks of a known length: with one seed, a model,
    a burst (all jobs are submitted at one instant, so that there is nothing to resample), or shaken copies,
    whose submissions are moved by up to `shake` seconds.  `unit` is ``users`` or ``sessions`` where these are
    resampled in place of blocks.
    """

    count: int
    first: int
    step: str = ""
    block: float | None = None
    burst: bool = False
    shake: float | None = None
    unit: str | None = None

    @classmethod
    def of(
        cls, base: RunTask, count: int, block: str | None, shake: str | None, *, random: bool = False
    ) -> Seeds:
        """Return the seeds of a run, one if nothing is `random` in it and its workload cannot be resampled.

        Raises
        ------
        ConfigError
            if no such copies of the workload can be drawn.
        """
        from simsched.workload.transforms.resample import block_of

        model = base.workload.kind == MODEL
        if shake is not None:
            if model:
                raise ConfigError("a model draws new jobs for each seed", where="--shake", expected="a trace")
            if block is not None:
                raise ConfigError(
                    "seeds are either resampled or shaken",
                    where="--block",
                    expected="--block or --shake, not both",
                )
            if count == 1:
                raise ConfigError(
                    "with one seed only the workload as it is would run",
                    where="--shake",
                    expected="--seeds of 2 or more",
                )
            seeds = cls(count, base.seed, f"shake({shake})", shake=parse_duration(shake, where="--shake"))
        elif count == 1 or model:
            return cls(count, base.seed)
        elif block in UNITS:
            seeds = cls(count, base.seed, f"resample({block})", unit=block)
        else:
            given = None if block is None else parse_duration(block, where="--block")
            length = block_of(INPUTS.workload(base)) if given is None else given
            if length is None:
                return cls(count if random else 1, base.seed, "resample", burst=True)
            seeds = cls(count, base.seed, "resample" if block is None else f"resample({block})", length)
        INPUTS.workload(seeded(base, 1, seeds.step))  # a workload that has no such copies is refused now
        return seeds

    @property
    def drawn(self) -> str:
        """The demands of the seeds in words."""
        if self.burst:
            return "all jobs are submitted at one instant: there is nothing to resample"
        others = self.count - 1
        resamples = f"the workload as it is and {others} resample{'s' * (others > 1)}"
        if self.shake is not None:
            copies = "1 copy" if others == 1 else f"{others} copies"
            moved = f"of it with submissions moved by up to {human.seconds(self.shake)}"
            return f"the workload as it is and {copies} {moved}"
        if self.unit is not None:
            return f"{resamples} of its {self.unit}"
        if self.block is not None:
            return f"{resamples} in blocks of {human.seconds(self.block)}"
        return f"{self.count} draws of the model"

    @property
    def text(self) -> str:
        """The number of the seeds, and their demands."""
        return f"{self.count} seeds: {self.drawn}"


def seeded(base: RunTask, number: int, step: str, *more: str) -> RunTask:
    """Return the task of one seed.

    The step that draws its demand comes after the steps of the task; `more` steps come last, so that draws do
    not depend on them.
    """
    drawn = (step,) if number and step else ()
    return base.changed(seed=base.seed + number, transforms=(*base.transforms, *drawn, *more))
