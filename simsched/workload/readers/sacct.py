"""Slurm's accounting as text, ``sacct -P``.

It has a header line, then one job or step per line, separated by ``|``.  Needed are a job id
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
"""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import combinations_with_replacement, islice
from math import comb
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING

from simsched.errors import WorkloadError
from simsched.formats.machines.slurm.sacct_header import COLUMNS, delimiter_of
from simsched.formats.rfc.clock import zone_of
from simsched.formats.rfc.duration import whole
from simsched.workload.job import ArrayTask, Workload, limit_of_line
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather, eligible_at, hosts_of, part_of
from simsched.workload.readers.slurm_values import (
    NO_LIMIT,
    RESULTS,
    UNFINISHED,
    clock,
    joules,
    requested,
    result_of,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec


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
_TRES_PART = re.compile(r"([a-z][\w/:.-]*)=[\w.]+")
QUOTING = frozenset(",;\t")
"""Delimiters of files that may quote their cells."""

MOST_LINES = 50
"""The most lines that one record may be spread over."""
MOST_WAYS = 2000
MOST_TRIES = 1_000_000
"""How many ways to put a record together are tried: for one record, and for all of a dump."""


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
