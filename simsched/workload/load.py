"""`load_workload`: any workload file or bundled name, recognised by its content.

Readers of job logs from other packages are taken by name (``--as``), as objects, or by content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from simsched import bundled
from simsched.arguments import check, check_callable, check_whole, options_named, texts, wrong
from simsched.errors import ConfigError, LimitError, SimschedError
from simsched.formats.rfc.clock import dated_header, parse_date, zone_name
from simsched.formats.text.documents import name_of
from simsched.formats.text.sniffing import is_xml
from simsched.garbage import collector_paused
from simsched.plugins.plugin_errors import failed
from simsched.plugins.plugin_errors import name_of as plugin_name
from simsched.plugins.plugin_kind import PluginKind
from simsched.workload.job import Job, Workload
from simsched.workload.mapping import JobMap, ReadOptions, SiteReading
from simsched.workload.source import Source, is_parquet


class WorkloadReader(Protocol):
    """Reads a log; its keyword-only arguments are options.

    If it has a method ``recognises(line)``, that is called with the first line of a file that is not blank,
    and the reader is used for the files for which it returns true.
    """

    def __call__(self, lines: Iterable[str], reading: ReadOptions) -> Workload:
        """Return the workload of the lines of a log."""


KIND = PluginKind("workload reader", "simsched.workload_readers", WorkloadReader)


@dataclass(frozen=True, slots=True)
class PluginReader:
    """A reader of another package, whose failures and answers name it; it reads as `Format` does."""

    function: WorkloadReader
    name: str

    def read(self, source: Source, reading: ReadOptions) -> Workload:
        """Read the lines of a source; PluginError if the reader fails or returns no workload."""
        with closing(source.lines()) as lines, KIND.named(self.function, self.name):
            found: Any = self.function(lines, reading)
        if not isinstance(found, Workload):
            problem = f"returned {type(found).__name__}, not a Workload"
            raise failed(KIND.word, self.function, problem, self.name)
        return found


def recognising_reader(head: str) -> PluginReader | None:
    """Return the installed reader that recognises a text by its first line; None if none does."""
    line = next((line.strip() for line in head.splitlines() if line.strip()), "")
    for name in KIND.names() if line else ():
        recognises = getattr(KIND.found(name), "recognises", None)
        if recognises is None:
            continue
        reader = KIND.installed(name)
        assert reader is not None
        with KIND.named(reader, name):
            if reader.recognises(line):
                return PluginReader(reader, name)
    return None


class Frame(Protocol):
    """A data frame, of pandas or polars."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""


