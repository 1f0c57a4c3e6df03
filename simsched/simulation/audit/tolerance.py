"""Comparison of times up to rounding."""

from __future__ import annotations

from math import isinf, ulp

SLACK = 1e-6
"""Seconds by which any two equal times may differ."""


def differs(one: float, other: float) -> bool:
    """Whether two times differ by more than the rounding of a few additions.

    >>> differs(8e23 + 1, 8e23), differs(5.0, 5.0000001), differs(5.0, 6.0)
    (False, False, True)
    """
    if one == other:
        return False
    largest = max(abs(one), abs(other))
    return not abs(one - other) <= (SLACK if isinf(largest) else max(SLACK, 4 * ulp(largest)))


def later(one: float, other: float) -> bool:
    """Whether a time is later than another by more than the rounding of a few additions."""
    return one > other and differs(one, other)
