"""The exact search, for requests whose siblings compete for the same resources (M10).

That each sibling fits by itself is then only a necessary condition.  Here the request is
laid out as a list of tasks ("three copies of this slot below that rack"), and a
depth-first search tries the candidates of each task, most copies first, and undoes the branches that
fail.  Three rules prune it, and none of them loses a match:

* copies of one need are placed on candidates in ascending position, since their order makes no difference;
* of candidates in equal state (`_signature`) only the first is tried with a number of copies: any match
  with another one becomes a match with the first if the two are exchanged;
* a branch ends when a pool type has fewer free units than its remaining tasks need (`_may_succeed`).

So it finds a match if and only if one exists.  After `LIMIT` steps it stops undecided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from simsched.errors import RequestError
from simsched.graph.index.types import ABOVE, MAX_NAMED_UNITS
from simsched.match.policies.policy import Candidates, MatchPolicy, arranged
from simsched.match.requests.request import ABSENT, POOL, SLOT, VERTEX
from simsched.match.search.counts import EVERYWHERE, MANY, members
from simsched.match.search.ledger import Cover, Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection

LIMIT = 50_000
"""Steps of one search, about a second's worth."""


class SearchLimitError(RequestError):
    """The exact search stopped before it found a match or refuted it."""


@dataclass(frozen=True, slots=True)
class _Task:
    """Copies of a need that are still to be placed below one vertex.

    Attributes
    ----------
    left : copies (vertices, units) still to be placed.
    most : the most copies that one candidate may take.
    start : candidates before this position were skipped or used.
    """

    need: Need
    left: int
    most: int
    above: str
    vertex: int
    cover: Cover | None
    start: int = 0


Tasks: TypeAlias = "tuple[_Task, Tasks] | None"
"""The tasks that remain, as a linked list: branches share their tails."""


