"""`Shares`: values with the number of times that each occurs, the empirical distributions of a fitted model.

Values are in ascending order, so that a level of probability selects a value and a high level a large one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shares(Generic[T]):
    """Values, ascending, and their weights, of which at least one is above 0."""

    values: tuple[T, ...]
    weights: tuple[float, ...]

    @classmethod
    def parse(cls, document: Any, read: Callable[[Any], T], where: str) -> Shares[T]:
        """Read a mapping from values to weights, or one value alone; `read` reads a value.

        Raises
        ------
        ConfigError
            for weights that are not numbers of 0 or more, or all 0.
        """
        if not isinstance(document, dict):
            return cls((read(document),), (1.0,))
        weights = []
        for value, weight in document.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e15:
                raise ConfigError(
                    f"the weight of {value!r} is {weight!r}", where=where, expected="a number of 0 or more"
                )
            weights.append(float(weight))
        if not sum(weights) > 0 or not isfinite(sum(weights)):
            raise ConfigError("all weights are 0", where=where, expected="values with weights above 0")
        return cls(tuple(map(read, document)), tuple(weights))

    def places(self, levels: Floats) -> Integers:
        """Return the index of the value at each level of probability (0 to 1)."""
        import numpy as np

        ends = np.cumsum(self.weights)
        found = np.searchsorted(ends / ends[-1], levels, side="right")
        return np.minimum(found, self._last()).astype(np.int64)

    def _last(self) -> int:
        """Return the index of the last value that occurs."""
        return max(place for place, weight in enumerate(self.weights) if weight > 0)

    def sorted_by(self, key: Callable[[T], Any]) -> Shares[T]:
        """Return the same shares with the values ascending by a key."""
        pairs = sorted(zip(self.values, self.weights, strict=True), key=lambda pair: key(pair[0]))
        return Shares(tuple(value for value, _ in pairs), tuple(weight for _, weight in pairs))


def frequent(values: Floats, most: int) -> tuple[Floats, Integers]:
    """Return at most `most` of the values, ascending, and how often each occurs.

    The most frequent values and the largest one are kept; each other value counts as the nearest of them
    by ratio.
    """
    import numpy as np

    known, counts = np.unique(values, return_counts=True)
    if len(known) > most:
        order = np.argsort(-counts, kind="stable")
        chosen = np.unique(np.append(order[: most - 1], len(known) - 1))
        logs = np.log(np.maximum(known, 1e-9))
        middles = (logs[chosen][1:] + logs[chosen][:-1]) / 2
        nearest = np.searchsorted(middles, logs)
        counts = np.bincount(nearest, weights=counts, minlength=len(chosen))
        known = known[chosen]
    return known.astype(float), counts.astype(np.int64)
