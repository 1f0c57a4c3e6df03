"""Metrics of other packages: they are in the summary of each run once their package is installed."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from simsched.errors import InputWarning, PluginError
from simsched.plugins.plugin_errors import failed, name_of, number_of, shown
from simsched.plugins.plugin_kind import PluginKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


class MetricFunction(Protocol):
    """A figure of a run; its keyword-only arguments are options.

    The attributes ``unit`` and ``better`` of the function are those of its `Metric`, if it has them.
    `jobs` and `timeline` are the frames of `Run`, and `totals` the units of each resource type.
    """

    def __call__(self, jobs: pd.DataFrame, timeline: pd.DataFrame, totals: Mapping[str, int]) -> float:
        """Return the figure, NaN where it cannot be computed."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure: name, unit, meaning, and whether less (-1) or more (+1) of it is better (0: neither).

    compute : the function of a metric of another package; None for our own figures.
    """

    name: str
    unit: str
    meaning: str
    better: int = 0
    compute: MetricFunction | None = None

    def __call__(self, jobs: pd.DataFrame, timeline: pd.DataFrame, totals: Mapping[str, int]) -> float:
        """Return the figure of a run; PluginError if the function fails or does not return a number."""
        with KIND.named(self, self.name):
            if self.compute is None:
                raise TypeError(f"the metric {self.name} has no function (expected compute=…)")
            # copies: a metric that changes its frames changes no other figure
            value = self.compute(jobs.copy(), timeline.copy(), dict(totals))
            number = number_of(value)
            if number is None:
                raise failed(KIND.word, self, f"returned {shown(value)}, which is not a number", self.name)
            return number


KIND = PluginKind("metric", "simsched.metrics", MetricFunction)


def as_metric(value: Any, name: str | None = None) -> Metric:
    """Return a metric that is given as one, or as a function; PluginError for another value."""
    KIND.checked(value, name)
    if isinstance(value, Metric):
        return value if name is None else replace(value, name=name)
    text = (getattr(value, "__doc__", None) or "").partition("\n")[0].rstrip(". ")
    inner = getattr(value, "func", value)
    if inner is not value:  # a function with its options
        text = (inner.__doc__ or "").partition("\n")[0].rstrip(". ")
    name = name or getattr(inner, "__name__", None) or name_of(value)
    if isinstance(inner, Metric):
        return replace(inner, name=name)
    unit, better = getattr(inner, "unit", ""), getattr(inner, "better", 0)
    return Metric(name, str(unit), text or name.replace("_", " "), int(better), compute=value)


def installed_metrics() -> tuple[Metric, ...]:
    """Return the metrics of installed packages; one that cannot be loaded is left out with a warning."""
    found = []
    for name in KIND.names():
        try:
            found.append(as_metric(KIND.installed(name), name))
        except PluginError as error:
            _warn(error)
    return tuple(found)


def installed_metric(text: str) -> Metric | None:
    """Return the metric ``name`` or ``name:key=value``; None if it is not installed."""
    found = KIND.installed(text)
    return None if found is None else as_metric(found, text)


def installed_figures(
    jobs: pd.DataFrame, timeline: pd.DataFrame, totals: Mapping[str, int]
) -> dict[str, float]:
    """Return the figures of installed metrics; one that fails is NaN with a warning: no run is lost."""
    figures = {}
    for metric in installed_metrics():
        try:
            figures[metric.name] = metric(jobs, timeline, totals)
        except PluginError as error:
            _warn(error)
            figures[metric.name] = math.nan
    return figures


def _warn(error: PluginError) -> None:
    warnings.warn(InputWarning("metrics", (str(error),)), stacklevel=3)
