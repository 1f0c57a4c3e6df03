"""`Placed`: a placement of the kernel, with its claim in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.match.kernel import view
from simsched.match.state.selection import Draw, LazySelection, Selection, changed, takes_whole_pools

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.types import PoolType
    from simsched.match.requests.request import Request
    from simsched.match.state.masks import Words
    from simsched.match.state.selection import Hold


class PlacedKind(NamedTuple):
    """What all placements of one kind of request have in common.

    Attributes
    ----------
    request : the request.
    draws : for each draw, in the order of the names of types: the pool type, the place of its first leaf pool
        (`WordTables.places`), and the words in a row of its table (0: it has none).
    names : the names of their pool types.
    tabled : whether the types whose units have names have tables.
    all_named : whether all types have tables.
    core, gpu : which draws are of cores and of gpus; -1: none.
    """

    request: Request
    draws: Sequence[tuple[PoolType, int, int]]
    names: tuple[str, ...]
    tabled: bool
    all_named: bool
    core: int
    gpu: int


class Placed(LazySelection):
    """Units on targets, as the kernel placed them.

    Attributes
    ----------
    kind : what all placements of the request have in common.
    claim, bits : the claim in numbers, and the units as masks (see `Kernel`), as memoryviews.
    parts, sums : the leaf pools of draw i are those from ``parts[i]`` on, and ``sums[i]`` units are drawn.
    targets, holds, counted : as in `Selection`.
    """

    __slots__ = ("_made", "bits", "claim", "counted", "holds", "kind", "parts", "sums", "targets")

    def __init__(
        self,
        kind: PlacedKind,
        claim: Integers,
        bits: Words,
        parts: list[int],
        sums: list[int],
        targets: Integers,
        holds: tuple[Hold, ...],
        *,
        counted: bool,
    ) -> None:
        self.kind, self.parts, self.sums = kind, parts, sums
        self.claim: Any = view(claim)
        self.bits: Any = view(bits)
        self.targets, self.holds, self.counted = targets, holds, counted
        self._made: Selection | None = None

    def full(self) -> Selection:
        """See `LazySelection`."""
        if self._made is None:
            held, request = tuple(self._draws()), self.kind.request
            self._made = Selection(
                request, self.targets, held, held, self.holds, (), request.slots, counted=self.counted
            )
        return self._made

    def _draws(self) -> Iterator[Draw]:
        parts, word = self.parts, 0
        claim, bits = np.asarray(self.claim), np.asarray(self.bits)
        leaves, units = claim[len(claim) - 2 * parts[len(parts) - 1] :].reshape(2, -1)
        for at, (pool, begin, width) in enumerate(self.kind.draws):
            low, high = parts[at], parts[at + 1]
            if low < high:
                pools, amount = leaves[low:high] - begin, self.sums[at]
                masks = None
                if width and not self.counted:
                    behind = word + width * (high - low)
                    masks, word = bits[word:behind].reshape(-1, width), behind
                draw = Draw(pool.name, pools, units[low:high], amount, masks)
                yield changed(draw, masks=None) if takes_whole_pools(draw, pool) else draw

    def cells(self) -> Any:
        """Return the leaf pools, type by type; `bits` are the units of each."""
        pools = self.parts[len(self.parts) - 1]
        return self.claim[len(self.claim) - 2 * pools : len(self.claim) - pools]

    @property
    def request(self) -> Request:
        """The request that it answers."""
        return self.kind.request

    @property
    def slots(self) -> int:
        """Copies of slots."""
        return self.request.slots

    @property
    def counts(self) -> dict[str, int]:
        """Units claimed of each pool type."""
        return {name: units for name, units in zip(self.kind.names, self.sums, strict=True) if units}

    def sizes(self) -> tuple[int, int, int, int]:
        """Return how many nodes, cores, gpus and slots there are."""
        kind, sums = self.kind, self.sums
        cores = sums[kind.core] if kind.core >= 0 else 0
        gpus = sums[kind.gpu] if kind.gpu >= 0 else 0
        return len(self.targets), cores, gpus, kind.request.slots
