"""The folder of a site: the machine, ``queues.toml``, ``README.md`` and the record of the import.

::

    site/cluster.yaml    the machine as a recipe; or cluster.json, a graph that no recipe can hold
    site/queues.toml     the configuration of the queues, in the layout of --config
    site/README.md       the nodes, queues and limits that were understood, and everything assumed
    site/site.json       the sources with their digests, the notes, and the digests of the other files

The machine and ``queues.toml`` make a site; a folder with these two alone, written by hand, is one as
well.  People may edit all files, so an import replaces an earlier import only if its files are as they
were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import tomli_w

from simsched._version import version
from simsched.arguments import check_path
from simsched.errors import ConfigError, RunError, SimschedError
from simsched.folders import Layout, StagedFolder
from simsched.formats.cluster.recipe import format_recipe, parse_recipe, recipe_document
from simsched.formats.machines.description import Note  # noqa: TC001 - the record of a site has notes
from simsched.formats.text.documents import read_bytes
from simsched.formats.text.json_text import decode_json_bulk, encode_json
from simsched.graph.cluster import SITE_FILES, SITE_QUEUES
from simsched.graph.write.documents_of import to_bytes
from simsched.simulation.options.config_file import read_document
from simsched.simulation.options.run_config import from_document, make_config
from simsched.simulation.record.file_digests import digest_of
from simsched.site.site import Site, SiteSource
from simsched.site.site_tables import readme

if TYPE_CHECKING:
    from collections.abc import Iterator


README, RECORD = "README.md", "site.json"
EXPECTED = "a folder with cluster.yaml or cluster.json, and queues.toml"
FORMAT = 1


class SiteRecord(msgspec.Struct, kw_only=True):
    """The content of ``site.json``: `files` are the digests of the other files, by name."""

    simsched: str
    site: int
    name: str
    format: str = ""
    cpus_per_core: Annotated[int, msgspec.Meta(ge=1)] = 1
    sources: tuple[SiteSource, ...] = ()
    logs: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    files: dict[str, str] = {}


OF_IMPORT = ("notes", "sources", "format", "cpus_per_core", "logs")
"""The fields of a site that ``site.json`` keeps, beside its name."""


# --- reading --------------------------------------------------------------------------------


def load_site(path: str | Path) -> Site:
    """Return the site of a folder, which ``simsched site import`` or a person has written.

    The machine is read at the first use of `Site.cluster`.

    Raises
    ------
    ConfigError, FormatError
        if the folder or one of its files is missing, or the configuration is not valid; with the place.
    """
    check_path("path", path)
    folder = Path(path)
    if not folder.is_dir():
        fault = "this is a file" if folder.exists() else "there is no such folder"
        raise ConfigError(fault, where=str(folder), expected=EXPECTED)
    machines = [folder / name for name in SITE_FILES if (folder / name).is_file()]
    if len(machines) != 1:
        fault = "both cluster.yaml and cluster.json" if machines else "no cluster file"
        raise ConfigError(f"the site has {fault}", where=str(folder), expected=EXPECTED)
    queues = folder / SITE_QUEUES
    if not queues.is_file():
        raise ConfigError(f"the site has no {SITE_QUEUES}", where=str(folder), expected=EXPECTED)
    config = read_document(queues)
    make_config(**from_document(config, str(queues)))
    record = _record(folder)
    known = record or SiteRecord(simsched="", site=FORMAT, name=folder.resolve().name or "site")
    config = {key.replace("_", "-"): value for key, value in config.items()}
    of_import = {key: getattr(known, key) for key in OF_IMPORT}
    return Site(name=known.name, config=config, cluster_file=machines[0], **of_import)


def _record(folder: Path) -> SiteRecord | None:
    """Return ``site.json``; None without one, FormatError if it is damaged."""
    path = folder / RECORD
    return decode_json_bulk(read_bytes(path), str(path), kind=SiteRecord) if path.is_file() else None


def _imported(folder: Path) -> SiteRecord | None:
    """Return the record of an imported site; None for any other folder."""
    with suppress(SimschedError):
        record = _record(folder)
        return record if record is not None and record.files else None
    return None


def _edited(folder: Path, record: SiteRecord) -> Iterator[str]:
    """Yield the files of an imported site that were changed or removed since the import."""
    for name, digest in record.files.items():
        path = folder / Path(name).name
        if not path.is_file() or digest_of(path) != digest:
            yield name


# --- the rule of replacement ------------------------------------------------------------------


def _strangers(folder: Path) -> Iterator[str] | None:
    """Return the entries of a folder that an import would lose; None if it is not an imported site."""
    record = _imported(folder)
    if record is None:
        return None
    own = {RECORD, *record.files}
    others = (
        path.name
        for path in sorted(folder.iterdir())
        if path.name not in own or path.is_symlink() or not path.is_file()
    )
    return chain(others, (name for name in _edited(folder, record) if (folder / name).exists()))


def _is_whole(folder: Path) -> bool:
    record = _imported(folder)
    return record is not None and not any(_edited(folder, record))


SITE = Layout("site", _strangers, _is_whole)
"""The layout of the folder of a site, by which an earlier import is recognised."""


def refuse_edited(directory: str | Path) -> None:
    """Raise RunError if an import into a directory would lose changes that a person made there."""
    folder = Path(directory)
    record = _imported(folder)
    for name in _edited(folder, record) if record is not None else ():
        if (folder / name).exists():
            text = f"{name} was edited since the site was imported, and the changes would be lost"
            expected = "another directory, or the edited file elsewhere"
            raise RunError(text, where=str(directory), expected=expected)


# --- writing --------------------------------------------------------------------------------


def save_site(site: Site, directory: str | Path) -> Path:
    """Write the folder of a site, and return its path.

    Raises
    ------
    RunError
        if the directory cannot be written, or holds anything but an earlier import that is as it was
        written.
    """
    refuse_edited(directory)
    with StagedFolder(directory, SITE) as staged:
        queues = tomli_w.dumps(_plain(site.config)) or "# The sources name no queues.\n"
        files = {**_cluster_text(site), SITE_QUEUES: f"{HEAD.format(name=site.name)}\n{queues}"}
        files[README] = readme(site, next(iter(files)), str(directory))
        for name, text in files.items():
            (staged.work / name).write_text(text, encoding="utf-8")
        # site.json is last: it has the digests of all other files
        digests = {path.name: digest_of(path) for path in sorted(staged.work.iterdir())}
        of_import = {key: getattr(site, key) for key in OF_IMPORT}
        record = SiteRecord(simsched=version(), site=FORMAT, name=site.name, files=digests, **of_import)
        (staged.work / RECORD).write_bytes(encode_json(msgspec.to_builtins(record)))
        return staged.finish()


def _cluster_text(site: Site) -> dict[str, str]:
    """Return the file of the machine: a recipe if it says the same, else the graph as JGF."""
    if site.cluster_file is not None:
        return {site.cluster_file.name: site.cluster_file.read_text(encoding="utf-8")}
    if site.recipe is not None:
        document = recipe_document(site.recipe)
        try:
            same = parse_recipe(document) == site.recipe
        except SimschedError:  # a reader may divide a node in ways that a recipe has no words for
            same = False
        if same:
            return {"cluster.yaml": format_recipe(document)}
    return {"cluster.json": to_bytes(site.cluster.graph, "jgf").decode()}


HEAD = """\
# The queues of {name}: the layout of --config, with the words of RFC 33.
# Edit this file freely.  `simsched --site` reads it, and an import never replaces an edited file.
"""


def _plain(value: Any) -> Any:
    """Return a value as the types that TOML has: dict and list."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def site_given(value: object) -> Site | None:
    """Return the site that a value is, or whose folder it is; None for a cluster."""
    if isinstance(value, Site):
        return value
    if isinstance(value, str | PathLike) and (Path(value) / SITE_QUEUES).is_file():
        return load_site(Path(value))
    return None


def rules_on(site: Site | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `RunConfig` of a run on a site; those that are given (not None) come first.

    Options of a queue policy belong to it, so that another policy does not get those of the site.
    """
    own = {name: value for name, value in given.items() if value is not None}
    if site is None:
        return own
    rules = from_document(site.config, str(site.path or site.name))
    if rules.get("queue_options") and isinstance(own.get("queue_options"), dict):
        own["queue_options"] = {**rules["queue_options"], **own["queue_options"]}
    return {**rules, **own}
