"""The nodes, queues, limits, preemption and reservations of a site as rows of text, and its README."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

from simsched.declare.answers import WrittenKeys, row_of
from simsched.formats.machines.description import Note
from simsched.formats.rfc.clock import DateText
from simsched.formats.rfc.duration import format_duration
from simsched.graph.inspect.view import summary
from simsched.human import plural
from simsched.simulation.limits.limit_kinds import KINDS as LIMIT_KINDS
from simsched.simulation.limits.limit_rules import DIMENSIONS, read_limits
from simsched.simulation.preemption.preemption_rules import QOS, read_preemption
from simsched.simulation.queues import Queue, Queues, Window
from simsched.simulation.reservations.reservation_rules import PLACES, SWITCHES, WHO, read_reservations
from simsched.site.log_use import queues_of
from simsched.site.site import Site, SiteSource
from simsched.text_table import clip_end, markdown_table
from simsched.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


NODES = ("nodes", "hosts", "each holds", "properties", "status")
QUEUES = ("queue", "nodes", "priority", "time limit", "default time", "job size", "closed")
LIMITS = ("jobs", "counted", "limits", "over")
FACTORS = ("factor", "weight", "options")
NodeRow = Annotated[dict[str, str], row_of(NODES)]
QueueRow = Annotated[dict[str, str], row_of(QUEUES)]
LimitRow = Annotated[dict[str, str], row_of(LIMITS)]
MISSING = "-"

KINDS = {"fault": "Not understood", "assumed": "Assumed", "left out": "Left out"}
"""Kind of a note → the heading of these notes, in their order."""


def node_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `NODES` per group of equal nodes."""
    return [
        (
            f"{group.count:,}",
            group.hosts,
            ", ".join(_amount(kind, amount) for kind, amount in group.holds.items()) or MISSING,
            " ".join(group.properties) or MISSING,
            group.status,
        )
        for group in summary(site.cluster.graph).groups
    ]


def queue_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `QUEUES` per queue; the default queue is marked."""
    queues = queues_of(site)
    if queues is None:
        return []
    index = site.cluster.index
    return [
        (
            name if name != queues.default else f"{name} (default)",
            f"{int(index.targets_matching(queue.constraint).sum()):,}",
            str(queue.priority),
            _time(queue.longest),
            _time(queue.default_duration),
            ", ".join(_sizes(queue)) or MISSING,
            ", ".join(map(_window, queue.closed)) or MISSING,
        )
        for name, queue in queues.queues.items()
    ]


def priority_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `FACTORS` per factor of the priority, then its other parts."""
    priority = site.config.get("priority")
    if not isinstance(priority, dict):
        return []
    rows: list[tuple[str, ...]] = []
    for name, given in priority.get("factors", {}).items():
        rest = dict(given) if isinstance(given, dict) else {"weight": given}
        rows.append((str(name), f"{rest.pop('weight', 1):g}", _options(rest)))
    apart = ("factors", "fair-share", "accounts")
    others = {key: value for key, value in priority.items() if key not in apart}
    rows.append(("all", MISSING, _options(others)))
    if priority.get("fair-share"):
        rows.append(("usage", MISSING, _options(priority["fair-share"])))
    accounts = priority.get("accounts")
    if isinstance(accounts, list):
        users = sum(isinstance(row, dict) and "user" in row for row in accounts)
        rows.append(("accounts", MISSING, f"{users:,} users in {len(accounts) - users:,} accounts"))
    return rows


