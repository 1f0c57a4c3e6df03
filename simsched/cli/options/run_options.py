"""The options of a run on the command line, and their combination with ``--config``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.cli.options.workloads import whole
from simsched.cli.support.messages import note

if TYPE_CHECKING:
    import argparse

    from simsched.formats.rfc.clock import When
    from simsched.site.site import Site

NAMES = (
    *("queue_policy", "match_policy", "order", "seed", "overrun", "think_times", "on_failure", "no_limit"),
    "predictor",
)
"""Arguments whose values need no reading."""

COMMAND_LINE = "the command line"
"""The place of options in messages."""


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add the options of a simulation."""
    rules = parser.add_argument_group("options of the simulation")
    rules.add_argument(
        "--config", metavar="FILE", help="configuration in TOML, YAML or JSON; options given here override it"
    )
    rules.add_argument(
        "--queue-policy",
        metavar="Q",
        help="queue policy: fcfs, easy, easy++, conservative, slurm … (default easy); or recorded, the "
        "starts of the log",
    )
    rules.add_argument(
        "--match-policy", metavar="M", help="match policy: first, lonode, bestfit … (default first)"
    )
    rules.add_argument(
        "--order", metavar="O", help="order of the queue: fifo, priority, sjf, wfp3 … (default fifo)"
    )
    rules.add_argument(
        "--predictor",
        metavar="P",
        help="run times by which plans are made: limit, last-two, quantile(P, N), perfect (default limit)",
    )
    _add_conditions(rules)
    rules.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="variation of the queue policy (backfill-order=sjf, extra=no, reservation=none …) or of the "
        "simulation (passes=event, candidates=actual); may be repeated",
    )


def _add_conditions(rules: argparse._ArgumentGroup) -> None:
    """Add the options about jobs and nodes, whatever the policies."""
    rules.add_argument("--seed", metavar="S", type=whole, help="seed of every random choice (default 0)")
    rules.add_argument(
        "--overrun",
        choices=("timeout", "allow"),
        help="end a job at the end of its requested time, or let it run on (default timeout, and allow for "
        "--queue-policy recorded)",
    )
    rules.add_argument(
        "--kill-grace",
        metavar="D",
        help="let a job run on for D, such as 5m, beyond its requested time before it is ended (default 0)",
    )
    rules.add_argument(
        "--think-times",
        choices=("ignore", "honour"),
        help="ignore think times after the preceding job, or wait for them (default ignore)",
    )
    rules.add_argument(
        "--epilog", metavar="E", help="time that a node needs for cleanup after a job: 30s, or 10s..2m"
    )
    rules.add_argument(
        "--outages",
        metavar="FILE",
        help="outages: a list of {ranks or hosts, start, end, kind} in JSON or YAML; times are durations or "
        "dates",
    )
    rules.add_argument(
        "--failures", metavar="F", help="random failures of nodes: mtbf=30d,mttr=4h[,shape=0.7]"
    )
    rules.add_argument(
        "--on-failure",
        choices=("requeue", "fail"),
        help="requeue the jobs of a failed node, or let them fail (default requeue)",
    )
    rules.add_argument(
        "--no-limit",
        choices=("queue", "reject"),
        help="give a job without a duration the limit of its queue, or reject it (default queue)",
    )


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
        read_epilog,
    )

    simulation, policy = _options(args)
    found = _config(args.config) if args.config else {}
    if site is not None:
        found = dict(site.config)
    if args.epilog:
        read_epilog(args.epilog, "--epilog")
    given = {name: getattr(args, name) for name in (*NAMES, "epilog", "kill_grace", "failures")}
    given = {name: value for name, value in given.items() if value is not None} | simulation
    changes: dict[str, Any] = {name.replace("_", "-"): value for name, value in given.items()}
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
    from simsched.errors import ConfigError
    from simsched.simulation.options.run_config import CHOICES

    simulation: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    for text in args.option:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f"{text!r} is not an option", where="--option", expected="KEY=VALUE")
        name = "passes" if key == "pass" else key.replace("-", "_")
        if name in CHOICES:
            simulation[name] = value
        else:
            policy[name] = value  # the queue policy checks its own options
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
    from simsched.errors import SimschedError
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
    from simsched.errors import ConfigError
    from simsched.formats.rfc.clock import parse_when

    seconds = parse_when(text, where)
    if seconds == float("inf"):
        raise ConfigError(
            "the time is infinite", where=where, expected="seconds, a finite duration, or a date"
        )
    return seconds
