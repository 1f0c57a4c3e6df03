"""The options of a run on the command line, and their combination with ``--config``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from simsched.cli.support.messages import note
from simsched.declare.flags import Flags, add_flags, flag, flags_given
from simsched.errors import ConfigError, SimschedError
from simsched.simulation.options.plain_options import PlainOptions

if TYPE_CHECKING:
    import argparse

    from simsched.formats.rfc.clock import When
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
