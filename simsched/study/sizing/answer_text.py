"""Answers in words: the sentence, the notes, the table of a search."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simsched import human
from simsched.study.sizing.evaluation import CRITERIA, EVERY
from simsched.study.sizing.scope import listed
from simsched.study.stats import prediction
from simsched.text_table import PAGE_WIDTH, fitted_table

if TYPE_CHECKING:
    from simsched.report.figures.sizing import SizingFigure
    from simsched.study.sizing.answer import Answer
    from simsched.study.sizing.evaluation import Trial
    from simsched.study.sizing.target import Target

SIZE = "size"


def sentence(answer: Answer) -> str:
    """Return the answer in a sentence or two."""
    if answer.value is None:
        return _none(answer)
    return _size(answer) if answer.question == SIZE else _load(answer)


def _size(answer: Answer) -> str:
    assert answer.value is not None
    phrase = answer.axis.phrase
    text = f"{phrase(answer.value)}: {_came_to(answer, answer.trials[answer.value])}."
    if answer.beyond is not None:
        text += f" {_capital(phrase(answer.beyond))}: {_broken(answer, answer.trials[answer.beyond])}."
    if answer.limit is not None and answer.limit > answer.value:
        text += f" Up to {phrase(answer.limit)} every size tried meets every target."
    return f"{text} {_size_scope(answer)}"


def _size_scope(answer: Answer) -> str:
    """Say whether the answer is the smallest, and whether larger sizes meet: of what was tried alone."""
    assert answer.value is not None
    scope, phrase = answer.scope, answer.axis.phrase
    here, low = phrase(answer.value), answer.search.low
    smaller = [value for value in scope.tried if value < answer.value]
    if answer.value == low:
        claim, why = f"{here} is the least that was asked for", ""
    elif scope.complete:
        claim, why = f"{here} is the smallest that meets", f"every size from {phrase(low)} was tried"
    else:
        claim = f"{here} is a threshold"
        said = "size tried (%s) does" if len(smaller) == 1 else "sizes tried (%s) do"
        why = f"the smaller {said % listed(answer.axis, smaller)} not meet, others were not tried"
    larger = [value for value in scope.met if value > answer.value]
    odd = _contradictions(
        answer,
        (scope.worse, "is larger and fails", "are larger and fail"),
        (scope.better, "is larger still and meets again", "are larger still and meet again"),
    )
    claim += odd
    if larger and not odd:
        do = "meet, too" if len(larger) > 1 else "meets, too"
        why += f"{'; ' if why else ''}{listed(answer.axis, larger)} {do}"
    return f"{claim}: {why}." if why else f"{claim}."


def _load(answer: Answer) -> str:
    assert answer.value is not None
    phrase, here = answer.axis.phrase, answer.trials[answer.value]
    came_to = _came_to(answer, here)
    today = answer.trials[answer.today]
    too_little = answer.value >= answer.today and not today.met
    missed = f" Too little today: {_broken(answer, today)}." if too_little else ""
    end = f" {_load_scope(answer)}{missed}"
    if answer.beyond is None:
        return f"The machine takes {phrase(answer.value)}, the most that was asked for: {came_to}.{end}"
    breaks = f"{_capital(phrase(answer.beyond))}: {_broken(answer, answer.trials[answer.beyond])}.{end}"
    if answer.value < answer.today:
        named = ", ".join(map(str, answer.rule.targets))
        return (
            f"No headroom: today's load does not meet {named}. "
            f"The machine would take {phrase(answer.value)}: {came_to}. {breaks}"
        )
    return f"The machine takes {phrase(answer.value)}: {came_to}. {breaks}"


def _load_scope(answer: Answer) -> str:
    """Say whether every load up to the answer was tried, and what contradicts it."""
    assert answer.value is not None
    scope, axis = answer.scope, answer.axis
    text = "No limit was found"
    if answer.beyond is not None:
        text = f"{axis.phrase(answer.value)} is a threshold"
    text += _contradictions(
        answer,
        (scope.better, "is more and meets", "are more and meet"),
        (scope.worse, "is less and fails", "are less and fail"),
    )
    if scope.complete:
        return f"{text}: every step between today's load and that was tried."
    less = [value for value in scope.tried if value < answer.value and value not in scope.worse]
    less = [value for value in less if value >= answer.today] or less
    if answer.value < answer.today or not less:
        return f"{text}: not every step between today's load and that was tried."
    were = "was" if len(less) == 1 else "were"
    return f"{text}: of the loads below it {listed(axis, less)} {were} tried, others were not."


def _contradictions(answer: Answer, *groups: tuple[tuple[int, ...], str, str]) -> str:
    """Say which values that were tried contradict the answer: values, what one does, what several do."""
    said = [
        f"{listed(answer.axis, values)} {one if len(values) == 1 else many}"
        for values, one, many in groups
        if values
    ]
    return f", but not a stable answer ({'; '.join(said)})" if said else ""


def _none(answer: Answer) -> str:
    """Say that nothing that was tried will do: what comes nearest, and what breaks there."""
    named, phrase = ", ".join(map(str, answer.rule.targets)), answer.axis.phrase
    of_size, nearest = answer.question == SIZE, _nearest(answer)
    if nearest is not None:
        best, helped = ("smallest", "a larger machine") if of_size else ("most", "less load")
        there = _broken(answer, answer.trials[nearest])
        return (
            f"{_none_tried(answer)} meets every target ({named}): the {best} tried that meets those that "
            f"{helped} helps with is {phrase(nearest)}, and there {there}."
        )
    end = answer.search.high if of_size else answer.search.low
    last = answer.trials.get(end)
    reason = f"; at {phrase(end)} {_broken(answer, last)}{_hint(last)}" if last is not None else ""
    return f"{_none_tried(answer)} meets {named}{reason}."


def _none_tried(answer: Answer) -> str:
    what, phrase = ("size" if answer.question == SIZE else "load"), answer.axis.phrase
    if answer.scope.complete:
        return f"No {what} from {phrase(answer.search.low)} to {phrase(answer.search.high)}, all tried,"
    return f"None of the {what}s tried ({listed(answer.axis, answer.scope.tried)} {answer.axis.noun})"


def _nearest(answer: Answer) -> int | None:
    """Return the value that meets the targets which a larger machine, or less load, helps with."""
    search = answer.search
    if answer.question == SIZE:
        return search.answer
    first = answer.trials.get(search.low)
    if first is None or not first.eased:
        return None
    return search.high if search.answer is None else search.answer - 1


def _hint(trial: Trial) -> str:
    return "; --allow-infeasible leaves them out" if trial.refused else ""


def _came_to(answer: Answer, trial: Trial) -> str:
    """Say what the figures of a trial are, beside their bounds."""
    return ", ".join(
        f"{target.figure} is {_value(answer, target, values)} (target {_bound(target)})"
        for target, values in trial.figures.items()
    )


def _value(answer: Answer, target: Target, values: tuple[float, ...]) -> str:
    """Write what decides: the worst of the seeds, or their mean."""
    if any(map(math.isnan, values)):
        return "not known (nothing to take it of)"
    if answer.seeds.count == 1:
        return _shown(target, values[0])
    if answer.rule.criterion == EVERY:
        worst = _shown(target, answer.rule.worst(target, values))
        return f"{worst} with the worst of {answer.seeds.count} seeds"
    found = answer.rule.interval(values)
    return (
        f"{_shown(target, found.estimate)} on average "
        f"({_percent(answer)} interval {_shown(target, found.low)} to {_shown(target, found.high)})"
    )


def _broken(answer: Answer, trial: Trial) -> str:
    """Say why a trial does not do."""
    if trial.refused:
        one = "1 job can" if trial.infeasible == 1 else f"{trial.infeasible:,} jobs can"
        return f"{one} never run ({trial.example})"
    parts = []
    for target in trial.fails:
        values = trial.figures[target]
        text = f"{target.figure} is {_value(answer, target, values)}"
        broken = sum(not target.met_by(value) for value in values)
        if answer.seeds.count > 1 and answer.rule.criterion == EVERY:
            text += f" ({broken} of {len(values)} miss {_bound(target)})"
        elif answer.seeds.count == 1:
            text += f" (target {_bound(target)})"
        parts.append(text)
    return ", ".join(parts) if parts else "every target is met"


# ------------------------------------------------------------ notes


def notes(answer: Answer) -> list[str]:
    """Return what has to be known besides the sentence, most important first."""
    return [*_overload(answer), *_noise(answer), *_jobs(answer), *_scaling(answer), *_seeds(answer)]


def _overload(answer: Answer) -> list[str]:
    """Say where a queue grows as long as jobs come, so that waits depend on how long that is."""
    trial = answer.chosen
    if trial is None or not trial.offered > 1:
        return []
    times = f"{trial.offered:.3g} times what the machine can do"
    return [f"overloaded: while jobs come they ask for {times}; the answer depends on how long they come"]


def _noise(answer: Answer) -> list[str]:
    trial = answer.chosen
    if trial is None or answer.seeds.count < 2:
        return []
    found = []
    for target, values in trial.figures.items():
        further = prediction(values, answer.rule.confidence)
        end = further.high if target.relation[0] == "<" else further.low
        if math.isfinite(end) and not target.met_by(end):
            most = 1.0 if target.figure.unit == "share" else math.inf
            low, high = _shown(target, max(further.low, 0.0)), _shown(target, min(further.high, most))
            found.append(
                f"{target.figure} is within noise of its target: a further seed is expected "
                f"between {low} and {high} ({_percent(answer)})"
            )
    return [*found, *_neighbour(answer, trial)]


def _neighbour(answer: Answer, trial: Trial) -> list[str]:
    """Say where the answer cannot be told from its neighbour."""
    if answer.beyond is None:
        return []
    here, there = answer.axis.phrase(trial.value), answer.axis.phrase(answer.beyond)
    found = []
    for target, difference in answer.differences.items():
        if difference.verdict == "same":
            found.append(f"{target.figure} is the same with {there}")
        elif difference.within_noise:
            low, high = (_change(target, end) for end in (difference.interval.low, difference.interval.high))
            noise = "within noise"
            if answer.seeds.shake is not None:
                noise = f"within what moving submissions by up to {human.seconds(answer.seeds.shake)} does"
            found.append(
                f"{target.figure}: the difference between {here} and {there} is {noise} "
                f"({low} to {high}, {difference.pairs} pairs)"
            )
    return found


def _change(target: Target, value: float) -> str:
    return f"{'+' if value > 0 else ''}{_shown(target, value)}"


def _jobs(answer: Answer) -> list[str]:
    trial = answer.chosen
    if trial is None or not trial.infeasible:
        return []
    one = "1 job" if trial.infeasible == 1 else f"{trial.infeasible:,} jobs"
    count = "counts" if trial.infeasible == 1 else "count"
    return [f"{one} can never run there and {count} for nothing ({trial.example})"]


def _scaling(answer: Answer) -> list[str]:
    """Say how load is scaled where it is, and what that does to days."""
    by = answer.about.get("by")
    load = answer.about.get("load", 1) if answer.question == SIZE else answer.number
    if load is None or load == 1:
        return []
    if by == "arrival":
        days = f"a day takes {24 / load:.3g} h, while run times, limits and windows of time stay"
        return [f"load {load:g} is of denser arrivals: {days} (--by users and --by jobs keep days)"]
    return [f"load {load:g} is of {by} left out or copied at random"] if by in ("users", "jobs") else []


def _seeds(answer: Answer) -> list[str]:
    seeds = answer.seeds
    if seeds.burst:
        same = "all jobs are submitted at one instant: there is nothing to resample"
        return [f"{same}, and seeds differ in failures and choices alone" if seeds.count > 1 else same]
    if seeds.count == 1:
        return ["one seed: nothing is known of chance"]
    met = CRITERIA[answer.rule.criterion]
    if seeds.shake is not None:
        copies = "1 copy" if seeds.count == 2 else f"{seeds.count - 1} copies"
        by = human.seconds(seeds.shake)
        drawn = f"the workload as it is and {copies} of it with submissions moved by up to {by}"
        return [f"a target is met {met}: {drawn}, which shows chaos and says nothing of other demand"]
    if seeds.block is None:
        return [f"a target is met {met}: {seeds.count} draws of the model"]
    blocks = human.seconds(seeds.block)
    one = "1 resample" if seeds.count == 2 else f"{seeds.count - 1} resamples"
    return [f"a target is met {met}: the workload as it is and {one} in blocks of {blocks}"]


# ------------------------------------------------------------ the table


def table(answer: Answer) -> str:
    """Return the trace of the search, a row a trial in the order in which they were made."""
    targets = answer.rule.targets
    word = "worst" if answer.rule.criterion == EVERY else "mean"
    several = answer.seeds.count > 1
    head = ["load" if answer.question != SIZE else answer.axis.noun]
    head += [f"{target.figure}{f' ({word})' if several else ''}" for target in targets]
    head += [*(["seeds that meet"] if several else []), "meets", "why"]
    rows = []
    for trial in answer.trials.values():
        cells = [_cell(answer, target, trial) for target in targets]
        row = [human.number(answer.axis.number(trial.value)), *cells]
        if several:
            row.append(f"{_met_seeds(trial)} of {answer.seeds.count}" if trial.figures else human.MISSING)
        said = "jobs that never fit" if trial.refused else "yes" if trial.met else "no"
        rows.append([*row, said, why(answer, trial.value)])
    return fitted_table(head, rows, PAGE_WIDTH)


def _cell(answer: Answer, target: Target, trial: Trial) -> str:
    values = trial.figures.get(target)
    if values is None:
        return human.MISSING
    worst = answer.rule.criterion == EVERY
    return _shown(
        target, answer.rule.worst(target, values) if worst else answer.rule.interval(values).estimate
    )


def _met_seeds(trial: Trial) -> int:
    return sum(
        all(target.met_by(value) for target, value in zip(trial.figures, row, strict=True))
        for row in zip(*trial.figures.values(), strict=True)
    )


def why(answer: Answer, value: int) -> str:
    """Return which part of the search asked for a value."""
    return next((probe.why for probe in answer.search.probes if probe.value == value), "limit")


def picture(answer: Answer) -> SizingFigure:
    """Return what `report.plot_sizing` draws of an answer."""
    from simsched.report.figures.sizing import SizingFigure, SizingPanel, SizingPoint

    number = answer.axis.number
    trials = [t for t in answer.trials.values() if t.figures]
    panels = []
    for target in answer.rule.targets:
        points = []
        for trial in trials:
            values = trial.figures[target]
            mean = answer.rule.interval(values)
            meets = target not in trial.fails
            points.append(SizingPoint(number(trial.value), values, mean.estimate, mean.low, mean.high, meets))
        panels.append(
            SizingPanel(str(target.figure), target.figure.unit, target.relation, target.bound, tuple(points))
        )
    refused = tuple(number(t.value) for t in answer.trials.values() if t.refused)
    named = ", ".join(map(str, answer.rule.targets))
    title = f"{named}: {_in_short(answer)}"
    return SizingFigure(title, answer.axis.noun, tuple(panels), answer.number, number(answer.today), refused)


def _in_short(answer: Answer) -> str:
    """Return the answer and its standing in a few words."""
    if answer.value is None:
        return f"none of {len(answer.trials)} {'sizes' if answer.question == SIZE else 'loads'} tried"
    smallest = answer.question == SIZE and answer.scope.complete
    standing = "smallest" if smallest else "a threshold"
    return f"{answer.axis.phrase(answer.value)} ({standing}{'' if answer.scope.stable else ', not stable'})"


def _shown(target: Target, value: float) -> str:
    """Write a value with its unit, in full where it could be taken for the bound that it breaks."""
    unit, text = target.figure.unit, human.quantity(value, target.figure.unit)
    if value != target.bound and text == human.quantity(target.bound, unit):
        return f"{text} ({value:,.10g}{' s' if unit == 's' else ''})"
    return text


def _bound(target: Target) -> str:
    more = "at least" if target.relation[0] == ">" else "at most"
    strict = {"<": "below", ">": "above"}.get(target.relation, more)
    return f"{strict} {_shown(target, target.bound)}"


def _percent(answer: Answer) -> str:
    return f"{100 * answer.rule.confidence:g} %"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
