"""The answer of a search for a size or a load: data, a sentence, a table, JSON, CSV, and its directory.

It begins with its parts: trials, and the rule by which they meet targets.  Nothing is claimed of sizes and
loads that were not tried.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from simsched import human
from simsched.declare.answers import UNSET, WrittenKeys, rounded, taken
from simsched.errors import ConfigError
from simsched.study.reality import RealityAnswer, notes_of
from simsched.study.search.evaluation import (
    CRITERIA,
    EVERY,
    AcceptanceRule,
    Evaluation,
)
from simsched.study.search.search_answer import AboutSearch, Ends, SearchAnswer
from simsched.study.stats import paired_difference, prediction
from simsched.text_table import PAGE_WIDTH, fitted_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pandas as pd

    from simsched.report.metrics.intervals import Interval
    from simsched.study.search.seeds import Seeds
    from simsched.study.search.size_axis import LoadAxis, SizeAxis
    from simsched.study.search.threshold import Search
    from simsched.study.spec.target import SizingTarget
    from simsched.study.stats import PairedDifference

Question = Literal["size", "headroom"]
SIZE: Question = "size"
HEADROOM: Question = "headroom"


@dataclass(frozen=True, slots=True)
class SearchCoverage:
    """The values that were tried, and how far they support an answer.

    Attributes
    ----------
    tried, met : every value that was tried, and those that meet every target, in ascending order.
    better : values beyond the answer that meet every target: larger loads, or sizes above the limit that
        a target sets.
    worse : values on the safe side of the answer that miss a target: larger sizes, smaller loads.  Values
        that miss a target by necessity (the use of a larger machine is too low) are not among them.
    complete : whether every value was tried that could contradict the answer: every smaller size of
        the range, or every load between today's and the answer.
    """

    tried: tuple[int, ...]
    met: tuple[int, ...]
    better: tuple[int, ...] = ()
    worse: tuple[int, ...] = ()
    complete: bool = False

    @property
    def stable(self) -> bool:
        """Whether no value that was tried contradicts the answer."""
        return not self.better and not self.worse


class TargetAnswer(WrittenKeys):
    """A target.

    text : as it was given.
    unit : of the figure.
    """

    text: str
    figure: str
    unit: str
    relation: str
    bound: float | None


class SeedsOfSearch(WrittenKeys):
    """The seeds of a search.

    count, first : their number, and the first.
    block : seconds of the blocks of a resampled trace; null if nothing is resampled in blocks.
    shake : seconds by up to which submissions are moved; null if they are not.
    unit : users or sessions where these are resampled in place of blocks.
    """

    count: int
    first: int
    block: float | None
    shake: float | None
    unit: NotRequired[str]


class FigureDifference(WrittenKeys):
    """A figure at the answer less that of the neighbour, paired by seed.

    relative : to the figure of the neighbour.
    pairs : number of seeds.
    lower, equal, higher : number of seeds for which it is so.
    """

    mean: float | None
    interval: Ends
    relative: float | None
    verdict: str
    pairs: int
    lower: int
    equal: int
    higher: int


class FigureOfTrial(WrittenKeys):
    """A figure of a value that was tried.

    values : one per seed.
    meets : whether it meets its target.
    """

    values: list[float | None]
    mean: float | None
    interval: Ends
    meets: bool


class TrialAnswer(WrittenKeys):
    """A size or load that was tried.

    why : the target that it misses, or another reason.
    infeasible : number of jobs that never fit.
    example : a job that never fits.
    runs : keys of the runs.
    """

    value: float | None
    meets: bool
    why: str
    offered_load: float | None
    infeasible: int
    example: NotRequired[str]
    figures: dict[str, FigureOfTrial]
    runs: list[str]


class VariedNumber(WrittenKeys):
    """The number that is varied, and its value today."""

    what: str
    today: int


class FoundSize(WrittenKeys):
    """The answer of a search for a size or a load; `SizeAnswer` has the meanings."""

    format: Literal[1]
    question: Question
    found: bool
    answer: float | None
    unit: str
    sentence: str
    notes: list[str]
    targets: list[TargetAnswer]
    criterion: str
    confidence: float
    range: Ends
    today: float | None
    largest: float | None
    tried: list[float | None]
    met: list[float | None]
    stable: bool | None
    better: list[float | None]
    worse: list[float | None]
    best_of_tried: bool | None
    every_between_tried: bool
    monotone: bool
    seeds: SeedsOfSearch
    differences: dict[str, FigureDifference]
    trials: list[TrialAnswer]


class AboutSizing(AboutSearch):
    """The inputs of a search for a size or a load, and how they were run; `SizeAnswer` has the meanings."""

    growth: NotRequired[VariedNumber]
    load: float
    by: str
    step: NotRequired[float]
    log_use: NotRequired[str]
    reality: NotRequired[RealityAnswer]


class SizeAnswer(AboutSizing, FoundSize):
    """The answer of a search for a size or a load, and its inputs.

    format : version of this layout.
    question : size or headroom.
    found : whether there is an answer; for headroom, whether today's load meets every target.
    answer : null if no value of the range meets the targets.
    unit : of sizes or loads, such as nodes.
    sentence : the answer in words.
    notes : remarks on chance, exceptions, and jobs that can never run.
    targets : the targets to meet.
    criterion : how many seeds have to meet a target: every, mean or confident.
    confidence : of intervals.
    range : the least and the greatest value that may be tried.
    today : today's size or load.
    largest : the largest size that meets all targets, if some target sets one.
    tried : values that were tried.
    met : values that meet every target.
    stable : whether no value that was tried contradicts the answer; null without one.
    better : values beyond the answer that meet every target.
    worse : values on the safe side of the answer that miss a target.
    best_of_tried : whether no better value was tried; null without an answer.
    every_between_tried : whether every value was tried that could contradict the answer.
    monotone : whether larger values always met more.
    seeds : the seeds of the runs.
    differences : figure: its difference to the neighbour that misses a target.
    trials : each value that was tried, in the order of the search.
    growth : the number that is varied.
    load : times the load of the workload.
    by : how the load is changed.
    step : between loads.
    log_use : how the log uses the machine.
    reality : the recorded beside the simulated waits of today's machine.
    """


@dataclass(frozen=True)
class Answer(
    SearchAnswer,
    noun="answer",
    files=("answer.png", "trials.csv", "answer.json"),
    keys={"question", "answer", "trials"},
):
    """The answer of `size` or `headroom`, which can be read, printed, drawn and written.

    Attributes
    ----------
    question : ``size`` or ``headroom``.
    value : the place of the answer on the axis; None if there is no answer in the range.
    beyond : the neighbour of the answer that was tried and misses a target: one size smaller, or one step
        more load.
    limit : the largest size that meets all targets, if some target sets one; else None.
    search : the range and every probe of the search.
    trials : value → its evaluation, in the order in which they were made.
    today : the place of today's size or load on the axis.
    about : names and digests of the inputs, and how they were run.
    """

    question: Question
    axis: SizeAxis | LoadAxis
    rule: AcceptanceRule
    seeds: Seeds
    value: int | None
    beyond: int | None
    limit: int | None
    search: Search
    trials: Mapping[int, Evaluation]
    today: int
    about: AboutSizing

    @property
    def title(self) -> str:
        """The title of the answer in a notebook."""
        return self.question

    @property
    def number(self) -> float | None:
        """The answer in units of the axis (nodes, multiples of the load); None without an answer."""
        return None if self.value is None else self.axis.number(self.value)

    @property
    def found(self) -> bool:
        """Whether there is an answer; for `headroom`, whether today's load meets every target."""
        return self.value is not None and (self.question == SIZE or self.trials[self.today].met)

    def __bool__(self) -> bool:
        return self.found

    @cached_property
    def coverage(self) -> SearchCoverage:
        """The values that were tried, and how far they support the answer."""
        trials, value, search = self.trials, self.value, self.search
        tried = tuple(sorted(trials))
        met = tuple(number for number in tried if trials[number].met)
        if value is None:
            return SearchCoverage(tried, met, complete=len(tried) == search.high - search.low + 1)
        if self.question == SIZE:
            worse = tuple(n for n in tried if n > value and not trials[n].eased)
            better = () if self.limit is None else tuple(n for n in met if n > self.limit)
            between = range(search.low, value)
        else:
            worse = tuple(n for n in tried if n < value and not trials[n].eased)
            better = tuple(n for n in met if n > value)
            between = range(min(value, self.today), max(value, self.today) + 1)
        return SearchCoverage(tried, met, better, worse, set(between) <= set(tried))

    @property
    def chosen(self) -> Evaluation | None:
        """The evaluation of the answer."""
        return None if self.value is None else self.trials[self.value]

    @property
    def differences(self) -> dict[SizingTarget, PairedDifference]:
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
    def sentence(self) -> str:
        """The answer in a sentence or two."""
        if self.value is None:
            return _none(self)
        return _size(self) if self.question == SIZE else _load(self)

    @property
    def notes(self) -> list[str]:
        """Remarks on the answer: chance, exceptions, jobs that can never run."""
        trial = self.chosen
        found = []
        if trial is not None:
            if trial.offered > 1:  # the queue grows as long as jobs are submitted
                demand = f"{trial.offered:.3g} times the capacity of the machine"
                depends = "so the answer depends on the length of the workload"
                found.append(f"overloaded: jobs demand {demand}, {depends}")
            found += _noise(self, trial)
            if trial.infeasible:
                one, are = ("1 job", "is") if trial.infeasible == 1 else (f"{trial.infeasible:,} jobs", "are")
                found.append(f"{one} can never run there and {are} ignored ({trial.example})")
        return [*found, *_scaling(self), _of_seeds(self), *notes_of(self.about)]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per evaluation and seed: number, seed, figure of each target, whether all are met."""
        import pandas as pd

        rows = []
        for trial in self.trials.values():
            for place in range(self.seeds.count):
                values = [(str(target.figure), each[place]) for target, each in trial.figures.items()]
                figures = {name: value if math.isfinite(value) else math.nan for name, value in values}
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
        targets = self.rule.targets
        word = "worst" if self.rule.criterion == EVERY else "mean"
        several = self.seeds.count > 1
        head = ["load" if self.question != SIZE else self.axis.noun]
        head += [f"{target.figure}{f' ({word})' if several else ''}" for target in targets]
        head += [*(["seeds that meet"] if several else []), "meets", "why"]
        rows = []
        for trial in self.trials.values():
            cells = [_cell(self, target, trial) for target in targets]
            row = [human.number(self.axis.number(trial.value)), *cells]
            if several:
                met_by = [
                    all(target.met_by(value) for target, value in zip(trial.figures, values, strict=True))
                    for values in zip(*trial.figures.values(), strict=True)
                ]
                row.append(f"{sum(met_by)} of {self.seeds.count}" if trial.figures else human.MISSING)
            met = "jobs that never fit" if trial.refused else "yes" if trial.met else "no"
            rows.append([*row, met, _why(self, trial.value)])
        return fitted_table(head, rows, PAGE_WIDTH)

    def text(self) -> str:
        """Return the whole answer for a terminal."""
        notes = "".join(f"  - {note}\n" for note in self.notes)
        return f"{self.sentence}\n{notes}\n{self.table()}\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data (`SizeAnswer`); equal searches give equal data."""
        coverage, rule, known = self.coverage, self.rule, self.value is not None

        def numbers(*values: int | None) -> list[float | None]:
            return [None if value is None else self.axis.number(value) for value in values]

        own = taken(
            FoundSize,
            self,
            format=1,
            answer=self.number,
            unit=self.axis.noun,
            targets=[
                taken(TargetAnswer, one, text=str(one), figure=str(one.figure), unit=one.figure.unit)
                for one in rule.targets
            ],
            criterion=rule.criterion,
            confidence=rule.confidence,
            range=numbers(self.search.low, self.search.high),
            today=self.axis.number(self.today),
            largest=numbers(self.limit)[0],
            tried=numbers(*coverage.tried),
            met=numbers(*coverage.met),
            stable=coverage.stable if known else None,
            better=numbers(*coverage.better),
            worse=numbers(*coverage.worse),
            best_of_tried=(self.question == SIZE or not coverage.better) if known else None,
            every_between_tried=coverage.complete,
            monotone=self.search.monotone,
            seeds=taken(SeedsOfSearch, self.seeds, unit=self.seeds.unit or UNSET),
            differences={
                str(target.figure): taken(FigureDifference, found, **_mean(found.interval))
                for target, found in self.differences.items()
            },
            trials=[
                taken(
                    TrialAnswer,
                    trial,
                    value=self.axis.number(trial.value),
                    meets=trial.met,
                    why=_why(self, trial.value),
                    offered_load=trial.offered,
                    example=trial.example or UNSET,
                    figures={
                        str(target.figure): {
                            "values": values,
                            **_mean(rule.interval(values)),
                            "meets": target not in trial.fails,
                        }
                        for target, values in trial.figures.items()
                    },
                    runs=trial.keys,
                )
                for trial in self.trials.values()
            ],
        )
        return {**rounded(own, 12, whole=True), **self.about}

    def write_first(self, path: Path) -> None:
        """Draw the answer where matplotlib is."""
        with suppress(ConfigError):
            self.plot(path)

    def plot(self, target: str | Path, *, dpi: int = 144, dark: bool = False) -> None:
        """Draw each target's figure over the size or load into a .png, .svg or .pdf file.

        Raises
        ------
        ConfigError
            for another ending of the name, or without matplotlib.
        """
        from simsched.study.search.sizing_figure import save

        text = f"none of {len(self.trials)} {'sizes' if self.question == SIZE else 'loads'} tried"
        if self.value is not None:  # with the strength of its evidence
            smallest = self.question == SIZE and self.coverage.complete
            stable = "" if self.coverage.stable else ", not stable"
            text = f"{self.axis.phrase(self.value)} ({'smallest' if smallest else 'a threshold'}{stable})"
        title = f"{', '.join(map(str, self.rule.targets))}: {text}"
        save(title, self.axis, self.rule, self.trials.values(), self.number, target, dpi=dpi, dark=dark)


