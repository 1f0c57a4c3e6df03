"""The request of one job, from its task groups, tasks and totals, as resource vertices and a constraint.

The request of one scope (a job, a task group, a task) is read topic by topic; counts of processors, nodes and
tasks are resource vertices of RFC 14.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from simsched.errors import FormatError, clip
from simsched.formats.jobspec.vertex import ResourceVertex, slots
from simsched.formats.rfc.constraint import ANY, Constraint, Hosts
from simsched.formats.rfc.count import Count
from simsched.formats.rfc.idset import Idset
from simsched.formats.sss import vocabulary
from simsched.formats.sss.document import merged, report
from simsched.formats.sss.expressions import (
    ENDLESS,
    Junction,
    Names,
    Term,
    Tree,
    UnexpandedError,
    amount,
    by_topic,
    constraint_of,
    expression,
    is_per_task,
    joined,
    leaves,
    number_set,
    slot_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from simsched.formats.text.xml_tree import Element


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

    def uneven(self, sizes: Mapping[int, int]) -> tuple[ResourceVertex, ...]:
        """Nodes by how many tasks they have: {tasks: nodes}."""
        labels = (self.label if not number else f"{self.label}-{number + 1}" for number in range(len(sizes)))
        rows = zip(sizes.items(), labels, strict=True)
        return tuple(self.node(one(nodes), one(tasks), label) for (tasks, nodes), label in rows)

    def _by_geometry(self) -> tuple[ResourceVertex, ...]:
        total = sum(self.geometry)
        self._agree(self.tasks, total, "tasks", "TaskCount", "Geometry")
        self._agree(self.nodes, len(self.geometry), "nodes", "NodeCount", "Geometry")
        return self.uneven(Counter(self.geometry))

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
                fitting = Idset.from_ranges((-(-low // each), -(-high // each)) for low, high in tasks.ranges)
                raise FormatError(
                    f"NodeCount {_shown(self.nodes)} contradicts {_shown(tasks)} tasks, {each} on each node",
                    expected=f"NodeCount {_shown(fitting)}",
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


_SCALE: dict[str, int] = {unit: 1024**power for power, unit in enumerate(vocabulary.VALUES["units"])}
UNITS = dict(
    zip(
        vocabulary.VALUES["units"],
        ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"),
        strict=False,
    )
)


GRAIN = Fraction(1, 1000)
"""The share of an amount that rounding up may add before a smaller unit is used."""


class Requester:
    """Reads the requests of jobs: those of their task groups and tasks, topic by topic, combined.

    It knows the file and the cluster's names, and collects warnings.
    """

    def __init__(
        self,
        where: str | None,
        cluster: Names | None,
        warnings: list[FormatError],
        unexpanded: list[FormatError] | None = None,
    ) -> None:
        self.where = where
        self.cluster = cluster
        self.warnings = warnings
        self.unexpanded = unexpanded

    def unsupported(self, element: Element, message: str, expected: str | None = None) -> None:
        """Treat an unsupported part by its awareness policy: raise an error, add a warning or do nothing."""
        error = report(element, message, self.where, self.warnings, expected)
        if error:
            raise error

    def at(self, element: Element, error: FormatError) -> FormatError:
        """The error at the element's place."""
        return type(error)(error.message, where=element.at(self.where), expected=error.expected)

    def topics(self, scope: Element) -> dict[str, Tree]:
        """The request of a job, task group or task, by topic, without the delivered properties."""
        parts = (scope, *scope.all("Requested"))  # each with its own conj
        blocks = [[child for child in part.children if _is_request(child)] for part in parts]
        for element in (element for block in blocks for element in block):
            self.refuse(element)
        found = (expression(block, self.where) for block in blocks)
        trees = tuple(tree for tree in found if tree is not None)
        tree = Junction(True, trees) if len(trees) > 1 else next(iter(trees), None)
        return by_topic(
            tree,
            lambda e: self.unsupported(
                e,
                f"alternatives of {e.name} and something else cannot be tied together",
                "conj within one topic",
            ),
        )

    def refuse(self, element: Element) -> None:
        """Report the unsupported parts of a requested property."""
        known = vocabulary.JOB_PROPERTIES[element.name]
        if known.use == "refused":
            self.unsupported(element, f"{element.name}: {known.to}")
        if element.attribute("context") == "Configured":
            self.unsupported(element, "context Configured: only available resources are matched")
        if element.attribute("performanceFactor") is not None:
            self.unsupported(element, "performanceFactor: no start time is traded for resources")
        if vocabulary.truth(element.attribute("dynamic")):
            self.unsupported(element, "dynamic: an allocation does not grow or shrink")
        op = element.attribute("op") or "EQ"
        numeric = known.kind != "String"
        if (numeric and op == "Match") or (not numeric and op not in ("EQ", "NE", "Match")):
            self.unsupported(element, f"op {op} has no meaning for {element.name}")

    def numbers(self, topics: dict[str, Tree], name: str) -> Idset | None:
        """The acceptable numbers of a count, None if it is not requested; FormatError if no number is."""
        tree = topics.get(name)
        if tree is None:
            return None
        found = number_set(tree, amount)
        if not found:
            first = next(leaves(tree))
            raise self.at(
                first, FormatError(f"no number of {name} satisfies the request", expected="1 or more")
            )
        return found

    def pools(self, topics: dict[str, Tree]) -> tuple[ResourceVertex, ...]:
        """The gpus of one task; its memory, disk and swap, each in a unit in which the amount is whole."""
        devices = [tree for tree in topics.values() if slot_type(next(leaves(tree)))]
        result = [vertex for tree in devices for vertex in self._extra(tree, 1)]
        for name in vocabulary.SIZES:
            if (tree := topics.get(name)) is None:
                continue
            unit = self._fitting_unit(tree)
            found = number_set(tree, partial(_amount, unit=unit))
            beyond = next((e for e in leaves(tree) if _amount(e, unit=unit) > ENDLESS), None)
            if beyond is not None:
                message = f"{name} {clip(beyond.text.strip(), 30)} is too large"
                raise self.at(beyond, FormatError(message, expected=f"at most {ENDLESS:,} {unit}"))
            if found:
                result.append(ResourceVertex(name.lower(), count_of(found), unit=UNITS[unit]))
        return tuple(result)

    def _fitting_unit(self, tree: Tree) -> str:
        """Return the largest unit, of those named and smaller ones, in which every amount is a whole number.

        Without such a unit, it is the first in which rounding up adds at most a `GRAIN` of the amount, and
        the rounding is a warning unless the policy is Ignore.
        """
        named = (e.attribute("units") or "MB" for e in leaves(tree))
        # jobspecs have the units up to YB, and an unknown unit is read as MB
        smallest = min(min(_SCALE.get(unit, _SCALE["MB"]), _SCALE["YB"]) for unit in named)
        units = [unit for unit in reversed(UNITS) if _SCALE[unit] <= smallest]
        countable = [unit for unit in units if all(_amount(e, unit=unit) <= ENDLESS for e in leaves(tree))]
        amounts = {u: [_amount(e, unit=u) for e in leaves(tree)] for u in countable or units[:1]}
        fitting = (
            unit
            for grain in (Fraction(0), GRAIN)
            for unit, found in amounts.items()
            if all(ceil(amount) - amount <= amount * grain for amount in found)
        )
        unit = next(fitting, list(amounts)[-1])
        for element, found in zip(leaves(tree), amounts[unit], strict=True):
            own = element.attribute("units") or "MB"
            text = f"{element.name} {element.text.strip()} {own}, in {UNITS[unit]},"
            self._warn_rounded(element, found, text)
        return unit

    def _warn_rounded(self, element: Element, amount: Fraction, what: str) -> None:
        """Warn that a fraction of an indivisible resource is rounded up, unless the policy is Ignore."""
        if amount.denominator != 1 and element.policy != "Ignore":
            message = f"{what} is rounded up to {ceil(amount)}"
            self.warnings.append(FormatError(message, where=element.at(self.where)))

    def extras(self, topics: dict[str, Tree], copies: int) -> tuple[ResourceVertex, ...]:
        """Resource elements as top-level vertices: the name is the type, the type an id of that type."""
        others = [tree for tree in topics.values() if slot_type(next(leaves(tree))) is None]
        return tuple(vertex for tree in others for vertex in self._extra(tree, copies))

    def _extra(self, tree: Tree, copies: int) -> Iterator[ResourceVertex]:
        """Yield the vertex of one Resource, requested `copies` times; nothing for another element or 0."""
        element = next(leaves(tree))
        if element.name != "Resource":
            return
        found = number_set(tree, lambda e: amount(e) * copies)
        for each in leaves(tree):
            text = f"{each.attribute('name') or 'Resource'} {clip(each.text.strip(), 30)}"
            self._warn_rounded(each, amount(each) * copies, text)
        if found:
            kind = slot_type(element) or element.attribute("name") or "Resource"
            if kind == "slot":
                raise self.at(
                    element, FormatError("a Resource cannot have the name slot", expected="another name")
                )
            yield ResourceVertex(kind, count_of(found), id=element.attribute("type"))

    def constraint(self, topics: dict[str, Tree]) -> Constraint:
        """The constraint on nodes."""
        tree = topics.get("constraint")
        if tree is None:
            return ANY
        try:
            return constraint_of(tree, self.cluster, self.where)
        except UnexpandedError as error:
            if self.unexpanded is not None:
                self.unexpanded.append(error)
                return ANY
            self.unsupported(next(leaves(tree)), error.message, error.expected)
            return ANY

    def request(self, job: Element) -> JobRequest:
        """Return the request of a job whose defaults are merged in."""
        topics = self.topics(job)
        defaults = job.first("TaskGroupDefaults")
        groups = [merged(g, defaults) for g in job.all("TaskGroup") if not g.is_reference]
        rule = job.first("TaskDistribution")
        if rule is not None:
            groups = [
                g if g.first("TaskDistribution") else replace(g, children=(*g.children, rule)) for g in groups
            ]
        if not groups:
            return self.single(job, topics)
        return self.several(job, groups, topics)

    def delivered(self, job: Element) -> dict[str, Tree]:
        """The delivered counts of an accounting record, for a record without requested ones.

        Section 8.2: a count that is delivered several times is of several machines, so they add up.
        """
        found: dict[str, list[Element]] = {}
        for child in (
            c for part in job.all("Delivered") for c in part.children if c.name in vocabulary.COUNTS
        ):
            found.setdefault(child.name, []).append(child)
        sums = {name: sum(int(c.text) for c in children) for name, children in found.items()}
        return {
            name: Term(replace(found[name][0], attributes=(), text=str(total)))
            for name, total in sums.items()
            if total > 0
        }

    def single(self, job: Element, topics: dict[str, Tree]) -> JobRequest:
        """A job without task groups: Processors are its total."""
        if not topics.keys() & set(vocabulary.COUNTS):
            topics = self.delivered(job) | topics
        layout, _ = self.layout(job, topics, self.numbers(topics, "TaskCount"), total=True)
        constraint = self.constraint(topics)
        vertices = self.vertices(job, layout)
        resources = (*vertices, *self.extras(topics, 1))
        scopes = tuple((slot.label or "", job) for slot in slots(vertices))
        return JobRequest(resources, constraint, scopes, _processors(vertices), topics)

    def several(self, job: Element, groups: list[Element], topics: dict[str, Tree]) -> JobRequest:
        """A job with task groups: one slot vertex or more for each."""
        drafts = [draft for group in groups for draft in self.group(group, topics)]
        drafts = self.shared_out(job, drafts, topics)
        resources: list[ResourceVertex] = []
        constraints = [self.constraint(topics)]
        scopes: list[tuple[str, Element]] = []
        labels: set[str] = set()
        for draft in drafts:
            layout = replace(draft.layout, label=_unique(draft.layout.label, labels, len(drafts)))
            constraint = self.constraint(draft.topics)
            laid = layout.nodes is not None or layout.per_node is not None or layout.geometry
            if isinstance(constraint, Hosts) and laid and len(drafts) > 1:  # the hosts of its own nodes
                layout = replace(layout, node_id=str(constraint.hostlist))
                constraint = ANY
            if constraint != ANY and len(drafts) > 1:
                message = f"constraint {clip(str(constraint))} of one task group is put on the whole job"
                self.warnings.append(self.at(draft.scope, FormatError(message)))
            constraints.append(constraint)
            vertices = self.vertices(draft.scope, layout)
            scopes += [(slot.label or "", draft.scope) for slot in slots(vertices)]
            resources += [*vertices, *self.extras(draft.topics, draft.copies)]
        resources += self.extras(topics, 1)
        constraint = joined(constraints, every=True)
        return JobRequest(tuple(resources), constraint, tuple(scopes), _processors(resources), topics)

    def group(self, group: Element, outer: dict[str, Tree]) -> list[TaskGroupDraft]:
        """The parts of a task group: its tasks by their request, most often one part.

        TaskDefaults are for all tasks (section 7.0), also for those that only TaskCount implies.
        """
        own = self.topics(group)
        inherited = {name: tree for name, tree in outer.items() if is_per_task(name)}
        topics = inherited | own
        defaults = group.first("TaskDefaults")
        tasks = [merged(t, defaults) for t in group.all("Task") if not t.is_reference]
        requests = [self.task_topics(task) for task in tasks]
        count = self.numbers(own, "TaskCount")
        if count is not None and count.last < len(tasks):
            raise self.contradiction(group, f"TaskCount {count} and {len(tasks)} tasks")
        more = max(0, count.first - len(tasks)) if count is not None else 0
        rest = self.task_topics(defaults) if defaults is not None and (more or not tasks) else {}
        if count is None and (tasks or "Processors" in rest):
            count = one(len(tasks) or 1)
        if not tasks or not any((*requests, rest)):
            return [self.draft(group, topics | rest, count)]
        sizes: Counter[tuple[str, ...]] = Counter()
        wants: dict[tuple[str, ...], dict[str, Tree]] = {}
        for task, number in (*((task, 1) for task in requests), *([(rest, more)] if more else [])):
            key = tuple(str(e) for name in sorted(task) for e in leaves(task[name]))
            sizes[key] += number
            wants.setdefault(key, task)
        return [self.draft(group, topics | wants[key], one(size)) for key, size in sizes.items()]

    def task_topics(self, task: Element) -> dict[str, Tree]:
        """The request of a task alone; its Node is where it ran and not a request."""
        return {
            name: tree
            for name, tree in self.topics(task.without("Node")).items()
            if name == "Processors" or is_per_task(name) or name.startswith("Resource ")
        }

    def draft(self, group: Element, topics: dict[str, Tree], count: Idset | None) -> TaskGroupDraft:
        """One part of a task group."""
        layout, has_processors = self.layout(group, topics, count, total=count is None)
        copies = layout.tasks.first if layout.tasks else 1
        return TaskGroupDraft(group, topics, layout, has_processors, copies)

    def layout(
        self, scope: Element, topics: dict[str, Tree], tasks: Idset | None, *, total: bool
    ) -> tuple[VertexLayout, bool]:
        """The counts of a scope, and whether it requests a number of processors.

        With `total`, Processors are those of all tasks together, otherwise those of each.
        """
        processors = self.numbers(topics, "Processors")
        nodes = self.numbers(topics, "NodeCount") or self.node_count(scope)
        rule, number, geometry = self.distribution(scope)
        cores = one(number) if rule == "ProcessorsPerTask" else None
        if rule == "Geometry" and tasks is None:
            tasks = one(sum(geometry))
        if processors is not None and not total:
            if cores is not None and cores != processors:
                raise self.contradiction(scope, f"ProcessorsPerTask {number} and Processors {processors}")
            cores = processors
        elif processors is not None:
            tasks, cores = self.spread(scope, processors, tasks, cores)
        layout = VertexLayout(
            tasks=tasks,
            cores=cores or one(1),
            nodes=nodes,
            per_node=number if rule == "TasksPerNode" else None,
            geometry=geometry,
            pools=self.pools(topics),
            label=_label(scope),
        )
        return layout, processors is not None or rule == "ProcessorsPerTask"

    def spread(
        self, scope: Element, processors: Idset, tasks: Idset | None, cores: Idset | None
    ) -> tuple[Idset, Idset]:
        """Tasks and cores of each, from the total of processors: one each by default."""
        if tasks is None:
            each = cores or one(1)
            found = divided(processors, each.first)
            if not found:
                raise self.contradiction(scope, f"Processors {processors} and {each} for each task")
            return found, each
        if len(tasks) > 1:
            tasks = one(tasks.first)
            self.unsupported(scope, "a range of TaskCount with a number of Processors")
        each = divided(processors, tasks.first)
        if cores is not None:
            each &= cores
        if not each:
            wanted = f" of {cores} each" if cores else ""
            raise self.contradiction(scope, f"Processors {processors} and TaskCount {tasks}{wanted}")
        return tasks, each

    def contradiction(self, scope: Element, what: str) -> FormatError:
        """Two counts that cannot both hold."""
        return self.at(scope, FormatError(f"{what} contradict each other", expected="counts that agree"))

    def distribution(self, scope: Element) -> tuple[str, int, tuple[int, ...]]:
        """TaskDistribution: (type, number, geometry)."""
        element = scope.first("TaskDistribution")
        if element is None:
            return "", 0, ()
        rule, text = element.attribute("type") or "Rule", element.text.strip()
        if rule == "Geometry":
            try:
                return rule, 0, geometry_of(text)
            except FormatError as error:
                raise self.at(element, error) from None
        if rule in ("TasksPerNode", "ProcessorsPerTask"):
            if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
                raise self.at(element, FormatError(f"{rule} {clip(text)!r}", expected="1 or more"))
            return rule, int(text), ()
        return rule, 0, ()

    def node_count(self, scope: Element) -> Idset | None:
        """The count attribute of the Node element, where NodeCount is not given."""
        requested = [*scope.children, *(c for part in scope.all("Requested") for c in part.children)]
        counts = [int(c.attribute("count") or 0) for c in requested if c.name == "Node"]
        return one(sum(counts)) if any(count > 0 for count in counts) else None

    def shared_out(
        self, job: Element, drafts: list[TaskGroupDraft], topics: dict[str, Tree]
    ) -> list[TaskGroupDraft]:
        """Distribute the job's totals over the groups, or check that the groups add up to them."""
        nodes = self.numbers(topics, "NodeCount")
        if nodes is not None and len(drafts) == 1 and drafts[0].layout.nodes is None:
            drafts = [replace(drafts[0], layout=replace(drafts[0].layout, nodes=nodes))]
        elif nodes is not None and any(draft.layout.nodes is None for draft in drafts):
            self.unsupported(next(leaves(topics["NodeCount"])), "NodeCount of a job with several task groups")
        tasks = self.numbers(topics, "TaskCount")
        total = _total(draft.layout.tasks for draft in drafts)
        if tasks is not None and total is not None and total not in tasks:
            raise self.contradiction(job, f"TaskCount {tasks} and the {total} tasks of the task groups")
        processors = self.numbers(topics, "Processors")
        if processors is None:
            return drafts
        if not any(draft.has_processors for draft in drafts) and total is not None:
            each = divided(processors, total)
            if not each:
                raise self.contradiction(
                    job, f"Processors {processors} and the {total} tasks of the task groups"
                )
            return [replace(draft, layout=replace(draft.layout, cores=each)) for draft in drafts]
        counts = [(draft.layout.tasks or one(1), draft.layout.cores) for draft in drafts]
        single = all(len(count) == len(cores) == 1 for count, cores in counts)
        sums = sum(count.first * cores.first for count, cores in counts) if single else None
        if sums is not None and sums not in processors:
            raise self.contradiction(job, f"Processors {processors} and the {sums} of the task groups")
        return drafts

    def vertices(self, scope: Element, layout: VertexLayout) -> tuple[ResourceVertex, ...]:
        """The vertices of a layout."""
        try:
            return layout.vertices(lambda what: self.unsupported(scope, f"{what} cannot be tied together"))
        except FormatError as error:
            raise (self.at(scope, error) if error.where is None else error) from None


