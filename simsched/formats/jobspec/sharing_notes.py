"""Notes on requests that claim nothing exclusively, so that several jobs may get the same resources (M4)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from simsched.formats.jobspec.shape import format_shape
from simsched.formats.jobspec.vertex import claiming, claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.formats.jobspec.vertex import ResourceVertex


NAMED = 3
"""Shapes that a note names at most."""


def notes_on_sharing(requests: Iterable[tuple[ResourceVertex, ...]], noun: str) -> Iterator[str]:
    """Yield one sentence if some requests claim nothing, with the shapes that would claim the same (M4)."""
    each = [*requests]
    distinct = {id(resources): resources for resources in each}  # jobs of one log share their requests
    bare = {key for key, resources in distinct.items() if not claims(resources)}
    if bare:
        found = Counter([resources for resources in each if id(resources) in bare])
        words = [
            f"{format_shape(claiming(resources))} instead of {format_shape(resources)} ({times:,})"
            for resources, times in found.most_common(NAMED)
        ]
        more, total = len(found) - NAMED, found.total()
        which = f"{total:,} of {len(each):,} {noun}{'s' * (len(each) > 1)} claim{'s' * (total == 1)} nothing"
        rest = f" and {more:,} more shape{'s' * (more > 1)}" if more > 0 else ""
        yield (
            f"{which} exclusively, so others may get the same resources at the same time; "
            f"to claim: {', '.join(words)}{rest}"
        )
