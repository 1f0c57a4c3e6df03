"""Job Objects as jobs: a record per job with its jobspec, dependencies, times and owner."""

from __future__ import annotations

import heapq
import shlex
from dataclasses import dataclass, replace
from fractions import Fraction
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from simsched.cycles import find_cycle
from simsched.errors import FormatError, clip
from simsched.formats.jobspec.jobspec import CANONICAL, DEFAULT_COMMAND, Jobspec, Task, v1_misfit
from simsched.formats.rfc.constraint import ANY, to_json
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.sss import vocabulary
from simsched.formats.sss.document import merged, read_document
from simsched.formats.sss.expressions import ENDLESS, Tree, first_value, number_set
from simsched.formats.sss.requirements import JobRequest, Requester
from simsched.formats.text.excerpts import place
from simsched.formats.text.immutable import FrozenDict, freeze

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from simsched.formats.sss.document import Document
    from simsched.formats.sss.expressions import Names
    from simsched.formats.text.xml_tree import Element

CONDITIONS = {"OnSuccess": "afterok", "OnFailure": "afternotok", "OnExit": "afterany"}
"""RFC 26's schemes for the conditions of dependencies."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One Job of a document, its defaults merged in.

    Times are seconds since the epoch, `duration` and `runtime` seconds; None: not given.
    `processors` is the requested total (None for a range), `group` is the JobGroup's id, `element` the
    whole Job with its uninterpreted parts, `line` its line in the text.
    """

    id: str
    jobspec: Jobspec
    element: Element
    line: int
    group: str | None = None
    name: str | None = None
    user: str | None = None
    unix_group: str | None = None
    project: str | None = None
    queue: str | None = None
    qos: str | None = None
    state: str | None = None
    submit: int | None = None
    start: int | None = None
    end: int | None = None
    duration: int | None = None
    runtime: int | None = None
    deadline: int | None = None
    priority: int | None = None
    hold: bool = False
    processors: int | None = None
    dependencies: tuple[Dependency, ...] = ()


def job_records(
    document: Document,
    where: str | None = None,
    *,
    cluster: Names | None = None,
    unexpanded: list[FormatError] | None = None,
) -> tuple[tuple[JobRecord, ...], tuple[FormatError, ...]]:
    """The jobs of a document in dependency order, and the warnings of reading and mapping it.

    `cluster` gives the names that patterns are expanded against; without it a pattern is
    unsupported and treated by its awareness policy, unless `unexpanded` is given: then the constraint is
    omitted and its fault added to that list.

    Raises FormatError for contradictory counts, a dependency on a job that is not there or
    on itself in a cycle, and any unsupported part under the policy Reject.
    """
    warnings = list(document.warnings)
    requester = Requester(where, cluster, warnings, unexpanded)
    jobs = list(_jobs(document.root))
    ids = {job.value("Id") or "" for job, _ in jobs}
    by_name: dict[str, list[str]] = {}
    for job, _ in jobs:
        if name := job.value("Name"):
            by_name.setdefault(name, []).append(job.value("Id") or "")
    scopes = (document.root, *document.root.all("JobGroup"))
    _check_references([job for scope in scopes for job in scope.all("Job")], requester, "document")
    records = []
    for job, group in jobs:
        _check_references(list(job.all("TaskGroup")), requester, "job")
        for tasks in job.all("TaskGroup"):
            _check_references(list(tasks.all("Task")), requester, "task group")
        dependencies = _dependencies(job, ids, by_name, requester)
        records.append(_record(job, group, dependencies, requester))
    return tuple(_ordered(records, where)), tuple(warnings)


def _jobs(root: Element) -> list[tuple[Element, str | None]]:
    """Every job with its defaults merged in, and the id of its group."""
    if root.name == "Job":
        return [(root, None)]
    if root.name == "Data":
        return [
            pair for child in root.all("Job", "JobGroup") for pair in _jobs(child) if not child.is_reference
        ]
    defaults = root.first("JobDefaults")
    return [(merged(job, defaults), root.value("Id")) for job in root.all("Job") if not job.is_reference]


_NOUNS = {"Job": "job", "TaskGroup": "task group", "Task": "task"}


def _check_references(elements: list[Element], requester: Requester, within: str) -> None:
    """Elements of one kind that only name another one name one that is among them (5.2, 6.2, 7.2)."""
    ids = {element.value("Id") for element in elements}
    for element in elements:
        if element.is_reference and element.text.strip() not in ids:
            named = f"{_NOUNS[element.name]} {clip(element.text.strip())!r}"
            requester.unsupported(element, f"{named} is not in the {within}")


