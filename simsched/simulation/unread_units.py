"""What a run need not keep, because nothing reads it before its end: ids of units, rows of the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.match.policies.policy import POLICIES, find_policy
from simsched.simulation.limits.limit_kinds import KINDS, TIME
from simsched.simulation.record.later_timeline import LaterTimeline

if TYPE_CHECKING:
    from simsched.simulation.engine import Engine
    from simsched.simulation.options.run_config import RunConfig

UNAWARE = ("eventlog", "dependencies")
"""Features that know nothing of resources."""


def forget_units(engine: Engine, *, watched: bool) -> None:
    """Keep only numbers of free units where nothing reads which.

    Where nothing but submissions, starts and ends of jobs change a count, no row of the timeline is kept.
    """
    config, plan, prepared = engine.config, engine.plan, engine.prepared
    if not _needs_no_ids(config):
        return
    if engine.recorder.log is None:
        plan.forget_ids()
    runs, idle = plan.runs, plan.idle
    # a held, cancelled or dependent job makes other passes, and so does a prediction that is corrected
    plain = _only_bars(engine) and prepared.special <= prepared.rejected.keys()
    if watched or config.outages or config.epilog[1] or config.queues or not plain:
        return
    if runs is not None and runs.kind.each == 1:
        later = LaterTimeline(prepared.submits, prepared.sizes, runs.kind, idle, dict(plan.total))
        engine.recorder.later = later.rows


def _only_bars(engine: Engine) -> bool:
    """Whether a run has no parts but limits on what runs at a time, under which jobs wait."""
    kinds = (KINDS[quantity] for rule in engine.config.limits for quantity, _ in rule.most)
    at_a_time = all(kind.reads != TIME and not kind.while_submitted for kind in kinds)
    return engine.parts.keys() <= {"limits", *UNAWARE} and at_a_time


def _needs_no_ids(config: RunConfig) -> bool:
    """Whether starts do not depend on which units of a leaf pool are free.

    Reservations that last are for units by id, and some match policies go by them.
    """
    policy = find_policy(config.match_policy)
    known = POLICIES.get(policy.name) is policy
    return known and not (policy.lowest or policy.highest) and config.queue_policy in ("fcfs", "easy")
