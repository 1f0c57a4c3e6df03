"""`PoolState`: the resources of a Flux instance and the jobs on them, matched by simsched.

It has the operations of a resource pool of flux-core's Python scheduler framework (`flux.resource`) on plain
values: R and jobspecs are documents (RFC 20, 14 and 25), jobs are numbers, times are seconds since the epoch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import RequestError, SimschedError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec, as_jobspec
from simsched.formats.rfc.idset import Idset
from simsched.graph.cluster import Cluster
from simsched.match.matcher import Matcher
from simsched.match.outcome import Infeasible, Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALL = "all"
EMPTY: dict[str, Any] = {"version": 1, "execution": {"R_lite": [], "nodelist": []}}


class NeverFitsError(Exception):
    """A request that can never be met here."""


class NotNowError(Exception):
    """A request that cannot be met at present."""


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """A request of a job.

    Attributes
    ----------
    jobspec : the document, for schedulers that read attributes of it.
    duration : requested seconds; 0 without a limit.
    compiled : the same as a value.
    """

    jobspec: Mapping[str, Any]
    duration: float
    compiled: Jobspec


def read_request(jobspec: Mapping[str, Any]) -> PoolRequest:
    """Return the request of a jobspec; FormatError if it is not a jobspec."""
    compiled = as_jobspec(jobspec)
    return PoolRequest(jobspec, float(compiled.duration or 0), compiled)


class PoolState:
    """The resources of R, up or down, and the jobs that hold them.

    Parameters
    ----------
    document : R as a document or its JSON; None: no resources.
    policy, rules : the match policy and the dialect, as for `Matcher`.

    The graph is built when it is first needed: a scheduler also makes pools of the R of each job.
    """

    def __init__(
        self, document: Mapping[str, Any] | str | None, *, policy: str = "first", rules: str = "rfc14"
    ) -> None:
        found = json.loads(document) if isinstance(document, str) else document
        self.document: Mapping[str, Any] = EMPTY if found is None else found
        self._policy, self._rules = policy, rules
        self._matcher: Matcher | None = None
        self._ids: dict[int, int] = {}
        self.ends: dict[int, float] = {}
        """Job → its expected end, 0 if it is not known."""

    @property
    def resources(self) -> ResourceSet:
        """All resources, up or down, held or free."""
        return ResourceSet.from_dict(dict(self.document))

    @property
    def matcher(self) -> Matcher:
        """The matcher, made on first use; errors as of `Cluster` for an R that describes no cluster."""
        if self._matcher is None:
            from simsched.graph.build.cluster_files import graph_from_document

            graph = graph_from_document(dict(self.document), name="flux", where="R")
            self._matcher = Matcher(Cluster(graph, name="flux"), self._policy, self._rules)
        return self._matcher

    def copy(self) -> PoolState:
        """Return an independent state, for simulations; the graph is shared."""
        made = PoolState(self.document, policy=self._policy, rules=self._rules)
        made._matcher = None if self._matcher is None else self._matcher.copy()
        made._ids, made.ends = dict(self._ids), dict(self.ends)
        return made

    # -- status -----------------------------------------------------------------------------------

    def set_status(self, ids: str, *, up: bool) -> None:
        """Mark ranks (an idset, or ``all``) up or down; ranks that are not here are passed over."""
        if not self._is_empty:
            known = self._here(ids)
            if known:
                self.matcher.set_status("up" if up else "down", ranks=Idset.from_ids(known))

    def remove(self, ranks: Iterable[int]) -> None:
        """Remove ranks for good; what jobs hold on them is gone."""
        wanted = ranks if isinstance(ranks, range | Idset) else set(ranks)
        gone = {rank for rank in self._here(ALL) if rank in wanted}
        kept = [rank for rank in self._here(ALL) if rank not in gone]
        if not gone:
            return
        down = set(self._down()) - gone
        held = {job: self.held(job) for job in self._ids}
        self.document = self._without(gone, kept)
        self._matcher, self._ids = None, {}
        for job, granted in held.items():
            left = Idset.from_ids([rank for rank in granted.ranks if rank not in gone])
            if left:
                self._ids[job] = self.matcher.adopt(granted.shard(left))
            else:
                self.ends.pop(job, None)
        if down:
            self.set_status(str(Idset.from_ids(sorted(down))), up=False)

    def _without(self, gone: set[int], kept: list[int]) -> Mapping[str, Any]:
        """Return R without some ranks; its topology loses them too."""
        if not kept:
            return EMPTY
        scheduling = self.document.get("scheduling")
        if not scheduling:
            return self.resources.shard(Idset.from_ids(kept)).to_dict()
        from simsched.graph.edit import remove_nodes

        form = "treepool" if scheduling.get("writer") == "TreePool" else "r+jgf"
        return remove_nodes(self.matcher.cluster, Idset.from_ids(sorted(gone))).to_dict(form)

    def _here(self, ids: str) -> list[int]:
        here = self.resources.ranks
        if ids == ALL:
            return list(here)
        return list(here & Idset.parse(ids, where="ranks"))

    def _down(self) -> list[int]:
        if self._is_empty or self._matcher is None:
            return []
        index = self.matcher.index
        return [int(rank) for rank in index.ranks[~self.matcher.available.up]]

    @property
    def _is_empty(self) -> bool:
        return self.resources.is_empty

    # -- jobs -------------------------------------------------------------------------------------

    def check(self, request: PoolRequest) -> None:
        """Raise NeverFitsError with the reasons if a request can never be met here, up and idle."""
        if self._is_empty:
            raise NeverFitsError("this instance has no resources")
        try:
            answer = self.matcher.satisfiable(request.compiled)
        except RequestError as error:
            raise NeverFitsError(str(error)) from error
        if isinstance(answer, Infeasible):
            raise NeverFitsError(_one_line(answer.reasons))

    def allocate(self, job: int, request: PoolRequest, end: float) -> dict[str, Any]:
        """Return R for a job, which holds it from now on until it is freed.

        Raises
        ------
        NotNowError
            With the reasons, if it does not fit now.
        NeverFitsError
            As `check`.
        """
        if job in self._ids:
            raise ValueError(f"job {job} has resources already")
        if self._is_empty:
            self.check(request)
        try:
            answer = self.matcher.match(request.compiled)
        except RequestError as error:
            raise NeverFitsError(str(error)) from error
        if isinstance(answer, Infeasible):
            raise NeverFitsError(_one_line(answer.reasons))
        if isinstance(answer, Undecided) or not answer:
            raise NotNowError(_one_line(answer.reasons))
        assert answer.R is not None
        assert isinstance(answer.id, int)
        self._ids[job], self.ends[job] = answer.id, end
        return answer.R.to_dict()

    def adopt(self, job: int, document: Mapping[str, Any], end: float) -> None:
        """Let a job hold what its R names, as it runs already.

        ValueError if a rank or unit of it is not here, or is held by another job.
        """
        granted = ResourceSet.from_dict(dict(document))
        try:
            self._ids[job] = self.matcher.adopt(granted)
        except SimschedError as error:
            raise ValueError(f"the allocation of job {job} is not in this pool: {error}") from error
        self.ends[job] = end

    def free(self, job: int, document: Mapping[str, Any] | None, *, final: bool) -> None:
        """Free the resources of a job: on the ranks of an R, or all.

        ValueError if the job does not hold the ranks, or holds others too though this is the `final` part.
        """
        if job not in self._ids:
            return
        if document is not None:
            freed, held = _ranks_of(document), self.held(job).ranks
            extra = [rank for rank in freed if rank not in held]
            if extra:
                raise ValueError(f"job {job} does not hold rank {Idset.from_ids(extra)}")
            if not final and len(freed) < len(held):
                self.matcher.release(self._ids[job], freed)
                return
            if len(freed) < len(held):
                raise ValueError(f"job {job} holds {held}, and its final part is {freed}")
        self.matcher.release(self._ids.pop(job))
        self.ends.pop(job, None)

    def held(self, job: int) -> ResourceSet:
        """Return the allocation of a job."""
        return self.matcher.allocation(self._ids[job])

    # -- documents --------------------------------------------------------------------------------

    def allocated(self) -> dict[str, Any]:
        """Return R of everything that jobs hold."""
        found: ResourceSet | None = None
        for job in self._ids:
            mine = self.held(job)
            found = mine if found is None else found.union(mine)
        return EMPTY if found is None else _bare(found)

    def down(self) -> dict[str, Any]:
        """Return R of the ranks that are down."""
        down = self._down()
        return _bare(self.resources.shard(Idset.from_ids(down))) if down else EMPTY


def _ranks_of(document: Mapping[str, Any]) -> Idset:
    """Return the ranks of R; a shard may come without its hosts."""
    ranks = [rank for entry in document["execution"]["R_lite"] for rank in Idset.parse(str(entry["rank"]))]
    return Idset.from_ids(sorted(ranks))


def _bare(found: ResourceSet) -> dict[str, Any]:
    """Return the document of a set of resources without what belongs to one allocation."""
    document = found.to_dict()
    document["execution"].pop("nslots", None)
    document.pop("scheduling", None)
    return document


def _one_line(reasons: Any) -> str:
    """Return reasons as one line, for the note of an exception: the first funnel, and what would fit."""
    parts = [reasons.short(), *(change.sentence for change in reasons.changes[:2])]
    return "; ".join(part for part in parts if part) or "the request cannot be met"
