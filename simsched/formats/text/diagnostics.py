"""What a validator finds: every fault with its JSON path, what was found and what was expected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.text.excerpts import Path, clip, format_path
from simsched.formats.text.yaml_text import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.formats.text.locations import Locations


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a document.

    `path` leads to the value at fault, or, where `at_key` is true, to the key.  `line` and
    `column` are 0 as long as nobody has looked for them in the text.  A `mild` fault changes nothing
    about the resources: other schedulers run such a job, and a lenient reader warns of it.

    >>> print(Fault(("resources", 0, "count"), "0 is not a count", "at least 1"))
    resources[0].count: 0 is not a count (expected at least 1)
    """

    path: Path
    message: str
    expected: str = ""
    at_key: bool = False
    line: int = 0
    column: int = 0
    where: str = ""
    mild: bool = False

    @property
    def place(self) -> str:
        """File, line, column and JSON path, as far as they are known."""
        spot = f"{self.where}:{self.line}:{self.column}" if self.line else self.where
        return ": ".join(part for part in (spot, format_path(self.path)) if part)

    def error(self, kind: type[FormatError] = FormatError) -> FormatError:
        """Return the fault as an error."""
        return kind(self.message, where=self.place or None, expected=self.expected or None)

    def __str__(self) -> str:
        return str(self.error())


def located(faults: Iterable[Fault], text: str, where: str, document: int = 0) -> list[Fault]:
    """Return the faults with the lines and columns of their paths, in the order of the text."""
    return located_in_all({document: list(faults)}, text, where)


def located_in_all(faults: Mapping[int, Sequence[Fault]], text: str, where: str) -> list[Fault]:
    """Return the faults of several documents of one text, by number, with their lines and columns.

    However many documents there are, the text is read once.
    """
    from simsched.formats.text.locations import Locations

    wanted = {number: found for number, found in faults.items() if found}
    if not wanted:
        return []
    if set(wanted) == {0}:
        return _placed(wanted[0], Locations.of(text), where)
    values: dict[Path, tuple[int, int]] = {}
    keys: dict[Path, tuple[int, int]] = {}
    placed = []
    for number, _ in enumerate(documents(text, None, values, keys)):
        if number in wanted:
            placed += _placed(wanted[number], Locations(values, keys), where)
        values.clear()
        keys.clear()
    return placed


def _placed(faults: Sequence[Fault], spots: Locations, where: str) -> list[Fault]:
    placed = []
    for fault in faults:
        line, column = spots.key(fault.path) if fault.at_key else spots.value(fault.path)
        placed.append(replace(fault, line=line, column=column, where=where))
    return sorted(placed, key=lambda fault: (fault.line, fault.column))


def joined(faults: Sequence[Fault], where: str | None) -> FormatError:
    """Return one error that tells the first fault and how many more there are."""
    first = faults[0]
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    place = ": ".join(part for part in (where, first.place) if part)
    return FormatError(first.message + more, where=place or None, expected=first.expected or None)


def shown(value: Any) -> str:
    """Return a value as a message names it.

    >>> shown("yes"), shown(None), shown({}), shown(True)
    ("'yes'", 'null', 'an object', 'true')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return clip(repr(value), 40)
