"""The Python interface to open simulations: `Simulation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.api import simulated_run
from simsched.arguments import check, wrong
from simsched.graph.cluster import as_cluster
from simsched.plugins.plugin_errors import name_of
from simsched.simulation.live.open_simulation import OpenSimulation
from simsched.workload.load import as_workload

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simpy import Environment

    from simsched.api import SimulatedRun
    from simsched.graph.cluster import ClusterLike
    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.audit.audit_report import AuditReport
    from simsched.simulation.live.live_job import LiveJob
    from simsched.workload.job import Job, Workload

__all__ = ["Simulation"]


class Simulation(OpenSimulation):
    """A simulation to which jobs are submitted, and in which nodes and jobs change, while its clock runs.

    It runs in a simpy environment (`env`), beside processes, resources and stores of the program.

    Parameters
    ----------
    cluster : a value, a file or a bundled name, or a networkx graph.
    queue_policy, match_policy, seed, options : as for `simulate`.
    env : a simpy environment to share.  Its present time is second 0 of the run.
    expect : a workload of the kinds of jobs that will be submitted.  It decides beforehand, as in
        `simulate`, whether counts suffice or the matcher is needed.

    Raises
    ------
    ConfigError
        for an unknown policy or option.

    >>> sim = Simulation("tiny", queue_policy="easy")
    >>> job = sim.submit("node=2/slot/core", duration="1h")
    >>> sim.run()
    >>> job.start, job.end, job.result
    (0, 3600, 'COMPLETED')
    """

    def __init__(
        self,
        cluster: ClusterLike,
        queue_policy: str | QueuePolicy = "easy",
        match_policy: str | MatchPolicy | CandidateOrder = "first",
        seed: int = 0,
        *,
        env: Environment | None = None,
        expect: Workload | str | Path | Iterable[Job] = (),
        **options: Any,
    ) -> None:
        if env is not None and not hasattr(env, "schedule"):
            raise wrong("env", env, "a simpy.Environment")
        for name in ("allocations", "eventlog"):
            check(name, options.get(name, True), bool, "True or False")
        machine = as_cluster(cluster)
        jobs = expect if isinstance(expect, list | tuple) else as_workload(expect)  # type: ignore[arg-type]
        super().__init__(machine, queue_policy, match_policy, seed, env=env, expect=jobs, **options)

    def __repr__(self) -> str:
        jobs = f"{len(self.queue)} waiting, {len(self.running)} running"
        title = f"{name_of(self.config.queue_policy)} on {self.cluster.name!r}"
        return f"<Simulation {title}: at {self.now:g} s, {jobs}>"

    def submit_all(self, workload: Workload | str | Path | Iterable[Job]) -> list[LiveJob]:
        """Submit each job of a workload, a file or several jobs at its own submit time."""
        several = isinstance(workload, list | tuple)
        return super().submit_all(workload if several else as_workload(workload))  # type: ignore[arg-type]

    def result(self) -> SimulatedRun:  # type: ignore[override]
        """Return the records so far, with data frames and `save`; the run may continue afterwards.

        Jobs that wait are PENDING in them, and jobs that run RUNNING, unless everything is over.
        """
        title = f"{name_of(self.config.queue_policy)} on {self.cluster.name}"
        return simulated_run(super().result(), self.cluster, title)

    def audit(self) -> AuditReport:
        """Return the report of the independent checker on the records so far; true if it finds no fault."""
        from tempfile import TemporaryDirectory

        from simsched.simulation.audit.auditor import audit_run

        records = super().result()
        assert records.workload is not None
        with TemporaryDirectory() as folder:
            return audit_run(records.save(f"{folder}/run"), self.cluster, records.workload)
