"""`Study`: what is varied, as values; and its expansion to tasks, which is pure.

The runs are the product of the axes in the order in which they were written, the first
varying slowest; axes that are zipped vary together, in the place of the first of them; seeds
vary fastest.  What `exclude` names is left out, and if there is an `include`, so is what it
does not name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.study.runs.task import Input, Task

MAX_RUNS = 1_000_000
SEED = "seed"
_SIGNS = ("<=", ">=", "!=", "<", ">", "=")


@dataclass(frozen=True, slots=True)
class Change:
    """What a setting changes of the base: inputs are replaced, steps added, options merged."""

    cluster: Input | None = None
    edits: tuple[str, ...] = ()
    workload: Input | None = None
    transforms: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        """Whether an input is another one; that comes before what is made of it."""
        return self.cluster is not None or self.workload is not None

    def applied(self, task: Task) -> Task:
        """Return the task with this change made to it.

        Another cluster or workload leaves no edits or transforms of the one before.
        """
        edits = self.edits if self.cluster else task.edits + self.edits
        transforms = self.transforms if self.workload else task.transforms + self.transforms
        return task.changed(
            cluster=self.cluster or task.cluster,
            workload=self.workload or task.workload,
            edits=edits,
            transforms=transforms,
            options=merged(task.options, self.options),
        )


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with others over them; options of the policy are merged one by one.

    >>> merged({"order": "sjf", "policy-options": {"extra": False}}, {"policy-options": {"refresh": "x"}})
    {'order': 'sjf', 'policy-options': {'extra': False, 'refresh': 'x'}}
    """
    made = {**base, **over}
    if "policy-options" in base and "policy-options" in over:
        made["policy-options"] = {**base["policy-options"], **over["policy-options"]}
    return made


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of an axis: what tables call it, and what it changes."""

    label: str | float
    change: Change = field(default_factory=Change)


@dataclass(frozen=True, slots=True)
class Axis:
    """What is varied: a name and its settings."""

    name: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """Axis → condition on its label: a value, several, or a comparison such as ``<= 0.9``.

    >>> Rule({"load": ">= 0.9", "queue-policy": ["fcfs", "easy"]}).holds({"load": 1, "queue-policy": "easy"})
    True
    """

    conditions: Mapping[str, Any]

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """Whether every condition is met."""
        return all(_met(settings[name], wanted) for name, wanted in self.conditions.items())


def _met(label: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_met(label, one) for one in wanted)
    sign, number = comparison(wanted)
    if sign is None:
        return bool(label == wanted) and isinstance(label, bool) == isinstance(wanted, bool)
    if sign in {"=", "!="}:
        return bool(label == number) == (sign == "=")
    if isinstance(label, bool) or not isinstance(label, int | float) or not isinstance(number, int | float):
        return False
    low = label < number or (sign.endswith("=") and label == number)
    high = label > number or (sign.endswith("=") and label == number)
    return bool(low if sign.startswith("<") else high)


def comparison(text: Any) -> tuple[str | None, Any]:
    """Return sign and number of a comparison; no sign if it is none.

    >>> comparison("<= 0.9"), comparison("easy")
    (('<=', 0.9), (None, 'easy'))
    """
    sign = next((s for s in _SIGNS if text.startswith(s)), None) if isinstance(text, str) else None
    if sign is None:
        return None, text
    rest = text[len(sign) :].strip()
    try:
        return sign, float(rest)
    except ValueError:
        return sign, rest


def column(name: str) -> str:
    """Return the column of the dataset that an axis has, a name that SQL takes without quotes.

    >>> column("policy-options.depth")
    'policy_options_depth'
    """
    return re.sub(r"\W+", "_", name).strip("_") or "axis"


@dataclass(frozen=True)
class Study:
    """A study: a base, axes, what goes together, what is left out, seeds.

    `include` and `exclude` are rules over labels, those of the seeds under the name ``seed``.
    `where` is how messages call it.
    """

    name: str
    base: Task
    axes: tuple[Axis, ...] = ()
    zipped: tuple[tuple[str, ...], ...] = ()
    include: tuple[Rule, ...] = ()
    exclude: tuple[Rule, ...] = ()
    seeds: tuple[int, ...] = (0,)
    description: str = ""
    where: str = "study"

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All runs, in the order of the plan.

        Raises
        ------
        ConfigError
            If there are more than `MAX_RUNS`, or none.
        """
        count = len(self.seeds)
        for group in self._groups():
            count *= len(group)
        if count > MAX_RUNS:
            raise ConfigError(f"{count:,} runs", where=self.where, expected=f"at most {MAX_RUNS:,}")
        found = tuple(self._expanded())
        if not found:
            raise ConfigError("include and exclude leave no run", where=self.where)
        return found

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The columns that tell runs apart: the axes, and the seed if there are several."""
        names = tuple(axis.name for axis in self.axes)
        return (*names, SEED) if len(self.seeds) > 1 else names

    def _groups(self) -> list[list[tuple[tuple[str, Setting], ...]]]:
        """Return, for each axis or zip of axes, its combinations of (name, setting)."""
        partners = {name: group for group in self.zipped for name in group}
        by_name = {axis.name: axis for axis in self.axes}
        groups = []
        for axis in self.axes:
            group = partners.get(axis.name, (axis.name,))
            members = [by_name[name] for name in by_name if name in group]
            if members[0] is axis:
                rows: Sequence[tuple[Setting, ...]] = list(zip(*(m.settings for m in members), strict=True))
                names = [member.name for member in members]
                groups.append([tuple(zip(names, row, strict=True)) for row in rows])
        return groups

    def _expanded(self) -> Iterator[Task]:
        several = len(self.seeds) > 1
        order = [axis.name for axis in self.axes]
        for combination in product(*self._groups()):
            chosen = dict(pair for group in combination for pair in group)
            task = self.base
            for name in sorted(order, key=lambda name: not chosen[name].change.replaces):
                task = chosen[name].change.applied(task)
            labels = {name: chosen[name].label for name in order}
            for seed in self.seeds:
                known = {**labels, SEED: seed}
                if self._wanted(known):
                    settings = known if several else labels
                    yield task.changed(seed=seed, settings=settings)

    def _wanted(self, labels: Mapping[str, Any]) -> bool:
        if self.include and not any(rule.holds(labels) for rule in self.include):
            return False
        return not any(rule.holds(labels) for rule in self.exclude)
