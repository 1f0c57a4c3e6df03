"""`Listener`: a feature of a run, which hears of the events that it needs and answers questions.

The engine moves jobs from their submissions to their ends and knows no feature.  At each event it calls the
features that override the method of that name, in the order of `ORDER`; an event without a listener costs
nothing.  A new feature is a class with the methods that it needs, and a name in `ORDER`.

The order decides where one feature sees what another did: jobs that depend on one that ended are released
before those that waited for its place under a limit; jobs come back into view of their limits before others
are preempted for them; a suspended job is counted as running before its attempt is; a program is told last.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.arrays import Bools
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import Start
    from simsched.workload.job import Job

ORDER = (
    "eventlog",
    "arrivals",
    "epilogs",
    "dependencies",
    "limits",
    "preemption",
    "attempts",
    "expected",
    "disruption",
    "reservations",
    "nodes",
    "watch",
    "reports",
)
"""The names of the features of runs, in the order in which they hear of an event."""


class Way(Enum):
    """How a running job loses its resources."""

    END = "it ends by itself, or at its limit"
    INTERRUPT = "it is ended before its time"
    REQUEUE = "it is queued again"


class Listener:
    """The events of a run, in the order of a job's life, and the questions of the engine."""

    # -- jobs that come ---------------------------------------------------------------------------

    def offered(self, job: Job) -> None:
        """A program hands in a job; a feature that cannot take it raises its error."""

    def joined(self, first: int, jobs: Sequence[Job]) -> None:
        """Jobs got their numbers, from `first` on; a feature hears of those before it when it is added."""

    def numbered(self, tickets: Sequence[int], first: int) -> None:
        """The jobs with these tickets arrived and got their numbers, from `first` on."""

    # -- from the submission to the queue ---------------------------------------------------------

    def submitted(self, job: int, now: float) -> None:
        """A job is about to be taken in."""

    def may_enter(self, job: int, now: float) -> bool:
        """Whether a submitted job is taken in now; otherwise the feature rejects it or takes it in later."""
        return True

    def may_queue(self, job: int, now: float) -> bool:
        """Whether a job is eligible now; otherwise the feature makes it eligible later, or gives it up."""
        return True

    def eligible(self, job: int, now: float) -> None:
        """A job became eligible, and waits for resources unless it is held."""

    def changed(self, job: int) -> None:
        """The state of a job has changed: it was taken in and has conditions, or its targets cleaned up."""

    # -- passes and starts ------------------------------------------------------------------------

    def before_pass(self, now: float) -> None:
        """A scheduling pass begins."""

    def runs(self, job: int, now: float) -> None:
        """A job starts to run, perhaps one of several that start together."""

    def begun(self, started: Sequence[Start], now: float) -> None:
        """All jobs run that a policy or a preemption started together."""

    def occupied(self, job: int, end: float | None) -> None:
        """A job runs from the beginning, until a time (s) or without a known end."""

    def repeats(self) -> bool:
        """Whether a pass that started jobs is repeated, because others may start now."""
        return False

    def passed(self, now: float) -> None:
        """A scheduling pass is over."""

    # -- running jobs -----------------------------------------------------------------------------

    def suspended(self, job: int, now: float, reason: str) -> None:
        """A running job lost its resources for a time."""

    def resumed(self, job: int, now: float) -> None:
        """A suspended job goes on; its end is known again."""

    def resized(self, job: int, selection: Selection) -> None:
        """A running job has other resources."""

    def released(self, job: int, now: float, way: Way) -> None:
        """A job that runs, or is suspended, is about to lose its resources."""

    def keeps(self, job: int, now: float, result: int) -> bool:
        """Whether a job that ended keeps its resources; the feature releases them later."""
        return False

    def requeued(self, job: int, now: float, reason: str) -> None:
        """A job that lost its resources waits again."""

    def ended(self, job: int, now: float, result: int, reason: str | None) -> None:
        """A job ended, started or not; `reason` is None for a job that ran to its end."""

    def cleaned(self, job: int, now: float, *, last: bool) -> None:
        """Some targets of a job that ended have cleaned up; with `last` all have."""

    # -- nodes ------------------------------------------------------------------------------------

    def border(self) -> None:
        """A window of a reservation begins or ends."""

    def hit(self, failed: Bools) -> Mapping[int, Selection]:
        """Return the suspended jobs that have resources on failed targets, with all their resources."""
        return {}

    # -- questions about the run ------------------------------------------------------------------

    def goes_on(self) -> bool:
        """Whether the run is not over though no job runs or waits."""
        return False

    def reasons(self) -> dict[int, str]:
        """Return why jobs wait at present, as far as that is due to this feature."""
        return {}

    def columns(self, jobs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns that the table of `jobs` has because of this feature."""
        return {}

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the columns of further tables by name, which the run has because of this feature."""
        return {}

    def described(self) -> dict[str, Any]:
        """Return what ``run.json`` has because of this feature."""
        return {}

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> Any:
        """Return what has changed: plain values, arrays and selections; None if nothing can change."""
        return None

    def restore(self, state: Any) -> None:
        """Take over the state of an equal feature."""


class Heard:
    """The methods that are called at each event or question, which are attributes of these names."""

    def __init__(self) -> None:
        self.bind(())

    def bind(self, listeners: Iterable[Listener]) -> None:
        """Let these listeners hear of the events whose methods they override, in this order."""
        some = tuple(listeners)
        for name, usual in vars(Listener).items():
            if not name.startswith("_"):
                mine = (one for one in some if getattr(type(one), name) is not usual)
                setattr(self, name, tuple(getattr(one, name) for one in mine))
