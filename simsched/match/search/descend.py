"""Selection, top-down: take candidates in the policy's order and descend into each.

Nothing here can fail.  The request is separable and its counts suffice (`select` has checked both):
no choice for one need takes a resource that another need could be short of (M10), and a candidate is
only given copies that the counts say it can host.  So no choice has to be undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.graph.index.types import ABOVE, TARGET
from simsched.match.policies.policy import (
    Candidates,
    MatchPolicy,
    arranged,
    copies_in_order,
    fixed_order,
    keeps_siblings,
)
from simsched.match.requests.request import POOL, SLOT, VERTEX
from simsched.match.search.counts import EVERYWHERE, MANY, beneath, capacity, hosts, members, usable_units
from simsched.match.search.portions import counted, first_copies, portions
from simsched.match.state.draws import drawn_by_ids, finished, ids_ascend
from simsched.match.state.masks import each_of, highest_bits, lowest_bits
from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.graph.index.reach import View
    from simsched.match.requests.request import Content, Flat, Need, Request
    from simsched.match.state.availability import Availability


class Descent:
    """One selection under construction; short-lived."""

    def __init__(
        self, request: Request, avail: Availability, policy: MatchPolicy, rng: np.random.Generator | None
    ) -> None:
        self.request = request
        self.avail = avail
        self.index: Index = avail.index
        self.policy = policy
        self.rng = rng
        self.targets: list[Integers] = []
        self.unlisted: list[Integers] = []
        self.held: list[Draw] = []
        self.named: list[Draw] = []
        self.shared: list[Draw] = []
        self.holds: list[Hold] = []
        self.covered = False
        """Whether the units that R names and the units that are claimed may differ (M4, M5)."""

    def build(self) -> Selection:
        """Return the selection."""
        for need in self.request.needs:
            self._place(need, 1, EVERYWHERE, 0, covered=False)
        highest = self.policy.highest
        held = finished(self.held, self.avail, highest=highest)
        named = held
        if self.covered or self.shared:
            named = finished([*self.named, *self.shared], self.avail, highest=highest)
        targets = self.targets[0] if len(self.targets) == 1 else _union(self.targets)
        unlisted = None
        if self.unlisted:
            unlisted = np.setdiff1d(_union(self.unlisted), targets)
            targets = _union([targets, unlisted])
        return Selection(
            request=self.request,
            targets=targets,
            held=held,
            named=named,
            holds=tuple(self.holds),
            shared=tuple(self.shared),
            slots=self.request.slots,
            unlisted=unlisted,
            counted=self.avail.partial is None,
        )

    # --- above the targets ---------------------------------------------------------------

    def _place(self, need: Need, times: int, above: str, vertex: int, *, covered: bool) -> None:
        """Take `times` copies of a need below a vertex above the targets, or anywhere.

        `covered` means that an ancestor has been claimed exclusively, with everything below it.
        """
        if need.kind == POOL:
            self._draw_beneath(need, need.amount * times, above, vertex, covered=covered)
        elif need.kind == SLOT:
            self._place_slot(need, need.amount * times, above, vertex, covered=covered)
        else:
            self._place_vertices(need, times, above, vertex, covered=covered)

    def _place_slot(self, need: Need, slots: int, above: str, vertex: int, *, covered: bool) -> None:
        spread_out = need.children
        if need.content is not None:
            fits = capacity(need.content, self.avail).fits
            among = self._candidates(above, vertex, self.index.target_type)
            targets, numbers = self._take(self.index.target_type, fits, slots, among, content=need.content)
            self._fill_targets(need.content, targets, numbers, covered=covered)
            spread_out = need.loose
        for child in spread_out:
            self._place(child, slots, above, vertex, covered=covered)

    def _place_vertices(self, need: Need, times: int, above: str, vertex: int, *, covered: bool) -> None:
        among = self._candidates(above, vertex, need.type)
        if need.content is not None:
            fits = capacity(need.content, self.avail).fits
        else:
            fits = np.zeros(len(self.index.vertex_types[need.type]), dtype=np.int64)
            fits[_all(fits) if among is None else among] = hosts(need, among, self.avail)
        most = 1 if need.exclusive else times
        wanted = need.amount * times
        chosen, numbers = self._take(need.type, fits, wanted, among, most=most, content=need.content)
        self._claim(need, chosen, covered=covered)
        covered = covered or need.exclusive
        if need.content is not None:
            self._fill_targets(need.content, chosen, numbers, covered=covered, whole=need.whole)
        elif need.level == ABOVE:
            for ordinal, number in zip(chosen.tolist(), each_of(numbers, len(chosen)).tolist(), strict=True):
                for child in need.children:
                    self._place(child, number, need.type, ordinal, covered=covered)
        else:
            self.targets.append(np.unique(self.index.vertex_types[need.type].target[chosen]))
            self._fill(need.children, need.flat, need.type, chosen, numbers, covered=covered)

    def _claim(self, need: Need, chosen: Integers, *, covered: bool) -> None:
        """Record the claim of some vertices, and of everything below them if it is exclusive."""
        self.holds.append(Hold(need.type, chosen, need.exclusive))
        if need.exclusive and not covered:
            self._hold_beneath(need.type, chosen)
        if need.whole and need.level != TARGET:
            self._name_beneath(need.type, chosen)

    def _fill_targets(
        self,
        content: Content,
        targets: Integers,
        numbers: Integers | int,
        *,
        covered: bool,
        whole: bool = False,
    ) -> None:
        """Take `numbers[i]` copies of `content` on each target."""
        self.targets.append(targets)
        if content.alone:
            if not covered and not (content.node and content.exclusive):
                self._hold_beneath(self.index.target_type, targets)
            covered = whole = True
        if whole:
            self._name_beneath(self.index.target_type, targets)
        # A target that R names whole has all its units in the draws above: drawing the counted ones
        # again would add nothing.  Vertices within it (sockets) are claimed one by one all the same.
        if not (whole and content.flat is not None):
            kind = self.index.target_type
            self._fill(content.needs, content.flat, kind, targets, numbers, covered=covered)

    # --- within the targets: many vertices at once -------------------------------------------

    def _fill(
        self,
        needs: tuple[Need, ...],
        flat: Flat | None,
        kind: str,
        parents: Integers,
        times: Integers | int,
        *,
        covered: bool,
    ) -> None:
        """Take ``times[i]`` copies of all `needs` below each of `parents` (of type `kind`)."""
        if flat is not None:
            for type_, units in flat:
                self._draw_each(type_, kind, parents, times if units == 1 else times * units, covered=covered)
            return
        for need in needs:
            if need.kind == SLOT:
                self._fill(need.children, need.flat, kind, parents, times * need.amount, covered=covered)
            elif need.kind == VERTEX:
                self._fill_vertices(need, kind, parents, times, covered=covered)
            elif need.takes_any_units:
                self._draw_each(need.type, kind, parents, times * need.amount, covered=covered)
            else:
                for parent, number in zip(
                    parents.tolist(), each_of(times, len(parents)).tolist(), strict=True
                ):
                    self._draw_beneath(need, need.amount * number, kind, parent, covered=covered)

    def _fill_vertices(
        self, need: Need, kind: str, parents: Integers, times: Integers | int, *, covered: bool
    ) -> None:
        """Take ``times[i]`` copies of a vertex need below each parent, within its target."""
        view = self.index.beneath(kind, need.type, parents)
        assert view.ordinals is not None
        each = each_of(times, len(parents))
        most = 1 if need.exclusive else np.repeat(each, view.high - view.low)
        fits = np.minimum(hosts(need, view.ordinals, self.avail), most)
        wanted = each * need.amount
        # If the policy keeps graph order within a target, or every copy that fits is taken anyway, all
        # parents are served at once; else each needs its own sorted candidates.
        if self._in_graph_order(need.type) or (view.sum(fits) == wanted).all():
            taken = portions(fits, view, wanted)
            some = np.flatnonzero(taken)
            chosen, numbers = view.ordinals[some], taken[some]
        else:
            chosen, numbers = self._take_each(need, view, fits, each)
        self._claim(need, chosen, covered=covered)
        covered = covered or need.exclusive
        self._fill(need.children, need.flat, need.type, chosen, numbers, covered=covered)

    def _take_each(
        self, need: Need, view: View, fits: Integers, times: Integers
    ) -> tuple[Integers, Integers]:
        """Take vertices parent by parent, in the policy's order."""
        assert view.ordinals is not None
        room = np.zeros(len(self.index.vertex_types[need.type]), dtype=np.int64)
        room[view.ordinals] = fits
        chosen, numbers = [], []
        for low, high, number in zip(view.low.tolist(), view.high.tolist(), times.tolist(), strict=True):
            among = self._sorted(need.type, view.ordinals[low:high])
            found, copies = self._take(need.type, room, need.amount * number, among)
            chosen.append(found)
            numbers.append(np.broadcast_to(copies, len(found)))
        return np.concatenate(chosen), np.concatenate(numbers)

    # --- choosing ------------------------------------------------------------------------

    def _candidates(self, above: str, vertex: int, kind: str) -> Integers | None:
        """Return the vertices below one, in the policy's order if it is static; None: all, in graph order."""
        if above == EVERYWHERE:
            return fixed_order(self.policy, kind, self.avail) if self.policy.static else None
        return self._sorted(kind, self.index.members(above, vertex, kind))

    def _sorted(self, kind: str, ordinals: Integers) -> Integers:
        """Return vertices in the policy's order if it is static, else as they are."""
        order = fixed_order(self.policy, kind, self.avail) if self.policy.static else None
        if order is None:
            return ordinals
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return ordinals[np.argsort(places[ordinals])]

    def _in_graph_order(self, kind: str) -> bool:
        """Whether the policy takes vertices of a type within one target in graph order."""
        return self.policy.static and keeps_siblings(self.policy, kind, self.avail)

    def _take(
        self,
        kind: str,
        fits: Integers,
        wanted: int,
        among: Integers | None,
        *,
        most: int = MANY,
        content: Content | None = None,
    ) -> tuple[Integers, Integers | int]:
        """Take `wanted` copies from the candidates `among` (None: all), at most `most` from each.

        Returns the candidates taken and how many copies of each (one number: the same of all).
        """
        return take_copies(kind, fits, wanted, among, (self.avail, self.policy, self.rng), most, content)

    # --- units ---------------------------------------------------------------------------

    def _draw_each(
        self, type_: str, kind: str, parents: Integers, units: Integers | int, *, covered: bool
    ) -> None:
        """Draw ``units[i]`` units of one pool type below each parent, in the policy's order."""
        if kind == self.index.target_type and self.index.pool_types[type_].aligned:
            self._note(_draw(type_, parents, units), covered=covered)
            return
        view = self.index.beneath(kind, type_, parents)
        assert view.ordinals is not None
        each = each_of(units, len(parents))
        if self._goes_by_ids(type_):
            self._note(
                drawn_by_ids(type_, view, each, self.avail, highest=self.policy.highest), covered=covered
            )
            return
        taken = portions(self.avail.free[type_][view.ordinals], view, each, last=self.policy.highest)
        some = np.flatnonzero(taken)
        self._note(_draw(type_, view.ordinals[some], taken[some]), covered=covered)

    def _goes_by_ids(self, type_: str) -> bool:
        """Whether single units must be compared: the policy orders by id, the leaf pools do not."""
        ordered = self.policy.lowest or self.policy.highest
        return ordered and self.avail.partial is not None and not ids_ascend(type_, self.index)

    def _draw_units(self, type_: str, units: int, above: str, vertex: int, *, covered: bool) -> None:
        """Draw units from the leaf pools below a vertex, from the first (with `highest`, the last) on."""
        pools = members(above, vertex, type_, self.index)
        if self.policy.highest:
            pools = pools[::-1]
        free = self.avail.free[type_][pools]  # a copy: `numbers` below is written to
        sums = np.cumsum(free)
        last = int(np.searchsorted(sums, units))
        numbers = free[: last + 1]
        numbers[last] -= int(sums[last]) - units
        some = np.flatnonzero(numbers)
        self._note(_draw(type_, pools[some], numbers[some]), covered=covered)
        self._touch(type_, pools[some])

    def _draw_beneath(self, need: Need, units: int, above: str, vertex: int, *, covered: bool) -> None:
        """Draw for a pool need: any units, units that `id` names, or units to share (M4)."""
        if need.takes_any_units and (need.every or need.level == ABOVE):
            self._draw_units(need.type, units, above, vertex, covered=covered)
            return
        draw = self._particular(need, units if need.exclusive else need.amount, above, vertex)
        self._touch(need.type, draw.pools)
        if need.exclusive:
            self._note(draw, covered=covered)
        elif covered:
            self.named.append(draw)
        else:
            self.shared.append(draw)

    def _particular(self, need: Need, units: int, above: str, vertex: int) -> Draw:
        """Choose units pool by pool, as masks."""
        have = usable_units(need, self.avail)
        leaves = members(above, vertex, need.type, self.index)
        pick = lowest_bits
        if self.policy.highest:
            leaves, pick = leaves[::-1], highest_bits
        if not self.index.pool_types[need.type].named:
            before = np.cumsum(have[leaves]) - have[leaves]
            taken = np.clip(units - before, 0, have[leaves])
            some = np.flatnonzero(taken)
            return _draw(need.type, leaves[some], taken[some])
        masks = {}
        for leaf in leaves.tolist():
            if units and have[leaf]:
                masks[leaf] = pick(self.avail.usable_mask(need, leaf), min(units, int(have[leaf])))
                units -= masks[leaf].bit_count()
        return Draw.of_masks(need.type, masks)

    def _note(self, draw: Draw, *, covered: bool) -> None:
        """Record a draw: R names it, and it is claimed unless an ancestor has been claimed exclusively."""
        self.named.append(draw)
        if covered:
            self.covered = True
        else:
            self.held.append(draw)

    def _touch(self, type_: str, pools: Integers) -> None:
        """Record the targets of some leaf pools."""
        targets = self.index.pool_types[type_].target[pools]
        self.targets.append(np.unique(targets[targets >= 0]))

    # --- whole subtrees (M4, M5) ------------------------------------------------------------

    def _hold_beneath(self, kind: str, chosen: Integers) -> None:
        """Claim everything below some vertices: units, vertices, and the targets that they contain."""
        self.covered = True
        self.held.extend(self._units_beneath(kind, chosen))
        for name, vertices in self.index.vertex_types.items():
            if name not in self.index.types_beneath(kind):
                continue
            ordinals = beneath(kind, name, chosen, self.index).ordinals
            assert ordinals is not None
            self.holds.append(Hold(name, ordinals, exclusive=True))
            if vertices.level == TARGET:
                # Claimed with the vertex, but R names them only if the request asks for it (M5).  Those
                # that are down have no units to claim; see `Availability.set_status`.
                self.unlisted.append(ordinals[self.avail.up[ordinals]])

    def _name_beneath(self, kind: str, chosen: Integers) -> None:
        """Let R name everything below some vertices."""
        self.named.extend(self._units_beneath(kind, chosen))
        if self.index.target_type in self.index.types_beneath(kind):
            targets = self.index.beneath(kind, self.index.target_type, chosen).ordinals
            assert targets is not None
            self.targets.append(targets[self.avail.up[targets]])

    def _units_beneath(self, kind: str, chosen: Integers) -> list[Draw]:
        """Return all free units below some vertices (every unit that is up, as the subtrees are idle)."""
        found = []
        for name, pool in self.index.pool_types.items():
            if pool.aligned and kind == self.index.target_type:
                pools = chosen
            else:
                ordinals = beneath(kind, name, chosen, self.index).ordinals
                assert ordinals is not None
                pools = ordinals
            units = self.avail.free[name][pools]
            if not units.all():
                some = np.flatnonzero(units)
                pools, units = pools[some], units[some]
            if len(pools):
                found.append(_draw(name, pools, units))
        return found


