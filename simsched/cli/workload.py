"""``simsched workload``: show, make, convert, deliver and list workloads."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal

from simsched.cli.options.workloads import add_reading, generator, read_workloads
from simsched.cli.support.messages import note
from simsched.cli.support.output import answer, print_lines, put
from simsched.cli.support.verbs import add_verb
from simsched.cli.workload_logs import FitFlags, FlurryFlags, fit, list_flurries
from simsched.declare.flags import Flags, flag, flags_given
from simsched.declare.table import fields_of
from simsched.text_table import table_lines
from simsched.workload.models.lublin import LublinWorkload
from simsched.workload.transforms.steps import STEPS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from simsched.cli.support.parser import Subparsers
    from simsched.workload.job import Workload

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
    add_verb(actions, "list", list_names, help="list the bundled workloads")
    add_verb(actions, "columns", propose_columns, ColumnsFlags)
    add_verb(actions, "presets", list_presets, PresetFlags)


def list_names(_: argparse.Namespace) -> int:
    """Print the names of the bundled workloads, with a line on each."""
    from simsched.bundled import summaries

    print_lines(table_lines(summaries("workloads").items()), "text")
    return 0


def propose_columns(args: argparse.Namespace) -> int:
    """Print a column map for a table."""
    from pathlib import Path

    from simsched.bundled import resolve
    from simsched.workload.readers.tables.proposal import proposed_map
    from simsched.workload.source import Source

    print(proposed_map(Source.of(resolve("workloads", Path(args.table)))), end="")
    return 0


def list_presets(args: argparse.Namespace) -> int:
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


def show(args: argparse.Namespace) -> int:
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


def convert(args: argparse.Namespace) -> int:
    """Write workloads in another format."""
    workload = _read(args, args.workload)
    _write_skips(workload)
    _write(workload, args, strict=args.strict)
    return 0


def deliver(args: argparse.Namespace) -> int:
    """Write Job Objects with the results of a run."""
    from simsched.formats.sss import read_document
    from simsched.formats.text.documents import read_text
    from simsched.report.delivered import delivered_document
    from simsched.report.run_views import load_run
    from simsched.workload.readers.sss_jobs import second_zero

    run, text = load_run(args.directory), read_text(args.document)
    document = read_document(text, args.document)
    text = delivered_document(document, run, second_zero=second_zero(document)).to_xml()
    put(text, args.output, "xml", announced=True)
    return 0


def make_lublin(args: argparse.Namespace) -> int:
    """Make a workload by the Lublin-Feitelson model."""
    from simsched.workload.mapping import JobMap

    given = flags_given(args, LublinFlags)
    keys = {one.key: given[one.name] for one in fields_of(LublinWorkload).values() if one.name in given}
    model = LublinWorkload.read(keys, "")
    _write(_noted(model.make(generator(args), JobMap.parse(args.map)), args), args)
    return 0


def make_mix(args: argparse.Namespace) -> int:
    """Make a workload from the parts of a mix."""
    from simsched.formats.text.documents import load_document, read_text
    from simsched.workload.models.mix import model_of

    mix = model_of(load_document(read_text(args.spec), args.spec), args.spec)
    _write(_noted(mix.make(generator(args)), args), args)
    return 0


def _read(args: argparse.Namespace, names: Sequence[str]) -> Workload:
    if args.cluster is None:
        return read_workloads(args, names)
    from simsched.graph.cluster import load_cluster

    return read_workloads(args, names, load_cluster(args.cluster))


def _write(workload: Workload, args: argparse.Namespace, *, strict: bool = False) -> None:
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


def _noted(workload: Workload, args: argparse.Namespace) -> Workload:
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
