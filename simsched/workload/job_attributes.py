"""Attributes of requests that logs state in columns of their own: licences, reservations, checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simsched.formats.jobspec.jobspec import Jobspec


def with_attributes(
    spec: Jobspec, licences: str | None, reservation: str | None, interval: str | None = None
) -> Jobspec:
    """Return a request with the licences, the reservation and the checkpoints of a row, if it has them.

    >>> from simsched.formats.jobspec.jobspec import Jobspec
    >>> with_attributes(Jobspec.from_shape("slot=1/core"), "x:2", None, "600").system["licenses"]
    'x:2'
    """
    keys: dict[str, Any] = {}
    if licences:
        keys["licenses"] = licences
    if reservation:
        keys["reservation"] = reservation
    if interval and interval.strip("0."):
        keys["checkpoint"] = {"interval": interval}
    return spec.with_system(**keys) if keys else spec
