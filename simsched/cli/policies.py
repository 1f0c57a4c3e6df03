"""``simsched policies``: the orders, factors and policies that exist, each with a sentence and its source.

The names come from the registries, so that a new policy needs no line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Literal

from simsched.cli.support.output import answer
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag
from simsched.errors import ConfigError, did_you_mean
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.plugins.plugin_kind import PluginKind


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """One policy: its name, a sentence, and the options that it takes."""

    name: str
    text: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """The policies of a kind, and the option that chooses one."""

    option: str
    entries: list[PolicyEntry]


Policies = dict[str, PolicyKind]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The policies of one kind: `option` chooses one, on the command line or in a configuration.

    own : returns the name, the sentence and perhaps the options of each policy of simsched.
    plugins : module and name of the kind of plug-ins that are policies of the kind; "" for none.
    """

    option: str
    own: Callable[[], Iterable[tuple[str, ...]]] = tuple
    plugins: str = ""

    def entries(self) -> Iterator[PolicyEntry]:
        """Yield the policies, those of plug-ins last; one that cannot be loaded has the reason in place."""
        yield from (PolicyEntry(*row) for row in self.own())
        if not self.plugins:
            return
        module, _, name = self.plugins.partition(":")
        kind: PluginKind = getattr(import_module(f"simsched.{module}"), name)
        for known in kind.names():
            try:
                text, options = kind.described(known)
            except ConfigError as error:
                text, options = error.message, ""
            yield PolicyEntry(known, text, options)


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
    add_verb(subparsers, "policies", run_policies, PoliciesFlags, answers=["policies"], description=about)


def run_policies(args: Arguments) -> int:
    """Print the catalogues."""
    for kind in args.kinds:
        if kind not in CATALOGUES:
            homes = [name for name in CATALOGUES if any(e.name == kind for e in CATALOGUES[name].entries())]
            hint = f"; it is one of the {homes[0]}" if homes else did_you_mean(kind, CATALOGUES)
            raise ConfigError(f"unknown kind {kind!r}{hint}", where="KIND", expected=", ".join(CATALOGUES))
    found = {kind: list(CATALOGUES[kind].entries()) for kind in args.kinds or CATALOGUES}
    kinds = {kind: PolicyKind(CATALOGUES[kind].option, entries) for kind, entries in found.items()}
    answer(args.format, lambda: kinds, lambda: _lines(kinds, empty_too=bool(args.kinds)))
    return 0


def _lines(kinds: Policies, *, empty_too: bool) -> Iterator[str]:
    shown = {name: kind for name, kind in kinds.items() if kind.entries or empty_too}
    for number, (name, kind) in enumerate(shown.items()):
        yield from [""] * bool(number)
        yield f"{name} ({kind.option})"
        rows = [(e.name, f"{e.text}; options {e.options}" if e.options else e.text) for e in kind.entries]
        yield from table_lines(rows, indent="  ") if rows else ["  none of an installed package"]


def _sentence(value: object) -> str:
    """Return the first sentence of a docstring, without its full stop."""
    return (getattr(value, "__doc__", None) or "").partition("\n")[0].rstrip(". ")


def _orders() -> Iterator[tuple[str, ...]]:
    from simsched.schedule.orders.fair_share import FairShare
    from simsched.schedule.orders.multifactor import Multifactor
    from simsched.schedule.orders.order import ORDERS

    yield from ((name, _sentence(order.keys)) for name, order in ORDERS.items())
    text = "the users and banks with the least usage first, which decays with a half-life"
    yield f"{FairShare.name}[:HALF-LIFE]", f"{text} (Kay and Lauder 1988)"
    text = "the greatest weighted sum of factors first (Slurm, priority/multifactor; flux-accounting)"
    yield Multifactor.name, text, "priority"
    text = "jobs that have waited for longer than T first, by urgency and submission; then the others in"
    yield "starving(ORDER, T)", f"{text} ORDER (Lelong et al. 2017)"


def _factors() -> Iterator[tuple[str, ...]]:
    from simsched.schedule.orders.priority_rules import FACTORS

    for name, kind in FACTORS.items():
        yield name, f"{kind.text} ({kind.source})", ", ".join(kind.options)


