"""Rules on queues: their nodes exist, their limits can be met, and every node is in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.check.findings import ERROR, NOTE, WARNING, rule
from simsched.check.node_rules import listed
from simsched.check.site_files import SiteFault
from simsched.errors import SimschedError, did_you_mean
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.duration import format_duration
from simsched.simulation.admission import groups_of_queues
from simsched.simulation.limits.limit_kinds import KINDS
from simsched.simulation.limits.limit_rules import read_limits
from simsched.simulation.queues import INF, SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.arrays import Bools
    from simsched.check.site_files import SiteConfig, SiteFiles
    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.index.index import Index
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.simulation.queues import Queue, Queues


@rule("configuration-invalid", ERROR, "the configuration cannot be used")
def unreadable(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the configurations that the reader of queues refuses."""
    for config in site.configs:
        if config.fault is not None:
            yield SiteFault(config.where, str(config.fault).removeprefix(f"{config.where}: "))


@rule("queue-property", ERROR, "a queue requires a property that no node has")
def unknown_properties(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the properties that a queue requires and no node has."""
    for place, queue, index in _queues_and_machine(site):
        parts = [part for part in _parts(queue.constraint) if isinstance(part, rfc31.Properties)]
        for name in (name.removeprefix("^") for part in parts for name in part.names):
            if name not in index.property_rows:
                known = sorted(index.property_rows)
                text = f"no {index.target_type} has the property {name}{did_you_mean(name, known)}"
                yield SiteFault(place.of("requires"), text)


@rule("queue-host", ERROR, "a queue names a host that does not exist")
def unknown_hosts(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the hosts of a queue that the machine does not have."""
    for place, queue, index in _queues_and_machine(site):
        parts = [part for part in _parts(queue.constraint) if isinstance(part, rfc31.Hosts)]
        named = (host for part in parts for host in part.hostlist.unique())
        odd = [host for host in named if host not in index.ordinal_of_host]
        if odd:
            meant = did_you_mean(odd[0], index.ordinal_of_host, cutoff=0.8) if len(odd) == 1 else ""
            yield SiteFault(place.of("hosts"), f"the machine has no {listed(odd)}{meant}")


@rule("queue-empty", ERROR, "a queue has no node")
def without_nodes(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the queues that have no node at all: their jobs would wait for ever."""
    for place, queue, index in _queues_and_machine(site):
        if not index.targets_matching(queue.constraint).any():
            yield SiteFault(place.of(), f"no {index.target_type} satisfies {queue.constraint}")


@rule("limit-crossed", ERROR, "a least size is above the most")
def crossed_limits(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the limits whose least value is above the most."""
    for place, queue in _queues(site):
        for key, least in queue.least.items():
            most = queue.most.get(key, least)
            if least > most:
                where = place.of(f"policy.limits.job-size.min.{key}")
                yield SiteFault(where, f"min.{key} is {least}, and max.{key} is {most}: no job can meet both")


@rule("limit-unreachable", ERROR, "a least size is above what the nodes of the queue have")
def unreachable_limits(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the least sizes that are above all nodes of the queue together."""
    for place, queue, index in _queues_and_machine(site):
        there = _sizes(index, index.targets_matching(queue.constraint))
        for key, least in queue.least.items():
            if least > there[key]:
                text = f"min.{key} is {least}, and the nodes of the queue have {there[key]} {SIZES[key]}"
                yield SiteFault(place.of(f"policy.limits.job-size.min.{key}"), text)


@rule("limit-zero", WARNING, "a limit of 0 allows none of the jobs that it is about")
def limits_of_zero(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the limits of 0 jobs or units: none of the jobs that they are about ever starts."""
    for config, limit in _limits(site):
        for quantity, most in limit.most:
            if most == 0 and KINDS[quantity].zero_bars:
                yield SiteFault(config.place(limit.where), f"{quantity} = 0 allows no job")


@rule("limit-unknown-queue", WARNING, "a limit is about a queue that does not exist")
def limits_of_unknown_queues(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the limits about queues that the configuration does not have."""
    for config, limit in _limits(site):
        known = config.queues.queues if config.queues is not None else {}
        for name in dict(limit.names).get("queue", ()):
            if known and name not in known:
                text = f"there is no queue {name!r}{did_you_mean(name, known)}"
                yield SiteFault(config.place(limit.where), text)


def _limits(site: SiteFiles) -> Iterator[tuple[SiteConfig, LimitRule]]:
    """Yield the limits of all configurations."""
    for config in site.configs:
        try:
            rules = read_limits(config.document.get("limits", ()), "limits")
        except SimschedError:  # `unreadable` reports it
            continue
        for limit in rules:
            yield config, limit


@rule("default-above-limit", ERROR, "a default duration is above the limit of its queue")
def default_durations(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the default durations above the limit of their queue."""
    for place, queue in _queues(site):
        given = queue.default_duration
        if given is not None and given > queue.longest:
            default = "no limit" if given == INF else format_duration(given)
            text = f"the default duration is {default}, and the limit {format_duration(queue.longest)}"
            yield SiteFault(place.of("policy.limits.duration"), text)


@rule("node-unqueued", WARNING, "a node is in no queue")
def nodes_in_no_queue(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the nodes that no queue uses."""
    for config, queues, index in _on_nodes(site):
        served = np.zeros(len(index), dtype=np.bool_)
        for queue in queues.queues.values():
            served |= index.targets_matching(queue.constraint)
        names = (index.hosts[at] for at in np.flatnonzero(~served).tolist())
        out = [host for host in names if host not in site.excluded_hosts]
        if out:
            text = f"{len(out)} of {len(index)} {index.target_type}s are in no queue: {listed(out)}"
            yield SiteFault(config.place("queues"), text)


@rule("queues-overlap", NOTE, "queues have nodes in common")
def overlaps(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the queues that have nodes in common, directly or through a third."""
    for config, queues, index in _on_nodes(site):
        group_of, count = groups_of_queues(queues, index, anywhere=False)
        for number in range(count):
            names = [name for name in queues.queues if group_of[name] == number]
            if len(names) > 1:
                text = f"{', '.join(names)} have {index.target_type}s in common and are scheduled together"
                yield SiteFault(config.place("queues"), text)


# --- helpers --------------------------------------------------------------------------------------


def _on_nodes(site: SiteFiles) -> Iterator[tuple[SiteConfig, Queues, Index]]:
    """Yield each configuration with queues, with the nodes that they are on; nothing without nodes."""
    for config in site.configs:
        if site.machine is not None and config.queues is not None:
            yield config, config.queues, site.machine.cluster.index


class _Place(NamedTuple):
    """A queue in a configuration."""

    config: SiteConfig
    name: str

    def of(self, key: str = "") -> str:
        """Return the place of a key of the queue, or of the queue."""
        return self.config.place(f"queues.{self.name}.{key}".rstrip("."))


def _queues(site: SiteFiles) -> Iterator[tuple[_Place, Queue]]:
    for config in site.configs:
        if config.queues is not None:
            for name, queue in config.queues.queues.items():
                yield _Place(config, name), queue


def _queues_and_machine(site: SiteFiles) -> Iterator[tuple[_Place, Queue, Index]]:
    """Yield each queue with its place and the machine; nothing without a machine."""
    for config, queues, index in _on_nodes(site):
        for name, queue in queues.queues.items():
            yield _Place(config, name), queue, index


def _parts(constraint: Constraint | None) -> Iterator[Constraint]:
    """Yield the parts of a queue's constraint, which is properties, hosts or both."""
    if isinstance(constraint, rfc31.And):
        for part in constraint.args:
            yield from _parts(part)
    elif constraint is not None:
        yield constraint


def _sizes(index: Index, row: Bools) -> dict[str, int]:
    """Return the nodes, cores and GPUs of some targets, by the names of limits."""
    found = {"nnodes": int(row.sum())}
    for key, kind in (("ncores", "core"), ("ngpus", "gpu")):
        pool = index.pool_types.get(kind)
        inside = None if pool is None else pool.size[(pool.target >= 0) & row[pool.target]]
        found[key] = 0 if inside is None else int(inside.sum())
    return found
