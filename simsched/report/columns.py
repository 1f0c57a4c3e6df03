"""The columns of a run's tables: name, kind, unit and meaning, defined once.

These tables check the files that are read and set the dtypes of the frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "category", "int", "float", "bool", "list"]

#: dtype of each kind in the frames; ``category`` falls back to ``str`` when nearly every value differs
DTYPES: dict[Kind, str] = {
    "text": "str",
    "category": "category",
    "int": "int64",
    "float": "float64",
    "bool": "bool",
    "list": "object",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, the kind of its values, their unit and their meaning."""

    name: str
    kind: Kind
    unit: str
    meaning: str


JOBS: tuple[Column, ...] = (
    Column("id", "text", "", "the job's id in the workload"),
    Column("name", "category", "", "the job's name"),
    Column("user", "category", "", "the user that submitted it"),
    Column("bank", "category", "", "the bank (account) that it is charged to"),
    Column("queue", "category", "", "the queue it was submitted to"),
    Column("urgency", "int", "", "RFC 21 urgency, 0 (held) to 31; 16 is the default"),
    Column("submit", "float", "s", "when it was submitted"),
    Column("eligible", "float", "s", "when its dependencies were met and it could be scheduled"),
    Column("start", "float", "s", "when its resources were allocated; NaN: never"),
    Column("wait", "float", "s", "how long it waited, from submission to start; NaN: never started"),
    Column("end", "float", "s", "when it ended; NaN: never, or not yet"),
    Column("duration", "float", "s", "the requested time; inf: unlimited"),
    Column("runtime", "float", "s", "the time it ran"),
    Column("nodes", "int", "nodes", "execution targets that its allocation touches"),
    Column("cores", "int", "cores", "cores that it held"),
    Column("gpus", "int", "gpus", "gpus that it held"),
    Column("slots", "int", "slots", "slots that it held"),
    Column("procs", "float", "processors", "requested processors of the workload; NaN: not given"),
    Column("result", "category", "", "how it ended: one of RESULTS"),
    Column("reason", "category", "", "why it did not run, or did not end well"),
    Column("backfilled", "bool", "", "whether it started ahead of a job that was before it in the queue"),
    Column("promised", "float", "s", "the first start that it was promised; NaN: none"),
    Column("shape", "category", "", "its request as an RFC 46 shape"),
    Column("recorded_state", "category", "", "how it ended in the trace; NaN: not recorded"),
    Column("recorded_start", "float", "s", "when it started in the trace; NaN: not recorded"),
    Column("recorded_wait", "float", "s", "how long it waited in the trace; NaN: not recorded"),
)

#: every value that `result` can have, in the order of the reports
RESULTS = ("COMPLETED", "TIMEOUT", "FAILED", "CANCELED", "RUNNING", "PENDING", "INFEASIBLE", "DROPPED")

#: the facts of a job that its colour in a Gantt chart can stand for
COLOURS = ("job", "user", "queue", "result", "size")

#: columns that every table of jobs has
REQUIRED_JOBS = frozenset({"id", "submit", "start", "end", "result"})

#: columns of the timeline that do not depend on the cluster; free_T, used_T, down_T come for each type T
TIMELINE: tuple[Column, ...] = (
    Column("time", "float", "s", "the instant from which the row holds"),
    Column("queued_jobs", "int", "jobs", "eligible jobs that wait"),
    Column("queued_cores", "int", "cores", "cores that these jobs request"),
    Column("running_jobs", "int", "jobs", "jobs that hold resources"),
)

ALLOCATIONS: tuple[Column, ...] = (
    Column("id", "text", "", "the job's id"),
    Column("attempt", "int", "", "0 for its first allocation; a requeued job has more"),
    Column("rank", "int", "", "the execution target"),
    Column("host", "category", "", "the target's host name"),
    Column("type", "category", "", "type of the pool: core, gpu …; node where R names no children"),
    Column("units", "int", "units", "units of the pool that it held"),
    Column("ids", "category", "", "the ids of those units, an idset"),
    Column("alloc", "float", "s", "when they were allocated"),
    Column("release", "float", "s", "when they were released; NaN: not yet"),
)

#: then ``total_T`` (int, units of the pool type T, up or not) and ``in_T`` (category, the rack, switch … of
#: type T that contains it) for each such type of the cluster
NODES: tuple[Column, ...] = (
    Column("rank", "int", "", "the execution target"),
    Column("host", "text", "", "its host name"),
    Column("up", "bool", "", "whether it was up when the run began"),
    Column("properties", "list", "", "the properties that a constraint can name, a tuple"),
)

#: the times in which limits kept jobs waiting, those of ``limits.parquet``; a group are the jobs with this
#: number in the column ``limit_group`` of `jobs`, which a run under limits has
LIMITS: tuple[Column, ...] = (
    Column("group", "float", "", "the group of jobs; NaN in the row of a single job"),
    Column("job", "text", "", "the job's id; None in the row of a group"),
    Column("limit", "text", "", "the kind of the limit and its scope"),
    Column("blocks", "bool", "", "whether it also blocks the jobs behind in their queue"),
    Column("start", "float", "s", "from when on it kept them waiting"),
    Column("end", "float", "s", "until when; NaN: to the end of the run"),
    Column("reason", "text", "", "a sentence on the limit; None in the row of a group"),
)

#: outages of nodes: those of the configuration, and the random ones of ``failures.parquet``
OUTAGES: tuple[Column, ...] = (
    Column("rank", "int", "", "the execution target"),
    Column("start", "float", "s", "when it became unavailable"),
    Column("end", "float", "s", "when it is available again; inf: never"),
    Column("kind", "category", "", "failure, drain or maintenance"),
)

#: resource type → the column of `jobs` with the units that a job held
HELD = {"node": "nodes", "core": "cores", "gpu": "gpus"}
