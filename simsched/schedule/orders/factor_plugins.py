"""Factors of the order ``multifactor`` from other packages, as Slurm's plug-ins of the type site_factor."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simsched.plugins.plugin_errors import failed, name_of, number_of, shown
from simsched.plugins.plugin_kind import PluginKind, options_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt


class PriorityFactor(Protocol):
    """The value of a job, made once, when it is submitted; keyword-only arguments are options."""

    def __call__(self, job: Any) -> float:
        """Return the value of a `simsched.Job`, usually from 0 to 1."""


KIND = PluginKind("priority factor", "simsched.priority_factors", PriorityFactor)


def options_of_factor(name: str) -> dict[str, Any] | None:
    """Return the options of an installed factor with their defaults; None if it is not installed."""
    found = KIND.found(name)
    if found is None:
        return None
    return options_of(found, keyword_only=not isinstance(found, type))


def installed_factor(name: str, options: Mapping[str, Any]) -> PriorityFactor:
    """Return an installed factor with its options; errors as `PluginKind.installed`."""
    found: PriorityFactor = KIND.made(name, KIND.found(name), options)
    return found


def values_of(
    factor: PriorityFactor, jobs: Sequence[Any], name: str | None = None
) -> npt.NDArray[np.float64]:
    """Return the value of each job; PluginError for a value that is not a finite number."""
    found = np.zeros(len(jobs))
    with KIND.named(factor, name):
        for at, job in enumerate(jobs):
            value: Any = factor(job)
            number = number_of(value) if isinstance(value, int | float | np.number) else None
            if number is None or not isfinite(number):
                problem = f"returned {shown(value)} for job {job.id}, which is not a finite number"
                raise failed(KIND.word, factor, problem, name or name_of(factor))
            found[at] = number
    return found
