"""The preemption and the advance reservations of a site as rows of text, for ``site show`` and the README."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.formats.rfc.duration import format_duration
from simsched.site.log_use import queues_of

if TYPE_CHECKING:
    from simsched.site.site import Site

PREEMPTION = ("jobs of", "preempt", "are preempted with", "grace", "exempt")
RESERVATIONS = ("reservation", "start", "duration", "nodes", "for", "options")
MISSING = "-"


def preemption_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `PREEMPTION` per queue or QoS; none without preemption."""
    from simsched.simulation.preemption.preemption_rules import QOS, read_preemption
    from simsched.simulation.queues import Queues

    rules = read_preemption(site.config.get("preemption"), "preemption")
    if rules is None:
        return []
    if rules.by == QOS:
        preempts: dict[str, tuple[str, ...]] = dict(rules.preempts)
        victims = (name for some in preempts.values() for name in some)
        names = list(dict.fromkeys((*preempts, *dict(rules.named), *victims)))
    else:
        queues = (queues_of(site) or Queues({})).queues
        preempts = {
            name: tuple(other.name for other in queues.values() if other.priority < queue.priority)
            for name, queue in queues.items()
            if queue.preempts
        }
        names = list(queues)
    word = "QoS" if rules.by == QOS else "queue"
    found: list[tuple[str, ...]] = []
    for name in names:
        rule = rules.rule_of(name)
        times = (_time(rule.grace), _time(rule.exempt))
        found.append((f"{word} {name}", ", ".join(preempts.get(name, ())) or MISSING, rule.mode, *times))
    return found


def _time(seconds: float) -> str:
    return format_duration(seconds) if seconds else MISSING


def reservation_rows(site: Site) -> list[tuple[str, ...]]:
    """Return one row of `RESERVATIONS` per advance reservation."""
    from simsched.simulation.reservations.reservation_rules import PLACES, SWITCHES, WHO, read_reservations

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
