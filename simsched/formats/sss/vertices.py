"""The counts of a Job Object (processors, nodes, tasks) as resource vertices of RFC 14."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.jobspec.vertex import ResourceVertex
from simsched.formats.rfc.count import Count
from simsched.formats.rfc.idset import Idset
from simsched.formats.sss.expressions import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = Idset(((1, 1),))
"""The set of acceptable numbers that holds 1 alone."""

MAX_TASKS = 10**6
"""The most tasks of a geometry."""

_GEOMETRY = re.compile(r"\s*\{([0-9,\s-]+)\}")


@dataclass(frozen=True, slots=True)
class VertexLayout:
    """The counts of one scope; sets contain the acceptable numbers, None: not given.

    `tasks` is the total, `cores` those of one task, `per_node` the tasks of a node, `geometry` the tasks of
    each node, `pools` the resources of a task besides cores, `node_id` the hosts of the nodes.
    """

    tasks: Idset | None = None
    cores: Idset = ONE
    nodes: Idset | None = None
    per_node: int | None = None
    geometry: tuple[int, ...] = ()
    pools: tuple[ResourceVertex, ...] = ()
    label: str = "default"
    node_id: str | None = None

    def vertices(self, mixed: Callable[[str], None]) -> tuple[ResourceVertex, ...]:
        """Return the vertices; `mixed` is called with each combination of ranges that had to be narrowed.

        Raises FormatError for counts that contradict each other, naming them.
        """
        if self.geometry:
            return self._by_geometry()
        if self.per_node is not None:
            return self._by_tasks_per_node(mixed)
        if self.nodes is not None:
            return self._by_nodes(mixed)
        return (self.slot(self.tasks or ONE),)

    def slot(self, count: Idset, label: str | None = None) -> ResourceVertex:
        """The slot of one task, `count` times."""
        core = ResourceVertex("core", count_of(self.cores))
        return ResourceVertex("slot", count_of(count), label=label or self.label, with_=(core, *self.pools))

    def node(self, count: Idset, slots: Idset, label: str | None = None) -> ResourceVertex:
        """Nodes with a number of slots each."""
        return ResourceVertex("node", count_of(count), id=self.node_id, with_=(self.slot(slots, label),))

    def uneven(self, sizes: dict[int, int]) -> tuple[ResourceVertex, ...]:
        """Nodes by how many tasks they have: {tasks: nodes}."""
        result = []
        for number, (tasks, nodes) in enumerate(sizes.items()):
            label = self.label if not number else f"{self.label}-{number + 1}"
            result.append(self.node(one(nodes), one(tasks), label))
        return tuple(result)

    def _by_geometry(self) -> tuple[ResourceVertex, ...]:
        """The nodes of the geometry."""
        total = sum(self.geometry)
        self._agree(self.tasks, total, "tasks", "TaskCount", "Geometry")
        self._agree(self.nodes, len(self.geometry), "nodes", "NodeCount", "Geometry")
        sizes: dict[int, int] = {}
        for tasks in self.geometry:
            sizes[tasks] = sizes.get(tasks, 0) + 1
        return self.uneven(sizes)

    @staticmethod
    def _agree(requested: Idset | None, found: int, what: str, one_name: str, other_name: str) -> None:
        if requested is not None and found not in requested:
            raise FormatError(
                f"{one_name} {_shown(requested)} contradicts {other_name}, which has {found} {what}",
                expected=f"{one_name} {found}",
            )

    def _by_tasks_per_node(self, mixed: Callable[[str], None]) -> tuple[ResourceVertex, ...]:
        """Nodes with a given number of tasks each, the last one with the rest."""
        each = self.per_node or 1
        if self.tasks is None:
            return (self.node(self.nodes or ONE, one(each)),)
        tasks = self.tasks
        if self.nodes is not None:
            held = Idset.from_ranges(
                ((low - 1) * each + 1, min(high * each, ENDLESS)) for low, high in self.nodes.ranges
            )
            if not tasks & held:
                raise FormatError(
                    f"NodeCount {_shown(self.nodes)} contradicts {_shown(tasks)} tasks, {each} on each node",
                    expected=f"NodeCount {_shown(fitting_nodes(tasks, each))}",
                )
            tasks &= held
        whole = divided(tasks, each)
        if len(tasks) > 1 and whole:
            return (self.node(whole, one(each)),)
        count = tasks.first
        if len(tasks) > 1:
            mixed(f"a range of tasks with {each} on each node")
        full, rest = divmod(count, each)
        if not full:
            return (self.node(ONE, one(rest)),)
        return self.uneven({each: full, rest: 1} if rest else {each: full})

    def _by_nodes(self, mixed: Callable[[str], None]) -> tuple[ResourceVertex, ...]:
        """A number of nodes, the tasks spread evenly over them."""
        nodes = self.nodes or ONE
        if self.tasks is None:
            return (self.node(nodes, ONE),)
        count = nodes.first
        if len(nodes) > 1:
            mixed("a range of NodeCount with a number of tasks")
            count = next((n for n in nodes.take(10_000) if divided(self.tasks, n)), count)
        even = divided(self.tasks, count)
        if even:
            return (self.node(one(count), even),)
        tasks = self.tasks.first
        if len(self.tasks) > 1:
            mixed("a range of tasks that the nodes do not divide")
        each, rest = divmod(tasks, count)
        if not each:
            raise FormatError(
                f"NodeCount {count} contradicts {tasks} tasks",
                expected=f"NodeCount {tasks} or less",
            )
        return self.uneven({each + 1: rest, each: count - rest})


def geometry_of(text: str) -> tuple[int, ...]:
    """How many tasks each node has by a geometry; FormatError for a text that is not a geometry.

    >>> geometry_of("{1,4}{2}{3,5}")
    (2, 1, 2)
    """
    sizes: list[int] = []
    ranges: list[tuple[int, int]] = []
    at = 0
    while match := _GEOMETRY.match(text, at):
        at = match.end()
        parts = [Idset.parse(part.strip()) for part in match.group(1).split(",")]
        ranges += [pair for part in parts for pair in part.ranges]
        sizes.append(sum(map(len, parts)) if all(parts) else 0)
    if not all(sizes) or not sizes or text[at:].strip() or sum(sizes) > MAX_TASKS:
        raise FormatError(
            "not a task geometry", expected=f"such as {{1,4}}{{2}}{{3,5}}, at most {MAX_TASKS:,} tasks"
        )
    for (_, before), (task, _) in pairwise(sorted(ranges)):
        if task <= before:
            raise FormatError(f"task {task} occurs twice in the geometry", expected="each task once")
    return tuple(sizes)


def one(number: int) -> Idset:
    """The set of one number."""
    return Idset(((number, number),))


def divided(numbers: Idset, by: int) -> Idset:
    """The numbers k for which k times `by` is in the set.

    >>> str(divided(Idset.parse("8-16,40"), 4))
    '2-4,10'
    """
    return Idset.from_ranges(
        (-(-low // by), ENDLESS if high == ENDLESS else high // by)
        for low, high in numbers.ranges
        if -(-low // by) <= high // by
    )


def fitting_nodes(tasks: Idset, each: int) -> Idset:
    """How many nodes hold these tasks with `each` on a node."""
    return Idset.from_ranges((-(-low // each), -(-high // each)) for low, high in tasks.ranges)


def count_of(numbers: Idset) -> Count:
    """The RFC 14 count of a set of acceptable numbers, which must not be empty.

    >>> str(count_of(Idset.parse("2-1000000000"))), str(count_of(Idset.parse("4,8")))
    ('2+', '4,8')
    """
    if len(numbers.ranges) == 1:
        low, high = numbers.ranges[0]
        return Count.fixed(low) if low == high else Count.range(low, None if high == ENDLESS else high)
    return Count.parse(str(numbers))


def _shown(numbers: Idset) -> str:
    return str(count_of(numbers))
