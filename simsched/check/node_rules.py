"""Rules on nodes: all descriptions of the machine name the same nodes, with the same ranks and units."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from simsched.check.findings import ERROR, WARNING, rule
from simsched.check.site_files import COUNTED, GRAPH, R, SiteFault, hosts_named, ranks_named
from simsched.errors import FormatError, clip, did_you_mean
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.graph.pool import split_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.check.site_files import SiteFiles, StatedMachine, StatedNode
    from simsched.simulation.outages.outages import Outage

MOST_CHARACTERS = 120
"""The most characters of a hostlist in a text."""


@rule("machine-impossible", ERROR, "a description of the machine contradicts itself")
def impossible(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the descriptions that contradict themselves."""
    yield from site.faults


@rule("import-fault", WARNING, "the import of the site did not understand a line")
def not_understood(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the lines that an import of the site could not understand."""
    for note in site.notes:
        if note.kind == "fault":
            yield SiteFault(note.where or "the import", note.text)


@rule("nodes-number", ERROR, "two descriptions have different numbers of nodes")
def numbers(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield each description with another number of nodes than the first."""
    for first, other in _pairs(site):
        mine, theirs = len(_nodes(site, other)), len(_nodes(site, first))
        if mine != theirs:
            yield SiteFault(other.where, f"{mine} nodes, and {theirs} in {first.where}")


@rule("nodes-hosts", ERROR, "a host is in one description and not in another")
def hosts(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the hosts that one description has and another lacks."""
    for first, other in _pairs(site):
        mine, theirs = _hosts(site, other), _hosts(site, first)
        for names, has, lacks in ((theirs - mine, first, other), (mine - theirs, other, first)):
            if names:
                yield SiteFault(lacks.where, f"lacks {listed(names)}, which {has.where} has")


@rule("nodes-twice", ERROR, "a host occurs twice in one description")
def host_names_twice(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the hosts that occur twice in one graph (R may have several ranks on one host)."""
    for machine in site.machines:
        if machine.kind == R:
            continue
        twice = [host for host, count in Counter(node.host for node in machine.nodes).items() if count > 1]
        if twice:
            yield SiteFault(machine.where, f"has {listed(twice)} more than once")


@rule("nodes-ranks", ERROR, "a host has different ranks in two descriptions")
def ranks(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the hosts whose ranks differ; a description without ranks is not compared."""
    for first, other in _pairs(site):
        unranked = [all(node.rank is None for node in one.nodes) for one in (first, other)]
        if unranked[0] or (unranked[1] and other.kind != GRAPH):
            continue
        wrong = [(theirs, mine) for theirs, mine in _common(first, other) if theirs.rank != mine.rank]
        if wrong:
            theirs, mine = wrong[0]
            rank = "no rank" if mine.rank is None else f"rank {mine.rank}"
            more = f", and {len(wrong) - 1} more hosts differ" if len(wrong) > 1 else ""
            yield SiteFault(other.where, f"{mine.host} has {rank}, and {theirs.rank} in {first.where}{more}")


@rule("nodes-units", ERROR, "a host has different numbers of cores, GPUs or other units")
def units(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the types of which a host has different numbers."""
    for first, other in _pairs(site):
        wrong: dict[tuple[str, int, int], list[str]] = defaultdict(list)
        for kind in _compared(first, other):
            for theirs, mine in _common(first, other):
                here, there = mine.units.get(kind, 0), theirs.units.get(kind, 0)
                if here != there:
                    wrong[kind, here, there].append(mine.host)
        for (kind, here, there), names in wrong.items():
            total = f"{other.totals.get(kind, 0)} and {first.totals.get(kind, 0)} in total"
            text = f"{kind}={here} on {listed(names)}, and {there} in {first.where} ({total})"
            yield SiteFault(other.where, text)


@rule("properties-missing", ERROR, "a property of the first description is missing in another")
def properties_missing(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the properties of R that a graph lacks: jobs that require them are never scheduled."""
    yield from _properties(site, missing=True)


@rule("properties-extra", WARNING, "a property is not in the first description")
def properties_extra(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the properties that a graph has and R lacks."""
    yield from _properties(site, missing=False)


@rule("excluded-unknown", ERROR, "a host or rank that is excluded, drained or down does not exist")
def excluded(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the hosts and ranks that are excluded, drained or down and do not exist."""
    for machine in site.machines[:1]:
        for config in site.configs:
            place = config.place("resource.exclude")
            yield from _unknown_names(config.excluded, place, machine, config.withheld or ())
            yield from _unknown_in_outages(config.where, config.outages, machine)
        for where, outages in site.outages:
            yield from _unknown_in_outages(where, outages, machine)


# --- helpers --------------------------------------------------------------------------------------


def _pairs(site: SiteFiles) -> Iterator[tuple[StatedMachine, StatedMachine]]:
    """Yield the first description with each other one."""
    for other in site.machines[1:]:
        yield site.machines[0], other


def _nodes(site: SiteFiles, machine: StatedMachine) -> list[StatedNode]:
    """Return the nodes of a description but those that a configuration excludes: a graph may lack them."""
    without = site.excluded_hosts
    return [node for node in machine.nodes if node.host not in without]


def _hosts(site: SiteFiles, machine: StatedMachine) -> set[str]:
    return {node.host for node in _nodes(site, machine)}


def _common(first: StatedMachine, other: StatedMachine) -> Iterator[tuple[StatedNode, StatedNode]]:
    """Yield the nodes of each host that both descriptions have."""
    for node in other.by_host.values():
        if node.host in first.by_host:
            yield first.by_host[node.host], node


def _compared(first: StatedMachine, other: StatedMachine) -> list[str]:
    counted = [kind for kind in COUNTED if kind in first.totals or kind in other.totals]
    if R in (first.kind, other.kind):  # R has numbers of ids, and no units
        return counted
    return counted + [kind for kind in first.totals if kind in other.totals and kind not in COUNTED]


def _properties(site: SiteFiles, *, missing: bool) -> Iterator[SiteFault]:
    for first, other in _pairs(site):
        wrong: dict[str, list[str]] = defaultdict(list)
        for theirs, mine in _common(first, other):
            odd = theirs.properties - mine.properties if missing else mine.properties - theirs.properties
            for name in sorted(odd):
                wrong[name].append(mine.host)
        for name, names in wrong.items():
            verb, has = ("lacks", "has") if missing else ("has", "lacks")
            text = f"{verb} the property {name} on {listed(names)}, which {first.where} {has}"
            yield SiteFault(other.where, text)


def _unknown_names(
    text: str, place: str, machine: StatedMachine, withheld: tuple[str, ...] = ()
) -> Iterator[SiteFault]:
    """Yield the hosts or ranks of a text that neither the machine has nor the hosts `withheld` from it."""
    try:
        ranks, names = ranks_named(text), hosts_named(text, machine)
    except FormatError as error:
        yield SiteFault(place, error.message)
        return
    if ranks is not None:
        if withheld:  # Flux counts ranks with them
            ranks -= Idset.from_range(0, len(machine.nodes) + len(withheld) - 1)
        yield from _unknown_ranks(ranks, place, machine)
        return
    odd = [name for name in names if name not in machine.by_host and name not in withheld]
    if odd:
        meant = did_you_mean(odd[0], machine.by_host, cutoff=0.8) if len(odd) == 1 else ""
        yield SiteFault(place, f"{machine.where} has no {listed(odd)}{meant}")


def _unknown_in_outages(where: str, outages: Iterable[Outage], machine: StatedMachine) -> Iterator[SiteFault]:
    for number, outage in enumerate(outages):
        yield from _unknown_ranks(outage.ranks, f"{where}: outages[{number}].ranks", machine)
        yield from _unknown_names(outage.hosts, f"{where}: outages[{number}].hosts", machine)


def _unknown_ranks(ranks: Idset, place: str, machine: StatedMachine) -> Iterator[SiteFault]:
    known = Idset.from_ids(machine.cluster.index.ranks.tolist())
    if odd := ranks - known:
        yield SiteFault(place, f"{machine.where} has no rank {odd}")


def listed(names: Iterable[str]) -> str:
    """Return hosts, each once, as a hostlist in the order of their numbers; a long one is cut short."""
    return clip(encode_hosts(sorted(set(names), key=_by_number)), MOST_CHARACTERS)


def _by_number(host: str) -> tuple[str, int]:
    name, number = split_name(host)
    return name, -1 if number is None else number
