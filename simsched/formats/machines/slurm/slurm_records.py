"""`SlurmRecords`: nodes, partitions and settings as they are read, and the description that they make.

All readers of Slurm's files collect the same records, whose keys are those of slurm.conf in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.errors import LimitError
from simsched.formats.cluster.recipe import MAX_NODES, NodeGroup, Recipe
from simsched.formats.machines.description import MachineDescription
from simsched.formats.machines.shared.node_groups import by_kind, property_for
from simsched.formats.machines.slurm.node_records import node_kind, property_name, status_of
from simsched.formats.machines.slurm.notation import EVERY_NODE, NameReader, comma_parts, stated, whole_number
from simsched.formats.machines.slurm.partition_records import is_default, is_exclusive, job_factor, queue_of
from simsched.formats.machines.slurm.preemption_lines import preemption_of, qos_preemption
from simsched.formats.machines.slurm.reservation_lines import reservation_of
from simsched.formats.machines.slurm.settings import WHOLE_NODES, Settings
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.cluster.recipe import SwitchTree
    from simsched.formats.machines.shared.note_collector import NoteCollector

MAX_WEIGHT = 2**32
_INSIDE_KEYS = """
    boards corespeccount corespersocket cpuefctv cpus cpuspeclist gres memspeclimit procs realmemory sockets
    socketsperboard threadspercore tmpdisk
