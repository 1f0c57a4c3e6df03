"""The options of a run on the command line, and their combination with ``--config``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from simsched.cli.options.workloads import READING
from simsched.cli.support.messages import note
from simsched.declare.flags import Flags, add_flags, flag, flags_given
from simsched.errors import ConfigError, RunError, SimschedError
from simsched.simulation.options.plain_options import PlainOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from simsched.formats.rfc.clock import When
    from simsched.simulation.record.run_origin import Origin
    from simsched.site.site import Site

COMMAND_LINE = "the command line"
"""The place of options in messages."""


class ConfigFlags(Flags, frozen=True):
    """The configuration of a run.

    config : configuration in TOML, YAML or JSON; options given here override it.
    """

    config: Annotated[str | None, flag("FILE")] = None


class ChangeFlags(Flags, frozen=True, kw_only=True):
    """Changes of a configuration.

    outages : outages: a list of {ranks or hosts, start, end, kind} in JSON or YAML; times are durations
        or dates.
    option : variation of the queue policy (backfill-order=sjf, extra=no, reservation=none …) or of the
        simulation (passes=event, candidates=actual); may be repeated.
    """

    outages: Annotated[str | None, flag("FILE")] = None
    option: Annotated[tuple[str, ...], flag("KEY=VALUE")] = ()


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add the options of a simulation."""
    rules = parser.add_argument_group("options of the simulation")
    add_flags(rules, ConfigFlags)
    add_flags(rules, PlainOptions)
    add_flags(rules, ChangeFlags)


def checked_rules(args: argparse.Namespace, site: Site | None = None) -> dict[str, Any]:
    """Return the fields of `RunConfig` from the configuration file, overridden by the command line."""
    return rules_of(args, rules_document(args, site))


def rules_of(args: argparse.Namespace, document: dict[str, Any], where: str = COMMAND_LINE) -> dict[str, Any]:
    """Return the fields of a checked document; the transforms of the workload draw from its seed too."""
    from simsched.simulation.options.run_config import from_document

    options = from_document(document, where)
    args.seed = options.get("seed", 0)
    return options


def rules_document(args: argparse.Namespace, site: Site | None = None) -> dict[str, Any]:
    """Return the rules as a configuration document: plain data that a worker elsewhere can read.

    The configuration of a site takes the place of that of ``--config``.

    Raises
    ------
    ConfigError, FormatError
        for an option that is not valid, with its place.
    """
    from simsched.simulation.options.run_config import (
        POLICY,
        POLICY_OPTIONS,
        from_document,
        in_use,
        make_config,
        merged,
        options_note,
    )

    simulation, policy = _options(args)
    found = _config(args.config) if args.config else {}
    if site is not None:
        found = dict(site.config)
    given = flags_given(args, PlainOptions)
    changes = {name.replace("_", "-"): value for name, value in given.items()} | simulation
    if args.outages:
        changes["outages"] = [*_listed(found.get("outages", [])), *_outages(args.outages)]
    if policy:
        changes[POLICY_OPTIONS] = policy
    found = merged(found, changes)
    make_config(**from_document(found, COMMAND_LINE))
    if (text := options_note(found.get(POLICY), found.get(POLICY_OPTIONS, {}))) is not None:
        note(text)
    return in_use(found)


def _options(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of ``--option``: those of the simulation, and those of the queue policy."""
    from simsched.declare.table import fields_of

    known = fields_of(PlainOptions)
    simulation: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    for text in args.option:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f"{text!r} is not an option", where="--option", expected="KEY=VALUE")
        name = "passes" if key == "pass" else key.replace("_", "-")
        if name in known and known[name].kind.choices:
            simulation[name] = value
        else:
            policy[key.replace("-", "_")] = value  # the queue policy checks its own options
    return simulation, policy


def _config(path: str) -> dict[str, Any]:
    """Return a configuration file, checked, as a document whose keys are spelt with ``-``."""
    from simsched.simulation.options.config_file import read_document
    from simsched.simulation.options.run_config import from_document

    document = read_document(path)
    from_document(document, path)
    return {key.replace("_", "-"): value for key, value in document.items()}


def _outages(path: str) -> list[Any]:
    """Return a file of outages, checked, as a list of documents."""
    from simsched.formats.text.documents import load_document, read_text
    from simsched.simulation.outages.outages import read_outages

    try:
        text = read_text(path)
    except SimschedError as error:
        expected = error.expected or "a JSON or YAML file with a list of {ranks or hosts, start, end, kind}"
        raise type(error)(error.message, where=f"--outages: {error.where}", expected=expected) from None
    document = load_document(text, path)
    read_outages(document, path)
    return _listed(document)


def _listed(outages: Any) -> list[Any]:
    """Return the list of outages, which may be under the key ``outages``."""
    found: list[Any] = outages["outages"] if isinstance(outages, dict) else outages
    return found


def time_of(text: str, where: str) -> When:
    """Read a time of 0 or more, or a date; whole seconds stay integers."""
    from simsched.formats.rfc.clock import parse_when

    seconds = parse_when(text, where)
    if seconds == float("inf"):
        raise ConfigError(
            "the time is infinite", where=where, expected="seconds, a finite duration, or a date"
        )
    return seconds


# --- the command of a run as its ``run.json`` records it: enough to repeat the run from its inputs


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
