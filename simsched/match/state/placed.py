"""`Placed`: a placement of the kernel, with its claim in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
    tabled : whether the types whose units have names have tables.
    all_named : whether all types have tables.
    core, gpu : which draws are of cores and of gpus; -1: none.
    """

    request: Request
    draws: Sequence[tuple[PoolType, int, int]]
    tabled: bool
    all_named: bool
    core: int
    gpu: int


class Placed(LazySelection):
    """Units on targets, as the kernel placed them.

    Attributes
    ----------
    kind : what all placements of the request have in common.
    claim, bits : the claim in numbers, and the units as masks (see `Kernel`).
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
        self.kind, self.claim, self.bits, self.parts, self.sums = kind, claim, bits, parts, sums
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
        leaves, units = self.claim[len(self.claim) - 2 * parts[len(parts) - 1] :].reshape(2, -1)
        for at, (pool, begin, width) in enumerate(self.kind.draws):
            low, high = parts[at], parts[at + 1]
            if low < high:
                pools, amount = leaves[low:high] - begin, self.sums[at]
                masks = None
                if width and not self.counted:
                    behind = word + width * (high - low)
                    masks, word = self.bits[word:behind].reshape(-1, width), behind
                draw = Draw(pool.name, pools, units[low:high], amount, masks)
                yield changed(draw, masks=None) if takes_whole_pools(draw, pool) else draw

    def numbers(self) -> tuple[Integers, Words] | None:
        """Return the leaf pools, type by type, and the units of each as masks; None if masks do not tell."""
        if self.counted or not self.kind.all_named:
            return None
        pools = self.parts[len(self.parts) - 1]
        return self.claim[len(self.claim) - 2 * pools : len(self.claim) - pools], self.bits

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
        pairs = zip(self.kind.draws, self.sums, strict=True)
        return {pool.name: units for (pool, _, _), units in pairs if units}

    def sizes(self) -> tuple[int, int, int, int]:
        """Return how many nodes, cores, gpus and slots there are."""
        kind, sums = self.kind, self.sums
        cores = sums[kind.core] if kind.core >= 0 else 0
        gpus = sums[kind.gpu] if kind.gpu >= 0 else 0
        return len(self.targets), cores, gpus, kind.request.slots
