"""One-line machines and workloads, and runs told as short stories."""

from __future__ import annotations

from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.graph.cluster import Cluster
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job, Workload, in_submit_order


def machine(nodes=4, cores=1, gpus=0, properties=None, name="machine"):
    """Equal nodes n0, n1 …; `properties` is name → ranks."""
    children = {"core": f"0-{cores - 1}"} | ({"gpu": f"0-{gpus - 1}"} if gpus else {})
    execution = {
        "R_lite": [{"rank": f"0-{nodes - 1}", "children": children}],
        "nodelist": [f"n[0-{nodes - 1}]"],
        "starttime": 0,
        "expiration": 0,
    }
    if properties:
        execution["properties"] = properties
    return Cluster.from_rset(ResourceSet.from_dict({"version": 1, "execution": execution}), name=name)


_SPECS = {}


def job(name, submit, shape, runtime, duration=None, **more):
    """A job; without a duration it asks for exactly what it runs, inf is unlimited."""
    duration = runtime if duration is None else duration
    asked = None if duration == float("inf") else duration
    constraint = more.pop("constraint", None)
    key = (shape, asked, constraint)
    spec = _SPECS.setdefault(key, Jobspec.from_shape(shape, duration=asked, constraint=constraint))
    return Job(id=name, submit=submit, jobspec=spec, runtime=runtime, duration=asked, **more)


def workload(*jobs):
    return Workload(jobs=in_submit_order(jobs), name="story", total_records=len(jobs))


def run(cluster, *jobs, policy="easy", **options):
    return simulate(cluster, workload(*jobs), policy, **options)


def spans(result):
    """{id: (start, end)} of the jobs that ran."""
    columns = result.jobs
    rows = zip(columns["id"], columns["start"], columns["end"], strict=True)
    return {name: (start, end) for name, start, end in rows if start == start}


def starts(result):
    return {name: start for name, (start, _) in spans(result).items()}


def results(result):
    return dict(zip(result.jobs["id"], result.jobs["result"], strict=True))


def gantt(result, until):
    """One line a job, one character a second: `.` waits, `#` runs."""
    lines = []
    rows = zip(*(result.jobs[name] for name in ("id", "submit", "start", "end")), strict=True)
    for name, submit, start, end in rows:
        cells = "".join(
            "#" if start <= t < end else "." if submit <= t < start else " " for t in range(until)
        )
        lines.append(f"{name} {cells}".rstrip())
    return "\n".join(lines)