def find(
    request: Request,
    avail: Availability,
    policy: MatchPolicy,
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> Selection | None:
    """Return a selection if one exists.

    Raises
    ------
    SearchLimitError
        if `limit` steps did not decide it.
    """
    search = _Search(request, avail, policy, rng)
    return search.ledger.selection(request) if search.run(limit) else None


class _Search:
    """One search; short-lived."""

    def __init__(
        self, request: Request, avail: Availability, policy: MatchPolicy, rng: np.random.Generator | None
    ) -> None:
        self.request = request
        self.avail = avail
        self.index = avail.index
        self.policy = policy
        self.rng = rng
        self.ledger = Ledger(avail, alone=request.alone, highest=policy.highest)
        self._orders: dict[tuple[str, str, int, int], list[int]] = {}
        self._containing: dict[tuple[str, int], object] = {}
        self._owned: dict[tuple[str, str], list[list[int]]] = {}
        self.kinds = sorted({n.type for n in request.walk() if n.kind == VERTEX} | {self.index.target_type})
        self.particular = any(need.is_particular for need in request.walk())

    def run(self, limit: int) -> bool:
        """Search; return whether a match was found, which is then in the ledger.

        The recursion is a list of frames, since a request may have more tasks than Python has stack.
        """
        tasks: Tasks = None
        for need in reversed(self.request.needs):
            tasks = self._unfold(need, 1, EVERYWHERE, 0, None, tasks)
        if tasks is None:
            return True
        frames: list[tuple[tuple[int, ...], Iterator[Tasks]]] = [(self.ledger.mark(), self._branches(tasks))]
        for _ in range(limit):
            mark, branches = frames[-1]
            self.ledger.undo(mark)
            try:
                rest = next(branches)
            except StopIteration:
                frames.pop()
                if not frames:
                    return False
                continue
            if rest is None:
                return True
            frames.append((self.ledger.mark(), self._branches(rest)))
        raise SearchLimitError(
            f"undecided: the exact search for competing siblings stopped after {limit} steps",
            where=self.request.needs[0].path,
            expected="a simpler request",
        )

    # --- tasks ---------------------------------------------------------------------------

    def _unfold(
        self, need: Need, times: int, above: str, vertex: int, cover: Cover | None, rest: Tasks
    ) -> Tasks:
        """Put the tasks for `times` copies of a need below a vertex before `rest`."""
        wanted = need.amount * times
        if need.kind != SLOT:
            most = 1 if need.kind == VERTEX and need.exclusive else times if need.kind == VERTEX else MANY
            if need.kind == POOL and not need.exclusive:
                wanted = need.amount
            return (_Task(need, wanted, most, above, vertex, cover), rest)
        if need.content is not None and self._stands_above(above):
            for child in reversed(need.children):
                if child.level == ABOVE:
                    rest = self._unfold(child, wanted, above, vertex, cover, rest)
            return (_Task(need, wanted, MANY, above, vertex, cover), rest)
        for child in reversed(need.children):
            rest = self._unfold(child, wanted, above, vertex, cover, rest)
        return rest

    def _stands_above(self, above: str) -> bool:
        return above == EVERYWHERE or self.index.vertex_types[above].level == ABOVE

    def _branches(self, tasks: Tasks) -> Iterator[Tasks]:
        """Try the alternatives of the first task; yield the tasks that remain after each."""
        assert tasks is not None
        task, rest = tasks
        if task.need.kind == ABSENT or not self._may_succeed(tasks):
            return iter(())
        if task.need.kind == POOL:
            return self._draw(task, rest) if task.need.takes_any_units else self._pick(task, rest)
        return self._choose(task, rest)

    def _may_succeed(self, tasks: Tasks) -> bool:
        """Check the units that the remaining tasks need together against the free units of each type.

        Tasks under a cover draw from its own subtree, whose units `Ledger.total` does not count: they
        are omitted on both sides.
        """
        wanted: dict[str, int] = {}
        while tasks is not None:
            task, tasks = tasks
            need = task.need
            if task.cover is None and need.kind == SLOT:
                for type_, units in need.flat or ():
                    wanted[type_] = wanted.get(type_, 0) + units * task.left
            elif task.cover is None and need.takes_any_units:
                wanted[need.type] = wanted.get(need.type, 0) + task.left
        return all(self.ledger.total(type_) >= units for type_, units in wanted.items())

    # --- vertices and copies of slots ------------------------------------------------------

    def _choose(self, task: _Task, rest: Tasks) -> Iterator[Tasks]:
        """Place copies on one candidate, and the others on candidates after it."""
        need = task.need
        kind = self.index.target_type if need.kind == SLOT else need.type
        order = self._order(kind, task)
        failed: set[object] = set()
        for position in range(task.start, len(order)):
            ordinal = order[position]
            most = min(task.most, task.left, self._hosts(need, kind, ordinal, task.cover))
            if most < 1:
                continue
            signature = self._signature(kind, ordinal)
            for copies in range(most, 0, -1):
                if (signature, copies) in failed:
                    continue
                yield self._placed(task, kind, ordinal, copies, position + 1, rest)
                failed.add((signature, copies))

    def _placed(self, task: _Task, kind: str, ordinal: int, copies: int, start: int, rest: Tasks) -> Tasks:
        need = task.need
        if task.left > copies:
            later = _Task(need, task.left - copies, task.most, task.above, task.vertex, task.cover, start)
            rest = (later, rest)
        cover = task.cover
        if need.kind == VERTEX:
            cover = self.ledger.hold(need, ordinal, cover)
        else:
            self.ledger.touch(ordinal)
        for child in reversed(need.children):
            if need.kind == VERTEX or child.level != ABOVE:
                rest = self._unfold(child, copies, kind, ordinal, cover, rest)
        return rest

    def _order(self, kind: str, task: _Task) -> list[int]:
        """Return the candidates below a task's vertex in the policy's order."""
        key = (kind, task.above, task.vertex, task.need.number)
        order = self._orders.get(key)
        if order is None:
            ordinals = members(task.above, task.vertex, kind, self.index)
            if self.policy.order is not None:
                fits = np.ones(len(ordinals), dtype=np.int64)
                given = Candidates(kind, ordinals, fits, self.avail, self.rng)
                ordinals = ordinals[arranged(self.policy, given)]
            order = self._orders[key] = ordinals.tolist()
        return order

    def _hosts(self, need: Need, kind: str, ordinal: int, cover: Cover | None) -> int:
        """Return an upper bound on the copies that one candidate can host now."""
        ledger = self.ledger
        if need.kind == VERTEX and not ledger.may_claim(need, ordinal, cover):
            return 0
        if need.kind == SLOT and not ledger.may_serve(need, ordinal, cover):
            return 0
        bound = MANY
        for type_, units in need.flat or ():
            if type_ not in self.index.pool_types:
                return 0
            pools = members(kind, ordinal, type_, self.index).tolist()
            bound = min(bound, sum(ledger.free(type_, leaf, cover) for leaf in pools) // units)
        return bound

    def _signature(self, kind: str, ordinal: int) -> object:
        """Return the facts in which two candidates must agree to be exchangeable.

        They are in the same vertices of the request's types, and their subtrees are in equal state.  If
        the request names ids, every candidate differs.
        """
        if self.particular:
            return ordinal
        return (self._holders(kind, ordinal), self.ledger.state(kind, ordinal))

    def _holders(self, kind: str, ordinal: int) -> object:
        """Return the vertices of the request's types that contain a candidate."""
        found = self._containing.get((kind, ordinal))
        if found is None:
            above = [k for k in self.kinds if k != kind and kind in self.index.types_beneath(k)]
            found = tuple(tuple(self._owners(k, kind)[ordinal]) for k in above)
            self._containing[kind, ordinal] = found
        return found

    def _owners(self, above: str, kind: str) -> list[list[int]]:
        """Return for each vertex of a type the vertices of type `above` that reach it."""
        found = self._owned.get((above, kind))
        if found is None:
            found = self._owned[above, kind] = [[] for _ in self.index.vertex_types[kind].keys]
            for owner in range(len(self.index.vertex_types[above])):
                for ordinal in self.index.members(above, owner, kind).tolist():
                    found[ordinal].append(owner)
        return found

    # --- units ---------------------------------------------------------------------------

    def _pools(self, task: _Task) -> list[int]:
        """Return the leaf pools below a task's vertex in the order in which the policy takes units."""
        pools: list[int] = members(task.above, task.vertex, task.need.type, self.index).tolist()
        return pools[::-1] if self.policy.highest else pools

    def _draw(self, task: _Task, rest: Tasks) -> Iterator[Tasks]:
        """Draw units from one leaf pool, and the others from leaf pools after it."""
        need = task.need
        pools = self._pools(task)
        free = [self.ledger.drawable(need, leaf, task.cover) for leaf in pools]
        behind = sum(free[task.start :])
        for position in range(task.start, len(pools)):
            leaf, units = pools[position], free[position]
            behind -= units
            for taken in range(min(units, task.left), 0, -1):
                if task.left - taken > behind:
                    break
                self.ledger.draw(need.type, leaf, taken, task.cover)
                left = task.left - taken
                later = _Task(need, left, task.most, task.above, task.vertex, task.cover, position + 1)
                yield (later, rest) if left else rest
            if behind < task.left:
                return

    def _pick(self, task: _Task, rest: Tasks) -> Iterator[Tasks]:
        """Take particular units (`id`), or units to share, one by one."""
        need = task.need
        pools = self._pools(task)
        if not self.index.pool_types[need.type].named:
            if sum(self.ledger.drawable(need, leaf, task.cover) for leaf in pools) >= task.left:
                yield rest
            return
        places = [
            leaf * MAX_NAMED_UNITS + unit
            for leaf in pools
            for unit in self.ledger.units(need, leaf, task.cover)
        ]
        end = len(self.index.pool_types[need.type]) * MAX_NAMED_UNITS
        if self.policy.highest:  # the same units, counted from the last one back
            places = sorted(end - place for place in places)
        places = [place for place in places if place >= task.start]
        failed: set[object] = set()
        for position, place in enumerate(places):
            if len(places) - position < task.left:
                return
            leaf, unit = divmod(end - place if self.policy.highest else place, MAX_NAMED_UNITS)
            state = place if self.particular else self.ledger.unit_state(need, leaf, unit)
            if state in failed:
                continue
            failed.add(state)
            self.ledger.pick(need, leaf, unit, task.cover)
            later = _Task(need, task.left - 1, task.most, task.above, task.vertex, task.cover, place + 1)
            yield (later, rest) if task.left > 1 else rest