def _mean(found: Interval) -> dict[str, Any]:
    return {"mean": found.estimate, "interval": (found.low, found.high)}


# ------------------------------------------------------------ the words


def _size(answer: Answer) -> str:
    assert answer.value is not None
    phrase, coverage = answer.axis.phrase, answer.coverage
    here, low = phrase(answer.value), answer.search.low
    text = f"{here}: {_came_to(answer, answer.trials[answer.value])}."
    if answer.beyond is not None:
        text += f" {phrase(answer.beyond)}: {_broken(answer, answer.trials[answer.beyond])}."
    if answer.limit is not None and answer.limit > answer.value:
        text += f" Up to {phrase(answer.limit)} every size tried meets every target."
    reasons = []
    if answer.value == low:
        claim = f"{here} is the smallest size of the range"
    elif coverage.complete:
        claim = f"{here} is the smallest size that meets every target"
        reasons.append(f"every size from {phrase(low)} was tried")
    else:
        claim = f"{here} is a threshold"
        smaller = [value for value in coverage.tried if value < answer.value]
        sizes, miss = ("size", "misses") if len(smaller) == 1 else ("sizes", "miss")
        named = listed(answer.axis, smaller)
        reasons.append(f"the smaller {sizes} tried ({named}) {miss} a target, others were not tried")
    larger = [value for value in coverage.met if value > answer.value]
    if coverage.stable and larger:
        meet = "meet" if len(larger) > 1 else "meets"
        reasons.append(f"{listed(answer.axis, larger)} also {meet} every target")
    odd = (("larger", coverage.worse, False), ("even larger", coverage.better, True))
    claim += _contradictions(answer, *odd)
    return f"{text} {': '.join(filter(None, (claim, '; '.join(reasons))))}."


