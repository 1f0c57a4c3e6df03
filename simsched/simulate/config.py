"""`RunConfig`: every choice that makes one run differ from another."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOICES = {
    "overrun": ("timeout", "allow"),
    "passes": ("instant", "event"),
    "candidates": ("requested", "actual"),
}


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The rules of one run.

    Attributes
    ----------
    queue_policy, queue_options : the policy's name and its own options.
    order : the job order.
    match_policy : which of several possible matches is taken.
    seed : of every random choice.
    overrun : ``timeout`` ends a job at its requested duration; ``allow`` lets it run on.
    passes : ``instant``: one scheduling pass after all events of an instant; ``event``: one
        after each event.
    candidates : what backfill candidates are judged by: their ``requested`` durations, or the
        ``actual`` ones that no scheduler can know.
    """

    queue_policy: str = "easy"
    match_policy: str = "first"
    order: str = "fifo"
    seed: int = 0
    overrun: str = "timeout"
    passes: str = "instant"
    candidates: str = "requested"
    queue_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for option, accepted in CHOICES.items():
            value = getattr(self, option)
            if value not in accepted:
                raise ConfigError(f"unknown value {value!r} of {option}", expected=", ".join(accepted))
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ConfigError(f"seed is {self.seed!r}", expected="a whole number from 0 on")

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data, for ``run.json``."""
        return asdict(self)
