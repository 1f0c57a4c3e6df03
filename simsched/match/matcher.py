"""The matcher: one cluster in one state, which answers jobspecs and keeps the claims on it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from simsched.arguments import check, check_real, check_whole, options_named
from simsched.errors import ConfigError, FormatError, SimschedError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import as_jobspec
from simsched.formats.rfc.idset import Idset
from simsched.graph.cluster import as_cluster
from simsched.match.emit import to_rset
from simsched.match.explain.explanation import explain_later
from simsched.match.explain.occupancy import Occupancy
from simsched.match.explain.reasons import Reasons
from simsched.match.named_targets import targets_of
from simsched.match.outcome import Busy, Infeasible, Matched, Outcome, Undecided
from simsched.match.policies.policy import CandidateOrder, MatchPolicy, find_policy, is_found_by_name
from simsched.match.requests.compile import compile_request
from simsched.match.requests.dialect import find_dialect
from simsched.match.search.exact import SearchLimitError
from simsched.match.search.select import can_match, could_fit, select
from simsched.match.state import selection_codec as state
from simsched.match.state.availability import Availability, idle_cluster
from simsched.match.state.selection import Selection, SplitSelection, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.cluster import ClusterLike
    from simsched.match.requests.dialect import Dialect
    from simsched.match.requests.request import Request

__all__ = ["Matcher", "could_fit", "select"]

STATUSES = ("up", "down", "drained")


class Matcher:
    """Matches jobspecs against one cluster and keeps their allocations.

    Parameters
    ----------
    cluster : a cluster, a networkx graph, a file or a bundled name.
    policy : a match policy or its name.
    rules : name of the dialect.
    seed : seed of the generator for policies that choose at random.

    Attributes
    ----------
    available : the present state.  Change it through the matcher only.

    Raises
    ------
    ConfigError
        for an unknown policy or dialect.

    >>> import simsched as ss
    >>> matcher = ss.Matcher(ss.load_cluster("tiny"), policy="lonode")
    >>> answer = matcher.match(ss.Jobspec.from_shape("slot=2/core=2"))
    >>> bool(answer), answer.R.to_dict()["execution"]["R_lite"]
    (True, [{'rank': '0', 'children': {'core': '0-3'}}])
    >>> print(matcher.satisfiable(ss.Jobspec.from_shape("slot=10/core=2")).reasons)
    slot: 10 needed, 8 available
      node: 4 exist (hold 8) → 4 fit core=2 (hold 8)
      limited by core
    would fit with: slot=8 instead of 10
    would fit with: core=1 instead of 2 (slot/core)
    >>> matcher.release(answer.id)
    """

    @options_named
    def __init__(
        self,
        cluster: ClusterLike,
        policy: str | MatchPolicy | CandidateOrder = "first",
        rules: str = "rfc14",
        *,
        seed: int = 0,
    ) -> None:
        self.cluster = as_cluster(cluster)
        self.index = self.cluster.index
        self.policy = find_policy(policy)
        self.dialect = find_dialect(rules)
        self.available = Availability(self.index)
        check_whole("seed", seed)
        self._rng = np.random.default_rng(seed)
        self._claims: dict[int | str, Selection] = {}
        self._ends: dict[int | str, float] = {}
        self._next = 1
        self._moment: weakref.ref[_Moment] | None = None

    # --- questions -----------------------------------------------------------------------

    def __repr__(self) -> str:
        held = len(self._claims)
        return f"<Matcher on {self.cluster.name!r}: policy {self.policy.name}, {held} allocations>"

    def _repr_html_(self) -> str:
        """Return the units of the machine, and how many nodes are idle, as a table for a notebook."""
        from simsched.text_table import html_table

        idle = int(self.available.idle_targets().sum())
        rows = [(kind, f"{total:,}") for kind, total in self.index.totals.items()]
        return html_table(repr(self)[1:-1], [("idle nodes", f"{idle:,}"), *rows])

    def satisfiable(self, jobspec: Jobspec, *, status: bool = False) -> Outcome:
        """Whether the jobspec can ever match here: with nothing claimed and everything up (M11).

        With `status`, targets that are down now stay down.

        Raises
        ------
        RequestError
            if the jobspec has no meaning on this cluster.
        """
        jobspec = as_jobspec(jobspec)
        request = self._compile(jobspec)
        idle = self._idle_but_down() if status else idle_cluster(self.index)
        try:
            possible = can_match(request, idle)
        except SearchLimitError as error:
            return _undecided(error)
        if not possible:
            return Infeasible(reasons=explain_later(request, lambda: Occupancy(idle, {}, {})))
        return Matched(select=lambda: self._selected(request, idle), emit=self._emitter(jobspec, None))

    def feasible_now(self, jobspec: Jobspec) -> Outcome:
        """Whether the jobspec would match in this state, without claiming anything."""
        jobspec = as_jobspec(jobspec)
        request = self._compile(jobspec)
        found = self._answer(request, self.available, jobspec)
        return found if found is not None else self._refused(request, jobspec)

    # --- changes -------------------------------------------------------------------------

    def match(self, jobspec: Jobspec, *, starttime: float | None = None) -> Outcome:
        """Allocate the jobspec's request as a whole (M9), or return the reasons against it.

        `starttime` (seconds) and the jobspec's duration become R's times, and give the expected end
        of the allocation.  A resource outside of a slot is shared (M4): a second ``node=4`` gets the same
        nodes, a second ``slot=4/node`` others.

        Raises
        ------
        RequestError
            if the jobspec has no meaning on this cluster.
        """
        jobspec = as_jobspec(jobspec)
        if starttime is not None:
            check_real("starttime", starttime)
        request = self._compile(jobspec)
        try:
            selection = select(request, self.available, self.policy, self._rng)
        except SearchLimitError as error:
            return _undecided(error)
        if selection is None:
            return self._refused(request, jobspec)
        return self._claimed(selection, jobspec, starttime)

    def match_or_reserve(
        self, jobspec: Jobspec, *, now: float, ends: Mapping[int | str, float] | None = None
    ) -> Outcome:
        """Match the jobspec now, or find its earliest start by the expected ends of the allocations.

        `ends` are expected ends by id (seconds), beside those that follow from start times and
        durations.  An allocation without one is expected to stay.  A `Busy` answer has the earliest
        `start` and the R of that time; nothing is claimed for it.  (Queue policies keep reservations.)
        """
        jobspec = as_jobspec(jobspec)
        check_real("now", now)
        for id_, end in _ends_of(ends).items():
            check_real(f"ends[{id_!r}]", end)
        found = self.match(jobspec, starttime=now)
        if not isinstance(found, Busy):
            return found
        known = {**self._ends, **_ends_of(ends)}
        request = self._compile(jobspec)
        state = Occupancy(self.available, self._claims, known)
        ended = state.to_wait_for(lambda later: bool(self._answer(request, later, jobspec)))
        if not ended:
            return found
        start = max(now, known[ended[-1]])
        answer = self._answer(request, state.after(ended), jobspec, start)
        if answer is None:
            return found
        return Busy(start=start, reasons=found.reasons, select=answer.select, emit=answer.emit)

    def adopt(self, granted: ResourceSet, *, end: float | None = None) -> int:
        """Claim the R of a running job, on targets up or down; return the id of the allocation.

        Errors as `ClaimsFromR.exact`.  `end` is the expected end, in seconds.
        """
        from simsched.match.claims_from_r import ClaimsFromR

        check("granted", granted, ResourceSet, "a resource set")
        down = np.flatnonzero(~self.available.up)
        claims = ClaimsFromR(self.index, {str(id_): claim for id_, claim in self._claims.items()})
        selection = claims.exact(str(self._next), granted)
        self._settle()
        self.available.set_status(down, up=True)  # the job started when they were up
        self.available.claim(selection)
        self.available.set_status(down, up=False)
        id_ = self._next
        self._next += 1
        self._claims[id_] = selection
        if end is not None:
            self._ends[id_] = end
        return id_

    def release(
        self, id_: int | str, part: ResourceSet | Idset | str | Iterable[int] | None = None
    ) -> ResourceSet | None:
        """Release the allocation of this id, or with `part` the part of it on some ranks.

        `part` is an idset of ranks, or an R (a shard) whose ranks count.  Returns the R that stays
        allocated; None if nothing stays.

        Raises
        ------
        ConfigError
            if there is no allocation of this id, or none on these ranks.
        """
        self._look_up(id_)
        self._settle()
        parts = self._parts(id_, part)
        self.available.release(parts.given)
        if parts.kept is None:
            del self._claims[id_]
            self._ends.pop(id_, None)
            return None
        self._claims[id_] = parts.kept
        return to_rset(parts.kept, self.index)

    def set_status(self, status: str, *, ranks: Idset | str = "", hosts: str = "") -> int:
        """Mark execution targets ``up``, ``down`` or ``drained``; allocations on them stay.

        Returns how many targets changed.

        Raises
        ------
        ConfigError
            for another status, or ranks and hosts that the cluster does not have.
        """
        if status not in STATUSES:
            raise ConfigError(f"unknown status {status!r}", expected=f"one of {', '.join(STATUSES)}")
        targets = np.array(targets_of(self.index, ranks, hosts), dtype=np.int64)
        self._settle()
        changing = targets[self.available.up[targets] != (status == "up")]
        self.available.set_status(changing, up=status == "up")
        return len(changing)

    # --- allocations ---------------------------------------------------------------------

    @property
    def allocations(self) -> dict[int | str, Selection]:
        """The allocations by id, as selections."""
        return dict(self._claims)

    @property
    def ends(self) -> dict[int | str, float]:
        """The expected ends of the allocations by id (seconds), as far as they are known."""
        return dict(self._ends)

    def allocation(self, id_: int | str) -> ResourceSet:
        """Return the R of an allocation.

        Raises
        ------
        ConfigError
            if there is no allocation of this id.
        """
        self._look_up(id_)
        return to_rset(self._claims[id_], self.index)

    def copy(self) -> Matcher:
        """Return an independent matcher in the same state, for what-if; the cluster is shared."""
        twin: Matcher = object.__new__(Matcher)
        vars(twin).update(
            vars(self),
            available=self.available.copy(),
            _rng=deepcopy(self._rng),
            _claims=self._claims.copy(),
            _ends=self._ends.copy(),
            _moment=None,
        )
        return twin

    def save(self) -> dict[str, Any]:
        """Return the state as JSON data, for `restore`.

        A policy that cannot be found by its name (a `MatchPolicy` object of the caller) is not saved.
        """
        down = np.flatnonzero(~self.available.up)
        claims = []
        for id_, selection in self._claims.items():
            claim = {"id": id_, **state.claim_to_dict(selection)}
            claims.append({**claim, "end": self._ends[id_]} if id_ in self._ends else claim)
        return {
            "format": state.FORMAT,
            "cluster": state.cluster_facts(self.index),
            "policy": self.policy.name if is_found_by_name(self.policy) else None,
            "rules": self.dialect.name,
            "next": self._next,
            "generator": state.generator_to_dict(self._rng),
            "down": str(Idset.from_ids(down.tolist())),
            "allocations": claims,
        }

    @classmethod
    def restore(
        cls, cluster: ClusterLike, saved: Mapping[str, Any], *, policy: str | MatchPolicy | None = None
    ) -> Matcher:
        """Return a matcher in the state that `save` wrote, with its policy or with another `policy`.

        Raises
        ------
        FormatError
            if it is not a saved state, or that of another cluster, or if `policy` is missing for a
            state that was saved without one.
        """
        cluster = as_cluster(cluster)
        try:
            if saved["format"] != state.FORMAT:
                raise FormatError(
                    f"the state has format {saved['format']}", expected=f"format {state.FORMAT}"
                )
            if saved["cluster"] != state.cluster_facts(cluster.index):
                raise FormatError("the state was saved on another cluster", where=cluster.name)
            if policy is None and saved["policy"] is None:
                raise FormatError("the state was saved without its match policy", expected="policy=…")
            matcher = cls(cluster, saved["policy"] if policy is None else policy, saved["rules"])
            claims, ends = _claim_saved(saved, matcher.available, matcher.dialect)
            generator = state.generator_from_dict(saved["generator"])
            vars(matcher).update(_claims=claims, _ends=ends, _rng=generator, _next=int(saved["next"]))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise FormatError(f"this is not a saved state of a matcher: {error!r}") from None
        return matcher

    # --- inner workings ------------------------------------------------------------------

    def _compile(self, jobspec: Jobspec) -> Request:
        return compile_request(jobspec, self.index, self.dialect, alone=self.policy.whole_nodes)

    def _answer(
        self, request: Request, avail: Availability, jobspec: Jobspec, start: float | None = None
    ) -> Outcome | None:
        """Answer in a state without a claim: `Matched`, `Undecided`, or None if the request does not fit."""
        try:
            selection = self._selected(request, avail)
        except SearchLimitError as error:
            return _undecided(error)
        if selection is None:
            return None
        return Matched(select=lambda: selection, emit=self._emitter(jobspec, start))

    def _selected(self, request: Request, avail: Availability) -> Selection | None:
        """Select without a claim; the generator stays in its state."""
        may_draw = self.policy.order is not None and not self.policy.static
        return select(request, avail, self.policy, deepcopy(self._rng) if may_draw else None)

    def _refused(self, request: Request, jobspec: Jobspec) -> Outcome:
        """Return the answer for a request that does not match now: `Busy`, or never."""
        ever = self.satisfiable(jobspec)
        if not ever:
            return ever
        moment = self._present()
        return Busy(reasons=explain_later(request, lambda: moment.state))

    def _claimed(self, selection: Selection, jobspec: Jobspec, starttime: float | None) -> Outcome:
        self._settle()
        self.available.claim(selection)
        id_ = self._next
        self._next += 1
        self._claims[id_] = selection
        if starttime is not None and jobspec.duration is not None:
            self._ends[id_] = starttime + jobspec.duration
        return Matched(
            id=id_, start=starttime, select=lambda: selection, emit=self._emitter(jobspec, starttime)
        )

    def _emitter(self, jobspec: Jobspec, start: float | None) -> Callable[[Selection], ResourceSet]:
        """Return a function from selection to R; R is costly, so it is made when it is first read."""
        end = start + jobspec.duration if start is not None and jobspec.duration else None
        return lambda selection: to_rset(selection, self.index, starttime=start, expiration=end)

    def _idle_but_down(self) -> Availability:
        """Return a state with nothing claimed, in which the targets that are down now are down."""
        found = idle_cluster(self.index).copy()
        found.set_status(np.flatnonzero(~self.available.up), up=False)
        return found

    def _look_up(self, id_: int | str) -> None:
        check("id_", id_, int | str, "the id of an allocation")
        if id_ not in self._claims:
            raise ConfigError(f"there is no allocation with id {id_}")

    def _parts(
        self, id_: int | str, part: ResourceSet | Idset | str | Iterable[int] | None
    ) -> SplitSelection:
        selection = self._claims[id_]
        if part is None:
            return SplitSelection(selection, None)
        targets = targets_of(self.index, part.ranks if isinstance(part, ResourceSet) else part)
        missing = sorted(set(targets) - set(selection.targets.tolist()))
        if missing or not targets:
            if not missing:
                raise ConfigError(
                    f"there are no ranks of allocation {id_} to release", expected="ranks of its R"
                )
            ranks = Idset.from_ids(self.index.ranks[missing].tolist())
            raise ConfigError(f"allocation {id_} is not on rank {ranks}", expected="ranks of its R")
        return split(selection, np.array(targets, dtype=np.int64), self.index)

    # --- reasons that are read later -------------------------------------------------------

    def _present(self) -> _Moment:
        """Return the present state, for reasons that are worked out when they are first read.

        The state is borrowed, not copied: most reasons are never read.  Before the next change,
        `_settle` gives a moment that is still referred to a copy of its own.
        """
        moment = self._moment() if self._moment is not None else None
        if moment is None:
            moment = _Moment(Occupancy(self.available, self._claims, self._ends))
            self._moment = weakref.ref(moment)
        return moment

    def _settle(self) -> None:
        """Before a change: give reasons that were not read yet a copy of the present state."""
        moment = self._moment() if self._moment is not None else None
        if moment is not None:
            moment.state = Occupancy(self.available.copy(), self._claims.copy(), self._ends.copy())
        self._moment = None

    def _check(self) -> None:
        """Assert that the state is the sum of the claims and statuses."""
        now = self.available
        now.check()
        fresh = Availability(self.index)
        fresh.set_status(np.flatnonzero(~fresh.up), up=True)
        for selection in self._claims.values():
            fresh.claim(selection)
        fresh.set_status(np.flatnonzero(~now.up), up=False)
        assert (fresh.up == now.up).all()
        assert (fresh.use == now.use).all()
        for name in self.index.pool_types:
            assert (fresh.free[name] == now.free[name]).all(), name
            if now.partial is not None and fresh.partial is not None:
                assert np.array_equal(
                    cast("Any", fresh.partial.get(name)), cast("Any", now.partial.get(name))
                )
        for name in self.index.vertex_types:
            assert (fresh.held[name] == now.held[name]).all(), name
            assert (fresh.shared[name] == now.shared[name]).all(), name
        assert fresh.sharers == now.sharers


def _claim_saved(
    saved: Mapping[str, Any], avail: Availability, dialect: Dialect
) -> tuple[dict[int | str, Selection], dict[int | str, float]]:
    """Claim the allocations of a saved state; return them, and their expected ends, by id.

    An allocation may be on a target that has gone down.  It was up when it was claimed, so everything
    is up until all are claimed.
    """
    claims: dict[int | str, Selection] = {}
    ends: dict[int | str, float] = {}
    avail.set_status(np.flatnonzero(~avail.up), up=True)
    for number, claim in enumerate(saved["allocations"]):
        where = f"allocations[{number}]"
        selection = state.claim_from_dict(claim, avail.index, dialect, where)
        try:
            avail.claim(selection)
            avail.check()
        except (AssertionError, ValueError):
            raise FormatError("it claims resources that do not exist or are taken", where=where) from None
        claims[claim["id"]] = selection
        if "end" in claim:
            ends[claim["id"]] = float(claim["end"])
    avail.set_status(np.array(Idset.parse(saved["down"]).expand(), dtype=np.int64), up=False)
    return claims, ends


class _Moment:
    """The state of one moment, borrowed from a matcher until it changes."""

    __slots__ = ("__weakref__", "state")

    def __init__(self, state: Occupancy) -> None:
        self.state = state


def _undecided(error: SimschedError) -> Undecided:
    return Undecided(reasons=Reasons(note=str(error)))


def _ends_of(ends: Mapping[int | str, float] | None) -> Mapping[int | str, float]:
    if ends is not None:
        check("ends", ends, Mapping, "id → the time of its end")
    return ends or {}
