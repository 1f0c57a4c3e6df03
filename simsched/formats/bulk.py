"""Many jobspecs from one file: YAML documents, a JSON document or list, JSON Lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.jobspec import Jobspec

if TYPE_CHECKING:
    from pathlib import Path


def read_jobspecs(path: str | Path) -> list[Jobspec]:
    """Return the jobspecs of a file; the first fault ends the reading.  Raises `FormatError`."""
    from simsched.formats.text import detect_kind, load_document, load_yaml_all, read_text

    text = read_text(path)
    name = "standard input" if str(path) == "-" else str(path)
    kind = detect_kind(text)
    if kind == "jsonl":
        from simsched.formats.text import load_json

        lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
        return [Jobspec.from_dict(load_json(line, f"{name}:{i}"), f"{name}:{i}") for i, line in lines]
    if kind == "json":
        return [Jobspec.from_dict(load_document(text, name), name)]
    if kind != "yaml":
        raise FormatError("this is no jobspec", where=name, expected="YAML or JSON")
    return [Jobspec.from_dict(document, name) for document in load_yaml_all(text, name)]