def limit_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `LIMITS` per table ``[[limits]]``."""
    rows: list[tuple[str, ...]] = []
    for rule in read_limits(site.config.get("limits", ()), "limits"):
        given = rule.to_dict()
        names = {key: given[key] for key in DIMENSIONS if key in given}
        most = {key: LIMIT_KINDS[key].written(value) for key, value in rule.most.items()}
        counted = f"per {' and '.join(rule.each)}" if rule.each else "together"
        rows.append((_options(names) if names else "all", counted, _options(most), rule.over))
    return rows


def _options(values: dict[str, Any]) -> str:
    parts = []
    for key, value in values.items():
        inside = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(f"{key} ({_options(value)})" if isinstance(value, dict) else f"{key} {inside}")
    return ", ".join(parts) or MISSING


def _amount(kind: str, amount: object) -> str:
    """Return an amount with its type: ``1 core``, ``32 cores``, ``256,000 MiB memory``."""
    return f"{amount} {kind if str(amount) == '1' else plural(kind)}"


def _window(window: Window) -> str:
    if not isinstance(window, tuple):
        return str(window)
    if list(window) == [0, float("inf")]:
        return "always"
    return " to ".join(str(time) if isinstance(time, DateText) else _time(time) for time in window)


def _time(seconds: float | None) -> str:
    return MISSING if seconds is None or seconds == float("inf") else format_duration(seconds)


def _sizes(queue: Queue) -> Iterator[str]:
    for sign, sizes in (("at least", queue.least), ("at most", queue.most)):
        for key, number in sizes.items():
            kind = key.removeprefix("n")
            yield f"{sign} {number:,} {kind if number != 1 else kind.removesuffix('s')}"


def notes_by_kind(site: Site) -> dict[str, list[str]]:
    """Return the notes with their places under the headings of `KINDS`; empty headings are left out."""
    found: dict[str, list[str]] = {heading: [] for heading in KINDS.values()}
    for note in site.notes:
        found[KINDS[note.kind]].append(f"{note.where}: {note.text}" if note.where else note.text)
    return {heading: rows for heading, rows in found.items() if rows}


class ShownSite(WrittenKeys):
    """A site as ``site show`` writes it; the cells of its tables are texts for people.

    format : the format of the files of the centre; empty if the site was not imported.
    sources : the files from which it was imported.
    """

    name: str
    format: str
    sources: list[SiteSource]
    nodes: list[NodeRow]
    queues: list[QueueRow]
    limits: list[LimitRow]
    notes: list[Note]


def facts(site: Site) -> ShownSite:
    """Return the site as it is written."""
    return {
        "name": site.name,
        "format": site.format,
        "sources": list(site.sources),
        "nodes": [dict(zip(NODES, row, strict=True)) for row in node_rows(site)],
        "queues": [dict(zip(QUEUES, row, strict=True)) for row in queue_rows(site)],
        "limits": [dict(zip(LIMITS, row, strict=True)) for row in limit_rows(site)],
        "notes": list(site.notes),
    }


PREEMPTION = ("jobs of", "preempt", "are preempted with", "grace", "exempt")
RESERVATIONS = ("reservation", "start", "duration", "nodes", "for", "options")


def preemption_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `PREEMPTION` per queue or QoS; none without preemption."""
    rules = read_preemption(site.config.get("preemption"), "preemption")
    if rules is None:
        return []
    queues = (queues_of(site) or Queues({})).queues
    victims = {name: [*filter(None, some)] for name, some in rules.victims_of(queues).items()}
    names: Iterable[str] = queues
    if rules.by == QOS:
        names = dict.fromkeys(
            (*victims, *rules.tables, *(name for some in victims.values() for name in some))
        )
    word = "QoS" if rules.by == QOS else "queue"
    found: list[tuple[str, ...]] = []
    for name in names:
        rule = rules.rule_of(name)
        times = (format_duration(seconds) if seconds else MISSING for seconds in (rule.grace, rule.exempt))
        found.append((f"{word} {name}", ", ".join(victims.get(name, ())) or MISSING, rule.mode, *times))
    return found


