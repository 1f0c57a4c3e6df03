"""Slurm's accounting as text, ``sacct -P``.

The text has a header line, then one job or step per line, separated by ``|``.  Needed are a job id
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
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from sys import intern
from typing import TYPE_CHECKING

from simsched.errors import WorkloadError
from simsched.formats.rfc.clock import zone_of
from simsched.formats.rfc.duration import whole
from simsched.workload.job import ArrayTask, limit_of_line
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import (
    Gather,
    eligible_at,
    hosts_of,
    part_of,
)
from simsched.workload.readers.sacct_lines import NO_TIME, QUOTING, LineLayout, Odd
from simsched.workload.readers.slurm_values import (
    RESULTS,
    UNFINISHED,
    RequestedTres,
    clock,
    joules,
    result_of,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.job import Workload

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
    """One pass over the lines; requests, limits and texts that occur again are looked up."""

    def __init__(self, gather: Gather, layout: LineLayout) -> None:
        self.gather, self.layout, self.odd = gather, layout, Odd(layout)
        self.clock = TimeReader(gather.reading.source, gather.reading.time_zone)
        self.steps = 0
        self.pick = self.odd.pick
        plain = layout.delimiter not in QUOTING and not layout.is_closed and layout.places[0] < 2
        self.mark = layout.delimiter if plain else ""
        self.cells = layout.width + layout.is_closed
        self.held = self.odd.held
        self.has_start = layout.has("start")
        self.id_place = layout.places[0]
        self.request, self.limit = cache(self._request), cache(_limit)
        self.named, self.hosts = cache(_named), cache(hosts_of)

    def line(self, number: int, line: str) -> None:
        """Read one line into a row, a skip, or the count of steps."""
        if self.mark and not self.held:  # most lines are steps, whose other cells are not needed
            begin = line.find(self.mark) + 1 if self.id_place else 0
            is_step = "." in line[begin : line.find(self.mark, begin)]
            if is_step and line.count(self.mark) == self.cells - 1:
                self.steps += 1
                return
        cells = line.split(self.mark) if self.mark else self.layout.split(line)
        if len(cells) != self.cells or self.held or (self.layout.is_closed and cells[-1]):
            self._take(self.odd.add(number, line))
        else:
            self._job(number, self.pick([*cells, ""]), line)

    def _take(self, found: Iterable[tuple[int, list[str] | None, str]]) -> None:
        """Take the results of the odd lines: records, and lines that are not records."""
        for number, cells, text in found:
            if cells is None:
                self.gather.skip(str(number), BAD_COLUMNS, text)
            else:
                self._job(number, self.pick(cells), text)

    def _job(self, number: int, row: tuple[str, ...], line: str) -> None:
        (id_text, submit_text, eligible, start_text, end_text, elapsed_raw, elapsed, limit_raw, limit,
         _, _, _, _, _, _, _, _, _, _, _, partition, account, user, group, name, state, energy, nodelist, qos,
         licences, reservation, shown_id, command) = row  # fmt: skip
        if "." in id_text:
            self.steps += 1
            return
        at = self.clock.read
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
        flat, jobspec = self.request(row[9:21])
        if licences or reservation:
            jobspec = self.gather.attributed(jobspec, _plain(licences), _plain(reservation))
        later = at(eligible, number) if eligible != submit_text else None
        named = self.named
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
        limit = (
            int(most) if most.isascii() and most.isdigit() else limit_of_line(command) if command else None
        )
        if limit:
            self.gather.array_limits[array] = limit
        if not (index.isascii() and index.isdigit() and len(index) < 8):
            return None
        self.gather.has_tasks = True
        return ArrayTask(intern(array), int(index))

    def _request(self, key: tuple[str, ...]) -> tuple[Flat, Jobspec | str]:
        """Return the counts and the request of a record's TRES, features and partition cells."""
        *asked, features, partition = key
        flat = RequestedTres(*asked).flat()
        named = partition or None
        return flat, self.gather.request(flat, queue=named, partition=named, features=_plain(features))

    def finish(self) -> Workload:
        """Count the steps and the joined lines, and return the workload."""
        columns = {name: name for name in ("partition", "user", "group", "nodelist")} | {"account": "bank"}
        rows = self.gather.jobs if self.odd.unsure else ()
        known = {name: {getattr(row, own) or "" for row in rows} for name, own in columns.items()}
        self._take(self.odd.finish(known))
        self.gather.skips.count(STEP, self.steps)
        if self.odd.mended:
            self.gather.notes.append(
                f"records put together, because free text holds the delimiter or line breaks: "
                f"{self.odd.mended:,}"
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


def _named(text: str) -> str | None:
    return intern(text) or None


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