def _record(
    job: Element, group: str | None, dependencies: tuple[Dependency, ...], requester: Requester
) -> JobRecord:
    request = requester.request(job)
    # the seconds that the job ran by its record; of several machines, the longest
    ran = max((int(c.text) for part in job.all("Delivered") for c in part.all("Duration")), default=None)
    start, end = _time(job, "StartTime"), _time(job, "EndTime")
    state = job.value("State")
    holds = [hold for hold in job.all("Hold") if hold.text.strip().lower() not in ("", "none")]
    duration = _duration(request.topics.get("Duration"))
    return JobRecord(
        id=job.value("Id") or "",
        jobspec=_jobspec(job, request, duration, dependencies),
        element=job,
        line=job.line,
        group=group,
        name=job.value("Name"),
        user=_credential(request, "User"),
        unix_group=_credential(request, "Group"),
        project=_credential(request, "Project"),
        queue=_credential(request, "Queue"),
        qos=_credential(request, "QualityOfService"),
        state=state,
        submit=_time(job, "SubmitTime"),
        start=start,
        end=end,
        duration=duration,
        runtime=end - start if start is not None and end is not None else ran,
        deadline=_time(job, "Deadline"),
        priority=_time(job, "Priority"),
        hold=bool(holds) or state == "Hold",
        processors=request.processors,
        dependencies=dependencies,
    )


def _jobspec(
    job: Element, request: JobRequest, duration: int | None, dependencies: tuple[Dependency, ...]
) -> Jobspec:
    """The jobspec of a job; V1 where it fits."""
    values = {
        "queue": _credential(request, "Queue"),
        "bank": _credential(request, "Project"),
        "cwd": job.value("InitialWorkingDirectory"),
    }
    system: dict[str, Any] = {"duration": duration or 0} | {
        key: value for key, value in values.items() if value
    }
    if name := job.value("Name"):
        system["job"] = {"name": name}
    environment = job.first("Environment")
    if environment is not None and (variables := list(environment.all("Variable"))):
        system["environment"] = {child.attribute("name") or "": child.text for child in variables}
    if request.constraint != ANY:
        system["constraints"] = to_json(request.constraint)
    if dependencies:
        system["dependencies"] = [dependency.to_json() for dependency in dependencies]
    tasks = tuple(_task(label, scope, job) for label, scope in request.scopes)
    attributes: FrozenDict = freeze({"system": system})
    jobspec = Jobspec(request.resources, tasks, attributes, CANONICAL)
    return replace(jobspec, version=1) if v1_misfit(jobspec) is None else jobspec


def _task(label: str, scope: Element, job: Element) -> Task:
    executable = scope.value("Executable") or job.value("Executable")
    arguments = (
        scope.value("Arguments") or ("" if scope.value("Executable") else job.value("Arguments")) or ""
    )
    try:
        words = shlex.split(arguments)
    except ValueError:  # an unbalanced quotation mark
        words = arguments.split()
    command = (executable, *words) if executable else DEFAULT_COMMAND
    rule = scope.first("TaskDistribution")
    named = rule is not None and (rule.attribute("type") or "Rule") == "Rule"
    return Task(
        command, label, distribution=rule.text.strip() or None if rule is not None and named else None
    )


def _time(job: Element, name: str) -> int | None:
    text = job.value(name)
    return int(text) if text else None


def _credential(request: JobRequest, name: str) -> str | None:
    tree = request.topics.get(name)
    return first_value(tree) or None if tree is not None else None


def _duration(tree: Tree | None) -> int | None:
    """The longest acceptable duration, the shortest if none is longest; None if unlimited."""
    if tree is None:
        return None
    found = number_set(tree, lambda e: Fraction(e.text.strip()))
    if not found:
        return None
    return found.last if found.last < ENDLESS else found.first


# -- dependencies ---------------------------------------------------------------------


def _dependencies(
    job: Element, ids: set[str], by_name: dict[str, list[str]], requester: Requester
) -> tuple[Dependency, ...]:
    """The dependencies of a job and of its task groups, and the time before which it may not start."""
    found: list[Dependency] = []
    scopes = (job, *job.all("TaskGroupDefaults"), *job.all("TaskGroup"))
    for element in (element for scope in scopes for element in scope.all("Dependency")):
        value = element.text.strip()
        named = element.attribute("designator") == "JobName"
        targets = by_name.get(value, []) if named else [value] if value in ids else []
        if not targets:
            kind = "named " if named else ""
            requester.unsupported(
                element, f"job {kind}{clip(value)!r} is not in the document", "a job to depend on"
            )
        scheme, params = _condition(element, requester)
        found += [Dependency(scheme, target, params) for target in targets]
    if (eligible := _time(job, "EligibleTime")) is not None:
        found.append(Dependency("begin-time", str(eligible)))
    return tuple(dict.fromkeys(found))


