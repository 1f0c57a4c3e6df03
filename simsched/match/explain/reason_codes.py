"""Stable codes of the reasons against a request, in one table; programs rely on them, and texts may change.

A code that begins with ``graph-`` is about the resources of a cluster, the others are about the
configuration of its queues.  The codes in `NOTES` do not refuse a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from simsched.declare.answers import Written, json_of

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Code → its meaning, as the manual has it.
REASON_CODES: Mapping[str, str] = {
    "queue-unknown": "the configuration has no queue of this name",
    "queue-disabled": "the queue accepts no jobs",
    "queue-constraint": "the request fits on the cluster, but not on the nodes of the queue",
    "limit-duration": "the requested duration is above the limit of the queue, or no duration is requested",
    "limit-nodes-max": "the request needs more nodes than the queue allows",
    "limit-nodes-min": "the request needs fewer nodes than the queue requires",
    "limit-cores-max": "the request needs more cores than the queue allows",
    "limit-cores-min": "the request needs fewer cores than the queue requires",
    "limit-gpus-max": "the request needs more GPUs than the queue allows",
    "limit-gpus-min": "the request needs fewer GPUs than the queue requires",
    "limit-scope": "a limit on a user, an account, a queue, a QoS or single jobs never allows the request",
    "queue-none": "the request names no queue, and the configuration has no default queue",
    "queue-stopped": "the queue is stopped: it accepts jobs, but none of them starts",
    "default-queue": "the request names no queue and gets the default queue",
    "default-duration": "the request has no duration and gets that of the queue",
    "reservation-ahead": "the job cannot end before a reservation or maintenance of nodes that it needs",
    "graph-type": "the cluster has no resource of this type",
    "graph-count": "the idle cluster has too few of the resources",
    "graph-down": "too few of the resources are up",
    "graph-property": "the constraint requires a property that nothing on the cluster has",
    "graph-constraint": "too few of the resources satisfy the constraint",
    "graph-id": "too few of the resources have the requested ids or names",
    "graph-busy": "too few of the resources are idle",
    "graph-content": "too few of the candidates contain the rest of the request",
    "graph-apart": "the parts of the request exist, but not on the same nodes",
    "graph-together": "each part of the request fits by itself, but not all of them together",
    "graph-undecided": "the exact search reached its limit",
}

NOTES = frozenset({"queue-none", "queue-stopped", "default-queue", "default-duration", "reservation-ahead"})
"""The codes that do not refuse a request."""


ReasonCode = Annotated[str, json_of(enum=list(REASON_CODES))]


class Reason(Written, frozen=True):
    """One reason with its code.

    ``str()`` is a line for people.

    Attributes
    ----------
    code : stable; docs/checks.md lists the meanings.
    text : a sentence with the names and numbers of the case, which may change.
    queue : the queue that it is about; empty for reasons of the graph.
    limit, requested : the two values that were compared (a number of units, or seconds), if there are two;
        a request without a limit has no value.
    """

    code: ReasonCode
    text: str
    queue: str = ""
    limit: float | None = None
    requested: float | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"
