"""`StudyReader`: the values of a study file, with the places of faults, and the inputs that they name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.bundled import bundled
from simsched.declare.kinds import ANYTHING, ValueKind
from simsched.declare.table import fields_of, read_keys
from simsched.errors import ConfigError, SimschedError
from simsched.formats.text.diagnostics import Fault, Locations
from simsched.formats.text.documents import load_document, read_text
from simsched.formats.text.excerpts import split_place
from simsched.simulation.options.run_config import from_document, make_config
from simsched.study.spec.run_task import MODEL, TaskInput, canonical_json
from simsched.study.spec.study_tables import MODELS, READING, ClusterTable, WorkloadTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    from simsched.declare.table import Declared
    from simsched.formats.text.excerpts import Path as Steps

    Table = TypeVar("Table", bound=Declared)


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
    from simsched.workload.models.model_files import is_model_document

    if path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
        return None
    try:
        document = load_document(read_text(path), str(path))
    except SimschedError:  # the reader of the workload reports the place
        return None
    if not isinstance(document, dict):
        return None
    if is_model_document(document):
        return {"mix": document}
    return document if set(document) <= {*MODELS, "map"} and document else None


def _model(document: Mapping[str, Any], name: str) -> TaskInput:
    return TaskInput.of_text(canonical_json(document).decode(), name, kind=MODEL)
