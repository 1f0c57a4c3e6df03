"""What a file is: the format of a text, decided by its content as a whole.

A JSON document is known by its keys at the top, with the keys of what is in them; a text by its lines.  One
line of a text, or a key deep inside a document, decides nothing.  One text may have the output of several
commands in any order: `machine_parts` tells them apart.  All looks are linear in the size of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import chain, islice
from textwrap import dedent
from typing import TYPE_CHECKING

from simsched.errors import FormatError, clip
from simsched.formats.machines.slurm.config_keys import GLOBAL, NODE, PARTITION
from simsched.formats.machines.slurm.sacct_header import delimiter_of
from simsched.formats.text.sniffing import HEAD, Outline, begins_constraint, detect_kind, outline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


CLUSTER, WORKLOAD, REQUEST = "cluster", "workload", "request"
SCONTROL, SLURM_CONF, FLUX_CONFIG = "the output of scontrol", "slurm.conf", "a Flux configuration (TOML)"
SCONTROL_JOBS = "the output of scontrol show job"
GRES_CONF, TOPOLOGY_CONF, CGROUP_CONF = "gres.conf", "topology.conf", "cgroup.conf"
FLUX_LIST, FLUX_STATUS = "the output of flux resource list", "the output of flux resource status"
PBSNODES, QMGR = "the output of pbsnodes", "the output of qmgr (print server)"
HWLOC, PLATFORM = "hwloc XML", "a SimGrid platform"
SACCTMGR, SACCTMGR_DUMP = "the output of sacctmgr show", "the output of sacctmgr dump"
FLUX_ACCOUNTING = "a table of flux-accounting"

SLURM_LIMITS_JSON = "JSON of sacctmgr"
SLURM_JSON, PBS_JSON, PBS_QUEUES_JSON = "JSON of Slurm", "pbsnodes -F json", "qstat -Qf -F json"
SLURM_KINDS = frozenset((SLURM_CONF, SCONTROL, SACCTMGR, SACCTMGR_DUMP, SLURM_LIMITS_JSON, SLURM_JSON))
"""What is joined before it is understood."""
R = "R (RFC 20)"
FLUX_JSON, FLUX_STATUS_JSON = "JSON of flux resource list", "JSON of flux resource status"
FLUX_CONFIG_JSON = "flux config get"

BESIDE = {
    GRES_CONF: "it is read beside slurm.conf, from the same folder",
    TOPOLOGY_CONF: "it is read beside slurm.conf, from the same folder",
    CGROUP_CONF: "how Slurm confines processes has no part in a schedule",
    SCONTROL_JOBS: "jobs are not part of a site; simsched forecast takes them",
}
"""Kinds of texts of Slurm that describe no site by themselves → what becomes of them."""


@dataclass(frozen=True, slots=True)
class Look:
    """The likely format of a text.

    `role` is the kind of input that simsched reads it as, empty if it does not; `advice` says how it can.
    `reader` is the reader of a workload (`simsched.workload.load.READERS`).
    """

    what: str
    role: str = ""
    advice: str = ""
    reader: str = ""


QUEUE_SNAPSHOT = Look("a queue snapshot, which simsched forecast takes")


def look_of(text: str, first: str = "") -> Look | None:
    """Return the likely format of a text; formats of the role `first` are tried first.

    >>> look_of('"JOB_FINISH" "10.1" 1700000000 77').what, look_of('{"qos": [{"limits": {"jobs": []}}]}').what
    ('LSF accounting (lsb.acct)', 'JSON of sacctmgr')
    >>> look_of("hello") is None
    True
    """
    found: list[Look] = []
    for look in _looks(text.lstrip("\ufeff")):
        if first and look.role == first:
            return look
        found.append(look)
    return found[0] if found else None


def _looks(text: str) -> Iterator[Look]:
    """Yield the formats that a text may have, those first that are found quickly."""
    head = text[:HEAD]
    begin = head.lstrip()[:1]
    if begin and begin in "{[":
        found = [*_document_looks(outline(text), is_lines=is_json_lines(text))]
        if not found and begins_constraint(text):
            found = [CONSTRAINT]
        yield from found
        if found or detect_kind(text) != "json":  # TOML begins with a bracket, too
            return
    if _BATCH.match(head):
        yield Look("a batch script or a command that submits a job", REQUEST, BATCH_ADVICE)
        return
    if begin == "<":
        yield from _machine_looks(text)
        yield from _matching(_XML, head)
        return
    none = True
    logs_and_tables = chain(_matching(_LOGS, head), _sacct(head), _matching(_TABLES, head))
    for look in chain(logs_and_tables, _yaml_looks(text), _machine_looks(text)):
        none = False
        yield look
    if none:
        yield from islice(filter(None, (test(head) for test in (_headless, _bare_swf, _table))), 1)


def is_json_lines(text: str) -> bool:
    """Whether the first line of a text is a JSON object, and not its only line, or the entry of one job."""
    lines = [line for line in text[:HEAD].splitlines() if line.strip()][:2]
    first = lines[0].strip() if lines else ""
    alone = len(lines) < 2
    return (
        first[:1] == "{"
        and first[-1:] == "}"
        and not (alone and outline(first).keys().isdisjoint(("shape", "jobspec", "file")))
    )


def _machine_looks(text: str) -> Iterator[Look]:
    for kind in machine_parts(text):
        if kind == SCONTROL_JOBS:
            yield Look(kind, WORKLOAD, reader="squeue-json")
        else:
            yield Look(kind, CLUSTER, BESIDE.get(kind, ""))


def unrecognised(text: str, where: str | None, wanted: str, known: str) -> FormatError | None:
    """Return the error for a text that is not a `wanted` (``cluster``, ``workload``); None if it may be one.

    `known` lists the accepted formats.
    """
    look = look_of(text, first=wanted)
    if look is not None and wanted and look.role == wanted and not look.advice:
        return None
    message = "the format is not recognised"
    if look is not None:
        use = f", which is a {look.role}" if look.role else ", which is not read"
        message += f"; it looks like {look.what}{f': {look.advice}' if look.advice else use}"
    elif detect_kind(text) != "text" or not text[:HEAD].strip("\ufeff \t\r\n"):
        return None
    return FormatError(message, where=where, expected=known)


def _matching(looks: Iterable[tuple[Look, re.Pattern[str]]], head: str) -> Iterator[Look]:
    return (look for look, pattern in looks if pattern.match(head))


# -- JSON: the keys at the top -------------------------------------------------------------------


def document_kind(keys: Outline) -> str:
    """Return the kind of site file that a JSON document is; empty if it is none.

    >>> document_kind(outline('{"reservations": []}')), document_kind(outline('{"jobs": []}'))
    ('JSON of Slurm', '')
    """
    if "groups" in keys or "graph" in keys:
        return ""
    objects = {key for key, (mark, _) in keys.items() if mark == "{"}
    # v0.0.39 has a list in an object of the same name
    lists = {key for key, (mark, inner) in keys.items() if mark == "[" or (mark == "{" and key in inner)}
    of_r = {key for key, (_, inner) in keys.items() if "execution" in inner}
    tables = {key for key in objects & {"resource", "queues"} if keys[key][1]}
    of_slurm = lists & {"nodes", "partitions", "reservations", "sinfo", "licenses"}
    found = {
        R: objects & {"execution"},
        SLURM_JSON: of_slurm or objects & {"sinfo"},
        SLURM_LIMITS_JSON: lists & {"QOS", "qos", "associations"},
        PBS_JSON: objects & {"nodes"},
        PBS_QUEUES_JSON: objects & {"Queue"},
        FLUX_JSON: of_r & {"all"},
        FLUX_STATUS_JSON: of_r & {"R"},
        FLUX_CONFIG_JSON: tables or {key for key in keys if key.startswith("sched-fluxion")},
    }
    return next((kind for kind, own in found.items() if own), "")


_SLURM_ANSWERS = {
    "statistics": "sdiag --json, statistics of the scheduler",
    "pings": "scontrol ping --json",
    "ping": "scontrol ping --json",
    "shares": "sshare --json (sshare -P is read)",
    "users": "sacctmgr show user --json (sacctmgr show assoc --json has the limits and shares)",
    "accounts": "sacctmgr show account --json (sacctmgr show assoc --json has the limits and shares)",
    "clusters": "sacctmgr show cluster --json",
    "tres": "sacctmgr show tres --json",
    "TRES": "sacctmgr show tres --json",
    "wckeys": "sacctmgr show wckey --json",
    "instances": "sacctmgr show instance --json",
    "steps": "scontrol show step --json",
}
"""Key of an answer of Slurm of which simsched reads nothing → the command."""


_JOBS_OF = (
    (Look("squeue --json", WORKLOAD, reader="squeue-json"), {"job_state", "tres_req_str"}),
    (Look("jobs of Flux (flux jobs --json)", WORKLOAD, reader="flux"), {"t_submit"}),
    (Look("a Batsim workload", WORKLOAD, reader="batsim"), {"subtime"}),
    (Look("a list of jobs (jobs.yaml)", WORKLOAD, reader="jobs"), {"shape", "jobspec", "file"}),
    (
        Look("sacct --json", WORKLOAD, reader="sacct-json"),
        {"job_id", "association", "tres", "time", "time_limit"},
    ),
)
"""Format of a JSON document → keys of its jobs, any of which tells it."""
_SQUEUE, _FLUX, _BATSIM, _JOBS, _SACCT_JSON = (look for look, _ in _JOBS_OF)
_MODEL = Look("a model of jobs", WORKLOAD, reader="model")
CONSTRAINT = Look("a constraint (RFC 31)", REQUEST)


def jobs_look(keys: Outline) -> Look | None:
    """Return the format of the jobs of a JSON document; None if there are none.

    >>> jobs_look(outline('{"jobs": [{"job_id": 1, "job_state": ["PENDING"]}]}')).what
    'squeue --json'
    """
    listed = keys.get("jobs", keys.get("", ("", frozenset())))
    inner = listed[1] if listed[0] == "[" else keys.keys()
    found = next((look for look, some in _JOBS_OF if not some.isdisjoint(inner)), None)
    if found is None and {"nb_res", "profiles"} <= keys.keys():
        return _BATSIM
    if found is None and listed[0] == "[" and {"meta", "errors", "last_update"} & keys.keys():
        return _SQUEUE  # a queue without jobs
    if found is None and "jobs" in keys and listed[0] == "[":
        return _JOBS
    return found if listed[0] == "[" or found in (_FLUX, _JOBS) else None


def is_model(keys: Outline) -> bool:
    """Whether a document is a mix or the model of a log: it has parts or classes, and no list of jobs."""
    parts, classes, jobs = (keys.get(key, ("",))[0] for key in ("parts", "classes", "jobs"))
    return "[" in (parts, classes) and jobs != "["


def _document_looks(keys: Outline, *, is_lines: bool) -> Iterator[Look]:
    kind = document_kind(keys)
    if kind:
        yield Look(kind, CLUSTER)
    if "R_lite" in keys:
        yield Look(R, CLUSTER)
    if "graph" in keys:
        yield Look("a resource graph (JGF)", CLUSTER)
    if "groups" in keys:
        yield Look("a cluster recipe", CLUSTER)
    if {"resources", "tasks"} <= keys.keys() or {"resources", "tasks"} <= keys.get("", ("", frozenset()))[1]:
        yield Look("a jobspec (RFC 14)", REQUEST)
    jobs = jobs_look(keys)
    if is_model(keys):
        yield _MODEL
    elif jobs is not None:
        yield replace(jobs, reader="jsonl") if jobs == _JOBS and is_lines and "jobs" not in keys else jobs
    if keys.get("Jobs", ("", ()))[0] == "{":
        yield Look("qstat -f -F json", advice="the accounting logs of PBS are read")
    if "kind" in keys and {"running", "waiting"} & keys.keys():
        yield QUEUE_SNAPSHOT
    if not keys.keys().isdisjoint(("meta", "errors")):
        answer = next((command for key, command in _SLURM_ANSWERS.items() if key in keys), "")
        if answer:
            yield Look(answer)


# -- texts: their lines --------------------------------------------------------------------------

_COLUMNS = r"(?=[^\n]*[ \t]NNODES\b)[ \t]*+(?:[A-Z]+[ \t]+)*?STATE\b"
_ACCTMGR = (
    r"(?=[^\n]*[|,;\t^~])(?=[^\n]*\b(?:Name|Account)\b)(?![^\n]*\b(?:submit|job_?id|start))[^\n]*"
    r"\b(?:GrpTRES|GrpJobs|UsageFactor|GraceTime|Preempt\w*|(?<=(?<![a-z])Name\|)Priority|Max(?:TRES|Jobs|Wall)\w*)\b"
)
_STARTS = rf"""
      (?P<config>[ \t]*+Configuration\ data\ as\ of\b)
    | (?P<nothing>No\ (?:\w+\ )?(?:reservation|node|partition|license|job)s?\ in\ the\ system)
    | (?P<job>[ \t]*+JobId=\d)
    | (?P<scontrol>[ \t]*+(?:ReservationName=\S*\s+StartTime=|LicenseName=\S+))
    | (?P<record>[ \t]*+(?:NodeName|PartitionName)[ \t]*=)
    | (?P<switch>[ \t]*+(?:SwitchName|BlockName)[ \t]*=)
    | (?P<include>[ \t]*+Include[ \t]+\S)
    | (?P<setting>[ \t]*+(?P<key>[A-Za-z]\w*)(?P<index>\[\d+\])?(?P<blank>[ \t]*)=)
    | (?P<dump>(?i:Cluster|ClusterName|Parent|Account|User|QOS)[ \t]*-[ \t]*['\"]?\w[^:\n]*(?::\w|\s*\Z))
    | (?P<sacctmgr>[ \t]*+{_ACCTMGR})
    | (?P<qmgr>[ \t]*+(?:create|set|unset)[ \t]+(?:queue|server|node|hook|sched|resource)\b)
    | (?P<list>(?=[^\n]*[ \t](?:NCORES|LIST)\b){_COLUMNS})
    | (?P<status>{_COLUMNS})
    """
_KIND_OF = {
    "config": SCONTROL, "nothing": SCONTROL, "job": SCONTROL_JOBS, "scontrol": SCONTROL,
    "switch": TOPOLOGY_CONF, "include": SLURM_CONF, "dump": SACCTMGR_DUMP, "sacctmgr": SACCTMGR,
    "qmgr": QMGR, "list": FLUX_LIST, "status": FLUX_STATUS, "record": "", "conf": SLURM_CONF,
    "gres": GRES_CONF, "cgroup": CGROUP_CONF, "pbsnode": PBSNODES,
}  # fmt: skip
_RECORDS = (SCONTROL, SCONTROL_JOBS)
_TRAILER = re.compile(r"Slurmctld\(|\S+ is (?:UP|DOWN)\b|No .* in the system|.*:\Z", re.IGNORECASE)
"""Lines of scontrol beside its records."""
_PBS_VALUE = re.compile(r"[ \t]+\w[\w.-]* = ")
_SHOWN = re.compile(
    r"\s(?:CPUAlloc|CPUTot|CPUErr|CPUEfctv|CPULoad|AvailableFeatures|ActiveFeatures|CfgTRES|AllocTRES|AllocMem|"
    r"FreeMem|SlurmdStartTime|TotalCPUs|TotalNodes|JobDefaults|CoreIDs)=",
    re.IGNORECASE,
)
"""Keys of nodes and partitions that scontrol prints and no slurm.conf has."""
_GRES_LINE = re.compile(r"\s(?:File|MultipleFiles|Count|Type|Cores)=", re.IGNORECASE)
_GRES = re.compile(r"\s(?:Name=|AutoDetect=)", re.IGNORECASE)
_CORE_IDS = re.compile(r"[ \t]*NodeName=\S+[ \t]+CoreIDs=", re.IGNORECASE)
_PRINTED = re.compile(
    r"(?mi)^(?:BOOT_TIME|HASH_VAL|NEXT_JOB_ID|SLURM_CONF|SLURM_VERSION)[ \t]+=|"
    r"^\w+(?:\[\d+\][ \t]+=|[ \t]+=[ \t](?:\(null\)|\d+[ \t](?:sec|min|percent|bytes|usec)))[ \t\r]*$"
)
"""Lines of ``scontrol show config`` that no slurm.conf has."""
_CONF = frozenset((*GLOBAL, "nodeset", "downnodes", "frontendname"))
_CGROUP = re.compile(
    r"(?:cgroup|constrain|allowed|maxram|maxswap|minram|signalchildren|enablecontrollers)\w*"
)
_INSIDE = frozenset((*NODE, *PARTITION, "name", "file", "type", "count"))
_FLUX_TABLE = re.compile(
    r"(?m)^[ \t]*\[\[?[ \t]*(?:resource|queues|policy|tbon|sched-fluxion-\w+)\b[\w.\" -]*\]"
)
_TOML_LINE = re.compile(r"(?m)\A(?:[ \t\r]*(?:#[^\n]*)?\n)*+[ \t]*(?:\[\[?[\w.\"' -]+\]|[\w.\"'-]+[ \t]*=)")
_RECIPE = re.compile(r"(?m)^groups[ \t]*:")
_HWLOC = re.compile(r"<!DOCTYPE topology|<topology\b|<object type=\"Machine\"")
_PLATFORM = re.compile(r"<!DOCTYPE platform|<platform\b")
_ACCOUNTING = re.compile(r"(?i)(?=(?:[^\n]*,)?(?:username|queue),)[^\n]*\bmax_?(?:running|active)_?jobs\b")


def machine_parts(text: str) -> dict[str, str]:
    r"""Return the parts of a text that are files of a site: kind → its lines, at their places in the text.

    Lines of other parts are blank, so that the numbers of lines stay.  A text in which most lines belong to
    none of these kinds has no parts.

    >>> parts = machine_parts("Configuration data as of now\nClusterName = x\n\nJobId=1 JobName=a\n")
    >>> {kind: part.split("\n")[3] for kind, part in parts.items()}
    {'the output of scontrol': '', 'the output of scontrol show job': 'JobId=1 JobName=a'}
    """
    text = text.removeprefix("\ufeff")
    head = text[:HEAD].lstrip()
    if head.startswith("<"):
        of_xml = ((HWLOC, _HWLOC), (PLATFORM, _PLATFORM))
        return next(({kind: text} for kind, pattern in of_xml if pattern.search(head)), {})
    if head.startswith(("{", "#!")) or _RECIPE.search(text):
        return {}
    if _FLUX_TABLE.search(text) and _TOML_LINE.match(text):
        return {FLUX_CONFIG: text}
    if _ACCOUNTING.match(head):
        return {FLUX_ACCOUNTING: text}
    units = list(_units(text))
    kinds = [unit.kind for unit in units]
    found = dict.fromkeys(kind for kind in kinds if kind)
    if sum(unit.known for unit in units) < sum(unit.strange for unit in units):
        return {}
    if SLURM_CONF in found and TOPOLOGY_CONF in found:  # slurm.conf may have the switches itself
        kinds = [SLURM_CONF if kind == TOPOLOGY_CONF else kind for kind in kinds]
        del found[TOPOLOGY_CONF]
    if len(found) <= 1:
        return dict.fromkeys(found, text)
    parts: dict[str, list[str]] = {kind: [] for kind in found}
    last = next(iter(found))
    for unit, kind in zip(units, kinds, strict=True):
        last = kind or last
        for each in parts:
            parts[each] += unit.lines if each == last else [""] * len(unit.lines)
    return {kind: "\n".join(lines) for kind, lines in parts.items()}


@dataclass(slots=True)
class _Unit:
    """Neighbouring lines that belong together: a record, a table, a block of settings.

    known, strange : the lines that the kind explains, and those that it does not; comments and settings of
    unknown names are neither.
    """

    kind: str
    lines: list[str]
    known: int = 0
    strange: int = 0
    record: bool = False

    def closed(self) -> _Unit:
        """Return the unit at its end: what a record of a node or partition is, all of its keys decide."""
        if self.record:
            whole = "\n".join(self.lines)
            self.kind = SCONTROL if _SHOWN.search(whole) else GRES_CONF if _GRES.search(whole) else SLURM_CONF
            if self.kind == SCONTROL:
                self.known, self.strange = self.known + self.strange, 0
        return self


def _units(text: str) -> Iterator[_Unit]:
    """Yield the units of a text, line by line; all lines of the text are in them, in their order."""
    lines = text.split("\n")
    is_printed = _PRINTED.search(text) is not None
    starts = re.compile(_STARTS, re.VERBOSE | re.IGNORECASE)  # most commands read no site
    unit, fresh, config = _Unit("", []), True, False
    for at, line in enumerate(lines):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            unit.lines.append(line)
            fresh = fresh or not bare
            continue
        start = starts.match(line)
        name = (start.lastgroup or "") if start else ""
        if not name and at + 1 < len(lines) and line[0] not in " \t" and _PBS_VALUE.match(lines[at + 1]):
            name = "pbsnode" if " " not in bare else name
        own = unit.kind in _RECORDS or unit.record
        if name == "record" and own and not fresh and _CORE_IDS.match(line):
            name = ""  # the cores of a reservation
        if start is not None and name == "setting":
            key = start["key"].lower()
            if (start["blank"] or start["index"]) and (config or is_printed):
                name = "" if config else "config"
            elif unit.record and key in _CONF and key not in _INSIDE:
                name = "conf"  # the lines of a slurm.conf may be in any order, without blank lines
            elif own and (not fresh or (line[0] in " \t" and unit.kind in _RECORDS)):
                name = ""
            elif key in _CONF:
                name = "conf"
            elif key == "autodetect" or (key == "name" and _GRES_LINE.search(line)):
                name = "gres"
            elif _CGROUP.fullmatch(key):
                name = "cgroup"
            else:
                unit.lines.append(line)  # a setting of anything
                fresh = False
                continue
        if name and (fresh or name == "record" or _KIND_OF[name] != unit.kind or unit.record):
            yield unit.closed()
            unit = _Unit(_KIND_OF[name], [], record=name == "record")
            config = name == "config"
        if name:
            known = True
        elif unit.kind in (SLURM_CONF, GRES_CONF, TOPOLOGY_CONF, CGROUP_CONF) or unit.record:
            before = unit.lines[-1].rstrip() if unit.lines else ""
            # lines that are continued begin with a key of a node or partition
            known = before.endswith("\\") or bare.partition("=")[0].strip().lower() in _INSIDE
        else:
            known = unit.kind != "" and (
                not fresh or line[0] in " \t" or config or _TRAILER.match(bare) is not None
            )
        unit.lines.append(line)
        unit.known += known
        unit.strange += not known
        fresh = False
    yield unit.closed()


_BATCH = re.compile(
    r"(?s)\A\s*(?:#!(?=.{0,4000}?\n[ \t]*#[ \t]*(?:SBATCH|FLUX:)[ \t])|#(?:SBATCH|FLUX:)[ \t]|"
    r"(?:flux[ \t]+(?:submit|run|batch|alloc)|sbatch|srun|salloc)[ \t])",
    re.IGNORECASE,
)
BATCH_ADVICE = "simsched feasible and match take it as a request, and simsched convert prints its shape"


# -- tables, logs and requests ---------------------------------------------------------------------

_SINFO = r"\s*(?:PARTITION|NODELIST|HOSTNAMES)\b[^\n]*\b(?:AVAIL|STATE|NODES|CPUS|GRES)\b"
PBS_SCRIPT, IN_COLUMNS = "a batch script of PBS or LSF", "a table of sacctmgr in columns"
_INSTEAD = {
    "squeue's table": "simsched forecast takes what squeue --json or scontrol show job prints",
    "sinfo's table": "scontrol show node and scontrol show partition print what is read",
    PBS_SCRIPT: "scripts of Slurm and Flux (#SBATCH, #FLUX:) are read",
    IN_COLUMNS: "sacctmgr with -P prints what is read",
}
"""Kind of text that is not read → what is read in its place."""
_COMMENTS = r"(?:[ \t]*+(?:#[^\r\n]*+)?[\r\n])*+[ \t]*+"
# Of GWF, numbers up to the status, then names; the 19th of them is the structure of the job.
_GWF = r"\d+(?:[ \t]+-?\d+(?:\.\d+)?){10}(?:[ \t]+\S+){7}[ \t]+(?:UNITARY|-1|[A-Z]\S*)(?:[ \t]+\S+){8}"
_SWF, _SACCT = Look("an SWF trace", WORKLOAD, reader="swf"), Look("sacct", WORKLOAD, reader="sacct")
_LOGS = (
    *(
        (Look(what, WORKLOAD, reader=kind), re.compile(_COMMENTS + record))
        for kind, what, record in (
            ("gwf", "the Grid Workload Format", _GWF),
            ("pbs", "a PBS accounting log", r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];"),
            ("lsf", "LSF accounting (lsb.acct)", r'"[A-Z_]+" "\d+(?:\.\d+)*" \d{9,} '),
            ("sge", "SGE accounting", r"(?:[^:\n]*:){5}\d+:[^:\n]*:[^:\n]*:(?:\d+:){3}(?:[^:\n]*:){25}"),
        )
    ),
    (_SWF, re.compile(r"\s*;\s*\w+\s*:|\s*(?:-?\d+(?:\.\d+)?[ \t]+){17}-?\d")),
)
"""Formats of logs, and their first records, which comments may be before."""
_TABLES = tuple(
    (Look(what, "", _INSTEAD.get(what, "")), re.compile(pattern))
    for what, pattern in (
        ("squeue's table", r"\s*JOBID\b[^\n]*\b(?:ST|STATE|NODELIST)\b"),
        ("sinfo's table", _SINFO),
        (PBS_SCRIPT, r"(?s)(?:#![^\n]*\n)?(?:[ \t]*(?:#[^\n]*)?\n){0,50}?#(?:PBS|BSUB)[ \t]+-"),
        (IN_COLUMNS, r"[ \t]*(?:Name|Cluster|Account)[ \t][^\n]*\n-[- \t\r]*\n"),
    )
)


def _sacct(head: str) -> Iterator[Look]:
    line = next((line for line in head.splitlines() if line.strip()), "")
    if line[:1] not in "{[" and "=" not in line and delimiter_of(line) is not None:  # no record of scontrol
        yield _SACCT


_SSS = Look("SSS Job Objects", WORKLOAD, reader="sss")
_XML = (
    (Look("GRUG", CLUSTER), re.compile(r"(?s)[^\0]*?<graphml\b")),
    (
        Look("SSS Job Objects", WORKLOAD, reader="sss"),
        re.compile(r"(?s)[^\0]*?<(?:\w+:)?(?:Job|Jobs|JobGroup)\b"),
    ),
)
_YAML_KEY = re.compile(r"(?m)^(- *+(?:\{ *+)?)?[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:(?=\s|$)")
_MODEL_KEY = re.compile(r"(?m)^(?:parts|classes)\s*:")
"""A line of a model of jobs, unless one of `_JOBS_KEY` is before it."""
_JOBS_KEY = re.compile(r"(?m)^(?:jobs\s*:\s*(?:#.*)?$|-)")
_YAML_JOB = re.compile(
    r"(?m)^(?:[^\n]*?[{,])?[ \t]*+(?:- *+)?[\"']?(?:shape|jobspec|file|procs)[\"']?[ \t]*:(?=\s|$)"
    r"|^jobs[ \t]*:[ \t]*\[\s*\]"
)


def _yaml_looks(text: str) -> Iterator[Look]:
    """Yield the formats that the keys at the top of a YAML text show."""
    if "\r" in text:
        text = "\n".join(text.splitlines())
    if text.lstrip("\n")[:1] in (" ", "\t"):  # as a whole
        text = dedent(text)
    found = [(bool(key[1]), key[2]) for key in _YAML_KEY.finditer(text)]
    top = {key for listed, key in found if not listed}
    if not top.isdisjoint(("execution", "R_lite")):
        yield Look(R, CLUSTER)
    if "groups" in top:
        yield Look("a cluster recipe", CLUSTER)
    if {"resources", "tasks"} <= top:
        yield Look("a jobspec (RFC 14)", REQUEST)
    model = _MODEL_KEY.search(text)
    if model is not None and _JOBS_KEY.search(text, 0, model.start()) is None:
        yield _MODEL
    elif "kind" in top and re.search(r"(?m)^kind[ \t]*:[ \t]*[\"']?simsched queue", text):
        yield QUEUE_SNAPSHOT
    elif ("jobs" in top or any(listed for listed, _ in found)) and _YAML_JOB.search(text):
        yield _JOBS
    if begins_constraint(text):
        yield CONSTRAINT


_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\b(?:COMPLETED|FAILED|TIMEOUT|CANCELLED)\b")


def _headless(head: str) -> Look | None:
    """Recognise a table of Slurm without a header: of jobs by its times or states."""
    line = head.lstrip().partition("\n")[0]
    if "|" in line and _STAMP.search(line):
        advice = "name its columns with --columns JobIDRaw,Submit,…"
        return Look("a Slurm dump without its header line", advice=advice)
    if re.match(r"\w*(?:\|[^|]*){4}", line) and re.search(r"\|(?:\||\d)", line):
        return Look("a table of Slurm without its header line", advice="print it without -n (--noheader)")
    return None


_BARE_SWF = re.compile(r"\s*(?:;|(?:-?\d[-+.\deE]*[ \t]+){10}-?\d)")


def _bare_swf(head: str) -> Look | None:
    return _SWF if _BARE_SWF.match(head) else None


_COLUMN = re.compile(r"[A-Za-z_][\w .()/-]*")


def table_columns(head: str) -> tuple[list[str], str]:
    r"""Return the columns that the beginning of a table shows, and its form (``csv`` or ``json``).

    The columns of JSON are the keys of its first object.  Without a table the list is empty.

    >>> table_columns("a,b,c\n1,2,3"), table_columns('[{"id": 1, "at": {"x": 2}}, {"i')
    ((['a', 'b', 'c'], 'csv'), (['at', 'id'], 'json'))
    """
    if head.lstrip()[:1] in {"{", "["}:
        keys = outline(head)
        return sorted(keys[""][1] if "" in keys else keys), "json"
    return _columns_of(head)[0], "csv"


def _columns_of(head: str) -> tuple[list[str], str]:
    """Return at least three names in the first line, if the second has as many cells, and their mark."""
    lines = [line for line in head.splitlines() if line.strip()][:2]
    for mark in ",\t;|":
        if len(lines) == 2 and lines[0].count(mark) >= 2 and lines[1].count(mark) >= 2:
            columns = [cell.strip(' "') for cell in lines[0].split(mark)]
            if all(_COLUMN.fullmatch(cell) for cell in columns):
                return columns, mark
    return [], ""


def _table(head: str) -> Look | None:
    """Recognise a table: at least three names, and the same number of cells in the second line."""
    columns, mark = _columns_of(head)
    lines = [line for line in head.splitlines() if line.strip()][:2]
    if not columns or lines[0].count(mark) != lines[1].count(mark):
        return None
    name = {"\t": "a table with tabs", "|": "a table"}.get(mark, "CSV")
    advice = "map its columns with --columns (simsched workload columns FILE proposes a map)"
    return Look(f"{name} with the columns {clip(', '.join(columns), 120)}", advice=advice)
