"""`OpenSimulation`: a simulation to which jobs are submitted while its clock runs, in simpy.

It runs in a simpy environment, beside any processes, resources and stores of the program.  What a program
does takes place at the present instant: ends first, then submissions, then one scheduling pass, as in
`simulate`.

How a run ends before its end: `run_until` an event, or by Ctrl-C `between_events`.
"""

from __future__ import annotations

import copy
import signal
import threading
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import msgspec
from simpy import Environment, Event
from simpy.core import EmptySchedule

from simsched.arguments import check, check_path, check_real, check_whole, options_of, wrong
from simsched.errors import ConfigError, RunError
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.formats.rfc.idset import Idset
from simsched.garbage import seldom_collected
from simsched.graph import edit
from simsched.match.policies.policy import find_policy
from simsched.schedule.policies.registry import naming_policy
from simsched.simulation.checkpoint.checkpoint import (
    codec_of,
    identity_of,
    refuse_other,
    restore_run,
    write_checkpoint,
)
from simsched.simulation.engine import capture, restore
from simsched.simulation.environment import DISRUPTION, LAST, SUBMISSION, ScheduledCall
from simsched.simulation.event_frames import came_through_a_run, is_within_a_run
from simsched.simulation.jobs.conditions import names_of
from simsched.simulation.live.grown_run import check_growth, grow
from simsched.simulation.live.growth import (
    Arrivals,
    Growth,
    OpenCheckpoint,
    jobs_of,
    refuse_closed,
)
from simsched.simulation.live.job_changes import JobChanges, refuse_changes
from simsched.simulation.live.live_job import LiveJob
from simsched.simulation.live.node_changes import ABSENT, LEAVING, REMOVED, RUN, NodeChanges
from simsched.simulation.live.submission import JobFields, SubmissionReader, read_seconds
from simsched.simulation.live.watch import Watch
from simsched.simulation.options.run_config import make_config
from simsched.simulation.outages.outages import DRAIN, FAILURE
from simsched.simulation.simulate import RunSession, engine_of, pools_of
from simsched.workload.job import Job, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO, Self, Unpack

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.cluster import Cluster, ClusterLike
    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.record.run_directory import RunResult


FIRST = -1
"""The priority of an event before all others of its instant; it may be any number."""


def run_until(env: Environment, until: Event | None) -> Any:
    """Run an environment until an event, and return its value; None: until nothing is left.

    RunError if the event belongs to another environment, or nothing is left to happen before it.
    """
    if until is not None and until.env is not env:
        raise RunError("the event belongs to another environment", expected="one of `Simulation.env`")
    try:
        return env.run(until=until)
    except RuntimeError:
        if until is None or until.triggered or env.peek() != inf:
            raise
        text = f"at {env.now:g} s nothing is left to happen, and the event has not taken place"
        raise RunError(text, expected="an event that happens, or `until` a time") from None


