"""Archives of Flux's KVS (``flux dump FILE``): a tar file with the documents of jobs by their keys.

The documents that jobs consist of are unpacked into a temporary folder, which `read_flux_folder` reads.
"""

from __future__ import annotations

import tarfile
import zlib
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from simsched.errors import FormatError, LimitError, first_line
from simsched.files import scratch_folder
from simsched.workload.readers.flux_jobs import read_flux_folder

if TYPE_CHECKING:
    from simsched.workload.job import Workload
    from simsched.workload.mapping import ReadOptions

DOCUMENTS = frozenset(("jobspec", "eventlog", "R"))
MOST_BYTES = 64 * 1024**2
"""The most bytes of one document, and a thousandth of those of all."""


def read_flux_archive(path: Path, reading: ReadOptions) -> Workload:
    """Read the jobs of a dump of Flux's KVS; errors as `read_flux_folder`.

    Raises
    ------
    FormatError, LimitError
        for a file that is not a tar archive, is cut short, or is too large.
    """
    with scratch_folder() as folder:
        try:
            _unpack(path, folder, reading.source)
            return read_flux_folder(folder, reading)
        except FormatError as error:
            raise type(error)(
                error.message.replace(str(folder), reading.source),
                where=(error.where or reading.source).replace(str(folder), reading.source),
                expected=error.expected,
            ) from None


def _unpack(path: Path, folder: Path, source: str) -> None:
    """Write the documents of jobs into a folder, each at its key."""
    total = 0
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                key = PurePosixPath(member.name)
                if not member.isfile() or key.name not in DOCUMENTS or ".." in key.parts:
                    continue
                total += member.size
                if member.size > MOST_BYTES or total > 1000 * MOST_BYTES:
                    raise LimitError("the archive is too large", where=f"{source}: {member.name}")
                content = archive.extractfile(member)
                if content is not None:
                    place = folder.joinpath(*(part for part in key.parts if part != "/"))
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content.read())
    except (tarfile.TarError, EOFError, OSError, zlib.error, LZMAError) as error:
        raise FormatError(
            f"this is a tar archive that cannot be read: {first_line(error)}",
            where=source,
            expected="a file of flux dump",
        ) from None
