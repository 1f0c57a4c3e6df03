"""The numbers that searches vary: nodes, a group, units per node, a value of a recipe, or the load."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, SimschedError
from simsched.study.runs.input_cache import INPUTS

if TYPE_CHECKING:
    from simsched.graph.inspect.view import Group
    from simsched.study.spec.run_task import TaskInput

NODES = "nodes"
_PATH = re.compile(r"[a-z_]+\[\d+\].*|[a-z_]+\..*")
_NUMBER = re.compile(r"\d+\Z")


@dataclass(frozen=True, slots=True)
class SizeAxis:
    """A number of a machine that is varied.

    Attributes
    ----------
    text : the word that the user gave.
    noun : the unit in the plural: ``nodes``, ``nodes of gpu``, ``gpus per node``.
    current : the number today.
    template : edits of a cluster with ``{}`` in place of the number.
    """

    text: str
    noun: str
    current: int
    template: tuple[str, ...]

    def edits(self, value: int) -> tuple[str, ...]:
        """Return the edits (see `simsched.study.spec.edits`) that set the number."""
        return () if value == self.current else tuple(one.replace("{}", str(value)) for one in self.template)

    def number(self, value: int) -> float:
        """Return the number as it is."""
        return value

    def phrase(self, value: int) -> str:
        """Return a number with its unit.

        >>> SizeAxis("nodes", "nodes", 4, ()).phrase(1), SizeAxis("gpus", "gpus per node", 4, ()).phrase(1200)
        ('1 node', '1,200 gpus per node')
        """
        first, _, rest = self.noun.partition(" ")
        word = first.removesuffix("s") if value == 1 else first
        return f"{value:,} {word} {rest}".rstrip()


@dataclass(frozen=True, slots=True)
class LoadAxis:
    """Loads in steps from today's: 0 is today's load, 1 is one step more, -1 is one step less."""

    today: float
    step: float

    @property
    def noun(self) -> str:
        """The unit of loads."""
        return "times the load"

    def number(self, value: int) -> float:
        """Return the load as a multiple of the workload's.

        >>> LoadAxis(1.0, 0.01).number(25)
        1.25
        """
        return float(f"{self.today + value * self.step:.9g}")

    def phrase(self, value: int) -> str:
        """Return the load in words.

        >>> LoadAxis(1.0, 0.05).phrase(-2)
        '0.9 times the load'
        """
        return f"{self.number(value):g} times the load"


def size_axis_of(text: str, cluster: TaskInput) -> SizeAxis:
    """Return the axis that a word names on a cluster.

    ``nodes`` are all nodes of a cluster whose nodes are alike.  A property, the common part of
    hosts' names (``gpu`` of gpu0, gpu1 …), a hostlist or a constraint names a group of nodes that
    are alike.  ``gpus`` and ``cores`` are the units of a node.  On a cluster recipe a path such as
    ``groups[0].count`` names any whole number of the recipe.

    Raises
    ------
    ConfigError
        if the word names nothing that can grow, or nodes of the group differ.
    """
    if not isinstance(text, str):
        raise ConfigError(
            f"{text!r} is not the name of a number that can grow", expected="nodes, a group of nodes, gpus …"
        )
    if text in ("gpus", "cores"):
        return _units(text, cluster)
    if _PATH.fullmatch(text):
        return _value(text, cluster)
    return _group(text, cluster)


def _group(text: str, cluster: TaskInput) -> SizeAxis:
    from simsched.graph.inspect.view import summary

    graph = INPUTS.cluster(cluster).graph
    groups = summary(graph).groups
    where, count = _where(text, cluster, groups)
    chosen = _of(cluster, where)
    names = _hosts(chosen)
    kinds = [g for g in groups if not names.isdisjoint(_hosts(g.hosts))]
    if len({(tuple(g.holds.items()), g.properties) for g in kinds}) > 1:
        group = "the cluster" if text == NODES else repr(text)
        raise ConfigError(f"the nodes of {group} are not alike, so it is unclear which to add",
                          where="--grow", expected=f"a group: {', '.join(_choices(groups))}")  # fmt: skip
    noun = NODES if text == NODES else f"nodes of {text}"
    return SizeAxis(text, noun, count, (f"resize({where}, {{}})",))


def _where(text: str, cluster: TaskInput, groups: list[Group]) -> tuple[str, int]:
    """Return the argument that names a group in an edit, and its number of nodes."""
    from simsched.formats.rfc.hostlist import encode_hosts

    if text == NODES:
        return "all", sum(g.count for g in groups)
    properties = {name for g in groups for name in g.properties}
    if text in properties:
        where = f"properties:{text}"
    else:
        hosts = [host for g in groups for host in sorted(_hosts(g.hosts)) if _NUMBER.sub("", host) == text]
        where = encode_hosts(hosts) if hosts else text
    try:
        return where, len(_hosts(_of(cluster, where)))
    except SimschedError as error:
        raise ConfigError(f"{text!r} does not name anything that can grow ({error.message})", where="--grow",
                          expected=", ".join([NODES, "gpus", *_choices(groups)])) from None  # fmt: skip


def _of(cluster: TaskInput, where: str) -> str:
    """Return the hosts that the argument of an edit names, as a hostlist."""
    from simsched.graph.inspect.view import summary

    left = INPUTS.cluster(cluster, (f"restrict({where})",)) if where != "all" else INPUTS.cluster(cluster)
    return ",".join(g.hosts for g in summary(left.graph).groups)


def _hosts(text: str) -> set[str]:
    from simsched.formats.rfc.hostlist import Hostlist

    return set(Hostlist.parse(text).expand())


def _choices(groups: list[Group]) -> list[str]:
    """Return names of groups: the common part of the host names if it is unique, else the hostlist."""
    stems = [{_NUMBER.sub("", host) for host in _hosts(g.hosts)} for g in groups]
    found = []
    for number, group in enumerate(groups):
        others = set().union(*(s for place, s in enumerate(stems) if place != number))
        own = stems[number]
        found.append(next(iter(own)) if len(own) == 1 and own.isdisjoint(others) else group.hosts)
    return found[:8]


# ------------------------------------------------------------ values of a recipe


def _document(cluster: TaskInput) -> Any:
    from simsched.formats.cluster.recipe import is_recipe
    from simsched.formats.text.documents import load_document, read_text

    try:
        document = load_document(read_text(INPUTS.path_of(cluster)), cluster.name)
    except SimschedError:  # such as GRUG, which is XML
        return None
    return document if is_recipe(document) else None


def _units(kind: str, cluster: TaskInput) -> SizeAxis:
    """Return the axis of gpus or cores per node, for the groups of a recipe or nodes that have some."""
    document = _document(cluster)
    if document is None:
        return _units_of_nodes(kind, cluster)
    having = [(place, g[kind]) for place, g in enumerate(document["groups"]) if g.get(kind)]
    paths = [f"groups[{place}].{kind}" for place, _ in having]
    count = _alike(kind, cluster, [count for _, count in having], paths)
    return SizeAxis(kind, f"{kind} per node", count, tuple(f"set({path}, {{}})" for path in paths))


def _units_of_nodes(kind: str, cluster: TaskInput) -> SizeAxis:
    from simsched.graph.inspect.view import summary

    unit = kind.removesuffix("s")
    groups = [g for g in summary(INPUTS.cluster(cluster).graph).groups if unit in g.holds]
    counts = [int(g.holds[unit].replace(",", "")) for g in groups]
    count = _alike(kind, cluster, counts, ["a recipe and the path of one of its groups"])
    return SizeAxis(kind, f"{kind} per node", count, tuple(f"units({g.hosts}, {unit}, {{}})" for g in groups))


def _alike(kind: str, cluster: TaskInput, counts: list[int], places: list[str]) -> int:
    if not counts:
        raise ConfigError(
            f"no node of {cluster.name} has {kind}", where="--grow", expected=f"a cluster with {kind}"
        )
    if len(set(counts)) > 1:
        raise ConfigError(
            f"nodes differ in their number of {kind}", where="--grow", expected=", ".join(places)
        )
    return counts[0]


def _value(path: str, cluster: TaskInput) -> SizeAxis:
    from simsched.formats.text.excerpts import parse_path

    place = _document(cluster)
    if place is None:
        raise ConfigError(f"{path} varies only in a recipe, which {cluster.name} is not", where="--grow",
                          expected="a cluster recipe, or --grow nodes")  # fmt: skip
    try:
        for step in parse_path(path):
            place = place[step]
    except (KeyError, IndexError, TypeError):
        raise ConfigError(f"the recipe has no {path}", where="--grow",
                          expected="a path such as groups[0].count") from None  # fmt: skip
    if not isinstance(place, int) or isinstance(place, bool):
        raise ConfigError(f"{path} is {place!r}", where="--grow", expected="a whole number")
    return SizeAxis(path, f"units of {path}", place, (f"set({path}, {{}})",))