@contextmanager
def between_events(env: Environment) -> Iterator[None]:
    """Raise KeyboardInterrupt once the present event of the run is over; a second Ctrl-C ends it at once.

    Only in the main thread, and only if the program has no handler of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return
    asked = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal asked
        if asked or not is_within_a_run(frame):
            signal.default_int_handler(number, frame)
        asked = True
        once_over(env, _raise)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def once_over(env: Environment, action: Callable[[Any], Any]) -> None:
    """Call a function, with an event, when the present event of the environment is over."""
    event = ScheduledCall()
    event.callbacks = [action]
    env.schedule(event, FIRST)  # type: ignore[arg-type]


def _raise(_: Any) -> NoReturn:
    raise KeyboardInterrupt


class OpenSimulation(RunSession):
    """A run that is open: jobs come, and nodes come and go, while the clock runs.

    Parameters
    ----------
    queue_policy, match_policy, seed, allocations, eventlog, sink, inputs : as for `simulate`; `options` are
        further fields of `RunConfig`.
    env : a simpy environment to share.  Its present time is second 0 of the run.
    expect : jobs of the kinds that will be submitted.  Whether counts alone decide is then known from the
        beginning, as in `simulate`; otherwise the first request that counts cannot decide hands over to the
        matcher, and a policy with reservations makes them again at that moment.  Of a workload, the name, the
        clock and the skipped records go into the records.
    absent : ranks of execution targets that the cluster does not have at first, until `add`.
    name : of the jobs, in the records; by default that of the workload to expect.
    """

    def __init__(
        self,
        cluster: Cluster,
        queue_policy: str | QueuePolicy = "easy",
        match_policy: str | MatchPolicy | CandidateOrder = "first",
        seed: int = 0,
        *,
        env: Environment | None = None,
        allocations: bool = True,
        eventlog: bool = False,
        sink: BinaryIO | None = None,
        inputs: Mapping[str, str | Path] | None = None,
        expect: Workload | Iterable[Job] = (),
        absent: int | str | Iterable[int] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        config = make_config(queue_policy=queue_policy, match_policy=match_policy, seed=seed, **options)
        config.refuse_contradictions()
        refuse_closed(config)
        config = config.on_clock(None).on_machine(cluster.index)  # dates need the clock of a log
        super().__init__(cluster, config)
        self._base = self._planned = self.cluster
        self._expected = tuple(expect)
        self._written = {"allocations": allocations, "eventlog": eventlog}
        known = replace(expect, jobs=()) if isinstance(expect, Workload) else Workload(())
        self.workload = replace(known, name=name or known.name or "submissions")
        self._has_sink = sink is not None
        self._open(env, sink)
        self.describe_inputs(inputs)
        self._watch = Watch(self)
        self.engine.add("watch", self._watch)
        self._reader = SubmissionReader()
        self._broken: str | None = None
        self._plays = False
        if absent is not None:
            self._take_out(absent, DRAIN, ABSENT)

    def _open(self, env: Environment | None, sink: BinaryIO | None) -> None:
        """Make the engine of a run without jobs."""
        empty, index = replace(self.workload, jobs=()), self.cluster.index
        made = engine_of(self.cluster, empty, self.config, sink=sink, env=env, open_=True, **self._written)
        self.engine, self.prepared, _ = made
        engine = self.engine
        self.growth = growth = Growth(engine, self._expected)
        disruption: Any = engine.parts["disruption"]
        self.arrivals = Arrivals(engine, growth, disruption)
        engine.add("arrivals", self.arrivals)
        self._changes = JobChanges(engine, index, growth, find_policy(self.config.match_policy))
        self._nodes = NodeChanges(engine, index, growth, disruption)
        engine.add("nodes", self._nodes)
        engine.future.handle("grow", lambda larger: grow(self, larger))
        engine.future.handle("pause", lambda event: event.succeed())

    # -- time -------------------------------------------------------------------------------------

    @property
    def env(self) -> Environment:
        """The simpy environment; processes of the program run in it."""
        return self.engine.future.env

    @property
    def now(self) -> float:
        """The time of the run, in seconds."""
        return self.engine.future.come_to_present()

    def run(self, until: float | Event | None = None) -> Any:
        """Run the environment: until nothing is left to happen, until a time, or until a simpy event.

        A time is one of the run, and everything that happens at it is included.  Of an event the value is
        returned.  Further jobs may be submitted afterwards, and the run continued.

        Raises
        ------
        ConfigError
            For a time that is not a number, or in the past.
        RunError
            If a callback failed, here or before, or the event does not happen.
        """
        self._refuse_broken()
        engine = self.engine
        if until is not None and not isinstance(until, Event):
            self._check_time("until", until)
            event = self.env.event()
            engine.future.come_to_present()
            engine.future.at(until, LAST, "pause", event)
            until = event
        self.arrivals.endless = until is not None
        with between_events(self.env):
            return self._play(lambda: run_until(self.env, until))

    def step(self) -> bool:
        """Handle one event of the environment; return False if none was left."""
        self._refuse_broken()
        try:
            self._play(self.env.step)
        except EmptySchedule:
            return False
        return True

    def step_pass(self) -> bool:
        """Run until the next scheduling pass is over; return False if none came."""
        before = self.engine.progress.passes
        while self.step():
            if self.engine.progress.passes > before:
                return True
        return False

    def _play(self, action: Callable[[], Any]) -> Any:
        """Let the environment run; remember if it stopped within an event of the run."""
        if self._plays or self._watch.calling is not None:
            raise RunError("the clock runs already", expected="`yield` in a process: yield job.ended")
        self._plays = True
        try:
            # Many objects stay to the end; the collector would walk them again and again.
            with naming_policy(self.config.queue_policy), seldom_collected():
                return action()
        except EmptySchedule:
            raise
        except BaseException as error:
            if came_through_a_run(error):
                self._broken = str(error) or type(error).__name__
            raise
        finally:
            self._plays = False

    def _refuse_broken(self) -> None:
        if self._broken is not None:
            raise RunError(f"the simulation ended with an error: {self._broken}")

    def _check_time(self, name: str, value: Any) -> None:
        """Raise a ConfigError unless a value is a time of the run that has not passed."""
        check_real(name, value, 0, MAX_SECONDS)
        if value < self.now:
            raise ConfigError(f"{name} is {value:g} s, which has passed", expected=f"{self.now:g} s or later")

    # -- jobs -------------------------------------------------------------------------------------

    @options_of(JobFields)
    def submit(
        self,
        request: str | Jobspec | Mapping[str, Any] | Job,
        duration: float | str | None = None,
        runtime: float | str | None = None,
        at: float | None = None,
        **options: Unpack[JobFields],
    ) -> LiveJob:
        """Submit a job now, or `at` a time to come.

        Parameters
        ----------
        request : a shape, a jobspec (as an object or a document), or a job of a workload as it is.
        duration : requested seconds, or an RFC 23 duration; by default that of the jobspec, or unlimited.
        runtime : seconds that the job will run; by default it runs for its duration.
        options : further fields of `Job`, which are those of `JobFields`.

        Raises
        ------
        ConfigError
            For a time that is not a number or has passed, or an attribute that does not exist.
        FormatError
            For a request that is neither a shape nor a jobspec.
        RunError
            If a callback failed before.
        """
        self._refuse_broken()
        engine = self.engine
        now = engine.future.come_to_present()
        if at is not None:
            self._check_time("at", at)
            at = at.item() if hasattr(at, "item") else at  # a number of NumPy
        job = self._reader.read(request, duration, runtime, at, now, options)
        if job.submit < now:
            self._check_time("at", job.submit)
        self.growth.refuse(job)
        live = LiveJob(self, job)
        ticket = self.arrivals.hand_in(job)
        live.ticket = ticket
        self._watch.coming[ticket] = live
        return live

    def submit_all(self, workload: Workload | Iterable[Job]) -> list[LiveJob]:
        """Submit each job of a workload at its own submit time; the times are those of the run."""
        if isinstance(workload, Workload) and not self._reader.ids:
            self.workload = workload
        return [self.submit(job) for job in workload]

    def cancel(self, job: LiveJob) -> None:
        """Cancel a job now (`LiveJob.cancel`)."""
        self._refuse_gone(job)
        if job.number is None:
            self.arrivals.withdraw(job.ticket, job.job)
            del self._watch.coming[job.ticket]
            job.note_withdrawal()
            if "dependencies" in self.engine.parts:
                self._enter("withdrawn", names_of(job.job))
            return
        self.growth.note_cancel(job.number, self.now)
        self._enter("cancel", job.number)

    def update(self, job: LiveJob, duration: float | str) -> None:
        """Change the requested seconds of a job now (`LiveJob.update`)."""
        self._refuse_gone(job)
        refuse_changes(self.config, "its requested time changes")
        seconds = read_seconds("duration", duration)
        found = float("inf") if seconds is None else seconds
        if job.start is not None and job.start + found < self.now:
            least = f"{self.now - job.start:g} s or more"
            raise ConfigError(f"job {job.id} has run for more than {found:g} s", expected=least)
        if job.number is None:
            job.job = msgspec.structs.replace(job.job, duration=seconds)
            self.arrivals.exchange(job.ticket, job.job)
        else:
            self._enter("new-duration", (job.number, seconds if seconds is not None else found))

    def resize(self, job: LiveJob, size: int, *, beside_queue: bool = False) -> Event:
        """Let a running malleable job have `size` execution targets from now on (`LiveJob.resize`)."""
        self._refuse_gone(job)
        refuse_changes(self.config, "its resources change")
        check_whole("size", size, 1)
        if job.number is None:
            raise RunError(f"job {job.id} does not run", expected="a running job")
        self._changes.check_size(job.number, size)
        event = self.env.event()
        self._enter("resize", (job.number, size, beside_queue, event))
        return event

    def _refuse_gone(self, job: LiveJob) -> None:
        self._refuse_broken()
        if job.result is not None:
            raise RunError(f"job {job.id} has ended ({job.result})", expected="a job that waits or runs")

    def _enter(self, kind: str, payload: Any, order: int = SUBMISSION) -> None:
        """Let something happen at the present instant; changes of nodes come before all others."""
        future = self.engine.future
        future.at(future.come_to_present(), order, kind, payload)

    # -- nodes ------------------------------------------------------------------------------------

    def reopen(self, cluster: Cluster) -> None:
        """Make an engine without jobs for a larger cluster, which goes on with the same files."""
        log, self.cluster = self.engine.recorder.log, cluster
        self._open(None, None if log is None else log.sink)
        self.engine.add("watch", self._watch)

    def drain(self, ranks: int | str | Iterable[int], note: str = "drain") -> None:
        """Drain execution targets now: no job starts on them, and running jobs continue.

        ConfigError for a rank that the cluster does not have.
        """
        self._take_out(ranks, DRAIN, note)

    def fail(self, ranks: int | str | Iterable[int], note: str = "failure") -> None:
        """Let execution targets fail now: their jobs are queued again or fail, as `on_failure` says.

        ConfigError for a rank that the cluster does not have.
        """
        self._take_out(ranks, FAILURE, note)

    def undrain(self, ranks: int | str | Iterable[int]) -> None:
        """Bring back execution targets that were drained or have failed.

        ConfigError for a rank that is neither.
        """
        self._bring_back(ranks, absent=False)

    def remove(self, ranks: int | str | Iterable[int]) -> None:
        """Remove execution targets, whose jobs run on: `remove_nodes`."""
        self.remove_nodes(ranks)

    def add(self, ranks: int | str | Iterable[int]) -> None:
        """Add execution targets of the cluster that are absent so far, or were removed.

        ConfigError for a rank that is neither.
        """
        self._bring_back(ranks, absent=True)

    def add_nodes(
        self,
        nodes: int | str | ClusterLike | Mapping[str, Any],
        *,
        like: int | str | None = None,
        under: str | None = None,
        properties: str | Iterable[str] = (),
    ) -> list[int]:
        """Add execution targets that the cluster did not have, now; return their ranks.

        Parameters
        ----------
        nodes : with `like`, a number of nodes or their hosts as a hostlist; otherwise the description of the
            new nodes: a cluster, a file, a bundled name, or a document (R, JGF, a recipe).
        like : a rank or a host; the new nodes are copies of it, in the same rack, switch …
        under : the vertex that contains the new nodes, as a path or a name; by default that of `like`, or
            the root.  Racks and switches of a description join those with the same path of names.
        properties : further properties of the new nodes.

        Jobs that were refused because the cluster was too small stay refused.

        Raises
        ------
        ClusterError, ConfigError, FormatError
            For nodes that cannot be added, with the reason.
        """
        self._refuse_broken()
        before = self._planned
        if like is None and (nodes is None or isinstance(nodes, int)):
            raise wrong("nodes", nodes, "like=, a node to copy, or a description of the nodes")
        if like is None:
            after = edit.join_nodes(before, nodes, under=under)  # type: ignore[arg-type]
        else:
            after = edit.add_nodes(before, nodes, like=like, under=under)  # type: ignore[arg-type]
        known = set(before.index.ranks.tolist())
        new = [rank for rank in after.index.ranks.tolist() if rank not in known]
        names = (properties,) if isinstance(properties, str) else properties
        check("properties", names, Iterable, "the names of properties")
        if names := tuple(names):
            after = edit.add_properties(after, Idset.from_ids(new), *names)
        check_growth(before.index, after.index, self.config)
        self._planned = after
        self._enter("grow", after, DISRUPTION)
        return new

    def remove_nodes(self, ranks: int | str | Iterable[int], jobs: str = RUN) -> None:
        """Remove execution targets: no job starts on them any more; `add` brings them back.

        What happens to the jobs on them: ``run``: they continue to their ends, as on drained targets;
        ``requeue``: they are queued again; ``fail``: they end as FAILED.
        Jobs that are submitted afterwards and fit only with the removed targets can never run.

        ConfigError for a rank that the cluster does not have, or another word for `jobs`.
        """
        if jobs not in LEAVING:
            raise wrong("jobs", jobs, ", ".join(LEAVING))
        self._take_out(ranks, DRAIN, REMOVED, jobs)

    def _take_out(self, ranks: Any, kind: str, note: str, jobs: str = RUN) -> None:
        self._refuse_broken()
        check("note", note, str, "a text")
        found = self._nodes.ranks(ranks, self._planned.index)
        self._enter("take-out", (found, kind, note, jobs), DISRUPTION)

    def _bring_back(self, ranks: Any, *, absent: bool) -> None:
        self._refuse_broken()
        found = self._nodes.ranks(ranks, self._planned.index)
        self._nodes.refuse_others(found, absent=absent)
        self._enter("bring-back", found, DISRUPTION)

    # -- views ------------------------------------------------------------------------------------

    @property
    def queue(self) -> list[LiveJob]:
        """The jobs that wait for resources, in the order of their queues."""
        jobs = self._watch.jobs
        for group in self.engine.queues:
            if not group.queue.static and group.queue:
                group.queue.sort(self.now)
        return [jobs[number] for group in self.engine.queues for number in group.queue]

    @property
    def running(self) -> list[LiveJob]:
        """The jobs that run, in the order of their starts."""
        engine, jobs = self.engine, self._watch.jobs
        return [jobs[number] for number in engine.plan.claimants if engine.is_running(number)]

    def free(self) -> dict[str, int]:
        """Return the free units of each type; ``node`` are the execution targets that are idle and up."""
        plan = self.engine.plan
        totals = {name: int(plan.total[name]) for name in pools_of(self.cluster)}
        return {"node": int(plan.idle), **totals}

    def on(self, event: str, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        """Call `callback` at each event of a kind, with the job; for ``pass`` with the simulation.

        The kinds are ``submit``, ``start``, ``end``, ``requeue``, ``change`` (a running job got other
        resources) and ``pass``.  Whatever the callback does takes place once the present event is over.

        Raises
        ------
        ConfigError
            For an unknown event, or a callback that is not a function.
        """
        self._watch.add(event, callback)
        return callback

    def job(self, id_: int | str) -> LiveJob:
        """Return the job with an id, which may have ended; ConfigError if there is none."""
        for live in (*self._watch.jobs.values(), *self._watch.coming.values()):
            if str(live.id) == str(id_):
                return live
        for number, job in enumerate(self.growth.jobs):
            if str(job.id) == str(id_):
                live = LiveJob(self, job)
                live.number = number
                return live
        raise ConfigError(f"there is no job {id_!r}", expected="the id of a job that was submitted")

    # -- copies -----------------------------------------------------------------------------------

    def copy(self, env: Environment | None = None) -> Self:
        """Return a simulation in the same state, to look ahead: what happens in it does not change this one.

        It has an environment of its own, or `env`, and its own jobs (`job`), but neither the processes and
        resources of the program nor its callbacks.  Allocations that went to a file are not part of it.

        RunError if a callback failed before or calls this, but for ``pass``, or a policy remembers a value
        that cannot be copied.
        """
        self._refuse_broken()
        self._watch.refuse_halves("copy")
        made = copy.copy(self)
        made._plays = False
        made._written = {**self._written, "allocations": self._written["allocations"] and not self._has_sink}
        made._open(None, None)
        now, engine = self.now, made.engine
        made._watch = Watch(made)
        engine.add("watch", made._watch)
        made._reader = self._reader.copy()
        made.growth.repeat(self.growth.record())
        engine.future.move_to(Environment(self.env.now) if env is None else env, now)
        codec = codec_of(self.engine, in_memory=True)
        state = codec.value(codec.plain(capture(self.engine)))
        restore(engine, state)
        engine.recorder.take_lines(self.engine.recorder)
        made._watch.take_over(self._watch, lambda job: job.copy_in(made))
        made.arrivals.go_on()
        return made

    def checkpoint(self, path: str | Path | None = None) -> RunCheckpoint[Self]:
        """Return the present state, from which the run can be continued several times.

        With a `path` it is written to a file too (gzip if its name ends in ``.gz``), for `restore`.
        A callback, whose event is half done, gets the state once the event is over.

        Errors as `copy`, and RunError if the file cannot be written.
        """
        self._refuse_broken()
        if path is not None:
            check_path("path", path)

        def keep() -> Any:
            if path is not None:
                log = replace(self.workload, jobs=self._expected)
                grown = self.cluster is not self._base
                jobs = jobs_of(self.growth, log, self._reader, self.cluster if grown else None)
                write_checkpoint(self.engine, path, identity_of(self._base, self.config), jobs)
            return self.copy()

        return RunCheckpoint(self.env, keep, at_once=not self._watch.is_half_done)

    @classmethod
    def restore(
        cls, path: str | Path, cluster: Any, *arguments: Any, env: Environment | None = None, **options: Any
    ) -> Self:
        """Return a simulation that continues from a file of `checkpoint`.

        The cluster and all options are those of the simulation that wrote it; policies may be objects.  Its
        time goes on in a simpy environment of its own, or in `env`.

        Raises
        ------
        FormatError
            If it is not such a file, or was changed.
        RunError
            If it is of another version, cluster or configuration.
        """
        check_path("path", path)
        head = OpenCheckpoint(path)
        made = cls(cluster, *arguments, **{"expect": head.expected, **options})
        identity = identity_of(made.cluster, made.config)
        refuse_other(head.head, identity, str(path))
        if head.grown is not None:
            made._planned = head.grown
            made.reopen(head.grown)
        engine = made.engine
        time = head.head.time
        engine.future.move_to(Environment(time) if env is None else env, time)
        restore_run(
            engine,
            head.head,
            identity,
            where=str(path),
            enter=lambda: head.put_into(made.growth, made._reader),
            specs=head.specs,
        )
        for event in engine.future.pending():
            if event.kind == "grow":
                made._planned = event.payload
        made._watch.find_jobs(engine, made.growth, made.arrivals)
        made.arrivals.go_on()
        return made

    # -- records ----------------------------------------------------------------------------------

    def result(self) -> RunResult:
        """Return the records so far, as those of `simulate`; the run may continue afterwards.

        Jobs that wait are PENDING in them, and jobs that run RUNNING, unless everything is over.

        Raises
        ------
        RunError
            If a callback failed before, or calls this, but for ``pass``.
        """
        self._refuse_broken()
        self._watch.refuse_halves("read the records of")
        engine = self.engine
        recorder = engine.recorder.detached()
        until = self.now if len(self.arrivals) or any(engine.future.pending()) else None
        if until is not None:
            recorder.tick(until, engine.plan, engine.queued, engine.queues.queued_cores)
        coming = tuple(self.arrivals)
        recorder.extend(coming)
        workload = replace(self.workload, jobs=(*self.growth.jobs, *coming))
        times: dict[str, Any] = {"complete": True, "until": until, "from": None}
        if self.growth.renewals:
            times["renewals"] = list(self.growth.renewals)
        changes = self._nodes.outages()
        if changes:
            times["live"] = True
        config = self.config.replace(outages=(*self.config.outages, *changes))
        return self._records(recorder, workload, times, config)


_Simulation = TypeVar("_Simulation", bound=OpenSimulation)


class RunCheckpoint(Generic[_Simulation]):
    """A state of an open simulation; `restore` returns a simulation that continues from it."""

    def __init__(self, env: Environment, keep: Callable[[], _Simulation], *, at_once: bool) -> None:
        """Keep the state at once, or when the present event is over."""
        self._time: float = env.now
        self._kept: _Simulation | None = None
        self._keep = keep
        if at_once:
            self._take(None)
        else:
            once_over(env, self._take)

    def _take(self, _: Any) -> None:
        self._kept = kept = self._keep()
        self._time = kept.now

    def __repr__(self) -> str:
        return f"<RunCheckpoint at {self.time:g} s>"

    @property
    def time(self) -> float:
        """The time of the state, in seconds."""
        return self._time

    def restore(self, env: Environment | None = None) -> _Simulation:
        """Return a simulation in this state, as `Simulation.copy` does; it may be called several times.

        RunError within the callback that asked for the state: its event is not over.
        """
        if self._kept is None:
            raise RunError("the state is kept once the present event is over", expected="`restore` after it")
        return self._kept.copy(env)
