"""Slurm's jobs: the accounting as text (``sacct -P``) and JSON, the queue as JSON and text.

Text of accounting has a header line, then one job or step per line, separated by ``|``.  Needed are a job id
(``JobIDRaw`` or ``JobID``), ``Submit``, processors (``ReqCPUS``, ``NCPUS``, ``AllocCPUS``,
``ReqTRES`` or ``AllocTRES``), and the run time (``ElapsedRaw``, ``Elapsed``, or ``Start`` and
``End``).  The other columns of `COLUMNS` are used if they are present.  An ``Eligible`` after
``Submit``, for example, is a begin-time dependency.  A suitable command::

    sacct -a -X -P --noconvert -S 2024-01-01 -o JobIDRaw,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,
        ReqNodes,ReqCPUS,ReqTRES,ReqMem,Constraints,Partition,Account,User,JobName,State,NodeList

Times without a zone are times of one clock: that of ``--time-zone``, or UTC.  Times with an offset
(``+0100``) are converted to UTC.  A mixture is refused.  Steps (``12.batch``) are counted and ignored.
Parts of a heterogeneous job (``12+0``, ``12+1`` in ``JobID``) become one job.  ``JobID`` names the tasks of
job arrays (``12_3``); how many of them may run at a time is in the tasks that had not started
(``12_[4-9%2]``) or in ``SubmitLine``.

Slurm does not quote.  The name, comment or feature expression of a job may contain the delimiter, and some
of them line breaks.  Such a record has too many cells, or extends over several lines.  It is joined if
this gives every other column a value of its kind.  If there are several ways to join it, the way
whose user, account, group and partition occur in other records is taken, if it is the only one.

JSON (``sacct --json``, ``squeue --json``) is decoded with msgspec.  Its numbers come in three generations:
plain, null, and ``{"set": …, "infinite": …, "number": …}``; the state is a text or a list of texts.  Limits
are minutes, memory is MB.  The text of ``scontrol show job``, also ``--oneliner``, is read as the jobs of
``squeue --json``.  Its times are local times without an offset: those of ``--time-zone``, or UTC.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import combinations_with_replacement, islice, pairwise
from math import comb
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from simsched.errors import FormatError, WorkloadError
from simsched.formats.rfc.clock import zone_of
from simsched.formats.rfc.duration import whole
from simsched.workload.job import ArrayTask, Workload, limit_of_line
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather, eligible_at, hosts_of, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec

T = TypeVar("T")


# -- notations: times, TRES, memory, states ------------------------------------------------------

_CLOCK = re.compile(r"(?:(\d{1,7})-)?(?:(\d{1,7}):)?(\d{1,7}):(\d{1,2})(?:\.\d+)?")
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)([KMGTP]?)([cn]?)")
_KILO = {"K": 1, "": 1024, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}
_ENERGY = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)([KMGT]?)")
MOST_ENERGY = 2**53
"""Larger numbers are the codes that Slurm has for an unknown value."""
NO_LIMIT = frozenset(("", "UNLIMITED", "Partition_Limit", "INVALID", "None", "Unknown"))

#: Slurm's base states and the results they mean; jobs in other states never ended.
RESULTS = {
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "NODE_FAIL": "FAILED",
    "BOOT_FAIL": "FAILED",
    "LAUNCH_FAILED": "FAILED",
    "OUT_OF_MEMORY": "FAILED",
    "PREEMPTED": "CANCELED",
    "REVOKED": "CANCELED",
    "CANCELLED": "CANCELED",
    "DEADLINE": "TIMEOUT",
    "TIMEOUT": "TIMEOUT",
}
UNFINISHED = frozenset(
    ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED")
)


def result_of(state: str, unknown: dict[str, int]) -> str | None:
    """Return the result that a base state means; a state that Slurm does not have is counted in `unknown`."""
    found = RESULTS.get(state)
    if found is None and state:
        unknown[state] = unknown.get(state, 0) + 1
    return found


def joules(text: str) -> int | None:
    """Return an energy in whole J, which sacct shortens by powers of 1000; None where none was measured.

    >>> joules("4500"), joules("1.25M"), joules("0"), joules("")
    (4500, 1250000, None, None)
    """
    match = _ENERGY.fullmatch(text)
    amount = round(float(match[1]) * 1000 ** " KMGT".index(match[2] or " ")) if match else 0
    return amount if 0 < amount < MOST_ENERGY else None


def clock(text: str) -> int | None:
    """Return the seconds of ``[D-]HH:MM:SS`` or ``MM:SS``; None for any other text.

    >>> clock("1-02:03:04"), clock("10:30"), clock("UNLIMITED")
    (93784, 630, None)
    """
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def clock_or_seconds(text: str) -> int | None:
    """Return the seconds of a limit of PBS and Grid Engine; None if it states none, or 0.

    >>> clock_or_seconds("02:00:00"), clock_or_seconds("600"), clock_or_seconds("")
    (7200, 600, None)
    """
    return clock(text) or (int(text) if text.isdecimal() and len(text) < 12 else 0) or None


def tres(text: str) -> dict[str, str]:
    """Return the parts of a TRES list.

    >>> tres("billing=4,cpu=4,gres/gpu=2,mem=16G,node=1")["gres/gpu"]
    '2'
    """
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def gpus_of(parts: dict[str, str]) -> tuple[int | None, str | None]:
    """Return the gpus in a TRES list, ``gres/gpu``, else the sum of its types; and their type if it is one.

    >>> gpus_of({"gres/gpu:a100": "2", "gres/gpu:v100": "1"}), gpus_of({"gres/gpu": "2", "cpu": "4"})
    ((3, None), (2, None))
    """
    typed = {
        key.removeprefix("gres/gpu:"): value for key, value in parts.items() if key.startswith("gres/gpu:")
    }
    types = [kind for kind, value in typed.items() if value]
    number = whole_number(parts.get("gres/gpu", ""))
    if number is None:
        number = sum(whole_number(value) or 0 for value in typed.values()) or None
    return number, types[0] if len(types) == 1 else None


def gpus_of_gres(text: str) -> tuple[int, str | None]:
    """Return the gpus of a list of generic resources, and their type if there is one; ``gpu`` alone is one.

    In a job's request the count is per node, in its allocation it is the sum over its nodes.

    >>> gpus_of_gres("gpu:2"), gpus_of_gres("gres/gpu:a100:4(S:0-1),nic:1"), gpus_of_gres("gpu:tesla,nvme:2")
    ((2, None), (4, 'a100'), (1, 'tesla'))
    """
    from simsched.formats.machines.slurm.notation import comma_parts, gres_of

    entries = []
    for part in comma_parts(re.sub("gres[/:]", "", text).replace("=", ":")):
        with suppress(FormatError):  # another one may be of a form of its own
            entries += gres_of(part)
    gpus = [entry for entry in entries if entry.name == "gpu" and entry.count < 10**9]
    types = [entry.type for entry in gpus if entry.type]
    return sum(entry.count for entry in gpus), types[0] if len(types) == 1 else None


def kilobytes(text: str) -> tuple[int, str] | None:
    """Return (KB, per) of a memory size; `per` is ``c`` for a cpu, ``n`` for a node, or empty.

    >>> kilobytes("16Gn"), kilobytes("4000Mc"), kilobytes("0")
    ((16777216, 'n'), (4096000, 'c'), None)
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        return None
    size = round(float(match.group(1)) * _KILO[match.group(2)])
    return (size, match.group(3)) if size else None


