"""`UsageLedger`: the decayed usage of the nodes of a tree, exact at any time.

Usage is units × seconds; a second that is `half_life` old counts half.  A job that runs with the rate r
since s has used r (g(t) - g(s)) 2^(-t/h) at t, where g(t) = h/ln 2 (2^(t/h) - 1); without decay g(t) = t.
So three sums per node are enough: of finished jobs, of the rates of running jobs, and of their
r g(s).  All are magnified by 2^(t/h), which no comparison between nodes notices.

Charges wait in a list until usage is asked for at their time or later.  So usage as of the beginning of a
period can be had after charges within the period.
"""

from __future__ import annotations

from math import exp2, expm1, floor, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

MOST = 500.0
"""After this many halvings the magnified sums are scaled down again, well before they overflow."""


class UsageLedger:
    """Usage by node.

    Parameters
    ----------
    usage : usage of each node at second 0.
    half_life : seconds, inf without decay.
    reset : usage is set to 0 at each multiple of these seconds; inf: never.
    at_end : whether a job is charged when it ends, and not while it runs.
    """

    def __init__(self, usage: Floats, half_life: float, *, reset: float = inf, at_end: bool = False) -> None:
        self.half_life = half_life
        self.reset = reset
        self.at_end = at_end
        self._scale = half_life / log(2) if half_life < inf else 0.0
        self._origin = 0.0
        self._turn = 0
        self._waiting: list[tuple[float, int, float, float | None]] = []
        """Charges that are not in the sums yet: time, node, rate, and the begin of a job that ends."""
        # A charge changes one node, which is quicker in a list; usage of all nodes is computed on arrays.
        self._done: list[float] = np.array(usage, dtype=np.float64).tolist()
        self._rate = [0.0] * len(self._done)
        self._begun = [0.0] * len(self._done)
        self._rates, self._known = np.zeros(len(self._done)), np.array(self._done)
        """`_rate`, and `_done` less `_begun`, as arrays."""
        self._due = self._next_change()

    def begin(self, node: int, rate: float, now: float) -> None:
        """Charge a node for a job that starts now."""
        if not self.at_end:
            self._waiting.append((now, node, rate, None))

    def end(self, node: int, rate: float, begin: float, now: float) -> None:
        """Stop charging a node for a job that began at `begin` and ends now."""
        self._waiting.append((now, node, rate, begin))

    def magnified(self, time: float) -> Floats:
        """Return the usage of each node times a factor that is the same for all; charges at `time` included.

        No later time may have been asked for.
        """
        self._take(time)
        found = self._rates * self._grown(time)
        found += self._known
        return found

    def usage(self, time: float) -> Floats:
        """Return the usage of each node; as `magnified`."""
        found = self.magnified(time)
        return found * exp2((self._origin - time) / self.half_life) if self._scale else found

    def _take(self, time: float) -> None:
        """Take charges into the sums up to this time."""
        waiting = self._waiting
        if waiting and waiting[0][0] <= time:
            taken = len(waiting)
            for at, charge in enumerate(waiting):
                if charge[0] > time:
                    taken = at
                    break
                self._charge(*charge)
            del waiting[:taken]
        if time >= self._due:
            self._advance(time)

    def _charge(self, now: float, node: int, rate: float, begin: float | None) -> None:
        if now >= self._due:
            self._advance(now)
        done, begun = self._done, self._begun
        if begin is None:
            self._rate[node] += rate
            begun[node] += rate * self._grown(now)
        else:
            begin = max(begin, self._turn * self.reset) if self._turn else begin
            if self.at_end:
                magnified = exp2((now - self._origin) / self.half_life) if self._scale else 1.0
                done[node] += rate * (now - begin) * magnified
            else:
                before = rate * self._grown(begin)
                done[node] += rate * self._grown(now) - before
                self._rate[node] -= rate
                # The sum of no rates is 0, since rates are whole numbers, and no rounding stays behind.
                begun[node] = begun[node] - before if self._rate[node] else 0.0
        self._rates[node] = self._rate[node]
        self._known[node] = done[node] - begun[node]

    def _grown(self, time: float) -> float:
        """Return g(t) from the present origin, which may lie after `time`."""
        since = time - self._origin
        return self._scale * expm1(since / self._scale) if self._scale else since

    def _next_change(self) -> float:
        """Return a time before which `_advance` need not be called."""
        overflow = self._origin + 0.99 * MOST * self.half_life if self._scale else inf
        return min((self._turn + 1) * self.reset, overflow)

    def _advance(self, now: float) -> None:
        """Reset usage whose time has come, and move the origin before the sums overflow."""
        if now >= (self._turn + 1) * self.reset:
            self._turn = floor(now / self.reset)
            grown = self._grown(self._turn * self.reset)
            self._set_sums([0.0] * len(self._done), [rate * grown for rate in self._rate])
        if self._scale and now - self._origin > MOST * self.half_life:
            down = exp2((self._origin - now) / self.half_life)
            running = self._scale * self._rates
            begun = (np.array(self._begun) + running) * down - running
            self._set_sums([done * down for done in self._done], begun.tolist())
            self._origin = now
        self._due = self._next_change()

    def _set_sums(self, done: list[float], begun: list[float]) -> None:
        self._done, self._begun = done, begun
        self._rates = np.array(self._rate, dtype=np.float64)
        self._known = np.array(done, dtype=np.float64) - np.array(begun, dtype=np.float64)

    def state(self) -> dict[str, Any]:
        """Return all that changes, as plain values."""
        sums = [list(self._done), list(self._rate), list(self._begun)]
        waiting = [list(charge) for charge in self._waiting]
        return {"origin": self._origin, "turn": self._turn, "sums": sums, "waiting": waiting}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal ledger."""
        self._origin, self._turn = state["origin"], state["turn"]
        done, self._rate, begun = (list(map(float, row)) for row in state["sums"])
        self._set_sums(done, begun)
        self._due = self._next_change()
        self._waiting = [tuple(charge) for charge in state["waiting"]]
