"""What a run need not keep, because nothing reads it before its end: units, places, rows of the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.match.policies.policy import POLICIES, find_policy
from simsched.simulation.limits.limit_rules import RUNNING, UNITS
from simsched.simulation.record.later_timeline import LaterTimeline

if TYPE_CHECKING:
    from simsched.simulation.engine import Engine
    from simsched.simulation.options.run_config import RunConfig

UNAWARE = ("eventlog", "dependencies")
"""Features that know nothing of resources."""


def forget_units(engine: Engine, *, watched: bool) -> None:
    """Keep only numbers of free units where nothing but the log, which finds them itself, reads which.

    Where nothing but submissions, starts and ends of jobs change a count, no row of the timeline is kept.
    """
    config, plan, log = engine.config, engine.plan, engine.recorder.log
    if not _needs_no_ids(config):
        return
    if log is None:
        plan.forget_ids()
    # what is watched, fails or is drained knows jobs by their targets; limits and predictions do not
    parts = engine.parts.keys() - {"expected", "limits", *UNAWARE}
    if watched or parts or config.outages or config.epilog[1] or config.queues:
        return
    targets, total = plan.idle, dict(plan.total)
    kind = plan.forget_places()
    if kind is None:
        return
    if log is not None:
        log.find_places(len(plan.index))
    prepared = engine.prepared
    # a held, cancelled or dependent job makes other passes, and so does a prediction that is corrected
    if _only_bars(engine) and prepared.special <= prepared.rejected.keys():
        later = LaterTimeline(prepared.submits, prepared.sizes, kind, targets, total)
        engine.recorder.later = later.rows


def _only_bars(engine: Engine) -> bool:
    """Whether a run has no parts but limits on what runs at a time, under which jobs wait."""
    rules = engine.config.limits
    quantities = {quantity for rule in rules for quantity, _ in rule.most}
    return engine.parts.keys() <= {"limits", *UNAWARE} and quantities <= {RUNNING, *UNITS}


def _needs_no_ids(config: RunConfig) -> bool:
    """Whether starts do not depend on which units of a leaf pool are free.

    Reservations that last are for units by id, and some match policies go by them.
    """
    policy = find_policy(config.match_policy)
    known = POLICIES.get(policy.name) is policy
    return known and not (policy.lowest or policy.highest) and config.queue_policy in ("fcfs", "easy")
