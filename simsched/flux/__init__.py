"""A resource pool for flux-core's Python scheduler framework, with simsched's matcher.  Experimental.

`pool_state` has the state of a pool and needs nothing of Flux; `flux_pool` is the pool, and needs flux-core's
Python bindings; `command` is the console script ``flux-simsched``.  May import all packages; none imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.flux.flux_pool import FluxPool as Pool
    from simsched.flux.flux_pool import feasibility_check as feasibility_check

__all__ = ["Pool", "feasibility_check", "pool_class"]


def __getattr__(name: str) -> object:
    """Load the pool at its first use (PEP 562): only Flux has its base class."""
    if name not in __all__:
        raise AttributeError(f"module 'simsched.flux' has no attribute {name!r}")
    try:
        from simsched.flux import flux_pool
    except ImportError as error:
        raise ImportError(
            f"simsched.flux.{name} needs flux-core's Python bindings with resource pools: {error}"
        ) from error
    return flux_pool.feasibility_check if name == "feasibility_check" else flux_pool.FluxPool