def reservation_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `RESERVATIONS` per advance reservation."""
    found: list[tuple[str, ...]] = []
    for one in read_reservations(site.config.get("reservations", ()), "reservations"):
        given = one.to_dict()
        places = [str(given[key]) for key in PLACES if key in given]
        cores = given.get("cores")
        if isinstance(cores, int):
            places.append(f"{cores} cores of each")
        elif cores is not None:
            places += [f"cores {ids} of {host}" for host, ids in cores.items()]
        places += [f"{name}:{number}" for name, number in given.get("licenses", {}).items()]
        who = [f"{key} {', '.join(given[key])}" for key in WHO if key in given]
        more = [f"{given['repeat']}, {one.times} times"] if "repeat" in given else []
        more += [key for key in SWITCHES if key in given]
        cells = (", ".join((*places, *given.get("requires", ()))), " and ".join(who), ", ".join(more))
        times = (str(given["start"]), format_duration(one.duration))
        found.append((one.name, *times, *(cell or MISSING for cell in cells)))
    return found


# --- the README -------------------------------------------------------------------------------------

HOSTS = 80
"""The most characters of a hostlist in a table; the file of the machine has all hosts."""

USE = """\
## Use

    simsched feasible --site {folder} 'slot=4/core=8'
    simsched run --site {folder} {log} -o run
    simsched report run

Correct `{cluster}` and `queues.toml` where they are wrong. An import into this folder does not replace
a file that was edited."""


SAYS = {
    "Nodes": "The machine is in `{cluster}`. Partitions and features are properties of its nodes.",
    "Queues": "The queues are in `queues.toml`, which has the layout of `--config` and the words of RFC 33.",
    "Limits": "The tables `[[limits]]` of `queues.toml` hold or reject jobs that are over a limit.",
    "Preemption": "The table `preemption` of `queues.toml` says which jobs preempt which.",
    "Reservations": "The tables `[[reservations]]` of `queues.toml` keep nodes. A job names its reservation.",
    "Priority": "Jobs are ordered by `multifactor`; the table `priority` of `queues.toml` has its factors.",
}
NO_QUEUES = "The files describe no queues, so `queues.toml` is empty."


def tables(site: Site, width: int) -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Return heading → columns and rows of the tables of a site; `width`: characters of a hostlist."""
    nodes = [(count, clip_end(hosts, width), *rest) for count, hosts, *rest in node_rows(site)]
    kept = [tuple(clip_end(cell, width) for cell in row) for row in reservation_rows(site)]
    return {
        "Nodes": (NODES, nodes),
        "Queues": (QUEUES, queue_rows(site)),
        "Limits": (LIMITS, limit_rows(site)),
        "Preemption": (PREEMPTION, preemption_rows(site)),
        "Reservations": (RESERVATIONS, kept),
        "Priority": (FACTORS, priority_rows(site)),
    }


def readme(site: Site, cluster: str, folder: str) -> str:
    """Return the text of the README; `cluster` is the name of the file of the machine."""
    return "\n\n".join(_parts(site, cluster, folder)) + "\n"


def _parts(site: Site, cluster: str, folder: str) -> Iterator[str]:
    yield f"# Site {visible(site.name)}"
    if site.sources:
        sources = [(source.name, source.sha256[:16]) for source in site.sources]
        yield f"Imported by simsched from {site.format or 'these files'}."
        yield markdown_table(("file", "SHA-256 begins with"), sources)
    for heading, (columns, rows) in tables(site, HOSTS).items():
        if rows or heading == "Queues":
            yield f"## {heading}"
            yield SAYS[heading].format(cluster=cluster) if rows else NO_QUEUES
        if rows:
            yield markdown_table(columns, rows)
    found = notes_by_kind(site)
    for heading, notes in found.items():
        yield f"## {heading}"
        yield "\n".join(f"- {visible(text)}".replace("\n", " ") for text in notes)
    if not found:
        yield "Nothing was assumed or left out."
    log = shlex.quote(site.logs[0]) if site.logs else "LOG"
    yield USE.format(folder=shlex.quote(folder), cluster=cluster, log=log)