def whole_number(text: str) -> int | None:
    """Return a plain whole number, else None (``2.5K`` is none: it was rounded)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def requested(
    req_cpus: str = "",
    alloc_cpus: str = "",
    req_nodes: str = "",
    alloc_nodes: str = "",
    req_tres: str = "",
    alloc_tres: str = "",
    req_mem: str = "",
    alloc_gres: str = "",
    req_gres: str = "",
    more_gpus: str = "",
) -> Flat:
    """Return the flat counts of a record with these cells: the requested ones, else the allocated ones."""
    wanted, given = tres(req_tres), tres(alloc_tres)
    procs = _first(req_cpus, wanted.get("cpu"), alloc_cpus, given.get("cpu"))
    nodes = _first(req_nodes, wanted.get("node"), alloc_nodes, given.get("node"))
    (counted, type_), (spent, spent_type) = gpus_of(wanted), gpus_of(given)
    (asked, asked_type), (held, held_type) = gpus_of_gres(req_gres), gpus_of_gres(alloc_gres)
    gpus: int | None = counted or spent or held or asked * (nodes or 1) or whole_number(more_gpus) or None
    kind = type_ or asked_type
    if not kind and not counted and not req_gres:
        kind = spent_type or held_type
    size, memory = kilobytes(req_mem or wanted.get("mem") or given.get("mem") or ""), None
    if size is not None and procs:  # rounded up; without a suffix the size is the job's
        copies = {"c": procs, "n": nodes or 1}.get(size[1], 1)
        memory = -(-size[0] * copies // procs)
    return Flat(procs=procs, nodes=nodes, gpus=gpus, gpu_type=kind if gpus else None, memory=memory)


def _first(*texts: str | None) -> int | None:
    """Return the first count of nodes or processors above 0; Slurm shortens one if nothing is lost.

    >>> _first("", "16K", "512"), _first("2.5K", None)
    (16384, None)
    """
    for text in filter(None, texts):
        power = max(" KM".find(text[-1]), 0)
        if number := whole_number(text[:-1] if power else text):
            return number << 10 * power
    return None


# -- sacct -P ------------------------------------------------------------------------------------

#: Value → the columns that may hold it, best first.
COLUMNS = {
    "id": ("JobIDRaw", "JobID"), "submit": ("Submit",), "eligible": ("Eligible",), "start": ("Start",),
    "end": ("End",), "elapsed_raw": ("ElapsedRaw",), "elapsed": ("Elapsed",),
    "limit_raw": ("TimelimitRaw",), "limit": ("Timelimit",),
    "req_cpus": ("ReqCPUS",), "alloc_cpus": ("NCPUS", "AllocCPUS"), "req_nodes": ("ReqNodes",),
    "alloc_nodes": ("NNodes", "AllocNodes"), "req_tres": ("ReqTRES",), "alloc_tres": ("AllocTRES",),
    "req_mem": ("ReqMem",), "alloc_gres": ("AllocGRES",), "req_gres": ("ReqGRES",), "gpus": ("NGPUS",),
    "features": ("Constraints",), "partition": ("Partition",),
    "account": ("Account",), "user": ("User",), "group": ("Group",), "name": ("JobName",),
    "state": ("State",), "energy": ("ConsumedEnergyRaw", "ConsumedEnergy"), "nodelist": ("NodeList",),
    "qos": ("QOS",), "licenses": ("Licenses",), "reservation": ("Reservation",), "job": ("JobID",),
    "line": ("SubmitLine",),
}  # fmt: skip
_NEEDED = {
    "JobIDRaw": "id",
    "Submit": "submit",
    "ReqCPUS, NCPUS, ReqTRES or AllocTRES": "req_cpus alloc_cpus req_tres alloc_tres",
    "ElapsedRaw, Elapsed, or Start and End": "elapsed_raw elapsed start+end",
}
"""Name of something that a dump must have → the columns of ours that give it."""
NO_TIME = frozenset(("", "0", "Unknown", "None", "N/A", "INVALID", "NONE"))

#: Columns, in lower case, whose text may hold anything.
_FREE = frozenset(
    ("jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "constraints", "stdin",
     "stdout", "stderr", "extra", "reason", "container", "licenses", "wckey")
)  # fmt: skip
_KNOWN = frozenset(("jobname", "exitcode", *(name.lower() for names in COLUMNS.values() for name in names)))
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_TRES_PART = re.compile(r"([a-z][\w/:.-]*)=[\w.]+")
QUOTING = frozenset(",;\t")
"""Delimiters of files that may quote their cells."""

MOST_LINES = 50
"""The most lines that one record may be spread over."""
MOST_WAYS = 2000
MOST_TRIES = 1_000_000
"""How many ways to put a record together are tried: for one record, and for all of a dump."""


def delimiter_of(head: str) -> str | None:
    r"""Return the delimiter of a header line; None for any other line.

    >>> delimiter_of("JobID|Submit|State"), delimiter_of('"JobIDRaw","Submit"'), delimiter_of("4|ann|x")
    ('|', ',', None)
    """
    bare = head.replace('"', "").strip()
    names = list(_NAME.finditer(bare))
    lower = {found.group().lower() for found in names}
    if lower.isdisjoint(("jobid", "jobidraw")) or len(lower & _KNOWN) < 2:
        return None
    gaps = Counter(bare[a.end() : b.start()] for a, b in pairwise(names))
    gap = gaps.most_common(1)[0][0]
    return gap if gap.strip(" ") or (gap and "state" in lower) else None  # squeue's table has ST


@dataclass(frozen=True, slots=True)
class LineLayout:
    """The layout of a line: the delimiter, the number of columns, and the place of each column we read.

    A missing column is looked up behind the last one, where the reader puts an empty cell.
    `is_closed`: lines end with the delimiter, as ``sacct -p`` writes them.
    """

    delimiter: str
    is_closed: bool
    width: int
    places: tuple[int, ...]
    free: tuple[int, ...]

    @classmethod
    def of_header(cls, head: str, source: str, delimiter: str | None = None) -> LineLayout:
        """Read the header line; WorkloadError names every needed column that it lacks."""
        found = delimiter or delimiter_of(head) or "|"
        if not found.strip(" "):
            raise WorkloadError(
                "this is what sacct prints for people, with values cut short",
                where=f"{source}:1",
                expected="the output of sacct -P",
            )
        line = head.rstrip(" \r\n")
        names = [name.strip(' "') for name in line.removesuffix(found).split(found)]
        return cls._of(names, found, f"{source}:1", "the header of sacct -P", is_closed=line.endswith(found))

    @classmethod
    def of_columns(cls, columns: str, first: str, source: str, delimiter: str | None = None) -> LineLayout:
        """Return the layout of a dump without a header: its columns are named as ``sacct -o`` names them."""
        names = [name.partition("%")[0].strip() for name in re.split(r"[,|]", columns)]
        counts = {mark: len(first.split(mark)) for mark in "|,;\t^@~#"}
        fitting = [mark for mark, cells in counts.items() if cells in (len(names), len(names) + 1)]
        found = delimiter or (fitting or ["|"])[0]
        closed = first.endswith(found) and len(first.split(found)) == len(names) + 1
        return cls._of(names, found, source, "columns as sacct -o names them", is_closed=closed)

    @classmethod
    def _of(
        cls, names: list[str], delimiter: str, where: str, expected: str, *, is_closed: bool
    ) -> LineLayout:
        lower = [name.lower() for name in names]
        places: dict[str, int] = {}
        for field_, wanted in COLUMNS.items():
            found = [lower.index(name.lower()) for name in wanted if name.lower() in lower]
            places[field_] = found[0] if found else len(lower)
        there = {name for name, place in places.items() if place < len(lower)}
        missing = [
            text
            for text, ways in _NEEDED.items()
            if not any(there.issuperset(way.split("+")) for way in ways.split())
        ]
        if missing:
            raise WorkloadError("columns are missing: " + "; ".join(missing), where=where, expected=expected)
        free = tuple(place for place, name in enumerate(lower) if name in _FREE)
        return cls(delimiter, is_closed, len(lower), tuple(places.values()), free)

    def is_header(self, line: str) -> bool:
        """Whether a line names columns where it should have a job id."""
        cells = self.split(line)
        place = self.places[0]
        return len(cells) > place and cells[place].strip().lower() in {"jobid", "jobidraw"}

    def split(self, line: str) -> list[str]:
        """Return the cells of a line; where commas are between them, mind quotes and lists of resources."""
        if self.delimiter not in QUOTING:
            return line.split(self.delimiter)
        if '"' in line:
            with suppress(csv.Error):  # a cell of more than 128 KB, a NUL
                return next(csv.reader([line], delimiter=self.delimiter), [])
        cells = line.split(self.delimiter)
        return _with_lists(cells) if self.delimiter == "," and len(cells) > self.width + 1 else cells


def _with_lists(cells: list[str]) -> list[str]:
    """Put lists such as ``cpu=4,mem=8G`` together again; a key that is repeated begins the next list."""
    made: list[str] = []
    keys: set[str] = set()
    for cell in cells:
        part = _TRES_PART.fullmatch(cell)
        key = part.group(1) if part else ""
        if part and keys and key not in keys:
            made[-1] = f"{made[-1]},{cell}"
            keys.add(key)
        else:
            made.append(cell)
            keys = {key} if part else set()
    return made


_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|\d{1,11}|" + "|".join(map(re.escape, sorted(NO_TIME)))
_STATES = "|".join(sorted((*RESULTS, *UNFINISHED)))
_KINDS = {
    r"\d+(?:[_+.\[].*)?": "id",
    _TIME: "submit eligible start end",
    r"[\d:.-]*|" + "|".join(sorted(NO_LIMIT)): "elapsed_raw elapsed limit_raw limit",
    r"[\d.]*[KMG]?": "req_cpus alloc_cpus req_nodes alloc_nodes gpus",
    r"(?:[a-z][\w/:.-]*=[^|\n]*)?": "req_tres alloc_tres",
    r"(?:[\d.]+[KMGTP]?[cn]?)?": "req_mem",
    r"\S*": "alloc_gres req_gres partition user qos",
    r"(?s:.*)": "features name line",
    r"[^\n]*": "account group licenses reservation",
    rf"(?:(?:{_STATES})(?: .*|\+)?)?": "state",
    r"[\d.]*[KMGT]?": "energy",
    r"None assigned|\S*": "nodelist",
    r"(?:\d+(?:[_+.\[].*)?)?": "job",
}
"""How the values of our columns look."""
_LOOKS = {name: re.compile(pattern) for pattern, names in _KINDS.items() for name in names.split()}
_PATTERNS = tuple(_LOOKS[name] for name in COLUMNS)
_START_AT, _NAME_AT = map(list(COLUMNS).index, ("start", "name"))
_KNOWN_FROM = {name: name for name in ("partition", "user", "group", "nodelist")} | {"account": "bank"}
"""Column of ours whose values in other records are known → field of a job."""


STEP = "a step, not a job"
BAD_COLUMNS = "number of columns differs from the header"


def read_sacct(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read the text of ``sacct -P``.

    Raises
    ------
    WorkloadError
        When needed columns are missing (it names them), when zones are mixed, or at the
        first ignored record under `strict`.
    """
    reading = reading or ReadOptions(source="sacct")
    numbered = enumerate(lines, 1)
    first, head = next(((at, line) for at, line in numbered if line and not line.isspace()), (0, ""))
    if reading.columns:
        layout = LineLayout.of_columns(reading.columns, head, reading.source, reading.delimiter)
    else:
        layout = LineLayout.of_header(head, reading.source, reading.delimiter)
    reader = _Reader(Gather(reading, "sacct"), layout)
    if reading.columns and head and not layout.is_header(head):
        reader.line(first, head)
    read, limited = reader.line, reading.limit is not None
    for number, line in numbered:
        if limited and reader.gather.full:
            break
        if line and not line.isspace():
            read(number, line)
    return reader.finish()


