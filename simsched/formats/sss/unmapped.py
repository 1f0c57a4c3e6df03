"""What a Job Object says and its jobspec does not: by name, for the one who converts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.formats.sss import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.formats.sss.elements import Element

_INNER = ("Requested", "TaskGroup", "TaskGroupDefaults", "Task", "TaskDefaults")
_UNSAID = {"metric", "duration", "consumptionRate", "dynamic", "performanceFactor"}


def not_in_jobspec(jobs: Iterable[Element]) -> dict[str, int]:
    """Return name of an element or attribute → in how many jobs it is, of what no jobspec holds.

    That is what is carried along, what belongs to the job and not to its request (its id, user,
    times, state), and what was delivered.  Under the awareness policy Ignore nothing is counted.
    """
    found: dict[str, int] = {}
    for job in jobs:
        for name in dict.fromkeys(_unsaid(job)):
            found[name] = found.get(name, 0) + 1
    return found


def _unsaid(scope: Element) -> Iterator[str]:
    """Yield the names of what a job, task group, task or request says in vain."""
    known = (
        vocabulary.CONTAINERS[scope.name][0]
        if scope.name in vocabulary.CONTAINERS
        else vocabulary.JOB_PROPERTIES
    )
    for child in scope.children:
        if child.name in _INNER:
            yield from _unsaid(child)
        elif child.policy == "Ignore" or child.name == "Id":
            continue
        elif child.name == "Delivered" or child.attribute("context") == "Used":
            yield child.name
        elif child.name in known:
            prop = known[child.name]
            if prop.use == "carried" or "record" in prop.to:
                yield child.name
            else:
                yield from (f"@{key}" for key, _ in child.attributes if key in _UNSAID)
