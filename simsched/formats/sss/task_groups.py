"""The request of one job, from its task groups, tasks and totals, as resource vertices and a constraint."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.rfc.constraint import ANY, Constraint, Hosts
from simsched.formats.rfc.idset import Idset
from simsched.formats.sss import vocabulary
from simsched.formats.sss.defaults import merged
from simsched.formats.sss.expressions import Term, Tree, is_per_task, leaves
from simsched.formats.sss.feature_constraints import joined
from simsched.formats.sss.topics import ScopeReader
from simsched.formats.sss.vertices import VertexLayout, divided, geometry_of, one
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.text.xml_tree import Element

_LABEL = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The request of a job: vertices, the constraint on its nodes, the slots' labels with their scopes."""

    resources: tuple[ResourceVertex, ...]
    constraint: Constraint
    scopes: tuple[tuple[str, Element], ...]
    processors: int | None
    topics: dict[str, Tree] = field(default_factory=dict)


class Requester(ScopeReader):
    """Reads the requests of jobs: those of their task groups and tasks, combined."""

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
        constraint, layout = self.placed(layout, self.constraint(topics), alone=True)
        vertices = self.vertices(job, layout)
        resources = (*vertices, *self.extras(topics, 1))
        scopes = tuple((slot.label or "", job) for slot in _slots(vertices))
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
            constraint, layout = self.placed(layout, self.constraint(draft.topics), alone=len(drafts) == 1)
            if constraint != ANY and len(drafts) > 1:
                message = f"constraint {clip(str(constraint))} of one task group is put on the whole job"
                self.warnings.append(self.at(draft.scope, FormatError(message)))
            constraints.append(constraint)
            vertices = self.vertices(draft.scope, layout)
            scopes += [(slot.label or "", draft.scope) for slot in _slots(vertices)]
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
        sums = _total(_times(draft.layout.tasks, draft.layout.cores) for draft in drafts)
        if sums is not None and sums not in processors:
            raise self.contradiction(job, f"Processors {processors} and the {sums} of the task groups")
        return drafts

    def placed(
        self, layout: VertexLayout, constraint: Constraint, *, alone: bool
    ) -> tuple[Constraint, VertexLayout]:
        """Put a plain list of hosts on the node vertices of one of several task groups."""
        laid = layout.nodes is not None or layout.per_node is not None or layout.geometry
        if isinstance(constraint, Hosts) and laid and not alone:
            return ANY, replace(layout, node_id=str(constraint.hostlist))
        return constraint, layout

    def vertices(self, scope: Element, layout: VertexLayout) -> tuple[ResourceVertex, ...]:
        """The vertices of a layout."""
        try:
            return layout.vertices(lambda what: self.unsupported(scope, f"{what} cannot be tied together"))
        except FormatError as error:
            raise (self.at(scope, error) if error.where is None else error) from None


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


def _slots(vertices: tuple[ResourceVertex, ...]) -> list[ResourceVertex]:
    return [v for top in vertices for v in top.walk() if v.is_slot]


def _total(sets: Iterable[Idset | None]) -> int | None:
    """The sum of single numbers, None if any is not single."""
    total = 0
    for numbers in sets:
        single = one(1) if numbers is None else numbers
        if len(single) != 1:
            return None
        total += single.first
    return total


def _times(tasks: Idset | None, cores: Idset) -> Idset:
    """The product of single numbers; several numbers stay several."""
    count = tasks or one(1)
    return one(count.first * cores.first) if len(count) == len(cores) == 1 else Idset(((1, 2),))


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
