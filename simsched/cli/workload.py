"""``simsched workload``: show, make, convert, deliver and list workloads."""

from __future__ import annotations

import sys
from math import isnan
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal

from simsched import human
from simsched.cli.options.workloads import add_reading, generator, read_workloads
from simsched.cli.support.messages import note
from simsched.cli.support.output import answer, list_bundled, print_lines, put, terminal_width
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag, flags_given
from simsched.declare.table import fields_of
from simsched.errors import ConfigError
from simsched.text_table import fitted_table, table_lines
from simsched.workload.models.lublin import LublinWorkload
from simsched.workload.transforms.steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.workload.job import Workload
    from simsched.workload.models.log_fit import Distance, FitCheck
    from simsched.workload.models.model_files import LogModel
    from simsched.workload.transforms.flurries import FlurriesAnswer, Flurry

TRANSFORMS = (
    "transforms of the workload, in order, each with -t (`simsched policies transforms` explains them):\n"
    + fill(", ".join(each.form for each in STEPS.values()), 78, initial_indent="  ", subsequent_indent="  ",
           break_on_hyphens=False)
)  # fmt: skip
"""The end of the help of verbs that only transform."""


class LublinFlags(LublinWorkload, frozen=True, kw_only=True):
    """Make jobs by the Lublin-Feitelson model of rigid jobs.

    map : shape of a job's request (default slot={procs}/core).
    seed : seed of every random choice (default 0).
    """

    map: Annotated[str | None, flag("TEMPLATE")] = None
    seed: int = 0


class InputFlags(Flags, frozen=True, kw_only=True):
    """Print a summary: counts, load by week, sizes, run times, limits, users.

    workload : a workload file, - for standard input, or a bundled name.
    cluster : resolve host patterns of SSS Job Objects on this cluster.
    seed : seed of every random choice (default 0).
    """

    workload: Annotated[Any, flag("WORKLOAD", positional=True)]
    cluster: Annotated[str | None, flag("CLUSTER")] = None
    seed: int = 0


class MixFlags(Flags, frozen=True, kw_only=True):
    """Make the jobs of a mix of templates, or of the model of a log (YAML).

    spec : file with gap, jobs or span, and parts (see docs/workloads.md).
    seed : seed of every random choice (default 0).
    """

    spec: Annotated[str, flag("MIX.yaml", positional=True)]
    seed: int = 0


class InputsFlags(InputFlags, frozen=True, kw_only=True):
    """Write workloads in another format after transforms; several are merged."""

    workload: Annotated[Any, flag("WORKLOAD", positional=True, nargs="+")]


class SummaryFlags(Flags, frozen=True, kw_only=True):
    """Flags of ``workload show``.

    capacity : processors of the machine, from which the load is computed.
    format : text (default) or json.
    plot : also draw the summary into a .png, .svg or .pdf file.
    """

    capacity: Annotated[int | None, flag("P", type=int)] = None
    format: Literal["text", "json"] = "text"
    plot: Annotated[str | None, flag("FILE")] = None


class JobsFileFlags(Flags, frozen=True, kw_only=True):
    """The file of a workload.

    output : write to FILE (default: standard output).
    to : swf, jobs, jsonl, batsim (version 5), batsim4, sacct, flux-fiction or sss (default: by the ending of
        FILE).
    """

    output: Annotated[str | None, flag("FILE", "-o")] = None
    to: Annotated[str | None, flag("FORMAT")] = None


class ColumnsFlags(Flags, frozen=True):
    """Propose a column map for a table (CSV, Parquet, JSON), with the first values.

    table : a table of jobs, or - for standard input.
    """

    table: Annotated[str, flag("FILE", positional=True)]


class PresetFlags(Flags, frozen=True):
    """List the column maps of public data sets.

    name : print this one as YAML.
    """

    name: Annotated[str | None, flag("NAME", positional=True, nargs="?")] = None


class DeliverFlags(Flags, frozen=True):
    """Write the results of a run (State, times, Delivered) into its SSS Job Objects.

    document : file of Job Objects.
    directory : run directory.
    output : write to FILE (default: standard output).
    """

    document: Annotated[str, flag("JOBS.xml", positional=True)]
    directory: Annotated[str, flag("RUN", positional=True)]
    output: Annotated[str | None, flag("FILE", "-o")] = None


