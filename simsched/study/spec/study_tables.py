"""The tables of study files, each declared once, and the reader of their values; faults have their place.

docs/studies.md describes the format; ``simsched schema study`` prints its JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

import msgspec

from simsched.bundled import bundled
from simsched.declare.kinds import (
    ANYTHING,
    ValueKind,
    by_name,
    listed,
    quoted,
    scalar,
    sized,
    text,
    whole,
    words,
)
from simsched.declare.table import Declared, fields_of, read_keys
from simsched.errors import ConfigError, SimschedError
from simsched.formats.text.diagnostics import Fault, Locations
from simsched.formats.text.documents import load_document, read_text
from simsched.formats.text.excerpts import split_place
from simsched.simulation.options.run_config import from_document, make_config
from simsched.study.spec.edits import parsed_edit
from simsched.study.spec.run_task import KEEP, MODEL, Measure, TaskInput, canonical_json
from simsched.workload.mapping import LogReading
from simsched.workload.models.lublin import LublinWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.text.excerpts import Path as Steps

    Table = TypeVar("Table", bound=Declared)

READING = {key: one.name for key, one in fields_of(LogReading).items()}
"""Key of a workload in a study file → keyword of `load_workload`."""
MOST_VALUES = 100_000
"""The most values of an axis, and the most seeds."""
MODELS = ("lublin", "mix")
KEPT = {
    "figures": (),
    "jobs": ("jobs",),
    "allocations": ("jobs", "allocations"),
    "eventlog": ("jobs", "eventlog"),
    "all": KEEP,
}
_LISTS = [["jobs", "allocations"], ["jobs", "eventlog"], ["allocations", "eventlog"], list(KEEP)]


def _checked(valid: Any) -> ValueKind:
    """Return the kind of texts that a function accepts."""

    def read(value: Any, where: str) -> str:
        step: str = TEXT.read(value, where)
        try:
            valid(step)
        except SimschedError as error:
            raise error.at(where) from None
        return step

    return ValueKind(read, {"type": "string"})


def _tried(step: str) -> None:
    """Try a transform on an empty workload, which finds unknown names and wrong arguments."""
    import numpy as np

    from simsched.workload.job import Workload
    from simsched.workload.transforms.steps import apply_steps

    apply_steps(Workload(()), [step], np.random.default_rng(0))


def _kept(value: Any, where: str) -> tuple[str, ...]:
    if value not in (*KEPT, *_LISTS):
        expected = f"{', '.join(KEPT)}, or a list of them"
        raise ConfigError(f"unknown value {quoted(value)}", where=where, expected=expected)
    if isinstance(value, str):
        return KEPT[value]
    return tuple(word for word in KEEP if word == "jobs" or word in value)


def _lublin(value: Any, where: str) -> dict[str, Any]:
    LublinWorkload.read(value, where)
    return dict(value)


def _list(item: ValueKind = ANYTHING, expected: str = "a list") -> ValueKind:
    return listed(item, "a list", expected, one_alone=False)


_LUBLIN = ValueKind(_lublin, LublinWorkload.schema())
TEXT, LABEL = text(empty=True), scalar("a label")
EDIT, STEP = _checked(parsed_edit), _checked(_tried)
_TABLE = by_name(ANYTHING, "an object")


class _InputTable(Declared, frozen=True):
    """An input; a text in place of the table is the file."""

    nullable: ClassVar[bool] = False

    @classmethod
    def read(cls, value: Any, where: str, base: Self | None = None) -> Self:
        return super().read({"file": value} if isinstance(value, str) else value, where, base)

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {**super().schema(), "type": ["string", "object"]}


class ClusterTable(_InputTable, frozen=True, kw_only=True):
    """A cluster of a study.

    label : the label of the cluster on an axis.
    file : a cluster file or a bundled name, in place of the recipe.
    recipe : a cluster recipe.
    edits : edits of the cluster, such as resize(all, 240).
    """

    label: Annotated[str | float | None, LABEL] = None
    file: Annotated[str | None, TEXT] = None
    recipe: Annotated[dict[str, Any] | None, _TABLE] = None
    edits: Annotated[tuple[str, ...], _list(EDIT)] = ()


class WorkloadTable(_InputTable, LogReading, frozen=True, kw_only=True):
    """A workload of a study, with the options by which its file is read.

    label : the label of the workload on an axis.
    file : a workload file or a bundled name, in place of a model and of jobs.
    lublin : options of the Lublin-Feitelson model.
    mix : a mix of templates, or the model of a log.
    jobs : a list of jobs.
    transforms : transforms of the jobs, such as first(500).
    """

    label: Annotated[str | float | None, LABEL] = None
    file: Annotated[str | None, TEXT] = None
    lublin: Annotated[dict[str, Any] | None, _LUBLIN] = None
    mix: Annotated[dict[str, Any] | None, _TABLE] = None
    jobs: Annotated[list[Any] | None, _list()] = None
    transforms: Annotated[tuple[str, ...], _list(STEP)] = ()


class AxisTemplate(Declared, frozen=True, kw_only=True):
    """An axis of one edit or one transform, into which its values are inserted.

    edit, transform : the text, with {} for the value.
    values : the values.
    """

    nullable: ClassVar[bool] = False

    edit: Annotated[str | None, TEXT] = None
    transform: Annotated[str | None, TEXT] = None
    values: Annotated[list[Any], sized(_list(), 1, MOST_VALUES)]


_SETTINGS = sized(_list(expected="a list or an object"), 1, MOST_VALUES)
_AXIS = ValueKind(
    lambda value, where: (AxisTemplate if isinstance(value, dict) else _SETTINGS).read(value, where),
    {**AxisTemplate.schema(), **_SETTINGS.schema, "type": ["array", "object"]},
)
_GROUP = sized(_list(TEXT), 2, different=True)
_SEED_LIST = sized(_list(whole(0, 2**63 - 1)), different=True)
_SEED_COUNT = whole(1, MOST_VALUES)


def _seeds(value: Any, where: str) -> tuple[int, ...]:
    seeds: tuple[int, ...] = (_SEED_LIST if isinstance(value, list) else _SEED_COUNT).read(value, where)
    return seeds if isinstance(value, list) else tuple(range(value))


def _config(value: Any, where: str) -> Any:
    if isinstance(value, str | dict):
        return value
    raise ConfigError(
        f"{quoted(value)} is not a configuration", where=where, expected="a string or an object"
    )


_CONFIG = ValueKind(_config, {"type": ["string", "object"]})


class StudyTable(Declared, frozen=True, kw_only=True):
    """A study: many runs that differ in the values of its axes.

    name : a name that is not blank.
    description : a text for people.
    cluster : the cluster.
    site : a folder of a site, in place of cluster.
    workload : the workload.
    config : a configuration file, or its content.
    axes : the values of each axis; the runs are their product.
    zip : groups of axes that vary together instead.
    include, exclude : conditions on the labels of runs.
    seeds : the seeds, or their number.
    keep : the content of each run directory.
    measure : the figures that runs measure.
    """

    nullable: ClassVar[bool] = False

    name: Annotated[str | None, words("a name that is not blank")] = None
    description: Annotated[str, TEXT] = ""
    cluster: ClusterTable | None = None
    site: str | None = None
    workload: WorkloadTable
    config: Annotated[Any, _CONFIG] = msgspec.field(default_factory=dict)
    axes: Annotated[Mapping[str, Any], by_name(_AXIS)] = msgspec.field(default_factory=dict)
    zip: Annotated[list[list[str]], _list(_GROUP)] = msgspec.field(default_factory=list)
    include: Annotated[list[dict[str, Any]], _list(sized(_TABLE))] = msgspec.field(default_factory=list)
    exclude: Annotated[list[dict[str, Any]], _list(sized(_TABLE))] = msgspec.field(default_factory=list)
    seeds: Annotated[
        tuple[int, ...],
        ValueKind(_seeds, {**_SEED_LIST.schema, **_SEED_COUNT.schema, "type": ["integer", "array"]}),
    ] = (0,)
    keep: Annotated[
        tuple[str, ...], ValueKind(_kept, {"type": ["string", "array"], "enum": [*KEPT, *_LISTS]})
    ] = ("jobs",)
    measure: Measure = Measure()

    def checked(self, where: str) -> Self:
        """Return the study; ConfigError for one with neither a cluster nor a site."""
        if self.cluster is None and self.site is None:
            raise ConfigError("the key 'cluster' is missing", where=where, expected="cluster or site")
        return self

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema: a study has a cluster or a site."""
        own = super().schema()
        of_cluster = {"if": {"not": {"required": ["site"]}}, "then": {"required": ["cluster"]}}
        return {"type": own["type"], "required": own["required"], **of_cluster, **own}