class _Reader:
    """One pass over the lines; requests, limits and texts that occur again are looked up.

    Lines whose number of cells differs from the header are *odd*: `held` are those that wait for their
    continuation, `unsure` the records that can be read in several ways, until names in others decide, and
    `mended` is the number of odd lines that became records.
    """

    def __init__(self, gather: Gather, layout: LineLayout) -> None:
        self.gather, self.layout = gather, layout
        self.clock = TimeReader(gather.reading.source, gather.reading.time_zone)
        self.steps = self.mended = self.tries = 0
        self.held: list[tuple[int, str]] = []
        self.unsure: list[tuple[int, str]] = []
        self.pick: Callable[[Sequence[str]], tuple[str, ...]] = itemgetter(*layout.places)
        plain = layout.delimiter not in QUOTING and not layout.is_closed and layout.places[0] < 2
        self.mark = layout.delimiter if plain else ""
        self.cells = layout.width + layout.is_closed
        self.has_start = layout.places[_START_AT] < layout.width
        self.request, self.limit = cache(self._request), cache(_limit)
        self.named, self.hosts = cache(lambda text: intern(text) or None), cache(hosts_of)

    def line(self, number: int, line: str) -> None:
        """Read one line into a row, a skip, or the count of steps."""
        if self.mark and not self.held:  # most lines are steps, whose other cells are not needed
            begin = line.find(self.mark) + 1 if self.layout.places[0] else 0
            is_step = "." in line[begin : line.find(self.mark, begin)]
            if is_step and line.count(self.mark) == self.cells - 1:
                self.steps += 1
                return
        cells = line.split(self.mark) if self.mark else self.layout.split(line)
        if len(cells) != self.cells or self.held or (self.layout.is_closed and cells[-1]):
            self._odd(number, line)
        else:
            self._job(number, [*cells, ""], line)

    # -- odd lines ---------------------------------------------------------------------

    def _odd(self, number: int, line: str) -> None:
        """Take a line that is no record of its own, or that follows such lines."""
        if self.held and not self._begins(line):
            self._continue(number, line)
            return
        self._flush()
        ways = self._ways(line)
        if ways or not (self._is_short(line) or self._begins(line)):
            self._settle(number, line, ways)
        else:
            self.held.append((number, line))

    def _flush(self) -> None:
        """Ignore the lines that wait for a continuation: none came."""
        for number, line in self.held:
            self.gather.skip(number, BAD_COLUMNS, line)
        self.held.clear()

    def _continue(self, number: int, line: str) -> None:
        """Join a line to those before it."""
        text = "\n".join([*(part for _, part in self.held), line])
        ways = self._ways(text)
        if ways and self._is_sound(ways[0]):
            first = self.held[0][0]
            self.held.clear()
            self._settle(first, text, ways)
        elif self._is_short(line) and len(self.held) < MOST_LINES:
            self.held.append((number, line))
        else:
            self._flush()
            self._odd(number, line)

    def _settle(self, number: int, text: str, ways: list[list[str]]) -> None:
        """Take a record that can be read in one way, or in none; keep one with several for the end."""
        width = self.layout.width
        if len(self._distinct(ways)) > 1:
            self.unsure.append((number, text))
        elif ways:
            self.mended += "\n" in text or ways[0][:width] != self.layout.split(text)[:width]
            self._job(number, ways[0], text)
        else:
            self.gather.skip(number, BAD_COLUMNS, text)

    def _settle_unsure(self) -> None:
        """Take the records that can be read in several ways: the one with the most names of other records."""
        known = [
            (list(COLUMNS).index(name), {getattr(job, own) or "" for job in self.gather.jobs})
            for name, own in _KNOWN_FROM.items()
            if self.unsure
        ]

        def score(cells: list[str]) -> int:
            row = self.pick(cells)
            return sum(row[place] in values for place, values in known)

        for number, text in self.unsure:
            ranked = sorted(self._ways(text), key=score, reverse=True)
            best = [cells for cells in ranked if score(cells) == score(ranked[0])]
            if len(self._distinct(best)) == 1:
                self.mended += 1
                self._job(number, best[0], text)
            else:
                self.gather.skip(number, BAD_COLUMNS, text)

    def _distinct(self, ways: list[list[str]]) -> set[tuple[str, ...]]:
        """Return the rows that differ in more than the name of the job and its command line."""
        rows = map(self.pick, ways)
        return {row[:_NAME_AT] + row[_NAME_AT + 1 : -1] for row in rows}

    def _is_short(self, text: str) -> bool:
        return len(self.layout.split(text)) < self.layout.width

    def _ways(self, text: str) -> list[list[str]]:
        """Return the cells of a record, and an empty one, in each way that it can be read."""
        cells, width = self.layout.split(text), self.layout.width
        if len(cells) == width:
            return [[*cells, ""]]
        if len(cells) == width + 1 and not cells[-1] and (self.layout.is_closed or self._is_sound(cells)):
            return [cells]
        if self.layout.is_closed and not cells[-1]:
            cells = cells[:-1]
        extra, free = len(cells) - width, self.layout.free
        ways = comb(extra + len(free) - 1, extra) if free and 0 < extra < MOST_WAYS else 0
        if not 0 < ways <= MOST_WAYS or self.tries + ways > MOST_TRIES:
            return []
        self.tries += ways
        found = []
        for taken in combinations_with_replacement(free, extra):  # the pieces of each free column are joined
            pieces = iter(cells)
            sizes = (1 + taken.count(place) for place in range(width))
            made = [*(self.layout.delimiter.join(islice(pieces, size)) for size in sizes), ""]
            if self._is_sound(made):
                found.append(made)
        return found

    def _is_sound(self, cells: list[str]) -> bool:
        """Whether every column of ours has a value of its kind, and there is an id."""
        return all(map(re.Pattern.fullmatch, _PATTERNS, self.pick(cells)))

    def _begins(self, line: str) -> bool:
        """Whether a line is a record or begins one: the cells before the first free text are valid."""
        cells = self.layout.split(line)
        if len(cells) in (self.layout.width, self.layout.width + 1) and self._is_sound([*cells, ""]):
            return True
        end = min((*self.layout.free, len(cells)))
        known = zip(self.layout.places, _PATTERNS, strict=True)
        return self.layout.places[0] < end and all(
            pattern.fullmatch(cells[place]) for place, pattern in known if place < end
        )

    # -- records -----------------------------------------------------------------------

    def _job(self, number: int, cells: list[str], line: str) -> None:
        """Add the job of a record; `cells` has an empty one behind the last column."""
        (id_text, submit_text, eligible, start_text, end_text, elapsed_raw, elapsed, limit_raw, limit,
         *asked, partition, account, user, group, name, state, energy, nodelist, qos,
         licences, reservation, shown_id, command) = self.pick(cells)  # fmt: skip
        if "." in id_text:
            self.steps += 1
            return
        at, named = self.clock.read, self.named
        submit, start = at(submit_text, number), at(start_text, number)
        base = state.split(" ", 1)[0]
        id_: int | str = (
            int(id_text) if id_text.isascii() and id_text.isdigit() and len(id_text) < 19 else id_text
        )
        run: float | None = whole_number(elapsed_raw)
        if run is None:
            run = clock(elapsed)
        if run is None and start is not None and (end := at(end_text, number)) is not None:
            run = end - start
        if self.has_start:
            reason = unfinished(base, start, run)
        else:  # a job that took time has started, that time before its end
            ran = bool(run) or (run == 0 and base in {"", "COMPLETED"})
            reason = unfinished(base, 0 if ran else None, run)
            end = at(end_text, number)
            if ran and run is not None and end is not None and submit is not None and end - run >= submit:
                start = end - run
        task = self._task(shown_id, command) if "_" in shown_id else None
        if reason is not None:
            self.gather.skip(number, reason, line, id_)
            return
        flat, jobspec = self.request((*asked, partition))
        if licences or reservation:
            jobspec = self.gather.attributed(jobspec, _plain(licences), _plain(reservation))
        later = at(eligible, number) if eligible != submit_text else None
        queue = named(partition)
        self.gather.add(
            number, jobspec, id=id_, submit=submit, start=start, runtime=run,
            duration=self.limit(limit_raw, limit), user=named(user), group=named(group), queue=queue,
            bank=named(account), name=named(name), partition=queue, procs=flat.procs, nodes=flat.nodes,
            memory=flat.memory, status=RESULTS.get(base) or result_of(base, self.gather.unknown_states),
            dependencies=() if later is None else eligible_at(later, submit, start),
            energy=joules(energy) if energy else None, nodelist=self.hosts(nodelist), qos=named(qos),
            array_task=task, part=part_of(shown_id) if "+" in shown_id else None,
        )  # fmt: skip

    def _task(self, shown_id: str, command: str) -> ArrayTask | None:
        """Return a task of an array such as ``12_3``; None for ``12_[4-9%2]``.

        The limit of tasks at a time is in the tasks that had not started, or in the command line.
        """
        array, _, index = shown_id.partition("_")
        most = index.partition("%")[2].rstrip("]") if index.startswith("[") else ""
        if limit := whole_number(most) or limit_of_line(command):
            self.gather.array_limits[array] = limit
        if not (index.isascii() and index.isdigit() and len(index) < 8):
            return None
        self.gather.has_tasks = True
        return ArrayTask(intern(array), int(index))

    def _request(self, key: tuple[str, ...]) -> tuple[Flat, Jobspec | str]:
        """Return the counts and the request of a record's TRES, features and partition cells."""
        *asked, features, partition = key
        flat, named = requested(*asked), partition or None
        return flat, self.gather.request(flat, queue=named, partition=named, features=_plain(features))

    def finish(self) -> Workload:
        """Count the steps and the joined lines, and return the workload."""
        self._flush()
        self._settle_unsure()
        self.gather.skips.count(STEP, self.steps)
        if self.mended:
            self.gather.notes.append(
                f"records put together, because free text holds the delimiter or line breaks: {self.mended:,}"
            )
        return self.gather.finish()


