"""The bundled clusters and workloads by name.

In a wheel they are package data; in a checkout they are the top-level folders ``clusters/`` and
``workloads/`` of the repository.
"""

from __future__ import annotations

import re
from pathlib import Path

from simsched.arguments import wrong
from simsched.errors import ConfigError, did_you_mean

_PACKAGE = Path(__file__).resolve().parent
_NOT_DATA = ("README", ".")
_ROW = re.compile(r"^\| `([^`|]+)` \| ((?:[^|.;:]|[.;:](?! ))+)", re.MULTILINE)
"""A row of the table: the name, and the content up to the end of its first sentence."""


def folder(kind: str) -> Path:
    """Return the folder that holds the bundled files of a kind (``"clusters"``, ``"workloads"``)."""
    installed = _PACKAGE / "data" / kind
    return installed if installed.is_dir() else _PACKAGE.parent / kind


def plain_name(path: Path) -> str:
    """Return a file's name up to its first dot.

    >>> plain_name(Path("clusters/tiny.json")), plain_name(Path("month.swf.gz"))
    ('tiny', 'month')
    """
    return path.name.split(".")[0]


def bundled(kind: str) -> dict[str, Path]:
    """Return name → file of all bundled inputs of a kind, sorted by name."""
    home = folder(kind)
    if not home.is_dir():
        return {}
    files = sorted(path for path in home.iterdir() if path.is_file() and not path.name.startswith(_NOT_DATA))
    return {plain_name(path): path for path in files}


def summaries(kind: str) -> dict[str, str]:
    """Return name → content of each bundled input of a kind, one sentence from the README beside them."""
    readme = folder(kind) / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    found = {row[1]: row[2] for row in _ROW.finditer(text)}
    return {name: found.get(name, "").replace("`", "").removesuffix(".") for name in bundled(kind)}


def resolve(kind: str, path_or_name: str | Path) -> Path:
    """Return the file of a path or a bundled name; ``-`` stays as it is.

    Raises
    ------
    ConfigError
        if there is no such file or name; the message lists the names.
    """
    if not isinstance(path_or_name, str | Path):
        raise wrong(kind.removesuffix("s"), path_or_name, "a file, or a bundled name")
    if not str(path_or_name):
        noun = kind.removesuffix("s")
        raise ConfigError(f"the name of the {noun} is empty", expected="a file, or a bundled name")
    path = Path(path_or_name)
    if str(path_or_name) == "-" or _is_file(path):
        return path
    known = bundled(kind)
    found = known.get(str(path_or_name))
    if found is not None:
        return found
    fault = "is a directory" if _is_file(path, folder=True) else "no such file"
    names = ", ".join(known) or "none"
    raise ConfigError(
        f"{fault}{did_you_mean(str(path_or_name), known)}",
        where=str(path_or_name),
        expected=f"a file, or a bundled name of {kind}: {names}",
    )


def is_folder(path: str | Path) -> bool:
    """Return whether there is a folder of this name; false for names that no file can have."""
    return _is_file(Path(path), folder=True)


def _is_file(path: Path, *, folder: bool = False) -> bool:
    try:
        return path.is_dir() if folder else path.exists() and not path.is_dir()  # a pipe is a file as well
    except (OSError, ValueError):  # such as a name longer than the file system allows
        return False
