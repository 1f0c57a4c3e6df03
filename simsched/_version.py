"""The version of the installed package."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """Return the version of simsched; ``0+unknown`` in a source tree that was never installed."""
    from importlib.metadata import PackageNotFoundError  # slow to import, and seldom needed
    from importlib.metadata import version as installed

    try:
        return installed("simsched")
    except PackageNotFoundError:
        return "0+unknown"
