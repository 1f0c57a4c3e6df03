"""From a text of Job Objects to its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.errors import FormatError
    from simsched.formats.sss.feature_constraints import Names
    from simsched.formats.sss.records import JobRecord


def has_patterns(text: str) -> bool:
    """Whether a document of Job Objects may hold patterns, which need a cluster to be expanded."""
    return "Pattern" in text or "Match" in text


def job_objects(
    text: str,
    where: str,
    *,
    names: Callable[[], Names] | None = None,
    warn: Callable[[FormatError], None] | None = None,
) -> tuple[JobRecord, ...]:
    """Return the jobs of a document of SSS Job Objects.

    `names` gives what a cluster has, should patterns be matched against it; `warn` is told what
    the awareness policy Warn lets pass.  Raises `FormatError`.
    """
    from simsched.formats.sss.document import read_document
    from simsched.formats.sss.records import job_records

    cluster = names() if names is not None and has_patterns(text) else None
    records, warnings = job_records(read_document(text, where), where, cluster=cluster)
    if warn is not None:
        for warning in warnings:
            warn(warning)
    return records
