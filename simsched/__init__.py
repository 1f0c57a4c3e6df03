"""simsched: a simulated scheduler and matching engine for Flux-style HPC clusters.

>>> import simsched as ss
>>> ss.Jobspec.from_shape("slot=2/core=4", duration=60).to_shape()
'slot=2/core=4'

Every public name is loaded at its first use, so that the import of the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.api import simulate as simulate
    from simsched.errors import ClusterError as ClusterError
    from simsched.errors import ConfigError as ConfigError
    from simsched.errors import FormatError as FormatError
    from simsched.errors import LimitError as LimitError
    from simsched.errors import PluginError as PluginError
    from simsched.errors import RequestError as RequestError
    from simsched.errors import RunError as RunError
    from simsched.errors import SimschedError as SimschedError
    from simsched.errors import WorkloadError as WorkloadError
    from simsched.formats.cluster.rset import ResourceSet as ResourceSet
    from simsched.formats.jobspec.jobspec import Jobspec as Jobspec
    from simsched.formats.request_files import load_jobspec as load_jobspec
    from simsched.formats.request_files import load_jobspecs as load_jobspecs
    from simsched.formats.rfc.hostlist import Hostlist as Hostlist
    from simsched.formats.rfc.idset import Idset as Idset
    from simsched.graph.build.cluster_plugins import ClusterReader as ClusterReader
    from simsched.graph.cluster import Cluster as Cluster
    from simsched.graph.cluster import load_cluster as load_cluster
    from simsched.graph.pool import Pool as Pool
    from simsched.live.live_simulation import Simulation as Simulation
    from simsched.match.matcher import Matcher as Matcher
    from simsched.match.outcome import Busy as Busy
    from simsched.match.outcome import Infeasible as Infeasible
    from simsched.match.outcome import Matched as Matched
    from simsched.match.outcome import Outcome as Outcome
    from simsched.match.outcome import Undecided as Undecided
    from simsched.match.policies.candidates import Candidates as Candidates
    from simsched.match.policies.policy import CandidateOrder as CandidateOrder
    from simsched.match.policies.policy import MatchPolicy as MatchPolicy
    from simsched.report.metrics.metric_plugins import Metric as Metric
    from simsched.report.metrics.metric_plugins import MetricFunction as MetricFunction
    from simsched.report.run_views import Run as Run
    from simsched.report.run_views import load_run as load_run
    from simsched.report.section_plugins import ReportSection as ReportSection
    from simsched.schedule.orders.priority_rules import PriorityFactor as PriorityFactor
    from simsched.schedule.orders.ranking import JobOrder as JobOrder
    from simsched.schedule.orders.ranking import Order as Order
    from simsched.schedule.pass_context import PassContext as PassContext
    from simsched.schedule.pass_context import QueuePolicy as QueuePolicy
    from simsched.schedule.predictors.predictor import RunTimePredictor as RunTimePredictor
    from simsched.simulation.feasibility import feasible as feasible
    from simsched.simulation.live.live_job import LiveJob as LiveJob
    from simsched.site.import_site import import_site as import_site
    from simsched.site.site import Site as Site
    from simsched.site.site_folder import load_site as load_site
    from simsched.site.site_folder import save_site as save_site
    from simsched.study.search.size import headroom as headroom
    from simsched.study.search.size import size as size
    from simsched.study.spec.study import Study as Study
    from simsched.study.spec.study_file import load_study as load_study
    from simsched.study.spec.study_file import study_from_dict as study_from_dict
    from simsched.study.study_folder import StudyResult as StudyResult
    from simsched.study.study_folder import load_study_result as load_study_result
    from simsched.study.sweep import sweep as sweep
    from simsched.workload.job import ArrayTask as ArrayTask
    from simsched.workload.job import Job as Job
    from simsched.workload.job import Workload as Workload
    from simsched.workload.job import job_array as job_array
    from simsched.workload.load import WorkloadReader as WorkloadReader
    from simsched.workload.load import load_workload as load_workload

_NAMES = {
    "report.run_views": "Run load_run",
    "live.live_simulation": "Simulation",
    "simulation.live.live_job": "LiveJob",
    "api": "simulate",
    "errors": "ClusterError ConfigError FormatError LimitError PluginError RequestError RunError"
    " SimschedError WorkloadError",
    "formats.rfc.hostlist": "Hostlist",
    "formats.rfc.idset": "Idset",
    "formats.jobspec.jobspec": "Jobspec",
    "formats.request_files": "load_jobspec load_jobspecs",
    "formats.cluster.rset": "ResourceSet",
    "graph.cluster": "Cluster load_cluster",
    "graph.pool": "Pool",
    "match.matcher": "Matcher",
    "simulation.feasibility": "feasible",
    "match.outcome": "Busy Infeasible Matched Outcome Undecided",
    "site.site": "Site",
    "site.import_site": "import_site",
    "site.site_folder": "load_site save_site",
    "study.spec.study": "Study",
    "study.study_folder": "StudyResult load_study_result",
    "study.spec.study_file": "load_study study_from_dict",
    "study.sweep": "sweep",
    "study.search.calibration": "Calibration",
    "study.search.calibrate": "calibrate",
    "study.search.size": "headroom size",
    "workload.job": "Job Workload ArrayTask job_array",
    "workload.load": "load_workload WorkloadReader",
    "match.policies.policy": "CandidateOrder MatchPolicy",
    "match.policies.candidates": "Candidates",
    "graph.build.cluster_plugins": "ClusterReader",
    "schedule.orders.ranking": "JobOrder Order",
    "schedule.orders.priority_rules": "PriorityFactor",
    "schedule.pass_context": "QueuePolicy PassContext",
    "schedule.predictors.predictor": "RunTimePredictor",
    "report.metrics.metric_plugins": "Metric MetricFunction",
    "report.section_plugins": "ReportSection",
}
"""Module → the public names that it defines."""

_HOME = {name: f"simsched.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604 (the table's keys are strings)


def __getattr__(name: str) -> object:
    """Load a public name from its module (PEP 562)."""
    if name == "__version__":
        from simsched._version import version

        return version()
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'simsched' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
