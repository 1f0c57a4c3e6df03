"""`FluxPool`: the resource pool of a Python scheduler of flux-core (``pool-class=simsched.flux:Pool``).

It follows the interface of `flux.resource.ResourcePool` (flux-core 0.88), which wraps a
`ResourcePoolImplementation`.  The operations are in `pool_state`; this module turns them into the framework's
values and exceptions.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Mapping
from typing import Any

from flux.resource.ResourcePool import ResourcePool
from flux.resource.ResourcePoolImplementation import (
    InfeasibleRequest,
    InsufficientResources,
    ResourcePoolImplementation,
)

from simsched.errors import SimschedError
from simsched.flux.pool_state import NeverFitsError, NotNowError, PoolRequest, PoolState, read_request


def _plain(resources: Any) -> Mapping[str, Any]:
    """Return the R document of a pool, a set or a document."""
    found: Mapping[str, Any] = resources if isinstance(resources, Mapping) else resources.to_dict()
    return found


class MatcherPool(ResourcePoolImplementation):  # type: ignore[misc]  # a class without types
    """The implementation that `FluxPool` wraps; see `PoolState` for what its operations do."""

    version = 1
    name = "simsched"
    known_options = frozenset({"policy", "rules"})

    def __init__(self, state: PoolState, log: Any = None) -> None:
        self.state = state
        if log is not None:
            self.log = log

    # -- availability -----------------------------------------------------------------------------

    def mark_up(self, ids: str) -> None:
        """Mark ranks as up."""
        self.state.set_status(ids, up=True)
        self._bump()

    def mark_down(self, ids: str) -> None:
        """Mark ranks as down."""
        self.state.set_status(ids, up=False)
        self._bump()

    def remove_ranks(self, ranks: Any) -> None:
        """Remove ranks."""
        self.state.remove(int(rank) for rank in ranks)
        self._bump()

    # -- jobs -------------------------------------------------------------------------------------

    def register_alloc(self, jobid: int, R: Any) -> None:  # noqa: N803 (the framework's name)
        """Let a job that runs already hold its R; ValueError if that is not in this pool."""
        document = _plain(R)
        self.state.adopt(jobid, document, float(document["execution"].get("expiration") or 0.0))
        self._bump()

    def free(self, jobid: int, R: Any = None, final: bool = False) -> None:  # noqa: N803
        """Free the resources of a job, or the part of them that R names."""
        self.state.free(jobid, None if R is None else _plain(R), final=final)
        self._bump()

    def update_expiration(self, jobid: int, expiration: float) -> None:
        """Change the expected end of a job."""
        if jobid in self.state.ends:
            self.state.ends[jobid] = expiration
            self._bump()

    def job_end_times(self) -> list[tuple[int, float]]:
        """Return (job, expected end) of all jobs."""
        return list(self.state.ends.items())

    # -- scheduling -------------------------------------------------------------------------------

    def parse_resource_request(self, jobspec: Mapping[str, Any]) -> PoolRequest:
        """Return the request of a jobspec; ValueError if it is not one."""
        try:
            return read_request(jobspec)
        except SimschedError as error:
            raise ValueError(str(error)) from error

    def alloc(self, jobid: int, request: PoolRequest) -> MatcherPool:
        """Return the resources of a job as a pool; the framework's exceptions have our reasons."""
        end = time.time() + request.duration if request.duration > 0 else self.get_expiration()
        try:
            document = self.state.allocate(jobid, request, end)
        except NeverFitsError as error:
            raise InfeasibleRequest(str(error)) from error
        except NotNowError as error:
            raise InsufficientResources(str(error)) from error
        self._bump()
        return MatcherPool(PoolState(document), log=self.log)

    def check_feasibility(self, request: PoolRequest) -> None:
        """Raise InfeasibleRequest with our reasons if a request can never be met."""
        try:
            self.state.check(request)
        except NeverFitsError as error:
            raise InfeasibleRequest(str(error)) from error

    # -- copies -----------------------------------------------------------------------------------

    def copy(self) -> MatcherPool:
        """Return an independent pool in the same state, which does not log."""
        made = MatcherPool(self.state.copy())
        made.generation = self.generation
        return made

    def copy_allocated(self) -> Any:
        """Return the resources that jobs hold."""
        return _as_set(self.state.allocated())

    def copy_down(self) -> Any:
        """Return the ranks that are down."""
        return _as_set(self.state.down())

    def to_set(self) -> Any:
        """Return all resources."""
        return _as_set(self.state.document)

    # -- R ----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return R."""
        return dict(self.state.document)

    def encode(self) -> str:
        """Return R as JSON."""
        return json.dumps(self.to_dict())

    def dumps(self) -> str:
        """Return a short text, such as ``rank[0-1]/core[0-3]``."""
        return str(self.state.resources)

    def _time(self, name: str) -> float:
        return float(self.state.document["execution"].get(name) or 0.0)

    def _set_time(self, name: str, value: float) -> None:
        document = self.state.document
        self.state.document = {**document, "execution": {**document["execution"], name: float(value)}}

    def get_expiration(self) -> float:
        """Return when the resources expire, 0 for never."""
        return self._time("expiration")

    def set_expiration(self, expiration: float) -> None:
        """Set when the resources expire."""
        self._set_time("expiration", expiration)

    def get_starttime(self) -> float:
        """Return since when the resources are held."""
        return self._time("starttime")

    def set_starttime(self, starttime: float) -> None:
        """Set since when the resources are held."""
        self._set_time("starttime", starttime)

    # -- sets of resources: the framework's own sets do these -------------------------------------

    def nodelist(self) -> Any:
        """Return the hosts."""
        return self.to_set().nodelist()

    def ranks(self) -> Any:
        """Return the ranks."""
        return self.to_set().ranks()

    def get_properties(self) -> Any:
        """Return the properties of RFC 20."""
        return self.to_set().get_properties()

    def nnodes(self) -> int:
        """Return the number of ranks."""
        return len(self.state.resources.ranks)

    def count(self, name: str) -> int:
        """Return the units of a type."""
        return self.nnodes() if name == "node" else self.state.resources.count(name)

    def copy_ranks(self, ranks: Any) -> Any:
        """Return the resources on some ranks."""
        return self.to_set().copy_ranks(ranks)

    def union(self, rset: Any) -> Any:
        """Return the resources of both."""
        return self.to_set().union(_as_set(_plain(rset)))

    def intersect(self, rset: Any) -> Any:
        """Return the resources that both have."""
        return self.to_set().intersect(_as_set(_plain(rset)))

    def diff(self, rset: Any) -> Any:
        """Return the resources without those of another."""
        return self.to_set().diff(_as_set(_plain(rset)))

    def append(self, rset: Any) -> None:
        """Refuse: a pool has the resources of its instance."""
        raise NotImplementedError("resources cannot be appended to a pool")

    def add(self, rset: Any) -> None:
        """Refuse: a pool has the resources of its instance."""
        raise NotImplementedError("resources cannot be added to a pool")


