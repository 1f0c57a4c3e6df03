"""The files that a workload names, such as jobspecs beside a ``jobs.yaml``; they belong to its content."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: lists of jobs above this number of bytes are generated and name no files
MAX_BYTES = 32 * 2**20


def parts_of(path: Path, as_: str | None = None) -> dict[str, Path]:
    """Return name → file of the files that a list of jobs names; empty for other workloads.

    Missing files are not reported here; the reader of the workload reports them.
    """
    from simsched.workload.load import detect
    from simsched.workload.source import Source

    try:
        source = Source.of(path)
        if source.content is not None or path.stat().st_size > MAX_BYTES:
            return {}
        if (as_ or detect(source.head(), path.name)) not in {"jobs", "jsonl"}:
            return {}
        text = source.text()
        names = dict.fromkeys(_names(text)) if "file" in text else {}
    except (SimschedError, OSError):
        return {}
    return {name: path.parent / name for name in names if _is_inside(name) and (path.parent / name).is_file()}


def _names(text: str) -> Iterator[str]:
    from simsched.formats.text.documents import load_document
    from simsched.formats.text.json_text import load_json
    from simsched.formats.text.sniffing import detect_kind

    if detect_kind(text) == "jsonl":
        documents: Any = [load_json(line) for line in text.splitlines() if line.strip()]
    else:
        documents = load_document(text)
    whole = documents if isinstance(documents, dict) else {"jobs": documents}
    entries = whole.get("jobs")
    for entry in [*(entries if isinstance(entries, list) else ()), whole, whole.get("defaults")]:
        if isinstance(entry, dict) and isinstance(entry.get("file"), str):
            yield entry["file"]


def _is_inside(name: str) -> bool:
    """Whether a name stays below its folder, so that the file can be sent with it."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and not Path(name).is_absolute()
