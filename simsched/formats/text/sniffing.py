"""Formats by content: which reader a text is for, and the likely format of a text that no reader takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from simsched.errors import FormatError
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Kind: TypeAlias = Literal["json", "jsonl", "yaml", "xml", "text"]

_YAML_START = re.compile(
    r"---|%YAML|- |-\Z|\? |(?:[^\s:;#{}\[\],&*!|>'\"%@`-][^:#]*|\"[^\"]*\"|'[^']*'):(?:\s|\Z)"
)
_SHAPE = re.compile(r"""\[?\s*(?:[^\W\d][\w.-]*|"[^"]*"|'[^']*')\s*(?:[=/{;\]]|\Z)""")

CLUSTER, WORKLOAD, REQUEST = "cluster", "workload", "request"
HEAD = 16_384
"""The characters at the beginning of a text that are inspected."""


@dataclass(frozen=True, slots=True)
class Look:
    """The likely format of a text.

    `role` is the kind of input that simsched reads it as, empty if it does not; `advice` says how it can.
    """

    what: str
    role: str = ""
    advice: str = ""


def unrecognised(text: str, where: str | None, wanted: str, known: str) -> FormatError | None:
    """Return the error for a text that is not a `wanted` (``cluster``, ``workload``); None if it may be one.

    `known` lists the accepted formats.
    """
    head = text[:HEAD].lstrip("\ufeff")
    look = look_of(head, first=wanted)
    if look is not None and look.role == wanted:
        return None
    if look is None:
        if detect_kind(head) != "text" or not head.strip():
            return None
        return FormatError("the format is not recognised", where=where, expected=known)
    purpose = (
        f": {look.advice}"
        if look.advice
        else f", which is a {look.role}"
        if look.role
        else ", which is not read"
    )
    message = f"the format is not recognised; it looks like {look.what}{purpose}"
    return FormatError(message, where=where, expected=known)


def look_of(head: str, first: str = "") -> Look | None:
    """Return the likely format of a text that begins like this; formats of the role `first` are tried first.

    >>> look_of('"JOB_FINISH" "10.1" 1700000000 77').what
    'LSF accounting (lsb.acct)'
    >>> look_of("hello") is None
    True
    """
    known = sorted(_LOOKS, key=lambda entry: entry[0].role != first) if first else list(_LOOKS)
    found = next((look for look, pattern in known if pattern.search(head)), None)
    return found or next((look for test in _TESTS if (look := test(head)) is not None), None)


def _json(*keys: str) -> str:
    """Match a JSON text in which each of these keys occurs."""
    return r"(?s)\A\s*[{\[]" + "".join(rf'(?=.*"{key}"\s*:)' for key in keys)


SCONTROL, SLURM_CONF, FLUX_CONFIG = "the output of scontrol", "slurm.conf", "a Flux configuration (TOML)"
FLUX_LIST, FLUX_STATUS = "the output of flux resource list", "the output of flux resource status"
PBSNODES, QMGR = "the output of pbsnodes", "the output of qmgr (print server)"
HWLOC, PLATFORM = "hwloc XML", "a SimGrid platform"
SACCTMGR, SACCTMGR_DUMP = "the output of sacctmgr show", "the output of sacctmgr dump"
FLUX_ACCOUNTING = "a table of flux-accounting"

_COLUMNS = r"(?m)\A[ \t]*(?:[A-Z]+[ \t]+)*STATE\b(?=[^\n]*[ \t]NNODES\b)"
_MACHINES: tuple[tuple[str, str], ...] = (
    (SCONTROL, r"(?s)\A\s*NodeName=\S+\s(?=.{0,2000}?\bCPUAlloc=)"),
    (SCONTROL, r"(?s)\A\s*PartitionName=\S+\s(?=.{0,4000}?\bTotalCPUs=)"),
    (SCONTROL, r"\A\s*ReservationName=\S+\s+StartTime="),
    (FLUX_CONFIG, r"(?m)^[ \t]*\[\[?[ \t]*(?:resource|queues|policy|tbon|sched-fluxion-\w+)\b[\w.\" -]*\]"),
    (FLUX_LIST, _COLUMNS + r"(?=[^\n]*[ \t](?:NCORES|LIST)\b)"),
    (FLUX_STATUS, _COLUMNS),
    (
        SACCTMGR,
        (
            r"(?i)\A\s*(?=[^\n]*\|)(?=[^\n]*\b(?:Name|Account)\b)[^\n]*"
            r"\b(?:GrpTRES|GrpJobs|UsageFactor|GraceTime|Preempt\w*|(?<=Name\|)Priority|Max(?:TRES|Jobs|Wall)\w*)\b"
        ),
    ),
    (SACCTMGR_DUMP, r"(?m)^(?:Cluster|Parent|Account|User) - '"),
    (FLUX_ACCOUNTING, r"(?i)\A\s*(?=(?:[^\n]*,)?(?:username|queue),)[^\n]*\bmax_?(?:running|active)_?jobs\b"),
    (QMGR, r"(?m)^[ \t]*(?:create|set)[ \t]+(?:queue|server)\b"),
    (
        PBSNODES,
        r"(?m)^\S+[ \t\r]*\n(?:[ \t]+\w[^\n]*\n){0,9}?[ \t]+(?:state|ntype|np|pcpus|resources_\w+\.\w+) = ",
    ),
    (SLURM_CONF, r"(?mi)^[ \t]*(?:ClusterName|Slurmctld\w+|ControlMachine|\w+Name|Include)[ \t]*=[ \t]*\S"),
    (HWLOC, r"<!DOCTYPE topology|<topology\b|<object type=\"Machine\""),
    (PLATFORM, r"<!DOCTYPE platform|<platform\b"),
)
"""Sites' own descriptions of machines and queues, by the beginning of a text."""


