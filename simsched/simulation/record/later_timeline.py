"""`later_rows`: the timeline of a run in which it follows from the times and units of the jobs.

Where every unit is a whole target and jobs are only submitted, started and ended, the counts after each
instant are sums over the jobs.  To add them up after the run takes a few operations; a row after each pass
took a twentieth of the run.

What a run need not keep, because nothing reads it before its end: ids of units, rows of the timeline.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.policies.policy import POLICIES, find_policy
from simsched.simulation.limits.limit_kinds import KINDS
from simsched.simulation.record.recorder import PENDING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.arrays import Floats, Integers
    from simsched.simulation.engine import Engine
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.recorder import Recorder


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
    others = prepared.holds or prepared.cancels or prepared.conditions.conditional
    plain = _only_bars(engine) and not others
    if watched or config.outages or config.epilog[1] or config.queues or not plain:
        return
    if runs is not None and runs.kind.each == 1:
        engine.recorder.later = partial(later_rows, prepared, runs.kind.content, idle, dict(plan.total))


def _only_bars(engine: Engine) -> bool:
    """Whether a run has no parts but limits under which jobs wait until another ends."""
    kinds = (KINDS[quantity] for rule in engine.config.limits for quantity in rule.most)
    return engine.parts.keys() <= {"limits", *UNAWARE} and not any(kind.falls for kind in kinds)


def _needs_no_ids(config: RunConfig) -> bool:
    """Whether starts do not depend on which units of a leaf pool are free.

    Reservations that last are for units by id, and some match policies go by them.
    """
    policy = find_policy(config.match_policy)
    known = POLICIES.get(policy.name) is policy
    return known and not (policy.lowest or policy.highest) and config.queue_policy in ("fcfs", "easy")


def later_rows(
    prepared: Prepared,
    content: Mapping[str, int],
    targets: int,
    total: Mapping[str, int],
    recorder: Recorder,
    submitted: int,
) -> tuple[Floats, Integers]:
    """Return the times at which something happened, and the counts after each, as `tick` notes them.

    `content` are the units on each of the `targets`, all of them idle before the run, and `total` those
    of the machine.
    """
    submits, sizes = (np.array(column, dtype=np.float64) for column in (prepared.submits, prepared.sizes))
    eligible, start, end = (
        np.array(column, dtype=np.float64) for column in (recorder.eligible, recorder.start, recorder.end)
    )
    units = np.array(recorder.counts[0], dtype=np.float64)
    came = ~np.isnan(eligible)
    # a job that is rejected or waits to be taken in does not wait here, but a pass follows its submission
    known = came | (np.array(recorder.result) != PENDING)
    known[:submitted] = True
    began, ended = ~np.isnan(start), ~np.isnan(end)
    times = np.unique(np.concatenate((submits[known], end[ended])))
    places = times.searchsorted(eligible[came]), times.searchsorted(start[began])
    ends = times.searchsorted(end[ended])

    def after(more: Any, of_more: Any, less: Any, of_less: Any) -> Integers:
        """Return the sums of what was added and taken off up to each time; whole numbers stay exact."""
        changes = np.bincount(more, of_more, len(times)) - np.bincount(less, of_less, len(times))
        sums: Integers = changes.astype(np.int64).cumsum()
        return sums

    queued = after(places[0], None, places[1], None)
    demand = after(places[0], sizes[came], places[1], sizes[began])
    running = after(places[1], None, ends, None)
    used = after(places[1], units[began], ends, units[ended])
    pools = [total[name] - content.get(name, 0) * used for name in recorder.pools]
    return times, np.column_stack((queued, demand, running, targets - used, *pools))