def register(subparsers: Subparsers) -> None:
    """Add the verb ``workload`` and its actions."""
    parser = subparsers.add_parser("workload", help="show, make, convert, deliver and list workloads")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    parts = (InputFlags, add_reading, SummaryFlags)
    add_verb(actions, "show", show, *parts, epilog=TRANSFORMS, answers=["workload-summary"])
    make = actions.add_parser("make", help="make a synthetic workload")
    models = make.add_subparsers(title="models", metavar="MODEL", dest="model_name", required=True)
    add_verb(models, "lublin", make_lublin, LublinFlags, JobsFileFlags)
    add_verb(models, "mix", make_mix, MixFlags, JobsFileFlags)
    more: dict[str, Any] = {"epilog": TRANSFORMS}
    add_verb(actions, "fit", fit, FitFlags, add_reading, answers=["fit-check"], **more)
    add_verb(actions, "flurries", list_flurries, FlurryFlags, add_reading, answers=["flurries"], **more)
    add_verb(actions, "convert", convert, InputsFlags, add_reading, JobsFileFlags, epilog=TRANSFORMS)
    add_verb(actions, "deliver", deliver, DeliverFlags)
    add_verb(actions, "list", list_bundled("workloads"), help="list the bundled workloads")
    add_verb(actions, "columns", propose_columns, ColumnsFlags)
    add_verb(actions, "presets", list_presets, PresetFlags)


def propose_columns(args: Arguments) -> int:
    """Print a column map for a table."""
    from pathlib import Path

    from simsched.bundled import resolve
    from simsched.workload.readers.tables.proposal import proposed_map
    from simsched.workload.source import Source

    print(proposed_map(Source.of(resolve("workloads", Path(args.table)))), end="")
    return 0


def list_presets(args: Arguments) -> int:
    """Print the presets with their data sets and papers, or the text of one."""
    from simsched.workload.readers.tables.column_map import preset_text, presets

    if args.name:
        print(preset_text(args.name), end="")
        return 0
    rows: list[tuple[str, str]] = []
    for one in presets():
        rows += [(one.name, one.dataset), ("", one.cite), *([("", f"doi:{one.doi}")] if one.doi else [])]
    print_lines(table_lines(rows), "text")
    return 0


def show(args: Arguments) -> int:
    """Print a summary of a workload."""
    from simsched.workload.describe import describe

    data = describe(_read(args, [args.workload]), capacity=args.capacity)
    if args.plot:
        from simsched.report.figures.workload_figure import save_workload_figure

        save_workload_figure(data, args.plot)
        sys.stderr.write(f"written: {args.plot}\n")
    from simsched.workload.show import as_text

    answer(args.format, lambda: data, lambda: [as_text(data).removesuffix("\n")], ensure_ascii=True)
    return 0


def convert(args: Arguments) -> int:
    """Write workloads in another format."""
    workload = _read(args, args.workload)
    _write_skips(workload)
    _write(workload, args, strict=args.strict)
    return 0


def deliver(args: Arguments) -> int:
    """Write Job Objects with the results of a run."""
    from simsched.formats.sss.document import read_document
    from simsched.formats.text.documents import read_text
    from simsched.report.delivered import delivered_document
    from simsched.report.run_views import load_run
    from simsched.workload.readers.sss_jobs import second_zero

    run, text = load_run(args.directory), read_text(args.document)
    document = read_document(text, args.document)
    text = delivered_document(document, run, second_zero=second_zero(document)).to_xml()
    put(text, args.output, "xml", announced=True)
    return 0


def make_lublin(args: Arguments) -> int:
    """Make a workload by the Lublin-Feitelson model."""
    from simsched.workload.mapping import JobMap

    given = flags_given(args, LublinFlags)
    keys = {one.key: given[one.name] for one in fields_of(LublinWorkload).values() if one.name in given}
    model = LublinWorkload.read(keys, "")
    _write(_noted(model.make(generator(args), JobMap.parse(args.map)), args), args)
    return 0


def make_mix(args: Arguments) -> int:
    """Make a workload from the parts of a mix."""
    from simsched.formats.text.documents import load_document, read_text
    from simsched.workload.models.model_files import model_of

    mix = model_of(load_document(read_text(args.spec), args.spec), args.spec)
    _write(_noted(mix.make(generator(args)), args), args)
    return 0


