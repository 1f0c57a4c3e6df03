"""The results of a run are written into its Job Objects: State, StartTime, EndTime and Delivered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from simsched.formats.text.xml_tree import Element

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.rfc.hostlist import Hostlist
    from simsched.formats.sss.document import Document

STATES = {
    "COMPLETED": "Completed",
    "TIMEOUT": "Completed",
    "FAILED": "Completed",
    "CANCELED": "Completed",
    "RUNNING": "Running",
    "PENDING": "Idle",
    "INFEASIBLE": "Hold",
    "DROPPED": "Hold",
}
"""The document's states for the results of a run."""


@dataclass(frozen=True, slots=True)
class DeliveredValues:
    """The result of a job; None: not known.

    `state` is a result of a run (``COMPLETED`` …) or a state of the document's, times are seconds,
    `memory` MB in total, `message` goes into StatusMessage.
    """

    state: str
    start: float | None = None
    end: float | None = None
    processors: int | None = None
    hosts: Hostlist | None = None
    memory: float | None = None
    exit_code: int | None = None
    message: str | None = None


def with_results(document: Document, results: Mapping[str, DeliveredValues]) -> Document:
    """Return the document with the results of its jobs, by id; everything else is unchanged."""
    return replace(document, root=_visited(document.root, results))


def _visited(element: Element, results: Mapping[str, DeliveredValues]) -> Element:
    if element.name == "Job" and not element.is_reference:
        result = results.get(element.value("Id") or "")
        return element if result is None else delivered(element, result)
    if element.name in ("JobGroup", "Data"):
        return replace(element, children=tuple(_visited(child, results) for child in element.children))
    return element


def delivered(job: Element, result: DeliveredValues) -> Element:
    """Return the job with its result in State, StartTime, EndTime, ExitCode, StatusMessage and Delivered.

    >>> job = Element("Job", (), "", (Element("Id", (), "1"),))
    >>> print(delivered(job, DeliveredValues("COMPLETED", 0, 60, 4)).first("Delivered"))
    <Delivered>
      <Processors>4</Processors>
      <Duration>60</Duration>
    </Delivered>
    """
    state = STATES.get(result.state, result.state)
    on_hold = result.state == "PENDING" and (job.value("State") or "").strip() == "Hold"
    values = {
        "State": "Hold" if on_hold else state,  # a job on hold stays on hold
        "StartTime": _seconds(result.start),
        "EndTime": _seconds(result.end),
        "ExitCode": _whole(result.exit_code),
        "StatusMessage": result.message,
    }
    new = [Element(name, (), text) for name, text in values.items() if text is not None]
    names = ("State", "StartTime", "EndTime", "Delivered", *(element.name for element in new))
    if properties := _properties(result):
        new.append(Element("Delivered", (), "", tuple(properties)))
    kept = job.without(*names).children
    return replace(job, children=(*kept, *new))


def _properties(result: DeliveredValues) -> list[Element]:
    """The delivered properties that are known."""
    found = []
    if result.processors is not None:
        found.append(Element("Processors", (), str(result.processors)))
    if result.hosts:
        found.append(Element("NodeCount", (), str(len(result.hosts))))
        found.append(Element("Node", (("aggregation", "Range"),), str(result.hosts)))
    if result.start is not None and result.end is not None:
        found.append(Element("Duration", (), str(round(result.end) - round(result.start))))
    if result.memory is not None:
        found.append(Element("Memory", (("units", "MB"),), f"{result.memory:g}"))
    return found


def _seconds(value: float | None) -> str | None:
    return None if value is None else str(round(value))


def _whole(value: int | None) -> str | None:
    return None if value is None else str(value)