def unfinished(state: str, start: float | None, run: float | None) -> str | None:
    """Return why a record in this state is not a job that ran, or None."""
    if state in UNFINISHED:
        return why.NEVER_STARTED if state == "PENDING" else why.RUNNING
    if start is None or run is None:
        return why.CANCELLED if state in {"CANCELLED", "REVOKED"} else why.NEVER_STARTED
    if run == 0 and state == "CANCELLED":
        return why.CANCELLED
    return None


def _limit(raw: str, text: str) -> int | None:
    """Return the limit in seconds: `raw` is minutes, `text` a clock; None for no limit."""
    minutes = whole_number(raw)
    return minutes * 60 if minutes is not None else clock(text)


def _plain(text: str) -> str:
    return "" if text in {"(null)", "None"} else text


_EPOCH = datetime(1970, 1, 1)


@cache
def _ahead(day: int, hour: int, zone: str) -> int:
    """Return the seconds by which a zone is ahead of UTC in an hour of a day."""
    at = datetime.fromordinal(day).replace(hour=hour, tzinfo=zone_of(zone))
    return int((at.utcoffset() or timedelta()).total_seconds())


class TimeReader:
    """Reads times as seconds after 1970; remembers whether they carry offsets, and refuses both.

    Times without an offset are local times of the `zone`; None: UTC.
    """

    def __init__(self, source: str, zone: str | None = None) -> None:
        self.source, self.zone = source, zone
        self.zones: dict[bool, str] = {}

    def read(self, text: str, where: str | int) -> float | None:
        """Return the seconds of ``2024-01-31T23:59:59`` (offset or not) or of an epoch; None for none."""
        if text in NO_TIME:
            return None
        if len(text) < 12 and text.isascii() and text.isdigit():
            self._zone(True, where)
            return int(text)
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            return None
        is_zoned = found.tzinfo is not None
        if is_zoned not in self.zones:
            self._zone(is_zoned, where)
        if is_zoned:
            return whole(found.timestamp())
        ahead = _ahead(found.toordinal(), found.hour, self.zone) if self.zone else 0
        after = found - _EPOCH
        return (after.total_seconds() if after.microseconds else after.days * 86400 + after.seconds) - ahead

    def _zone(self, zoned: bool, where: str | int) -> None:
        other = self.zones.get(not zoned)
        if other is not None:
            raise WorkloadError(
                f"mixed time zones: line {where if zoned else other} has an offset, "
                f"line {other if zoned else where} has none",
                where=self.source,
                expected="all times with an offset, or none",
            )
        self.zones.setdefault(zoned, str(where))


