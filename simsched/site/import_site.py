"""The import of a site: the files of a centre become one `Site`.

`formats.machines` reads the files.  Here logs are set aside, the configuration is checked, and memory is
counted in MB, since a log's requests for memory are.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from simsched.arguments import check_path
from simsched.errors import ConfigError, SimschedError
from simsched.formats.cluster.recipe import Amount, PoolSpec, Recipe
from simsched.formats.machines.accounts import plain_rows, read_accounts
from simsched.formats.machines.description import MachineDescription, Note
from simsched.formats.machines.read import KNOWN, describe_inputs, sort_out
from simsched.formats.rfc.units import UNITS, convert
from simsched.simulation.options.run_config import from_document, make_config
from simsched.simulation.record.file_digests import digest_of
from simsched.site.site import Site, SiteSource

if TYPE_CHECKING:
    from collections.abc import Sequence


def import_site(*paths: str | Path, strict: bool = False) -> Site:
    """Return the site that files and folders of a centre describe (slurm.conf, Flux's configuration …).

    Files of a folder that are logs of jobs are left aside, with a note.  Under `strict` a line that is not
    understood is an error.

    Raises
    ------
    ConfigError, FormatError, ClusterError
        if no file describes nodes, files contradict each other, or a file cannot be read; with the place.
    """
    for path in paths:
        check_path("paths", path)
    if not paths:
        raise ConfigError("there is no file to import", where="import_site", expected="files or folders")
    inputs = sort_out([Path(path) for path in paths])
    if inputs.logs and not inputs.described:
        raise ConfigError("there are only logs of jobs", where=", ".join(map(str, paths)), expected=KNOWN)
    description = describe_inputs(inputs, strict=strict)
    if inputs.accounts:
        description = _with_accounts(description, inputs.accounts)
    described = [path for path, *_ in inputs.described]
    return site_of(description, list(dict.fromkeys((*described, *inputs.accounts))), inputs.logs)


def site_of(description: MachineDescription, sources: Sequence[Path], logs: Sequence[Path] = ()) -> Site:
    """Return the site of a description; `sources` are the files that it was read from.

    Raises
    ------
    ConfigError
        if its configuration is not valid.
    """
    where = ", ".join(map(str, sources)) or description.format
    try:
        make_config(**from_document(description.config, where))
    except SimschedError as error:
        raise error if error.where and where in error.where else error.at(where) from None
    folder = sources[0].resolve().parent.name if sources else ""
    name = description.recipe.name or folder or "site"
    text = "a log of jobs is not part of a site; `simsched run --site` takes it"
    return Site(
        name=name,
        config=description.config,
        notes=(*description.notes, *(Note("left out", text, str(path)) for path in logs)),
        logs=tuple(map(str, logs)),
        sources=tuple(SiteSource(str(path), digest_of(path)) for path in sources if path.is_file()),
        format=description.format,
        cpus_per_core=description.cpus_per_core,
        recipe=replace(_in_megabytes(description.recipe), name=name),
    )


def _with_accounts(description: MachineDescription, paths: Sequence[Path]) -> MachineDescription:
    """Return a description whose priority has the accounts of these files."""
    where = ", ".join(map(str, paths))
    priority = description.config.get("priority")
    if priority is None or "fair-share" not in priority["factors"]:
        note = Note("left out", "accounts: the priority of jobs has no fair share", where)
        return replace(description, notes=(*description.notes, note))
    left: list[str] = []
    rows = plain_rows(read_accounts(paths, description.recipe.name or "", left.append))
    users = sum("user" in row for row in rows)
    note = Note("assumed", f"fair share: {users:,} users in {len(rows) - users:,} accounts", where)
    notes = [text for text in description.notes if not text.text.startswith("fair share: ")]
    notes += [Note("left out", text, where) for text in left]
    config = {**description.config, "priority": {**priority, "accounts": rows}}
    return replace(description, config=config, notes=(*notes, note))


def _in_megabytes(recipe: Recipe) -> Recipe:
    """Return the machine with the memory of its nodes in MB or MiB.

    A request is rounded up to whole units of the machine's memory: in GB, each core would take one.  Smaller
    units say nothing more, since logs state MB.
    """

    def finer(pool: PoolSpec) -> PoolSpec:
        amount = pool.amount
        if pool.type != "memory" or amount.unit not in UNITS:
            return pool
        unit = "MiB" if "i" in amount.unit or amount.unit == "B" else "MB"
        size = int(convert(amount.size, amount.unit, unit))  # rounded down: no job gets what is not there
        return pool.replace(amount=Amount(size, unit)) if size else pool

    groups = tuple(replace(group, pools=tuple(map(finer, group.pools))) for group in recipe.groups)
    return replace(recipe, groups=groups)
