"""``simsched policies``: the orders, factors and policies that exist, each with a sentence and its source.

The names come from the registries, so that a new policy needs no line here.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from simsched.cli.support.output import print_lines, write
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag
from simsched.errors import ConfigError, did_you_mean
from simsched.text_table import table_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from simsched.cli.support.parser import Subparsers
    from simsched.plugins.plugin_kind import PluginKind


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """One policy: its name, a sentence, and the options that it takes."""

    name: str
    text: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The policies of one kind: `option` chooses one, on the command line or in a configuration."""

    option: str
    entries: Callable[[], Iterator[PolicyEntry]]


class PoliciesFlags(Flags, frozen=True):
    """List orders, factors, policies, transforms and plug-ins, each with a sentence and its source.

    kinds : only these kinds (default: all).
    format : text (default) or json.
    """

    kinds: Annotated[tuple[str, ...], flag("KIND", positional=True, nargs="*")] = ()
    format: Literal["text", "json"] = "text"


def register(subparsers: Subparsers) -> None:
    """Add the verb `policies`."""
    about = f"List what can be chosen for a simulation: {', '.join(CATALOGUES)}."
    add_verb(subparsers, "policies", run_policies, PoliciesFlags, description=about)


def run_policies(args: argparse.Namespace) -> int:
    """Print the catalogues."""
    for kind in args.kinds:
        if kind not in CATALOGUES:
            homes = [name for name in CATALOGUES if any(e.name == kind for e in CATALOGUES[name].entries())]
            hint = f"; it is one of the {homes[0]}" if homes else did_you_mean(kind, CATALOGUES)
            raise ConfigError(f"unknown kind {kind!r}{hint}", where="KIND", expected=", ".join(CATALOGUES))
    found = {kind: list(CATALOGUES[kind].entries()) for kind in args.kinds or CATALOGUES}
    if args.format == "json":
        document = {
            kind: {"option": CATALOGUES[kind].option, "entries": [asdict(entry) for entry in entries]}
            for kind, entries in found.items()
        }
        write(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "json")
        return 0
    shown = {kind: entries for kind, entries in found.items() if entries or args.kinds}
    for number, (kind, entries) in enumerate(shown.items()):
        heading = f"{kind} ({CATALOGUES[kind].option})"
        print_lines(["", heading] if number else [heading])
        rows = [(entry.name, _with_options(entry)) for entry in entries]
        print_lines(table_lines(rows, indent="  ") if rows else ["  none of an installed package"])
    return 0


def _with_options(entry: PolicyEntry) -> str:
    return f"{entry.text}; options {entry.options}" if entry.options else entry.text


def _sentence(value: object) -> str:
    """Return the first sentence of a docstring, without its full stop."""
    return (getattr(value, "__doc__", None) or "").partition("\n")[0].rstrip(". ")


def _installed(kind: PluginKind) -> Iterator[PolicyEntry]:
    """Yield the plug-ins of a kind; one that cannot be loaded has the reason as its sentence."""
    for name in kind.names():
        try:
            text, options = kind.described(name)
        except ConfigError as error:
            text, options = error.message, ""
        yield PolicyEntry(name, text, options)


def _orders() -> Iterator[PolicyEntry]:
    from simsched.schedule.orders.fair_share import FairShare
    from simsched.schedule.orders.multifactor import Multifactor
    from simsched.schedule.orders.order import KIND, ORDERS

    for name, order in ORDERS.items():
        yield PolicyEntry(name, _sentence(order.keys))
    text = (
        "the users and banks with the least usage first, which decays with a half-life (Kay and Lauder 1988)"
    )
    yield PolicyEntry(f"{FairShare.name}[:HALF-LIFE]", text)
    text = "the greatest weighted sum of factors first (Slurm, priority/multifactor; flux-accounting)"
    yield PolicyEntry(Multifactor.name, text, "priority")
    text = (
        "jobs that have waited for longer than T first, by urgency and submission; then the others in ORDER"
        " (Lelong et al. 2017)"
    )
    yield PolicyEntry("starving(ORDER, T)", text)
    yield from _installed(KIND)


def _factors() -> Iterator[PolicyEntry]:
    from simsched.schedule.orders.priority_rules import FACTORS, PLUGINS

    for name, kind in FACTORS.items():
        yield PolicyEntry(name, f"{kind.text} ({kind.source})", ", ".join(kind.options))
    yield from _installed(PLUGINS)


