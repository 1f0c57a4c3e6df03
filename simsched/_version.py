"""The version of the installed package, and whether its kernel is compiled."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


def kernel_is_compiled() -> bool:
    """Return whether the kernel of the matcher is compiled; without a compiler its source is interpreted."""
    found = find_spec("simsched.match.kernel")
    return found is not None and not str(found.origin).endswith(".py")


@cache
def version() -> str:
    """Return the version of simsched; ``0+unknown`` in a source tree that was never installed."""
    from importlib.metadata import PackageNotFoundError  # slow to import, and seldom needed
    from importlib.metadata import version as installed

    try:
        return installed("simsched")
    except PackageNotFoundError:
        return "0+unknown"
