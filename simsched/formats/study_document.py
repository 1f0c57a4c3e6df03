"""Study files: a ``study.yaml`` is read and checked, and its faults get their places.

The JSON Schema ``schemas/study.json`` defines the documents; `simsched.study` gives them their meaning.
The keys are described in docs/studies.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simsched.formats.text.diagnostics import Fault, located
from simsched.formats.text.documents import load_document, name_of, read_text
from simsched.formats.text.schemas import first_fault

if TYPE_CHECKING:
    from pathlib import Path

    from simsched.formats.text.diagnostics import Locations
    from simsched.formats.text.excerpts import Path as Steps


@dataclass(frozen=True)
class StudyDocument:
    """A study document that the schema allows, and the text that it was read from.

    `text` is empty for a document that was built in memory.
    """

    content: dict[str, Any]
    text: str = ""
    where: str = "study"

    def place(self, path: Steps, *, key: bool = False) -> str:
        """Return the place of a value (or of its key): ``study.yaml:7:5: axes.load[1]``."""
        fault = Fault(path, "", at_key=key, where=self.where)
        if self.text:
            line, column = self._spots.key(path) if key else self._spots.value(path)
            fault = replace(fault, line=line, column=column)
        return fault.place

    @cached_property
    def _spots(self) -> Locations:
        """The locations of all values of the text; found once, for the first fault."""
        from simsched.formats.text.diagnostics import Locations

        return Locations.of(self.text)


def read_study_document(path: str | Path) -> StudyDocument:
    """Read a study file, YAML or JSON.

    Raises
    ------
    FormatError
        with line, column and path of a value that the schema does not allow.
    """
    text, where = read_text(path), name_of(path)
    return study_document(load_document(text, where), text, where)


def study_document(content: Any, text: str = "", where: str = "study") -> StudyDocument:
    """Check a document against the schema.

    >>> study_document({"cluster": "tiny"})
    Traceback (most recent call last):
    simsched.errors.FormatError: study: the key 'workload' is missing
    """
    fault = first_fault("study", content, where)
    if fault is None:
        return StudyDocument(content, text, where)
    raise (located([fault], text, where)[0] if text else fault).error()