"""
_INSIDE = frozenset(_INSIDE_KEYS.split())
MAX_WORDS = 1000
"""The most features or partitions of a node."""
MAX_PARTITIONS = 10_000
UNSTATED_LIMITS = "the limits of the partitions"
"""Begins the note on partitions of which only the nodes are known."""
"""The nodes of a partition that has all nodes, in a file that names none of them."""


@dataclass(slots=True)
class NodeFacts:
    """One node.

    kind : its inside, shared between equal nodes.
    partitions : those that its own record names (scontrol, JSON).
    """

    kind: NodeGroup
    cpus_per_core: int
    features: tuple[str, ...]
    weight: int
    status: str
    partitions: tuple[str, ...]
    where: str


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """One partition: its keys and the place of its line."""

    values: Mapping[str, str]
    where: str


@dataclass(slots=True)
class SlurmRecords:
    """The content of the files of one reading, in their order.

    switches : the network, or None.
    """

    notes: NoteCollector
    settings: Settings
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    partitions: dict[str, PartitionFacts] = field(default_factory=dict)
    node_sets: dict[str, PartitionFacts] = field(default_factory=dict)
    reservations: dict[str, dict[str, Any]] = field(default_factory=dict)
    switches: SwitchTree | None = None
    reader: NameReader = field(init=False)
    _planned: set[str] = field(default_factory=set)
    _kinds: dict[tuple[tuple[str, str], ...], tuple[NodeGroup, int]] = field(default_factory=dict)
    _groups: dict[NodeGroup, NodeGroup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = NameReader(self.notes)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was understood."""
        found = self.nodes or self.partitions or self.node_sets or self.reservations
        return not (found or self.settings.values)

    # --- reading

    def hosts(self, text: str, where: str, key: str) -> list[str]:
        """Return the names of a node list; a fault is noted and gives no names."""
        return self.reader.names(text, where, key)

    def add_nodes(
        self, hosts: Sequence[str], values: Mapping[str, str], where: str, *, again: bool = False
    ) -> None:
        """Add nodes that are alike.

        again : a node that is known already is in further partitions (sinfo lists nodes by partition);
            otherwise a second record of a node is a fault, and the first one counts.
        """
        state = stated(values, "state")
        status = status_of(state) if state else "up"
        if status is None:
            text = f"nodes in the state {state.upper()} are only planned and not in the graph"
            self.notes.left_out(text, where, cause="future nodes")
            self._planned.update(hosts)
            return
        if "CLOUD" in state.upper():
            self.notes.assumed("nodes in the cloud are up; the time to start them is left out", where)
        kind, cpus_per_core = self._kind(values, where)
        features = self._words(stated(values, "features", "feature").replace(" ", ""), where, "features")
        partitions = self._words(stated(values, "partitions"), where, "partitions")
        weight = self._weight(values, where)
        if len(self.nodes) + len(hosts) > MAX_NODES:
            raise LimitError("too many nodes", where=where, expected=f"at most {MAX_NODES:,}")
        self.reader.count(len(hosts) * (len(features) + len(partitions)), where)
        twice = []
        for host in hosts:
            known = self.nodes.get(host)
            if known is None:
                self.nodes[host] = NodeFacts(kind, cpus_per_core, features, weight, status, partitions, where)
            elif again:
                known.partitions = tuple(dict.fromkeys((*known.partitions, *partitions)))
            else:
                twice.append(host)
        if twice:
            text = f"the node {clip(twice[0])!r} occurs twice; that of {self.nodes[twice[0]].where} counts"
            if len(twice) > 1:
                text += f" (other nodes of this line too: {len(twice) - 1:,})"
            self.notes.fault(text, where, cause="a node twice")

    def _words(self, text: str, where: str, key: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(comma_parts(text)))
        if len(words) > MAX_WORDS:
            self.notes.fault(f"{key}: {len(words):,} names", where, f"at most {MAX_WORDS:,}", cause=key)
        return words[:MAX_WORDS]

    def _weight(self, values: Mapping[str, str], where: str) -> int:
        text = stated(values, "weight") or "1"
        read = self.notes.attempt(lambda value: whole_number(value, most=MAX_WEIGHT), text, where, "weight")
        return 1 if read is None else read

    def _kind(self, values: Mapping[str, str], where: str) -> tuple[NodeGroup, int]:
        """Return the inside of nodes with these keys; equal ones are one object."""
        inside = tuple(sorted((key, value) for key, value in values.items() if key in _INSIDE))
        found = self._kinds.get(inside)
        if found is None:
            made = node_kind(dict(inside), self.notes, where, tmp_path=self.settings.tmp_path)
            group = self._groups.setdefault(made.group, made.group)
            found = self._kinds[inside] = (group, made.cpus_per_core)
        return found

    def add_partition(self, name: str, values: Mapping[str, str], where: str) -> None:
        """Add a partition; a second record of a name is a fault, and the first one counts."""
        if not name:
            self.notes.fault("a partition without a name", where)
            return
        if name in self.partitions:
            text = f"the partition {clip(name)!r} occurs twice; that of {self.partitions[name].where} counts"
            self.notes.fault(text, where, cause="a partition twice")
            return
        if len(self.partitions) >= MAX_PARTITIONS:
            raise LimitError("too many partitions", where=where, expected=f"at most {MAX_PARTITIONS:,}")
        self.partitions[name] = PartitionFacts(dict(values), where)

    def add_reservation(self, name: str, values: Mapping[str, str], where: str) -> None:
        """Add an advance reservation; of a name twice, the first one counts."""
        if name in self.reservations:
            text = f"the reservation {clip(name)!r} occurs twice; the first one counts"
            self.notes.fault(text, where, cause="a reservation twice")
            return
        text = stated(values, "nodes")
        hosts = [] if text.lower() == EVERY_NODE else self.hosts(text, where, "nodes")
        found = reservation_of(name, values, self.notes, where, hosts)
        if found is not None:
            self.reservations[name] = found

    def set_states(self, text: str, state: str, where: str) -> None:
        """Give nodes another state (DownNodes)."""
        status = status_of(state)
        for host in self.hosts(text, where, "downnodes"):
            if host in self._planned:
                continue
            if host not in self.nodes:
                self.notes.fault(f"there is no node {host!r}", where, cause="DownNodes")
            elif status is not None:
                self.nodes[host].status = status

    # --- describing

    def describe(self, form: str) -> MachineDescription:
        """Return the description that all records make."""
        members = self._members()
        properties = self._property_names(members)
        recipe = Recipe(
            name=stated(self.settings.values, "clustername") or None,
            groups=self._node_groups(members, properties),
            pools=self.settings.licences(),
            network=self.switches,
        )
        config, cpus_per_core = self._config(members, properties), self._cpus_per_core()
        if recipe.pools:
            config["licenses"] = {pool.type: pool.amount.size for pool in recipe.pools}
        if self.reservations:
            config["reservations"] = list(self.reservations.values())
        preemption = qos_preemption(self.settings)
        awaits_qos = {**self.settings.awaits_qos, **({"preemption": preemption} if preemption else {})}
        notes = self.notes.notes()
        return MachineDescription(
            recipe=recipe,
            config=config,
            notes=notes,
            format=form,
            cpus_per_core=cpus_per_core,
            awaits_qos=awaits_qos,
        )

    def _cpus_per_core(self) -> int:
        """Return the CPUs of a core if all nodes have the same number, else 1."""
        found = {facts.cpus_per_core for facts in self.nodes.values()}
        if len(found) > 1:
            numbers = ", ".join(map(str, sorted(found)))
            text = f"nodes differ in the CPUs per core ({numbers}): the CPUs of a log are taken as cores"
            self.notes.left_out(text)
        return found.pop() if len(found) == 1 else 1

    def _members(self) -> dict[str, list[str]]:
        """Return the nodes of each partition: those of its own record, or else those that name it."""
        named: dict[str, list[str]] = {}
        for host, facts in self.nodes.items():
            for name in facts.partitions:
                named.setdefault(name, []).append(host)
        found = {}
        for name, facts_of_partition in self.partitions.items():
            text = stated(facts_of_partition.values, "nodes")
            hosts = self._resolved(name, text, facts_of_partition.where) if text else named.get(name, [])
            if not hosts:
                text = f"the partition {clip(name)} has no nodes: its jobs never start"
                self.notes.assumed(text, facts_of_partition.where)
            found[name] = hosts
        missing = [name for name in named if name not in found]
        if missing:
            self.notes.left_out(f"{UNSTATED_LIMITS} {', '.join(missing)}, which this file does not state")
        return {**found, **{name: named[name] for name in missing}}

    def _resolved(self, name: str, text: str, where: str) -> list[str]:
        """Return the nodes of a partition, each once; unknown ones are noted."""
        found: dict[str, None] = {}
        unknown: list[str] = []
        for part in dict.fromkeys(comma_parts(",".join(text.split()))):  # Slurm takes blanks as commas here
            if part.lower() == EVERY_NODE:
                self.reader.count(len(self.nodes), where)
                found.update(dict.fromkeys(self.nodes or (EVERY_NODE,)))
                continue
            hosts = self._set(part) if part in self.node_sets else self.hosts(part, where, "nodes")
            for host in hosts:
                if host in self.nodes or not self.nodes:
                    found[host] = None
                elif host not in self._planned:
                    unknown.append(host)
        if unknown:
            shown = clip(encode_hosts(unknown))
            text = f"partition {clip(name)}: there is no node {shown}"
            self.notes.fault(text, where, "a NodeName before it", cause="partition of unknown nodes")
        return list(found)

    def _set(self, name: str) -> list[str]:
        """Return the nodes of a NodeSet: those that it lists, and those with its feature."""
        facts = self.node_sets[name]
        self.reader.count(len(self.nodes), facts.where)
        text, feature = stated(facts.values, "nodes"), stated(facts.values, "feature", "features")
        every = text.lower() == EVERY_NODE
        found = dict.fromkeys(self.nodes if every else self.hosts(text, facts.where, "nodes") if text else ())
        if feature:
            found |= dict.fromkeys(host for host, node in self.nodes.items() if feature in node.features)
        return list(found)

    def _property_names(self, members: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return the property of each partition, which no feature of other nodes has."""
        known: dict[str, set[str]] = {}
        for host, facts in self.nodes.items():
            for name in (*map(property_name, facts.features), *facts.kind.properties):
                known.setdefault(name, set()).add(host)
        found = {}
        for name, hosts in members.items():
            own = set(hosts)
            found[name] = property_for(property_name(name), own, known)
            known[found[name]] = own
            if found[name] != name:
                text = f"the property of partition {clip(name)} is {found[name]}"
                where = self.partitions[name].where if name in self.partitions else ""
                self.notes.assumed(text, where)
        return found

    def _node_groups(
        self, members: Mapping[str, Sequence[str]], properties: Mapping[str, str]
    ) -> tuple[NodeGroup, ...]:
        """Return the groups of equal nodes, those of a lower weight first."""
        of_host: dict[str, list[str]] = {host: [] for host in self.nodes}
        for name, hosts in members.items():
            for host in hosts:
                if host in of_host:
                    of_host[host].append(properties[name])
        if len({facts.weight for facts in self.nodes.values()}) > 1:
            text = "nodes of a lower Weight come first: the match policy first prefers them, as Slurm does"
            self.notes.assumed(text)
        by_weight = sorted(self.nodes.items(), key=lambda item: item[1].weight)
        return by_kind(
            (
                host,
                facts.kind,
                tuple(
                    dict.fromkeys(
                        (*of_host[host], *map(property_name, facts.features), *facts.kind.properties)
                    )
                ),
                facts.status,
            )
            for host, facts in by_weight
        )

    def _config(self, members: Mapping[str, Sequence[str]], properties: Mapping[str, str]) -> dict[str, Any]:
        """Return the run options and the queues."""
        factors = {
            name: job_factor(facts.values, self.notes, facts.where) for name, facts in self.partitions.items()
        }
        config = self.settings.run_options(factors)
        queues: dict[str, dict[str, Any]] = {}
        defaults: list[str] = []
        for name, hosts in members.items():
            facts = self.partitions.get(name, PartitionFacts({}, ""))
            nodes: dict[str, Any] = {"requires": [properties[name]]}
            if hosts and not self.nodes:
                nodes = {"hosts": EVERY_NODE if EVERY_NODE in hosts else encode_hosts(hosts)}
            queues[name] = nodes | queue_of(name, facts.values, self.notes, facts.where)
            if is_default(facts.values, self.notes, facts.where):
                defaults.append(name)
        self._prioritise(queues, config)
        self._give_whole_nodes(config)
        if len(defaults) > 1:
            text = f"the partitions {', '.join(defaults)} are all the default; the last one counts"
            self.notes.fault(text, self.partitions[defaults[-1]].where)
        if defaults:
            config["policy"] = {"jobspec": {"defaults": {"system": {"queue": defaults[-1]}}}}
        if queues:
            config["queues"] = queues
        return config

    def _prioritise(self, queues: Mapping[str, dict[str, Any]], config: dict[str, Any]) -> None:
        """Mark the queues that preempt, and drop priorities that are all the same."""
        tiers = {name: queue["priority"] for name, queue in queues.items()}
        partitions = {name: (facts.values, facts.where) for name, facts in self.partitions.items()}
        preemption = preemption_of(self.settings, tiers, partitions)
        if preemption:
            config["preemption"] = preemption
            for name, tier in tiers.items():
                if tier > min(tiers.values()):
                    queues[name]["preempts"] = True
        if len(set(tiers.values())) == 1:
            for queue in queues.values():
                del queue["priority"]

    def _give_whole_nodes(self, config: dict[str, Any]) -> None:
        """Choose whole nodes if all partitions are exclusive; note the partitions that are if some are."""
        if "match-policy" in config:
            return
        exclusive = [name for name, facts in self.partitions.items() if is_exclusive(facts.values)]
        if exclusive and len(exclusive) == len(self.partitions):
            config["match-policy"] = WHOLE_NODES
            self.notes.assumed("all partitions are exclusive: match-policy = firstnodex gives whole nodes")
        elif exclusive:
            text = f"the partitions {', '.join(exclusive)} give whole nodes (OverSubscribe=EXCLUSIVE)"
            self.notes.left_out(text, self.partitions[exclusive[0]].where)
