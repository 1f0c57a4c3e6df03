"""`KNOBS`: the one table of what calibration tries.

A knob is a choice that a site makes and that its log does not record.  Each of its settings changes the
options of a run (the document of ``--config``).  A new option of a run that may explain waits, such as a
limit per user or a weight of a priority, joins as one more row: a name, a meaning, and a function that
returns the settings for a log, or the reason why none is tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.idset import Idset
from simsched.report.metrics.intervals import DAY

if TYPE_CHECKING:
    from simsched.arrays import Floats, Integers
    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Job


Options: TypeAlias = Mapping[str, Any]
Settings: TypeAlias = Mapping[str, Options]
"""Label → the options of a run that a setting replaces."""

WEEK = 7 * DAY
QUEUE_POLICY, POLICY_OPTIONS = "queue-policy", "policy-options"
SLURM = "slurm"
KEPT_SHARES = (1.0, 0.99)
"""Shares of the starts of a log at which a limit of its site is kept; the rest are changes of the limit."""
LEFT_OUT = "left out by --knobs"
"""Why a knob is not tried that the request does not name."""
WEEKS_MORE = 2
"""Weeks after the last submission for which nodes are still down by times."""


@dataclass(frozen=True, slots=True)
class KnobSetting:
    """One setting of a knob: its name, and the options of the run that it replaces.

    Options of the queue policy are added to those that the run has, unless the setting is of another
    policy; outages and limits are added to those of the run.
    """

    label: str
    options: Options

    def applied(self, options: Options) -> dict[str, Any]:
        """Return the options of a run with this setting."""
        mine = dict(self.options)
        kept = dict(options.get(POLICY_OPTIONS, {}))
        if QUEUE_POLICY in mine:  # another policy does not have the options of this one
            kept = {name: value for name, value in kept.items() if name == "queue_depth"}
        kept |= mine.pop(POLICY_OPTIONS, {})
        lists = {name: [*options.get(name, []), *mine.pop(name, [])] for name in _LISTS}
        found = {**options, **mine, POLICY_OPTIONS: kept, **lists}
        return {name: value for name, value in found.items() if value or name not in _EMPTY}

    def changes(self, options: Options) -> bool:
        """Whether a run with these options is another one with this setting."""
        now = {**_DEFAULTS, **options}
        return self.applied(now) != KnobSetting("as it is", {}).applied(now)


_DEFAULTS = {QUEUE_POLICY: "easy", "order": "fifo", "overrun": "timeout"}
_LISTS = ("outages", "limits")
_EMPTY = (POLICY_OPTIONS, *_LISTS)


@dataclass(frozen=True, slots=True)
class Knob:
    """A choice that a log does not record: its name, its meaning, and its settings for a log."""

    name: str
    meaning: str
    tried: Callable[[LogFacts, Options], Settings | str]

    def settings(self, facts: LogFacts, options: Options) -> Sequence[KnobSetting] | str:
        """Return the settings that change a run with these options, or the reason why none is tried."""
        found = self.tried(facts, options)
        if isinstance(found, str):
            return found
        each = (KnobSetting(label, changed) for label, changed in found.items())
        return [setting for setting in each if setting.changes(options)]


_DEPTHS = {f"the first {depth} jobs": {POLICY_OPTIONS: {"queue_depth": depth}} for depth in (5, 20, 50, 100)}
_EPILOGS = {value: {"epilog": value} for value in ("30s", "2m", "5m", "15m")}


def _policies(_: LogFacts, __: Options) -> Settings:
    tried: Sequence[tuple[str, str, Options]] = (
        ("fcfs", "fcfs", {}),
        ("easy", "easy", {}),
        ("easy without a reservation", "easy", {"reservation": "none"}),
        ("hybrid, 4 reservations", "hybrid", {"depth": 4}),
        ("hybrid, 16 reservations", "hybrid", {"depth": 16}),
        ("conservative", "conservative", {}),
    )
    return {label: {QUEUE_POLICY: name, POLICY_OPTIONS: own} for label, name, own in tried}


def _backfills(_: LogFacts, options: Options) -> Settings:
    tried: Settings = {
        "Slurm's defaults": {},
        "at most every 5 min": {"interval": 300},
        "window of 4 h": {"window": "4h"},
        "window of 7 d": {"window": "7d"},
        "50 jobs": {"max_job_test": 50},
        "5 jobs per user": {"max_job_user": 5},
        "10 reservations": {"reservation_depth": 10},
    }
    now = options.get(POLICY_OPTIONS, {}) if options.get(QUEUE_POLICY) == SLURM else {}
    return {label: {QUEUE_POLICY: SLURM, POLICY_OPTIONS: {**now, **mine}} for label, mine in tried.items()}


def _priorities(facts: LogFacts, options: Options) -> Settings | str:
    if options.get("priority"):
        return "the configuration has priorities"
    tried: dict[str, Options] = {
        "age and large jobs": {"size": {"weight": 1000}},
        "age and small jobs": {"size": {"weight": 1000, "favour": "small"}},
        "age and short jobs": {"duration": {"weight": 1000, "favour": "short"}},
    }
    if facts.users > 1:
        tried["age and fair share"] = {"fair-share": 1000}
        tried["fair share before age"] = {"fair-share": 10_000}
    if len(facts.queues) > 1:
        queue = {"weight": 1000, "values": _by_waits(facts), "normalise": True}
        tried["age and queues by their waits"] = {"queue": queue}
    age = {"age": {"weight": 1000, "max": "7d"}}
    return {
        label: {"order": "multifactor", "priority": {"factors": {**age, **factors}, "period": "5m"}}
        for label, factors in tried.items()
    }


def _by_waits(facts: LogFacts) -> dict[str, int]:
    """Return queue → its place by mean wait, the longest first."""
    order = sorted(facts.queues, key=lambda name: (-facts.queues[name], name))
    return {name: at for at, name in enumerate(order)}


def _user_limits(facts: LogFacts, _: Options) -> Settings | str:
    """Return limits that the log itself keeps at all or nearly all starts of its training jobs.

    A limit that the log breaks more often is not a rule of its site, even if it brings the waits nearer: it
    stands for other reasons to wait, and stops a user who submits more than those of the training time did.
    """
    if facts.users < 2:
        return "the log does not have several users"
    found: dict[str, Options] = {}
    for share in KEPT_SHARES:
        jobs = _at_share(facts.user_jobs, share)
        if jobs:
            found[f"{jobs} running {'job' if jobs == 1 else 'jobs'} per user"] = {"running-jobs": jobs}
        cores = max(_at_share(facts.user_cores, share), round(facts.largest * facts.cores))
        if 0 < cores < facts.cores:
            found[f"{cores} cores per user"] = {"cores": cores}
    return {label: {"limits": [{"each": "user", **most}]} for label, most in found.items()} or (
        "no job of the training time has a user and a recorded start"
    )


def _at_share(values: Sequence[int], share: float) -> int:
    """Return the least of sorted values that at least this share of them does not exceed; 0 for none."""
    return values[max(ceil(len(values) * share) - 1, 0)] if values else 0


def _orders(facts: LogFacts, _: Options) -> Settings:
    names = ["fifo", "sjf", "ljf", "smallest-area", "largest-area", "wfp3", "unicef"]
    names += ["fairshare"] * (facts.users > 1) + ["priority"] * (facts.urgencies > 1)
    return {name: {"order": name} for name in names}


def _queue_priorities(facts: LogFacts, options: Options) -> Settings | str:
    if options.get("queues"):
        return "the configuration has queues"
    if len(facts.queues) < 2:
        return "the log does not have several queues"
    order = list(_by_waits(facts))
    label = " before ".join(reversed(order)) if len(order) < 4 else f"{order[-1]} first, {order[0]} last"
    return {label: {"queues": {name: {"priority": at} for name, at in _by_waits(facts).items()}}}


def _overruns(facts: LogFacts, _: Options) -> Settings | str:
    if not facts.overruns:
        return "no job of the log ran beyond its limit"
    return {value: {"overrun": value} for value in ("timeout", "allow")}


def _graces(facts: LogFacts, options: Options) -> Settings | str:
    if not facts.overruns:
        return "no job of the log ran beyond its limit"
    if options.get("overrun") == "allow":
        return "jobs run on beyond their limit"
    return {value: {"kill-grace": value} for value in ("1m", "5m", "15m")}


def _capacities(facts: LogFacts, _: Options) -> Settings:
    """Return shares of the nodes that are down: all the time, or between jobs that need them.

    One of the shares is that of the nodes which stayed idle in the log although a waiting job fitted them.
    """
    shares = {share: f"{share:.0%} of the nodes down" for share in (0.02, 0.05, 0.1, 0.2)}
    if facts.idle:
        shares[facts.idle] = f"{facts.idle:.2%} of the nodes down, as in the log"
    found: dict[str, Options] = {}
    tried = {0}
    for share, label in shares.items():
        number = round(facts.targets * share)
        if number not in tried:  # the share of the log may be one of the others
            tried.add(number)
            always = facts.largest <= 1 - number / facts.targets
            outages = _outages(facts, str(Idset.from_ids(facts.ranks[-number:])), always=always)
            found[label if always else f"{label}, but for one day a week"] = outages
    return found


def _outages(facts: LogFacts, ranks: str, *, always: bool) -> Options:
    """Return an outage of nodes for all time, or a drain of six days in each week.

    The largest jobs of a log may need the whole machine: they run on the seventh day.
    """
    note = "capacity by calibration"
    if always:
        return {"outages": [{"ranks": ranks, "start": 0, "kind": "failure", "note": note}]}
    weeks = range(ceil((facts.end - facts.begin) / WEEK) + WEEKS_MORE)
    drain = {"ranks": ranks, "kind": "drain", "note": note}
    starts = [facts.begin + week * WEEK for week in weeks]
    return {"outages": [{**drain, "start": start, "end": start + WEEK - DAY} for start in starts]}


KNOBS: tuple[Knob, ...] = (
    Knob("queue-policy", "the queue policy and its reservations", _policies),
    Knob("backfill", "Slurm's backfill: its depth, window and interval", _backfills),
    Knob("depth", "the number of waiting jobs that are considered", lambda *_: _DEPTHS),
    Knob("order", "the order of waiting jobs", _orders),
    Knob("queue-priority", "priorities of the queues, by their waits in training", _queue_priorities),
    Knob("priority", "multifactor priorities", _priorities),
    Knob("user-limits", "what a user may run at a time, as the log keeps it", _user_limits),
    Knob("overrun", "whether jobs are ended at their limit", _overruns),
    Knob("kill-grace", "the time between the limit of a job and its end", _graces),
    Knob("epilog", "the time between two jobs on a node", lambda *_: _EPILOGS),
    Knob("capacity", "nodes that were down", _capacities),
)


def knobs_named(names: Sequence[str]) -> tuple[Knob, ...]:
    """Return the knobs of these names in the order of the table; all of them without names.

    Raises
    ------
    ConfigError
        For a name that is not in the table.
    """
    known = [knob.name for knob in KNOBS]
    for name in names:
        if name not in known:
            raise ConfigError(
                f"unknown knob {name!r}{did_you_mean(name, known)}",
                where="--knobs",
                expected=", ".join(known),
            )
    return tuple(knob for knob in KNOBS if not names or knob.name in names)


# --- facts of a log about the machine and its users: those that decide which settings are worth a try


LEAST_SHOWN = 600.0
"""Seconds of wait from which a job that fits shows that idle cores were not available."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Facts of a log and of the machine; those of waits are of the training time alone.

    Attributes
    ----------
    targets : number of execution targets, `ranks` their ranks in ascending order, and `cores` their cores.
    largest : the share of the machine that the largest job needs, at most 1.
    queues : queue → mean recorded wait of its training jobs (s); empty unless every job has a queue.
    users : number of users.
    urgencies : number of different urgencies.
    overruns : number of jobs that ran beyond their limit.
    user_jobs, user_cores : jobs and cores of a user in use after each start of a training job, sorted.
    idle : the share of the machine that stayed idle although a waiting job fitted it, in the training time.
    begin, end : the first and the last submission (s).
    """

    targets: int
    ranks: tuple[int, ...]
    largest: float
    queues: Mapping[str, float]
    users: int
    urgencies: int
    overruns: int
    cores: int
    user_jobs: Sequence[int]
    user_cores: Sequence[int]
    idle: float
    begin: float
    end: float

    @classmethod
    def of(cls, cluster: Cluster, jobs: Sequence[Job], training: Sequence[Job]) -> LogFacts:
        """Return the facts of a log on a machine."""
        index = cluster.index
        cores = index.totals.get("core") or len(index)
        return cls(
            len(index),
            tuple(sorted(index.ordinal_of_rank)),
            min(1.0, max((job.procs or 0 for job in jobs), default=0) / cores),
            _waits_of_queues(training) if all(job.queue for job in jobs) else {},
            len({job.user for job in jobs if job.user is not None}),
            len({job.urgency for job in jobs}),
            sum(job.duration is not None and (job.runtime or 0) > job.duration for job in jobs),
            cores,
            *_use_by_user(training),
            _idle_share(training, cores),
            min((job.submit for job in jobs), default=0.0),
            max((job.submit for job in jobs), default=0.0),
        )


def _waits_of_queues(jobs: Sequence[Job]) -> dict[str, float]:
    waits: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        if job.queue is not None:
            waits[job.queue].append(job.wait or 0)
    return {name: sum(found) / len(found) for name, found in sorted(waits.items())}


def _use_by_user(jobs: Sequence[Job]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the running jobs of its user after each recorded start, and their cores, both sorted."""
    events: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for job in jobs:
        if job.user is not None and job.wait is not None and job.runtime:
            start, cores = job.submit + job.wait, job.procs or 0
            events[job.user] += [(start, 1, cores), (start + job.runtime, -1, -cores)]
    numbers, units = [], []
    for changes in events.values():
        number = used = 0
        for _, change, cores in sorted(changes):  # at one instant ends come before starts
            number, used = number + change, used + cores
            if change > 0:
                numbers.append(number)
                units.append(used)
    return sorted(numbers), sorted(units)


