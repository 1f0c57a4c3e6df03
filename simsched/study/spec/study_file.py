"""The reader of study files: texts become inputs, axes and filters; faults have their place in the file.

docs/studies.md describes the format; its schema is ``formats/schemas/study.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_path
from simsched.errors import ConfigError, SimschedError
from simsched.formats.study_document import StudyDocument, read_study_document, study_document
from simsched.simulation.options.config_file import read_document
from simsched.simulation.options.run_config import merged
from simsched.study.spec.axes import axis_of
from simsched.study.spec.input_finder import InputFinder
from simsched.study.spec.run_task import KEEP, Measure, RunTask
from simsched.study.spec.study import SEED, RunFilter, Study, StudyAxis, column, comparison

if TYPE_CHECKING:
    from simsched.site.site import Site

KEPT = {
    "figures": (),
    "jobs": ("jobs",),
    "allocations": ("jobs", "allocations"),
    "eventlog": ("jobs", "eventlog"),
    "all": KEEP,
}


def load_study(path: str | Path) -> Study:
    """Read a study file; paths in it are relative to its folder.

    Raises
    ------
    ConfigError, FormatError
        for the first fault, with file, line and path.
    """
    document = read_study_document(path)
    at = Path(path)
    home = Path() if str(path) == "-" else at.parent
    name = at.name.split(".")[0] if str(path) != "-" else "study"
    return study_of(document, home=home, name=name)


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
    return study_of(study_document(dict(content)), home=Path(home), name="study")


def study_of(document: StudyDocument, *, home: Path, name: str) -> Study:
    """Return the study of a document that conforms to the schema."""
    content = document.content
    finder = InputFinder(home, document)
    site = _site(content, finder)
    if site is not None:
        from simsched.site.log_use import reading_on

        finder = replace(finder, on_site=reading_on(site))
    base = _base(content, finder, site)
    axes = tuple(axis_of(key, value, base, finder) for key, value in content.get("axes", {}).items())
    columns = [column(axis.name) for axis in axes]
    for number, taken in enumerate(columns):
        if taken in columns[:number]:
            place = document.place(("axes", axes[number].name), key=True)
            raise ConfigError(f"two axes have the column {taken!r}", where=place)
    known = (*(axis.name for axis in axes), SEED)
    return Study(
        name=str(content.get("name", name)),
        base=base,
        axes=axes,
        zipped=_zipped(content.get("zip", ()), axes, document),
        include=_filters("include", content, known, document),
        exclude=_filters("exclude", content, known, document),
        seeds=_seeds(content.get("seeds", [0])),
        description=str(content.get("description", "")),
        where=document.where,
        site=site,
    )


def _site(content: Mapping[str, Any], finder: InputFinder) -> Site | None:
    """Return the site of a study, which takes the place of the cluster and gives the configuration."""
    if "site" not in content:
        return None
    place = finder.document.place(("site",))
    if "cluster" in content:
        raise ConfigError("a cluster and a site are both given", where=place, expected="one of them")
    from simsched.site.site_folder import load_site

    try:
        return load_site(finder.find(content["site"]))
    except SimschedError as error:
        raise error.at(place) from None


def _base(content: Mapping[str, Any], finder: InputFinder, site: Site | None) -> RunTask:
    if site is None:
        cluster, edits = finder.cluster(content["cluster"], ("cluster",))
    else:
        cluster, edits = finder.cluster(str(site.cluster_file), ("site",))
    workload, transforms = finder.workload(content["workload"], ("workload",))
    options = _options(content.get("config", {}), finder)
    if site is not None:
        options = merged(site.config, options)
        finder.check_options(options, finder.document.place(("site",)))
    return RunTask(
        cluster=cluster,
        workload=workload,
        edits=edits,
        transforms=transforms,
        options=options,
        measure=_measure(content.get("measure", {}), finder.document),
        keep=_keep(content.get("keep", "jobs")),
    )


def _options(value: Any, finder: InputFinder) -> dict[str, Any]:
    """Return the base configuration, which is written in the study file or in a file that it names."""
    place = finder.document.place(("config",))
    if isinstance(value, str):
        path = finder.find(value)
        value, place = read_document(path), str(path)
    options = {str(key).replace("_", "-"): item for key, item in value.items()}
    if "seed" in options:
        raise ConfigError(
            "a configuration in a study has no seed", where=place, expected="seeds: a number or a list"
        )
    finder.check_options(options, place)
    return options


def _measure(value: Mapping[str, Any], document: StudyDocument) -> Measure:
    from simsched.formats.rfc.duration import parse_duration

    times = {}
    for key in ("warm-up", "drain"):
        times[key] = parse_duration(value.get(key, 0), where=document.place(("measure", key)))
        if times[key] == float("inf"):
            raise ConfigError(
                "the duration is infinite", where=document.place(("measure", key)), expected="a finite one"
            )
    return Measure(times["warm-up"], times["drain"], bool(value.get("by-queue", False)))


def _keep(value: str | list[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        return KEPT[value]
    return tuple(word for word in KEEP if word == "jobs" or word in value)


def _seeds(value: int | list[int]) -> tuple[int, ...]:
    return tuple(range(value)) if isinstance(value, int) else tuple(value)


def _zipped(groups: Any, axes: tuple[StudyAxis, ...], document: StudyDocument) -> tuple[tuple[str, ...], ...]:
    """Return the groups of axes that vary together, each of one length."""
    lengths = {axis.name: len(axis.settings) for axis in axes}
    seen: set[str] = set()
    for number, group in enumerate(groups):
        place = document.place(("zip", number))
        for name in group:
            if name not in lengths:
                raise ConfigError(
                    f"there is no axis {name!r}", where=place, expected=", ".join(lengths) or "an axis"
                )
            if name in seen:
                raise ConfigError(f"the axis {name!r} is zipped twice", where=place)
            seen.add(name)
        if len({lengths[name] for name in group}) > 1:
            found = ", ".join(f"{name} {lengths[name]}" for name in group)
            raise ConfigError(f"zipped axes have different lengths: {found}", where=place)
    return tuple(tuple(group) for group in groups)


def _filters(
    word: str, content: Mapping[str, Any], known: tuple[str, ...], document: StudyDocument
) -> tuple[RunFilter, ...]:
    """Return the filters of `include` or `exclude`."""
    filters = []
    for number, row in enumerate(content.get(word, ())):
        for name, wanted in row.items():
            place = document.place((word, number, name), key=True)
            if name not in known:
                raise ConfigError(f"there is no axis {name!r}", where=place, expected=", ".join(known))
            _check_condition(wanted, document.place((word, number, name)))
        filters.append(RunFilter(row))
    return tuple(filters)


def _check_condition(wanted: Any, place: str) -> None:
    each = wanted if isinstance(wanted, list) else [wanted]
    for one in each:
        if isinstance(one, dict | list) or one is None:
            raise ConfigError(
                "this is not a condition", where=place, expected="a label, several, or '<= 0.9'"
            )
        sign, number = comparison(one)
        if sign is not None and sign not in {"=", "!="} and not isinstance(number, float):
            raise ConfigError(
                f"{one!r} does not compare with a number", where=place, expected="such as '<= 0.9'"
            )
