"""Execution targets as people name them: by ranks and by hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.arguments import check_whole, wrong
from simsched.errors import ConfigError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.graph.index.index import Index


def targets_of(index: Index, ranks: Idset | str | Iterable[int], hosts: str = "") -> list[int]:
    """Return the ordinals of targets, by ranks and by names.

    Raises
    ------
    ConfigError
        for ranks and hosts that the cluster does not have.
    """
    found = []
    for rank in _idset(ranks):
        ordinal = index.ordinal_of_rank.get(rank)
        if ordinal is None:
            raise ConfigError(f"this cluster has no rank {rank}")
        found.append(ordinal)
    for host in Hostlist.parse(hosts) if hosts else ():
        if host not in index.ordinal_of_host:
            raise ConfigError(f"this cluster has no host {host!r}")
        found.extend(index.ordinal_of_host[host])
    return list(dict.fromkeys(found))


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
