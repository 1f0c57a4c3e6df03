"""The matcher as people use it: one cluster, one state, questions and claims by jobspec."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError
from simsched.match.allocate import Availability
from simsched.match.choose import select
from simsched.match.emit import to_rset
from simsched.match.explain import explain
from simsched.match.outcome import Busy, Infeasible, Matched, Outcome
from simsched.match.policy import find_policy
from simsched.match.request import compile_request
from simsched.match.rules import find_rules

if TYPE_CHECKING:
    from simsched.formats.jobspec import Jobspec
    from simsched.formats.rset import ResourceSet
    from simsched.graph.cluster import Cluster
    from simsched.match.request import Request
    from simsched.match.selection import Selection


class Matcher:
    """Matches jobspecs against one cluster and keeps what they were given.

    Parameters
    ----------
    cluster : the cluster.
    policy : name of the match policy.
    rules : name of the dialect.
    seed : seed of the generator for policies that draw lots.

    Raises
    ------
    ConfigError
        for an unknown policy or dialect.

    >>> import simsched as ss
    >>> matcher = ss.Matcher(ss.load_cluster("tiny"), policy="lonode")
    >>> got = matcher.match(ss.Jobspec.from_shape("slot=2/core=2"))
    >>> bool(got), got.R.to_dict()["execution"]["R_lite"]
    (True, [{'rank': '0', 'children': {'core': '0-3'}}])
    >>> matcher.release(got.id)
    """

    def __init__(
        self, cluster: Cluster, policy: str = "first", rules: str = "rfc14", *, seed: int = 0
    ) -> None:
        self.cluster = cluster
        self.index = cluster.index
        self.policy = find_policy(policy)
        self.rules = find_rules(rules)
        self.available = Availability(self.index)
        self._rng = np.random.default_rng(seed)
        self._claims: dict[int, Selection] = {}
        self._ids = count(1)

    def match(self, jobspec: Jobspec, *, starttime: float | None = None) -> Outcome:
        """Claim what the jobspec asks for, or say why it cannot be had (M9: all or nothing).

        `starttime` (seconds since the epoch) and the jobspec's duration become R's times.

        Raises
        ------
        RequestError
            if the jobspec cannot mean anything on this cluster.
        """
        request = self._compile(jobspec)
        selection = select(request, self.available, self.policy, self._rng)
        if selection is None:
            feasible = self._feasible(request)
            return Busy(reasons=explain(request, self.available)) if feasible else feasible
        self.available.claim(selection)
        id_ = next(self._ids)
        self._claims[id_] = selection
        return Matched(id=id_, R=self._rset(selection, jobspec, starttime), selection=selection)

    def satisfiable(self, jobspec: Jobspec) -> Outcome:
        """Say whether the jobspec can ever match here: on the idle machine, all of it up (M11)."""
        return self._feasible(self._compile(jobspec))

    def feasible_now(self, jobspec: Jobspec) -> Outcome:
        """Say whether the jobspec would match in this state, without claiming anything."""
        request = self._compile(jobspec)
        selection = select(request, self.available, self.policy, self._rng)
        if selection is not None:
            return Matched(R=self._rset(selection, jobspec, None), selection=selection)
        never = self._feasible(request)
        return Busy(reasons=explain(request, self.available)) if never else never

    def release(self, id_: int) -> None:
        """Give back what `match` claimed under this id.

        Raises
        ------
        ConfigError
            if nothing is claimed under it.
        """
        selection = self._claims.pop(id_, None)
        if selection is None:
            raise ConfigError(f"nothing is allocated under id {id_}")
        self.available.release(selection)

    @property
    def allocations(self) -> dict[int, Selection]:
        """What is claimed now, by id."""
        return dict(self._claims)

    def _compile(self, jobspec: Jobspec) -> Request:
        return compile_request(jobspec, self.index, self.rules, alone=self.policy.whole_nodes)

    def _feasible(self, request: Request) -> Outcome:
        idle = self._idle()
        selection = select(request, idle, self.policy, self._rng)
        if selection is None:
            return Infeasible(reasons=explain(request, idle))
        return Matched(R=to_rset(selection, self.index), selection=selection)

    def _idle(self) -> Availability:
        idle: Availability | None = self.index.memo.get("idle")
        if idle is None:
            idle = self.index.memo["idle"] = Availability(self.index, ignore_status=True)
        return idle

    def _rset(self, selection: Selection, jobspec: Jobspec, starttime: float | None) -> ResourceSet:
        end = starttime + jobspec.duration if starttime is not None and jobspec.duration else None
        return to_rset(selection, self.index, starttime=starttime, expiration=end)

    def _check(self) -> None:
        """Assert that the state is what the claims add up to."""
        self.available._check()
        for name, pool in self.index.pool_types.items():
            held = np.zeros(len(pool), dtype=np.int64)
            for selection in self._claims.values():
                for draw in selection.held:
                    if draw.type == name:
                        held[draw.banks] += draw.units
            if not any(selection.shared for selection in self._claims.values()):
                assert (self.available.taken(name) == held).all(), name


def feasible(cluster: Cluster, jobspec: Jobspec, *, now: bool = False, policy: str = "first") -> Outcome:
    """Say whether a jobspec can match on a cluster: ever, or with `now` in its present up/down state."""
    matcher = Matcher(cluster, policy=policy)
    return matcher.feasible_now(jobspec) if now else matcher.satisfiable(jobspec)
