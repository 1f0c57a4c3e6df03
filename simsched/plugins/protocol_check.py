"""Whether a value fits a protocol: its attributes, its methods, and their arguments."""

from __future__ import annotations

from inspect import Parameter, isroutine, signature
from typing import Any, NamedTuple

CALL = "__call__"
_MISSING = object()
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Lack(NamedTuple):
    """The first missing part of a value: a phrase, the expected signature, and the place of its code."""

    text: str
    expected: str
    where: str | None = None


def is_function_protocol(protocol: type) -> bool:
    """Whether the values of a protocol are called themselves, as functions are."""
    return CALL in _members(protocol)


def lack_of(value: Any, protocol: type) -> Lack | None:
    """Return the first thing that a value lacks for a protocol, or None.

    >>> from typing import Protocol
    >>> class Reads(Protocol):
    ...     def read(self, text: str) -> str: ...
    >>> class Wrong:
    ...     def read(self): ...
    >>> lack_of(Wrong(), Reads).text, lack_of(Wrong(), Reads).expected
    ('has read()', 'read(text)')
    >>> lack_of(5, Reads).text
    'is an int without a method read(text)'
    """
    for name, member in _members(protocol).items():
        # A function's own `__call__` takes any arguments.
        found = value if name == CALL and callable(value) else getattr(value, name, _MISSING)
        if not callable(member):
            if found is _MISSING:
                return Lack(f"is {_article(value)} without the attribute {name}", f"an attribute {name}")
            continue
        wanted = _arguments(member)[1:]
        shown = _shown("" if name == CALL else name, wanted)
        if not callable(found):
            kind = "that cannot be called" if name == CALL else f"without a method {shown}"
            expected = f"a function of {shown}" if name == CALL else shown
            return Lack(f"is {_article(value)} {kind}", expected)
        if name == CALL and not isroutine(found):
            found = getattr(found, CALL)  # the method, which has a name and a place
        lack = _wrong_arguments("" if name == CALL else name, found, len(wanted), shown)
        if lack is not None:
            return lack
    return None


def has_members(value: Any, protocol: type) -> bool:
    """Whether a value has all attributes and methods of a protocol, whatever their arguments."""
    for name, member in _members(protocol).items():
        found = getattr(value, name, _MISSING)
        if found is _MISSING or (callable(member) and not callable(found)):
            return False
    return True


def _members(protocol: type) -> dict[str, Any]:
    """Return the attributes (as None) and the methods of a protocol by name, in the order of its text."""
    found: dict[str, Any] = {}
    for base in reversed(protocol.__mro__):
        if not getattr(base, "_is_protocol", False) or base.__module__ == "typing":
            continue
        found.update(dict.fromkeys(vars(base).get("__annotations__", {})))
        for name, member in vars(base).items():
            if name == CALL or not name.startswith("_"):
                found[name] = None if isinstance(member, property) else member
    return {name: member for name, member in found.items() if member is None or callable(member)}


def _wrong_arguments(name: str, found: Any, places: int, shown: str) -> Lack | None:
    """Return the fault if a function cannot be called with this number of arguments by place."""
    try:
        own = signature(found)
    except (TypeError, ValueError):  # some functions in C do not state their arguments
        return None
    try:
        own.bind(*range(places))
    except TypeError:
        code = getattr(getattr(found, "__func__", found), "__code__", None)
        where = None if code is None else f"{code.co_filename}:{code.co_firstlineno}"
        mine = _shown(name or getattr(found, "__name__", "it"), _arguments(found))
        return Lack(f"has {mine}", shown if name else f"arguments {shown}", where)
    return None


def _arguments(function: Any) -> list[str]:
    """Return the names of the arguments of a function that have no default value."""
    return [
        p.name
        if p.kind in _BY_PLACE
        else f"*, {p.name}"
        if p.kind is Parameter.KEYWORD_ONLY
        else f"*{p.name}"
        for p in signature(function).parameters.values()
        if p.default is Parameter.empty
    ]


def _shown(name: str, arguments: list[str]) -> str:
    return f"{name}({', '.join(arguments)})"


def _article(value: Any) -> str:
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    text = f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
    return f"the class {name}" if isinstance(value, type) else text
