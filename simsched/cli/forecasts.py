"""``simsched forecast``: when would each waiting job start, as of a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.cli.reading import READING, add_reading, read_inputs
from simsched.cli.rules import NAMES, add_rules, checked_rules, time_of

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from simsched.cli import Subparsers
    from simsched.simulate.forecast import Forecast

RULES = (*NAMES, "epilog", "failures", "outages", "config", "option")


def register(subparsers: Subparsers) -> None:
    """Add the verb `forecast`."""
    forecast = subparsers.add_parser(
        "forecast",
        help="when would each waiting job start, as of a time",
        description="Play a workload up to a time, and say when each job that waits then would start if what "
        "runs and what waits before it took all the time that it asked for.  Instead of a cluster and a "
        "workload a run directory may be given: then its inputs are played by its rules.",
    )
    forecast.add_argument(
        "cluster", metavar="CLUSTER|RUN", help="a cluster file, the name of a bundled one, or a run directory"
    )
    forecast.add_argument(
        "workload", metavar="WORKLOAD", nargs="?", help="a workload file, or the name of a bundled one"
    )
    forecast.add_argument(
        "--at", metavar="T", help="the time: seconds or a duration (3d) from 0; needed without a snapshot"
    )
    forecast.add_argument("--resume", metavar="FILE", help="play from a snapshot instead of from the start")
    forecast.add_argument("--format", choices=("text", "json"), default="text")
    add_rules(forecast)
    add_reading(forecast)
    forecast.set_defaults(run=run_forecast)


def run_forecast(args: argparse.Namespace) -> int:
    """Print when each waiting job would start."""
    from simsched.errors import ConfigError
    from simsched.simulate.forecast import forecast_at

    options = checked_rules(args) if args.workload is not None else _rules_of_run(args)
    if args.at is None and args.resume is None:
        raise ConfigError("no time was given", where="forecast", expected="--at T, or --resume FILE")
    at = None if args.at is None else time_of(args.at, "--at")
    cluster, workload = read_inputs(args)
    at, found = forecast_at(cluster, workload, at, resume=args.resume, **options)
    print(_as_json(found) if args.format == "json" else _as_text(found, at))
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
    from simsched.formats.text import load_json, read_text
    from simsched.simulate.config_file import from_document

    folder = Path(args.cluster)
    if not (folder / "run.json").is_file():
        raise ConfigError(
            "no workload was given", where="forecast", expected="CLUSTER WORKLOAD, or a run directory"
        )
    said = next((name for name in (*RULES, *READING) if getattr(args, name)), None)
    if said is not None:
        raise ConfigError("the rules of a run are its own", where=f"--{said.strip('_').replace('_', '-')}",
                          expected="CLUSTER WORKLOAD, for others")  # fmt: skip
    meta = load_json(read_text(folder / "run.json"), str(folder / "run.json"))
    command = meta.get("command")
    if command is None:
        raise RunError("does not say how it was made", where=str(folder), expected="a run of `simsched run`")
    args.cluster, args.workload = command["cluster"], command["workload"]
    for name, value in command["reading"].items():
        setattr(args, name, value)
    _refuse_changed(args, meta, folder)
    options = from_document(command["rules"], str(folder))
    args.seed = options.get("seed", 0)
    return options


def _refuse_changed(args: argparse.Namespace, meta: dict[str, Any], folder: Path) -> None:
    """Raise RunError if an input is not here, or not what it was when the run was made."""
    from hashlib import file_digest

    from simsched.bundled import resolve
    from simsched.errors import RunError
    from simsched.workload.load import resolve_workload

    places = {"cluster": resolve("clusters", args.cluster), "workload": resolve_workload(args.workload)}
    for known in meta["inputs"]:
        if known["sha256"] is None:  # a folder of jobs
            continue
        with places[known["role"]].open("rb") as stream:
            if file_digest(stream, "sha256").hexdigest() != known["sha256"]:
                raise RunError(f"has changed since {folder} was made", where=str(places[known["role"]]))


def _as_json(found: list[Forecast]) -> str:
    import json
    from dataclasses import asdict

    rows = [asdict(job) for job in found]
    never = float("inf")
    plain = [{k: None if v == never else v for k, v in row.items()} for row in rows]
    return json.dumps(plain, indent=1, ensure_ascii=False)


def _as_text(found: list[Forecast], at: float) -> str:
    lines = [
        f"{'JOB':>10} {'USER':>10} {'QUEUE':>10} {'PLACE':>5} {'SUBMIT':>12} {'START':>12} {'IN':>12} SHAPE"
    ]
    for job in found:
        known = job.start != float("inf")
        start, wait = (f"{job.start:.12g}", f"{job.start - at:.12g}s") if known else ("unknown", "")
        lines.append(
            f"{job.id:>10} {job.user or '-':>10} {job.queue or '-':>10} {job.place:>5} "
            f"{job.submit:>12.12g} {start:>12} {wait:>12} {job.shape}"
        )
    return "\n".join(lines)
