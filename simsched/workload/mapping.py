"""From flat counts to resource requests: templates such as ``slot={procs}/core``.

A trace has "64 processors"; a graph-aware matcher needs a shape.  A template is a shape
(RFC 46) with placeholders in it::

    {procs}   processors           {nodes}   nodes: the trace's own, or ceil(procs / procs_per_node)
    {ppn}     ceil(procs / nodes)  {cpt}     processors per task (1 if unknown)
    {tasks}   ceil(procs / cpt)    {gpus}    gpus of the job       {gpn}  ceil(gpus / nodes)
    {cpg}     ceil(procs / gpus)   {mem}     MB per processor      {memn} MB per node
    {memp}    MB per processor     {memg}    MB per gpu            both rounded down, at least 1

``{mem|512}`` gives the value for records without one; without a default such a record is
ignored and counted.  ``{procs/2}`` is half of the value, rounded up, ``{gpus*2}`` twice the value.
With ``{procs}`` in the template, ``{memp*2}`` is the memory of the job divided by ``{procs/2}``.
``TEMPLATE else TEMPLATE`` takes the first template whose values the record has.
A rule for a queue or partition has its name in front: ``gpu -> slot={gpus}/[core=8;gpu]``.
Every distinct filled template gives *one* `Jobspec` object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from simsched.declare.flags import Flags, flag
from simsched.declare.kinds import HIDDEN, by_name, listed, number, text, whole
from simsched.declare.table import Declared
from simsched.errors import ConfigError, SimschedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.rfc.constraint import Constraint
    from simsched.formats.sss.expressions import Names
    from simsched.workload.readers.tables.column_map import ColumnMap


DEFAULT_TEMPLATE = "slot={procs}/core"
GPU_TEMPLATE = "slot={gpus}/[core={cpg};gpu]"
PLACEHOLDERS = ("procs", "nodes", "ppn", "cpt", "tasks", "gpus", "gpn", "cpg", "mem", "memn", "memp", "memg")

_NODE_PLACEHOLDERS = frozenset(("nodes", "ppn", "gpn", "memn"))
_ELSE = re.compile(r"\s+else\s+")
# A placeholder is where a count would be; after a type or a count, braces are RFC 46's own (a label, a key).
_PLACEHOLDER = re.compile(
    r"(?<=[=\-,\[:])\{\s*([A-Za-z_]+)\s*(?:([*/])\s*([1-9]\d{0,5})\s*)?(?:\|\s*(\d+)\s*)?\}"
)


def _ceil(value: int, by: int) -> int:
    return -(-value // by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """The flat counts of one record; `memory` is KB per processor; None is unknown.

    gpu_type : the type of gpu that all of them are.
    """

    procs: int | None = None
    nodes: int | None = None
    cpt: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    memory: int | None = None


def _nodes(flat: Flat, procs_per_node: int | None) -> int | None:
    if flat.nodes:
        return flat.nodes
    if flat.procs and procs_per_node:
        return _ceil(flat.procs, procs_per_node)
    return None


def _per_node(total: int | None, flat: Flat, procs_per_node: int | None) -> int | None:
    nodes = _nodes(flat, procs_per_node)
    return _ceil(total, nodes) if total and nodes else None


def _megabytes(flat: Flat, per: int | None) -> int | None:
    return _ceil(flat.memory * per, 1024) if flat.memory and per else None


_VALUES: Mapping[str, Callable[[Flat, int | None], int | None]] = {
    "procs": lambda flat, _: flat.procs,
    "nodes": _nodes,
    "ppn": lambda flat, width: _per_node(flat.procs, flat, width),
    "cpt": lambda flat, _: flat.cpt or 1,
    "tasks": lambda flat, _: _ceil(flat.procs, flat.cpt or 1) if flat.procs else None,
    "gpus": lambda flat, _: flat.gpus or None,
    "gpn": lambda flat, width: _per_node(flat.gpus, flat, width),
    "cpg": lambda flat, _: _ceil(flat.procs, flat.gpus) if flat.procs and flat.gpus else None,
    "mem": lambda flat, _: _megabytes(flat, 1),
    "memn": lambda flat, width: _megabytes(flat, _per_node(flat.procs, flat, width)),
    # Rounded down: a job that requests all memory of a node would not fit on it with each share rounded up.
    "memp": lambda flat, _: max(flat.memory // 1024, 1) if flat.memory else None,
    "memg": lambda flat, _: (
        max(flat.memory * flat.procs // (flat.gpus * 1024), 1)
        if flat.memory and flat.procs and flat.gpus
        else None
    ),
}


class MissingValueError(SimschedError):
    """A record lacks a value that its template needs; readers turn this into a skip."""


@dataclass(frozen=True, slots=True)
class Template:
    """One compiled template: its text, and the placeholders in it with their defaults.

    `otherwise` is the template for records that lack a value of this one.

    >>> Template.parse("node={nodes}/slot={ppn}/core").names
    ('nodes', 'ppn')
    """

    text: str
    names: tuple[str, ...]
    defaults: tuple[int | None, ...]
    otherwise: Template | None = None
    _made: dict[tuple[int, ...], Jobspec] = field(default_factory=dict, compare=False, repr=False)
    _by_text: dict[str, Jobspec] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Template:
        """Compile a template; ConfigError when it is not a shape once its placeholders are filled."""
        first, *more = _ELSE.split(text.strip(), maxsplit=1)
        otherwise = cls.parse(more[0]) if more else None
        known: dict[str, int | None] = {}
        for match in _PLACEHOLDER.finditer(first):
            name, default = match.group(1), match.group(4)
            if name in PLACEHOLDERS:
                known[name] = int(default) if default else known.get(name)
            else:
                raise ConfigError(
                    f"unknown placeholder {{{name}}} in the map {text!r}",
                    expected="one of " + ", ".join(f"{{{name}}}" for name in PLACEHOLDERS),
                )
        # Filled with 1 on trial, so that a bad template is refused before any record is read.
        trial, template = (cls(first, tuple(known), tuple(known.values()), otherwise) for _ in range(2))
        try:
            trial.fill((1,) * len(known))
        except SimschedError as error:
            raise ConfigError(f"the map {first!r} does not give a shape: {error.message}") from error
        return template

    def holes(self) -> set[str]:
        """Return the placeholders that have no default, in every alternative."""
        own = {name for name, default in zip(self.names, self.defaults, strict=True) if default is None}
        return own if self.otherwise is None else own & self.otherwise.holes()

    def request(self, flat: Flat, procs_per_node: int | None) -> Jobspec:
        """Return the request of a record by the first alternative whose values it has.

        Raises
        ------
        MissingValueError
            When the record lacks a value of the last alternative.
        """
        if self.otherwise is None:
            return self.fill(self.values(flat, procs_per_node))
        try:
            values = self.values(flat, procs_per_node)
        except MissingValueError:
            return self.otherwise.request(flat, procs_per_node)
        return self.fill(values)

    def fill(self, values: tuple[int, ...]) -> Jobspec:
        """Return the jobspec of these values (in the order of `names`); equal values share it."""
        made = self._made.get(values)
        if made is None:
            from simsched.formats.jobspec.jobspec import Jobspec

            given = dict(zip(self.names, values, strict=True))
            text = _PLACEHOLDER.sub(lambda match: _filled(match, given), self.text)
            made = self._by_text.get(text)  # several values give one request where they are divided
            if made is None:
                made = self._by_text[text] = Jobspec.from_shape(text)
            self._made[values] = made
        return made

    def values(self, flat: Flat, procs_per_node: int | None) -> tuple[int, ...]:
        """Return the values of the placeholders for one record; MissingValueError names a missing one."""
        found = []
        for name, default in zip(self.names, self.defaults, strict=True):
            value = _VALUES[name](flat, procs_per_node) or default
            if not value:
                raise MissingValueError(f"the map needs {{{name}}}, which the record lacks")
            found.append(value)
        return tuple(found)


def _filled(match: re.Match[str], given: Mapping[str, int]) -> str:
    name, sign, factor = match.group(1, 2, 3)
    if name not in given:
        return match.group(0)
    value = given[name]
    if sign == "*" and name == "memp" and "procs" in given:
        # An odd number of processors leaves one group of them short, and the memory is the job's in all.
        value = value * given["procs"] // _ceil(given["procs"], int(factor))
    elif sign:
        value = value * int(factor) if sign == "*" else _ceil(value, int(factor))
    return str(value)


@dataclass(frozen=True, slots=True)
class JobMap:
    """A default template, templates by queue or partition, and processors per node.

    `with_gpus` replaces the default where a record has gpus; only formats with gpus set it, and only
    when no template was given.  `gpu_types` is as in `SiteReading`.

    >>> jobs = JobMap.parse("node={nodes}/slot={ppn}/core", procs_per_node=16)
    >>> jobs.jobspec(Flat(procs=40)).to_shape()
    'node=3/slot=14/core'
    """

    default: Template
    by_queue: Mapping[str, Template] = field(default_factory=dict)
    procs_per_node: int | None = None
    with_gpus: Template | None = None
    gpu_types: Mapping[str, str] = field(default_factory=dict)
    _constrained: dict[tuple[int, str], Jobspec] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(
        cls,
        text: str | Iterable[str] | JobMap | None,
        *,
        procs_per_node: int | None = None,
        default: str = DEFAULT_TEMPLATE,
        with_gpus: str | None = None,
    ) -> JobMap:
        """Return the map of one template, or of several where ``queue -> template`` is a rule.

        Raises
        ------
        ConfigError
            On an unknown placeholder, a template that is not a shape, ``{nodes}`` without a
            width, a rule given twice, or processors per node below 1.
        """
        if isinstance(text, JobMap):
            return text
        if procs_per_node is not None and procs_per_node < 1:
            raise ConfigError(f"{procs_per_node} processors per node are out of range", expected="1 or more")
        rules: dict[str, Template] = {}
        for part in [text] if isinstance(text, str) else list(text or ()):
            queue, _, template = map(str.strip, part.rpartition("->"))
            if queue in rules:
                raise ConfigError(f"two maps for {queue!r}" if queue else "two maps without a queue")
            rules[queue] = Template.parse(template)
        chosen = rules.pop("", None)
        gpus = Template.parse(with_gpus) if with_gpus and chosen is None else None
        return cls(chosen or Template.parse(default), rules, procs_per_node, gpus)

    def need_width(self, where: str) -> None:
        """Raise ConfigError when a template has nodes, the format has none, and no width is given."""
        templates = [self.default, *self.by_queue.values()]
        if self.procs_per_node is None and any(_NODE_PLACEHOLDERS.intersection(t.holes()) for t in templates):
            raise ConfigError(
                "the map uses {nodes}, and this format has no node counts",
                where=where,
                expected="processors per node (--procs-per-node)",
            )

    def asks(self, kind: str, *names: str | None) -> bool:
        """Whether the template of these names requests ``nodes``, ``memory`` or ``gpus``."""
        template = self.template_for(*names)
        if kind == "gpus" and template is self.default and self.with_gpus is not None:
            return True
        return _asks(template, kind)

    def asks_anywhere(self, kind: str) -> bool:
        """Whether any of the templates requests ``nodes``, ``memory`` or ``gpus``."""
        return any(_asks(template, kind) for template in (self.default, *self.by_queue.values()))

    def template_for(self, *names: str | None) -> Template:
        """Return the template of the first name (queue, partition) that has one."""
        for name in names:
            if name is not None and name in self.by_queue:
                return self.by_queue[name]
        return self.default

    def jobspec(
        self, flat: Flat, *names: str | None, constraint: Constraint | None = None, key: str = ""
    ) -> Jobspec:
        """Return the request of one record; `key` is any text that identifies the constraint.

        Raises
        ------
        MissingValueError
            When the record lacks a value that its template needs.
        """
        template = self.template_for(*names)
        if flat.gpus and self.with_gpus is not None and template is self.default:
            template = self.with_gpus
        base = template.request(flat, self.procs_per_node)
        kind = self.gpu_types.get((flat.gpu_type or "").lower())
        if kind is not None and "@" in kind:
            from simsched.formats.rfc.constraint import And, Properties

            own = Properties((kind,))
            constraint = own if constraint is None else And((constraint, own))
            key = f"{key}\0{kind}"
        elif kind is not None:  # slices of gpus in the place of gpus
            place = (id(base), f"\0{kind}")
            if place not in self._constrained:
                resources = tuple(_with_type(vertex, kind) for vertex in base.resources)
                self._constrained[place] = replace(base, resources=resources)
            base = self._constrained[place]
        if constraint is None:
            return base
        place = (id(base), key or repr(constraint))
        if place not in self._constrained:
            from simsched.formats.rfc.constraint import to_json

            self._constrained[place] = base.with_system(constraints=to_json(constraint))
        return self._constrained[place]


def _with_type(vertex: ResourceVertex, kind: str) -> ResourceVertex:
    type_ = kind if vertex.type == "gpu" else vertex.type
    return replace(vertex, type=type_, with_=tuple(_with_type(child, kind) for child in vertex.with_))


#: Placeholders, and the type of resource, by which a template requests each of these.
_ASKS = {
    "nodes": (("nodes", "ppn", "gpn", "memn"), "node"),
    "memory": (("mem", "memn", "memp", "memg"), "memory"),
    "gpus": (("gpus", "gpn", "cpg", "memg"), "gpu"),
}


def _asks(template: Template, kind: str) -> bool:
    """Whether a template has a placeholder for something, or names its type with a number of its own."""
    holes, type_ = _ASKS[kind]
    own = not set(holes).isdisjoint(template.names) or re.search(rf"\b{type_}\b", template.text) is not None
    return own or (template.otherwise is not None and _asks(template.otherwise, kind))


class SiteReading(Declared, frozen=True, rename=None):
    """How logs are read on their site.

    maps : in place of the default template, where neither the user nor the file gives a map.
    limits : queue → seconds, the limits of jobs for which the log states none.  A log states the limit
        that a job had, defaults included, so the default of its queue is not that of such a job.
    default_queue : the queue of jobs without one.
    processors_per_core : the processors of the log that are one core of the machine.
    gpu_types : type of gpu in lower case → the property of its nodes and gpus (``a100@gpu``), or the type of
        resource that it is (``mig-1g.5gb``).
    """

    maps: Annotated[tuple[str, ...], listed(text("a map"), "a list of maps", one_alone=False)] = ()
    limits: Annotated[Mapping[str, float], by_name(number(0))] = msgspec.field(default_factory=dict)
    default_queue: str | None = None
    processors_per_core: Annotated[int, whole(1)] = 1
    gpu_types: Mapping[str, str] = msgspec.field(default_factory=dict)

    def limit(self, queue: str | None) -> float | None:
        """Return the limit of a job without one in this queue; None if the queue has none."""
        name = self.default_queue if queue is None else queue
        return None if name is None else self.limits.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of all readers: the name of the source, the maps, and strictness.

    `folder` is where file names in the source are looked up (None: nowhere), `limit` the
    number of records to read at most.  `constrain` lists the parts of a record that become an RFC 31
    constraint: ``features``, ``partition``.  `names` gives the cluster's hosts and properties,
    which SSS patterns are matched against.  `columns` names the columns of a Slurm dump without a
    header line, and `delimiter` separates them.  `on_site` is how a log is read on the site it is from.
    `table` is the column map of a table.  `time_zone` is that of times without a zone (None: UTC).
    `seed` is that of a model, whose jobs are drawn.
    """

    source: str = "workload"
    name: str = ""
    folder: Path | None = None
    maps: str | tuple[str, ...] | JobMap | None = None
    procs_per_node: int | None = None
    strict: bool = False
    limit: int | None = None
    constrain: frozenset[str] = frozenset()
    names: Callable[[], Names] | None = None
    columns: str | None = None
    delimiter: str | None = None
    on_site: SiteReading | None = None
    table: ColumnMap | None = None
    time_zone: str | None = None
    seed: int = 0

    def job_map(self, default: str = DEFAULT_TEMPLATE, *, with_gpus: str | None = None) -> JobMap:
        """Return the map that was given, else the format's own `default` template."""
        own = () if self.on_site is None else self.on_site.maps
        if self.maps is None and own and default == DEFAULT_TEMPLATE:
            found = JobMap.parse(own, procs_per_node=self.procs_per_node)
        else:
            found = JobMap.parse(
                self.maps, procs_per_node=self.procs_per_node, default=default, with_gpus=with_gpus
            )
        types = {} if self.on_site is None else self.on_site.gpu_types
        return replace(found, gpu_types=types) if types else found