def _idle_share(jobs: Sequence[Job], cores: int) -> float:
    """Return the median share of the cores that were idle while a job that fitted them waited; 0 if rare.

    It is taken over the hours of the training time.  A job of n cores that waits while m of them are idle
    shows that at least m - n + 1 were not available.  Waits of less than ten minutes show nothing.
    """
    known = [job for job in jobs if job.wait is not None and job.procs]
    if not known:
        return 0.0
    hours = np.arange(min(job.submit for job in known), max(job.submit for job in known), 3600.0)
    starts = np.array([job.submit + (job.wait or 0) for job in known])
    ends = starts + np.array([job.runtime or 0 for job in known])
    procs = np.array([job.procs or 0 for job in known], dtype=np.int64)
    begun, ended = np.argsort(starts), np.argsort(ends)
    used = _sum_until(starts[begun], procs[begun], hours) - _sum_until(ends[ended], procs[ended], hours)
    least = np.full(len(hours), cores + 1, dtype=np.int64)
    for job in known:
        wait = job.wait or 0
        if wait > LEAST_SHOWN:
            first, last = np.searchsorted(hours, [job.submit + LEAST_SHOWN, job.submit + wait])
            least[first:last] = np.minimum(least[first:last], job.procs or 0)
    missing = np.maximum(cores - used - least + 1, 0)[least <= cores]
    return float(np.median(missing)) / cores if len(missing) else 0.0


def _sum_until(times: Floats, values: Integers, at: Floats) -> Integers:
    """Return the sum of the values up to each time; `times` are sorted."""
    sums = np.concatenate([[0], np.cumsum(values)])
    found: Integers = sums[np.searchsorted(times, at, side="right")]
    return found
