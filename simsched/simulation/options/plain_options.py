"""`PlainOptions`: the options of a run whose values are words, numbers and times.

Each field is at once a flag of the command line, a key of a configuration file, an axis of a study and an
entry of ``run.json``. `run_config` adds the tables.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Annotated, Any, Literal

from simsched.declare.kinds import ValueKind, whole
from simsched.declare.table import Declared
from simsched.errors import ConfigError
from simsched.formats.rfc.declared import seconds
from simsched.formats.rfc.duration import parse_time
from simsched.plugins.plugin_kind import NAMED
from simsched.simulation.outages.outages import Failures


def read_epilog(value: Any, where: str) -> tuple[float, float]:
    """Read ``30s``, or ``10s..2m`` or two values for whole seconds drawn from that range.

    Raises
    ------
    ConfigError, FormatError
        For a text of neither form, and for a range without a whole second.
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        first, last = (parse_time(one, where=where) for one in value)
    else:
        least, dots, most = str(value).partition("..")
        first = parse_time(least, where=where)
        last = parse_time(most, where=where) if dots else first
    if not first <= last < float("inf"):
        raise ConfigError(f"{value!r} is not a valid epilog", where=where, expected="30s, or 10s..2m")
    if first < last and ceil(first) > floor(last):
        raise ConfigError(f"no whole second from {first} to {last} s", where=where)
    return first, last


def _failures(value: Any, where: str) -> Failures:
    if isinstance(value, Failures):
        return value
    if not isinstance(value, str):
        raise ConfigError("failures is not a text", where=where, expected="mtbf=30d,mttr=4h")
    return Failures.parse(value)


Epilog = ValueKind(read_epilog, {"type": ["string", "number", "array"]})
FailureText = ValueKind(
    _failures, {"type": "string"}, lambda found: found and found.to_dict(), flag={"metavar": "TEXT"}
)
Grace = Annotated[float, seconds("a time such as 5m")]


class PlainOptions(Declared, frozen=True, kw_only=True):
    """The options of a run that are words, numbers and times.

    Attributes
    ----------
    queue_policy : queue policy: ``fcfs``, ``easy``, ``easy++``, ``conservative``, ``slurm`` … (default
        ``easy``); or ``recorded``, the starts of the log.
    match_policy : match policy, which of several possible matches is taken: ``first``, ``lonode``,
        ``bestfit`` … (default ``first``).
    order : order of the queue: ``fifo``, ``priority``, ``sjf``, ``wfp3`` … (default ``fifo``).
    predictor : run times by which plans are made: ``limit``, ``last-two``, ``quantile(P, N)``, ``perfect``
        (default ``limit``).
    seed : seed of every random choice (default 0).
    overrun : ``timeout`` ends a job at the end of its requested time, ``allow`` lets it run on (default
        ``timeout``, and ``allow`` for the queue policy ``recorded``).
    kill_grace : time, such as 5m, for which a job may run on beyond its requested time before ``timeout``
        ends it; plans go by the requested time (default 0; slurm.conf(5), OverTimeLimit).
    think_times : ``ignore`` think times after the preceding job, or ``honour`` them: a job becomes eligible
        that time after the end of the job that precedes it (default ``ignore``; SWF, fields 17 and 18).
    epilog : time that a node needs for cleanup after a job: 30s, or 10s..2m for whole seconds drawn from that
        range (default 0).
    failures : random failures of nodes: mtbf=30d,mttr=4h[,shape=0.7].
    on_failure : ``requeue`` the jobs of a failed node, or let them ``fail`` (default ``requeue``).
    no_limit : give a job without a duration the limit of its ``queue``, or ``reject`` it (default ``queue``).
    passes : one scheduling pass after all events of an ``instant``, or after each ``event`` (default
        ``instant``; ``event`` if candidates are judged by their actual durations, as in CQSim).
    candidates : durations by which backfill candidates are judged: the ``requested`` ones, or the ``actual``
        ones, which no scheduler can know (default ``requested``).
    """

    queue_policy: Annotated[Any, NAMED] = "easy"
    match_policy: Annotated[Any, NAMED] = "first"
    order: Annotated[Any, NAMED] = "fifo"
    predictor: Annotated[Any, NAMED] = "limit"
    seed: Annotated[int, whole()] = 0
    overrun: Literal["timeout", "allow"] | None = None
    kill_grace: Grace = 0
    think_times: Literal["ignore", "honour"] = "ignore"
    epilog: Annotated[tuple[float, float], Epilog] = (0, 0)
    failures: Annotated[Failures | None, FailureText] = None
    on_failure: Literal["requeue", "fail"] = "requeue"
    no_limit: Literal["queue", "reject"] = "queue"
    passes: Literal["instant", "event"] | None = None
    candidates: Literal["requested", "actual"] = "requested"
