"""`Study`: the axes of a study as values, and their expansion to tasks.

The runs are the product of the axes in the order in which they were written; the first varies slowest,
seeds vary fastest.  Zipped axes vary together, in the place of the first of them.  Runs that `exclude`
matches are omitted and, if there is an `include`, so are runs that it does not match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.simulation.options.run_config import POLICY, merged
from simsched.workload.transforms.query import COMPARE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.site.site import Site
    from simsched.study.spec.run_task import RunTask, TaskInput

MAX_RUNS = 1_000_000
SEED = "seed"
_CONDITION = re.compile("(<=|>=|!=|==|[<>=])(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A change of the base task: it replaces inputs, adds steps and merges options."""

    cluster: TaskInput | None = None
    edits: tuple[str, ...] = ()
    workload: TaskInput | None = None
    transforms: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        """Whether it replaces an input; such changes come first, since others build on the input."""
        return self.cluster is not None or self.workload is not None

    @property
    def precedence(self) -> int:
        """The place of the change among those of a run, the smallest first."""
        return 0 if self.replaces else 1 if POLICY in self.options else 2

    def applied(self, task: RunTask) -> RunTask:
        """Return the task after this change.

        Another cluster or workload drops the edits or transforms of the one before.
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


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of an axis: its label in tables, and its change of the task."""

    label: str | float
    change: TaskChange = field(default_factory=TaskChange)


@dataclass(frozen=True, slots=True)
class StudyAxis:
    """An axis of a study: its name and its settings."""

    name: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Conditions on labels by axis: a value, several, or a comparison such as ``<= 0.9``.

    >>> RunFilter({"load": ">= 0.9", "order": ["sjf", "fifo"]}).holds({"load": 1, "order": "sjf"})
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
    numbers = isinstance(label, int | float) and not isinstance(label, bool) and isinstance(number, float)
    return (numbers or sign in {"==", "!="}) and COMPARE[sign](label, number)


def comparison(text: Any) -> tuple[str | None, Any]:
    """Return sign and number of a comparison; the sign is None for another text.

    >>> comparison("<= 0.9"), comparison("= easy"), comparison("easy")
    (('<=', 0.9), ('==', 'easy'), (None, 'easy'))
    """
    found = _CONDITION.match(text) if isinstance(text, str) else None
    if found is None:
        return None, text
    sign, rest = "==" if found[1] == "=" else found[1], found[2].strip()
    try:
        return sign, float(rest)
    except ValueError:
        return sign, rest


def column(name: str) -> str:
    """Return the column of an axis in the dataset, a name that SQL accepts without quotes.

    >>> column("policy-options.depth")
    'policy_options_depth'
    """
    return re.sub(r"\W+", "_", name).strip("_") or "axis"


@dataclass(frozen=True, repr=False)
class Study:
    """A study: a base task, axes, groups of axes that vary together, filters of runs, and seeds.

    `include` and `exclude` are filters over labels; the label of a seed is ``seed``.  `where` names the
    study in messages, `site` is the site in place of a cluster.
    """

    name: str
    base: RunTask
    axes: tuple[StudyAxis, ...] = ()
    zipped: tuple[tuple[str, ...], ...] = ()
    include: tuple[RunFilter, ...] = ()
    exclude: tuple[RunFilter, ...] = ()
    seeds: tuple[int, ...] = (0,)
    description: str = ""
    where: str = "study"
    site: Site | None = None

    def __repr__(self) -> str:
        axes = ", ".join(axis.name for axis in self.axes) or "no axes"
        return f"<Study {self.name!r}: {axes}; {len(self.seeds)} seeds>"

    @cached_property
    def tasks(self) -> tuple[RunTask, ...]:
        """All runs, in the order of the plan.

        Raises
        ------
        ConfigError
            if there are more than `MAX_RUNS` runs, or none.
        """
        count = len(self.seeds)
        for group in self._groups():
            count *= len(group)
        if count > MAX_RUNS:
            raise ConfigError(
                f"the study has {count:,} runs", where=self.where, expected=f"at most {MAX_RUNS:,}"
            )
        found = tuple(self._expanded())
        if not found:
            raise ConfigError("include and exclude leave no run", where=self.where)
        return found

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The columns that distinguish runs: the axes, and the seed if there are several."""
        names = tuple(axis.name for axis in self.axes)
        return (*names, SEED) if len(self.seeds) > 1 else names

    def _groups(self) -> list[list[tuple[tuple[str, Setting], ...]]]:
        """Return the combinations of (name, setting) of each axis or group of zipped axes."""
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

    def _expanded(self) -> Iterator[RunTask]:
        several = len(self.seeds) > 1
        order = [axis.name for axis in self.axes]
        for combination in product(*self._groups()):
            chosen = dict(pair for group in combination for pair in group)
            task = self.base
            # Inputs are replaced first: an edit of another axis applies to the new cluster. So are policies,
            # for options of another axis belong to the new one.
            changes = {name: chosen[name].change for name in order}
            for name in sorted(order, key=lambda name: changes[name].precedence):
                task = chosen[name].change.applied(task)
            labels = {name: chosen[name].label for name in order}
            for seed in self.seeds:
                known = {**labels, SEED: seed}
                included = not self.include or any(rule.holds(known) for rule in self.include)
                if included and not any(rule.holds(known) for rule in self.exclude):
                    settings = known if several else labels
                    yield task.changed(seed=seed, settings=settings)
