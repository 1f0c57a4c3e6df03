"""Study files as studies: inputs, configuration, axes and conditions are read from the tables of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_path
from simsched.errors import ConfigError, SimschedError
from simsched.formats.text.documents import load_document, name_of, read_text
from simsched.simulation.options.config_file import read_document
from simsched.simulation.options.run_config import merged
from simsched.study.spec.axes import axis_of
from simsched.study.spec.run_task import RunTask
from simsched.study.spec.study import SEED, RunFilter, Study, StudyAxis, column, comparison
from simsched.study.spec.study_tables import StudyReader, StudyTable

if TYPE_CHECKING:
    from typing import TypeVar

    from simsched.declare.table import Declared
    from simsched.site.site import Site

    Table = TypeVar("Table", bound=Declared)


def load_study(path: str | Path) -> Study:
    """Read a study file; paths in it are relative to its folder.

    Raises
    ------
    ConfigError, FormatError
        for the first fault, with file, line and path.
    """
    text, where = read_text(path), name_of(path)
    alone = str(path) == "-"
    home, name = (Path(), "study") if alone else (Path(path).parent, Path(path).name.split(".")[0])
    return _study(load_document(text, where), StudyReader(home, text, where), name)


def study_from_dict(content: Mapping[str, Any], *, home: str | Path = ".") -> Study:
    """Return the study of a mapping with the layout of a study file.

    Parameters
    ----------
    home : folder to which paths are relative.

    Raises
    ------
    ConfigError, FormatError
        as `load_study`, with the path of the fault.
    """
    check("content", content, Mapping, "a mapping with the layout of a study file")
    check_path("home", home)
    return _study(dict(content), StudyReader(Path(home)), "study")


def _study(content: Any, reader: StudyReader, name: str) -> Study:
    table: StudyTable = reader.read(StudyTable, content)
    site = _site(table, reader)
    if site is None:
        cluster, edits = reader.cluster(content["cluster"], ("cluster",))
    else:
        from simsched.site.log_use import reading_on

        reader = replace(reader, on_site=reading_on(site))
        cluster, edits = reader.cluster(str(site.cluster_file), ("site",))
    workload, transforms = reader.workload(content["workload"], ("workload",))
    base = RunTask(
        cluster=cluster,
        workload=workload,
        edits=edits,
        transforms=transforms,
        options=_options(table.config, site, reader),
        measure=table.measure,
        keep=table.keep,
    )
    axes = tuple(axis_of(key, value, base, reader) for key, value in table.axes.items())
    columns = [column(axis.name) for axis in axes]
    for number, taken in enumerate(columns):
        if taken in columns[:number]:
            raise reader.fault(("axes", axes[number].name), f"two axes have the column {taken!r}", key=True)
    known = (*(axis.name for axis in axes), SEED)
    return Study(
        name=name if table.name is None else table.name,
        base=base,
        axes=axes,
        zipped=_zipped(table.zip, axes, reader),
        include=_filters("include", table.include, known, reader),
        exclude=_filters("exclude", table.exclude, known, reader),
        seeds=table.seeds,
        description=table.description,
        where=reader.where,
        site=site,
    )


def _site(table: StudyTable, reader: StudyReader) -> Site | None:
    """Return the site of a study, which takes the place of the cluster and gives the configuration."""
    if table.site is None:
        return None
    if table.cluster is not None:
        raise reader.fault(("site",), "a cluster and a site are both given", "one of them")
    from simsched.site.site_folder import load_site

    try:
        return load_site(reader.find(table.site))
    except SimschedError as error:
        raise error.at(reader.place(("site",))) from None


def _options(value: Any, site: Site | None, reader: StudyReader) -> dict[str, Any]:
    """Return the base configuration: that of the site, and the study's or that of a file that it names."""
    place = reader.place(("config",))
    if isinstance(value, str):
        path = reader.find(value)
        value, place = read_document(path), str(path)
    options = {str(key).replace("_", "-"): item for key, item in value.items()}
    if SEED in options:
        raise ConfigError(
            "a configuration in a study has no seed", where=place, expected="seeds: a number or a list"
        )
    reader.check_options(options, place)
    if site is not None:
        options = merged(site.config, options)
        reader.check_options(options, reader.place(("site",)))
    return options


def _zipped(groups: Any, axes: tuple[StudyAxis, ...], reader: StudyReader) -> tuple[tuple[str, ...], ...]:
    """Return the groups of axes that vary together, each of one length."""
    lengths = {axis.name: len(axis.settings) for axis in axes}
    seen: set[str] = set()
    for number, group in enumerate(groups):
        path = ("zip", number)
        for name in group:
            if name not in lengths:
                raise reader.fault(path, f"there is no axis {name!r}", ", ".join(lengths) or "an axis")
            if name in seen:
                raise reader.fault(path, f"the axis {name!r} is zipped twice")
            seen.add(name)
        if len({lengths[name] for name in group}) > 1:
            found = ", ".join(f"{name} {lengths[name]}" for name in group)
            raise reader.fault(path, f"zipped axes have different lengths: {found}")
    return tuple(tuple(group) for group in groups)


def _filters(
    word: str, rows: list[dict[str, Any]], known: tuple[str, ...], reader: StudyReader
) -> tuple[RunFilter, ...]:
    """Return the filters of `include` or `exclude`."""
    for number, row in enumerate(rows):
        for name, wanted in row.items():
            path = (word, number, name)
            if name not in known:
                raise reader.fault(path, f"there is no axis {name!r}", ", ".join(known), key=True)
            for one in wanted if isinstance(wanted, list) else [wanted]:
                sign, number_ = (None, None) if isinstance(one, dict | list) else comparison(one)
                if one is None or isinstance(one, dict | list):
                    fault, expected = "this is not a condition", "a label, several, or '<= 0.9'"
                elif sign not in {None, "==", "!="} and not isinstance(number_, float):
                    fault, expected = f"{one!r} does not compare with a number", "such as '<= 0.9'"
                else:
                    continue
                raise reader.fault(path, fault, expected)
    return tuple(map(RunFilter, rows))