def machine_look(head: str) -> str:
    """Return the name of the kind of site file that a text begins like; empty if it is none.

    A recipe is none, although a text in it may look like one.

    >>> machine_look("ClusterName=x"), machine_look("groups: []")
    ('slurm.conf', '')
    """
    kinds = _XML if head.lstrip()[:1] == "<" else _COMPILED
    found = next((what for what, pattern in kinds if pattern.search(head)), "")
    return "" if found and kinds is _COMPILED and _RECIPE.search(head) else found


_RECIPE = re.compile(r"(?m)^groups[ \t]*:")
_COMPILED = tuple((what, re.compile(pattern)) for what, pattern in _MACHINES)
_XML = tuple(entry for entry in _COMPILED if entry[0] in (HWLOC, PLATFORM))

_SLURM_LISTS = r'(?s)\A\s*\{.*"(?:nodes|partitions|sinfo|reservations)"\s*:\s*[\[{]'

_LOOKS: tuple[tuple[Look, re.Pattern[str]], ...] = tuple(
    (Look(what, role), re.compile(pattern))
    for what, role, pattern in (
        ("R (RFC 20)", CLUSTER, _json("R_lite")),
        ("a resource graph (JGF)", CLUSTER, _json("graph") + '(?=.*"nodes")'),
        ("a cluster recipe", CLUSTER, r'(?m)^\s*\{?\s*"?groups"?\s*:'),
        ("GRUG", CLUSTER, r"<graphml\b"),
        ("an SWF trace", WORKLOAD, r"\A\s*;\s*\w+\s*:|\A\s*(?:-?\d+(?:\.\d+)?[ \t]+){17}-?\d"),
        ("jobs of Flux (flux jobs --json)", WORKLOAD, _json("t_submit")),
        ("a Batsim workload", WORKLOAD, _json("subtime")),
        ("squeue --json", WORKLOAD, _json("job_state")),
        ("sacct --json", WORKLOAD, _json("job_id", "association")),
        ("Slurm's nodes, partitions or reservations (--json)", CLUSTER, _SLURM_LISTS),
        ("SSS Job Objects", WORKLOAD, r"(?m)^\s*<(?:\w+:)?(?:Job|Jobs|JobGroup)\b"),
        ("sacct", WORKLOAD, r'(?i)\A[^\n]*\bjobid(?:raw)?"?[|,;\t^~@#][^\n]*\bsubmit\b'),
        ("a PBS accounting log", WORKLOAD, r"\A\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];"),
        ("a list of jobs (jobs.yaml)", WORKLOAD, r'(?m)(?:^\s*[-{]?|[{,])\s*"?(?:shape|jobs|jobspec)"?\s*:'),
        ("a jobspec (RFC 14)", REQUEST, r'(?s)(?=.*"?resources"?\s*:)(?=.*"?tasks"?\s*:)'),
        ("a queue snapshot, which simsched forecast takes", "", r'kind"?\s*:\s*"?simsched queue'),
        ("LSF accounting (lsb.acct)", WORKLOAD, r'\A"[A-Z_]+" "\d+(?:\.\d+)*" \d{9,}'),
        ("SGE accounting", WORKLOAD, r"(?m)\A(?:#[^\n]*\n)*(?:[^:\n]*:){5}\d+:(?:[^:\n]*:){30}"),
        ("the output of scontrol show job", "", r"(?m)\A\s*JobId=\d+"),
        *((what, CLUSTER, pattern) for what, pattern in _MACHINES),
        ("squeue's table", "", r"\A\s*JOBID\b[^\n]*\b(?:PARTITION|ST|NODELIST)\b"),
        ("sinfo's table", "", r"\A\s*(?:PARTITION|NODELIST)\b[^\n]*\b(?:AVAIL|STATE|NODES)\b"),
    )
)  # fmt: skip


