"""The one JSON form of a selection: units as the ordinals that the index gives them.

It belongs to the cluster that it was written on.  The request is written by the caller, because a
matcher knows it by its text and a run by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.formats.rfc.idset import Idset, encode_ids
from simsched.match.state.masks import WORD, listed
from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Request


def selection_to_dict(selection: Selection) -> dict[str, Any]:
    """Return a selection as JSON data, without its request; optional keys only where they differ."""
    found: dict[str, Any] = {
        "slots": selection.slots,
        "targets": _ordinals_to_plain(selection.targets),
        "held": [_draw_to_dict(draw) for draw in selection.held],
        "holds": [_hold_to_dict(hold) for hold in selection.holds],
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
        holds=tuple(_hold(hold, index) for hold in document["holds"]),
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
    if masks is not None and int(pool.size.max()) <= WORD:  # as the matcher keeps them
        return Draw(type_, pools, units, int(each.sum()), np.array(masks, dtype=np.uint64))
    return Draw(type_, pools, units, int(each.sum()), masks)


def _hold_to_dict(hold: Hold) -> dict[str, Any]:
    return {"type": hold.type, "ordinals": hold.ordinals.tolist(), "exclusive": hold.exclusive}


def _hold(document: Mapping[str, Any], index: Index) -> Hold:
    type_ = document["type"]
    ordinals = _ordinals(document["ordinals"], len(index.vertex_types[type_]))
    return Hold(type_, ordinals, bool(document["exclusive"]))


def _ordinals_to_plain(ordinals: Ints) -> str | list[int]:
    """Return ordinals as an idset; as a list where their order is another one, which is then kept."""
    found: list[int] = ordinals.tolist()
    return found if (np.diff(ordinals) <= 0).any() else encode_ids(found)


def _ordinals(value: Any, size: int) -> Ints:
    """Read ordinals, an idset or a list, all below `size`."""
    found = np.array(Idset.parse(value).expand() if isinstance(value, str) else list(value), dtype=np.int64)
    if len(found) and not (found.min() >= 0 and found.max() < size):
        raise ValueError(f"ordinals beyond {size}")
    return found
