"""The memory of queue policies and job orders: their attributes, as `copy` and `pickle` see them.

A policy of another package needs no method of its own: `__getstate__` of Python's copy protocol
gives its attributes, and it may define `__getstate__` and `__setstate__` to keep fewer.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from simsched.schedule.orders.ranking import Order


def memory_of(value: Any, fresh: Any) -> dict[str, dict[str, Any]]:
    """Return class name → the attributes in which a policy or an order differs from a fresh one.

    Only differences are kept, because options and helpers of a policy need not be writable.  The
    memory of a policy inside another one is a memory in turn.
    """
    if isinstance(value, Order):  # a function and its name
        return {}
    known = attributes_of(fresh)
    found = {}
    for name, item in attributes_of(value).items():
        same = known.get(name)
        if _is_policy(item):
            found[name] = memory_of(item, same)
        elif not isinstance(item, Order) and not _equal(item, same):
            found[name] = item
    return {type(value).__qualname__: found}


def recall(value: Any, memory: dict[str, dict[str, Any]]) -> None:
    """Give a fresh policy or order the memory of an equal one.

    Raises
    ------
    LookupError
        If it is the memory of another class.
    """
    if not memory:
        return
    attributes = memory[type(value).__qualname__]
    known = attributes_of(value)
    for name in [name for name in attributes if _is_policy(known.get(name))]:
        recall(known[name], attributes.pop(name))
    if hasattr(value, "__setstate__"):
        value.__setstate__(attributes)
        return
    for name, item in attributes.items():
        setattr(value, name, item)


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, those in slots too."""
    if is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    state = value.__getstate__()
    slots: dict[str, Any] = {}
    if isinstance(state, tuple):
        state, slots = state
    return {**(state or {}), **slots}


def _is_policy(value: Any) -> bool:
    return callable(getattr(value, "run_pass", None))


def _equal(item: Any, same: Any) -> bool:
    """Whether two values are surely equal; arrays are not compared and are always written."""
    return not isinstance(item, np.ndarray) and type(same) is type(item) and bool(same == item)
