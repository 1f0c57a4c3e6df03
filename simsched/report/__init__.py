"""Reports: run directories as frames, metrics, text, figures and pages.

The package reads run directories only. `columns` documents every column, `data` makes frames of the files,
`metrics` holds pure functions on these frames, and `text_report`, `export`, `groups`, `figures` and `html`
present them. `run_views`, above all of these, has the object that users hold. `data` may import `metrics`,
never the reverse. Begin with `data.tables`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simsched.report.run_views import Run, load_run

__all__ = ["Run", "load_run"]


def __getattr__(name: str) -> Any:
    """Import `Run` and `load_run` when they are first used (pandas takes 0.3 s)."""
    if name in __all__:
        from simsched.report import run_views

        return getattr(run_views, name)
    raise AttributeError(name)
