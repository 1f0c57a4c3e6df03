"""Why not: the funnel of the request vertex that failed (M12).

The filters are applied in one order, exist → up → constraint → idle → fits, and each says
how many candidates it left.  The nearest changes are found by trying them: fewer copies,
no constraint, less of the resource that binds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.graph.index import ABOVE
from simsched.match.capacity import EVERYWHERE, MANY, capacity, copies_of, free_beneath
from simsched.match.outcome import Funnel, Reasons, Step
from simsched.match.request import ABSENT, POOL, VERTEX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index import Bools, Index
    from simsched.match.allocate import Availability
    from simsched.match.request import Content, Need, Request


def explain(request: Request, avail: Availability) -> Reasons:
    """Return why a request does not match in this state: one funnel a top-level vertex that fails."""
    funnels = tuple(
        _funnel(_culprit(need), need, request, avail)
        for need in request.needs
        if int(copies_of(need, EVERYWHERE, None, avail)[0]) < 1
    )
    if funnels:
        return Reasons(funnels)
    return Reasons(note="each part of the request can be had by itself, all of them together cannot")


def _culprit(need: Need) -> Need:
    """Return the vertex to explain: one whose type does not exist is the plainest reason."""
    return next((part for part in need.walk() if part.kind == ABSENT), need)


def _funnel(part: Need, top: Need, request: Request, avail: Availability) -> Funnel:
    if part.kind == ABSENT:
        return _absent(part, avail.index)
    if part.kind == POOL:
        return _pool(part, avail)
    content = next((n for n in top.walk() if n.content is not None), None)
    if content is None:
        return _vertices(part, avail)
    return _on_targets(content, top, request, avail)


def _absent(need: Need, index: Index) -> Funnel:
    known = ", ".join(sorted(index.totals))
    return Funnel(
        path=need.path,
        type=need.type,
        steps=(Step(name="exist", left=0, note=f"this cluster has {known}"),),
        needed=need.amount,
        available=0,
    )


def _pool(need: Need, avail: Availability) -> Funnel:
    pool = avail.index.pool_types[need.type]
    free = int(avail.free[need.type].sum())
    return Funnel(
        path=need.path,
        type=need.type,
        steps=(Step(name="exist", left=pool.total), Step(name="idle", left=free)),
        needed=need.amount,
        available=free,
        binding=need.type,
        nearest=(f"{need.type}={free} instead of {need.amount}",) if free else (),
    )


def _vertices(need: Need, avail: Availability) -> Funnel:
    vertices = avail.index.vertex_types[need.type] if need.kind == VERTEX else None
    available = _most(need, avail)
    steps = (
        [Step(name="exist", left=len(vertices)), Step(name="up", left=int(vertices.up.sum()))]
        if vertices
        else []
    )
    steps.append(Step(name="fits", left=available))
    return Funnel(
        path=need.path,
        type=need.type,
        steps=tuple(steps),
        needed=need.amount,
        available=available,
        nearest=(f"{need.type}={available} instead of {need.amount}",) if available else (),
    )


def _most(need: Need, avail: Availability) -> int:
    """Return how many of a need can be had at most, asked for one by one."""
    from dataclasses import replace

    found = int(copies_of(replace(need, amount=1), EVERYWHERE, None, avail)[0])
    return min(found, MANY)


def _on_targets(need: Need, top: Need, request: Request, avail: Availability) -> Funnel:
    """Return the funnel over the execution targets for the need that is settled on them."""
    assert need.content is not None
    index = avail.index
    content = need.content
    supply = capacity(content, avail)
    exclusive = content.node and content.exclusive
    fits = supply.fits > 0
    available = int(np.count_nonzero(fits)) if content.node else supply.total
    steps = list(_filters(content, fits, request, avail, alone=exclusive or content.alone))
    above = need is not top and top.level == ABOVE
    wanted = top if above else need
    if above:
        available = _most(top, avail)
    return Funnel(
        path=wanted.path,
        type=index.target_type,
        steps=tuple(steps),
        needed=wanted.amount,
        available=available,
        binding=_binding(content, avail),
        nearest=tuple(_nearest(need, wanted, available, request, avail)),
    )


def _filters(
    content: Content, fits: Bools, request: Request, avail: Availability, *, alone: bool
) -> Iterator[Step]:
    index = avail.index
    left = np.ones(len(index), dtype=np.bool_)
    yield Step(name="exist", left=len(index))
    left &= avail.up
    yield Step(name="up", left=int(left.sum()))
    if not content.every:
        left &= content.eligible
        constraint = request.jobspec.constraint
        yield Step(name="constraint", left=int(left.sum()), note=str(constraint) if constraint else "id")
    if alone:
        left &= avail.use == 0
        yield Step(name="idle", left=int(left.sum()))
    elif content.flat:
        left &= _has_any(content.flat, avail)
        yield Step(name="idle", left=int(left.sum()))
    note = " ".join(f"{type_}={units}" for type_, units in content.flat or ())
    yield Step(name="fits", left=int((left & fits).sum()), note=note)


def _has_any(flat: tuple[tuple[str, int], ...], avail: Availability) -> Bools:
    """Say which targets have anything free of every type that is asked for."""
    row = np.ones(len(avail.index), dtype=np.bool_)
    for type_, _ in flat:
        row &= free_beneath(type_, avail.index.target_type, None, avail) > 0
    return row


def _binding(content: Content, avail: Availability) -> str | None:
    """Return the resource type of which the eligible targets hold the fewest copies."""
    if not content.flat:
        return None
    may = avail.up & content.eligible
    kind = avail.index.target_type
    copies = {
        type_: int((free_beneath(type_, kind, None, avail)[may] // units).sum())
        for type_, units in content.flat
    }
    return min(copies, key=lambda type_: (copies[type_], type_))


def _nearest(
    need: Need, wanted: Need, available: int, request: Request, avail: Availability
) -> Iterator[str]:
    """Yield changes that were tried and would make this vertex match."""
    if 0 < available < wanted.amount:
        yield f"{wanted.type}={available} instead of {wanted.amount}"
    content = need.content
    assert content is not None
    if not content.every and request.jobspec.constraint is not None:
        free = _without_constraint(content, avail)
        if (int(np.count_nonzero(free)) if content.node else int(free.sum())) >= need.amount:
            yield f"without the constraint {request.jobspec.constraint}"
    if available == 0 and content.flat:
        yield from _smaller(content.flat, avail, avail.up & content.eligible)


def _without_constraint(content: Content, avail: Availability) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    from dataclasses import replace

    from simsched.match.capacity import copies_on_targets

    anywhere = replace(content, eligible=np.ones(len(avail.index), dtype=np.bool_), every=True)
    return copies_on_targets(anywhere, None, avail)


def _smaller(flat: tuple[tuple[str, int], ...], avail: Availability, may: Bools) -> Iterator[str]:
    """Yield what one target has at most of the resources of which it lacks some."""
    kind = avail.index.target_type
    for type_, units in flat:
        free = free_beneath(type_, kind, None, avail)[may]
        most = int(free.max()) if len(free) else 0
        if 0 < most < units:
            yield f"at most {type_}={most} on one {kind} instead of {units}"
