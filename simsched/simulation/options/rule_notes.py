"""Notes on rules that are valid and probably wrong: names that no job has, rules that have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import did_you_mean, nearest
from simsched.formats.jobspec.sharing_notes import notes_on_sharing
from simsched.formats.rfc.constraint import gpu_type_of
from simsched.match.policies.policy import find_policy
from simsched.schedule.orders.priority_rules import NamedNumbers
from simsched.simulation.limits.limit_rules import GPU_TYPE
from simsched.simulation.options.run_config import make_config, options_note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.simulation.options.run_config import RunConfig
    from simsched.workload.job import Workload

MULTIFACTOR = "multifactor"
OF_USERS = "fields 17 and 18 of SWF, or -t 'sessions(20m)'"
"""Where preceding jobs come from."""
SHOWN = 2
"""Further names that the note has at most."""
MAX_COMPARED = 20_000
"""Pairs of names that are compared at most: 10 µs each."""


def notes_on_rules(options: Mapping[str, Any], workload: Workload) -> Iterator[str]:
    """Yield sentences on the options of a run, as `make_config` takes them.

    There is one if limits name users, accounts, queues or QoS that are probably mistyped: none of the names
    of that kind occurs, or one does not and is like one that occurs without a limit. A name occurs if a job,
    a queue of the configuration, an account or a factor of the priority has it. Other names without jobs are
    no matter: a site has limits for more QoS than a log has. There is one if the order is not the one that
    uses the priority, one if only other queue policies have options, one if think times are honoured and
    no job has a preceding job, and one if jobs claim nothing.
    """
    text = options_note(options.get("queue_policy"), options.get("queue_options") or {})
    if text is not None:
        yield text
    if options.get("think_times") == "honour" and all(job.preceding is None for job in workload.jobs):
        yield f"think times: no job has a preceding job (expected {OF_USERS})"
    if not find_policy(options.get("match_policy") or "first").whole_nodes:
        yield from notes_on_sharing((job.jobspec.resources for job in workload.jobs), "job")
    parts = {key: options[key] for key in ("limits", "queues", "priority", "order") if options.get(key)}
    if "limits" not in parts and "priority" not in parts:
        return
    config = make_config(**parts)
    if config.priority is not None and isinstance(config.order, str) and MULTIFACTOR not in config.order:
        yield f"priority is not used by the order {config.order} (expected order = {MULTIFACTOR})"
    yield from _notes_on_names(config, workload)


def _notes_on_names(config: RunConfig, workload: Workload) -> Iterator[str]:
    """Yield one sentence if limits have names that are probably mistyped, with the first of them."""
    places: dict[tuple[str, str], str] = {}  # (dimension, name) → the first place
    for rule in config.limits:
        for dimension, names in rule.names.items():
            for name in names:
                places.setdefault((dimension, name), f"{rule.place}.{dimension}")
    if not places:
        return
    known = _known(config, workload)
    without_limit = {kind: known[kind] - {name for of, name in places if of == kind} for kind in known}
    occurring = {dimension for dimension, name in places if name in known[dimension]}
    absent = [(*key, where) for key, where in places.items() if key[1] not in known[key[0]]]
    alike = len(absent) * max(map(len, without_limit.values())) <= MAX_COMPARED
    unknown = [
        (dimension, name, where)
        for dimension, name, where in absent
        if dimension not in occurring or (alike and nearest(name, without_limit[dimension]))
    ]
    if not unknown:
        return
    (dimension, name, where), *others = unknown
    text = (
        f"{where}: no job has the {dimension} {name!r}{did_you_mean(name, without_limit[dimension])}".rstrip(
            "?"
        )
    )
    for dimension, name, where in others[:SHOWN]:
        text += f"; nor the {dimension} {name!r} ({where})"
    rest = len(others) - SHOWN
    yield text + (f"; nor {rest:,} more name{'s' if rest > 1 else ''}" if rest > 0 else "")


def _known(config: RunConfig, workload: Workload) -> dict[str, set[str]]:
    """Return the names that occur, by dimension."""
    known: dict[str, set[str]] = {
        dimension: {str(name) for name in {getattr(job, field) for job in workload.jobs} if name is not None}
        for dimension, field in (("user", "user"), ("account", "bank"), ("queue", "queue"), ("qos", "qos"))
    }
    requests = {id(job.jobspec): job.jobspec for job in workload.jobs}.values()
    known[GPU_TYPE] = {kind for spec in requests if (kind := gpu_type_of(spec.constraint)) is not None}
    known["array"] = {job.array_task.array for job in workload.jobs if job.array_task is not None}
    if config.queues is not None:
        known["queue"].update(config.queues.queues)
    if config.priority is not None:
        for row in config.priority.accounts or ():
            known["account"].add(row.account)
            known["user"].update([row.user] if row.user else [])
        for factor in config.priority.factors:
            if factor.kind == "qos" and isinstance(factor, NamedNumbers):
                known["qos"].update(factor.values or ())
    return known
