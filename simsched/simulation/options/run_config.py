"""`RunConfig`: every choice that makes one run differ from another."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.match.policies.plugins import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.match.policies.policy import MatchPolicy
    from simsched.schedule.orders.ranking import JobOrder
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.outages.outages import Failures, Outage
    from simsched.simulation.queues import Queues

BY_NAME = ("queue_policy", "match_policy", "order")
"""Fields that may hold an object of a program's own; ``run.json`` has its name."""
CHOICES = {
    "overrun": ("timeout", "allow"),
    "passes": ("instant", "event"),
    "candidates": ("requested", "actual"),
    "think_times": ("ignore", "honour"),
    "on_failure": ("requeue", "fail"),
    "no_limit": ("queue", "reject"),
}


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The rules of one run.

    Attributes
    ----------
    queue_policy, queue_options : the policy, by name or as an object, and its own options.
    order : the job order, by name or as an object.
    match_policy : which of several possible matches is taken, by name or as an object.
    seed : of every random choice.
    overrun : ``timeout`` ends a job at its requested duration; ``allow`` lets it run on.
    passes : ``instant``: one scheduling pass after all events of an instant; ``event``: one
        after each event; None: ``event`` if candidates are judged by their ``actual`` durations,
        since CQSim, which does so, makes one after each, and ``instant`` otherwise.
    candidates : what backfill candidates are judged by: their ``requested`` durations, or the
        ``actual`` ones that no scheduler can know.
    think_times : ``honour`` lets a job become eligible only its think time after the end of the
        job that precedes it (SWF columns 17 and 18).
    epilog : least and most seconds that a target needs to clean up after a job; each target that
        is done gives back its shard of the job's resources at once.
    queues : named queues after RFC 33; None: one queue for all.
    outages : times at which targets fail, are drained or are kept free for maintenance.
    failures : how targets fail by chance, or None.
    on_failure : whether a job on a target that fails is queued again or ends there.
    no_limit : whether a job that asks for no duration gets the limit of its ``queue``, if that has
        one and no default, or a ``reject``.
    """

    queue_policy: str | QueuePolicy = "easy"
    match_policy: str | MatchPolicy = "first"
    order: str | JobOrder = "fifo"
    seed: int = 0
    overrun: str = "timeout"
    passes: str | None = None
    candidates: str = "requested"
    think_times: str = "ignore"
    epilog: tuple[float, float] = (0, 0)
    queues: Queues | None = None
    outages: tuple[Outage, ...] = ()
    failures: Failures | None = None
    on_failure: str = "requeue"
    no_limit: str = "queue"
    queue_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.passes is None:
            object.__setattr__(self, "passes", "event" if self.candidates == "actual" else "instant")
        for option, accepted in CHOICES.items():
            value = getattr(self, option)
            if value not in accepted:
                raise ConfigError(f"unknown value {value!r} of {option}", expected=", ".join(accepted))
        least, most = self.epilog
        if not 0 <= least <= most <= MAX_SECONDS:
            raise ConfigError(
                f"an epilog from {least} to {most} s", expected=f"0 <= least <= most <= {MAX_SECONDS:g} s"
            )
        for outage in self.outages:
            if not -MAX_SECONDS <= outage.start < outage.end or MAX_SECONDS < outage.end < float("inf"):
                raise ConfigError(
                    f"an outage from {outage.start} to {outage.end} s",
                    expected=f"an end after the start, at most {MAX_SECONDS:g} s, or inf",
                )
        if least < most and ceil(least) > floor(most):
            raise ConfigError(f"no whole second from {least} to {most} s", where="epilog")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ConfigError(f"seed is {self.seed!r}", expected="a whole number from 0 on")

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data, for ``run.json``."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["queue_options"] = dict(self.queue_options)
        plain.update((name, name_of(plain[name])) for name in BY_NAME)
        plain["queues"] = self.queues and [str(name) for name in self.queues.queues]
        plain["failures"] = self.failures and asdict(self.failures)
        plain["outages"] = [{**_plain(outage), "ranks": str(outage.ranks)} for outage in self.outages]
        return plain


def _plain(outage: Outage) -> dict[str, Any]:
    return {f.name: getattr(outage, f.name) for f in fields(outage)}
