"""The output of ``squeue --json`` or ``scontrol show job`` of a live cluster as a queue snapshot.

Jobs in RUNNING, COMPLETING and the like run, those in PENDING wait, and those that ended are ignored; a
document without active jobs is a log, not a queue snapshot.  A running job holds the cpus and gpus on its
nodes until its limit, and its memory if the queue is that of a site.  The request of a waiting job is the
one that a workload has (see `slurm_json`).  A job waits for resources if Slurm gives Priority, Resources or
no reason; a begin time and dependencies on jobs of the document are taken over.  Other reasons, such as a
hold or a limit of its account, cannot be forecast.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from simsched.errors import FormatError, SimschedError, WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import AFTERCORR, JOB_SCHEMES, Dependency
from simsched.formats.rfc.hostlist import Hostlist
from simsched.workload.dependencies import refuse_cycles, slurm_dependencies
from simsched.workload.job import Job, job_array
from simsched.workload.mapping import GPU_TEMPLATE, MissingValueError
from simsched.workload.queue_snapshot.snapshot import (
    NEVER,
    UNKNOWN_SHAPE,
    QueueSnapshot,
    RunningJob,
    Spread,
    WaitingJob,
)
from simsched.workload.readers.slurm_json import positive, queued_flat, queued_jobs, queued_task, state_word
from simsched.workload.readers.slurm_values import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.workload.mapping import ReadOptions
    from simsched.workload.readers.slurm_json import QueuedJob

_FORESEEN = frozenset(("", "None", "Priority", "Resources", "BeginTime", "Dependency", "JobArrayTaskLimit"))
"""Reasons of waiting jobs that a forecast takes into account."""
_TAKEN = re.compile("Nodes.required.for.job.are.DOWN,.DRAINED")
"""How scontrol puts Resources where jobs of a partition before it have most of the nodes."""


def read_slurm_queue(text: str, where: str, reading: ReadOptions) -> QueueSnapshot | None:
    """Read the document; None if no job in it is active.

    Raises
    ------
    FormatError, WorkloadError
        For a document that no Slurm writes, and a running job without its nodes or start.
    """
    jobs, updated = queued_jobs(text, where, reading.time_zone)
    active: list[tuple[str, QueuedJob]] = []
    for place, job in jobs:
        if isinstance(job, FormatError):
            raise job.at(f"{where}:{place}")
        if state_word(job.job_state) in UNFINISHED:
            active.append((f"{where}:{place}", job))
    if not active:
        return None
    reader = _Reader(reading, _known(active))
    running, waiting = [], []
    for place, job in active:
        try:
            if state_word(job.job_state) == "PENDING":
                waiting += reader.waiting(place, job)
            else:
                running.append(reader.running(place, job))
        except SimschedError as error:
            raise error.at(place) from None
    refuse_cycles([found.job for found in waiting])
    # The start of a waiting job is what Slurm expects, and may be later than now.
    times = [*(found.start for found in running), *(found.job.submit for found in waiting)]
    time = updated or max(times)
    return QueueSnapshot(time, tuple(running), tuple(waiting), where, epoch=True)


class _Reader:
    """Turns the jobs of one document into jobs of a snapshot."""

    def __init__(self, reading: ReadOptions, ids: set[str]) -> None:
        self.map = reading.job_map(with_gpus=GPU_TEMPLATE)
        self.site = reading.on_site
        self.ids = ids
        self.nothing = Jobspec.from_shape(UNKNOWN_SHAPE)

    def running(self, place: str, job: QueuedJob) -> RunningJob:
        """Return a job that holds resources until its limit."""
        start = positive(job.start_time)
        if start is None:
            raise WorkloadError(f"job {job.job_id} runs and has no start", expected="start_time")
        if not isinstance(job.nodes, str) or not job.nodes:
            raise WorkloadError(f"the nodes of the running job {job.job_id} are missing", expected="nodes")
        found = self._job(job, self.nothing)
        holds = self._holds(job, Hostlist.parse(job.nodes, where="nodes"))
        end = NEVER if found.duration is None else start + found.duration
        return RunningJob(found, start, end, holds, place)

    def _holds(self, job: QueuedJob, hosts: Hostlist) -> Spread:
        """Return the cores, gpus and memory of a running job; on a site, its cpus are whole cores."""
        cpus, flat = positive(job.cpus), queued_flat(job)
        kind = self.map.gpu_types.get((flat.gpu_type or "").lower(), "@")
        more = {"gpu" if "@" in kind else kind: flat.gpus or 0}
        if self.site is None:
            cores = cpus
        else:
            cores = None if cpus is None else -(-cpus // self.site.processors_per_core)
            more["memory"] = (flat.memory or 0) * (flat.procs or 0) // 1024
        return Spread(None, hosts, None if cores is None else int(cores), more)

    def waiting(self, place: str, job: QueuedJob) -> list[WaitingJob]:
        """Return a job that waits: for resources, for jobs of the document, or with the reason.

        The tasks of a job array that have not started are one job of the document.
        """
        queue, flat = _queue_of(job), queued_flat(job)
        why = job.state_reason if isinstance(job.state_reason, str) else ""
        reason = None if why in _FORESEEN or _TAKEN.match(why) else f"waits: {why}"
        jobspec = self.nothing
        try:
            if not flat.procs:
                reason = "the request is missing"
            else:
                jobspec = self.map.jobspec(flat, queue)
        except MissingValueError as error:
            reason = error.message
        found, missing = self._dependencies(job, why)
        made = self._job(job, jobspec, found)
        tasks = (job.array_task_string or "").strip("[]")
        if not tasks or made.array_task is not None:
            return [WaitingJob(made, place, reason or missing)]
        array = positive(job.array_job_id)
        most = positive(job.array_max_tasks)
        text = tasks if most is None else f"{tasks.partition('%')[0]}%{most:.0f}"
        if "." in text:
            raise WorkloadError(
                "the list of tasks of a job array is cut short", expected="scontrol show job --json"
            )
        own = msgspec.structs.replace(made, id=made.id if array is None else f"{array:.0f}")
        return [WaitingJob(task, place, reason or missing) for task in job_array(own, text)]

    def _dependencies(self, job: QueuedJob, why: str) -> tuple[tuple[Dependency, ...], str | None]:
        """Return the dependencies that the document can meet, or why there are none."""
        eligible = positive(job.eligible_time)
        if why == "BeginTime" and eligible is not None:
            return (Dependency("begin-time", f"{eligible:.15g}"),), None
        if why != "Dependency":
            return (), None
        text = job.dependency if isinstance(job.dependency, str) else ""
        given = slurm_dependencies(text.replace("?", ",")) or ()
        task = queued_task(job)
        found = [item for item in given if item.scheme in JOB_SCHEMES and item.value in self.ids]
        found = [
            item for item in found if item.scheme != AFTERCORR or task is not None or job.array_task_string
        ]
        return tuple(found), None if found else f"waits for {text or 'a dependency that is not given'}"

    def _job(self, job: QueuedJob, jobspec: Jobspec, after: tuple[Dependency, ...] = ()) -> Job:
        limit, priority = positive(job.time_limit), positive(job.priority)
        if job.job_id is None:
            raise WorkloadError("a job without an id", expected="job_id")
        flat, queue = queued_flat(job), _queue_of(job)
        seconds = None if limit is None else limit * 60
        if seconds is None and self.site is not None:
            seconds = self.site.limit(queue)
        return Job(
            id=str(job.job_id),
            submit=positive(job.submit_time) or 0,
            jobspec=jobspec,
            duration=seconds,
            user=job.user_name or None,
            group=job.group_name or None,
            queue=queue,
            bank=job.account or None,
            name=job.name or None,
            priority=None if priority is None else int(priority),
            dependencies=after,
            procs=flat.procs,
            nodes=flat.nodes,
            memory=flat.memory,
            partition=job.partition or None,
            qos=job.qos or None,
            array_task=queued_task(job),
        )


def _queue_of(job: QueuedJob) -> str | None:
    """Return the first of the partitions that a job may use."""
    return job.partition.split(",")[0] if job.partition else None


def _known(active: Sequence[tuple[str, QueuedJob]]) -> set[str]:
    """Return the ids of jobs, arrays and tasks that are active."""
    found = {str(job.job_id) for _, job in active}
    for _, job in active:
        array = positive(job.array_job_id)
        if array is not None:
            task = queued_task(job)
            found |= {f"{array:.0f}", f"{array:.0f}_*" if task is None else f"{task.array}_{task.index}"}
    return found
