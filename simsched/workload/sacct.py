"""Slurm's accounting as text, ``sacct -P``.

Text: pipe-separated with a header line, one job or step a line.  Needed are a job id
(``JobIDRaw`` or ``JobID``), ``Submit``, processors (``ReqCPUS``, ``NCPUS``, ``AllocCPUS``,
``ReqTRES`` or ``AllocTRES``), and the run time (``ElapsedRaw``, ``Elapsed``, or ``Start`` and
``End``).  Everything else that `COLUMNS` names is used where it is there: an ``Eligible``
after ``Submit`` is a begin-time dependency, for instance.  A good line::

    sacct -a -X -P --noconvert -S 2024-01-01 -o JobIDRaw,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,
        ReqNodes,ReqCPUS,ReqTRES,ReqMem,Constraints,Partition,Account,User,JobName,State

Times without a zone are taken as one clock; times with an offset (``+0100``) are moved to
UTC; a mixture is refused.  Steps (``12.batch``) are counted and passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING

from simsched.errors import WorkloadError
from simsched.workload import gather as why
from simsched.workload.gather import Gather, Row, eligible_at, whole
from simsched.workload.mapping import Flat, Reading
from simsched.workload.slurm_values import RESULTS, UNFINISHED, Asked, clock, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simsched.formats.jobspec import Jobspec
    from simsched.workload.job import Workload

STEP = "a step, not a job"
BAD_COLUMNS = "not as many columns as the header"
NO_TIME = frozenset(("", "0", "Unknown", "None", "N/A", "INVALID", "NONE"))

#: What we read → the columns it may be in, best first.
COLUMNS = {
    "id": ("JobIDRaw", "JobID"),
    "submit": ("Submit",),
    "eligible": ("Eligible",),
    "start": ("Start",),
    "end": ("End",),
    "elapsed_raw": ("ElapsedRaw",),
    "elapsed": ("Elapsed",),
    "limit_raw": ("TimelimitRaw",),
    "limit": ("Timelimit",),
    "req_cpus": ("ReqCPUS",),
    "alloc_cpus": ("NCPUS", "AllocCPUS"),
    "req_nodes": ("ReqNodes",),
    "alloc_nodes": ("NNodes", "AllocNodes"),
    "req_tres": ("ReqTRES",),
    "alloc_tres": ("AllocTRES",),
    "req_mem": ("ReqMem",),
    "features": ("Constraints",),
    "partition": ("Partition",),
    "account": ("Account",),
    "user": ("User",),
    "group": ("Group",),
    "name": ("JobName",),
    "state": ("State",),
}
_NEEDED = (
    ("JobIDRaw", ("id",)),
    ("Submit", ("submit",)),
    ("ReqCPUS, NCPUS, ReqTRES or AllocTRES", ("req_cpus", "alloc_cpus", "req_tres", "alloc_tres")),
    ("ElapsedRaw, Elapsed, or Start and End", ("elapsed_raw", "elapsed", "start")),
)


def read_sacct(lines: Iterable[str], reading: Reading | None = None) -> Workload:
    """Read the text of ``sacct -P``.

    Raises
    ------
    WorkloadError
        When needed columns are missing (it names them), when zones are mixed, or at the
        first record left out under `strict`.
    """
    reading = reading or Reading(source="sacct")
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    _, head = next(numbered, (0, ""))
    layout = Layout.of(head, reading.source)
    reader = _Reader(Gather(reading, "sacct"), layout, itemgetter(*layout.places), Clock(reading.source))
    for number, line in numbered:
        reader.line(number, line)
        if reader.gather.full:
            break
    reader.close()
    return reader.gather.finish()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the header line puts what: the number of columns, and the place of each of ours.

    A column that is not there is looked up behind the last one, where the reader puts an empty cell.
    """

    width: int
    places: tuple[int, ...]

    @classmethod
    def of(cls, head: str, source: str) -> Layout:
        """Read the header line; WorkloadError names every needed column that it lacks."""
        names = [name.strip().lower() for name in head.rstrip("|").split("|")]
        places: dict[str, int] = {}
        for field_, wanted in COLUMNS.items():
            found = [names.index(name.lower()) for name in wanted if name.lower() in names]
            places[field_] = found[0] if found else len(names)
        missing = [text for text, any_of in _NEEDED if all(places[name] == len(names) for name in any_of)]
        if missing:
            raise WorkloadError(
                "columns are missing: " + "; ".join(missing),
                where=f"{source}:1",
                expected="the header of sacct -P",
            )
        return cls(len(names), tuple(places.values()))