def _load(answer: Answer) -> str:
    assert answer.value is not None
    phrase, today = answer.axis.phrase, answer.trials[answer.today]
    end = ", the upper end of the range" if answer.beyond is None else ""
    takes = f"{phrase(answer.value)}{end}: {_came_to(answer, answer.trials[answer.value])}."
    if answer.beyond is not None:
        takes += f" {phrase(answer.beyond)}: {_broken(answer, answer.trials[answer.beyond])}."
    takes += f" {_load_scope(answer)}"
    if answer.value < answer.today and answer.beyond is not None:
        named = ", ".join(map(str, answer.rule.targets))
        return f"No headroom: under today's load the machine does not meet {named}. It would take {takes}"
    if answer.value >= answer.today and not today.met:
        takes += f" Today's load is too low: {_broken(answer, today)}."
    return f"The machine takes {takes}"


def _load_scope(answer: Answer) -> str:
    """Whether every load up to the answer was tried, and which ones contradict it."""
    assert answer.value is not None
    coverage, axis = answer.coverage, answer.axis
    text = "No limit was found" if answer.beyond is None else f"{axis.phrase(answer.value)} is a threshold"
    text += _contradictions(answer, ("higher", coverage.better, True), ("lower", coverage.worse, False))
    if coverage.complete:
        return f"{text}: every step between it and today's load was tried."
    less = [value for value in coverage.tried if value < answer.value and value not in coverage.worse]
    less = [value for value in less if value >= answer.today] or less
    if answer.value < answer.today or not less:
        return f"{text}: not every step between it and today's load was tried."
    were = "was" if len(less) == 1 else "were"
    return f"{text}: of the lower loads {listed(axis, less)} {were} tried, others were not."


