"""The SHA-256 of every file of a run directory, kept in ``run.json`` to find later changes.

``run.json`` has ``files``, name → digest of every other file of the run, and ``sha256``, the digest of its
own content.  The latter ignores the date and the speed of the run (`VOLATILE`), so that equal runs have
equal digests.
"""

from __future__ import annotations

import json
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RECORD = "run.json"
VOLATILE = ("created", "wall_seconds", "jobs_per_second")
"""Keys of ``run.json`` that differ between equal runs."""
KEYS = ("files", "sha256")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def with_digests(meta: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` with the digests of the files of `folder`."""
    files = {path.name: digest_of(path) for path in sorted(folder.iterdir()) if path.name != RECORD}
    recorded = json.loads(json.dumps({**meta, "files": files}))  # as readers will see it
    return {**recorded, "sha256": content_digest(recorded)}


def content_digest(meta: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content of a ``run.json``, without `VOLATILE` and the digest itself."""
    kept = {key: value for key, value in meta.items() if key not in (*VOLATILE, "sha256")}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()


def has_digests(meta: Mapping[str, Any]) -> bool:
    """Whether ``run.json`` has digests; runs of earlier versions have none."""
    return any(key in meta for key in KEYS)


def changed_files(meta: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield the files of a run directory that changed since the run, ``run.json`` included."""
    files = meta.get("files")
    if meta.get("sha256") != content_digest(meta):
        yield f"{RECORD} was changed: its content does not have the recorded digest"
    if not isinstance(files, dict):
        yield f"{RECORD} has no digests of the files"
        return
    for name, digest in files.items():
        path = folder / Path(name).name
        if not path.is_file():
            yield f"{name} is missing"
        elif digest_of(path) != digest:
            yield f"{name} was changed: it does not have the digest in {RECORD}"


def changed_inputs(meta: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield (whether it was changed, message) for each input file that changed or is missing."""
    inputs = meta.get("inputs")
    roles = (
        {known.get("role") for known in inputs if isinstance(known, dict)} if isinstance(inputs, list) else ()
    )
    for role in ("cluster", "workload"):
        if meta.get("command") is not None and role not in roles:
            yield True, f"run.json has the command of the run, and does not have its {role} among the inputs"
    for known in filter(lambda known: isinstance(known, dict), inputs if isinstance(inputs, list) else ()):
        digest, path = known.get("sha256"), Path(str(known.get("name")))
        if digest is None:
            continue
        if not path.is_file():
            yield False, f"the {known.get('role')} {path} is missing and was not compared"
        elif digest_of(path) != digest:
            yield True, f"the {known.get('role')} {path} has changed since the run was made"
