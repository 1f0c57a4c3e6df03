"""A column map that is proposed from the names, types and first values of a table's columns."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.workload.readers.tables.column_map import COUNTS, DURATIONS, TIMES, presets_for
from simsched.workload.readers.tables.table_reader import (
    VIEW,
    Relation,
    is_nested,
    is_number,
    named,
    open_relation,
    rows_within,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.workload.source import Source

_NO_VALUE = 4_294_967_294
"""Slurm's NO_VAL; INFINITE is the number after it."""
_SAMPLE = 10_000
FIRST_ROWS = 3
"""The number of values that are shown per column."""
_WIDTH = 60

WORDS = {
    "id": "jobid jobidraw idjob id jid jobnumber jobno jobuid jobname taskid cobaltjobid job number",
    "submit": "submit submittime submitted submittedtime submissiontime submitdate queuedtimestamp queued "
    "queuedat submittedat createdat queuedtime creationtime created createtime ctime qtime adt arrival "
    "arrivaltime tsubmit timesubmit",
    "start": "start starttime started startdate starttimestamp begin begintime startingtime scheduledtime "
    "sdt trun timestart dispatchtime began",
    "end": "end endtime ended enddate endtimestamp finish finishtime finished completion completiontime edt "
    "deletiontime tinactive timeend done",
    "runtime": "runtime elapsed elapsedraw elapsedtime runseconds runtimeseconds duration executiontime "
    "walltimeused wallclockused usedwalltime actualwalltime run",
    "limit": "timelimit limit requestedtime reqtime reqwalltime requestedwalltime wallclockreq timelimitraw "
    "elpl wallclocklimit maxtime timereq walltimereq walltimelimit maxruntime timelimitseconds",
    "nodes": "nnodes numnodes nodecount reqnodes allocnodes numnodesalloc numnodesreq nodenum nodesreq "
    "nodesalloc nodes nodesrequested nodesused nnumr numhosts workernum",
    "cores": "cores ncores numcores ncpus cpus cpusreq reqcpus cpusalloc alloccpus numcpus cpunum corecount "
    "processors procs nprocs processorsreq numcoresalloc numcoresreq coresrequested coresused cnumr "
    "cpurequest reqcpu cpureq requestedcpus requestedcores numproc ncore requestednumberofresources res",
    "gpus": "gpus ngpus numgpus gpunum gpucount reqgpus numgpu numgpusalloc numgpusreq "
    "gpusrequested gpurequest reqgpu gpureq gpusreq gpusalloc requestedgpus",
    "memory": "memory mem reqmem memreq memalloc memoryreq memorymib memorygb maxmemgb requestedmemory",
    "user": "user username userid iduser usr uid owner userhash usernamegenid who",
    "group": "group groupname groupid idgroup gid",
    "account": "account project projectname accounthash bank projectnamegenid organization vc allocation",
    "queue": "queue queuename partition qname jobqueue class",
    "state": "state jobstate status exitstate statesimple endstate jobstatus exitstatus finalstate podphase "
    "outcome result",
    "nodelist": "nodelist hosts hostlist allocatedresources location allocatednodes nodeslist",
    "energy": "energy consumedenergy consumedenergyraw econ energyj joules",
    "eligible": "eligible eligibletime timeeligible qdt etime",
}
"""Value of a job → names of columns that have it, best first, in lower case without other characters."""
AMBIGUOUS = ("walltime", "walltimeseconds", "wallclock", "wallclocktime", "walltimes")
"""Names of columns that are run times in some logs and limits in others."""
_SLURM_STATES = (
    "0: PENDING, 1: RUNNING, 2: RUNNING, 3: COMPLETED, 4: CANCELED, 5: FAILED, 6: TIMEOUT, 7: FAILED, "
    "8: FAILED, 9: FAILED, 10: TIMEOUT, 11: FAILED"
)
"""The numbers of job states in Slurm's database (slurm.h, ``job_states``)."""
_MAGNITUDES = ((1e17, "epoch-ns"), (1e14, "epoch-us"), (1e11, "epoch-ms"))
_ENDINGS = (
    (r"(?:^|_)(?:minutes?|mins?)$|^timelimitraw$", "min"),
    (r"(?:^|_)(?:hours?|hrs?|h)$", "h"), (r"_ms$|milli", "ms"),
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
        kind = self.type[:24]
        return f"{kind}: {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}" if text else kind


def proposed_map(source: Source) -> str:
    """Return a column map for a table as YAML, with the first values of each column as comments.

    Raises
    ------
    FormatError
        for content that cannot be read as a table.
    """
    with open_relation(source, source.name) as whole:
        relation, columns = whole, shown_columns(whole)
        if all(column.role != "submit" for column in columns):
            relation = rows_within(whole)
            columns = shown_columns(relation) if relation.rows_key else columns
        known = presets_for(relation.columns, relation.form)
    rows = [f"rows: {relation.rows_key}"] if relation.rows_key else []
    checks = "proposed from names and types; check units, zones and what a row is"
    head = [f"# column map for {source.name}, {checks}"]
    if len(known) == 1:
        preset = known[0].name
        head.append(f"# these are the columns of the preset {preset}: --columns {preset} reads the file")
    return "\n".join([*head, *rows, *_lines(columns), ""])


def shown_columns(relation: Relation) -> list[ShownColumn]:
    """Return the columns of a table with their first values and roles; each role occurs once."""
    # Of a nested column of Parquet, even one value costs the memory of thousands of rows.
    hidden = {
        name for name, type_ in relation.columns.items() if relation.form == "parquet" and is_nested(type_)
    }
    shown = ", ".join("null" if name in hidden else named(name) for name in relation.columns)
    rows = relation.rows(f"select {shown} from {VIEW} limit {FIRST_ROWS}")
    roles = _roles(relation.columns)
    found = []
    for place, (name, type_) in enumerate(relation.columns.items()):
        cells = [] if name in hidden else [row[place] for row in rows]
        values = tuple(str(cell).replace("\n", " ")[:_WIDTH] for cell in cells)
        role = roles.get(name, "")
        options = _options(relation, role, name, roles) if role else ""
        found.append(ShownColumn(name, type_, values, role, options))
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
    unclear = [name for name, text in plain.items() if text in AMBIGUOUS and _can_be("limit", columns[name])]
    given = set(roles.values())
    if unclear and "limit" not in given and ("runtime" in given or {"start", "end"} <= given):
        roles[unclear[0]] = "limit"
    elif unclear and "runtime" not in given:
        roles[unclear[0]] = "runtime"
    return roles


def _can_be(role: str, type_: str) -> bool:
    """Whether a column of this type may hold this value of a job."""
    if is_nested(type_):
        return False
    if role in COUNTS:
        return is_number(type_) or type_ == "VARCHAR"
    return not (role in TIMES and type_ in {"BOOLEAN", "INTERVAL"})


def _options(relation: Relation, role: str, name: str, roles: Mapping[str, str]) -> str:
    """Return the options of a column that its name and values suggest, such as ``unit: min``."""
    if not is_number(relation.columns[name]):
        return ""
    slurm = {"id_job", "time_submit"} <= {name.lower() for name in relation.columns}
    ((most,),) = relation.rows(f"select max(x) from (select {named(name)} as x from {VIEW} limit {_SAMPLE})")
    found = []
    if role == "memory" and name.lower() == "mem_req" and slurm:
        # of Slurm's database: MiB per node, or per CPU with the highest bit set
        have = {name.lower() for name in relation.columns}
        nodes = " * greatest(nodes_alloc, 1)" if "nodes_alloc" in have else ""
        cpus = " * cpus_req" if "cpus_req" in have else ""
        case = f"case when mem_req >= {2**63} then (mem_req - {2**63}){cpus} else mem_req{nodes} end"
        return f'expression: "{case}"'
    if role in TIMES:
        word = next((word for least, word in _MAGNITUDES if most is not None and most > least), "")
        found += [f"format: {word}"] if word else []
        found += ["missing: [0]"] if slurm and role != "submit" else []
    if role in (*DURATIONS, "memory"):
        time = role in DURATIONS
        units = [unit for pattern, unit in _ENDINGS if re.search(pattern, name.lower())]
        fits = [unit for unit in units if (unit in {"min", "h", "ms"}) == time]
        if not fits and role == "limit" and (slurm or _is_in_minutes(relation, name, roles)):
            fits = ["min"]
        found += [f"unit: {fits[0]}"] if fits else []
    if role == "limit" and most is not None and most >= _NO_VALUE:
        found.append(f"missing: [{_NO_VALUE}, {_NO_VALUE + 1}]")
    if role == "state" and slurm:
        found.append(f"values: {{{_SLURM_STATES}}}")
    return ", ".join(found)


def _is_in_minutes(relation: Relation, name: str, roles: Mapping[str, str]) -> bool:
    """Whether limits are minutes: as seconds, most of the run times were beyond them."""
    column = {role: name for name, role in roles.items()}
    if "runtime" in column:
        run, types = named(column["runtime"]), [relation.columns[column["runtime"]]]
    elif {"start", "end"} <= column.keys():
        run = f"({named(column['end'])} - {named(column['start'])})"
        types = [relation.columns[column[role]] for role in ("start", "end")]
        if all("TIMESTAMP" in type_ for type_ in types):
            run, types = f"epoch({run})", []
    else:
        return False
    if not all(map(is_number, types)) or name.lower().endswith(("s", "sec", "seconds")):
        return False
    ((over, rows),) = relation.rows(
        f"select count(*) filter (run > x and run <= 60 * x + 120), count(*) from "
        f"(select {named(name)} as x, {run} as run from {VIEW} limit {_SAMPLE}) "
        f"where x between 1 and {_NO_VALUE - 1} and run > 0"
    )
    return bool(rows and over > rows / 2)


def _lines(columns: list[ShownColumn]) -> Iterator[str]:
    yield "columns:"
    by_role = {column.role: column for column in columns if column.role}
    entries = {role: _entry(by_role[role]) for role in WORDS if role in by_role}
    lengths = [len(f"{role}: {entry}") for role, entry in entries.items()]
    width = max((length for length in lengths if length <= _WIDTH), default=0)
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
    if column.options.startswith("expression: "):
        return f"{{{column.options}}}"
    name = column.name if is_plain else json.dumps(column.name, ensure_ascii=False)
    return f"{{column: {name}, {column.options}}}" if column.options else name
