"""Outages of nodes: failures, drains, and announced maintenance.

failure      the targets go down at once; jobs on them fail or are queued again
drain        no job starts on the targets; running jobs continue
maintenance  announced beforehand: no job starts on the targets that would not end before

Outages come from a file, or are drawn: each target fails after Weibull-distributed times
(exponential for shape 1) and is repaired after exponential ones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Annotated, Any, Self

from simsched.declare.kinds import HIDDEN, ValueKind, choice, listed
from simsched.declare.table import Declared
from simsched.errors import ConfigError
from simsched.formats.rfc.clock import Clock, DateText, When, parse_when, seconds_on
from simsched.formats.rfc.declared import WHEN
from simsched.formats.rfc.duration import parse_time
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    import numpy as np

FAILURE, DRAIN, MAINTENANCE = "failure", "drain", "maintenance"
KINDS = (FAILURE, DRAIN, MAINTENANCE)
FORM = "{ranks or hosts, start, end, kind}"


def _hostlist(value: Any, where: str) -> str:
    """Return a hostlist, which may be a list of hostlists, as one text."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise ConfigError("not a hostlist", where=where, expected="n[1-4]")
    text = ",".join(filter(None, parts))
    Hostlist.parse(text, where=where)
    return text


def _ids(value: Any, where: str) -> Idset:
    return Idset.parse(str(value), where=where)


Time = Annotated[float, ValueKind(parse_when, WHEN)]
Text = {"type": "string"}


class Outage(Declared, frozen=True):
    """Some nodes cannot be used from `start` until `end`, which are seconds once `on_clock` has been called.

    Attributes
    ----------
    ranks, hosts : its nodes, by rank or by name (a hostlist), alone or together.
    start, end : when it begins and ends: seconds, a duration or a date; without an end it lasts.
    kind : what becomes of jobs: ``failure``, ``drain`` or ``maintenance``.
    note : a text for people.
    dates : the start and the end, if one of them is a date; None once the clock of the log is known.
    """

    complete = True

    ranks: Annotated[Idset, ValueKind(_ids, {"type": ["string", "integer"]}, str)] = Idset(())
    start: Time = nan
    end: Time = inf
    kind: Annotated[str, choice(*KINDS)] = FAILURE
    note: Annotated[str, ValueKind(lambda value, _: str(value), Text)] = ""
    hosts: Annotated[str, ValueKind(_hostlist, {"type": ["string", "array"]})] = ""
    dates: Annotated[tuple[When, When] | None, HIDDEN] = None
    where: str = ""

    def checked(self, where: str) -> Self:
        """Return the outage; ConfigError without nodes or a start, and for an end not after the start."""
        dates: tuple[When, When] = self.start, self.end
        dated = any(isinstance(time, DateText) for time in dates)
        if not (self.ranks or self.hosts) or (not dated and isnan(self.start)):
            raise ConfigError("an outage needs ranks or hosts, and a start", where=where)
        if dated:
            return self.replace(start=0, end=inf, dates=dates)
        _refuse_backwards(self.start, self.end, *dates, where)
        return self

    def on_clock(self, clock: Clock | None) -> Self | None:
        """Return the outage in seconds of the run; None if it ends before second 0.

        Raises
        ------
        ConfigError
            For dates without a clock, and for an end that is not after the start.
        """
        if self.dates is None:
            return self
        start, end = (seconds_on(time, clock, self.where) for time in self.dates)
        _refuse_backwards(start, end, *self.dates, self.where)
        return None if end <= 0 else self.replace(start=max(start, 0), end=end, dates=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the outage as a document has it, without hosts if it has none."""
        found = super().to_dict()
        return found if self.hosts else {key: value for key, value in found.items() if key != "hosts"}


def _refuse_backwards(start: float, end: float, begins: When, ends: When, where: str | None) -> None:
    if not start < end:
        raise ConfigError(
            f"an outage from {begins} to {ends}", where=where, expected="an end after the start"
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """How targets fail: mean seconds between failures of one target, mean seconds to repair.

    >>> Failures.parse("mtbf=30d,mttr=4h")
    Failures(mtbf=2592000.0, mttr=14400.0, shape=1.0)
    """

    mtbf: float
    mttr: float
    shape: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Failures:
        """Read ``mtbf=30d,mttr=4h[,shape=0.7]``.

        Raises
        ------
        ConfigError
            For a text of another form, or a number that is not positive.
        """
        expected = "mtbf=30d,mttr=4h[,shape=0.7]"
        words = dict(part.partition("=")[::2] for part in text.split(","))
        if not {"mtbf", "mttr"} <= set(words) <= {"mtbf", "mttr", "shape"}:
            raise ConfigError(f"{text!r} does not describe failures", expected=expected)
        try:
            shape = float(words.get("shape", "1"))
        except ValueError:
            raise ConfigError(f"{words['shape']!r} is not a shape", expected=expected) from None
        found = cls(float(parse_time(words["mtbf"])), float(parse_time(words["mttr"])), shape)
        if not all(0 < number < float("inf") for number in (found.mtbf, found.mttr, found.shape)):
            raise ConfigError(f"{text!r}: every number must be positive and finite", expected=expected)
        return found

    def to_dict(self) -> dict[str, float]:
        """Return the numbers by their names."""
        return asdict(self)

    def lifetime(self, rng: np.random.Generator) -> int:
        """Draw whole seconds until a target fails; their mean is `mtbf`."""
        from math import gamma

        scale = self.mtbf / gamma(1 + 1 / self.shape)
        return 1 + int(scale * rng.weibull(self.shape))

    def repair(self, rng: np.random.Generator) -> int:
        """Draw whole seconds until a target is repaired; their mean is `mttr`."""
        return 1 + int(rng.exponential(self.mttr))


def read_outages(documents: Any, where: str | None = None) -> tuple[Outage, ...]:
    """Read a list of outages, as a JSON or YAML file holds it; errors as `Declared.read`."""
    if isinstance(documents, dict) and set(documents) == {"outages"}:
        documents = documents["outages"]
    tables = listed(ValueKind(Outage.read), "a list of outages", f"[{FORM}, …]", one_alone=False)
    found: tuple[Outage, ...] = tables.read(documents, where or "outages")
    return found