if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.formats.sss.expressions import Names
    from simsched.workload.readers.tables.column_map import ColumnMap

    WorkloadLike: TypeAlias = Workload | str | Path | Source | Frame | Iterable[Job | Mapping[str, Any]]
    """A workload as an argument: the value, a file or bundled name, a data frame, or several jobs."""
    ColumnMapLike: TypeAlias = str | Path | Mapping[str, Any] | ColumnMap


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the module and function that read it, and what: text, lines, source or path."""

    module: str
    function: str
    reads: str
    summary: str
    folder: str = "readers"

    def read(self, source: Source, reading: ReadOptions) -> Workload:
        """Read the source in this format."""
        if self.reads == "source":
            return self.parse(source, reading)
        if self.reads == "text":
            return self.parse(source.text(), reading)
        with closing(source.lines()) as lines:  # a reader may stop before the end
            return self.parse(lines, reading)

    def parse(self, content: Any, reading: ReadOptions) -> Workload:
        """Read the text, the lines, or the source or data frame of a table, in this format."""
        function = getattr(import_module(f"simsched.workload.{self.folder}.{self.module}"), self.function)
        with collector_paused():  # the jobs stay, and it would walk all of them again and again
            workload: Workload = function(content, reading)
        return workload


#: Name (``--as``) → format.
READERS = {
    "swf": Format("swf", "read_swf", "text", "Standard Workload Format of the Parallel Workloads Archive"),
    "gwf": Format("swf", "read_gwf", "lines", "Grid Workload Format of the Grid Workloads Archive"),
    "jobs": Format("jobs", "read_jobs_yaml", "text", "jobs.yaml: a list of shapes, jobspecs or files"),
    "jsonl": Format("jobs", "read_jsonl", "lines", "JSON Lines of the same"),
    "sacct": Format("sacct", "read_sacct", "lines", "Slurm accounting, sacct -P"),
    "sacct-json": Format("slurm_json", "read_sacct_json", "text", "Slurm accounting, sacct --json"),
    "squeue-json": Format(
        "slurm_json",
        "read_squeue_json",
        "text",
        "Slurm's queue, squeue --json or scontrol show job, with --json or without",
    ),
    "flux": Format("flux_jobs", "read_flux_jobs", "text", "Flux, flux jobs -a --json"),
    "batsim": Format("batsim", "read_batsim", "text", "Batsim's JSON workloads"),
    "sss": Format("sss_jobs", "read_sss", "text", "SSS Job Objects 3.1.0 (XML)"),
    "pbs": Format("pbs", "read_pbs", "lines", "PBS and Torque accounting logs"),
    "sge": Format("sge", "read_sge", "lines", "Grid Engine accounting (SGE, Univa)"),
    "lsf": Format("lsf", "read_lsf", "lines", "LSF accounting, lsb.acct"),
    "table": Format(
        "tables.table_reader", "read_table", "source", "tables of jobs: CSV, Parquet, JSON, by a column map"
    ),
    "model": Format(
        "model_files", "read_model", "text", "a model: classes or parts, from which jobs are drawn", "models"
    ),
}
_FLUX_FOLDER = Format("flux_jobs", "read_flux_folder", "path", "a folder of Flux jobs")
_FLUX_ARCHIVE = Format("flux_jobs", "read_flux_archive", "path", "a dump of Flux's KVS")
STATED = ("jobs", "jsonl", "sss", "model")
"""Formats whose jobs are requests, and not counts that a map makes requests of."""

UNUSED_MAP = "the map is not used, since the jobs state their requests"


def as_workload(value: WorkloadLike, on_site: Mapping[str, Any] | None = None) -> Workload:
    """Return the workload that an argument is or names; errors as `load_workload`."""
    if isinstance(value, Workload):
        return value
    if isinstance(value, str | PathLike | Source) or is_frame(value):
        return load_workload(value, on_site=on_site)
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return Workload(value, name="jobs")
    expected = "a workload, a file or a bundled name, a data frame, or several jobs"
    raise wrong("workload", value, expected)


@options_named
def load_workload(
    path_or_bundled: str | Path | Source | Any,
    *,
    map: str | JobMap | ColumnMapLike | Iterable[str] | None = None,  # noqa: A002 (the command line's word)
    procs_per_node: int | None = None,
    strict: bool = False,
    as_: str | WorkloadReader | None = None,
    limit: int | None = None,
    constrain: Iterable[str] = (),
    names: Callable[[], Names] | None = None,
    columns: ColumnMapLike | None = None,
    delimiter: str | None = None,
    on_site: Mapping[str, Any] | None = None,
    time_zone: str | None = None,
    start_date: str | None = None,
    seed: int = 0,
) -> Workload:
    """Read a workload: a file of any format in `READERS`, ``-``, the name of a bundled one, or a data frame.

    Parameters
    ----------
    path_or_bundled : file, folder of Flux jobs or Parquet files, ``-``, bundled name, `Source`, data frame.
    map : template from flat counts to a shape, or several with rules by queue; or as `columns`.
    procs_per_node : width of a node, for ``{nodes}`` where the trace has no node counts.
    strict : make any ignored record an error.
    as_, limit : the format or a reader, in place of a look at the content; the most records that are read.
    constrain : parts of a record that become an RFC 31 constraint, ``features``, ``partition``.
    names : gives the cluster's hosts and properties, should patterns in SSS Job Objects need them.
    columns, delimiter : column map of a table (file, content or preset), or the columns of a Slurm dump
        without a header line, as ``sacct -o`` names them; their separator (default: as in the header).
    on_site : how a log is read on the site that it is from, plain data as `site.log_use.reading_on` gives it.
    time_zone, start_date, seed : zone of the dates (``Europe/Rome``); date of second 0; seed of a model.

    Raises
    ------
    ConfigError : no such file or name, an unknown format, a bad map.
    FormatError, WorkloadError : the content cannot be read, or a record is ignored under `strict`.
    """
    table, map, columns = _column_map(map, columns)  # noqa: A001
    check_whole("seed", seed)
    check_callable("names", names)
    if procs_per_node is not None:
        check("procs_per_node", procs_per_node, int, "a whole number of 1 or more")
    if limit is not None:
        check_whole("limit", limit)
    constrained = frozenset(texts("constrain", constrain))
    if unknown := sorted(constrained - {"features", "partition"}):
        raise ConfigError(f"cannot constrain by {unknown[0]!r}", expected="features, partition")
    source, given = Source(Path("data frame"), "data frame", b""), "data frame"
    if isinstance(path_or_bundled, Source):
        source, given = path_or_bundled, name_of(path_or_bundled.path)
    elif not is_frame(path_or_bundled):
        path = resolve_workload(path_or_bundled)
        source = Source(path, path.name) if path.is_dir() else Source.of(path)
        given = name_of(path_or_bundled)
    check("time_zone", time_zone, str | None, "the name of a time zone")
    zone = None if time_zone is None else zone_name(time_zone, "time_zone")
    start = None if start_date is None else parse_date(start_date, "start_date")
    reading = ReadOptions(
        source=source.name,
        name=source.stem,
        folder=None if source.content is not None else source.path.parent,
        table=table,
        maps=map if map is None or isinstance(map, str | JobMap) else texts("map", map),
        procs_per_node=procs_per_node,
        strict=strict,
        limit=limit,
        constrain=constrained,
        names=names,
        columns=columns,
        delimiter=_text_option("delimiter", delimiter),
        on_site=None if on_site is None else SiteReading.read(on_site, "on_site"),
        time_zone=zone,
        seed=seed,
    )
    reading.job_map()  # refuses a bad map before anything is read
    found = _read_as_given(path_or_bundled if is_frame(path_or_bundled) else source, reading, as_, given)
    return replace(found, header=dated_header(found.header, zone, start)) if zone or start else found


def _read_as_given(
    source: Any, reading: ReadOptions, insisted: str | WorkloadReader | None, given: str
) -> Workload:
    """Read a source, or a data frame; errors have the path as the user gave it."""
    if is_frame(source):
        if reading.table is None:
            from simsched.workload.readers.jobs import is_own_frame, read_own_frame

            if is_own_frame(source):
                return read_own_frame(source, reading)
        return READERS["table"].parse(source, reading)
    try:
        found = _read(source, reading, insisted)
    except SimschedError as error:
        if (error.where or "").startswith(given):
            raise
        raise error.renamed(source.name, given) from error.__cause__  # readers have the file name alone
    unused = reading.maps is not None and found.kind in STATED
    return replace(found, notes=(*found.notes, UNUSED_MAP)) if unused else found


def _read(source: Source, reading: ReadOptions, insisted: str | WorkloadReader | None) -> Workload:
    """Read a source in the format that its beginning shows, unless another is insisted on."""
    if reading.table is not None or insisted == "table":
        if insisted not in {None, "table"}:
            raise ConfigError(f"a column map is for tables, and --as is {insisted!r}", expected="--as table")
        if reading.table is not None and reading.table.format == "swf":
            return READERS["swf"].read(source, reading)
        return READERS["table"].read(source, reading)
    if source.path.is_dir():
        # Partitions are folders such as ``month=5``; a folder of jobs may have too many folders to look into.
        within = [part.rglob("*.parquet") for part in source.path.glob("*=*")]
        if any(next(files, None) is not None for files in (source.path.glob("*.parquet"), *within)):
            return READERS["table"].read(source, reading)
        return _FLUX_FOLDER.parse(source.path, reading)
    if insisted is not None or reading.columns or reading.delimiter:
        return _insisted(insisted or "sacct").read(source, reading)
    if is_parquet(source):
        return READERS["table"].read(source, reading)
    is_archive = source.path.name.endswith(_ARCHIVES) or source.first_bytes(262)[257:] == b"ustar"
    if is_archive and source.content is None:
        return _FLUX_ARCHIVE.parse(source.path, reading)
    head = source.head()
    plugin = recognising_reader(head)
    if plugin is not None:
        return plugin.read(source, reading)
    kind = detect(head, source.name)
    if kind in _TABLES and (preset := _preset_of(source, head)) is not None:
        note = f"read as {preset.name}: {preset.dataset}"
        found = READERS["table"].read(source, replace(reading, table=preset))
        return replace(found, notes=(note, *found.notes))
    if kind not in _LAST_RESORTS:
        return READERS[kind].read(source, reading)
    text = source.text()
    if kind == "jobs" and len(text) > len(head):
        kind = detect(text, source.name)  # its jobs may follow a long beginning
    try:
        return READERS[kind].parse(text, reading)
    except LimitError:
        raise
    except SimschedError as error:
        from simsched.formats.machines.recognition import WORKLOAD, unrecognised

        known = f"one of {', '.join(READERS)}, or a folder of Flux jobs; --as FORMAT insists"
        raise unrecognised(text, source.name, WORKLOAD, known) or error from None


def _preset_of(source: Source, head: str) -> ColumnMap | None:
    """Return the one preset that the columns of a text show; None where there is no such table."""
    from simsched.formats.machines.recognition import table_columns

    names, form = table_columns(head)
    others = {"jobid", "jobidraw"} if form == "csv" else {"shape", "jobspec", "file", "jobs"}
    if not names or not others.isdisjoint(name.lower() for name in names):
        return None  # a Slurm dump, or a document of ours
    from simsched.workload.readers.tables.column_map import presets_for

    found = presets_for(names, form)
    if len(found) > 1:
        listed = ", ".join(one.name for one in found)
        raise ConfigError(
            f"several presets fit these columns: {listed}", where=source.name, expected="--columns NAME"
        )
    return found[0] if found else None


def _column_map(given: Any, columns: Any) -> tuple[ColumnMap | None, Any, str | None]:
    """Return the column map that `map` or `columns` gives, the templates, and the columns of a dump."""
    if given is None and columns is None:
        return None, None, None
    from simsched.workload.readers.tables.column_map import given_map, preset

    table = given_map(columns)
    if table is None and isinstance(columns, str) and "," not in columns and columns.isidentifier():
        table = preset(columns)  # a name that is not one: the error names the nearest
    rest = _text_option("columns", columns) if table is None else None
    if table is None and (table := given_map(given)) is not None:
        given = None
    return table, given, rest


def is_frame(value: object) -> bool:
    """Whether a value is a data frame: it has columns and is not a path or a source."""
    return not isinstance(value, str | Path | Source) and hasattr(value, "columns")


def _text_option(name: str, value: object) -> str | None:
    """Return the text of an option (backslash and t are a tab); None where it is not given."""
    if value is None:
        return None
    check(name, value, str, "a text")
    text = str(value).replace("\\t", "\t")
    if not text:
        raise ConfigError(f"the value of {name} is empty", expected="a text")
    return text


def resolve_workload(path: str | Path) -> Path:
    """Return the file or folder of jobs that a path or a bundled name means; errors as `resolve`."""
    if isinstance(path, str | Path) and str(path) not in ("", "-") and bundled.is_folder(path):
        return Path(path)
    return bundled.resolve("workloads", path)


def _insisted(kind: str | WorkloadReader) -> Format | PluginReader:
    """Return our reader of a format, or one of another package, by name or as an object."""
    if not isinstance(kind, str):
        if not KIND.fits(kind):
            raise wrong("as_", kind, f"one of {', '.join(READERS)}, or a reader")
        return PluginReader(KIND.checked(kind), plugin_name(kind))
    if kind in READERS:
        return READERS[kind]
    found = KIND.installed(kind)
    if found is None:
        known = [*READERS, *KIND.names()]
        raise ConfigError(f"unknown workload format {kind!r}", expected=", ".join(known))
    return PluginReader(found, kind)


_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
#: Formats as which a table may be recognised, and which a preset overrules.
_TABLES = frozenset(("jobs", "jsonl", "sacct-json", "sacct"))
#: Formats that are tried when no other is recognised.
_LAST_RESORTS = frozenset(("jobs", "sss"))


def detect(head: str, name: str = "") -> str:
    """Return the format (a key of `READERS`) that the beginning of a text shows.

    >>> detect("; Version: 2.2"), detect("- shape: slot=1/core"), detect("JobID|Submit|State")
    ('swf', 'jobs', 'sacct')
    """
    from simsched.formats.machines.recognition import WORKLOAD, is_json_lines, look_of

    look = look_of(head, first=WORKLOAD)
    if look is not None and look.reader:
        return look.reader
    if is_xml(head):
        return "sss"
    if is_json_lines(head):
        return "jsonl"
    return "swf" if ".swf" in name and head.lstrip()[:1] not in ("{", "[") else "jobs"
