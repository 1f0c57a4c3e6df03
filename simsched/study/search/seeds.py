"""The seeds of trials: which demand each of them is.

Seed 0 of a trace is the trace as it is; further seeds are resamples of it
(`simsched.workload.transforms.resample`) or shaken copies.  Each seed of a model is a draw of its own.
Seed *s* is the same demand in every trial (common random numbers): a draw never depends on the machine or
on the load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ConfigError
from simsched.formats.rfc.duration import parse_duration
from simsched.study.runs.input_cache import INPUTS
from simsched.study.spec.run_task import MODEL

if TYPE_CHECKING:
    from simsched.study.spec.run_task import RunTask

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

        if shake is not None:
            if count == 1:
                raise ConfigError(
                    "with one seed only the workload as it is would run",
                    where="--shake",
                    expected="--seeds of 2 or more",
                )
            moved = parse_duration(shake, where="--shake")
            return cls(count, base.seed, drawing(base, block, shake), shake=moved)
        if count == 1 or base.workload.kind == MODEL:
            return cls(count, base.seed)
        if block in UNITS:
            return cls(count, base.seed, drawing(base, block, None), unit=block)
        length = block_of(INPUTS.workload(base)) if block is None else parse_duration(block, where="--block")
        if length is None:
            return cls(count if random else 1, base.seed, "resample", burst=True)
        return cls(count, base.seed, drawing(base, block, None), length)


def drawing(base: RunTask, block: str | None, shake: str | None) -> str:
    """Return the step by which further seeds change the workload of a run; empty for a model.

    Raises
    ------
    ConfigError
        if no such copies can be drawn: of a model, of jobs without users, of a workload that is too short …
    """
    step = "" if base.workload.kind == MODEL else f"resample({block})" if block else "resample"
    if shake is not None:
        if base.workload.kind == MODEL:
            raise ConfigError("a model draws new jobs for each seed", where="--shake", expected="a trace")
        if block is not None:
            raise ConfigError(
                "seeds are either resampled or shaken",
                where="--block",
                expected="--block or --shake, not both",
            )
        step = f"shake({shake})"
    INPUTS.workload(seeded(base, 1, step))
    return step


def seeded(base: RunTask, number: int, step: str, *more: str) -> RunTask:
    """Return the task of one seed.

    The step that draws its demand comes after the steps of the task; `more` steps come last, so that draws do
    not depend on them.
    """
    drawn = (step,) if number and step else ()
    return base.changed(seed=base.seed + number, transforms=(*base.transforms, *drawn, *more))
