"""``simsched forecast``: when would each waiting job start, as of a time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from simsched.cli.options.run_options import NAMES, add_rules, checked_rules, time_of
from simsched.cli.options.workloads import READING, add_reading, read_inputs
from simsched.cli.support.heartbeat import expected, heartbeat
from simsched.cli.support.output import write

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from simsched.cli import Subparsers
    from simsched.formats.run_origin import Origin
    from simsched.simulation.forecast.start_times import Forecast
    from simsched.workload.queue_snapshot.snapshot import Picture

_OF_WORKLOADS = ("transform", "limit", "constrain", "strict")
"""Arguments that have no meaning for a picture."""

RULES = (*NAMES, "epilog", "failures", "outages", "config", "option")


def register(subparsers: Subparsers) -> None:
    """Add the verb `forecast`."""
    forecast = subparsers.add_parser(
        "forecast",
        help="when would each waiting job start, as of a time",
        description="Say when each job that waits would start if what runs and what waits before it took all "
        "the time that it asked for.  What runs and waits comes from a queue picture (of our own layout, or "
        "what `flux jobs -A --json` prints), from a workload that is played up to a time, or from a run "
        "directory: then its inputs are played by its rules.",
    )
    forecast.add_argument(
        "cluster", metavar="CLUSTER|RUN", help="a cluster file, the name of a bundled one, or a run directory"
    )
    forecast.add_argument(
        "workload",
        metavar="PICTURE|WORKLOAD",
        nargs="?",
        help="a queue picture, a workload file, or the name of a bundled one",
    )
    forecast.add_argument(
        "--at",
        metavar="T",
        help="the time: seconds or a duration (3d) from 0, or from the picture's time on (+2h); needed "
        "without a picture or a checkpoint",
    )
    forecast.add_argument("--resume", metavar="FILE", help="play from a checkpoint instead of from the start")
    forecast.add_argument(
        "--details",
        metavar="FILE",
        help="of the jobs of a picture: JSON Lines of {id, R, jobspec}, what they hold and ask for",
    )
    forecast.add_argument("--format", choices=("text", "json"), default="text")
    forecast.add_argument(
        "--quiet", action="store_true", help="no progress (else a line on standard error every 30 s)"
    )
    add_rules(forecast)
    add_reading(forecast)
    forecast.set_defaults(run=run_forecast)


def run_forecast(args: argparse.Namespace) -> int:
    """Print when each waiting job would start."""
    from simsched.errors import ConfigError
    from simsched.simulation.forecast.start_times import forecast_at

    if args.workload is None:
        options = _rules_of_run(args)
    else:
        options = checked_rules(args)
        picture = _picture(args)
        if picture is not None:
            return _run_live(args, picture, options)
    if args.details is not None:
        raise ConfigError("there is no picture", where="--details", expected="CLUSTER PICTURE")
    if args.at is None and args.resume is None:
        raise ConfigError(
            "no time was given", where="forecast", expected="--at T, --resume FILE, or a queue picture"
        )
    at = None if args.at is None else time_of(args.at, "--at")
    cluster, workload = read_inputs(args)
    seen: list[float] = []
    ends = (workload.span[0], at)
    with heartbeat("forecast", lambda spent: _state(seen[-1:], ends, spent), quiet=args.quiet):
        at, found = forecast_at(
            cluster, workload, at, resume=args.resume, progress=lambda e: seen.append(e.now), **options
        )
    _put(found, at, args.format)
    return 0


def _state(seen: list[float], ends: tuple[float, float | None], spent: float) -> str:
    """Return up to which time the workload is played, and about how long the rest takes."""
    begin, end = ends
    if not seen or end is None:
        return "the workload is played"
    more = expected(spent, seen[0] - begin, end - seen[0])
    return f"the workload is played up to {seen[0]:,.0f} of {end:,.0f} s{more}"


def _picture(args: argparse.Namespace) -> Picture | None:
    """Return the picture that was given instead of a workload; what was opened is read once."""
    from simsched.workload.load import resolve_workload
    from simsched.workload.mapping import Reading
    from simsched.workload.queue_snapshot.load_snapshot import load_picture
    from simsched.workload.source import Source

    path = resolve_workload(args.workload)
    if args.as_ is not None or args.resume is not None or path.is_dir():
        return None
    source = Source.of(path)
    reading = Reading(maps=args.map and tuple(args.map), procs_per_node=args.procs_per_node)
    found = load_picture(source, reading, args.details)
    if found is None and source.content is not None:
        args.workload = source
    return found


def _run_live(args: argparse.Namespace, picture: Picture, options: dict[str, Any]) -> int:
    """Print the forecasts of a picture."""
    from simsched.errors import ConfigError
    from simsched.graph.cluster import load_cluster
    from simsched.simulation.forecast.live_cluster import live_at
    from simsched.workload.queue_snapshot.snapshot import Spread

    said = next((name for name in _OF_WORKLOADS if getattr(args, name)), None)
    if said is not None:
        raise ConfigError("a picture is taken as it is", where=f"--{said}", expected="a workload")
    at = None
    if args.at is not None:
        later = args.at.startswith("+")
        at = time_of(args.at.removeprefix("+"), "--at") + (picture.time if later else 0)
    at, found = live_at(load_cluster(args.cluster), picture, at, **options)
    untold = sum(isinstance(run.holds, Spread) for run in picture.running)
    if untold:
        sys.stderr.write(
            f"without R: {untold} running jobs, placed by their nodes and numbers of cores (see --details)\n"
        )
    _put(found, at, args.format, dates=picture.epoch)
    return 0


def command_of(args: argparse.Namespace, rules: dict[str, Any]) -> dict[str, Any]:
    """Return how a run was asked for, as plain data: with the inputs it is enough to play it again.

    `rules` is the document of its rules.
    """
    reading = {name: getattr(args, name) for name in READING}
    return {
        "cluster": args.cluster,
        "workload": args.workload,
        "rules": rules,
        "reading": {name: value for name, value in reading.items() if value},
    }


def _rules_of_run(args: argparse.Namespace) -> dict[str, Any]:
    """Return the rules of the run directory that was given, and let `args` name its inputs.

    Raises
    ------
    ConfigError, RunError
        If it is no run directory, does not say how it was made, or its inputs are not as they were.
    """
    from pathlib import Path

    from simsched.errors import ConfigError, RunError
    from simsched.formats.run_origin import read_origin
    from simsched.simulation.options.run_config import from_document

    folder = Path(args.cluster)
    if not (folder / "run.json").is_file():
        raise ConfigError(
            "no workload was given", where="forecast", expected="CLUSTER WORKLOAD, or a run directory"
        )
    said = next((name for name in (*RULES, *READING) if getattr(args, name)), None)
    if said is not None:
        raise ConfigError("the rules of a run are its own", where=f"--{said.strip('_').replace('_', '-')}",
                          expected="CLUSTER WORKLOAD, for others")  # fmt: skip
    origin = read_origin(folder / "run.json")
    command = origin.command
    if command is None:
        raise RunError("does not say how it was made", where=str(folder), expected="a run of `simsched run`")
    args.cluster, args.workload = command.cluster, command.workload
    for name, value in command.reading.said().items():
        setattr(args, name, value)
    _refuse_changed(args, origin, folder)
    options = from_document(command.rules, str(folder))
    args.seed = options.get("seed", 0)
    return options


def _refuse_changed(args: argparse.Namespace, origin: Origin, folder: Path) -> None:
    """Raise RunError if an input is not here, or not what it was when the run was made."""
    from hashlib import file_digest

    from simsched.bundled import resolve
    from simsched.errors import RunError
    from simsched.workload.load import resolve_workload

    places = {"cluster": resolve("clusters", args.cluster), "workload": resolve_workload(args.workload)}
    for known in origin.inputs:
        if known.sha256 is None:  # a folder of jobs
            continue
        with places[known.role].open("rb") as stream:
            if file_digest(stream, "sha256").hexdigest() != known.sha256:
                raise RunError(f"has changed since {folder} was made", where=str(places[known.role]))


def _put(found: list[Forecast], at: float, form: str, *, dates: bool = False) -> None:
    if form == "json":
        write(_as_json(found) + "\n", "json")
    else:
        write(_as_text(found, at, dates=dates) + "\n")


def _as_json(found: list[Forecast]) -> str:
    import json
    from dataclasses import asdict

    rows = [asdict(job) for job in found]
    never = float("inf")
    plain = [{k: None if v == never else v for k, v in row.items()} for row in rows]
    return json.dumps(plain, indent=1, ensure_ascii=False)


def _as_text(found: list[Forecast], at: float, *, dates: bool = False) -> str:
    """Return a table; times are seconds, or dates (UTC) where they count from the epoch."""
    wide = 20 if dates else 12
    told = any(job.reason for job in found)
    shapes = max((len(job.shape) for job in found), default=0) if told else 0
    head = f"{'JOB':>10} {'USER':>10} {'QUEUE':>10} {'PLACE':>5} {'SUBMIT':>{wide}} {'START':>{wide}} "
    lines = [f"{head}{'IN':>12} {'SHAPE':<{shapes}}{' REASON' if told else ''}"]
    for job in found:
        start, wait = "unknown", ""
        if job.start != float("inf"):
            start, wait = _time(job.start, dates=dates), _wait(job.start - at, dates=dates)
        line = (
            f"{job.id:>10} {job.user or '-':>10} {job.queue or '-':>10} {job.place or '-':>5} "
            f"{_time(job.submit, dates=dates):>{wide}} {start:>{wide}} {wait:>12} {job.shape:<{shapes}} "
        )
        lines.append(f"{line}{job.reason or ''}".rstrip())
    return "\n".join(lines)


def _time(seconds: float, *, dates: bool) -> str:
    from simsched.formats.rfc.duration import format_date

    return format_date(seconds) if dates else f"{seconds:.12g}"


def _wait(seconds: float, *, dates: bool) -> str:
    return f"{round(seconds) if dates else seconds:.12g}s"