def _contradictions(answer: Answer, *groups: tuple[str, tuple[int, ...], bool]) -> str:
    """Name the values that contradict the answer: those beyond it that meet, those within it that miss."""
    parts = []
    for word, values, meets in groups:
        one = len(values) == 1
        verb = ("meets" if one else "meet") if meets else ("misses" if one else "miss")
        what = "every target" if meets else "a target"
        if values:
            parts.append(f"{listed(answer.axis, values)} {'is' if one else 'are'} {word} and {verb} {what}")
    return f", but the answer is not stable ({'; '.join(parts)})" if parts else ""


def _none(answer: Answer) -> str:
    """State that no tried value meets the targets, the nearest one, and the targets that it misses."""
    phrase, search, of_size = answer.axis.phrase, answer.search, answer.question == SIZE
    named = ", ".join(map(str, answer.rule.targets))
    kind = "size" if of_size else "load"
    tried = f"None of the {kind}s tried ({listed(answer.axis, answer.coverage.tried)} {answer.axis.noun})"
    if answer.coverage.complete:
        tried = f"No {kind} from {phrase(search.low)} to {phrase(search.high)}, all tried,"
    # the value that meets all targets which a larger machine or less load helps to meet, if there is one
    first = answer.trials.get(search.low)
    nearest = search.answer
    if not of_size:
        eased = first is not None and first.eased
        nearest = None if not eased else search.high if nearest is None else nearest - 1
    if nearest is not None:
        best, helper = ("smallest size", "a larger machine") if of_size else ("highest load", "less load")
        missed = _broken(answer, answer.trials[nearest])
        return (
            f"{tried} meets every target ({named}). {phrase(nearest)} is the {best} tried that "
            f"meets the targets that {helper} helps to meet, but there {missed}."
        )
    end = search.high if of_size else search.low
    last = answer.trials.get(end)
    if last is None:
        return f"{tried} meets {named}."
    hint = "; --allow-infeasible ignores them" if last.refused else ""
    return f"{tried} meets {named}; at {phrase(end)} {_broken(answer, last)}{hint}."


