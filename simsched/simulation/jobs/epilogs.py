"""How long targets need to clean up after a job."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def draw_epilogs(rng: np.random.Generator, bounds: tuple[float, float], count: int) -> npt.NDArray[Any]:
    """Return the seconds that each of `count` targets takes: one time for all, or whole seconds drawn."""
    least, most = bounds
    if least == most:
        return np.full(count, int(least) if least == int(least) else least)
    return rng.integers(ceil(least), floor(most), size=count, endpoint=True)
