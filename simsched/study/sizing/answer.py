"""`Answer`: what a search for a size or a load found, as a sentence, a table, JSON and CSV."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from simsched.study.sizing import answer_text
from simsched.study.sizing.scope import Scope, load_scope, size_scope
from simsched.study.stats import paired_difference

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

    from simsched.study.sizing.evaluation import Rule, Trial
    from simsched.study.sizing.search import Search
    from simsched.study.sizing.target import Target
    from simsched.study.stats import Difference

SIZE, HEADROOM = "size", "headroom"
ANSWER_FORMAT = 1


class Axis(Protocol):
    """What the whole numbers of a search stand for."""

    @property
    def noun(self) -> str:
        """What is counted: ``nodes``, ``times the load``."""

    def number(self, value: int) -> float:
        """The number that people know it by."""

    def phrase(self, value: int) -> str:
        """The same in words: ``12 nodes``."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of a search: how many, the first, and how long the blocks of resampled traces are.

    `block` is None where nothing is resampled: one seed, a model, a burst (all jobs are
    submitted at one instant, so that there is nothing to draw), or shaken copies, whose submissions
    are moved by up to `shake` seconds.
    """

    count: int
    first: int
    block: float | None = None
    burst: bool = False
    shake: float | None = None


@dataclass(frozen=True)
class Answer:
    """What was found.

    Attributes
    ----------
    question : ``size`` or ``headroom``.
    value : the place of the answer on the axis; None if there is none in the range.
    beyond : its neighbour that was tried and does not do: one smaller, or one step more load.
    limit : the largest size that meets all targets, if some target sets one; else None.
    search : the range and every probe of the search.
    trials : value → its trial, in the order in which they were made.
    about : names and digests of the inputs, and how they were run.
    """

    question: str
    axis: Axis
    rule: Rule
    seeds: Seeds
    value: int | None
    beyond: int | None
    limit: int | None
    search: Search
    trials: Mapping[int, Trial]
    today: int
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def number(self) -> float | None:
        """The answer as people know it: so many nodes, so many times the load; None if there is none."""
        return None if self.value is None else self.axis.number(self.value)

    @property
    def found(self) -> bool:
        """Whether there is an answer; of `headroom`: whether today's load meets every target."""
        return self.value is not None and (self.question == SIZE or self.trials[self.today].met)

    def __bool__(self) -> bool:
        return self.found

    @cached_property
    def scope(self) -> Scope:
        """What was tried, and what that says of the answer."""
        return size_scope(self) if self.question == SIZE else load_scope(self)

    @property
    def sentence(self) -> str:
        """The answer in a sentence or two."""
        return answer_text.sentence(self)

    @property
    def notes(self) -> list[str]:
        """What has to be known besides: chance, exceptions, jobs that can never run."""
        return answer_text.notes(self)

    @property
    def chosen(self) -> Trial | None:
        """The trial of the answer."""
        return None if self.value is None else self.trials[self.value]

    @property
    def differences(self) -> dict[Target, Difference]:
        """Target → its figure at the answer less that of the neighbour, paired by seed."""
        here = self.chosen
        there = None if self.beyond is None else self.trials.get(self.beyond)
        if here is None or there is None:
            return {}
        return {
            target: paired_difference(there.figures[target], values, self.rule.confidence)
            for target, values in here.figures.items()
            if target in there.figures
        }

    @property
    def frame(self) -> pd.DataFrame:
        """One row a trial and seed: number, seed, each target's figure, whether the trial meets all."""
        import pandas as pd

        rows = []
        for trial in self.trials.values():
            for place in range(self.seeds.count):
                figures = {str(t.figure): _finite(v[place]) for t, v in trial.figures.items()}
                rows.append({
                    self.noun_column: self.axis.number(trial.value), "seed": self.seeds.first + place,
                    **figures, "infeasible": trial.infeasible, "meets": trial.met,
                    "run": trial.keys[place] if trial.keys else "",
                })  # fmt: skip
        return pd.DataFrame(rows)

    @property
    def noun_column(self) -> str:
        """What the column of the numbers is called."""
        return "load" if self.question == HEADROOM else self.axis.noun.replace(" ", "_")

    def table(self) -> str:
        """Return the trace of the search as a table for a terminal, in the order of the probes."""
        return answer_text.table(self)

    def text(self) -> str:
        """Return the whole answer for a terminal."""
        notes = "".join(f"  - {note}\n" for note in self.notes)
        return f"{self.sentence}\n{notes}\n{self.table()}\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data; equal searches give equal data."""
        return {
            "format": ANSWER_FORMAT,
            "question": self.question,
            "found": self.found,
            "answer": _plain(self.number),
            "unit": self.axis.noun,
            "sentence": self.sentence,
            "notes": self.notes,
            "targets": [_target(target) for target in self.rule.targets],
            "criterion": self.rule.criterion,
            "confidence": self.rule.confidence,
            "range": [_plain(self.axis.number(end)) for end in (self.search.low, self.search.high)],
            "today": _plain(self.axis.number(self.today)),
            "largest": None if self.limit is None else _plain(self.axis.number(self.limit)),
            **self._scope(),
            "monotone": self.search.monotone,
            "seeds": {
                "count": self.seeds.count,
                "first": self.seeds.first,
                "block": self.seeds.block,
                "shake": self.seeds.shake,
            },
            "differences": {str(t.figure): _difference(d) for t, d in self.differences.items()},
            "trials": [self._trial(trial) for trial in self.trials.values()],
            **self.about,
        }

    def _scope(self) -> dict[str, Any]:
        """Return what was tried as plain data; what is said of an answer is null where there is none."""
        scope, known = self.scope, self.value is not None
        return {
            "tried": self._numbers(scope.tried),
            "met": self._numbers(scope.met),
            "stable": scope.stable if known else None,
            "better": self._numbers(scope.better),
            "worse": self._numbers(scope.worse),
            "best_of_tried": (self.question == SIZE or not scope.better) if known else None,
            "every_between_tried": scope.complete,
        }

    def _numbers(self, values: tuple[int, ...]) -> list[float | int | None]:
        return [_plain(self.axis.number(value)) for value in values]

    def _trial(self, trial: Trial) -> dict[str, Any]:
        figures = {}
        for target, values in trial.figures.items():
            found = self.rule.interval(values)
            figures[str(target.figure)] = {
                "values": [_plain(v) for v in values],
                "mean": _plain(found.estimate),
                "interval": [_plain(found.low), _plain(found.high)],
                "meets": target not in trial.fails,
            }
        return {
            "value": _plain(self.axis.number(trial.value)),
            "meets": trial.met,
            "why": answer_text.why(self, trial.value),
            "offered_load": _plain(trial.offered),
            "infeasible": trial.infeasible,
            **({"example": trial.example} if trial.example else {}),
            "figures": figures,
            "runs": list(trial.keys),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return `frame` as CSV, times in seconds."""
        from simsched.report.export import csv_text

        return csv_text(self.frame)

    def plot(self, target: str | Path, *, dpi: int = 144, dark: bool = False) -> None:
        """Draw each target's figure over the size or load into a .png, .svg or .pdf file.

        Raises
        ------
        ConfigError
            for another ending, or without matplotlib.
        """
        from simsched.report.figures.sizing import save

        save(answer_text.picture(self), target, dpi=dpi, dark=dark)


def _target(target: Target) -> dict[str, Any]:
    return {
        "text": str(target),
        "figure": str(target.figure),
        "unit": target.figure.unit,
        "relation": target.relation,
        "bound": _plain(target.bound),
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "mean": _plain(found.interval.estimate),
        "interval": [_plain(found.interval.low), _plain(found.interval.high)],
        "relative": _plain(found.relative),
        "verdict": found.verdict,
        "pairs": found.pairs,
        "lower": found.lower,
        "equal": found.equal,
        "higher": found.higher,
    }


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _plain(value: float | None) -> float | int | None:
    """Return a number of JSON: 12 digits, whole where it is whole, null where there is none."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.12g}")
    return int(short) if short == int(short) else short