def _fair_shares() -> Iterator[PolicyEntry]:
    from simsched.schedule.orders.fair_share import RULES

    for name, (_, text) in RULES.items():
        yield PolicyEntry(name, text)


def _presets() -> Iterator[PolicyEntry]:
    from simsched.schedule.orders.priority_rules import PRESETS

    for name, (_, text) in PRESETS.items():
        yield PolicyEntry(name, text)


def _queue_policies() -> Iterator[PolicyEntry]:
    from simsched.plugins.plugin_kind import options_of, options_text
    from simsched.schedule.policies.registry import KIND, POLICIES

    for name, maker in POLICIES.items():
        yield PolicyEntry(name, _sentence(maker), options_text(options_of(maker)))
    yield from _installed(KIND)


def _match_policies() -> Iterator[PolicyEntry]:
    from simsched.match.policies.policy import KIND, POLICIES

    for name, policy in POLICIES.items():
        yield PolicyEntry(name, policy.says)
    yield from _installed(KIND)


def _limits() -> Iterator[PolicyEntry]:
    from simsched.simulation.limits.limit_kinds import KINDS

    for name, kind in KINDS.items():
        yield PolicyEntry(name, f"{kind.meaning} ({kind.source})")


def _predictors() -> Iterator[PolicyEntry]:
    from simsched.schedule.predictors.predictor import CORRECTIONS, KIND, LIMIT, PREDICTORS

    yield PolicyEntry(LIMIT, "the requested duration of the job, the default (slurm.conf(5); Lifka 1995)")
    for name, maker in PREDICTORS.items():
        yield PolicyEntry(name, _sentence(maker), "" if name == "perfect" else ", ".join(CORRECTIONS))
    yield from _installed(KIND)


def _metrics() -> Iterator[PolicyEntry]:
    from simsched.report.metrics.metric_plugins import KIND

    return _installed(KIND)


def _workload_readers() -> Iterator[PolicyEntry]:
    from simsched.workload.load import READERS
    from simsched.workload.reader_plugins import KIND

    for name, reader in READERS.items():
        yield PolicyEntry(name, reader.summary)
    yield from _installed(KIND)


def _cluster_readers() -> Iterator[PolicyEntry]:
    from simsched.graph.build.cluster_plugins import KIND

    return _installed(KIND)


def _transforms() -> Iterator[PolicyEntry]:
    from simsched.workload.transforms.steps import STEPS

    for form, text, *_ in STEPS.values():
        yield PolicyEntry(form, text)


def _report_sections() -> Iterator[PolicyEntry]:
    from simsched.report.section_plugins import KIND

    return _installed(KIND)


def _preemption() -> Iterator[PolicyEntry]:
    from simsched.simulation.preemption.preemption_rules import MODES

    for name, text in MODES.items():
        yield PolicyEntry(name, f"{text} (slurm.conf(5), PreemptMode)")


def _reservations() -> Iterator[PolicyEntry]:
    from simsched.declare.table import fields_of
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation

    for field in fields_of(AdvanceReservation).values():
        yield PolicyEntry(field.key, field.text)


def _backfill_options() -> Iterator[PolicyEntry]:
    from simsched.declare.table import fields_of, is_declared
    from simsched.schedule.policies.registry import POLICIES

    declared = [fields_of(maker) for maker in POLICIES.values() if is_declared(maker)]
    found = {key: field.text for fields in reversed(declared) for key, field in fields.items()}
    for name, text in found.items():
        yield PolicyEntry(name, text)


CATALOGUES: dict[str, Catalogue] = {
    "queue-policies": Catalogue("--queue-policy", _queue_policies),
    "orders": Catalogue("--order", _orders),
    "factors": Catalogue("priority.factors", _factors),
    "fair-share": Catalogue("priority.fair-share.method", _fair_shares),
    "presets": Catalogue("priority.preset", _presets),
    "backfill": Catalogue("--option", _backfill_options),
    "predictors": Catalogue("--predictor", _predictors),
    "limits": Catalogue("[[limits]]", _limits),
    "preemption": Catalogue("preemption.mode", _preemption),
    "reservations": Catalogue("[[reservations]]", _reservations),
    "match-policies": Catalogue("--match-policy", _match_policies),
    "transforms": Catalogue("--transform", _transforms),
    "workload-readers": Catalogue("--as", _workload_readers),
    "cluster-readers": Catalogue("by content", _cluster_readers),
    "metrics": Catalogue("--metric", _metrics),
    "report-sections": Catalogue("--section", _report_sections),
}
"""Kind → its catalogue, in the order in which they are printed; the last three have only plug-ins."""