class FluxPool(ResourcePool):  # type: ignore[misc]  # a class without types
    """A resource pool of Flux with simsched's matcher.

    Parameters
    ----------
    R : the resources, as a document or its JSON.
    log : the logger of the scheduler.
    policy : a match policy (``first``, ``lonode``, ``locality`` …, or one of a plug-in).
    rules : the dialect of jobspecs, ``rfc14``.

    Raises
    ------
    ValueError
        If R is not of version 1, or an option has a value that it does not take.
    """

    def __init__(
        self,
        R: Any = None,  # noqa: N803
        log: Any = None,
        *,
        policy: str = "first",
        rules: str = "rfc14",
        **_unknown: Any,
    ) -> None:
        if isinstance(R, ResourcePoolImplementation):
            super().__init__(R)
            return
        state = PoolState(R, policy=policy, rules=rules)
        version = state.document.get("version", 1)
        if version != 1:
            raise ValueError(f"R version {version} is not supported (expected 1)")
        super().__init__(MatcherPool(state, log))


def feasibility_check(pool: Any, handle: Any, msg: Any, jobspec: Mapping[str, Any]) -> None:
    """Answer a ``feasibility.check`` request of job-ingest: nothing, or an error with our reasons.

    A scheduler of the framework does so by itself.  This function is for other broker modules that register
    the service: `handle` responds to `msg`, EOVERFLOW for a job that never fits, EINVAL for no jobspec.
    """
    try:
        pool.check_feasibility(pool.parse_resource_request(jobspec))
    except InfeasibleRequest as error:
        handle.respond_error(msg, errno.EOVERFLOW, str(error))
    except (ValueError, RecursionError) as error:
        handle.respond_error(msg, errno.EINVAL, str(error))
    else:
        handle.respond(msg, None)


def _as_set(document: Mapping[str, Any]) -> Any:
    from flux.resource.Rv1Set import Rv1Set

    return Rv1Set(dict(document))
