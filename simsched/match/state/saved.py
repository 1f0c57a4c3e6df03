"""A matcher's state as JSON data, and back: its allocations by id, and the targets that are down.

Units are written as ordinals of the index, so a state belongs to the cluster that it was saved on.  The
cluster's sizes are written with it and checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import FormatError, SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.constraint import to_json
from simsched.match.requests.compile import compile_request
from simsched.match.state.selection import changed
from simsched.match.state.selection_codec import selection_from_dict, selection_to_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.index.index import Index
    from simsched.match.requests.dialect import Dialect
    from simsched.match.state.selection import Selection

FORMAT = 1


def cluster_facts(index: Index) -> dict[str, Any]:
    """Return the sizes in which the cluster of a state and the one that it is restored on must agree."""
    return {"targets": len(index), "totals": dict(sorted(index.totals.items()))}


def generator_to_dict(rng: np.random.Generator) -> dict[str, Any]:
    """Return a generator's state as JSON data; its 128-bit integers become text."""
    found = dict(rng.bit_generator.state)
    return {**found, "state": {name: str(number) for name, number in found["state"].items()}}


def generator_from_dict(document: Mapping[str, Any]) -> np.random.Generator:
    """Return the generator that `generator_to_dict` wrote."""
    rng = np.random.default_rng(0)
    numbers = {name: int(text) for name, text in document["state"].items()}
    rng.bit_generator.state = {**document, "state": numbers}
    return rng


def claim_to_dict(selection: Selection) -> dict[str, Any]:
    """Return a claimed selection as JSON data, its request as text."""
    jobspec = selection.request.jobspec
    return {
        "shape": jobspec.to_shape(),
        "constraint": to_json(jobspec.constraint) if jobspec.constraint is not None else None,
        "alone": selection.request.alone,
        **selection_to_dict(changed(selection, targets=np.sort(selection.targets))),
    }


def claim_from_dict(document: Mapping[str, Any], index: Index, rules: Dialect, where: str) -> Selection:
    """Read a selection that `claim_to_dict` wrote.

    Raises
    ------
    FormatError
        if it is not one, or names resources that this cluster does not have.
    """
    try:
        jobspec = Jobspec.from_shape(document["shape"], constraint=document["constraint"])
        request = compile_request(jobspec, index, rules, alone=bool(document["alone"]))
        return selection_from_dict(document, index, request)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, SimschedError) as error:
        raise FormatError(f"this is not a saved allocation: {error!r}", where=where) from None
