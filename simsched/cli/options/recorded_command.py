"""The command of a run as its ``run.json`` records it: enough to repeat the run from its inputs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from simsched.cli.options.workloads import READING
from simsched.errors import ConfigError, RunError, SimschedError
from simsched.simulation.options.plain_options import PlainOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from simsched.simulation.record.run_origin import Origin

RULES = (*PlainOptions.__struct_fields__, "outages", "config", "option")
"""Arguments that change the rules of a run."""


def command_of(args: argparse.Namespace, rules: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs, the options of reading and the rules (a configuration document) as plain data."""
    reading = {name: getattr(args, name) for name in READING}
    return {
        "cluster": args.cluster,
        "workload": args.workload,
        "rules": rules,
        "reading": {name: value for name, value in reading.items() if value},
    }


def take_command(args: argparse.Namespace, folder: Path, *others: str) -> dict[str, Any]:
    """Set the inputs of `args` to those of a run directory, and return the rules of the run.

    Raises
    ------
    ConfigError, RunError
        if options of a run, or any of the arguments `others`, are given; if the run does not record its
        command; or if an input is missing or has changed.
    """
    from simsched.simulation.record.run_origin import read_origin

    given = next((name for name in (*others, *RULES, *READING) if getattr(args, name)), None)
    if given is not None:
        option = f"--{given.strip('_').replace('_', '-')}"
        raise ConfigError(
            "a run directory has its own options", where=option, expected="CLUSTER WORKLOAD with options"
        )
    origin = read_origin(folder / "run.json")
    command = origin.command
    if command is None:
        raise RunError(
            "the run does not record its command", where=str(folder), expected="a run of `simsched run`"
        )
    args.cluster, args.workload = command.cluster, command.workload
    for name, value in command.specified().items():
        setattr(args, name, value)
    _refuse_changed_inputs(args, origin, folder)
    return command.rules


def _refuse_changed_inputs(args: argparse.Namespace, origin: Origin, folder: Path) -> None:
    """Raise RunError if an input of a run is missing or has changed since the run was made."""
    from simsched.bundled import resolve
    from simsched.simulation.record.file_digests import digest_of
    from simsched.workload.load import resolve_workload

    find: dict[str, Callable[[str], Path]] = {
        "cluster": partial(resolve, "clusters"),
        "workload": resolve_workload,
    }
    for name, finder in find.items():
        if getattr(args, name) == "-":
            raise RunError(
                f"the {name} of the run was read from standard input", where=str(folder), expected="a file"
            )
        for known in origin.inputs:
            if known.role != name or known.sha256 is None:  # a folder of jobs has none
                continue
            try:
                place = finder(getattr(args, name))
            except SimschedError:
                raise RunError(
                    f"the {name} of {folder} is missing: it was moved, or the run was made in another folder",
                    where=str(getattr(args, name)),
                    expected="the file where run.json names it",
                ) from None
            if digest_of(place) != known.sha256:
                raise RunError(f"the file has changed since {folder} was made", where=str(place))