def _condition(element: Element, requester: Requester) -> tuple[str, FrozenDict]:
    """Return the scheme of a dependency and the parameters that are kept.

    OnExit with the code 0 is OnSuccess.  With any other code the job waits for one that failed;
    the code itself cannot be compared, because no exit codes are simulated.
    """
    condition = element.attribute("condition") or "OnSuccess"
    code = element.attribute("code") if condition == "OnExit" else None
    if code is None:
        return CONDITIONS.get(condition, "afterok"), FrozenDict()
    if not int(code):
        return "afterok", FrozenDict()
    requester.unsupported(
        element, f"code {int(code)}: exit codes other than 0 are not distinguished", "code 0, or OnFailure"
    )
    return "afternotok", FrozenDict(code=int(code))


def _ordered(records: list[JobRecord], where: str | None) -> list[JobRecord]:
    """The records so that each comes after those it depends on, otherwise in the order of the text."""
    place_of = {record.id: number for number, record in enumerate(records)}
    needed = {
        number: [place_of[d.value] for d in record.dependencies if d.scheme in CONDITIONS.values()]
        for number, record in enumerate(records)
    }
    if cycle := find_cycle(needed):
        names = " -> ".join(clip(records[n].id, 30) for n in reversed(cycle[:12]))
        spot = place(where, records[cycle[0]].line, 1)
        raise FormatError(
            f"jobs wait for each other: {names}", where=spot, expected="no cycle of dependencies"
        )
    sorter = TopologicalSorter(needed)
    sorter.prepare()
    ready = list(sorter.get_ready())
    heapq.heapify(ready)
    ordered = []
    while ready:
        number = heapq.heappop(ready)
        ordered.append(records[number])
        sorter.done(number)
        for follower in sorter.get_ready():
            heapq.heappush(ready, follower)
    return ordered


# -- documents in text ----------------------------------------------------------------


def has_patterns(text: str) -> bool:
    """Whether a document of Job Objects may hold patterns, which need a cluster to be expanded."""
    return "Pattern" in text or "Match" in text


def job_objects(
    text: str,
    where: str,
    *,
    names: Callable[[], Names] | None = None,
    warn: Callable[[FormatError], None] | None = None,
) -> tuple[JobRecord, ...]:
    """Return the jobs of a document of SSS Job Objects.

    `names` returns the names of a cluster, against which patterns are matched; `warn` is called with each
    warning of the awareness policy Warn.  Raises `FormatError`.
    """
    cluster = names() if names is not None and has_patterns(text) else None
    records, warnings = job_records(read_document(text, where), where, cluster=cluster)
    if warn is not None:
        for warning in warnings:
            warn(warning)
    return records


# -- the parts of a job that its jobspec does not hold --------------------------------

_INNER = ("Requested", "TaskGroup", "TaskGroupDefaults", "Task", "TaskDefaults")
_UNMAPPED = {"metric", "duration", "consumptionRate", "dynamic", "performanceFactor"}


def not_in_jobspec(jobs: Iterable[Element]) -> dict[str, int]:
    """Return the elements and attributes that no jobspec holds: name → number of jobs that have it.

    They are the uninterpreted parts, those of the job instead of its request (its id, user, times,
    state), and those that were delivered.  Under the awareness policy Ignore nothing is counted.
    """
    found: dict[str, int] = {}
    for job in jobs:
        for name in dict.fromkeys(_unmapped(job)):
            found[name] = found.get(name, 0) + 1
    return found


def _unmapped(scope: Element) -> Iterator[str]:
    """Yield the names of the parts of a job, task group, task or request that no jobspec holds."""
    known = (
        vocabulary.CONTAINERS[scope.name][0]
        if scope.name in vocabulary.CONTAINERS
        else vocabulary.JOB_PROPERTIES
    )
    for child in scope.children:
        if child.name in _INNER:
            yield from _unmapped(child)
        elif child.policy == "Ignore" or child.name == "Id":
            continue
        elif child.name == "Delivered" or child.attribute("context") == "Used":
            yield child.name
        elif child.name in known:
            prop = known[child.name]
            if prop.use == "carried" or "record" in prop.to:
                yield child.name
            else:
                yield from (f"@{key}" for key, _ in child.attributes if key in _UNMAPPED)
