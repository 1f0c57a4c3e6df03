"""The resource vertex of a request (RFC 14, `resources` and `with`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from simsched.formats.rfc.count import Count
from simsched.formats.text.immutable import thaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KEYS = ("type", "count", "unit", "exclusive", "label", "id", "with")
"""The keys of a resource vertex, RFC 14."""

DEFAULT_LABEL = "default"
"""The label of a single slot without one (reading R6)."""


@dataclass(frozen=True, slots=True)
class ResourceVertex:
    """One vertex of a request, hashable; `with_` holds its children.

    `exclusive` is None where the request does not state it (false outside a slot, true in one).
    `extra` holds keys that RFC 14 does not define, as (key, immutable value) pairs; only shapes have them.

    >>> from simsched.formats.rfc.count import Count
    >>> core = ResourceVertex("core", Count.fixed(2))
    >>> ResourceVertex("slot", Count.fixed(4), label="default", with_=(core,)).to_dict()
    {'type': 'slot', 'count': 4, 'label': 'default', 'with': [{'type': 'core', 'count': 2}]}
    """

    type: str
    count: Count
    unit: str | None = None
    exclusive: bool | None = None
    label: str | None = None
    id: str | None = None
    with_: tuple[ResourceVertex, ...] = ()
    extra: tuple[tuple[str, Any], ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def _key(self) -> tuple[Any, ...]:
        own = (self.type, self.count, self.unit, self.exclusive, self.label, self.id)
        return (*own, self.with_, self.extra)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(self._key()))
            return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return (ResourceVertex, self._key())

    @property
    def is_slot(self) -> bool:
        """Whether this is the reserved type `slot`."""
        return self.type == "slot"

    def walk(self) -> Iterator[ResourceVertex]:
        """Yield this vertex and all its descendants, parents first, in the order of the document."""
        yield self
        for child in self.with_:
            yield from child.walk()

    def to_dict(self) -> dict[str, Any]:
        """Return the vertex as RFC 14 writes it."""
        document: dict[str, Any] = {"type": self.type, "count": self.count.to_json()}
        for key in ("unit", "exclusive", "label", "id"):
            value = getattr(self, key)
            if value is not None:
                document[key] = value
        for key, value in self.extra:
            document[key] = thaw(value)
        if self.with_:
            document["with"] = [child.to_dict() for child in self.with_]
        return document


def walk(resources: Iterable[ResourceVertex]) -> Iterator[ResourceVertex]:
    """Yield every vertex of a resources list, parents first."""
    for vertex in resources:
        yield from vertex.walk()


def slots(resources: Iterable[ResourceVertex]) -> tuple[ResourceVertex, ...]:
    """Return the slots of a resources list in the order of the document."""
    return tuple(vertex for vertex in walk(resources) if vertex.is_slot)


def claims(resources: Iterable[ResourceVertex]) -> bool:
    """Whether a request claims anything exclusively: what is in a slot, or what says so."""
    return any(vertex.type == "slot" or vertex.exclusive for vertex in walk(resources))


def claiming(resources: tuple[ResourceVertex, ...]) -> tuple[ResourceVertex, ...]:
    """Return resources without a slot with a slot that claims the innermost of them.

    >>> from simsched.formats.jobspec.shape import format_shape, parse_shape
    >>> [format_shape(claiming(parse_shape(shape))) for shape in ("node=4", "node=4/core=2", "[core;gpu]")]
    ['slot=4/node', 'node=4/slot=2/core', 'slot/[core;gpu]']
    """
    one = Count.fixed(1)
    if any(vertex.with_ for vertex in resources):
        return tuple(replace(v, with_=claiming(v.with_)) if v.with_ else v for v in resources)
    if len(resources) == 1 and resources[0].unit is None:
        (vertex,) = resources
        return (
            ResourceVertex("slot", vertex.count, label=DEFAULT_LABEL, with_=(replace(vertex, count=one),)),
        )
    return (ResourceVertex("slot", one, label=DEFAULT_LABEL, with_=resources),)
