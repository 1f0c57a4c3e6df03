"""Values of a run's state as exact JSON: a value that is read back has the same type and is equal.

Numbers, texts, truth values, None and lists are themselves.  Everything else is an object
with one key for its kind: ``{"float": "inf"}``, ``{"tuple": […]}``, ``{"set": […]}``,
``{"map": [[key, value], …]}``, ``{"ints": […]}`` (a NumPy array) …, or the name of one of the
classes below with its state.  Other classes are refused, on writing and on reading.
"""

from __future__ import annotations

from array import array
from dataclasses import is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import RunError
from simsched.match.requests.compile import compile_request, with_amount
from simsched.match.state.availability import Availability
from simsched.match.state.selection import Selection
from simsched.match.state.selection_codec import selection_from_dict, selection_to_dict
from simsched.schedule.graph_shadow import GraphShadow
from simsched.schedule.supply import FixedShadow, NoShadow
from simsched.simulation.engine_state import EngineState
from simsched.simulation.memory import attributes_of
from simsched.simulation.run_progress import RunProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request

#: Classes whose attributes are their state.
OBJECTS: tuple[type, ...] = (EngineState, RunProgress, FixedShadow, GraphShadow, NoShadow)
_NAMED = {kind.__name__: kind for kind in (*OBJECTS, Selection, Availability)}
_SIMPLE = frozenset({int, str, bool, type(None)})
_KINDS = {"i": "ints", "u": "words", "f": "floats", "b": "bools"}


class Codec:
    """Turns the values of one run into JSON values and back.

    `requests` are the compiled requests by kind: a selection names the one that it answers.
    """

    def __init__(self, index: Index, requests: Sequence[Request | None]) -> None:
        self._index = index
        self._requests = requests
        self._kinds = {_question(r): kind for kind, r in enumerate(requests) if r is not None}

    def place_of(self, request: Request) -> list[Any]:
        """Return what identifies a request: its kind, whether it takes whole nodes, and chosen amounts."""
        chosen = [[number, amount] for number, amount in request.chosen.items()]
        return [self._kinds[_question(request)], request.alone, chosen]

    def request_at(self, place: list[Any]) -> Request:
        """Return the request that `place_of` identifies."""
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
        if kind is Selection:
            return {"Selection": {"request": self.place_of(value.request), **selection_to_dict(value)}}
        if kind is Availability:
            return {"Availability": self._named(value.state())}
        if kind in OBJECTS:
            return {kind.__name__: self._named(attributes_of(value))}
        if kind is dict:
            return {"map": [[self.plain(key), item] for key, item in self._named(value).items()]}
        if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
            return {_KINDS[value.dtype.kind]: [self.plain(item) for item in value.tolist()]}
        for known, tag, out in _OUT:
            if isinstance(value, known):
                return {tag: self.plain(out(value))}
        raise RunError(f"a value of class {kind.__qualname__} cannot be written into a checkpoint")

    def _named(self, values: dict[Any, Any]) -> dict[Any, Any]:
        """Return named values as JSON; an error has the names down to the value in its place."""
        found = {}
        for name, item in values.items():
            try:
                found[name] = self.plain(item)
            except RunError as error:
                place = f"{name}.{error.where}" if error.where else str(name)
                raise RunError(error.message, where=place) from None
        return found

    # -- in ---------------------------------------------------------------------------------

    def value(self, plain: Any) -> Any:
        """Return the value that a JSON value represents.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it represents none.
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
        if kind is Selection:
            return selection_from_dict(fields, self._index, self.request_at(fields["request"]))
        found = {name: self.value(item) for name, item in fields.items()}
        if kind is Availability:
            return Availability.from_state(self._index, found)
        if is_dataclass(kind):
            return kind(**found)
        made: Any = object.__new__(kind)
        if hasattr(made, "__setstate__"):
            made.__setstate__(found)
            return made
        for name, value in found.items():
            setattr(made, name, value)
        return made


def _question(request: Request) -> tuple[Any, Any]:
    """Return what equal requests have in common."""
    return request.jobspec.resources, request.jobspec.constraint


def _bools(values: list[bool]) -> Any:
    return np.array(values, dtype=np.bool_)


def _table(values: list[int]) -> list[tuple[int, ...]]:
    width, *items = values
    return list(zip(*[iter(items)] * width, strict=True))


_OUT: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (tuple, "tuple", list),
    (set, "set", sorted),
    (frozenset, "set", sorted),
    (bytearray, "bytes", list),
    (bytes, "text", bytes.decode),
    (array, "numbers", lambda value: [value.typecode, value.tolist()]),
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
}