# --- the values of a study file, with the places of faults, and the inputs that they name


@dataclass(frozen=True)
class StudyReader:
    """Reads the values of a study file, whose text gives the places of faults; finds inputs relative to it.

    `text` is empty for a document that was built in memory.  `on_site` is how logs are read on the study's
    site; empty without a site.
    """

    home: Path
    text: str = ""
    where: str = "study"
    on_site: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _spots(self) -> Locations:
        """The locations of all values of the text; found once, for the first fault."""
        return Locations.of(self.text)

    def place(self, path: Steps, *, key: bool = False) -> str:
        """Return the place of a value (or of its key): ``study.yaml:7:5: axes.load[1]``."""
        fault = Fault(path, "", where=self.where)
        if self.text:
            line, column = self._spots.key(path) if key else self._spots.value(path)
            fault = replace(fault, line=line, column=column)
        return fault.place

    def fault(
        self, path: Steps, message: str, expected: str | None = None, *, key: bool = False
    ) -> ConfigError:
        """Return the error of a value (or of its key)."""
        return ConfigError(message, where=self.place(path, key=key), expected=expected)

    def read(self, kind: ValueKind | type[Table], value: Any, path: Steps = ()) -> Any:
        """Return the value of a kind or a table at a place of the file.

        Raises
        ------
        ConfigError
            with line, column and path of the first fault, and with the other faults as its `others`.
        """

        def tell(error: SimschedError) -> ConfigError:
            fault, inside = Fault.of(error), split_place(error.where or "")[1]
            place = self.place((*path, *fault.path), key=fault.at_key)
            place = ": ".join(filter(None, (place, inside)))
            return ConfigError(error.message, where=place, expected=error.expected)

        try:
            return kind.read(value, "")
        except SimschedError as error:
            raise error.retold(tell) from None

    def find(self, name: str) -> Path:
        """Return the file of that name beside the study file or, without such a file, the name as a path."""
        beside = self.home / Path(name).expanduser()
        # a folder beside the study does not hide them
        bundled_too = name in {**bundled("clusters"), **bundled("workloads")}
        try:
            return beside if beside.exists() and not (beside.is_dir() and bundled_too) else Path(name)
        except (OSError, ValueError):  # such as a name longer than the file system allows
            return Path(name)

    def cluster(self, value: Any, path: Steps) -> tuple[TaskInput, tuple[str, ...]]:
        """Return a cluster and its edits."""
        table = self.read(ClusterTable, value, path)
        if self._one_of(value, ("file", "recipe"), path) == "recipe":
            name = str(table.recipe.get("name") or table.label or "recipe")
            return TaskInput.of_text(canonical_json(table.recipe).decode(), name), table.edits
        return self._input("clusters", table.file, {}, path), table.edits

    def workload(self, value: Any, path: Steps) -> tuple[TaskInput, tuple[str, ...]]:
        """Return a workload and its transforms."""
        table = self.read(WorkloadTable, value, path)
        kind = self._one_of(value, ("file", *MODELS, "jobs"), path)
        keys = dict.fromkeys(fields_of(WorkloadTable), ANYTHING)
        row = {} if isinstance(value, str) else read_keys(value, "", keys)
        reading = {READING[key]: item for key, item in row.items() if key in READING}
        if isinstance(reading.get("constrain"), str):
            reading["constrain"] = [reading["constrain"]]
        if kind in MODELS:
            odd = next((key for key in row if key in READING and (kind == "mix" or key != "map")), None)
            if odd is not None:
                text = f"{odd!r} applies to files, not to the model {kind}"
                raise self.fault((*path, odd), text, key=True)
            drawn = {key: row[key] for key in (kind, "map") if key in row}
            return _model(drawn, f"model {kind}"), table.transforms
        if kind == "jobs":
            jobs = canonical_json(table.jobs).decode()
            return TaskInput.of_text(jobs, "jobs.yaml", reading=reading), table.transforms
        if self.on_site:
            reading["on_site"] = dict(self.on_site)
        model = model_in(self.find(table.file)) if "as_" not in reading else None
        if model is not None:
            return _model(model, table.file), table.transforms
        return self._input("workloads", table.file, reading, path), table.transforms

    def _one_of(self, value: Any, words: Sequence[str], path: Steps) -> str:
        found = [word for word in words if word in value] if isinstance(value, dict) else ["file"]
        if len(found) != 1:
            fault = f"both {found[0]} and {found[1]} are given" if found else "a key is missing"
            raise self.fault(path, fault, f"one of {', '.join(words)}")
        return found[0]

    def _input(self, room: str, name: str, reading: Mapping[str, Any], path: Steps) -> TaskInput:
        if name == "-":
            raise self.fault(path, "a study cannot read standard input", "a file")
        try:
            found = TaskInput.find(room, str(self.find(name)), reading)
        except SimschedError as error:
            raise error.at(self.place(path)) from None
        return replace(found, name=name)

    def check_options(self, options: Mapping[str, Any], place: str) -> None:
        """Raise SimschedError for an unknown option or a value that is not valid."""
        try:
            make_config(**from_document(dict(options), place))
        except SimschedError as error:
            if error.where and place in error.where:
                raise
            raise error.at(place) from None


def model_in(path: Path) -> dict[str, Any] | None:
    """Return the model that a YAML or JSON file describes (a mix, the model of a log), or None."""
    from simsched.formats.machines.recognition import is_model
    from simsched.formats.text.sniffing import outline_of

    if path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
        return None
    try:
        document = load_document(read_text(path), str(path))
    except SimschedError:  # the reader of the workload reports the place
        return None
    if not isinstance(document, dict):
        return None
    if is_model(outline_of(document)):
        return {"mix": document}
    return document if set(document) <= {*MODELS, "map"} and document else None


def _model(document: Mapping[str, Any], name: str) -> TaskInput:
    return TaskInput.of_text(canonical_json(document).decode(), name, kind=MODEL)
