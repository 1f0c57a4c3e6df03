"""The jobs of an open simulation as plain data: the part ``open`` of its checkpoints.

::

    {"log": {…},                                        the workload that `expected` belongs to
     "specs": [{…}], "expected": [spec], "jobs": [{"jobspec": spec, …}],      each jobspec once, by its place
     "changes": [[number, runtime, duration, cancel_at]], "on_graph", "renewals": [],
     "refused": [[number, result, reason]],
     "coming": [[ticket, job]], "tickets", "withdrawn": [], "ids": [], "last",
     "tasks": {array: [limit, [index]]},         the tasks of arrays so far
     "grown": null or {name, vertices, edges}}   the cluster, if nodes joined
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import to_builtins

from simsched.errors import FormatError
from simsched.formats.jobspec.jobspec import Jobspec, Task, build_resources
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.text.immutable import freeze
from simsched.graph.build.networkx_graph import from_rows
from simsched.graph.cluster import Cluster
from simsched.graph.write.plain_graph import rows_of
from simsched.simulation.checkpoint.checkpoint import DAMAGE, read_checkpoint
from simsched.simulation.live.growth import GrowthRecord
from simsched.workload.job import ArrayTask, Job, Skip, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simsched.simulation.live.arrivals import Arrivals
    from simsched.simulation.live.growth import Growth
    from simsched.simulation.live.submission import SubmissionReader

PLAIN = tuple(name for name in Job.__struct_fields__ if name not in ("jobspec", "dependencies"))
USUAL = {name: getattr(Job(id=0, submit=0, jobspec=None), name) for name in PLAIN}  # type: ignore[arg-type]
"""Field of a job → its default, which the file does not repeat."""
TIMES = ("runtime", "duration", "cancel_at", "deadline")
"""Fields of a job that may be infinite, which JSON has no number for."""


class _Specs:
    """The jobspecs of a file, each once."""

    def __init__(self) -> None:
        self.documents: list[dict[str, Any]] = []
        self._known: dict[int, int] = {}

    def number(self, spec: Jobspec) -> int:
        """Return the place of a jobspec."""
        found = self._known.get(id(spec))
        if found is None:
            found = self._known[id(spec)] = len(self.documents)
            self.documents.append(spec.to_dict())
        return found

    def job(self, job: Job) -> dict[str, Any]:
        """Return a job as plain data."""
        fields = {name: getattr(job, name) for name in PLAIN}
        found = {
            name: value for name, value in fields.items() if value != USUAL[name] or name in ("id", "submit")
        }
        found |= {name: _finite(found[name]) for name in TIMES if name in found}
        found["jobspec"] = self.number(job.jobspec)
        if job.dependencies:
            found["dependencies"] = [one.to_json() for one in job.dependencies]
        if job.array_task is not None:
            found["array_task"] = to_builtins(job.array_task)
        return found


class SavedRun(Protocol):
    """An open simulation as a file has it."""

    growth: Growth
    arrivals: Arrivals


def plain_jobs(
    sim: SavedRun, expected: Workload, reader: SubmissionReader, grown: Cluster | None
) -> dict[str, Any]:
    """Return the jobs of a simulation as plain data; `grown` is its cluster, if nodes joined."""
    specs, record = _Specs(), sim.growth.record()
    body = {
        "log": to_builtins(replace(expected, jobs=())),
        "expected": [specs.number(job.jobspec) for job in expected],
        "jobs": [specs.job(job) for job in record.handed_in],
        "changes": [[number, *map(_finite, change)] for number, change in record.changes.items()],
        "on_graph": record.on_graph,
        "renewals": record.renewals,
        "refused": [[number, *verdict] for number, verdict in record.refused.items()],
        **sim.arrivals.plain(specs.job),
        **reader.state(),
        "grown": None if grown is None else rows_of(grown.graph),
    }
    return {**body, "specs": specs.documents}


class OpenCheckpoint:
    """A checkpoint of an open simulation that was read from a file.

    Attributes
    ----------
    head : the checkpoint.
    expected : the jobs that the simulation expected, and the facts of their log.
    grown : the cluster, if nodes joined since the beginning.

    Raises
    ------
    FormatError
        If it is not a checkpoint of an open simulation, has another format, or was changed since.
    """

    def __init__(self, path: str | Path) -> None:
        self.head = read_checkpoint(path, of_open=True)
        try:
            self._body = body = msgspec.json.decode(self.head.open)
            self._specs = [_spec(document) for document in body["specs"]]
            jobs = tuple(Job(id=0, submit=0, jobspec=self._specs[number]) for number in body["expected"])
            log = {**body["log"], "skipped": tuple(Skip(**one) for one in body["log"]["skipped"])}
            self.expected = Workload(**{**log, "jobs": jobs})
            self.grown = None if body["grown"] is None else Cluster(from_rows(body["grown"]))
        except DAMAGE as error:
            raise FormatError(f"this checkpoint is damaged: {error!r}", where=str(path)) from None

    def _job(self, document: Mapping[str, Any]) -> Job:
        given = {**document, "jobspec": self._specs[document["jobspec"]]}
        given |= {name: _number(given[name]) for name in TIMES if name in given}
        given["dependencies"] = tuple(Dependency.from_json(one) for one in document.get("dependencies", ()))
        if "array_task" in document:
            given["array_task"] = ArrayTask(**document["array_task"])
        return Job(**given)

    def put_into(self, sim: SavedRun, reader: SubmissionReader) -> None:
        """Bring the jobs into a fresh simulation of the same origin, and into the reader of submissions."""
        body = self._body
        changes = {number: tuple(map(_number, change)) for number, *change in body["changes"]}
        jobs = [self._job(one) for one in body["jobs"]]
        refused = {number: (result, reason) for number, result, reason in body["refused"]}
        sim.growth.repeat(GrowthRecord(jobs, changes, body["on_graph"], body["renewals"], refused))
        sim.arrivals.put_back(body, self._job)
        reader.restore(body)


def _finite(seconds: float | None) -> float | str | None:
    return "inf" if seconds == inf else seconds


def _number(value: Any) -> Any:
    return inf if value == "inf" else value


def _spec(document: Mapping[str, Any]) -> Jobspec:
    """Return a jobspec of a file of ours; one of a shape without a slot has no task, unlike RFC 14."""
    tasks = tuple(map(Task.from_dict, document["tasks"]))
    attributes = freeze(document["attributes"])
    return Jobspec(build_resources(document["resources"]), tasks, attributes, document["version"])
