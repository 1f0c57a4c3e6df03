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
    from simsched.study.sizing.size import headroom as headroom
    from simsched.study.sizing.size import size as size
    from simsched.study.spec.study import Study as Study
    from simsched.study.spec.study_file import load_study as load_study
    from simsched.study.spec.study_file import study_from_dict as study_from_dict
    from simsched.study.study_result import StudyResult as StudyResult
    from simsched.study.study_result import load_study_result as load_study_result
    from simsched.study.sweep import sweep as sweep
    from simsched.workload.job import ArrayTask as ArrayTask
    from simsched.workload.job import Job as Job
    from simsched.workload.job import Workload as Workload
    from simsched.workload.job import job_array as job_array
    from simsched.workload.load import load_workload as load_workload
    from simsched.workload.reader_plugins import WorkloadReader as WorkloadReader

#: Public name → the module that defines it.
_HOME = {
    "Run": "simsched.report.run_views",
    "Simulation": "simsched.live.live_simulation",
    "LiveJob": "simsched.simulation.live.live_job",
    "load_run": "simsched.report.run_views",
    "simulate": "simsched.api",
    "ClusterError": "simsched.errors",
    "ConfigError": "simsched.errors",
    "FormatError": "simsched.errors",
    "LimitError": "simsched.errors",
    "RequestError": "simsched.errors",
    "RunError": "simsched.errors",
    "SimschedError": "simsched.errors",
    "WorkloadError": "simsched.errors",
    "Hostlist": "simsched.formats.rfc.hostlist",
    "Idset": "simsched.formats.rfc.idset",
    "Jobspec": "simsched.formats.jobspec.jobspec",
    "load_jobspec": "simsched.formats.request_files",
    "load_jobspecs": "simsched.formats.request_files",
    "ResourceSet": "simsched.formats.cluster.rset",
    "Cluster": "simsched.graph.cluster",
    "load_cluster": "simsched.graph.cluster",
    "Pool": "simsched.graph.pool",
    "Matcher": "simsched.match.matcher",
    "feasible": "simsched.simulation.feasibility",
    "Busy": "simsched.match.outcome",
    "Infeasible": "simsched.match.outcome",
    "Matched": "simsched.match.outcome",
    "Outcome": "simsched.match.outcome",
    "Undecided": "simsched.match.outcome",
    "Site": "simsched.site.site",
    "import_site": "simsched.site.import_site",
    "load_site": "simsched.site.site_folder",
    "save_site": "simsched.site.site_folder",
    "Study": "simsched.study.spec.study",
    "StudyResult": "simsched.study.study_result",
    "load_study": "simsched.study.spec.study_file",
    "load_study_result": "simsched.study.study_result",
    "study_from_dict": "simsched.study.spec.study_file",
    "sweep": "simsched.study.sweep",
    "Calibration": "simsched.study.calibration.calibration",
    "calibrate": "simsched.study.calibration.calibrate",
    "headroom": "simsched.study.sizing.size",
    "size": "simsched.study.sizing.size",
    "Job": "simsched.workload.job",
    "Workload": "simsched.workload.job",
    "ArrayTask": "simsched.workload.job",
    "job_array": "simsched.workload.job",
    "load_workload": "simsched.workload.load",
    "CandidateOrder": "simsched.match.policies.policy",
    "Candidates": "simsched.match.policies.candidates",
    "MatchPolicy": "simsched.match.policies.policy",
    "ClusterReader": "simsched.graph.build.cluster_plugins",
    "JobOrder": "simsched.schedule.orders.ranking",
    "Order": "simsched.schedule.orders.ranking",
    "PriorityFactor": "simsched.schedule.orders.priority_rules",
    "QueuePolicy": "simsched.schedule.pass_context",
    "PassContext": "simsched.schedule.pass_context",
    "RunTimePredictor": "simsched.schedule.predictors.predictor",
    "Metric": "simsched.report.metrics.metric_plugins",
    "MetricFunction": "simsched.report.metrics.metric_plugins",
    "ReportSection": "simsched.report.section_plugins",
    "WorkloadReader": "simsched.workload.reader_plugins",
    "PluginError": "simsched.errors",
}

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