_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\b(?:COMPLETED|FAILED|TIMEOUT|CANCELLED)\b")


def _headless(head: str) -> Look | None:
    """Recognise a table with times or states of Slurm and without a header."""
    line = head.lstrip().partition("\n")[0]
    if "|" in line and _STAMP.search(line):
        advice = "name its columns with --columns JobIDRaw,Submit,…"
        return Look("a Slurm dump without its header line", advice=advice)
    return None


_COLUMN = re.compile(r"[A-Za-z_][\w .()/-]*")


def table_columns(head: str) -> tuple[list[str], str]:
    r"""Return the columns that the beginning of a table shows, and its form (``csv`` or ``json``).

    The columns of JSON are the keys of its first object.  Without a table the list is empty.

    >>> table_columns("a,b,c\n1,2,3"), table_columns('[{"id": 1, "at": {"x": 2}}, {"i')
    ((['a', 'b', 'c'], 'csv'), (['id', 'at'], 'json'))
    """
    if head.lstrip()[:1] in {"{", "["}:
        return _first_keys(head), "json"
    lines = [line for line in head.splitlines() if line.strip()][:2]
    for mark in (",", "\t", ";", "|"):
        if len(lines) == 2 and lines[0].count(mark) >= 2 and lines[1].count(mark) >= 2:
            columns = [cell.strip(' "') for cell in lines[0].split(mark)]
            if all(_COLUMN.fullmatch(cell) for cell in columns):
                return columns, "csv"
    return [], "csv"


def _first_keys(head: str) -> list[str]:
    """Return the keys of the first object of a JSON text."""
    from json import JSONDecodeError, JSONDecoder

    begin = head.find("{")
    try:
        found, _ = JSONDecoder().raw_decode(head, max(begin, 0))
    except (JSONDecodeError, RecursionError):
        return []
    return list(found) if isinstance(found, dict) else []


def _table(head: str) -> Look | None:
    """Recognise a table: at least three names, and the same number of cells in the second line."""
    lines = [line for line in head.splitlines() if line.strip()][:2]
    for mark, name in ((",", "CSV"), ("\t", "a table with tabs"), (";", "CSV"), ("|", "a table")):
        if len(lines) == 2 and lines[0].count(mark) == lines[1].count(mark) >= 2:
            columns = [cell.strip(' "') for cell in lines[0].split(mark)]
            if all(_COLUMN.fullmatch(cell) for cell in columns):
                advice = "map its columns with --columns (simsched workload columns FILE proposes a map)"
                return Look(f"{name} with the columns {clip(', '.join(columns), 120)}", advice=advice)
    return None


_TESTS: tuple[Callable[[str], Look | None], ...] = (_headless, _table)


# -- the form of a text --------------------------------------------------------------


def detect_kind(text: str) -> Kind:
    r"""Return the form of a text, recognised by its beginning.

    ``json`` is one document, ``jsonl`` one object per line, ``text`` anything
    else (an SWF trace, a shape, a table).

    >>> detect_kind('{"a": 1}\n{"a": 2}'), detect_kind("a: 1"), detect_kind("; Version: 2.2\n1 0 3")
    ('jsonl', 'yaml', 'text')
    """
    head = text[:65536].lstrip("\ufeff \t\r\n")
    if head[:1] == "<":
        return "xml"
    if head[:1] in ("{", "["):
        first, _, rest = head.partition("\n")
        several = rest.lstrip()[:1] == "{" and first.rstrip()[-1:] == "}" and head[0] == "{"
        return "jsonl" if several else "json"
    for line in head.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return "yaml" if _YAML_START.match(line.strip()) else "text"
    return "text"


def looks_like_shapes(text: str) -> bool:
    """Whether the first line (but blank ones and comments) begins like a shape, not like JSON or YAML.

    >>> looks_like_shapes("[core;gpu]"), looks_like_shapes("node{unit: GB}"), looks_like_shapes("a: 1")
    (True, True, False)
    """
    for line in text[:100_000].splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return _SHAPE.match(line.strip()) is not None
    return False


def read_shapes(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield (shape, place) of a text of one shape per line; blank lines and # lines are ignored."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip(), f"{where}:{number}"


def is_xml(text: str) -> bool:
    """Whether a text is XML; a request in XML is a document of Job Objects.

    >>> is_xml("  <Job/>"), is_xml("core=4")
    (True, False)
    """
    return text[:100].lstrip("\ufeff \t\r\n").startswith("<")
