"""The answer of a search for a size or a load: a sentence, a table, JSON and CSV."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from simsched.study.sizing import answer_text
from simsched.study.sizing.search_result import HEADROOM, SIZE, SearchResult

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from simsched.study.sizing.evaluation import Evaluation
    from simsched.study.sizing.target import SizingTarget
    from simsched.study.stats import PairedDifference

ANSWER_FORMAT = 1


class Answer(SearchResult):
    """The result of `size` or `headroom` (`SearchResult`), which can be read, printed, drawn and written."""

    @property
    def sentence(self) -> str:
        """The answer in a sentence or two."""
        return answer_text.sentence(self)

    @property
    def notes(self) -> list[str]:
        """Remarks on the answer: chance, exceptions, jobs that can never run."""
        return answer_text.notes(self)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per evaluation and seed: number, seed, figure of each target, whether all are met."""
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
        """The name of the column of sizes or loads."""
        return "load" if self.question == HEADROOM else self.axis.noun.replace(" ", "_")

    def table(self) -> str:
        """Return the evaluations as a table for a terminal, in the order of the probes."""
        return answer_text.table(self)

    def text(self) -> str:
        """Return the whole answer for a terminal."""
        notes = "".join(f"  - {note}\n" for note in self.notes)
        return f"{self.sentence}\n{notes}\n{self.table()}\n"

    def _repr_html_(self) -> str:
        """Return the whole answer for a notebook."""
        from simsched.text_table import html_text

        return html_text(self.question, self.text())

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
            **self._coverage(),
            "monotone": self.search.monotone,
            "seeds": {
                "count": self.seeds.count,
                "first": self.seeds.first,
                "block": self.seeds.block,
                "shake": self.seeds.shake,
                **({} if self.seeds.unit is None else {"unit": self.seeds.unit}),
            },
            "differences": {str(t.figure): _difference(d) for t, d in self.differences.items()},
            "trials": [self._trial(trial) for trial in self.trials.values()],
            **self.about,
        }

    def _coverage(self) -> dict[str, Any]:
        """Return the coverage as plain data; keys that describe the answer are null if there is no answer."""
        coverage, known = self.coverage, self.value is not None
        return {
            "tried": self._numbers(coverage.tried),
            "met": self._numbers(coverage.met),
            "stable": coverage.stable if known else None,
            "better": self._numbers(coverage.better),
            "worse": self._numbers(coverage.worse),
            "best_of_tried": (self.question == SIZE or not coverage.better) if known else None,
            "every_between_tried": coverage.complete,
        }

    def _numbers(self, values: tuple[int, ...]) -> list[float | int | None]:
        return [_plain(self.axis.number(value)) for value in values]

    def _trial(self, trial: Evaluation) -> dict[str, Any]:
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
            for another ending of the name, or without matplotlib.
        """
        from simsched.report.figures.sizing import save

        save(answer_text.picture(self), target, dpi=dpi, dark=dark)


def _target(target: SizingTarget) -> dict[str, Any]:
    return {
        "text": str(target),
        "figure": str(target.figure),
        "unit": target.figure.unit,
        "relation": target.relation,
        "bound": _plain(target.bound),
    }


def _difference(found: PairedDifference) -> dict[str, Any]:
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
    """Return a number for JSON: 12 digits, whole where it is whole, None (null) unless it is finite."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.12g}")
    return int(short) if short == int(short) else short
