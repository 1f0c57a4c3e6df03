"""Options of queue policies as text: the annotations of a policy's parameters are their types."""

from __future__ import annotations

import re
from functools import reduce
from inspect import Parameter, signature
from operator import or_
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from simsched.declare.table import is_declared, types_of
from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WORDS = {"yes": True, "true": True, "no": False, "false": False}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_MOST_DIGITS = 18
_NAMES: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str, "None": type(None)}
_CALLED = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text"}


def typed_options(
    maker: Callable[..., Any], options: Mapping[str, Any], *, strict: bool = True
) -> dict[str, Any]:
    """Return options with each text read as the type with which its parameter of `maker` is annotated.

    Without an annotation a text that looks like yes, no or a number is read as that. Other values stay.

    Raises
    ------
    ConfigError
        If a text is not of its parameter's type and `strict` is set; without `strict` it stays a text.

    >>> def policy(aging: float = 0.1, label: str = ""): ...
    >>> typed_options(policy, {"aging": "2", "label": "7"})
    {'aging': 2.0, 'label': '7'}
    """
    if is_declared(maker):
        kinds = types_of(maker)
    else:
        kinds = {name: _resolved(p.annotation) for name, p in signature(maker).parameters.items()}
    return {
        name: _read(name, value, kinds.get(name, Parameter.empty), strict=strict)
        if isinstance(value, str)
        else value
        for name, value in options.items()
    }


def _resolved(kind: Any) -> Any:
    """Return an annotation as types; a text such as ``float | None`` is read if its names are known."""
    if not isinstance(kind, str):
        return kind
    parts = [_NAMES.get(part.strip(), object) for part in kind.split("|")]
    return Parameter.empty if object in parts else reduce(or_, parts)


def _read(name: str, text: str, kind: Any, *, strict: bool) -> Any:
    if kind in (Parameter.empty, Any, object):
        return _guess(text)
    if get_origin(kind) is Literal:
        return next((value for value in get_args(kind) if str(value) == text), text)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if type(None) in kinds and text.lower() in ("none", "null"):
        return None
    for one in (bool, int, float):
        if one in kinds and (value := _as(one, text)) is not None:
            return value
    simple = [_CALLED[one] for one in kinds if one in _CALLED]
    if not strict or str in kinds or len(simple) < len([one for one in kinds if one is not type(None)]):
        return text
    raise ConfigError(f"{name.replace('_', '-')} is {text!r}", expected=" or ".join(simple))


def _as(kind: type, text: str) -> Any:
    """Return a text as a value of a simple type, or None if it is not one."""
    if kind is bool:
        return WORDS.get(text)
    if not _NUMBER.fullmatch(text) or len(text) > _MOST_DIGITS + 8:
        return None
    if kind is float:
        return float(text)
    return int(text) if text.lstrip("+-").isdigit() and len(text) <= _MOST_DIGITS else None


def _guess(text: str) -> Any:
    for kind in (bool, int, float):
        value = _as(kind, text)
        if value is not None:
            return value
    return text
