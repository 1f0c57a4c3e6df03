"""The Python interface to open simulations: `Simulation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.api import SimulatedRun
from simsched.arguments import check, options_of, wrong
from simsched.graph.cluster import as_cluster
from simsched.plugins.plugin_errors import name_of
from simsched.simulation.live.open_simulation import OpenSimulation
from simsched.simulation.options.run_config import RunConfig
from simsched.simulation.options.run_rules import RunRules
from simsched.site.site_folder import rules_on, site_given
from simsched.text_table import html_table
from simsched.workload.job import FIRST_JOBS, Job
from simsched.workload.load import as_workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import BinaryIO, Unpack

    from simpy import Environment

    from simsched.graph.cluster import ClusterLike
    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.audit.audit_report import AuditReport
    from simsched.simulation.live.live_job import LiveJob
    from simsched.workload.load import WorkloadLike

__all__ = ["Simulation"]


class Simulation(OpenSimulation):
    """A simulation to which jobs are submitted, and in which nodes and jobs change, while its clock runs.

    It runs in a simpy environment (`env`), beside processes, resources and stores of the program.

    Parameters
    ----------
    cluster : a value, a file or a bundled name, a networkx graph, or a site, which brings its rules.
    queue_policy … candidates, allocations, eventlog, sink, inputs : as for `simulate`.
    env : a simpy environment to share.  Its present time is second 0 of the run.
    expect : a workload of the kinds of jobs that will be submitted.  It decides beforehand, as in
        `simulate`, whether counts suffice or the matcher is needed.
    absent : ranks of execution targets that the cluster does not have at first, until `add`.
    name : of the jobs, in the records; by default that of the workload to expect.

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

    @options_of(RunRules, declared=RunConfig)
    def __init__(
        self,
        cluster: ClusterLike,
        queue_policy: str | QueuePolicy | None = None,
        match_policy: str | MatchPolicy | CandidateOrder | None = None,
        seed: int | None = None,
        *,
        allocations: bool = True,
        eventlog: bool = False,
        sink: BinaryIO | None = None,
        inputs: Mapping[str, str | Path] | None = None,
        env: Environment | None = None,
        expect: WorkloadLike = (),
        absent: int | str | Iterable[int] | None = None,
        name: str | None = None,
        **options: Unpack[RunRules],
    ) -> None:
        if env is not None and not hasattr(env, "schedule"):
            raise wrong("env", env, "a simpy.Environment")
        for flag, given in (("allocations", allocations), ("eventlog", eventlog)):
            check(flag, given, bool, "True or False")
        site = site_given(cluster)
        policies = {"queue_policy": queue_policy, "match_policy": match_policy, "seed": seed}
        rules = rules_on(site, {**policies, **options})
        machine = as_cluster(cluster if site is None else site)
        super().__init__(
            machine, env=env, expect=as_workload(expect) if expect != () else (), allocations=allocations,
            eventlog=eventlog, sink=sink, inputs=inputs, absent=absent, name=name, **rules,
        )  # fmt: skip

    def __repr__(self) -> str:
        jobs = f"{len(self.queue)} waiting, {len(self.running)} running"
        title = f"{name_of(self.config.queue_policy)} on {self.cluster.name!r}"
        return f"<Simulation {title}: at {self.now:g} s, {jobs}>"

    def _repr_html_(self) -> str:
        """Return the free units, and the first jobs that run and wait, as tables for a notebook."""
        free = html_table(repr(self)[1:-1], [(kind, f"{units:,}") for kind, units in self.free().items()],
                          ("type", "free"))  # fmt: skip
        tables = [free]
        for state, jobs in (("running", self.running), ("waiting", self.queue)):
            if jobs:
                rows = [(str(job.id), *job._facts().values()) for job in jobs[:FIRST_JOBS]]
                head = ("job", *jobs[0]._facts())
                shown = "" if len(jobs) <= FIRST_JOBS else f", the first {FIRST_JOBS}"
                rows = [(*row, *[""] * (len(head) - len(row)))[: len(head)] for row in rows]
                tables.append(html_table(f"{len(jobs):,} {state}{shown}", rows, head))
        return "".join(tables)

    def submit_all(self, workload: WorkloadLike) -> list[LiveJob]:
        """Submit each job of a workload, a file, or several jobs or mappings at its own submit time."""
        several = isinstance(workload, list | tuple) and all(isinstance(job, Job) for job in workload)
        return super().submit_all(workload if several else as_workload(workload))  # type: ignore[arg-type]

    def result(self) -> SimulatedRun:  # type: ignore[override]
        """Return the records so far, with data frames and `save`; the run may continue afterwards.

        Jobs that wait are PENDING in them, and jobs that run RUNNING, unless everything is over.
        """
        title = f"{name_of(self.config.queue_policy)} on {self.cluster.name}"
        return SimulatedRun(super().result(), self.cluster, name=title)

    def audit(self) -> AuditReport:
        """Return the report of the independent checker on the records so far; true if it finds no fault."""
        from tempfile import TemporaryDirectory

        from simsched.simulation.audit.auditor import audit_run

        records = super().result()
        assert records.workload is not None
        with TemporaryDirectory() as folder:
            return audit_run(records.save(f"{folder}/run"), self.cluster, records.workload)
