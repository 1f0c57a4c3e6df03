"""The vocabulary of SSS Job Object 3.1.0: each element and attribute, its type and its treatment.

The tables of our copy of the specification lost their first column; the names are those of
the notes on the specifications, with the 3.0 name as a second one that is read too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["String", "Integer", "Float", "Boolean", "DateTime", "Duration"]
Use: TypeAlias = Literal["mapped", "carried", "refused"]
"""The treatment of an element: mapped to a jobspec; carried because matching does not need it; refused (or
warned about or ignored, by its awareness policy) because simsched does not support it."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property element.

    `category`: it is allowed in Requested and Delivered; `many`: it may be
    repeated; `attributes`: its attributes besides awarenessPolicy.
    """

    name: str
    kind: Kind
    use: Use
    to: str
    older: tuple[str, ...] = ()
    category: bool = False
    many: bool = False
    attributes: tuple[str, ...] = ()


CONSUMABLE = ("context", "units", "metric", "duration", "consumptionRate", "dynamic")
"""Attributes of consumable resources."""

REQUESTED = ("op", "conj", "group", "preference", "performanceFactor")
"""Attributes of every property in Requested."""

DELIVERED = ("group",)
"""Attributes of every property in Delivered."""


def _table(*rows: tuple[str, Kind, str] | tuple[str, Kind, str, str]) -> dict[str, Property]:
    """Properties by name, from rows of (names, type, treatment, signs and attributes).

    The first of `names` is written, the others are read too.  The treatment begins with
    ``!`` if it is refused and is empty if it is carried.  RD: may be in Requested and
    Delivered; ``*``: may be repeated.
    """
    table = {}
    for names, kind, to, *rest in rows:
        name, *older = names.split()
        signs = rest[0].split() if rest else []
        use: Use = "refused" if to.startswith("!") else "mapped" if to else "carried"
        table[name] = Property(
            name,
            kind,
            use,
            to.removeprefix("!") or "kept in the record",
            tuple(older),
            category="RD" in signs,
            many="*" in signs,
            attributes=tuple(sign for sign in signs if sign not in ("RD", "*")),
        )
    return table


_C = " " + " ".join(CONSUMABLE)

GROUP_PROPERTIES = _table(
    ("CreationTime", "DateTime", ""),
    ("Description", "String", ""),
    ("Id", "String", "group of each job's record"),
    ("Name", "String", ""),
    ("State", "String", ""),
)
"""Table 1."""

JOB_PROPERTIES = _table(
    # table 2
    ("Application", "String", ""),
    ("Architecture", "String", "constraint: property of that name", "RD"),
    ("Arguments", "String", "tasks[].command"),
    ("Charge", "Float", "", "units"),
    ("Checkpointable", "Boolean", ""),
    ("CpuDuration", "Duration", ""),
    ("Deadline", "DateTime", "deadline of the record: the job order edf goes by it"),
    ("EligibleTime EarliestStartTime", "DateTime", "dependency begin-time"),
    ("EndTime", "DateTime", "end of the record; run time"),
    ("Executable", "String", "tasks[].command"),
    ("ExitCode", "Integer", ""),
    ("GridJobId GlobalJobId", "String", ""),
    ("Hold", "String", "the record is held until released", "*"),
    ("InitialWorkingDirectory", "String", "attributes.system.cwd"),
    ("Interactive IsInteractive", "Boolean", ""),
    ("Id JobId", "String", "id of the record"),
    ("Name JobName", "String", "attributes.system.job.name"),
    ("State JobState", "String", "state of the record; Hold means held"),
    ("Type JobType", "String", ""),
    ("Machine MachineName", "String", "", "RD"),
    ("NetworkType", "String", "constraint: property of that name", "RD"),
    ("NodeCount", "Integer", "count of node vertices", "RD"),
    ("OpSys OperatingSystem", "String", "constraint: property of that name", "RD"),
    ("Partition", "String", "constraint: property of that name", "RD"),
    ("Priority", "Integer", "priority of the record"),
    ("QualityOfService", "String", "qos of the record", "RD"),
    ("Queue", "String", "attributes.system.queue", "RD"),
    ("Quote QuoteId", "String", ""),
    ("Reservation ReservationId", "String", "!there are no named reservations", "RD"),
    ("ReservationTime", "DateTime", ""),
    ("ResourceManagerType", "String", "!there is only one resource manager", "RD"),
    ("Restartable", "Boolean", ""),
    ("Shell", "String", ""),
    ("StagedTime", "DateTime", ""),
    ("StartCount", "Integer", ""),
    ("StartTime", "DateTime", "start of the record; run time"),
    ("StatusMessage", "String", ""),
    ("SubmitTime SubmissionTime", "DateTime", "submit of the record"),
    ("SubmitHost", "String", ""),
    ("Suspendable", "Boolean", ""),
    ("SuspendDuration", "Integer", ""),
    ("TimeCategory", "String", ""),
    ("Duration WallDuration", "Duration", "attributes.system.duration", "RD"),
    # with a section of their own
    ("Feature", "String", "constraint: property", "RD aggregation delimiter"),
    ("OutputFile", "String", "", "redirectList"),
    ("ErrorFile", "String", "", "redirectList"),
    ("InputFile", "String", "", "redirectList"),
    ("NotificationList", "String", "", "uri"),
    ("ResourceLimit", "String", "", "* name type"),
    ("Environment", "String", "attributes.system.environment", "export"),
    ("Node", "String", "constraint: hosts, or id of the node vertices", "RD aggregation delimiter count"),
    ("TaskDistribution", "String", "slots per node; a rule: tasks[].distribution", "type"),
    ("Dependency", "String", "attributes.system.dependencies", "* condition code designator"),
    ("Extension", "String", "", "* name type"),
    # table 3
    ("Project ProjectId Account", "String", "attributes.system.bank", "RD"),
    ("GlobalUser", "String", "", "RD"),
    ("Group", "String", "group of the record", "RD"),
    ("User UserId", "String", "user of the record", "RD"),
    # table 4
    ("Disk", "Float", "disk pool in the slot", "RD" + _C),
    ("Memory", "Float", "memory pool in the slot", "RD" + _C),
    ("Network", "Float", "!network bandwidth is not matched", "RD" + _C),
    ("Processors", "Integer", "core vertices", "RD" + _C),
    ("Swap", "Float", "swap pool in the slot", "RD" + _C),
    (
        "Resource",
        "Float",
        "vertex: type = name, id = type; a gpu is in the slot, others top-level",
        "RD * name type" + _C,
    ),
    # table 6: a job without task groups is one implicit task group
    ("TaskCount", "Integer", "count of slots", "RD"),
)
"""Tables 2, 3, 4, and the elements with a section of their own."""

TASK_GROUP_PROPERTIES = JOB_PROPERTIES | _table(
    ("Id", "String", "label of the slot, where there is no Name"),
    ("Name", "String", "label of the slot"),
)
"""Table 6, and the job's properties."""

