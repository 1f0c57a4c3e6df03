"""The inputs that a study file names: found, digested, checked as far as that costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.bundled import bundled
from simsched.errors import ConfigError, SimschedError
from simsched.study.runs.task import MODEL, Input, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.study_document import StudyDocument
    from simsched.formats.text.excerpts import Path as Steps

#: key of a workload in a study file → keyword of `load_workload`
READING = {
    "map": "map",
    "procs-per-node": "procs_per_node",
    "as": "as_",
    "limit": "limit",
    "constrain": "constrain",
    "columns": "columns",
    "delimiter": "delimiter",
    "strict": "strict",
}
MODELS = ("lublin", "mix")


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds what a study file names: where that file is, and its text for the places of faults."""

    home: Path
    document: StudyDocument

    def find(self, name: str) -> Path:
        """Return the file of that name beside the study file, or as seen from here if there is none."""
        beside = self.home / Path(name).expanduser()
        bundled_too = name in {**bundled("clusters"), **bundled("workloads")}  # no folder hides these
        try:
            return beside if beside.exists() and not (beside.is_dir() and bundled_too) else Path(name)
        except (OSError, ValueError):  # such as a name longer than the file system allows
            return Path(name)

    # --- clusters

    def cluster(self, value: Any, path: Steps) -> tuple[Input, tuple[str, ...]]:
        """Return a cluster and the edits made to it."""
        row: dict[str, Any] = {"file": value} if isinstance(value, str) else value
        self._one_of(row, ("file", "recipe"), path)
        edits = tuple(row.get("edits", ()))
        self.check_edits(edits, (*path, "edits"))
        if "recipe" in row:
            text = canonical(row["recipe"]).decode()
            name = str(row["recipe"].get("name") or row.get("label") or "recipe")
            return Input.of_text(text, name), edits
        return self._input("clusters", row["file"], {}, path), edits

    # --- workloads

    def workload(self, value: Any, path: Steps) -> tuple[Input, tuple[str, ...]]:
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
                    f"{key!r} says how a file is read", where=self.document.place((*path, key), key=True)
                )
            return self._model(kind, row), steps
        if kind == "jobs":
            return Input.of_text(canonical(row["jobs"]).decode(), "jobs.yaml", reading=reading), steps
        return self._input("workloads", row["file"], reading, path), steps

    def _model(self, kind: str, row: Mapping[str, Any]) -> Input:
        document = {kind: row[kind]}
        if kind == "lublin" and "map" in row:
            document["map"] = row["map"]
        return Input.of_text(canonical(document).decode(), f"model {kind}", kind=MODEL)

    def _one_of(self, row: Mapping[str, Any], words: Sequence[str], path: Steps) -> str:
        said = [word for word in words if word in row]
        if len(said) != 1:
            what = "it is not said which" if not said else f"both {said[0]} and {said[1]}"
            raise ConfigError(what, where=self.document.place(path), expected=f"one of {', '.join(words)}")
        return said[0]

    def _input(self, room: str, name: str, reading: Mapping[str, Any], path: Steps) -> Input:
        place = self.document.place(path)
        if name == "-":
            raise ConfigError("standard input can be read only once", where=place, expected="a file")
        try:
            found = Input.find(room, str(self.find(name)), reading)
        except SimschedError as error:
            raise error.at(place) from None
        return replace(found, name=name)

    # --- checks that cost nothing

    def check_edits(self, edits: Sequence[str], path: Steps) -> None:
        """Refuse edits that do not exist."""
        for number, text in enumerate(edits):
            self.check_edit(text, (*path, number))

    def check_edit(self, text: str, path: Steps) -> None:
        """Refuse an edit that does not exist."""
        from simsched.study.spec.edits import taken_apart

        try:
            taken_apart(text)
        except SimschedError as error:
            raise error.at(self.document.place(path)) from None

    def check_steps(self, steps: Sequence[str], path: Steps) -> None:
        """Refuse transforms that do not exist, or not with such arguments."""
        for number, text in enumerate(steps):
            self.check_step(text, (*path, number))

    def check_step(self, text: str, path: Steps) -> None:
        """Refuse a transform that does not exist, or not with such arguments: an empty workload is tried."""
        from simsched.study.runs.cache import generator
        from simsched.workload.job import Workload
        from simsched.workload.transforms.steps import apply_steps

        try:
            apply_steps(Workload(()), [text], generator(0))
        except SimschedError as error:
            raise error.at(self.document.place(path)) from None

    def check_options(self, options: Mapping[str, Any], place: str) -> None:
        """Refuse options that do not exist, or values that they do not take."""
        from simsched.simulation.options.run_config import from_document, make_config

        try:
            make_config(**from_document(dict(options), place))
        except SimschedError as error:
            if error.where and place in error.where:
                raise
            raise error.at(place) from None