def _is_request(child: Element) -> bool:
    """Whether a property is a part of the request, and not of the resources used."""
    known = vocabulary.JOB_PROPERTIES.get(child.name)
    return (
        known is not None
        and (known.category or known.use == "refused")
        and child.attribute("context") != "Used"
    )


def _amount(element: Element, *, unit: str) -> Fraction:
    """A size in another unit."""
    own = element.attribute("units") or "MB"
    factor = Fraction(_SCALE.get(own, _SCALE["MB"]), _SCALE[unit])
    return amount(element) * factor


_LABEL = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The request of a job: vertices, the constraint on its nodes, the slots' labels with their scopes."""

    resources: tuple[ResourceVertex, ...]
    constraint: Constraint
    scopes: tuple[tuple[str, Element], ...]
    processors: int | None
    topics: dict[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskGroupDraft:
    """A part of a task group before its vertices are made; `has_processors`: it requests a number of them."""

    scope: Element
    topics: dict[str, Tree]
    layout: VertexLayout
    has_processors: bool
    copies: int


def _label(scope: Element) -> str:
    """The label of a task group's slots."""
    if scope.name != "TaskGroup":
        return "default"
    text = scope.value("Name") or scope.value("Id") or "task"
    return _LABEL.sub("-", text)[:60].strip("-") or "task"


def _unique(label: str, labels: set[str], groups: int) -> str:
    """The label, with a number if it is taken."""
    candidate, number = ("default" if groups == 1 and label == "task" else label), 1
    while candidate in labels:
        number += 1
        candidate = f"{label}.{number}"
    labels.add(candidate)
    return candidate


def _total(sets: Iterable[Idset | None]) -> int | None:
    """The sum of single numbers, None if any is not single."""
    total = 0
    for numbers in sets:
        single = one(1) if numbers is None else numbers
        if len(single) != 1:
            return None
        total += single.first
    return total


def _processors(vertices: Iterable[ResourceVertex]) -> int | None:
    """The cores of all slots if they are fixed."""
    total = 0
    for top in vertices:
        nodes, slot = (top.count, top.with_[0]) if top.type == "node" else (None, top)
        if not slot.is_slot:
            continue
        counts = [c for c in (nodes, slot.count, slot.with_[0].count) if c is not None]
        if not all(count.is_fixed for count in counts):
            return None
        product = 1
        for count in counts:
            product *= count.min
        total += product
    return total