def _read(args: Arguments, names: Sequence[str]) -> Workload:
    if args.cluster is None:
        return read_workloads(args, names)
    from simsched.graph.cluster import load_cluster

    return read_workloads(args, names, load_cluster(args.cluster))


def _write(workload: Workload, args: Arguments, *, strict: bool = False) -> None:
    """Write to a file or to standard output, and note the facts that the format cannot represent."""
    from dataclasses import replace

    from simsched.workload.job import Skips
    from simsched.workload.save import kind_of, lines_of, losses, save_workload

    kind = args.to or (kind_of(args.output) if args.output else "jobs")
    skips = Skips(strict=strict)
    if args.output:
        save_workload(workload, args.output, to=kind, skips=skips)
        written = len(workload) - len(skips.records)
        sys.stderr.write(f"{args.output}: {written:,} jobs ({kind})\n")
    else:
        print_lines(lines_of(workload, kind, skips))
    missing = replace(workload, skipped=tuple(skips.records), skipped_counts=skips.counts)
    _write_skips(missing, "not written:")
    lost = losses(workload, kind)
    if lost:
        note(f"{kind} cannot represent: {', '.join(lost)}")


def _write_skips(workload: Workload, title: str = "ignored:") -> None:
    from simsched.workload.show import skip_text

    table = [{"reason": r, "count": n, "first": first} for r, n, first in workload.skip_table()]
    if table:
        sys.stderr.write("\n".join([title, *skip_text(table), ""]))


def _noted(workload: Workload, args: Arguments) -> Workload:
    """Return the workload with the command that makes it in its history."""
    from dataclasses import replace

    words = ["simsched workload make", args.model_name]
    keys = {one.name: one.key for one in fields_of(LublinFlags).values()}
    for key, value in sorted((keys[name], value) for name, value in vars(args).items() if name in keys):
        words += [f"--{key} {_quoted(value)}"] if value else []
    words += ["--seed 0"] if not args.seed else []
    spec = [_quoted(args.spec)] if args.model_name == "mix" else []
    return replace(workload, history=(*workload.history, " ".join([*words[:2], *spec, *words[2:]])))


def _quoted(value: object) -> str:
    import shlex

    return shlex.quote(str(value))


# --- the actions ``workload fit`` and ``workload flurries``: a model of a log, and bursts of its users


MAX_CLASSES = 64


class FitFlags(Flags, frozen=True, kw_only=True):
    """Make a model of a log, and print how far it is from the log.

    Make a model of a log: classes of jobs with their users, arrivals by hour and
    weekday, sizes, limits and run times. The distance from the log is printed by
    quantity, also for the last quarter of the log by a model of the time before it.

    workload : a log, - for standard input, or a bundled name.
    output : write the model (YAML) to FILE.
    classes : number of classes of jobs, about (default 8).
    from_end : let the model begin where the log ends, with the growth until then.
    format : text (default) or json.
    seed : seed of every random choice (default 0).
    """

    workload: Annotated[str, flag("LOG", positional=True)]
    output: Annotated[str | None, flag("FILE", "-o")] = None
    classes: int = 8
    from_end: bool = False
    format: Literal["text", "json"] = "text"
    seed: int = 0


class FlurryFlags(Flags, frozen=True, kw_only=True):
    """List bursts of single users in a log.

    List flurries: bursts of one user who submits more jobs than all others.
    They are on days with at least the usual number of jobs of all users.
    -t 'flurries(out)' leaves them out.

    workload : a log, - for standard input, or a bundled name.
    least : jobs of a flurry, in times the median number of jobs of a day, at least (default 7).
    format : text (default) or json.
    seed : seed of every random choice (default 0).
    """

    workload: Annotated[str, flag("LOG", positional=True)]
    least: float = 7.0
    format: Literal["text", "json"] = "text"
    seed: int = 0


