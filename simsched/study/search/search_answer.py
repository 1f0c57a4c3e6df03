"""`SearchAnswer`: the answer of a search, which can be read, printed and written, and its inputs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from simsched.declare.answers import WrittenKeys, meaning, taken
from simsched.folders import StagedFolder
from simsched.study.study_folder import search_layout

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

    from simsched.folders import Layout
    from simsched.study.spec.run_task import RunTask

Ends = tuple[float | None, float | None]
"""The ends of an interval; null if they are not known."""


class InputOfSearch(WrittenKeys):
    """An input: its name and digest, and how it was read."""

    role: Literal["cluster", "workload"]
    name: str
    sha256: str
    reading: dict[str, Any]


class MeasuredJobs(WrittenKeys):
    """Times of submissions (s) that are ignored at the beginning and at the end."""

    warm_up: float
    drain: float


class AboutSearch(WrittenKeys):
    """The inputs of a search, and how they were run."""

    inputs: Annotated[list[InputOfSearch], meaning("the cluster and the workload")]
    transforms: Annotated[list[str], meaning("steps that change the workload")]
    options: Annotated[
        dict[str, Any], meaning("the rules of the runs, a configuration (its schema is config)")
    ]
    measure: Annotated[MeasuredJobs, meaning("the jobs that are measured")]


class SearchAnswer(ABC):
    """The answer of a search; it is true if something was found.

    Attributes
    ----------
    files : the files of its directory: the first, the table, and the record, which is written last.
    layout : the layout of the directory, by which an earlier answer is recognized.
    """

    files: ClassVar[tuple[str, str, str]]
    layout: ClassVar[Layout]

    def __init_subclass__(cls, *, noun: str, files: tuple[str, str, str], keys: set[str]) -> None:
        """State the name of such answers, their files, and the keys by which their record is recognized."""
        cls.files, cls.layout = files, search_layout(noun, files, keys)

    @abstractmethod
    def __bool__(self) -> bool:
        """Whether something was found."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer in a few sentences."""

    @property
    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """The values that were tried, one row each."""

    @abstractmethod
    def text(self) -> str:
        """Return the whole answer for a terminal."""

    @abstractmethod
    def to_dict(self) -> Mapping[str, Any]:
        """Return the answer as plain data; equal searches give equal data."""

    @abstractmethod
    def write_first(self, path: Path) -> None:
        """Write the first of the files, if that is possible."""

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return `frame` as CSV, times in seconds."""
        from simsched.report.export import csv_text

        return csv_text(self.frame)

    @property
    def title(self) -> str:
        """The title of the answer in a notebook."""
        return self.layout.noun

    def _repr_html_(self) -> str:
        """Return the whole answer for a notebook."""
        from simsched.text_table import html_text

        return html_text(self.title, self.text())

    def write(self, directory: str | Path) -> list[Path]:
        """Write the directory of the answer and return its files.

        Raises
        ------
        RunError
            if the directory cannot be written, or holds anything but an earlier answer, which is replaced.
        """
        with StagedFolder(directory, self.layout) as staged:
            return self.finish(staged)

    def finish(self, staged: StagedFolder) -> list[Path]:
        """Write the answer into a staged folder, give the folder its name, and return the files."""
        first, table, record = (staged.work / name for name in self.files)
        self.write_first(first)
        table.write_bytes(self.to_csv().encode())
        record.write_bytes(self.to_json().encode())
        path = staged.finish()
        return [path / name for name in self.files if (path / name).exists()]


def about_of(base: RunTask, **more: Any) -> Any:
    """Return an `AboutSearch` with `more`: the names and digests of inputs, and how they were run."""
    sources = {"cluster": base.cluster, "workload": base.workload}
    inputs = [
        taken(InputOfSearch, one, role=role, reading=dict(one.reading)) for role, one in sources.items()
    ]
    transforms, options = list(base.transforms), dict(base.options)
    measure = taken(MeasuredJobs, base.measure)
    about = taken(AboutSearch, base, inputs=inputs, transforms=transforms, options=options, measure=measure)
    return {**more, **about}