def _fair_shares() -> Iterator[tuple[str, ...]]:
    from simsched.schedule.orders.fair_share import RULES

    return ((name, text) for name, (_, text) in RULES.items())


def _presets() -> Iterator[tuple[str, ...]]:
    from simsched.schedule.orders.priority_rules import PRESETS

    return ((name, text) for name, (_, text) in PRESETS.items())


def _queue_policies() -> Iterator[tuple[str, ...]]:
    from simsched.plugins.plugin_kind import options_of, options_text
    from simsched.schedule.policies.registry import POLICIES, AnyPolicy

    for name, maker in POLICIES.items():
        yield name, _sentence(maker), options_text({**options_of(maker), **options_of(AnyPolicy)})


def _match_policies() -> Iterator[tuple[str, ...]]:
    from simsched.match.policies.policy import POLICIES

    return ((name, policy.says) for name, policy in POLICIES.items())


def _limits() -> Iterator[tuple[str, ...]]:
    from simsched.simulation.limits.limit_kinds import KINDS

    return ((name, f"{kind.meaning} ({kind.source})") for name, kind in KINDS.items())


def _predictors() -> Iterator[tuple[str, ...]]:
    from simsched.schedule.predictors.predictor import CORRECTIONS, LIMIT, PREDICTORS

    yield LIMIT, "the requested duration of the job, the default (slurm.conf(5); Lifka 1995)"
    for name, maker in PREDICTORS.items():
        yield name, _sentence(maker), "" if name == "perfect" else ", ".join(CORRECTIONS)


def _workload_readers() -> Iterator[tuple[str, ...]]:
    from simsched.workload.load import READERS

    return ((name, reader.summary) for name, reader in READERS.items())


def _transforms() -> Iterator[tuple[str, ...]]:
    from simsched.workload.transforms.steps import STEPS

    return ((step.form, step.text) for step in STEPS.values())


def _preemption() -> Iterator[tuple[str, ...]]:
    from simsched.simulation.preemption.preemption_rules import MODES

    return ((name, f"{text} (slurm.conf(5), PreemptMode)") for name, text in MODES.items())


def _reservations() -> Iterator[tuple[str, ...]]:
    from simsched.declare.table import fields_of
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation

    return ((field.key, field.text) for field in fields_of(AdvanceReservation).values())


def _backfill_options() -> Iterable[tuple[str, ...]]:
    from simsched.declare.table import fields_of, is_declared
    from simsched.schedule.policies.registry import POLICIES

    declared = [fields_of(maker) for maker in POLICIES.values() if is_declared(maker)]
    return {key: field.text for fields in reversed(declared) for key, field in fields.items()}.items()


CATALOGUES: dict[str, Catalogue] = {
    "queue-policies": Catalogue("--queue-policy", _queue_policies, "schedule.policies.registry:KIND"),
    "orders": Catalogue("--order", _orders, "schedule.orders.order:KIND"),
    "factors": Catalogue("priority.factors", _factors, "schedule.orders.priority_rules:PLUGINS"),
    "fair-share": Catalogue("priority.fair-share.method", _fair_shares),
    "presets": Catalogue("priority.preset", _presets),
    "backfill": Catalogue("--option", _backfill_options),
    "predictors": Catalogue("--predictor", _predictors, "schedule.predictors.predictor:KIND"),
    "limits": Catalogue("[[limits]]", _limits),
    "preemption": Catalogue("preemption.mode", _preemption),
    "reservations": Catalogue("[[reservations]]", _reservations),
    "match-policies": Catalogue("--match-policy", _match_policies, "match.policies.policy:KIND"),
    "transforms": Catalogue("--transform", _transforms),
    "workload-readers": Catalogue("--as", _workload_readers, "workload.load:KIND"),
    "cluster-readers": Catalogue("by content", plugins="graph.build.cluster_plugins:KIND"),
    "metrics": Catalogue("--metric", plugins="report.metrics.metric_plugins:KIND"),
    "report-sections": Catalogue("--section", plugins="report.section_plugins:KIND"),
}
"""Kind → its catalogue, in the order in which they are printed; the last three have only plug-ins."""