TASK_PROPERTIES = JOB_PROPERTIES | _table(
    ("Id", "String", ""),
    ("Node", "String", "", "RD aggregation delimiter count"),
    ("Session", "Integer", ""),
    ("Process", "Integer", ""),
)
"""Table 7, and the job's properties."""

CONTAINERS: dict[str, tuple[dict[str, Property], tuple[str, ...]]] = {
    "Data": ({}, ("JobGroup", "Job")),
    "JobGroup": (GROUP_PROPERTIES, ("Job", "JobDefaults")),
    "Job": (JOB_PROPERTIES, ("TaskGroup", "TaskGroupDefaults", "Requested", "Delivered")),
    "TaskGroup": (TASK_GROUP_PROPERTIES, ("Task", "TaskDefaults", "Requested", "Delivered")),
    "Task": (TASK_PROPERTIES, ("Requested", "Delivered")),
}
"""The content of each containment element: properties and other containment elements.

``Data`` is the field of SSSRMAP in which Job Objects travel; a file may hold several jobs in one.
"""

for _name in ("Job", "TaskGroup", "Task"):
    CONTAINERS[f"{_name}Defaults"] = CONTAINERS[_name]

OLDER = {
    name: {old: new.name for new in properties.values() for old in new.older}
    for name, (properties, _) in CONTAINERS.items()
}
"""The names of properties that are read too, by the element that has them → their names in 3.1."""

