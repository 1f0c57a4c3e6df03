"""Finds the inputs that a study file names, takes their digests, and makes the checks that cost nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.bundled import bundled
from simsched.declare.table import fields_of
from simsched.errors import ConfigError, SimschedError
from simsched.study.spec.run_task import MODEL, TaskInput, canonical_json
from simsched.workload.reading_options import ReadingOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.study_document import StudyDocument
    from simsched.formats.text.excerpts import Path as Steps

#: key of a workload in a study file → keyword of `load_workload`
READING = {key: one.name for key, one in fields_of(ReadingOptions).items() if key != "transform"}
MODELS = ("lublin", "mix")


def model_in(path: Path) -> dict[str, Any] | None:
    """Return the model that a YAML or JSON file describes (a mix, the model of a log), or None."""
    from simsched.formats.text.documents import load_document, read_text
    from simsched.workload.models.mix import is_model_document

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
    return document if set(document) <= {"lublin", "mix", "map"} and document else None


@dataclass(frozen=True, slots=True)
class InputFinder:
    """Finds inputs relative to a study file, whose document gives the places of faults.

    `on_site` is how logs are read on the study's site; empty without a site.
    """

    home: Path
    document: StudyDocument
    on_site: Mapping[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> Path:
        """Return the file of that name beside the study file or, without such a file, the name as a path."""
        beside = self.home / Path(name).expanduser()
        bundled_too = name in {
            **bundled("clusters"),
            **bundled("workloads"),
        }  # a folder beside the study does not hide them
        try:
            return beside if beside.exists() and not (beside.is_dir() and bundled_too) else Path(name)
        except (OSError, ValueError):  # such as a name longer than the file system allows
            return Path(name)

    # --- clusters

    def cluster(self, value: Any, path: Steps) -> tuple[TaskInput, tuple[str, ...]]:
        """Return a cluster and its edits."""
        row: dict[str, Any] = {"file": value} if isinstance(value, str) else value
        self._one_of(row, ("file", "recipe"), path)
        edits = tuple(row.get("edits", ()))
        self.check_edits(edits, (*path, "edits"))
        if "recipe" in row:
            text = canonical_json(row["recipe"]).decode()
            name = str(row["recipe"].get("name") or row.get("label") or "recipe")
            return TaskInput.of_text(text, name), edits
        return self._input("clusters", row["file"], {}, path), edits

    # --- workloads

    def workload(self, value: Any, path: Steps) -> tuple[TaskInput, tuple[str, ...]]:
        """Return a workload and its transforms."""
        row: dict[str, Any] = {"file": value} if isinstance(value, str) else value
        kind = self._one_of(row, ("file", *MODELS, "jobs"), path)
        steps = tuple(row.get("transforms", ()))
        self.check_steps(steps, (*path, "transforms"))
        reading = {READING[key]: item for key, item in row.items() if key in READING}
        if kind in MODELS:
            odd = [key for key in reading if kind == "mix" or key != "map"]
            if odd:
                key = next(key for key in row if READING.get(key) == odd[0])
                raise ConfigError(
                    f"{key!r} applies to files, not to the model {kind}",
                    where=self.document.place((*path, key), key=True),
                )
            return self._model(kind, row), steps
        if kind == "jobs":
            return TaskInput.of_text(
                canonical_json(row["jobs"]).decode(), "jobs.yaml", reading=reading
            ), steps
        if self.on_site:
            reading["on_site"] = dict(self.on_site)
        model = model_in(self.find(str(row["file"])))
        if model is not None and "as_" not in reading:
            text = canonical_json(model).decode()
            return TaskInput.of_text(text, str(row["file"]), kind=MODEL), steps
        return self._input("workloads", row["file"], reading, path), steps

    def _model(self, kind: str, row: Mapping[str, Any]) -> TaskInput:
        document = {kind: row[kind]}
        if kind == "lublin" and "map" in row:
            document["map"] = row["map"]
        return TaskInput.of_text(canonical_json(document).decode(), f"model {kind}", kind=MODEL)

    def _one_of(self, row: Mapping[str, Any], words: Sequence[str], path: Steps) -> str:
        found = [word for word in words if word in row]
        if len(found) != 1:
            fault = f"both {found[0]} and {found[1]} are given" if found else "a key is missing"
            raise ConfigError(fault, where=self.document.place(path), expected=f"one of {', '.join(words)}")
        return found[0]

    def _input(self, room: str, name: str, reading: Mapping[str, Any], path: Steps) -> TaskInput:
        place = self.document.place(path)
        if name == "-":
            raise ConfigError("a study cannot read standard input", where=place, expected="a file")
        try:
            found = TaskInput.find(room, str(self.find(name)), reading)
        except SimschedError as error:
            raise error.at(place) from None
        return replace(found, name=name)

    # --- checks that cost nothing

    def check_edits(self, edits: Sequence[str], path: Steps) -> None:
        """Raise SimschedError for an unknown edit."""
        for number, text in enumerate(edits):
            self.check_edit(text, (*path, number))

    def check_edit(self, text: str, path: Steps) -> None:
        """Raise SimschedError for an unknown edit."""
        from simsched.study.spec.edits import parsed_edit

        try:
            parsed_edit(text)
        except SimschedError as error:
            raise error.at(self.document.place(path)) from None

    def check_steps(self, steps: Sequence[str], path: Steps) -> None:
        """Raise SimschedError for an unknown transform or wrong arguments."""
        for number, text in enumerate(steps):
            self.check_step(text, (*path, number))

    def check_step(self, text: str, path: Steps) -> None:
        """Raise SimschedError for an unknown transform or wrong arguments, tried on an empty workload."""
        import numpy as np

        from simsched.workload.job import Workload
        from simsched.workload.transforms.steps import apply_steps

        try:
            apply_steps(Workload(()), [text], np.random.default_rng(0))
        except SimschedError as error:
            raise error.at(self.document.place(path)) from None

    def check_options(self, options: Mapping[str, Any], place: str) -> None:
        """Raise SimschedError for an unknown option or a value that is not valid."""
        from simsched.simulation.options.run_config import from_document, make_config

        try:
            make_config(**from_document(dict(options), place))
        except SimschedError as error:
            if error.where and place in error.where:
                raise
            raise error.at(place) from None
