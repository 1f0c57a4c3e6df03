"""A column map that is proposed from the names, types and first values of a table's columns."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.workload.readers.tables.column_map import COUNTS, DURATIONS, TIMES
from simsched.workload.readers.tables.column_sql import is_nested, is_number
from simsched.workload.readers.tables.relation import VIEW, named, open_relation, rows_within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.workload.readers.tables.relation import Relation
    from simsched.workload.source import Source

FIRST_ROWS = 3
"""The number of values that are shown per column."""
_WIDTH = 60

WORDS = {
    "id": "jobid jobidraw id jid jobnumber jobno jobuid jobname taskid cobaltjobid job number",
    "submit": "submit submittime submitted submittedtime submissiontime submitdate queuedtimestamp queued "
    "queuedat submittedat createdat queuedtime creationtime created createtime ctime qtime adt arrival "
    "arrivaltime tsubmit timesubmit",
    "start": "start starttime started startdate starttimestamp begin begintime startingtime scheduledtime "
    "sdt trun timestart dispatchtime began",
    "end": "end endtime ended enddate endtimestamp finish finishtime finished completion completiontime edt "
    "deletiontime tinactive timeend done",
    "runtime": "runtime elapsed elapsedraw elapsedtime runseconds runtimeseconds duration executiontime "
    "walltimeused wallclockused run",
    "limit": "timelimit limit walltime walltimeseconds requestedtime reqtime reqwalltime requestedwalltime "
    "wallclockreq timelimitraw elpl wallclocklimit maxtime timereq walltimereq walltimelimit",
    "nodes": "nnodes numnodes nodecount reqnodes allocnodes numnodesalloc numnodesreq nodenum nodesreq nodes "
    "nodesrequested nodesused nnumr numhosts workernum",
    "cores": "cores ncores numcores ncpus cpus reqcpus alloccpus numcpus cpunum corecount processors procs "
    "nprocs processorsreq numcoresalloc numcoresreq coresrequested coresused cnumr cpurequest "
    "requestednumberofresources res",
    "gpus": "gpus ngpus numgpus gpunum gpucount reqgpus numgpu numgpusalloc numgpusreq "
    "gpusrequested gpurequest",
    "memory": "memory mem reqmem memreq memalloc memoryreq memorymib memorygb maxmemgb requestedmemory",
    "user": "user username userid usr uid owner userhash usernamegenid who",
    "group": "group groupname groupid gid",
    "account": "account project projectname accounthash bank projectnamegenid organization vc allocation",
    "queue": "queue queuename partition qname jobqueue class",
    "state": "state jobstate status exitstate statesimple endstate jobstatus exitstatus finalstate podphase "
    "outcome result",
    "nodelist": "nodelist hosts hostlist allocatedresources location allocatednodes nodeslist",
    "energy": "energy consumedenergy consumedenergyraw econ energyj joules",
    "eligible": "eligible eligibletime qdt etime",
}
"""Value of a job → names of columns that have it, best first, in lower case without other characters."""
_MAGNITUDES = ((1e17, "epoch-ns"), (1e14, "epoch-us"), (1e11, "epoch-ms"))
_ENDINGS = (
    (r"(?:^|_)(?:minutes?|mins?)$", "min"), (r"(?:^|_)(?:hours?|hrs?|h)$", "h"), (r"_ms$|milli", "ms"),
    (r"gib$", "GiB"), (r"mib$", "MiB"), (r"kib$", "KiB"), (r"_gb$", "GB"), (r"_mb$", "MB"), (r"_kb$", "KB"),
    (r"bytes?$", "B"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """One column of a table: name, type, first values, and the value of a job that it may have."""

    name: str
    type: str
    values: tuple[str, ...]
    role: str = ""
    options: str = ""

    @property
    def sample(self) -> str:
        """The type and the first values, on one line."""
        text = ", ".join(self.values)
        return f"{self.type[:24]}: {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}"


def proposed_map(source: Source) -> str:
    """Return a column map for a table as YAML, with the first values of each column as comments.

    Raises
    ------
    FormatError
        for content that cannot be read as a table.
    """
    from simsched.workload.readers.tables.presets import presets_for

    with open_relation(source, source.name) as whole:
        relation, columns = whole, shown_columns(whole)
        if all(column.role != "submit" for column in columns):
            relation = rows_within(whole)
            columns = shown_columns(relation) if relation.rows_key else columns
        known = presets_for(relation.columns, relation.form)
    rows = [f"rows: {relation.rows_key}"] if relation.rows_key else []
    return "\n".join([*_head(source.name, [one.name for one in known]), *rows, *_lines(columns), ""])


def shown_columns(relation: Relation) -> list[ShownColumn]:
    """Return the columns of a table with their first values and roles; each role occurs once."""
    rows = relation.rows(f"from {VIEW} limit {FIRST_ROWS}")
    names = list(relation.columns)
    roles = _roles(relation.columns)
    found = []
    for place, name in enumerate(names):
        values = tuple(str(row[place]).replace("\n", " ")[:_WIDTH] for row in rows)
        role = roles.get(name, "")
        options = _options(relation, role, name) if role else ""
        found.append(ShownColumn(name, relation.columns[name], values, role, options))
    return found


def _roles(columns: dict[str, str]) -> dict[str, str]:
    """Return column → role: for each role the column whose name is first in its list of words."""
    plain = {name: re.sub(r"[^a-z0-9]", "", name.lower()) for name in columns}
    roles: dict[str, str] = {}
    for role, words in WORDS.items():
        order = words.split()
        fits = [
            name
            for name, text in plain.items()
            if text in order and name not in roles and _can_be(role, columns[name])
        ]
        if fits:
            roles[min(fits, key=lambda name: order.index(plain[name]))] = role
    return roles


def _can_be(role: str, type_: str) -> bool:
    """Whether a column of this type may hold this value of a job."""
    if is_nested(type_):
        return False
    if role in COUNTS:
        return is_number(type_) or type_ == "VARCHAR"
    return not (role in TIMES and type_ in {"BOOLEAN", "INTERVAL"})


def _options(relation: Relation, role: str, name: str) -> str:
    """Return the options of a column that its name and values suggest, such as ``unit: min``."""
    type_ = relation.columns[name]
    if role in TIMES and is_number(type_):
        ((most,),) = relation.rows(f"select max(x) from (select {named(name)} as x from {VIEW} limit 10000)")
        found = next((word for least, word in _MAGNITUDES if most is not None and most > least), "")
        return f"format: {found}" if found else ""
    if role in (*DURATIONS, "memory") and is_number(type_):
        time = role in DURATIONS
        units = [unit for pattern, unit in _ENDINGS if re.search(pattern, name.lower())]
        fits = [unit for unit in units if (unit in {"min", "h", "ms"}) == time]
        return f"unit: {fits[0]}" if fits else ""
    return ""


def _head(name: str, presets: list[str]) -> Iterator[str]:
    yield f"# column map for {name}, proposed from names and types; check units, zones and what a row is"
    if len(presets) == 1:
        yield f"# these are the columns of the preset {presets[0]}: --columns {presets[0]} reads the file"


def _lines(columns: list[ShownColumn]) -> Iterator[str]:
    yield "columns:"
    by_role = {column.role: column for column in columns if column.role}
    entries = {role: _entry(by_role[role]) for role in WORDS if role in by_role}
    width = max((len(f"{role}: {entry}") for role, entry in entries.items()), default=0)
    for role, entry in entries.items():
        text = f"{role}: {entry}"
        yield f"  {text:<{width}}  # {by_role[role].sample}"
    if "submit" not in by_role:
        yield "  # submit: the column of submission times is required"
    if "runtime" not in by_role and not {"start", "end"} <= by_role.keys():
        yield "  # runtime: a column of run times, or start and end, is required"
    if by_role.keys().isdisjoint((*COUNTS, "nodelist")):
        yield "  # cores: a column of cores, nodes or gpus is required"
    rest = [column for column in columns if not column.role]
    if rest:
        yield "# not used:"
        width = max(len(column.name) for column in rest)
        for column in rest:
            yield f"#   {column.name:<{width}}  {column.sample}"


def _entry(column: ShownColumn) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_][\w.-]*", column.name) and column.name.lower() not in {
        "yes", "no", "on", "off", "true", "false", "null", "y", "n",
    }  # fmt: skip
    name = column.name if is_plain else json.dumps(column.name, ensure_ascii=False)
    return f"{{column: {name}, {column.options}}}" if column.options else name