def _came_to(answer: Answer, trial: Evaluation) -> str:
    """State the figures of an evaluation and their bounds."""
    return ", ".join(
        f"{target.figure} is {_value(answer, target, values)} (target {_bound(target)})"
        for target, values in trial.figures.items()
    )


def _value(answer: Answer, target: SizingTarget, values: tuple[float, ...]) -> str:
    """Write the value that decides: the worst of the seeds, or their mean."""
    if any(map(math.isnan, values)):
        return "unknown (no job to compute it from)"
    if answer.seeds.count == 1:
        return _shown(target, values[0])
    if answer.rule.criterion == EVERY:
        worst = _shown(target, answer.rule.worst(target, values))
        return f"{worst} with the worst of {answer.seeds.count} seeds"
    found = answer.rule.interval(values)
    mean, low, high = (_shown(target, value) for value in (found.estimate, found.low, found.high))
    return f"{mean} on average ({100 * answer.rule.confidence:g} % interval {low} to {high})"


def _broken(answer: Answer, trial: Evaluation) -> str:
    """State the targets that an evaluation misses, or the jobs that can never run."""
    if trial.refused:
        one = "1 job can" if trial.infeasible == 1 else f"{trial.infeasible:,} jobs can"
        return f"{one} never run ({trial.example})"
    parts = []
    for target in trial.fails:
        values = trial.figures[target]
        text = f"{target.figure} is {_value(answer, target, values)}"
        if answer.seeds.count == 1:
            text += f" (target {_bound(target)})"
        elif answer.rule.criterion == EVERY:
            broken = sum(not target.met_by(value) for value in values)
            miss = "misses" if broken == 1 else "miss"
            text += f" ({broken} of {len(values)} seeds {miss} the target of {_bound(target)})"
        parts.append(text)
    return ", ".join(parts) if parts else "every target is met"


