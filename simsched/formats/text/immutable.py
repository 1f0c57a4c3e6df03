"""Immutable JSON values, so that a jobspec can be shared, hashed and cached."""

from __future__ import annotations

from typing import Any, NoReturn

from simsched.errors import FormatError, LimitError

MAX_DEPTH = 100
"""The most levels of nesting of an immutable value."""


class FrozenDict(dict[str, Any]):
    """A dictionary that is hashable because it cannot be changed.

    >>> d = freeze({"a": [1, {"b": None}]})
    >>> d["a"], hash(d) == hash(freeze({"a": [1, {"b": None}]}))
    ((1, {'b': None}), True)
    >>> d["a"] = 2
    Traceback (most recent call last):
        ...
    TypeError: a FrozenDict cannot be changed
    """

    __slots__ = ("_hash",)

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash  # type: ignore[has-type, no-any-return]
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a FrozenDict cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))


EMPTY = FrozenDict()

_SCALARS = frozenset({str, int, float, bool, type(None)})


def freeze(value: Any, depth: int = 0) -> Any:
    """Return the JSON value as an immutable one: lists become tuples, objects `FrozenDict`.

    Raises `LimitError` beyond 100 levels, `FormatError` for a value that JSON does not have.
    """
    kind = type(value)
    if kind in _SCALARS or kind is FrozenDict:
        return value
    if depth > MAX_DEPTH:
        raise LimitError(f"values are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str and not isinstance(key, str):
                raise FormatError(f"the key {key!r} is not a string", expected="a string")
        return FrozenDict({k: v if type(v) in _SCALARS else freeze(v, depth + 1) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple([v if type(v) in _SCALARS else freeze(v, depth + 1) for v in value])
    if isinstance(value, (str, int, float)):
        return value
    raise FormatError(f"a {kind.__name__} is not a JSON value", expected="a JSON value")


def thaw(value: Any) -> Any:
    """Return an immutable JSON value as plain dictionaries and lists.

    >>> thaw(freeze({"a": [1]}))
    {'a': [1]}
    """
    if isinstance(value, dict):
        return {k: thaw(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(v) for v in value]
    return value
