"""The records of ``allocations.jsonl``, read with their times; an R is decoded when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from simsched.errors import RunError, SimschedError
from simsched.formats.cluster.rset import ResourceSet

if TYPE_CHECKING:
    from pathlib import Path


class AllocationRecord(msgspec.Struct, gc=False):
    """One line: the resources `R` that the job `id` got or released at `time` (s).

    R is kept as its JSON text. A release of the whole allocation repeats the text of its R.
    """

    id: int | str
    event: str
    time: float
    R: msgspec.Raw

    def resources(self) -> ResourceSet:
        """Return the R; RunError if it is not one."""
        try:
            return ResourceSet.from_dict(msgspec.json.decode(self.R))
        except SimschedError as error:
            fault = f"the R of job {self.id} at {self.time:g} s cannot be read: {error}"
            raise RunError(fault, where="allocations.jsonl") from None


def read_records(file: Path) -> list[AllocationRecord]:
    """Return the records in the order of the file; RunError if it cannot be read."""
    try:
        return msgspec.json.Decoder(AllocationRecord).decode_lines(file.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"cannot be read: {error}", where=str(file), expected="one record per line") from None