def fit(args: Arguments) -> int:
    """Write the model of a log, and print its classes and its distance from the log."""
    from simsched.formats.text.yaml_text import to_yaml
    from simsched.workload.models.log_fit import check_fit, fit_log, tomorrow

    if not 1 <= args.classes <= MAX_CLASSES:
        raise ConfigError(
            f"{args.classes} classes are out of range", where="--classes", expected=f"1 to {MAX_CLASSES}"
        )
    workload = read_workloads(args, [args.workload])
    model = fit_log(workload, args.classes)
    found = check_fit(workload, model, generator(args), args.classes)
    written_model = tomorrow(model) if args.from_end else model
    if args.output:
        about = f"model of {workload.name}: {len(workload):,} jobs"
        put(to_yaml(written_model.replace(description=about).to_dict()), args.output, announced=True)
    lines = [*_classes(workload, model), "", *_distances(found)]
    answer(args.format, found.to_dict, lambda: lines, ensure_ascii=True)
    if not model.users:
        note("no job has a user: the model has no users, and each job is a batch")
    return 0


def _classes(workload: Workload, model: LogModel) -> list[str]:
    """Return a table of the classes."""
    span = human.seconds(workload.span[1] - workload.span[0])
    growth = "no significant growth" if model.growth == 1 else f"{model.growth:.3g} times the rate in 30 days"
    rows = [("class", "jobs", "users", "batches a week", "repeats", "requests", "limits")]
    rows += [
        (
            one.name,
            f"{sum(one.requests.weights):,.0f}",
            str(one.users),
            f"{one.batches:.1f}",
            human.share(one.repeat),
            str(len(one.requests.values)),
            "-" if one.limits is None else str(len(one.limits.values)),
        )
        for one in model.classes
    ]
    head = f"{workload.name}: {len(workload):,} jobs in {span}, {model.users or 0} users, {growth}"
    return [head, "", *table_lines(rows, right=range(1, 7))]


def _distances(found: FitCheck) -> list[str]:
    """Return the tables of distances and totals."""

    def cell(one: Distance | None) -> str:
        if one is None:
            return human.MISSING
        return f"{one.ks:.3f}" if isnan(one.factor) else f"{one.ks:.3f}  ×{one.factor:.2f}"

    columns = [("model", found.log)]
    if found.unseen:
        columns += [("unseen quarter", found.unseen), ("log itself", found.itself)]
    rows = [[name, *(cell(each.get(name)) for _, each in columns)] for name in found.log]
    heads = ["distance: KS, factor", *(head for head, _ in columns)]
    lines = fitted_table(heads, rows, terminal_width()).splitlines()
    heads = ["per week", "log", "model", "unseen quarter", "model for it"]
    weeks = [[name, *(f"{value:,.0f}" for value in values)] for name, values in found.per_week.items()]
    width = len(weeks[0])
    lines += ["", *fitted_table(heads[:width], weeks, terminal_width()).splitlines()]
    return [*lines, *(["", found.note] if found.note else [])]


# --- flurries


def list_flurries(args: Arguments) -> int:
    """Print the flurries of a log."""
    from simsched.declare.answers import written
    from simsched.workload.transforms.flurries import flurries, median_day

    workload = read_workloads(args, [args.workload])
    usual = median_day(workload)
    found = flurries(workload, args.least)

    def document() -> FlurriesAnswer:
        rows = [{name: value for name, value in written(one).items() if name != "members"} for one in found]
        return {"jobs": len(workload), "median_day": usual, "flurries": rows}

    lines = _flurry_lines(workload, found, usual, args.least)
    answer(args.format, document, lambda: lines, ensure_ascii=True)
    return 0


def _flurry_lines(workload: Workload, found: list[Flurry], usual: float, least: float) -> list[str]:
    """Return a table of flurries."""
    limits = f"{usual:,.0f} jobs on a median day; a flurry has at least {least * usual:,.0f}"
    head = f"{workload.name}: {len(workload):,} jobs, {limits}"
    if not found:
        return [head, "", "there are no flurries"]
    clock = workload.clock
    when = human.moment if clock is None else clock.text
    rows = [("user", "from", "to", "jobs", "of the log", "of this time", "equal", "processor hours")]
    rows += [
        (
            one.user,
            when(one.begin),
            when(one.end),
            f"{one.jobs:,}",
            human.share(one.share),
            human.share(one.at_the_time),
            human.share(one.equal),
            f"{one.work / 3600:,.0f}",
        )
        for one in found
    ]
    jobs = sum(one.jobs for one in found)
    rest = f"{jobs:,} jobs ({human.share(jobs / len(workload))} of the log) are in flurries"
    return [head, "", *table_lines(rows, right=range(3, 8)), "", rest]
