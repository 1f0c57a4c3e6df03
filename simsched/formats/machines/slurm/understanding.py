"""`describe`: the description that the records of Slurm's files make together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simsched.formats.cluster.recipe import NodeGroup, Recipe
from simsched.formats.machines.description import MachineDescription
from simsched.formats.machines.limits.slurm_limits import SlurmLimits
from simsched.formats.machines.shared.node_groups import by_kind, differences, property_for
from simsched.formats.machines.slurm.node_records import node_kind, property_name, status_of
from simsched.formats.machines.slurm.notation import EVERY_NODE, comma_parts, stated, whole_number
from simsched.formats.machines.slurm.partition_records import is_default, is_exclusive, job_factor, queue_of
from simsched.formats.machines.slurm.preemption_lines import preemption_of
from simsched.formats.machines.slurm.settings import WHOLE_NODES
from simsched.formats.machines.slurm.slurm_records import INSIDE, Line, SlurmRecords, joined
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_WEIGHT = 2**32
MAX_WORDS = 1000
"""The most features or partitions of a node."""


@dataclass(slots=True)
class NodeFacts:
    """One node, understood.

    kind : its inside, shared between equal nodes.
    partitions : those that its own record names (scontrol, JSON).
    """

    kind: NodeGroup
    cpus_per_core: int
    features: tuple[str, ...]
    weight: int
    status: str
    partitions: tuple[str, ...]


def describe(parts: Sequence[SlurmRecords], *, strict: bool = False) -> MachineDescription:
    """Return the description that the records of these files make together.

    strict : the first fault is an error, as it is if one of the files was read so.
    """
    whole, again = joined(parts)
    whole.notes.strict |= strict
    form = ", ".join(dict.fromkeys(part.form for part in parts))
    return replace(_Understanding(whole, again).description(form), records=tuple(parts))


class _Understanding:
    """The understanding of joined records; short-lived."""

    def __init__(self, records: SlurmRecords, again: Sequence[tuple[str, str, Line]]) -> None:
        self.notes = records.notes
        self.settings = records.settings
        self.reader = records.reader
        self.partitions = records.partitions
        self._records = records
        self._kinds: dict[tuple[tuple[str, str], ...], tuple[NodeGroup, int]] = {}
        self._groups: dict[NodeGroup, NodeGroup] = {}
        self._facts: dict[tuple[int, str], NodeFacts | None] = {}
        self._planned: set[str] = set()
        self.nodes: dict[str, NodeFacts] = {}
        for host, line in records.nodes.items():
            facts = self._node(host, line)
            if facts is None:
                self._planned.add(host)
            else:
                self.nodes[host] = replace(facts)
        self._add_again(again)
        for hosts, status, where in records.down:
            self._set_states(hosts, status, where)
        self.switches = records.switches.tree(self.nodes) if self.nodes else None
        plugin = self.settings.get("topologyplugin")
        if not records.switches.hosts and plugin not in (
            "", "topology/default", "topology/flat", "topology/none"
        ):  # fmt: skip
            text = f"TopologyPlugin={plugin}: no topology.conf was read"
            self.notes.left_out(text, self.settings.where("topologyplugin"))

    def _add_again(self, again: Sequence[tuple[str, str, Line]]) -> None:
        """Add the features, partitions and states of further records of nodes; note amounts that differ."""
        unlike: dict[tuple[str, str], list[str]] = {}
        for form, host, line in again:
            more, known = self._node(host, line), self.nodes.get(host)
            if more is None or known is None:
                continue
            known.features = tuple(dict.fromkeys((*known.features, *more.features)))
            known.partitions = tuple(dict.fromkeys((*known.partitions, *more.partitions)))
            known.status = more.status if known.status == "up" else known.status
            for difference in differences(known.kind, more.kind):
                unlike.setdefault((form, difference), []).append(host)
        for (form, difference), hosts in unlike.items():
            text = f"{encode_hosts(hosts)}: {difference} in {self._records.form}, which counts"
            self.notes.fault(text, form)

    def _node(self, host: str, line: Line) -> NodeFacts | None:
        """Return a node, None if it is only planned; nodes of one record are one object."""
        values, where = line
        gres = self._records.gres.typed(host, values.get("gres", ""), where)
        place = id(values), gres
        if place in self._facts:
            return self._facts[place]
        state = stated(values, "state")
        status = status_of(state) if state else "up"
        facts = None
        if status is None:
            text = f"nodes in the state {state.upper()} are only planned and not in the graph"
            self.notes.left_out(text, where, cause="future nodes")
        else:
            if "CLOUD" in state.upper():
                self.notes.assumed("nodes in the cloud are up; the time to start them is left out", where)
            kind, cpus_per_core = self._kind({**values, "gres": gres}, where)
            features = self._words(stated(values, "features", "feature").replace(" ", ""), where, "features")
            partitions = self._words(stated(values, "partitions"), where, "partitions")
            weight = self._weight(values, where)
            facts = NodeFacts(kind, cpus_per_core, features, weight, status, partitions)
        self._facts[place] = facts
        return facts

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
        inside = tuple(sorted((key, value) for key, value in values.items() if key in INSIDE))
        found = self._kinds.get(inside)
        if found is None:
            made = node_kind(dict(inside), self.notes, where, tmp_path=self.settings.tmp_path)
            group = made.group
            if not self.settings.counts_memory:
                group = replace(group, pools=tuple(pool for pool in group.pools if pool.type != "memory"))
            group = self._groups.setdefault(group, group)
            found = self._kinds[inside] = (group, made.cpus_per_core)
        return found

    def _set_states(self, hosts: Sequence[str], state: str, where: str) -> None:
        """Give nodes another state (DownNodes)."""
        status = status_of(state)
        for host in hosts:
            if host in self._planned:
                continue
            if host not in self.nodes:
                self.notes.fault(f"there is no node {host!r}", where, cause="DownNodes")
            elif status is not None:
                self.nodes[host].status = status

    def description(self, form: str) -> MachineDescription:
        members = self._members()
        properties = self._property_names(members)
        recipe = Recipe(
            name=stated(self.settings.values, "clustername") or None,
            groups=self._node_groups(members, properties),
            pools=self.settings.licences(),
            network=self.switches,
        )
        limits = SlurmLimits(self._records, self.notes)
        config, cpus_per_core = self._config(members, properties, limits), self._cpus_per_core()
        if recipe.pools:
            config["licenses"] = {pool.type: pool.amount.size for pool in recipe.pools}
        if self._records.reservations:
            config["reservations"] = list(self._records.reservations.values())
        tables = limits.tables(cpus_per_core, list(members))
        if tables:
            config["limits"] = tables
        typed = any("gpu-type" in table for table in tables) and config.get("match-policy") == WHOLE_NODES
        if typed and any(len(facts.kind.properties) > 1 for facts in self.nodes.values()):
            text = "jobs with whole nodes count all gpus of these for a limit on one type of gpus"
            self.notes.assumed(text)
        self.settings.note_unused()
        return MachineDescription(
            recipe=recipe,
            config=config,
            notes=self.notes.notes(),
            format=form,
            cpus_per_core=cpus_per_core,
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
            text = f"the limits of the partitions {', '.join(missing)}, which no file states"
            self.notes.left_out(text)
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
            hosts = (
                self._set(part)
                if part in self._records.node_sets
                else self.reader.names(part, where, "nodes")
            )
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
        facts = self._records.node_sets[name]
        self.reader.count(len(self.nodes), facts.where)
        text, feature = stated(facts.values, "nodes"), stated(facts.values, "feature", "features")
        every = text.lower() == EVERY_NODE
        found = dict.fromkeys(
            self.nodes if every else self.reader.names(text, facts.where, "nodes") if text else ()
        )
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

    def _config(
        self, members: Mapping[str, Sequence[str]], properties: Mapping[str, str], limits: SlurmLimits
    ) -> dict[str, Any]:
        """Return the run options and the queues."""
        factors = {
            name: job_factor(facts.values, self.notes, facts.where) for name, facts in self.partitions.items()
        }
        config = self.settings.run_options(factors, limits.qos)
        queues: dict[str, dict[str, Any]] = {}
        defaults: list[str] = []
        for name, hosts in members.items():
            facts = self.partitions.get(name, Line({}, ""))
            nodes: dict[str, Any] = {"requires": [properties[name]]}
            if hosts and not self.nodes:
                nodes = {"hosts": EVERY_NODE if EVERY_NODE in hosts else encode_hosts(hosts)}
            queues[name] = nodes | queue_of(name, facts.values, self.notes, facts.where)
            self._note_unmet(name, facts, hosts)
            if is_default(facts.values, self.notes, facts.where):
                defaults.append(name)
        self._prioritise(queues, config, limits)
        self._give_whole_nodes(config)
        if len(defaults) > 1:
            text = f"the partitions {', '.join(defaults)} are all the default; the last one counts"
            self.notes.fault(text, self.partitions[defaults[-1]].where)
        if self.partitions and not defaults and self._records.without_default:
            text = "the default partition, which this JSON does not state"
            self.notes.left_out(text, self._records.without_default)
        if defaults:
            config["policy"] = {"jobspec": {"defaults": {"system": {"queue": defaults[-1]}}}}
        if queues:
            config["queues"] = queues
        return config

    def _note_unmet(self, name: str, facts: Line, hosts: Sequence[str]) -> None:
        """Note values of a partition that none of its nodes can meet."""
        nodes = [self.nodes[host] for host in hosts if host in self.nodes]
        least, memory = stated(facts.values, "minnodes"), stated(facts.values, "defmempernode")
        if nodes and least.isdigit() and int(least) > len(nodes):
            text = f"partition {clip(name)}: MinNodes={least} of {len(nodes):,} nodes: no job can run"
            self.notes.assumed(text, facts.where, cause="minnodes")
        pools = [pool.amount.size for node in nodes for pool in node.kind.pools if pool.type == "memory"]
        if pools and memory.isdigit() and int(memory) > max(pools):
            text = f"partition {clip(name)}: DefMemPerNode={memory}, which none of its nodes has"
            self.notes.assumed(text, facts.where, cause="defmempernode")

    def _prioritise(
        self, queues: Mapping[str, dict[str, Any]], config: dict[str, Any], limits: SlurmLimits
    ) -> None:
        """Mark the queues that preempt, and drop priorities that are all the same."""
        tiers = {name: queue["priority"] for name, queue in queues.items()}
        preemption = preemption_of(self.settings, tiers, self.partitions, limits.qos)
        if preemption:
            config["preemption"] = preemption
        if preemption and preemption.get("by") != "qos":
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
