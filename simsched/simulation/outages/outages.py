"""Outages of nodes: failures, drains, and announced maintenance.

failure      the targets go down at once; jobs on them fail or are queued again
drain        no job starts on the targets; running jobs continue
maintenance  announced beforehand: no job starts on the targets that would not end before

Outages come from a file, or are drawn: each target fails after Weibull-distributed times
(exponential for shape 1) and is repaired after exponential ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.clock import DateText, parse_when, seconds_on
from simsched.formats.rfc.duration import parse_time
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np

    from simsched.formats.rfc.clock import Clock, When


FAILURE, DRAIN, MAINTENANCE = "failure", "drain", "maintenance"
KINDS = (FAILURE, DRAIN, MAINTENANCE)
FORM = "{ranks or hosts, start, end, kind}"
KEYS = ("ranks", "hosts", "start", "end", "kind", "note")


@dataclass(frozen=True, slots=True)
class Outage:
    """Some nodes cannot be used from `start` until `end` (seconds; inf: for good).

    `ranks` and `hosts` (a hostlist) name them, alone or together.
    """

    ranks: Idset
    start: float
    end: float = float("inf")
    kind: str = FAILURE
    note: str = ""
    hosts: str = ""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str | None = None) -> Outage:
        """Read ``{ranks or hosts, start, end, kind, note}``; times are seconds, durations (``2d``) or dates.

        Raises
        ------
        ConfigError, FormatError
            For an unknown key or kind, wrong ranks or hosts, an end that is not after the start.
        """
        odd = next((key for key in document if key not in KEYS), None)
        if odd is not None:
            near = did_you_mean(str(odd), KEYS)
            raise ConfigError(
                f"unknown key {odd!r} of an outage{near}", where=where, expected=", ".join(KEYS)
            )
        if not {"ranks", "hosts"}.intersection(document) or "start" not in document:
            raise ConfigError("an outage needs ranks or hosts, and a start", where=where)
        kind = document.get("kind", FAILURE)
        if kind not in KINDS:
            raise ConfigError(f"unknown kind {kind!r} of outage", where=where, expected=", ".join(KINDS))
        start = parse_when(document["start"], where)
        end = parse_when(document.get("end", "inf"), where)
        ranks = Idset.parse(str(document.get("ranks", "")), where=where)
        hosts = _hostlist(document.get("hosts", ""), where)
        note = str(document.get("note", ""))
        if isinstance(start, DateText) or isinstance(end, DateText):
            return DatedOutage(ranks, 0, kind=kind, note=note, hosts=hosts, dates=(start, end), where=where)
        _refuse_backwards(start, end, start, end, where)
        return cls(ranks, start, end, kind, note, hosts)

    def on_clock(self, clock: Clock | None) -> Outage | None:
        """Return the outage in seconds of the run; None if it ends before second 0."""
        return self


@dataclass(frozen=True, slots=True)
class DatedOutage(Outage):
    """An outage whose times are dates, until the log and its clock are known."""

    dates: tuple[When, When] = (0, 0)
    where: str | None = None

    def on_clock(self, clock: Clock | None) -> Outage | None:
        """Return the outage in seconds of the run; None if it ends before second 0.

        Raises
        ------
        ConfigError
            Without a clock, and for an end that is not after the start.
        """
        start, end = (seconds_on(time, clock, self.where) for time in self.dates)
        _refuse_backwards(start, end, *self.dates, self.where)
        if end <= 0:
            return None
        return Outage(self.ranks, max(start, 0), end, self.kind, self.note, self.hosts)


def _hostlist(value: Any, where: str | None) -> str:
    """Return a hostlist, which may be a list of hostlists, as one text."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise ConfigError("not a hostlist", where=f"{where}.hosts" if where else "hosts", expected="n[1-4]")
    text = ",".join(filter(None, parts))
    Hostlist.parse(text, where=where)
    return text


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

    def lifetime(self, rng: np.random.Generator) -> int:
        """Draw whole seconds until a target fails; their mean is `mtbf`."""
        from math import gamma

        scale = self.mtbf / gamma(1 + 1 / self.shape)
        return 1 + int(scale * rng.weibull(self.shape))

    def repair(self, rng: np.random.Generator) -> int:
        """Draw whole seconds until a target is repaired; their mean is `mttr`."""
        return 1 + int(rng.exponential(self.mttr))


def read_outages(documents: Any, where: str | None = None) -> tuple[Outage, ...]:
    """Read a list of outages, as a JSON or YAML file holds it.

    Raises
    ------
    ConfigError, FormatError
        For another value than such a list.
    """
    if isinstance(documents, dict) and set(documents) == {"outages"}:
        documents = documents["outages"]
    if not isinstance(documents, list):
        raise ConfigError("not a list of outages", where=where, expected=f"[{FORM}, …]")
    return tuple(_read_all(documents, where))


def _read_all(documents: Iterable[Any], where: str | None) -> Iterable[Outage]:
    for number, document in enumerate(documents):
        place = f"{where or 'outages'}[{number}]"
        if not isinstance(document, dict):
            raise ConfigError("an outage is an object", where=place, expected=FORM)
        yield Outage.from_dict(document, place)