# --- options of command lines, studies and functions


class LogReading(Flags, frozen=True, kw_only=True):
    """How a log is read: keywords of `load_workload`, keys of a study, flags.

    as_ : read this format instead of detecting it.
    map : shape of a record's request: 'slot={procs}/core', 'node={nodes}/slot={ppn}/core', or 'QUEUE ->
        TEMPLATE' for one queue or partition; may be repeated.
    procs_per_node : processors per node, for {nodes}.
    constrain : turn the 'features' or the 'partition' of a record into a constraint; may be repeated.
    columns : column map of a table (CSV, Parquet, JSON): a YAML file, or a preset ('simsched workload
        presets'); or the columns of a Slurm dump without a header, as in sacct -o.
    delimiter : separator of the columns (default that of the header).
    time_zone : time zone of the log's dates, such as Europe/Rome or +01:00 (default that of the log, or
        UTC).
    start_date : date of second 0, for a log without dates: 2024-03-01T08:00.
    limit : read at most N records.
    strict : refuse bad records; `run` also fails if a job can never run.
    """

    as_: Annotated[str | None, flag("FORMAT")] = msgspec.field(name="as", default=None)
    map: Annotated[tuple[str, ...] | None, flag("TEMPLATE")] = None
    procs_per_node: Annotated[int | None, whole(1)] = None
    constrain: Annotated[tuple[str, ...], flag("FIELD")] = ()
    columns: Annotated[str | None, flag("MAP|PRESET|NAMES")] = None
    delimiter: Annotated[str | None, flag("TEXT")] = None
    limit: int | None = None
    strict: bool = False
    time_zone: Annotated[str | None, flag("ZONE")] = None
    start_date: Annotated[str | None, flag("DATE")] = None


class ReadingOptions(LogReading, frozen=True, kw_only=True):
    """How a log is read and transformed.

    transform : apply a transform, such as 'load(1.2)' or 'slice(1d, 8d)'; may be repeated (`simsched
        policies transforms` lists them).
    on_site : how a log is read on the site that it is from.
    """

    transform: Annotated[tuple[str, ...], flag("STEP", "-t")] = ()
    on_site: Annotated[dict[str, Any] | None, HIDDEN] = None
