"""`ReadingOptions`: the options by which a workload is read, declared once."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from simsched.declare.flags import Flags, flag
from simsched.declare.kinds import HIDDEN, whole


class LogReading(Flags, frozen=True, kw_only=True):
    """How a log is read: keywords of `load_workload`, keys of a study, flags.

    as_ : read this format instead of detecting it.
    map : shape of a record's request: 'slot={procs}/core', 'node={nodes}/slot={ppn}/core', or 'QUEUE ->
        TEMPLATE' for one queue or partition; may be repeated.
    procs_per_node : processors per node, for {nodes}.
    constrain : turn the 'features' or the 'partition' of a record into a constraint; may be repeated.
    columns : column map of a table (CSV, Parquet, JSON): a YAML file, or a preset ('simsched workload
        presets'); or the columns of a Slurm dump without a header, as in sacct -o.
    delimiter : separator of the columns (default that of the header).
    time_zone : time zone of the log's dates, such as Europe/Rome or +01:00 (default that of the log, or
        UTC).
    start_date : date of second 0, for a log without dates: 2024-03-01T08:00.
    limit : read at most N records.
    strict : refuse bad records; `run` also fails if a job can never run.
    """

    as_: Annotated[str | None, flag("FORMAT")] = msgspec.field(name="as", default=None)
    map: Annotated[tuple[str, ...] | None, flag("TEMPLATE")] = None
    procs_per_node: Annotated[int | None, whole(1)] = None
    constrain: Annotated[tuple[str, ...], flag("FIELD")] = ()
    columns: Annotated[str | None, flag("MAP|PRESET|NAMES")] = None
    delimiter: Annotated[str | None, flag("TEXT")] = None
    limit: int | None = None
    strict: bool = False
    time_zone: Annotated[str | None, flag("ZONE")] = None
    start_date: Annotated[str | None, flag("DATE")] = None


class ReadingOptions(LogReading, frozen=True, kw_only=True):
    """How a log is read and transformed.

    transform : apply a transform, such as 'load(1.2)' or 'slice(1d, 8d)'; may be repeated (`simsched
        policies transforms` lists them).
    on_site : how a log is read on the site that it is from.
    """

    transform: Annotated[tuple[str, ...], flag("STEP", "-t")] = ()
    on_site: Annotated[dict[str, Any] | None, HIDDEN] = None
