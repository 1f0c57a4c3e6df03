"""Units of counts, and exact conversion between those of one dimension.

`kB` to `YB` are powers of 1000 and `KiB` to `YiB` powers of 1024, as in the SI and
the IEC; `KB` is read as `kB`.  (The units of SSS Job Objects are powers of 1024: see `sss.requirements`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from simsched.errors import RequestError

DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: `factor` of the base unit of its `dimension`."""

    name: str
    dimension: str
    factor: Fraction


def _family(dimension: str, base: str, scale: int | Fraction = 1, *, binary: bool = False) -> list[Unit]:
    units = [Unit(p + base, dimension, Fraction(1000) ** i * scale) for i, p in enumerate(DECIMAL)]
    if binary:
        units += [Unit(p + base, dimension, Fraction(1024) ** i * scale) for i, p in enumerate(BINARY)]
    return units


_EIGHTH = Fraction(1, 8)

UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in [
        *_family("memory", "B", binary=True),
        *_family("rate", "B/s", binary=True),
        *_family("rate", "b/s", _EIGHTH),
        *_family("rate", "bit/s", _EIGHTH),
        *_family("frequency", "Hz"),
        *_family("power", "W"),
        *_family("energy", "J"),
    ]
}
"""Every unit by its name."""

ALIASES = {"KB": "kB", "KB/s": "kB/s", "bytes": "B", "byte": "B"}
"""Other spellings, which are read and never written."""


def unit_of(name: str, where: str | None = None) -> Unit:
    """Return the unit of a name.  Raises `RequestError`, with the nearest name as a hint.

    >>> unit_of("GiB").factor
    Fraction(1073741824, 1)
    """
    unit = UNITS.get(ALIASES.get(name, name))
    if unit is None:
        same = [known for known in UNITS if known.lower() == name.lower()]
        hint = f", perhaps {same[0]}" if same else ""
        raise RequestError(f"unknown unit {name[:40]!r}{hint}", where=where, expected="B, kB, GB, GiB, Hz …")
    return unit


def is_unit(name: str) -> bool:
    """Return whether a name is that of a unit.

    >>> is_unit("KB"), is_unit("boxes")
    (True, False)
    """
    return ALIASES.get(name, name) in UNITS


def same_dimension(first: str, second: str) -> bool:
    """Whether two units can be converted into one another.  Unknown units match only themselves.

    >>> same_dimension("GB", "MiB"), same_dimension("GB", "GHz"), same_dimension("foo", "foo")
    (True, False, True)
    """
    if first == second:
        return True
    one, other = (UNITS.get(ALIASES.get(name, name)) for name in (first, second))
    return one is not None and other is not None and one.dimension == other.dimension


def convert(value: int | Fraction, from_unit: str, to_unit: str, where: str | None = None) -> int | Fraction:
    """Return the value in another unit of the same dimension, exactly.

    Raises `RequestError` for an unknown unit and across dimensions.

    >>> convert(4, "GB", "MB"), convert(1, "GiB", "GB")
    (4000, Fraction(2097152, 1953125))
    """
    if from_unit == to_unit:
        return value
    source, target = unit_of(from_unit, where), unit_of(to_unit, where)
    if source.dimension != target.dimension:
        raise RequestError(
            f"{from_unit} is a unit of {source.dimension} and {to_unit} one of {target.dimension}",
            where=where,
            expected=f"a unit of {target.dimension}",
        )
    result = Fraction(value) * source.factor / target.factor
    return result.numerator if result.denominator == 1 else result


def convert_up(value: int | Fraction, from_unit: str, to_unit: str, where: str | None = None) -> int:
    """Return the least whole number of `to_unit` that holds the value.

    >>> convert_up(1, "GB", "GiB"), convert_up(2048, "MiB", "GiB")
    (1, 2)
    """
    return -int(-convert(value, from_unit, to_unit, where) // 1)
