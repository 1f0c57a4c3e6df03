"""An open simulation as one JSON file (gzip if its name ends so), from which it continues.

The file has all jobs, as they were handed in, and the state of the engine as in a checkpoint of a closed run
(`checkpoint.codec`).  It names the cluster and the configuration by their digests, and has one of itself: of
all other values, written without blanks.
A simulation that continues from it gives the same bytes as one that was never interrupted.

::

    {"kind": "simsched open checkpoint", "format": 6, "simsched": "0.1", "time": 86400,
     "digests": {"cluster", "config"}, "config": {…},
     "log": {…},                                        the workload that `expected` belongs to
     "specs": [{…}], "expected": [spec], "jobs": [{"jobspec": spec, …}],      each jobspec once, by its place
     "changes": [[number, runtime, duration, cancel_at]], "on_graph", "renewals": [],
     "refused": [[number, result, reason]],
     "coming": [[ticket, job]], "tickets", "withdrawn": [], "ids": [], "last",
     "tasks": {array: [limit, [index]]},         the tasks of arrays so far
     "grown": null or {name, vertices, edges},   the cluster, if nodes joined
     "state": {…}, "allocations": [lines] or null, "eventlog": [lines] or null, "sha256"}
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import to_builtins

from simsched._version import version
from simsched.errors import FormatError, RunError
from simsched.files import replacing
from simsched.formats.jobspec.jobspec import Jobspec, Task, build_resources
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.text.documents import read_bytes
from simsched.formats.text.immutable import freeze
from simsched.graph.build.networkx_graph import from_rows
from simsched.graph.cluster import Cluster
from simsched.graph.write.plain_graph import rows_of
from simsched.simulation.checkpoint.checkpoint import codec_of
from simsched.simulation.engine_state import capture, restore
from simsched.simulation.live.growth import GrowthRecord
from simsched.simulation.record.input_digests import config_digest, machine_digest
from simsched.simulation.record.run_directory import finite
from simsched.workload.job import ArrayTask, Job, Skip, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.simulation.engine import Engine
    from simsched.simulation.live.arrivals import Arrivals
    from simsched.simulation.live.growth import Growth
    from simsched.simulation.live.submission import SubmissionReader
    from simsched.simulation.options.run_config import RunConfig

KIND = "simsched open checkpoint"
FORMAT = 6
PLAIN = tuple(name for name in Job.__struct_fields__ if name not in ("jobspec", "dependencies"))
USUAL = {name: getattr(Job(id=0, submit=0, jobspec=None), name) for name in PLAIN}  # type: ignore[arg-type]
"""Field of a job → its default, which the file does not repeat."""
DAMAGED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError)


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
        found["jobspec"] = self.number(job.jobspec)
        if job.dependencies:
            found["dependencies"] = [one.to_json() for one in job.dependencies]
        if job.array_task is not None:
            found["array_task"] = to_builtins(job.array_task)
        return found


class SavedRun(Protocol):
    """An open simulation as a file has it."""

    engine: Engine
    growth: Growth
    arrivals: Arrivals
    cluster: Cluster


def write_open_checkpoint(
    path: str | Path, sim: SavedRun, expected: Workload, reader: SubmissionReader, origin: Mapping[str, Any]
) -> None:
    """Write the present state; the file gets its name only once it is complete.

    `origin` is what `origin_of` returned at the beginning; the cluster may have grown since then.

    Raises
    ------
    RunError
        If the file cannot be written, or the state has a value that cannot be: of a policy, or an event of
        the program that is still to come at this instant.
    """
    engine, specs, record = sim.engine, _Specs(), sim.growth.record()
    log, events = engine.recorder.log, engine.recorder.events
    grown = machine_digest(sim.cluster) != origin["digests"]["cluster"]
    body = {
        "log": to_builtins(replace(expected, jobs=())),
        "expected": [specs.number(job.jobspec) for job in expected],
        "jobs": [specs.job(job) for job in record.handed_in],
        "changes": [[number, *change] for number, change in record.changes.items()],
        "on_graph": record.on_graph,
        "renewals": record.renewals,
        "refused": [[number, *verdict] for number, verdict in record.refused.items()],
        **sim.arrivals.plain(specs.job),
        **reader.state(),
        "state": codec_of(engine).plain(capture(engine)),
        "allocations": None if log is None else [line.decode().rstrip("\n") for line in log.so_far()],
        "eventlog": None if events is None else events.text().splitlines(),
        "grown": rows_of(sim.cluster.graph) if grown else None,
    }
    head = {"kind": KIND, "format": FORMAT, **origin, "time": engine.now}
    text = _text({**head, "body": {**body, "specs": specs.documents}})
    data = f'{text[:-1]},"sha256":"{_digest(text)}"}}\n'.encode()
    with replacing(path) as raw:
        raw.write(gzip.compress(data, 1, mtime=0) if Path(path).suffix == ".gz" else data)


def origin_of(cluster: Cluster, config: RunConfig) -> dict[str, Any]:
    """Return what identifies a simulation in its checkpoints."""
    return {
        "simsched": version(),
        "digests": {"cluster": machine_digest(cluster), "config": config_digest(config)},
        "config": finite(config.to_dict()),
    }


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


class OpenCheckpoint:
    """A checkpoint of an open simulation that was read from a file.

    Attributes
    ----------
    time : the time of the state, in seconds.
    expected : the jobs that the simulation expected, and the facts of their log.
    grown : the cluster, if nodes joined since the beginning.

    Raises
    ------
    FormatError
        If it is not a checkpoint of an open simulation, has another format, or was changed since.
    """

    def __init__(self, path: str | Path) -> None:
        self._where = str(path)
        try:
            found = json.loads(read_bytes(path))
            kind, form = found["kind"], found["format"]
        except (ValueError, LookupError, TypeError, RecursionError):
            kind, form, found = None, None, {}
        if kind != KIND:
            expected = "a file that Simulation.checkpoint wrote"
            raise FormatError("not a checkpoint of an open simulation", where=self._where, expected=expected)
        if form != FORMAT:
            raise FormatError(
                f"a checkpoint of format {form!r}", where=self._where, expected=f"format {FORMAT}"
            )
        if found.pop("sha256", None) != _digest(_text(found)):
            raise self._damaged("its digest does not match")
        self._head, self._body = found, found["body"]
        try:
            self._specs = [_spec(document) for document in self._body["specs"]]
            self.time: float = found["time"]
            kinds = self._body["expected"]
            jobs = tuple(Job(id=0, submit=0, jobspec=self._specs[number]) for number in kinds)
            log = {**self._body["log"], "skipped": tuple(Skip(**one) for one in self._body["log"]["skipped"])}
            self.expected = Workload(**{**log, "jobs": jobs})
            graph = self._body["grown"]
            self.grown = None if graph is None else Cluster(from_rows(graph))
        except DAMAGED as error:
            raise self._damaged(repr(error)) from None

    def _damaged(self, why: str) -> FormatError:
        return FormatError(f"this checkpoint is damaged: {why}", where=self._where)

    def _job(self, document: Mapping[str, Any]) -> Job:
        given = {**document, "jobspec": self._specs[document["jobspec"]]}
        given["dependencies"] = tuple(Dependency.from_json(one) for one in document.get("dependencies", ()))
        if "array_task" in document:
            given["array_task"] = ArrayTask(**document["array_task"])
        return Job(**given)

    def refuse_other(self, origin: Mapping[str, Any]) -> None:
        """Raise a RunError unless the checkpoint is of this version, cluster and configuration."""
        head = self._head
        if head["simsched"] != origin["simsched"]:
            mine = f"one of {origin['simsched']}"
            raise RunError(f"a checkpoint of simsched {head['simsched']}", where=self._where, expected=mine)
        for role, word in (("cluster", "cluster"), ("config", "configuration")):
            if head["digests"].get(role) != origin["digests"][role]:
                detail = _difference(head["config"], origin["config"]) if role == "config" else ""
                raise RunError(
                    f"a checkpoint of another {word}{detail}", where=self._where, expected=f"the same {word}"
                )

    def put_into(self, sim: SavedRun, reader: SubmissionReader) -> None:
        """Bring a fresh simulation of the same origin, and the reader of submissions, into the state.

        Raises
        ------
        RunError
            If the checkpoint lacks the allocations or events that the simulation is to write.
        FormatError
            If its state does not fit.
        """
        body, engine = self._body, sim.engine
        log, events = engine.recorder.log, engine.recorder.events
        for name, part in (("allocations", log), ("eventlog", events)):
            if part is not None and body[name] is None:
                raise RunError(f"the checkpoint has no {name}", where=self._where, expected=f"{name}=False")
        try:
            changes = {number: tuple(change) for number, *change in body["changes"]}
            jobs = [self._job(one) for one in body["jobs"]]
            refused = {number: (result, reason) for number, result, reason in body["refused"]}
            sim.growth.repeat(GrowthRecord(jobs, changes, body["on_graph"], body["renewals"], refused))
            sim.arrivals.put_back(body, self._job)
            reader.restore(body)
            restore(engine, codec_of(engine).value(body["state"]))
        except DAMAGED as error:
            raise self._damaged(repr(error)) from None
        if log is not None:
            log.put_back(line.encode() for line in body["allocations"])
        if events is not None:
            events.put_back(line.encode() for line in body["eventlog"])


def _spec(document: Mapping[str, Any]) -> Jobspec:
    """Return a jobspec of a file of ours; one of a shape without a slot has no task, unlike RFC 14."""
    tasks = tuple(map(Task.from_dict, document["tasks"]))
    attributes = freeze(document["attributes"])
    return Jobspec(build_resources(document["resources"]), tasks, attributes, document["version"])


def _difference(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    odd = [key for key in mine if json.dumps(mine[key]) != json.dumps(theirs.get(key))]
    return "".join(f"; {key} was {theirs.get(key)!r} and is {mine[key]!r}" for key in odd[:3])
