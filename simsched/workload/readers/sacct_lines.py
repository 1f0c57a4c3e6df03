"""The lines of a Slurm dump as records: its columns, its delimiter, and lines that do not fit.

Slurm does not quote.  The name, comment or feature expression of a job may contain the delimiter, and some
of them line breaks.  Such a record has too many cells, or extends over several lines.  It is joined if
this gives every other column a value of its kind.  If there are several ways to join it, the way
whose user, account, group and partition occur in other records is taken, if it is the only one.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, islice, pairwise
from math import comb
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from simsched.errors import WorkloadError
from simsched.workload.readers.slurm_values import NO_LIMIT, RESULTS, UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

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

    def has(self, field_: str) -> bool:
        """Whether the dump has a column of ours."""
        return self.places[list(COLUMNS).index(field_)] < self.width

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


Found: TypeAlias = "tuple[int, list[str] | None, str]"
"""Line number, cells with an empty one behind the last column (None: they do not fit), and text."""


@dataclass(slots=True)
class Odd:
    """Lines whose number of cells differs from the header; `mended` counts those that became records."""

    layout: LineLayout
    pick: Callable[[Sequence[str]], tuple[str, ...]] = field(init=False)
    held: list[tuple[int, str]] = field(default_factory=list)
    unsure: list[tuple[int, str]] = field(default_factory=list)
    mended: int = 0
    tries: int = 0

    def __post_init__(self) -> None:
        self.pick = itemgetter(*self.layout.places)

    def add(self, number: int, line: str) -> Iterator[Found]:
        """Take a line; yield the records that it completes."""
        if self.held and not self._begins(line):
            yield from self._continue(number, line)
            return
        yield from self._flush()
        ways = self._ways(line)
        if ways or not (self._is_short(line) or self._begins(line)):
            yield from self._settle(number, line, ways)
        else:
            self.held.append((number, line))

    def finish(self, known: Mapping[str, Set[str]]) -> Iterator[Found]:
        """Yield the records that are complete at the end of the dump.

        `known` are names that other records have (columns of ours → values): of several ways to put
        a record together the one with the most known names is taken, if there is one such.
        """
        yield from self._flush()
        places = [(list(COLUMNS).index(name), values) for name, values in known.items()]

        def score(cells: list[str]) -> int:
            row = self.pick(cells)
            return sum(row[place] in values for place, values in places)

        for number, text in self.unsure:
            ranked = sorted(self._ways(text), key=score, reverse=True)
            best = [cells for cells in ranked if score(cells) == score(ranked[0])]
            if len(self._distinct(best)) == 1:
                self.mended += 1
                yield number, best[0], text
            else:
                yield number, None, text

    def _flush(self) -> Iterator[Found]:
        """Yield the lines that wait for a continuation: none came."""
        for number, line in self.held:
            yield number, None, line
        self.held.clear()

    def _continue(self, number: int, line: str) -> Iterator[Found]:
        """Join a line to those before it."""
        text = "\n".join([*(part for _, part in self.held), line])
        ways = self._ways(text)
        if ways and self._is_sound(ways[0]):
            first = self.held[0][0]
            self.held.clear()
            yield from self._settle(first, text, ways)
        elif self._is_short(line) and len(self.held) < MOST_LINES:
            self.held.append((number, line))
        else:
            yield from self._flush()
            yield from self.add(number, line)

    def _settle(self, number: int, text: str, ways: list[list[str]]) -> Iterator[Found]:
        """Yield a record that can be read in one way, or in none; keep one with several for the end."""
        if len(self._distinct(ways)) > 1:
            self.unsure.append((number, text))
            return
        width = self.layout.width
        if ways and ("\n" in text or ways[0][:width] != self.layout.split(text)[:width]):
            self.mended += 1
        yield number, ways[0] if ways else None, text

    def _distinct(self, ways: list[list[str]]) -> set[tuple[str, ...]]:
        """Return the rows that differ in more than the name of the job and its command line."""
        rows = map(self.pick, ways)
        return {row[:_NAME_AT] + row[_NAME_AT + 1 : -1] for row in rows}

    def _is_short(self, text: str) -> bool:
        return len(self.layout.split(text)) < self.layout.width

    def _ways(self, text: str) -> list[list[str]]:
        """Return the cells of a record in each way that it can be read."""
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
            made = [self.layout.delimiter.join(islice(pieces, size)) for size in sizes]
            if self._is_sound([*made, ""]):
                found.append([*made, ""])
        return found

    def _is_sound(self, cells: list[str]) -> bool:
        """Whether every column of ours has a value of its kind, and there is an id."""
        row = self.pick(cells)
        return all(pattern.fullmatch(cell) for pattern, cell in zip(_PATTERNS, row, strict=True))

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


_NAME_AT = list(COLUMNS).index("name")
