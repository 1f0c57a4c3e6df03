"""Reports: run directories as frames, metrics, text, tables, pictures and pages.

Everything here reads a run directory and nothing else.  ``load_run`` gives the frames,
``metrics`` the pure functions on them, ``summary`` the figures by name, ``text``,
``export``, ``plots`` and ``html`` what people look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simsched.report.tables import Run, load_run

__all__ = ["Run", "load_run"]


def __getattr__(name: str) -> Any:
    """Import `Run` and `load_run` when they are first asked for (pandas takes 0.3 s)."""
    if name in __all__:
        from simsched.report import tables

        return getattr(tables, name)
    raise AttributeError(name)