# ------------------------------------------------------------ notes


def _noise(answer: Answer, trial: Evaluation) -> Iterator[str]:
    """Say for which figures chance may decide, in the answer or against its neighbour."""
    if answer.seeds.count < 2:
        return
    for target, values in trial.figures.items():
        further = prediction(values, answer.rule.confidence)
        end = further.high if target.relation[0] == "<" else further.low
        if math.isfinite(end) and not target.met_by(end):
            most = 1.0 if target.figure.unit == "share" else math.inf
            low, high = _shown(target, max(further.low, 0.0)), _shown(target, min(further.high, most))
            yield (
                f"{target.figure} is within noise of its target: another seed is expected to give "
                f"between {low} and {high} ({100 * answer.rule.confidence:g} %)"
            )
    noise, shake = "within noise", answer.seeds.shake
    if shake is not None:
        noise = f"within the effect of moving submissions by up to {human.seconds(shake)}"
    for target, difference in answer.differences.items():
        assert answer.beyond is not None
        here, there = answer.axis.phrase(trial.value), answer.axis.phrase(answer.beyond)
        if difference.verdict == "same":
            yield f"{target.figure} is the same with {there}"
        elif difference.within_noise:
            ends = (difference.interval.low, difference.interval.high)
            low, high = (f"{'+' * (end > 0)}{_shown(target, end)}" for end in ends)
            yield (
                f"{target.figure}: the difference between {here} and {there} is {noise} "
                f"({low} to {high}, {difference.pairs} pairs)"
            )


def _scaling(answer: Answer) -> Iterator[str]:
    """Say how load is scaled, and how that changes days."""
    by = answer.about.get("by")
    load = answer.about.get("load", 1) if answer.question == SIZE else answer.number
    if load is None or load == 1:
        return
    if by == "arrival":
        days = f"a day lasts {24 / load:.3g} h, while run times, limits and time windows do not change"
        yield f"load {load:g} comes from denser arrivals: {days} (--by users and --by jobs keep days)"
    elif by in ("users", "jobs"):
        yield f"load {load:g} comes from {by} removed or copied at random"


def _of_seeds(answer: Answer) -> str:
    seeds, others = answer.seeds, answer.seeds.count - 1
    if seeds.burst:
        return f"{seeds.drawn}, and seeds change only failures and random choices" if others else seeds.drawn
    if not others:
        return "one seed: the effect of chance is unknown"
    kind = ", which shows sensitivity and not other demand" if seeds.shake is not None else ""
    return f"a target has to hold {CRITERIA[answer.rule.criterion]}: {seeds.drawn}{kind}"


# ------------------------------------------------------------ parts of the table and of the words


def _cell(answer: Answer, target: SizingTarget, trial: Evaluation) -> str:
    values = trial.figures.get(target)
    if values is None:
        return human.MISSING
    rule = answer.rule
    every = rule.criterion == EVERY
    return _shown(target, rule.worst(target, values) if every else rule.interval(values).estimate)


def _why(answer: Answer, value: int) -> str:
    """Return the part of the search that tried a value."""
    return next((probe.why for probe in answer.search.probes if probe.value == value), "limit")


def _shown(target: SizingTarget, value: float) -> str:
    """Write a value with its unit; in full if it would read like the bound that it misses."""
    unit, text = target.figure.unit, human.quantity(value, target.figure.unit)
    if value != target.bound and text == human.quantity(target.bound, unit):
        return f"{text} ({value:,.10g}{' s' if unit == 's' else ''})"
    return text


def _bound(target: SizingTarget) -> str:
    words = {"<": "below", ">": "above", "<=": "at most", ">=": "at least"}
    return f"{words[target.relation]} {_shown(target, target.bound)}"


def listed(axis: SizeAxis | LoadAxis, values: Iterable[int]) -> str:
    """Return ascending values as text, three and more neighbours as a range.

    >>> from simsched.study.search.size_axis import LoadAxis
    >>> listed(LoadAxis(0, 1), [100, 112, 117, 118, 119, 1340])
    '100, 112, 117 to 119 and 1,340'
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    ends = [[f"{axis.number(value):,.9g}" for value in run] for run in runs]
    parts = [part for run in ends for part in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""
