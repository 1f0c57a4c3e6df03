"""The actions ``workload fit`` and ``workload flurries``: a model of a log, and bursts of its users."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Annotated, Literal

from simsched import human
from simsched.cli.options.workloads import generator, read_workloads
from simsched.cli.support.messages import note
from simsched.cli.support.output import answer, put, terminal_width
from simsched.declare.answers import written
from simsched.declare.flags import Flags, flag
from simsched.errors import ConfigError
from simsched.text_table import fitted_table, table_lines

if TYPE_CHECKING:
    import argparse

    from simsched.workload.job import Workload
    from simsched.workload.models.fit_check import Distance, FitCheck
    from simsched.workload.models.log_model import LogModel
    from simsched.workload.transforms.flurries import FlurriesAnswer, Flurry

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


def fit(args: argparse.Namespace) -> int:
    """Write the model of a log, and print its classes and its distance from the log."""
    from simsched.workload.models.fit_check import check_fit, tomorrow
    from simsched.workload.models.log_fit import fit_log
    from simsched.workload.models.log_model import model_text

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
        put(model_text(written_model, about), args.output, announced=True)
    lines = [*_classes(workload, model), "", *_distances(found)]
    answer(args.format, found.to_dict, lambda: lines, ensure_ascii=True)
    if not model.population:
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
    head = f"{workload.name}: {len(workload):,} jobs in {span}, {model.population} users, {growth}"
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


def list_flurries(args: argparse.Namespace) -> int:
    """Print the flurries of a log."""
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
