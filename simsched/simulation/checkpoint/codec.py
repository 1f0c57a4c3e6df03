"""Values of a run's state as JSON, exactly: what comes back is equal, bit for bit and type for type.

Numbers, texts, truth values, None and lists are themselves.  Everything else is an object
with one key that says what it is: ``{"float": "inf"}``, ``{"tuple": […]}``, ``{"set": […]}``,
``{"map": [[key, value], …]}``, ``{"ints": […]}`` (a NumPy array), ``{"generator": {…}}`` …, or the
name of one of the classes below with its fields.  Nothing else is taken, and nothing that is
read can name another class.
"""

from __future__ import annotations

from array import array
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import RunError
from simsched.match.requests.compile import compile_request, with_amount
from simsched.match.state.availability import Availability
from simsched.match.state.selection import Draw, Hold, Selection
from simsched.schedule.count_supply import CountShadow
from simsched.schedule.graph_supply import GraphShadow
from simsched.schedule.supply import NoShadow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request

#: Classes whose fields make up their state → fields that belong to the run and not to its state.
OBJECTS: dict[type, frozenset[str]] = {
    Selection: frozenset({"request"}),
    Draw: frozenset(),
    Hold: frozenset(),
    Availability: frozenset({"index", "log", "base", "counts"}),
    CountShadow: frozenset(),
    GraphShadow: frozenset(),
    NoShadow: frozenset(),
}
_NAMED = {kind.__name__: kind for kind in OBJECTS}
_SIMPLE = frozenset({int, str, bool, type(None)})
_KINDS = {"i": "ints", "u": "words", "f": "floats", "b": "bools"}


class Codec:
    """Turns the values of one run into JSON values and back.

    `requests` are the compiled requests by kind: a selection says which it answers.
    """

    def __init__(self, index: Index, requests: Sequence[Request | None]) -> None:
        self._index = index
        self._requests = requests
        self._kinds = {_question(r): kind for kind, r in enumerate(requests) if r is not None}

    def _place_of(self, request: Request) -> list[Any]:
        """Return where a request is found: its kind, whether it takes whole nodes, what its ranges are."""
        chosen = [[number, amount] for number, amount in request.chosen.items()]
        return [self._kinds[_question(request)], request.alone, chosen]

    def _request_at(self, place: list[Any]) -> Request:
        kind, alone, chosen = place
        found = self._requests[kind]
        assert found is not None
        request: Request = found
        if request.alone != alone:
            request = compile_request(request.jobspec, self._index, request.dialect, alone=alone)
        for number, amount in chosen:
            request = with_amount(request, number, amount, self._index)
        return request

    # -- out --------------------------------------------------------------------------------

    def plain(self, value: Any) -> Any:
        """Return a value as JSON.

        Raises
        ------
        RunError
            For a value of a class that is not known here.
        """
        if value is None or isinstance(value, str | bool):
            return value
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return value if isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return self._listed(value)
        return self._tagged(value)

    def _listed(self, values: list[Any]) -> Any:
        """Return a list; a table of whole numbers as one row of them, since there may be very many."""
        if values and set(map(type, values)) == {tuple}:
            widths, kinds = set(map(len, values)), {type(item) for row in values for item in row}
            if len(widths) == 1 and kinds == {int}:
                return {"table": [widths.pop(), *(item for row in values for item in row)]}
        return [
            item if type(item) in _SIMPLE or (type(item) is float and isfinite(item)) else self.plain(item)
            for item in values
        ]

    def _tagged(self, value: Any) -> Any:
        kind = type(value)
        if kind in OBJECTS:
            fields = {name: self.plain(item) for name, item in fields_of(value, OBJECTS[kind])}
            if kind is Selection:
                fields["request"] = self._place_of(value.request)
                if value.named is value.held:
                    del fields["named"]
            return {kind.__name__: fields}
        if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
            return {_KINDS[value.dtype.kind]: [self.plain(item) for item in value.tolist()]}
        for known, tag, out in _OUT:
            if isinstance(value, known):
                return {tag: self.plain(out(value))}
        raise RunError(f"a value of class {kind.__qualname__} cannot be written into a snapshot")

    # -- in ---------------------------------------------------------------------------------

    def value(self, plain: Any) -> Any:
        """Return the value that a JSON value stands for.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it stands for none.
        """
        if isinstance(plain, list):
            return [
                item if type(item) in _SIMPLE or type(item) is float else self.value(item) for item in plain
            ]
        if not isinstance(plain, dict):
            return plain
        ((tag, content),) = plain.items()
        if tag in _NAMED:
            return self._object(_NAMED[tag], content)
        return _IN[tag](self.value(content))

    def _object(self, kind: type, fields: dict[str, Any]) -> Any:
        found = {name: self.value(item) for name, item in fields.items()}
        if kind is Selection:
            found["request"] = self._request_at(fields["request"])
            found.setdefault("named", found["held"])
        if kind in (Selection, Draw, Hold):
            return kind(**found)
        made: Any = object.__new__(kind)
        if kind is Availability:
            found |= {"index": self._index, "log": [], "base": 0, "counts": {}}
        for name, value in found.items():
            setattr(made, name, value)
        return made


def _question(request: Request) -> tuple[Any, Any]:
    """Return what equal requests have in common."""
    return request.jobspec.resources, request.jobspec.constraint


def fields_of(value: Any, but: frozenset[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of an object's own attributes, slots and all."""
    names = dict.fromkeys(getattr(value, "__struct_fields__", ()))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names.update(dict.fromkeys((slots,) if isinstance(slots, str) else slots))
    names.update(dict.fromkeys(getattr(value, "__dict__", ())))
    for name in names:
        if name not in but and hasattr(value, name):
            yield name, getattr(value, name)


def _generator(state: dict[str, Any]) -> np.random.Generator:
    made = np.random.default_rng(0)
    made.bit_generator.state = state
    return made


def _bools(values: list[bool]) -> Any:
    return np.array(values, dtype=np.bool_)


def _table(values: list[int]) -> list[tuple[int, ...]]:
    width, *items = values
    return list(zip(*[iter(items)] * width, strict=True))


_OUT: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (tuple, "tuple", list),
    (dict, "map", lambda value: [[key, item] for key, item in value.items()]),
    (set, "set", sorted),
    (frozenset, "set", sorted),
    (bytearray, "bytes", list),
    (bytes, "text", bytes.decode),
    (array, "numbers", lambda value: [value.typecode, value.tolist()]),
    (np.random.Generator, "generator", lambda value: value.bit_generator.state),
)
_IN: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "table": _table,
    "tuple": tuple,
    "map": lambda pairs: {key: value for key, value in pairs},  # noqa: C416 (keys may be tuples)
    "set": set,
    "bytes": bytearray,
    "text": str.encode,
    "numbers": lambda pair: array(*pair),
    "ints": lambda values: np.array(values, dtype=np.int64),
    "words": lambda values: np.array(values, dtype=np.uint64),
    "floats": lambda values: np.array(values, dtype=np.float64),
    "bools": _bools,
    "generator": _generator,
}
