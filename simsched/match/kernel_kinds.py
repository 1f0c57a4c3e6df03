"""`KernelKinds`: the kinds of requests of a run, which a `Kernel` counts (`counted_kinds`, `flat_kinds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.arrays import Bools
    from simsched.match.kernel import Kernel
    from simsched.match.state.selection import Selection


class KernelKinds:
    """The kinds of requests of a run, by number.

    Attributes
    ----------
    kernel : what counts them.
    counted : for each kind whether the kernel counts it.
    placed : for each kind whether the kernel places it, too.
    all_counted, all_placed : whether it counts, or places, all kinds that can run at all.
    on_targets : whether each target of the kernel is an execution target; else its one target is the machine.
    """

    def __init__(
        self, kernel: Kernel, counted: list[bool], placed: list[bool], *, all_counted: bool, all_placed: bool
    ) -> None:
        self.kernel = kernel
        self.counted, self.placed = counted, placed
        self.all_counted, self.all_placed = all_counted, all_placed

    def selection(self, kind: int, job: int) -> Selection:
        """Return the last placement of the kernel, which is of this kind; a job has its random choices."""
        raise NotImplementedError

    def recount(self) -> None:
        """Take over a state that something else than claims and releases has changed."""
        raise NotImplementedError

    def fitting(self) -> Bools:
        """Return for each kind whether it fits now; true where the kernel does not count it."""
        raise NotImplementedError

    def check(self) -> None:
        """Assert that the kernel counts what it would count anew."""
        raise NotImplementedError
