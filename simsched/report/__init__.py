"""Reports: run directories as frames, metrics, text, figures and pages.

Everything here reads run directories and nothing else. `data.tables.load_run` gives the frames, `metrics`
the pure functions on them, `text_report`, `export`, `figures` and `html` what people look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simsched.report.data.tables import Run, load_run

__all__ = ["Run", "load_run"]


def __getattr__(name: str) -> Any:
    """Import `Run` and `load_run` when they are first asked for (pandas takes 0.3 s)."""
    if name in __all__:
        from simsched.report.data import tables

        return getattr(tables, name)
    raise AttributeError(name)