def take_copies(
    kind: str,
    fits: Integers,
    wanted: int,
    among: Integers | None,
    by: tuple[Availability, MatchPolicy, np.random.Generator | None],
    most: int = MANY,
    content: Content | None = None,
) -> tuple[Integers, Integers | int]:
    """Take `wanted` copies from the candidates `among` (None: all), at most `most` from each.

    `by` are the state, the policy that orders the candidates, and its generator. Returns the candidates taken
    and how many copies of each (one number: the same of all).
    """
    avail, policy, rng = by
    if policy.order is None or policy.static:
        return first_copies(fits, wanted, among, most)
    found = np.flatnonzero(fits) if among is None else among[fits[among] > 0]
    given = Candidates(kind, found, fits[found], avail, rng, wanted, most, content)
    # `bestfit`, `locality` … : the order depends on the state, so all candidates are collected
    if policy.each_copy:
        return copies_in_order(policy, given)
    chosen = found[arranged(policy, given)[:wanted]]  # each hosts one at least
    return counted(chosen, fits[chosen], wanted, most)


def _draw(type_: str, pools: Integers, units: Integers | int) -> Draw:
    amount = units * len(pools) if isinstance(units, int) else int(units.sum())
    return Draw(type_, pools, units, amount)


def _all(values: Integers) -> Integers:
    return np.arange(len(values))


def _union(parts: list[Integers]) -> Integers:
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
