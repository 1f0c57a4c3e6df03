"""`RunRules`: the rules of a run as keyword arguments of the Python interface; names, types and texts.

`simulate`, `Simulation`, `BackfillEnv` and the searches take them (PEP 692): type checkers and editors read
the class, and `options_named` puts the names into signatures and the texts into docstrings.
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
    from simsched.simulation.licences.licence_pools import Licences
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.simulation.outages.outages import Failures, Outage
    from simsched.simulation.preemption.checkpoint_rules import CheckpointRules
    from simsched.simulation.preemption.preemption_rules import PreemptionRules
    from simsched.simulation.queues import Queues
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation


class RunRules(TypedDict, total=False):
    """The rules of a run beside the queue policy, the match policy and the seed.

    Parameters
    ----------
    order : the job order, by name or as an object; ``fifo``, or ``multifactor`` with a `priority`.
    queue_options : options of the queue policy; those of a site belong to the queue policy of the site.
    predictor : the run times by which plans are made, by name or as an object; ``limit``, those requested.
    priority : the factors of the order ``multifactor``.
    queues : named queues with their limits and constraints (RFC 33); one queue for all.
    limits : limits of users, accounts, queues, QoS and all jobs; none.
    preemption : which jobs preempt others, and what becomes of the victims; none but ``preemptible-after``.
    reservations : nodes that are kept at a time for the jobs that name them; none.
    licenses : counted resources that are not on nodes; none.
    outages : times at which targets fail, are drained or are kept free for maintenance; none.
    failures : how targets fail by chance, such as ``mtbf=30d,mttr=4h``; not at all.
    on_failure : whether a job on a target that fails is queued again (``requeue``) or ends there (``fail``).
    job_checkpoints : the checkpoints from which jobs go on that were preempted or whose nodes failed; none.
    overrun : ``timeout`` ends a job at its requested duration, ``allow`` lets it run on; ``timeout``, and
        ``allow`` under the queue policy ``recorded``.
    kill_grace : time for which a job may run on before ``timeout`` ends it; 0.
    epilog : time that a target needs to clean up after a job, or the least and the most; 0.
    no_limit : whether a job without a duration gets the limit of its ``queue``, or a ``reject``; ``queue``.
    think_times : ``honour`` lets a job become eligible its think time after the job that precedes it ends
        (SWF columns 17 and 18); ``ignore``.
    passes : one scheduling pass after all events of an ``instant``, or after each ``event``; ``instant``, and
        ``event`` if candidates are judged by their actual durations.
    candidates : whether backfill candidates are judged by the ``requested`` durations or by the ``actual``
        ones, which no scheduler can know; ``requested``.
    """

    order: str | JobOrder | None
    queue_options: Mapping[str, Any] | None
    predictor: str | RunTimePredictor | None
    priority: PriorityRules | Mapping[str, Any] | None
    queues: Queues | Mapping[str, Any] | None
    limits: Iterable[LimitRule | Mapping[str, Any]] | None
    preemption: PreemptionRules | Mapping[str, Any] | None
    reservations: Iterable[AdvanceReservation | Mapping[str, Any]] | None
    licenses: Licences | Mapping[str, Any] | str | None
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
    """All rules of a run but the seed.

    Parameters
    ----------
    queue_policy, match_policy : names, which ``simsched run --help`` lists, or policies as objects; ``easy``
        and ``first``.
    """

    queue_policy: str | QueuePolicy | None
    match_policy: str | MatchPolicy | CandidateOrder | None