# -- the queue: scontrol show job, squeue --json ---------------------------------------------------

_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w/:.]*)=")
_TIMES = {
    "submit_time": "SubmitTime", "eligible_time": "EligibleTime", "start_time": "StartTime",
    "end_time": "EndTime",
}  # fmt: skip
_NUMBERS = {
    "job_id": "JobId", "cpus": "NumCPUs", "node_count": "NumNodes", "priority": "Priority",
    "array_job_id": "ArrayJobId", "array_max_tasks": "ArrayTaskThrottle", "het_job_id": "HetJobId",
    "het_job_offset": "HetJobOffset",
}  # fmt: skip
_TEXTS = {
    "tres_alloc_str": "AllocTRES", "tres_per_node": "TresPerNode", "partition": "Partition", "qos": "QOS",
    "account": "Account", "name": "JobName", "features": "Features", "nodes": "NodeList",
    "state_reason": "Reason", "dependency": "Dependency",
}  # fmt: skip
_SIZES = {"memory_per_cpu": "MinMemoryCPU", "memory_per_node": "MinMemoryNode"}
_NONE = frozenset(("", "(null)", "N/A", "None", "Unknown"))


def _records(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (line, values) of each record; of a key that occurs twice, the first counts."""
    line, values = "", dict[str, str]()
    for number, text_line in enumerate(text.split("\n"), 1):
        bare = text_line.strip()
        if not bare or bare.startswith("JobId="):
            if values:
                yield line, values
            line, values = str(number), {}
        if not values and not bare.startswith("JobId="):
            continue
        keys = list(_KEY.finditer(bare))
        ends = [*(key.start() for key in keys[1:]), len(bare)]
        for key, end in zip(keys, ends, strict=False):  # a line may have no key
            values.setdefault(key[1], bare[key.end() : end].strip())
    if values:
        yield line, values


def _job(values: dict[str, str], times: TimeReader, line: str) -> dict[str, Any]:
    """Return the values of a job by the keys of JSON; those that are not set are absent."""
    given = {key: value for key, value in values.items() if value not in _NONE}
    array, _, tasks = given.get("JobId", "").partition("_")
    if tasks.startswith("["):  # the tasks of an array that have not started, such as 14_[1-5%2]
        given = {"ArrayJobId": array, "ArrayTaskId": tasks} | given | {"JobId": array}
    found: dict[str, Any] = {name: times.read(given.get(key, ""), line) for name, key in _TIMES.items()}
    found |= {  # of a range, such as 2-4 nodes, the first
        name: whole_number(given.get(key, "").partition("-")[0]) for name, key in _NUMBERS.items()
    }
    sizes = {name: kilobytes(given.get(key, "")) for name, key in _SIZES.items()}
    found |= {name: None if size is None else size[0] / 1024 for name, size in sizes.items()}
    found |= {name: given[key] for name, key in _TEXTS.items() if key in given}
    limit = clock(given.get("TimeLimit", ""))
    task = given.get("ArrayTaskId", "")
    return found | {
        "job_state": given.get("JobState", ""),
        "time_limit": None if limit is None else limit / 60,
        "tres_req_str": given.get("ReqTRES") or given.get("TRES"),
        "user_name": given.get("UserId", "").partition("(")[0] or None,
        "group_name": given.get("GroupId", "").partition("(")[0] or None,
        "array_task_id": whole_number(task) if task.isdigit() else None,
        "array_task_string": None if task.isdigit() else task or None,
    }


WAITING = "still waiting when the queue was listed"
WRONG_TYPE = "a value that is not of its type"


class _Number(msgspec.Struct, frozen=True, gc=False):
    """A number that may be unset or infinite."""

    set: bool = True
    infinite: bool = False
    number: float = 0


class _Tres(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    name: str | None = ""
    count: int | None = 0


class _TresLists(msgspec.Struct, frozen=True):
    requested: list[_Tres] = []
    allocated: list[_Tres] = []


class _Time(msgspec.Struct, frozen=True, gc=False):
    submission: int | float | _Number | None = None
    eligible: int | float | _Number | None = None
    start: int | float | _Number | None = None
    end: int | float | _Number | None = None
    elapsed: int | float | _Number | None = None
    limit: int | float | _Number | None = None


class _State(msgspec.Struct, frozen=True):
    current: str | list[str] = ""


class _Required(msgspec.Struct, frozen=True, gc=False):
    CPUs: int | float | _Number | None = None
    memory_per_cpu: int | float | _Number | None = None
    memory_per_node: int | float | _Number | None = None


class _Association(msgspec.Struct, frozen=True, gc=False):
    user: str | None = None
    account: str | None = None
    partition: str | None = None


class _Het(msgspec.Struct, frozen=True, gc=False):
    """The heterogeneous job that a record is a part of; the id is 0 for other jobs."""

    job_id: int | _Number | None = None
    job_offset: int | _Number | None = None


class _ArrayRunning(msgspec.Struct, frozen=True, gc=False):
    tasks: int | _Number | None = None


class _ArrayMost(msgspec.Struct, frozen=True, gc=False):
    running: _ArrayRunning = _ArrayRunning()


class _ArrayLimits(msgspec.Struct, frozen=True, gc=False):
    max: _ArrayMost = _ArrayMost()


class _Array(msgspec.Struct, frozen=True, gc=False):
    """The job array that a record is a task of; the id is 0 for other jobs."""

    job_id: int | _Number | None = None
    limits: _ArrayLimits = _ArrayLimits()
    task_id: int | _Number | None = None


class _Job(msgspec.Struct, frozen=True):
    job_id: int | None = None
    time: _Time = _Time()
    state: _State | str | list[str] = ""
    tres: _TresLists = _TresLists()
    required: _Required = _Required()
    allocation_nodes: int | None = None
    association: _Association = _Association()
    account: str | None = None
    user: str | None = None
    group: str | None = None
    qos: str | None = None
    partition: str | None = None
    name: str | None = None
    constraints: str | None = None
    nodes: Any = None
    het: _Het | None = None
    array: _Array | None = None


class QueuedJob(msgspec.Struct, frozen=True):
    """One job of ``squeue --json``; times are seconds, the limit is minutes, memory is MB."""

    job_id: int | None = None
    job_state: str | list[str] = ""
    submit_time: int | float | _Number | None = None
    eligible_time: int | float | _Number | None = None
    start_time: int | float | _Number | None = None
    end_time: int | float | _Number | None = None
    time_limit: int | float | _Number | None = None
    cpus: int | float | _Number | None = None
    node_count: int | float | _Number | None = None
    memory_per_cpu: int | float | _Number | None = None
    memory_per_node: int | float | _Number | None = None
    tres_req_str: str | None = None
    tres_alloc_str: str | None = None
    tres_per_node: str | None = None
    partition: str | None = None
    user_name: str | None = None
    group_name: str | None = None
    qos: str | None = None
    account: str | None = None
    name: str | None = None
    features: str | None = None
    nodes: Any = None
    state_reason: Any = None
    dependency: Any = None
    priority: int | float | _Number | None = None
    het_job_id: int | _Number | None = None
    het_job_offset: int | _Number | None = None
    array_job_id: int | _Number | None = None
    array_task_id: int | _Number | None = None
    array_task_string: str | None = None
    array_max_tasks: int | _Number | None = None


class _Document(msgspec.Struct, Generic[T], frozen=True):
    """The document of ``sacct --json`` or ``squeue --json``."""

    jobs: list[T]


class _Updated(msgspec.Struct, frozen=True):
    """The part of the document that states when its jobs last changed."""

    last_update: int | float | _Number | None = None


def read_sacct_json(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read the document of ``sacct --json``.

    Raises
    ------
    FormatError
        When it is not JSON, or every job has a value of a type that no Slurm writes; such jobs are left
        out and counted.
    WorkloadError
        When no job has an id, or at the first ignored record under `strict`.
    """
    reading = reading or ReadOptions(source="sacct.json")
    jobs = _decoded(text, reading.source, _Job)
    if jobs and all(isinstance(job, _Job) and job.job_id is None for _, job in jobs):
        raise WorkloadError(
            "no job has a job_id", where=reading.source, expected="the document of sacct --json"
        )
    gather = Gather(reading, "sacct-json")
    for where, job in gather.good(jobs, WRONG_TYPE):
        time, of = job.time, job.association
        array, het = job.array or _Array(), job.het or _Het()
        state = job.state.current if isinstance(job.state, _State) else job.state
        found = QueuedJob(
            job.job_id, state, time.submission, time.eligible, time.start, time.end, time.limit,
            partition=job.partition or of.partition, user_name=of.user or job.user, group_name=job.group,
            qos=job.qos, account=job.account or of.account, name=job.name, features=job.constraints,
            nodes=job.nodes, het_job_id=het.job_id, het_job_offset=het.job_offset,
            array_job_id=array.job_id, array_task_id=array.task_id,
            array_max_tasks=array.limits.max.running.tasks,
        )  # fmt: skip
        used = [str(part.count) for part in job.tres.allocated if part.type == "energy"]
        flat = requested(
            req_cpus=_digits(job.required.CPUs),
            alloc_nodes=_digits(job.allocation_nodes),
            req_tres=_tres(job.tres.requested),
            alloc_tres=_tres([part for part in job.tres.allocated if part.type != "mem"]),
            req_mem=_memory(job.required),
        )
        _add(gather, where, found, flat, _value(time.elapsed), joules(used[-1]) if used else None)
    return gather.finish()


def _decoded(text: str, source: str, job: type[Any]) -> list[tuple[str, Any]]:
    """Return (place, job) of each job of a document; in place of one with a value of a wrong type, the error.

    Raises
    ------
    FormatError
        For a text that is not such a document, and where no job of it can be read.
    """
    from simsched.formats.text.json_text import decode_json_bulk

    document: Any = _Document
    found: list[Any] = []
    try:
        found += decode_json_bulk(text, source, kind=document[job]).jobs
    except FormatError as error:
        with suppress(FormatError):
            for one in decode_json_bulk(text, source, kind=document[msgspec.Raw]).jobs:
                try:
                    found.append(decode_json_bulk(bytes(one), source, kind=job))
                except FormatError as fault:
                    found.append(fault)
        if all(isinstance(one, FormatError) for one in found):
            raise error from None
    return [(f" jobs[{index}]", one) for index, one in enumerate(found)]


def _add(
    gather: Gather, where: str, job: QueuedJob, flat: Flat, run: float | None, energy: int | None = None
) -> None:
    """Add a job that has ended; ignore any other, with the reason."""
    state, start, submit = state_word(job.job_state), positive(job.start_time), positive(job.submit_time)
    reason = unfinished(state, start, run)
    if reason is None and job.job_id is None:
        reason = why.NO_ID
    if reason is not None:
        in_queue = gather.kind == "squeue-json" and state == "PENDING"
        gather.skip(where, WAITING if in_queue else reason, f"job {job.job_id}", job.job_id)
        return
    facts = facts_of(job)
    task = facts["array_task"]
    if task is not None:
        gather.has_tasks = True
        if task.limit is not None:
            gather.array_limits[task.array] = task.limit
    leader = positive(job.het_job_id)
    gather.take(
        where,
        flat,
        part=None if leader is None else (f"{leader:.0f}", int(_value(job.het_job_offset) or 0)),
        eligible=positive(job.eligible_time),
        features=job.features or "",
        id=job.job_id or 0,
        submit=submit,
        start=start,
        runtime=run,
        status=result_of(state, gather.unknown_states),
        energy=energy,
        nodelist=hosts_of(job.nodes) if isinstance(job.nodes, str) else None,
        **facts,
    )


def facts_of(job: QueuedJob) -> dict[str, Any]:
    """Return the fields of a `Job` that are in a record as they are; the queue is the first partition."""
    limit = positive(job.time_limit)
    return {
        "duration": None if limit is None else limit * 60,
        "user": job.user_name or None,
        "group": job.group_name or None,
        "queue": job.partition.split(",")[0] if job.partition else None,
        "bank": job.account or None,
        "name": job.name or None,
        "partition": job.partition or None,
        "qos": job.qos or None,
        "array_task": queued_task(job),
    }


def queued_task(job: QueuedJob) -> ArrayTask | None:
    """Return the job as a task of a job array; None for a job of none."""
    id_, number, limit = positive(job.array_job_id), _value(job.array_task_id), positive(job.array_max_tasks)
    if id_ is None or number is None or number < 0:
        return None
    return ArrayTask(f"{id_:.0f}", int(number), None if limit is None else int(limit))


def queued_jobs(
    text: str, source: str, zone: str | None = None
) -> tuple[list[tuple[str, QueuedJob | FormatError]], float | None]:
    """Return (place, job) of each job of a queue, JSON or the text of scontrol, and the time of the queue.

    In place of a job with a value of a wrong type, there is the error.  A text shows the time only if a job
    runs.  Raises `FormatError` for other texts.
    """
    from simsched.formats.machines.recognition import SCONTROL_JOBS, machine_parts
    from simsched.formats.text.json_text import decode_json_bulk

    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        jobs = _decoded(text, source, QueuedJob)
        return jobs, positive(decode_json_bulk(text, source, kind=_Updated).last_update)
    times, found, now = TimeReader(source, zone), list[tuple[str, QueuedJob | FormatError]](), 0.0
    for line, values in _records(machine_parts(text).get(SCONTROL_JOBS, "")):
        job = QueuedJob(**_job(values, times, line))
        found.append((line, job))
        ran, start = clock(values.get("RunTime", "")), positive(job.start_time)
        if job.job_state == "RUNNING" and ran is not None and start is not None:
            now = max(now, start + ran)
    if not found:
        raise FormatError("there is no job", where=source, expected="the output of scontrol show job")
    return found, now or None


def read_squeue_json(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read the document of ``squeue --json`` or ``scontrol show job --json``, or the text of the latter.

    It shows the queue, with the jobs that ended in the last minutes.  These are the workload; jobs
    that wait or run are left out and counted.

    Raises
    ------
    FormatError
        When it is not JSON, or every job has a value of a type that no Slurm writes; such jobs are left
        out and counted.
    WorkloadError
        At the first ignored record under `strict`.
    """
    reading = reading or ReadOptions(source="squeue.json")
    gather = Gather(reading, "squeue-json")
    active = 0
    jobs, _ = queued_jobs(text, reading.source, reading.time_zone)
    for place, job in gather.good(jobs, WRONG_TYPE):
        start, end = positive(job.start_time), positive(job.end_time)
        active += state_word(job.job_state) in UNFINISHED
        _add(gather, place, job, queued_flat(job), None if start is None or end is None else end - start)
    if active:
        gather.notes.append(
            f"{active:,} jobs of this queue wait or run; a workload is made of jobs that ended (sacct --json)"
        )
    return gather.finish()


def queued_flat(job: QueuedJob) -> Flat:
    """Return the requested value, else the allocated one."""
    return requested(
        alloc_cpus=_digits(job.cpus),
        alloc_nodes=_digits(job.node_count),
        req_tres=job.tres_req_str or "",
        alloc_tres=job.tres_alloc_str or "",
        req_mem=_memory(job),
        req_gres=job.tres_per_node or "",
    )


def _memory(job: QueuedJob | _Required) -> str:
    """Return the requested memory as sacct prints it; empty if the job's record does not state one."""
    per_cpu, per_node = positive(job.memory_per_cpu), positive(job.memory_per_node)
    return f"{per_cpu * 1024:.0f}Kc" if per_cpu else f"{per_node * 1024:.0f}Kn" if per_node else ""


def _tres(parts: list[_Tres]) -> str:
    """Return a list of TRES as sacct prints it."""
    names = [f"gres/{part.name}" if part.type == "gres" else part.type for part in parts]
    counts = [f"{part.count or 0}{'M' if part.type == 'mem' else ''}" for part in parts]
    return ",".join(map("{}={}".format, names, counts))


def _digits(number: float | _Number | None) -> str:
    found = positive(number)
    return "" if found is None else f"{found:.0f}"


def state_word(current: str | list[str]) -> str:
    """Return the base state of a text or list of states."""
    word = (current[0] if current else "") if isinstance(current, list) else current
    return word.split(" ", 1)[0].upper()


def _value(number: float | _Number | None) -> float | None:
    """Return the number; None where it is unset or infinite."""
    if isinstance(number, _Number):
        number = number.number if number.set and not number.infinite else None
    return int(number) if number is not None and float(number).is_integer() else number


def positive(number: float | _Number | None) -> float | None:
    """Return a number above 0; None where it is unset, infinite or 0."""
    found = _value(number)
    return found if found is not None and found > 0 else None