@dataclass(slots=True)
class _Reader:
    """One pass over the lines; requests and dates that occur again are looked up."""

    gather: Gather
    layout: Layout
    pick: Callable[[list[str]], tuple[str, ...]]
    clock: Clock
    requests: dict[tuple[str, ...], tuple[Flat, Jobspec | str]] = field(default_factory=dict)
    limits: dict[str, int | None] = field(default_factory=dict)
    steps: int = 0

    def line(self, number: int, line: str) -> None:
        """Read one line into a row, a skip, or the count of steps."""
        cells = line.split("|")
        width = self.layout.width
        if len(cells) == width:
            cells.append("")
        elif len(cells) != width + 1 or cells[-1]:
            self.gather.skip(str(number), BAD_COLUMNS, line)
            return
        row = self.pick(cells)
        if "." in row[0]:
            self.steps += 1
        else:
            self._job(str(number), row, line)

    def _job(self, number: str, row: tuple[str, ...], line: str) -> None:
        (id_text, submit_text, eligible, start_text, end_text, elapsed_raw, elapsed, limit_raw, limit) = row[
            :9
        ]
        asked, (features, partition, account, user, group, name, state) = row[9:16], row[16:]
        at = self.clock.read
        submit, start = at(submit_text, number), at(start_text, number)
        base = state.split(" ", 1)[0]
        id_: int | str = (
            int(id_text) if id_text.isascii() and id_text.isdigit() and len(id_text) < 19 else id_text
        )
        run: float | None = whole_number(elapsed_raw)
        if run is None:
            run = self._run_time(elapsed, start, at(end_text, number))
        reason = unfinished(base, start, run)
        if reason is not None:
            self.gather.skip(number, reason, line, id_)
            return
        flat, jobspec = self._request(asked, features, partition)
        later = at(eligible, number) if eligible != submit_text else None
        self.gather.add(
            number,
            Row(
                id_, submit, jobspec, start, run, self._limit(limit_raw, limit), _text(user), _text(group),
                _text(partition), _text(account), _text(name), _text(partition), flat.procs, flat.nodes,
                flat.memory, RESULTS.get(base), 16, eligible_at(later, submit, start),
            ),
        )  # fmt: skip

    def _run_time(self, elapsed: str, start: float | None, end: float | None) -> float | None:
        found = clock(elapsed)
        if found is not None or start is None or end is None:
            return found
        return end - start

    def _request(self, asked: tuple[str, ...], features: str, partition: str) -> tuple[Flat, Jobspec | str]:
        key = (*asked, features, partition)
        found = self.requests.get(key)
        if found is None:
            flat = Asked(*asked).flat()
            named = partition or None
            spec = self.gather.request(flat, queue=named, partition=named, features=_plain(features))
            found = self.requests[key] = (flat, spec)
        return found

    def _limit(self, raw: str, text: str) -> int | None:
        """Return the limit in seconds: `raw` is minutes, `text` a clock; None for no limit."""
        key = raw or text
        if key not in self.limits:
            minutes = whole_number(raw)
            self.limits[key] = minutes * 60 if minutes is not None else clock(text)
        return self.limits[key]

    def close(self) -> None:
        """Count the steps."""
        self.gather.skips.count(STEP, self.steps)


def unfinished(state: str, start: float | None, run: float | None) -> str | None:
    """Return why a record in this state is no job that ran, or None."""
    if state in UNFINISHED:
        return why.NEVER_STARTED if state == "PENDING" else why.RUNNING
    if start is None or run is None:
        return why.CANCELLED if state in {"CANCELLED", "REVOKED"} else why.NEVER_STARTED
    if run == 0 and state == "CANCELLED":
        return why.CANCELLED
    return None


def _text(text: str) -> str | None:
    return intern(text) if text else None


def _plain(text: str) -> str:
    return "" if text in {"", "(null)", "None"} else text


@dataclass(slots=True)
class Clock:
    """Reads times as seconds after 1970; remembers whether they carry offsets, and refuses both."""

    source: str
    days: dict[str, int] = field(default_factory=dict)
    zones: dict[bool, str] = field(default_factory=dict)

    def read(self, text: str, where: str) -> float | None:
        """Return the seconds of ``2024-01-31T23:59:59`` (offset or not) or of an epoch; None for none."""
        if text in NO_TIME:
            return None
        seconds = self._iso(text) if len(text) == 19 and text[10] == "T" else None
        if seconds is None:
            return self._other(text, where)
        if False not in self.zones:
            self._zone(False, where)
        return seconds

    def _iso(self, text: str) -> int | None:
        date = text[:10]
        day = self.days.get(date)
        try:
            if day is None:
                from datetime import date as calendar

                day = self.days[date] = (calendar.fromisoformat(date).toordinal() - 719163) * 86400
            return day + int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:19])
        except ValueError:
            return None

    def _other(self, text: str, where: str) -> float | None:
        """Read an epoch, a time with an offset, or nothing."""
        if text.isascii() and text.isdigit() and len(text) < 12:
            self._zone(True, where)
            return int(text)
        from datetime import datetime

        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            return None
        self._zone(found.tzinfo is not None, where)
        if found.tzinfo is None:
            return (found - datetime(1970, 1, 1)).total_seconds()
        return whole(found.timestamp())

    def _zone(self, zoned: bool, where: str) -> None:
        other = self.zones.get(not zoned)
        if other is not None:
            raise WorkloadError(
                f"mixed time zones: line {where if zoned else other} has an offset, "
                f"line {other if zoned else where} has none",
                where=self.source,
                expected="all times with an offset, or none",
            )
        self.zones.setdefault(zoned, where)
