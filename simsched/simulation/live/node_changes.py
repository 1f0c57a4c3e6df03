"""`NodeChanges`: execution targets that a program drains, fails, adds and removes while the clock runs.

Targets that are absent are down until they are added, and one that is removed is drained for good.  Targets
that nobody knew at the beginning make the cluster larger (`grown_run`), and count as absent until then.  The
records have each change as an outage.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index as index_of
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.arguments import check, wrong
from simsched.errors import ConfigError
from simsched.formats.rfc.idset import Idset
from simsched.graph import edit
from simsched.match.named_targets import targets_of_ranks
from simsched.simulation.environment import DISRUPTION, SUBMISSION
from simsched.simulation.listeners import Listener
from simsched.simulation.live.grown_run import check_growth
from simsched.simulation.outages.outages import DRAIN, FAILURE, Outage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from simpy import Environment

    from simsched.graph.cluster import Cluster, ClusterLike
    from simsched.graph.index.index import Index
    from simsched.simulation.engine import Engine
    from simsched.simulation.live.grown_run import Places
    from simsched.simulation.live.growth import Growth
    from simsched.simulation.live.watch import Watch
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.outages.disruption import Disruption

ABSENT, REMOVED = "absent", "removed"
RUN = "run"
LEAVING = (RUN, "requeue", "fail")
"""What may happen to the jobs on targets that are removed."""


class Absence(NamedTuple):
    """Why a target is out, and since when (seconds)."""

    kind: str
    start: float
    note: str


class NodeChanges(Listener):
    """The targets that are out because a program says so."""

    def __init__(self, engine: Engine, index: Index, growth: Growth, disruption: Disruption) -> None:
        self._engine, self._index = engine, index
        self._growth, self._disruption = growth, disruption
        self._out: dict[int, Absence] = {}
        self._past: list[tuple[int, Absence, float]] = []
        engine.future.handle("take-out", self._on_take_out)
        engine.future.handle("bring-back", self._on_bring_back)

    def state(self) -> dict[str, Any]:
        """Return the targets that are out, and those that were, as plain values."""
        out = [(rank, *change) for rank, change in self._out.items()]
        return {"out": out, "past": [(rank, *change, end) for rank, change, end in self._past]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._out = {rank: Absence(*change) for rank, *change in state["out"]}
        self._past = [(rank, Absence(*change), end) for rank, *change, end in state["past"]]
        self._note_removed()

    def state_on(self, state: dict[str, Any], places: Places) -> dict[str, Any]:
        """Return a state as one on a larger cluster, whose new targets were absent until now."""
        new = places.after.ranks[places.new].tolist()
        past = [(rank, DRAIN, 0, ABSENT, self._engine.now) for rank in new]
        return {**state, "past": [*state["past"], *past]}

    def ranks(self, given: Any, index: Index) -> list[int]:
        """Return ranks of a cluster that are given as a number, an idset as text, or several numbers.

        ConfigError for a rank that the cluster does not have, FormatError for a text that is not an idset.
        """
        some: Idset | Iterable[int]
        if isinstance(given, int) and not isinstance(given, bool):
            some = (given,)
        elif isinstance(given, str):
            some = Idset.parse(given, where="ranks")
        else:
            some = given
        found: list[int] = []
        try:
            for rank in some:
                found.append(index_of(rank))  # no other number is rounded to a rank
                if found[-1] not in index.ordinal_of_rank:  # before a billion others are written out
                    break
        except TypeError:
            raise ConfigError(
                f"ranks are {given!r}", expected="a rank, ranks, or an idset such as 0-3"
            ) from None
        targets_of_ranks(index, found)
        return found

    def refuse_others(self, ranks: list[int], *, absent: bool) -> None:
        """Raise a ConfigError unless all ranks are out: absent ones, or drained and failed ones."""
        for rank in ranks:
            change = self._out.get(rank)
            gone = change is not None and change.note in (ABSENT, REMOVED)
            if change is None or gone != absent:
                state = "absent" if absent else "drained"
                known = sorted(r for r, c in self._out.items() if (c.note in (ABSENT, REMOVED)) == absent)
                expected = str(Idset.from_ids(known)) if known else f"a rank that was {state}"
                raise ConfigError(f"rank {rank} is not {state}", expected=expected)

    def _on_take_out(self, change: tuple[list[int], str, str, str]) -> None:
        """Take targets out; one that is out already stays out for its reason, unless it is removed."""
        ranks, kind, note, jobs = change
        now = self._engine.now
        if jobs != RUN:
            self._disruption.interrupt(self._targets(ranks), note, requeue=jobs == "requeue")
        new = []
        for rank in ranks:
            if rank not in self._out:
                self._out[rank] = Absence(kind, now, note)
                new.append(rank)
            elif note == REMOVED:
                self._out[rank] = self._out[rank]._replace(note=REMOVED)
        if new:
            if kind == DRAIN:
                self._growth.decide_on_graph()
            self._disruption.take_down(kind, self._targets(new), note)
        self._note_removed()
        if new or jobs != RUN:
            self._engine.settle()

    def _on_bring_back(self, ranks: list[int]) -> None:
        """Bring targets back that are still out."""
        back = [rank for rank in ranks if rank in self._out]
        for rank in back:
            self._past.append((rank, self._out.pop(rank), self._engine.now))
        if back:
            self._note_removed()
            self._disruption.bring_up(self._targets(back))
            self._engine.settle()

    def _note_removed(self) -> None:
        """Let jobs that come be refused if they fit only on targets that are removed."""
        removed = [rank for rank, change in self._out.items() if change.note == REMOVED]
        self._growth.prepared.judge.leave_out(self._index, self._targets(removed))

    def _targets(self, ranks: list[int]) -> Any:
        return np.array(targets_of_ranks(self._index, ranks), dtype=np.int64)

    def outages(self) -> tuple[Outage, ...]:
        """Return all changes so far as outages, those of equal times and reasons together."""
        endless = float("inf")
        spans = [*self._past, *((rank, change, endless) for rank, change in self._out.items())]
        together: dict[tuple[Absence, float], list[int]] = {}
        for rank, change, end in spans:
            if end > change.start:
                together.setdefault((change, end), []).append(rank)
        return tuple(
            Outage(Idset.from_ids(sorted(ranks)), change.start, end, change.kind, change.note)
            for (change, end), ranks in together.items()
        )


class NodeCommands:
    """The part of an open simulation by which a program changes execution targets.

    `_planned` is the cluster with the targets that are added at the present instant.
    """

    cluster: Cluster
    config: RunConfig
    engine: Engine
    _nodes: NodeChanges
    _planned: Cluster
    _watch: Watch

    def _refuse_broken(self) -> None:
        """Raise a RunError if a callback failed before."""
        raise NotImplementedError

    def _enter(self, kind: str, payload: Any, order: int = SUBMISSION) -> None:
        """Let something happen at the present instant."""
        raise NotImplementedError

    def _open(self, env: Environment | None, sink: BinaryIO | None) -> None:
        """Make the engine of a run without jobs."""
        raise NotImplementedError

    def reopen(self, cluster: Cluster) -> None:
        """Make an engine without jobs for a larger cluster, which goes on with the same files."""
        log, self.cluster = self.engine.recorder.log, cluster
        self._open(None, None if log is None else log.sink)
        self.engine.add("watch", self._watch)

    def drain(self, ranks: int | str | Iterable[int], note: str = "drain") -> None:
        """Drain execution targets now: no job starts on them, and running jobs continue.

        ConfigError for a rank that the cluster does not have.
        """
        self._take_out(ranks, DRAIN, note)

    def fail(self, ranks: int | str | Iterable[int], note: str = "failure") -> None:
        """Let execution targets fail now: their jobs are queued again or fail, as `on_failure` says.

        ConfigError for a rank that the cluster does not have.
        """
        self._take_out(ranks, FAILURE, note)

    def undrain(self, ranks: int | str | Iterable[int]) -> None:
        """Bring back execution targets that were drained or have failed.

        ConfigError for a rank that is neither.
        """
        self._bring_back(ranks, absent=False)

    def remove(self, ranks: int | str | Iterable[int]) -> None:
        """Remove execution targets, whose jobs run on: `remove_nodes`."""
        self.remove_nodes(ranks)

    def add(self, ranks: int | str | Iterable[int]) -> None:
        """Add execution targets of the cluster that are absent so far, or were removed.

        ConfigError for a rank that is neither.
        """
        self._bring_back(ranks, absent=True)

    def add_nodes(
        self,
        nodes: int | str | ClusterLike | Mapping[str, Any],
        *,
        like: int | str | None = None,
        under: str | None = None,
        properties: str | Iterable[str] = (),
    ) -> list[int]:
        """Add execution targets that the cluster did not have, now; return their ranks.

        Parameters
        ----------
        nodes : with `like`, a number of nodes or their hosts as a hostlist; otherwise the description of the
            new nodes: a cluster, a file, a bundled name, or a document (R, JGF, a recipe).
        like : a rank or a host; the new nodes are copies of it, in the same rack, switch …
        under : the vertex that contains the new nodes, as a path or a name; by default that of `like`, or
            the root.  Racks and switches of a description join those with the same path of names.
        properties : further properties of the new nodes.

        Jobs that were refused because the cluster was too small stay refused.

        Raises
        ------
        ClusterError, ConfigError, FormatError
            For nodes that cannot be added, with the reason.
        """
        self._refuse_broken()
        before = self._planned
        if like is None and (nodes is None or isinstance(nodes, int)):
            raise wrong("nodes", nodes, "like=, a node to copy, or a description of the nodes")
        if like is None:
            after = edit.join_nodes(before, nodes, under=under)  # type: ignore[arg-type]
        else:
            after = edit.add_nodes(before, nodes, like=like, under=under)  # type: ignore[arg-type]
        known = set(before.index.ranks.tolist())
        new = [rank for rank in after.index.ranks.tolist() if rank not in known]
        names = (properties,) if isinstance(properties, str) else properties
        check("properties", names, Iterable, "the names of properties")
        if names := tuple(names):
            after = edit.add_properties(after, Idset.from_ids(new), *names)
        check_growth(before.index, after.index, self.config)
        self._planned = after
        self._enter("grow", after, DISRUPTION)
        return new

    def remove_nodes(self, ranks: int | str | Iterable[int], jobs: str = RUN) -> None:
        """Remove execution targets: no job starts on them any more; `add` brings them back.

        What happens to the jobs on them: ``run``: they continue to their ends, as on drained targets;
        ``requeue``: they are queued again; ``fail``: they end as FAILED.
        Jobs that are submitted afterwards and fit only with the removed targets can never run.

        ConfigError for a rank that the cluster does not have, or another word for `jobs`.
        """
        if jobs not in LEAVING:
            raise wrong("jobs", jobs, ", ".join(LEAVING))
        self._take_out(ranks, DRAIN, REMOVED, jobs)

    def _take_out(self, ranks: Any, kind: str, note: str, jobs: str = RUN) -> None:
        self._refuse_broken()
        check("note", note, str, "a text")
        found = self._nodes.ranks(ranks, self._planned.index)
        self._enter("take-out", (found, kind, note, jobs), DISRUPTION)

    def _bring_back(self, ranks: Any, *, absent: bool) -> None:
        self._refuse_broken()
        found = self._nodes.ranks(ranks, self._planned.index)
        self._nodes.refuse_others(found, absent=absent)
        self._enter("bring-back", found, DISRUPTION)
