"""`grow`: an open simulation goes on on a larger cluster, in the middle of its run.

The engine of a run is made for one compiled cluster.  When nodes join, another engine is made for the larger
one, with the same jobs, and takes over the state of the old one.  A state names vertices by their ordinals,
in the order of containment; `Places` are the ordinals of the old vertices in the larger cluster.

For the records, the new nodes belonged to the machine from the beginning and were down until now.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simsched.errors import ClusterError
from simsched.graph.index.types import ABOVE
from simsched.match.state.availability import Availability
from simsched.match.state.selection import Hold, LazySelection, Selection, changed, with_arrays
from simsched.match.state.selection_codec import selection_from_dict, selection_to_dict
from simsched.schedule.graph_shadow import GraphShadow
from simsched.simulation.admission import groups_of_queues
from simsched.simulation.checkpoint.checkpoint import codec_of
from simsched.simulation.engine import EngineState, capture, restore

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.graph.cluster import Cluster
    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Draw
    from simsched.simulation.engine import Engine
    from simsched.simulation.live.growth import Arrivals, Growth
    from simsched.simulation.options.run_config import RunConfig


class Places:
    """The ordinals in a larger cluster of the vertices of a smaller one, by the ordinals that they had.

    Attributes
    ----------
    before, after : the smaller cluster and the larger one.
    targets : of the execution targets; `new` are the ordinals of those that were not there.
    vertices, pools : of each vertex type and pool type.

    Raises
    ------
    ClusterError
        If the larger cluster counts a resource of the smaller one in another way.
    """

    def __init__(self, before: Index, after: Index) -> None:
        self.before, self.after = before, after
        self.targets = _places(before.targets, after.targets)
        self.new: Integers = np.setdiff1d(np.arange(len(after)), self.targets)
        lost = {*before.vertex_types} - {*after.vertex_types} | {*before.pool_types} - {*after.pool_types}
        if lost:  # vertices that contain others are counted one by one, those that do not as units of pools
            raise _other_way(min(lost))
        self.vertices = {
            name: _places(kind.keys, after.vertex_types[name].keys)
            for name, kind in before.vertex_types.items()
        }
        self.pools = {name: self._leaf_pools(name) for name in before.pool_types}

    def _leaf_pools(self, name: str) -> Integers:
        """Return the ordinals of the leaf pools of a type; -1 for one without units, which is padding."""
        old, new = self.before.pool_types[name], self.after.pool_types[name]
        at = {keys: ordinal for ordinal, keys in enumerate(new.keys) if keys}
        found = np.array([at.get(keys, -1) if keys else -1 for keys in old.keys], dtype=np.int64)
        there = old.size > 0
        same = (found[there] >= 0).all() and (new.size[found[there]] == old.size[there]).all()
        if not same or new.unit != old.unit or new.named != old.named:
            raise _other_way(name)
        return found

    def selection(self, old: Selection, request: Any) -> Selection:
        """Return a selection in the larger cluster; `request` is compiled for that."""
        moved = changed(
            old,
            targets=self.targets[old.targets],
            held=tuple(map(self._draw, old.held)),
            named=tuple(map(self._draw, old.named)),
            shared=tuple(map(self._draw, old.shared)),
            holds=tuple(
                changed(hold, ordinals=self.vertices[hold.type][hold.ordinals]) for hold in old.holds
            ),
            unlisted=None if old.unlisted is None else self.targets[old.unlisted],
        )
        if old.named is old.held:
            moved = changed(moved, named=moved.held)
        # the one form of a selection brings the masks of units into that of the larger cluster
        moved = selection_from_dict(selection_to_dict(moved), self.after, request)
        return changed(moved, holds=(*moved.holds, *self._holds_beneath(moved)))

    def _draw(self, draw: Draw) -> Draw:
        return changed(draw, pools=self.pools[draw.type][draw.pools])

    def _holds_beneath(self, moved: Selection) -> list[Hold]:
        """Return claims on the new vertices under those that are claimed exclusively, such as a rack.

        They belong to that claim, as nodes do that were down when it was made (`Availability.set_status`).
        """
        found = []
        types = self.after.vertex_types
        for hold in moved.holds:
            if not hold.exclusive or types[hold.type].level != ABOVE:
                continue
            for name in types:
                old = self.vertices.get(name, np.empty(0, dtype=np.int64))
                inside = [self.after.members(hold.type, one, name) for one in hold.ordinals.tolist()]
                new = np.setdiff1d(np.concatenate(inside), old) if inside else old[:0]
                if len(new):
                    found.append(Hold(name, new, exclusive=True))
        return found


def _places(before: tuple[str, ...], after: tuple[str, ...]) -> Integers:
    at = {key: ordinal for ordinal, key in enumerate(after)}
    return np.array([at[key] for key in before], dtype=np.int64)


def _other_way(name: str) -> ClusterError:
    return ClusterError(
        f"with the new nodes, resources of type {name!r} would be counted in another way",
        expected="nodes whose parts are like those of the others, in the same unit",
    )


class _Carrier:
    """Brings the values of a state from one engine to another."""

    def __init__(self, places: Places, old: Engine, new: Engine) -> None:
        self._places = places
        self._from, self._to = codec_of(old), codec_of(new)

    def value(self, value: Any) -> Any:
        """Return a value with its selections in the larger cluster, without what is computed again."""
        if isinstance(value, Selection | LazySelection):
            value = with_arrays(value)
            return self._places.selection(value, self._to.request_at(self._from.place_of(value.request)))
        if type(value) in (list, tuple):
            return type(value)(map(self.value, value))
        if type(value) is dict:
            again = (Availability, GraphShadow)
            return {key: self.value(item) for key, item in value.items() if not isinstance(item, again)}
        return value

    def payload(self, value: Any) -> Any:
        """Return what an event is about; arrays are execution targets."""
        if isinstance(value, np.ndarray):
            return self._places.targets[value]
        if type(value) is tuple:
            return tuple(map(self.payload, value))
        return self.value(value)


class GrowingRun(Protocol):
    """A simulation whose engine is exchanged."""

    engine: Engine
    growth: Growth
    arrivals: Arrivals

    def reopen(self, cluster: Cluster) -> None:
        """Make an engine without jobs for a larger cluster."""


def grow(sim: GrowingRun, cluster: Cluster) -> None:
    """Let a simulation go on on a larger cluster; the new nodes are free from now on."""
    old, growth, arrivals = sim.engine, sim.growth, sim.arrivals
    places = Places(old.plan.index, cluster.index)
    sim.reopen(cluster)
    engine = sim.engine
    sim.arrivals.endless = arrivals.endless
    sim.growth.repeat(growth.record())
    marks = list(old.future.marks())
    state = _carried(capture(old), places, old, engine)
    engine.future.take_over(old.future)
    restore(engine, state)
    for mark in marks:
        engine.future.at(*mark)
    engine.recorder.take_lines(old.recorder)
    counted = (old.prepared.table.single, old.prepared.table.content)
    sim.growth.renew(forget=counted != (engine.prepared.table.single, engine.prepared.table.content))
    sim.arrivals.expect()
    engine.queues.touch(released=True)
    engine.settle()


def _carried(state: EngineState, places: Places, old: Engine, new: Engine) -> EngineState:
    """Return the state of an engine as one of another engine, for a larger cluster."""
    carrier = _Carrier(places, old, new)
    down_in_cluster = places.new[~places.after.up[places.new]]
    parts = {}
    for name in state.parts:
        move = getattr(old.parts[name], "state_on", None)  # a part that knows vertices by their ordinals
        parts[name] = carrier.value(state.parts[name]) if move is None else move(state.parts[name], places)
    return replace(
        state,
        claims=carrier.value(state.claims),
        down=[*places.targets[state.down].tolist(), *down_in_cluster.tolist()],
        events=[event._replace(payload=carrier.payload(event.payload)) for event in state.events],
        queues=carrier.value(state.queues),
        recorder=_records(state.recorder, old.recorder.pools, new.recorder.pools, places),
        parts=parts,
    )


def _records(
    state: dict[str, Any], before: tuple[str, ...], after: tuple[str, ...], places: Places
) -> dict[str, Any]:
    """Return the records so far, in which the new nodes are down."""
    old = np.array(state["rows"], dtype=np.float64).reshape(-1, 5 + len(before))
    rows = np.zeros((len(old), 5 + len(after)))
    rows[:, :5] = old[:, :5]
    for at, name in enumerate(before, start=5):
        rows[:, 5 + after.index(name)] = old[:, at]
    more = {name: places.after.totals[name] - places.before.totals.get(name, 0) for name in after}
    more["node"] = len(places.new)
    nothing = dict.fromkeys(more, 0)
    changes = [*({float(old[0, 0]): nothing} if len(old) else {}).items(), *state["down"]]
    down = [(time, {name: units.get(name, 0) + more[name] for name in more}) for time, units in changes]
    if len(down) > 1 and down[0][0] == down[1][0]:
        del down[0]
    return {**state, "rows": array("d", rows.ravel().tolist()), "down": down}


def check_growth(before: Index, after: Index, config: RunConfig) -> None:
    """Raise a ClusterError for new nodes on which a run cannot go on.

    They may not change how resources that exist are counted, nor join groups of queues that share no node.
    """
    Places(before, after)
    queues = config.queues
    if queues is None:
        return
    groups = [groups_of_queues(queues, index, anywhere=False)[0] for index in (before, after)]
    for one in queues.queues:
        for other in queues.queues:
            were_apart, are_apart = (of[one] != of[other] for of in groups)
            if were_apart and not are_apart:
                raise ClusterError(
                    f"the new nodes belong to the queues {one} and {other}, which have no nodes in common",
                    expected="nodes of one of these queues",
                )
