"""The one JSON form of a selection: units as the ordinals that the index gives them.

It belongs to the cluster that it was written on.  The request is written apart, because a matcher knows it
by its text (`claim_to_dict`) and a run by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import FormatError, SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.constraint import to_json
from simsched.formats.rfc.idset import Idset, encode_ids
from simsched.match.requests.compile import compile_request
from simsched.match.state.masks import as_words, listed, word_tables
from simsched.match.state.selection import Draw, Hold, Selection, changed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.requests.dialect import Dialect
    from simsched.match.requests.request import Request


def selection_to_dict(selection: Selection) -> dict[str, Any]:
    """Return a selection as JSON data, without its request; optional keys only where they differ."""
    found: dict[str, Any] = {
        "slots": selection.slots,
        "targets": _ordinals_to_plain(selection.targets),
        "held": [_draw_to_dict(draw) for draw in selection.held],
        "holds": [
            {"type": hold.type, "ordinals": hold.ordinals.tolist(), "exclusive": hold.exclusive}
            for hold in selection.holds
        ],
    }
    if selection.named is not selection.held:
        found["named"] = [_draw_to_dict(draw) for draw in selection.named]
    if selection.shared:
        found["shared"] = [_draw_to_dict(draw) for draw in selection.shared]
    if selection.unlisted is not None:
        found["unlisted"] = _ordinals_to_plain(selection.unlisted)
    if selection.counted:
        found["counted"] = True
    return found


def selection_from_dict(document: Mapping[str, Any], index: Index, request: Request) -> Selection:
    """Return the selection of a request that `selection_to_dict` wrote.

    Raises
    ------
    LookupError, TypeError, ValueError
        If it is not one, or names vertices or units that the cluster does not have.
    """
    held = _draws(document["held"], index)
    return Selection(
        request=request,
        targets=_ordinals(document["targets"], len(index)),
        held=held,
        named=_draws(document["named"], index) if "named" in document else held,
        holds=tuple(
            Hold(kind, _ordinals(hold["ordinals"], len(index.vertex_types[kind])), bool(hold["exclusive"]))
            for hold in document["holds"]
            for kind in (hold["type"],)
        ),
        shared=_draws(document.get("shared", ()), index),
        slots=int(document["slots"]),
        unlisted=_ordinals(document["unlisted"], len(index)) if "unlisted" in document else None,
        counted=bool(document.get("counted", False)),
    )


def _draw_to_dict(draw: Draw) -> dict[str, Any]:
    """Return a draw as JSON data."""
    found: dict[str, Any] = {
        "type": draw.type,
        "banks": _ordinals_to_plain(draw.pools),
        "units": draw.units if isinstance(draw.units, int) else draw.units.tolist(),
    }
    if draw.masks is not None:
        found["masks"] = [f"{mask:x}" for mask in listed(draw.masks)]
    return found


def _draws(documents: Any, index: Index) -> tuple[Draw, ...]:
    return tuple(_draw(document, index) for document in documents)


def _draw(document: Mapping[str, Any], index: Index) -> Draw:
    type_ = document["type"]
    pool = index.pool_types[type_]
    pools = _ordinals(document["banks"], len(pool))
    given = document["units"]
    units = given if isinstance(given, int) else np.array(given, dtype=np.int64)
    each = np.broadcast_to(units, len(pools))
    if (each < 1).any() or (each > pool.size[pools]).any():
        raise ValueError(f"units of {type_} beyond its pools")
    masks = [int(text, 16) for text in document["masks"]] if "masks" in document else None
    if masks is not None and [mask.bit_count() for mask in masks] != each.tolist():
        raise ValueError(f"units of {type_} that do not add up")
    table = word_tables(index).rows.get(type_)
    rows = masks if masks is None or table is None else as_words(masks, table.shape[1])
    return Draw(type_, pools, units, int(each.sum()), rows)


def _ordinals_to_plain(ordinals: Integers) -> str | list[int]:
    """Return ordinals as an idset; as a list where their order is another one, which is then kept."""
    found: list[int] = ordinals.tolist()
    return found if (np.diff(ordinals) <= 0).any() else encode_ids(found)


def _ordinals(value: Any, size: int) -> Integers:
    """Read ordinals, an idset or a list, all below `size`."""
    found = np.array(Idset.parse(value).expand() if isinstance(value, str) else list(value), dtype=np.int64)
    if len(found) and not (found.min() >= 0 and found.max() < size):
        raise ValueError(f"ordinals beyond {size}")
    return found


# --- with the request and the generator: the state of a matcher ------------------------------------

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
