"""Jobs: the values, the readers of every trace format, synthetic models, and transforms.

Everything that a reader or a model returns is a `job.Workload`. `load` finds the reader by content,
`mapping` turns flat counts into requests. Imports `formats`; nothing here depends on a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simsched.workload.job import Job, Skip, Workload
    from simsched.workload.load import load_workload
    from simsched.workload.mapping import JobMap

__all__ = ["Job", "JobMap", "Skip", "Workload", "load_workload"]

_HOMES = {"Job": "job", "Skip": "job", "Workload": "job", "load_workload": "load", "JobMap": "mapping"}


def __getattr__(name: str) -> Any:  # PEP 562: the type differs per name
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
