"""`RunRules`: the rules of a run as keyword arguments of the Python interface, with the types that they take.

`RunConfig` declares the options with their texts.  Type checkers cannot read names and types from it, so that
both are here again (PEP 692), where a value may also be an object or plain data; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.schedule.orders.priority_rules import PriorityRules
    from simsched.schedule.orders.ranking import JobOrder
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.schedule.predictors.predictor import RunTimePredictor
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.simulation.outages.outages import Failures, Outage
    from simsched.simulation.preemption.checkpoint_rules import CheckpointRules
    from simsched.simulation.preemption.preemption_rules import PreemptionRules
    from simsched.simulation.queues import Queues
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation


class RunRules(TypedDict, total=False):
    """The rules of a run beside the queue policy, the match policy and the seed."""

    order: str | JobOrder | None
    queue_options: Mapping[str, Any] | None
    predictor: str | RunTimePredictor | None
    priority: PriorityRules | Mapping[str, Any] | None
    queues: Queues | Mapping[str, Any] | None
    limits: Iterable[LimitRule | Mapping[str, Any]] | None
    preemption: PreemptionRules | Mapping[str, Any] | None
    reservations: Iterable[AdvanceReservation | Mapping[str, Any]] | None
    licenses: Mapping[str, Any] | str | None
    outages: Iterable[Outage | Mapping[str, Any]] | None
    failures: Failures | str | None
    on_failure: Literal["requeue", "fail"] | None
    job_checkpoints: CheckpointRules | Mapping[str, Any] | None
    overrun: Literal["timeout", "allow"] | None
    kill_grace: float | str | None
    epilog: float | str | tuple[float, float] | None
    no_limit: Literal["queue", "reject"] | None
    think_times: Literal["ignore", "honour"] | None
    passes: Literal["instant", "event"] | None
    candidates: Literal["requested", "actual"] | None


class PolicyRules(RunRules, total=False):
    """All rules of a run but the seed."""

    queue_policy: str | QueuePolicy | None
    match_policy: str | MatchPolicy | CandidateOrder | None