CATEGORIES = {"Requested": REQUESTED, "Delivered": DELIVERED}
"""The two categories and the attributes that their properties have besides their own."""

VALUES: dict[str, tuple[str, ...]] = {
    "awarenessPolicy": ("Reject", "Warn", "Ignore"),
    "op": ("EQ", "NE", "LT", "GT", "LE", "GE", "Match"),
    "conj": ("And", "Or", "Nand", "Nor"),
    "context": ("Configured", "Available", "Used", "Dedicated"),
    "condition": ("OnSuccess", "OnFailure", "OnExit"),
    "designator": ("JobId", "JobName"),
    "Feature.aggregation": ("List", "Pattern"),
    "Node.aggregation": ("List", "Pattern", "Range"),
    "TaskDistribution.type": ("Rule", "TasksPerNode", "ProcessorsPerTask", "Geometry"),
    "ResourceLimit.type": ("Hard", "Soft"),
    "units": ("B", "KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "NB", "DB"),
}
"""The values that an attribute may have, by its name or by element and name."""

REFERENCES = ("Job", "JobGroup", "TaskGroup", "Task")
"""The elements that may hold only the id of another one of their kind."""

NOT_EMPTY = ("TaskGroup", "Task", "Requested", "Delivered")
"""Elements that have one property or more; a Job and a JobGroup have their Id."""

_STREAM = ("Append", "Close", "Flush", "Keep", "Merge")
WORDS: dict[str, tuple[str, ...]] = {
    "OutputFile.redirectList": _STREAM,
    "ErrorFile.redirectList": _STREAM,
    "InputFile.redirectList": ("Close",),
    "NotificationList": ("JobStart", "JobEnd", "All", "None"),
}
"""The words of a comma-separated list, by element, or by element and attribute."""

ONLY_WITH: dict[str, tuple[str, str]] = {
    "delimiter": ("aggregation", "List"),
    "code": ("condition", "OnExit"),
}
"""Attributes that mean something only beside a value of another attribute."""

UNITLESS = ("Processors",)
"""Consumables that are counted: `units` does not apply to them."""

KINDS: dict[str, Kind] = {
    "group": "Integer",
    "preference": "Integer",
    "performanceFactor": "Float",
    "duration": "Duration",
    "consumptionRate": "Float",
    "dynamic": "Boolean",
    "count": "Integer",
    "code": "Integer",
    "export": "Boolean",
}
"""The types of attributes that are not strings."""

NEEDED = {"Resource": "name", "Extension": "name", "ResourceLimit": "name", "Variable": "name"}
"""The attribute without which an element means nothing."""

COUNTS = ("Processors", "NodeCount", "TaskCount")
"""Properties that count something; at least 1 when requested."""


def truth(text: str | None) -> bool:
    """Return whether a Boolean's text is true; xsd:boolean has four literals, here in any letter case."""
    return text is not None and text.strip().lower() in ("true", "1")


IN_SLOT = {"gpu": "gpu", "gpus": "gpu"}
"""Names of a Resource that belongs to each task, in lower case, and the vertex type that they mean."""

SIZES = ("Memory", "Disk", "Swap")
"""Consumables that are measured in bytes; without units they are MB."""
