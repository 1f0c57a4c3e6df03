"""Execution targets named by people and documents: by rank, by host, or by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.arguments import check_whole, wrong
from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.graph.index.index import Index


def targets_of_ranks(index: Index, ranks: Idset | str | Iterable[int]) -> list[int]:
    """Return the ordinals of the targets with these ranks.

    Raises
    ------
    ConfigError
        for a rank that the cluster does not have.
    """
    known = index.ordinal_of_rank
    found = []
    for rank in _idset(ranks):
        ordinal = known.get(rank)
        if ordinal is None:
            expected = f"ranks {Idset.from_ids(known)}" if known else None
            raise ConfigError(f"the cluster has no rank {rank}", expected=expected)
        found.append(ordinal)
    return found


def targets_of_host(index: Index, host: str) -> list[int]:
    """Return the ordinals of the targets on one host, mostly one.

    Raises
    ------
    ConfigError
        for a host that the cluster does not have.
    """
    found = index.ordinal_of_host.get(host)
    if not found:
        raise ConfigError(f"the cluster has no host {host!r}{did_you_mean(host, index.ordinal_of_host)}")
    return found


def targets_of(index: Index, ranks: Idset | str | Iterable[int], hosts: str = "") -> list[int]:
    """Return the ordinals of the targets with these ranks or on these hosts, each once; errors as above."""
    found = targets_of_ranks(index, ranks)
    for host in Hostlist.parse(hosts) if hosts else ():
        found += targets_of_host(index, host)
    return list(dict.fromkeys(found))


def agreed_targets(index: Index, ranks: Idset | None, hosts: Hostlist | None) -> list[int]:
    """Return the ordinals of the targets with these ranks or, without ranks, on these hosts.

    Raises
    ------
    ConfigError
        for ranks and hosts that the cluster does not have or that are not the same nodes, and for a
        host with several targets that is given without ranks.
    """
    if ranks is None:
        return [_only_target(index, host) for host in hosts or ()]
    found = targets_of_ranks(index, ranks)
    if hosts is not None:
        names = [index.hosts[target] for target in found]
        if len(hosts) != len(found):
            raise ConfigError(f"{len(hosts)} hosts for {len(found)} ranks", expected="one host per rank")
        if sorted(hosts) != sorted(names):
            raise ConfigError(f"ranks {ranks} are {encode_hosts(names)}, not {hosts}")
    return found


def _only_target(index: Index, host: str) -> int:
    found = targets_of_host(index, host)
    if len(found) > 1:
        raise ConfigError(f"{len(found)} targets of the cluster are on host {host!r}", expected="their ranks")
    return found[0]


def _idset(ranks: Idset | str | Iterable[int]) -> Idset:
    if isinstance(ranks, Idset):
        return ranks
    if isinstance(ranks, str):
        return Idset.parse(ranks)
    try:
        found = list(ranks)
    except TypeError:
        raise wrong("ranks", ranks, "an idset, or numbers") from None
    for rank in found:
        check_whole("ranks", rank)
    return Idset.from_ids(found)
