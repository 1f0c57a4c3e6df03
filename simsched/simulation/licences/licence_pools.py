"""Licences: counted resources outside all nodes, as pools of the cluster.

The table ``[licenses]`` of a configuration gives the number of each licence. A job requests licences by
``attributes.system.licenses``: a table of names and numbers, or a text such as ``matlab:2,ansys``. In a run
both become what the matcher knows already: a pool of the cluster for each licence, and a vertex for it beside
the other resources of a request. So every policy, also the shadow time of EASY, counts licences with the
other resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.declare.kinds import ValueKind, by_name, whole
from simsched.errors import ConfigError, WorkloadError, did_you_mean
from simsched.formats.jobspec.vertex import ResourceVertex
from simsched.formats.rfc.count import Count
from simsched.graph.cluster import Cluster
from simsched.graph.pool import Pool
from simsched.graph.resource_graph import CONTAINMENT, children, containment_root, pool_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.job import Job

ATTRIBUTE = "licenses"
"""The key in ``attributes.system`` of a jobspec."""
SSS_TYPE = "License"
"""The type of vertices by which SSS documents request a licence; the id is its name."""
MOST = 2**31
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")
_TAKEN = ("cluster", "rack", "node", "socket", "core", "gpu", "memory", "slot", "storage", SSS_TYPE)


COUNTS = by_name(whole(0, MOST - 1, "a number of licences", "0 or more"))


def read_licences(value: Any, where: str) -> dict[str, int] | None:
    """Return name → number of the table of a configuration; a text ``matlab:20,ansys:5`` is read as well.

    Raises
    ------
    ConfigError
        for a name or a number that is not valid.
    """
    counts = {} if value is None else _counts(value, where)
    for name in counts:
        if name in _TAKEN or _NAME.fullmatch(name) is None:
            expected = "letters, digits and _ . + -, and no type of other resources"
            raise ConfigError(f"{name!r} is not a name of a licence", where=where, expected=expected)
    return counts or None


LICENCES = ValueKind(read_licences, lambda: {"anyOf": [COUNTS.schema, {"type": "string"}]})


def _counts(value: Any, where: str) -> dict[str, int]:
    """Return name → number of a table or a text; in a text the number may be left out."""
    given = value
    if isinstance(value, str):
        given = {}
        for part in filter(None, (part.strip() for part in re.split("[,;]", value))):
            name, _, number = part.replace("=", ":").replace("*", ":").partition(":")
            name = name.partition("@")[0]  # Slurm: a licence of a server
            if name in given:
                raise ConfigError(f"the licence {name!r} is given twice", where=where)
            given[name] = int(number) if number.isdecimal() else number or 1
    elif not isinstance(value, Mapping):
        raise ConfigError("not a table of licences", where=where, expected="name = number, or matlab:2,ansys")
    counts: dict[str, int] = COUNTS.read(given, where)
    return counts


def with_licences(cluster: Cluster, licences: Mapping[str, int] | None) -> Cluster:
    """Return the cluster with a pool for each licence; a pool outside all nodes of that name is replaced.

    Raises
    ------
    ConfigError
        for a name that other resources of the cluster have.
    """
    pools = {} if licences is None else cluster.index.pool_types
    if licences is None or all(
        name in pools and pools[name].total == number and (pools[name].target < 0).all()
        for name, number in licences.items()
    ):
        return cluster
    graph = cluster.graph.copy()
    root = containment_root(graph)
    above = {pool_of(graph, key).type: key for key in children(graph, root) if not children(graph, key)}
    types = {pool_of(graph, key).type for key in graph}
    for name, number in licences.items():
        if name in types and name not in above:
            text = f"the cluster has other resources of type {name!r}"
            raise ConfigError(text, where=f"licenses.{name}", expected="another name")
        if name in above:
            graph.remove_node(above[name])
        if number:
            key = f"licence {name}"
            graph.add_node(key, pool=Pool(type=name, name=name, basename=name, size=number))
            graph.add_edge(root, key, key=CONTAINMENT, relationship="contains")
    return Cluster(graph, name=cluster.name, source=cluster.source)


def with_requests(
    jobs: Sequence[Job], licences: Mapping[str, int] | None
) -> tuple[Sequence[Job], dict[int, str]]:
    """Return the jobs with their licences as requested resources, and why some of them can never run.

    Raises
    ------
    WorkloadError
        for an attribute of a job that is not valid.
    """
    if licences is None:
        return jobs, {}
    made, never = list[Any](), dict[int, str]()
    specs: dict[int, tuple[Jobspec, str | None]] = {}
    for number, job in enumerate(jobs):
        found = specs.get(id(job.jobspec))
        if found is None:
            found = specs[id(job.jobspec)] = _requested(job, licences)
        spec, fault = found
        if fault is not None:
            never[number] = fault
        made.append(job if spec is job.jobspec else msgspec.structs.replace(job, jobspec=spec))
    return made, never


def licences_of(jobspec: Jobspec, where: str = "licenses") -> dict[str, int]:
    """Return name → number of the licences that a jobspec requests.

    Raises
    ------
    ConfigError
        for an attribute that is not valid.
    """
    value = jobspec.system.get(ATTRIBUTE)
    counts = {} if value is None else _counts(value, where)
    for vertex in jobspec.resources:
        if vertex.type == SSS_TYPE and vertex.id is not None:
            counts[vertex.id] = counts.get(vertex.id, 0) + vertex.count.min
    return {name: number for name, number in counts.items() if number}


def _requested(job: Job, known: Mapping[str, int]) -> tuple[Jobspec, str | None]:
    """Return a job's request with its licences, and why it can never be met."""
    spec = job.jobspec
    try:
        counts = licences_of(spec, f"job {job.id}: attributes.system.{ATTRIBUTE}")
    except ConfigError as error:
        raise WorkloadError(error.message, where=error.where, expected=error.expected) from None
    if not counts:
        return spec, None
    for name, number in counts.items():
        if number > known.get(name, 0):
            there = known.get(name)
            hint = did_you_mean(name, known) if there is None else ""
            text = f"there is no licence {name!r}{hint}" if there is None else f"there are {there}"
            return spec, f"requests {number} of the licence {name!r}; {text}"
    others = tuple(vertex for vertex in spec.resources if vertex.type != SSS_TYPE or vertex.id is None)
    mine = tuple(ResourceVertex(name, Count.fixed(number), exclusive=True) for name, number in counts.items())
    return replace(spec, resources=(*others, *mine)), None
