"""Study files as studies: inputs, configuration, axes and conditions are read from the tables of a file.

The name of an axis is the setting that it varies:

=============================  =======================================================
``cluster``, ``workload``      inputs, as at the top of the file
``edits``, ``transforms``      one step or a list of steps; ``[]`` for no step
``load``, ``first`` …          a transform by its name; the value is its argument
``queue-policy``, ``order`` …  a key of a configuration file
``policy-options.KEY``         an option of the queue policy
``priority.fair-share.half-life``, ``queues.batch.priority`` …
                               a key of a table of a configuration file
any name, ``edit`` or          a template and the ``values`` to insert: ``nodes: {edit:
``transform`` and ``values``   "resize(all, {})", values: [200, 240]}``
any other name                 settings with a label and any of ``cluster``, ``edits``,
                               ``workload``, ``transforms``, ``config``
=============================  =======================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_path
from simsched.declare.kinds import listed
from simsched.errors import ConfigError, SimschedError, did_you_mean, nearest
from simsched.formats.text.documents import load_document, name_of, read_text
from simsched.report.metrics.summary import METRICS
from simsched.simulation.options.config_file import read_document
from simsched.simulation.options.run_config import KEYS as OPTION_KEYS
from simsched.simulation.options.run_config import POLICY_OPTIONS, merged
from simsched.study.spec.run_task import RunTask, canonical_json
from simsched.study.spec.study import (
    SEED,
    RunFilter,
    Setting,
    Study,
    StudyAxis,
    TaskChange,
    column,
    comparison,
)
from simsched.study.spec.study_tables import EDIT, STEP, AxisTemplate, StudyReader, StudyTable
from simsched.workload.transforms.steps import STEPS

if TYPE_CHECKING:
    from typing import TypeVar

    from simsched.declare.table import Declared
    from simsched.site.site import Site

    Table = TypeVar("Table", bound=Declared)
    from collections.abc import Sequence

    from simsched.formats.text.excerpts import Path as Steps


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


OPTION = f"{POLICY_OPTIONS}."
TABLES = ("policy", "queues", "priority", "preemption", "licenses", "job-checkpoints", POLICY_OPTIONS)
"""The keys of a configuration file whose values are tables, into which dotted names reach."""
MAX_LABEL = 2.0**63
CUSTOM = ("cluster", "edits", "workload", "transforms", "config")
#: other words that users write → name of the axis
NEAR = {
    **dict.fromkeys(
        ("policy", "policies", "scheduler", "scheduling", "scheduling-policy", "scheduling-policies",
         "queue-policies", "backfill", "backfilling", "algorithm"), "queue-policy"),
    **dict.fromkeys(("match", "matching", "match-policies", "placement", "mapping"), "match-policy"),
    **dict.fromkeys(("machine", "machines", "clusters", "system"), "cluster"),
    **dict.fromkeys(("trace", "traces", "log", "logs", "workloads"), "workload"),
    **dict.fromkeys(("arrival", "arrivals", "loads"), "load"),
    **dict.fromkeys(("run-time", "run-times", "runtimes"), "runtime"),
    **dict.fromkeys(("estimate",), "estimates"),
    **dict.fromkeys(("orders", "ordering", "queue-order"), "order"),
    **dict.fromkeys(("options", "option", "policy-option"), "policy-options.KEY"),
    **dict.fromkeys(("failure", "mtbf"), "failures"),
    "outage": "outages",
    "queue": "queues",
    "edit": "edits",
    "transform": "transforms",
    **dict.fromkeys(("nodes", "size", "sizes"), 'nodes: {edit: "resize(all, {})", values: […]}'),
}  # fmt: skip


def axis_of(name: str, value: Any, base: RunTask, reader: StudyReader) -> StudyAxis:
    """Return the axis of that name; `value` is a list of settings, or a template.

    Raises
    ------
    ConfigError
        for an unknown axis, a value that is not valid, or a label that occurs twice.
    """
    path: Steps = ("axes", name)
    _check_name(name, value, path, reader)
    if isinstance(value, AxisTemplate):
        settings = _templated(name, value, reader)
    else:
        maker = _SettingReader(name, base, reader)
        settings = [maker.setting(item, (*path, number)) for number, item in enumerate(value)]
    seen: set[Any] = set()
    for number, setting in enumerate(settings):
        place = (*path, number)
        if not isinstance(setting.label, str) and not abs(setting.label) < MAX_LABEL:
            raise reader.fault(place, "the label is not a finite number", f"a number below {MAX_LABEL:g}")
        if setting.label in seen:
            raise reader.fault(place, f"the label {setting.label!r} occurs twice")
        seen.add(setting.label)
    return StudyAxis(name, tuple(settings))


def _check_name(name: str, value: Any, path: Steps, reader: StudyReader) -> None:
    if name in {SEED, "seeds"}:
        numbers = isinstance(value, tuple) and all(isinstance(item, int) for item in value)
        seeds = list(value) if numbers else 5
        raise reader.fault(path, "seeds are not an axis", f"`seeds: {seeds}` beside axes", key=True)
    if not name.strip() or column(name) in {"run", "key", SEED, *(known.name for known in METRICS)}:
        raise reader.fault(path, f"{name!r} is reserved or empty", "another name for the axis", key=True)


def _templated(name: str, table: AxisTemplate, reader: StudyReader) -> list[Setting]:
    """Return the settings of a template and values."""
    path: Steps = ("axes", name)
    kind = EDIT if table.transform is None else STEP
    template = (table.edit or "") + (table.transform or "")
    if (table.edit is None) == (table.transform is None) or "{}" not in template:
        raise reader.fault(path, "the axis has no template", "edit or transform with {} for the value")
    settings = []
    for number, item in enumerate(table.values):
        spot = (*path, "values", number)
        if isinstance(item, dict | list) or item is None:
            raise reader.fault(spot, "the value does not fit a template", "a number or a text")
        text = reader.read(kind, template.replace("{}", _word(item)), spot)
        change = TaskChange(edits=(text,)) if kind is EDIT else TaskChange(transforms=(text,))
        settings.append(Setting(_label(item), change))
    return settings


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _label(value: Any) -> str | float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _word(value)


@dataclass(frozen=True)
class _SettingReader:
    """Reads the settings of one axis from its values."""

    name: str
    base: RunTask
    reader: StudyReader

    def setting(self, value: Any, path: Steps) -> Setting:
        """Return the setting of one value."""
        given = value if isinstance(value, dict) else {}
        is_input = self.name in {"cluster", "workload"}
        several = not is_input and "label" in given and not given.keys().isdisjoint(CUSTOM)
        if several or not (is_input or self._known):  # it changes several parts, whatever its name
            return self._custom(value, path)
        if set(given) == {"label", "value"}:
            return Setting(self._given_label(given, path), self.change(given["value"], (*path, "value")))
        label = self._input_label(value) if is_input else self._own_label(value, path)
        return Setting(label, self.change(value, path))

    @property
    def _known(self) -> bool:
        name = self.name
        options = name.replace("_", "-") in OPTION_KEYS or self._table in TABLES
        return options or name in STEPS or name in {"edits", "transforms"}

    @property
    def _table(self) -> str:
        """The key of the table into which a dotted name reaches; empty without a dot."""
        table, dot, _ = self.name.partition(".")
        return table.replace("_", "-") if dot else ""

    def change(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of one value of a known axis."""
        name = self.name
        if name == "cluster":
            source, edits = self.reader.cluster(value, path)
            return TaskChange(cluster=source, edits=edits)
        if name == "workload":
            source, steps = self.reader.workload(value, path)
            return TaskChange(workload=source, transforms=steps)
        if name in {"edits", "transforms"}:
            return self._steps(value, path)
        if name in STEPS:
            return self._transform(value, path)
        return self._option(value, path)

    def _steps(self, value: Any, path: Steps) -> TaskChange:
        kind = EDIT if self.name == "edits" else STEP
        if isinstance(value, str):
            steps: Any = (self.reader.read(kind, value, path),)
        elif isinstance(value, list) and all(isinstance(step, str) for step in value):
            steps = self.reader.read(listed(kind), value, path)
        else:
            raise self.reader.fault(path, "these are not steps", "a text or a list of texts")
        return TaskChange(edits=steps) if kind is EDIT else TaskChange(transforms=steps)

    def _transform(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of an axis that has the name of a transform."""
        if value is False:
            return TaskChange()
        inside = value if isinstance(value, list) else [] if value is True else [value]
        if any(isinstance(item, dict | list | bool) or item is None for item in inside):
            text = f"this is not an argument of {self.name}"
            raise self.reader.fault(path, text, "a number or a text")
        text = f"{self.name}({', '.join(map(str, inside))})" if inside else self.name
        return TaskChange(transforms=(self.reader.read(STEP, text, path),))

    def _option(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of one option; options of a policy are checked later, with their policy."""
        if self._table in TABLES:
            return self._inside(value, path)
        key = self.name.replace("_", "-")
        if key == "policy" and not isinstance(
            value, dict
        ):  # `policy` is a table of a configuration and not the queue policy
            raise self._unknown()
        if key not in {"policy-options", "policy"}:
            self.reader.check_options({key: value}, self.reader.place(path))
        return TaskChange(options={key: value})

    def _inside(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of a key of a table, which may be in a table of that."""
        _, *keys = self.name.split(".")
        if not all(keys):
            raise self._misnamed(f"{self.name!r} names no key of a table", "TABLE.KEY")
        options: dict[str, Any] = {}
        inner, known = options, self.base.options.get(self._table)
        if self._table == "queues" and keys[0] not in (known or {}):
            text = f"there is no queue {keys[0]!r}{did_you_mean(keys[0], known or ())}"
            raise self._misnamed(text, ", ".join(known or ()) or "queues in config")
        for key in (self._table, *keys[:-1]):
            inner[key] = {}
            inner = inner[key]
        for depth, key in enumerate(keys[:-1], 1):
            known = known.get(key) if isinstance(known, dict) else None
            if known is not None and not isinstance(known, dict):
                table = ".".join((self._table, *keys[:depth]))
                raise self.reader.fault(path, f"{table} is not a table", f"{table}: {{KEY: …}}")
        inner[keys[-1]] = value
        if self._table != POLICY_OPTIONS:
            self.reader.check_options(merged(self.base.options, options), self.reader.place(path))
        return TaskChange(options=options)

    def _misnamed(self, message: str, expected: str) -> ConfigError:
        """Return the error of the name of the axis."""
        return self.reader.fault(("axes", self.name), message, expected, key=True)

    # --- settings with a name of their own

    def _custom(self, value: Any, path: Steps) -> Setting:
        if not isinstance(value, dict):
            raise self._unknown()
        label = self._given_label(value, path)
        for key in value:
            if key not in {"label", *CUSTOM}:
                expected = f"label, {', '.join(CUSTOM)}"
                raise self.reader.fault((*path, key), f"unknown key {key!r}", expected, key=True)
        change = TaskChange()
        for key in ("cluster", "workload", "edits", "transforms"):
            if key in value:
                part = _SettingReader(key, self.base, self.reader).change(value[key], (*path, key))
                change = _joined(change, part)
        options = value.get("config", {})
        if not isinstance(options, dict):
            raise self.reader.fault(path, "these are not options", "config: a mapping")
        options = {str(key).replace("_", "-"): item for key, item in options.items()}
        self.reader.check_options(merged(self.base.options, options), self.reader.place(path))
        return Setting(label, _joined(change, TaskChange(options=options)))

    def _unknown(self) -> ConfigError:
        """Return the error of an unknown axis, with the nearest known name."""
        known = [*sorted(set(OPTION_KEYS) - {SEED, "policy"}), f"{OPTION}KEY"]
        known += ["cluster", "workload", "edits", "transforms", *STEPS]
        near = meant(self.name, known)
        table, dot, keys = self.name.partition(".")
        if dot and (other := nearest(table, TABLES)) is not None:
            near = f"{other}.{keys}"
        hint = f"; did you mean {near}?" if near else ""
        expected = f"{', '.join(known)}; or settings with labels"
        return self._misnamed(f"unknown axis {self.name!r}{hint}", expected)

    def _given_label(self, value: dict[str, Any], path: Steps) -> str | float:
        label = value.get("label")
        if isinstance(label, bool) or not isinstance(label, str | int | float) or label == "":
            raise self.reader.fault(path, "the setting has no label", "label: a text or a number")
        return label

    def _input_label(self, value: Any) -> str | float:
        if isinstance(value, str):
            return value
        row = value if isinstance(value, dict) else {}
        label = row.get("label", row.get("file"))
        if isinstance(label, str | int | float) and "edits" not in row and "transforms" not in row:
            return label
        return row["label"] if "label" in row else canonical_json(value).decode()[:60]

    def _own_label(self, value: Any, path: Steps) -> str | float:
        """Return the label of a plain value; other values need a label of their own."""
        if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
            return "; ".join(map(str, value)) or "none"
        if isinstance(value, dict | list) or value is None:
            raise self.reader.fault(path, "the value needs a label", "{label: …, value: …}")
        return _label(value)


def meant(name: str, known: Sequence[str]) -> str | None:
    """Return the known axis nearest to a word in meaning or spelling, or None.

    >>> meant("Policy", ["queue-policy"]), meant("queue-polcy", ["queue-policy"]), meant("x", ["load"])
    ('queue-policy', 'queue-policy', None)
    """
    word = name.strip().lower().replace("_", "-").replace(" ", "-")
    return NEAR.get(word) or nearest(word, known)


def _joined(first: TaskChange, second: TaskChange) -> TaskChange:
    return TaskChange(
        cluster=second.cluster or first.cluster,
        edits=first.edits + second.edits,
        workload=second.workload or first.workload,
        transforms=first.transforms + second.transforms,
        options=merged(first.options, second.options),
    )
