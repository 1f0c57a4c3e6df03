"""The column maps of public data sets, one YAML file each in the folder beside this module."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, did_you_mean
from simsched.workload.readers.tables.column_map import (
    ColumnMap,
    MappedColumn,
    column_map,
    is_column_map,
    read_column_map,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    folder = files("simsched.workload.readers.tables") / "presets"
    return tuple(
        sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))
    )


@cache
def preset(name: str) -> ColumnMap:
    """Return the preset of a name; ConfigError names the nearest one."""
    from simsched.formats.text.documents import load_document

    text = preset_text(name)
    return column_map({"name": name, **load_document(text, f"{name}.yaml")}, text, name)


def preset_text(name: str) -> str:
    """Return the document of a preset; ConfigError names the nearest one."""
    if name not in preset_names():
        raise ConfigError(
            f"unknown preset {name!r}{did_you_mean(name, preset_names())}",
            expected=f"the file of a column map, or {', '.join(preset_names())}",
        )
    place = files("simsched.workload.readers.tables") / "presets" / f"{name}.yaml"
    return place.read_text(encoding="utf-8")


def presets() -> list[ColumnMap]:
    """Return all presets by name."""
    return [preset(name) for name in preset_names()]


def presets_for(columns: Iterable[str], format_: str) -> list[ColumnMap]:
    """Return the presets whose columns a table of this format has, those that read the most columns alone.

    A preset whose tables have no header line is not recognised.
    """
    have = {name.lower() for name in columns}
    found = [
        one for one in presets() if not one.header and one.format in ("", format_) and _named(one) <= have
    ]
    most = max((len(_named(one)) for one in found), default=0)
    return [one for one in found if len(_named(one)) == most]


def _named(one: ColumnMap) -> set[str]:
    """Return the columns that a preset needs: all but that of the energy."""
    return {name for key, item in one.columns.items() if key != "energy" for name in _columns_of(item)}


def _columns_of(item: MappedColumn) -> frozenset[str]:
    """Return the columns that an entry reads, in lower case."""
    from simsched.workload.readers.tables.column_expressions import columns_in

    return columns_in(item.expression) if item.expression else frozenset((item.column.lower(),))


def without_absent_energy(one: ColumnMap, columns: Iterable[str]) -> ColumnMap:
    """Return a map without its energy if it is a preset and the table lacks the columns of the energy."""
    item = one.columns.get("energy")
    if item is None or not one.dataset or _columns_of(item) <= {name.lower() for name in columns}:
        return one
    return replace(one, columns={key: value for key, value in one.columns.items() if key != "energy"})


def given_map(value: object) -> ColumnMap | None:
    """Return the column map that a user means by a value; None where it is something else.

    Raises
    ------
    ConfigError, FormatError
        for a document or file that is not a column map.
    """
    from collections.abc import Mapping

    if isinstance(value, ColumnMap):
        return value
    if isinstance(value, Mapping):
        return column_map(dict(value))
    if not is_column_map(value, preset_names()):
        return None
    text: str | Path = value  # type: ignore[assignment]
    return preset(str(text)) if str(text) in preset_names() else read_column_map(text)
