"""Checks of arguments of the Python interface; an error names the argument.

Functions that users call begin with these checks.  Internal functions rely on their types.
"""

from __future__ import annotations

import inspect
import math
import re
from functools import wraps
from inspect import Parameter
from numbers import Integral, Real
from os import PathLike
from textwrap import fill
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, is_typeddict

from simsched.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping
    from types import UnionType

P = ParamSpec("P")
T = TypeVar("T")

MOST = 2**63 - 1
"""The largest whole number that is accepted by default."""

MAX_NAME = 255
"""The most characters of a file name on common file systems."""

_WIDTH = 60


def wrong(name: str, value: object, expected: str) -> ConfigError:
    """Return the error for a value that an argument cannot have.

    >>> print(wrong("limit", "x", "a whole number"))
    limit is 'x' (expected a whole number)
    """
    text = repr(value) if not isinstance(value, int) or abs(value) <= MOST else "a huge number"
    return ConfigError(
        f"{name} is {text if len(text) <= _WIDTH else text[: _WIDTH - 3] + '...'}", expected=expected
    )


def check(name: str, value: object, kinds: type | UnionType, expected: str) -> None:
    """Raise ConfigError unless the value has one of these types.

    >>> check("cluster", 5, str, "a cluster")
    Traceback (most recent call last):
    simsched.errors.ConfigError: cluster is 5 (expected a cluster)
    """
    if not isinstance(value, kinds):
        raise wrong(name, value, expected)


def check_path(name: str, value: object) -> None:
    """Raise ConfigError unless the value is a valid path."""
    named = isinstance(value, str | PathLike) and str(value) and "\0" not in str(value)
    if not named or max(map(len, str(value).split("/"))) > MAX_NAME:
        raise wrong(name, value, "the path of a file or folder")


def check_whole(name: str, value: Any, least: int = 0, most: int = MOST) -> None:
    """Raise ConfigError unless the value is a whole number in the range; NumPy's are, bool is not.

    >>> check_whole("procs_per_node", 1.5, 1)
    Traceback (most recent call last):
    simsched.errors.ConfigError: procs_per_node is 1.5 (expected a whole number of 1 or more)
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:
        span = f"of {least:,} or more" if most == MOST else f"from {least:,} to {most:,}"
        raise wrong(name, value, f"a whole number {span}")


def check_real(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> None:
    """Raise ConfigError unless the value is a finite number in the range."""
    known = isinstance(value, Real) and not isinstance(value, bool)
    # a whole number may be too large for a float, which `isfinite` would make of it
    if not known or not (isinstance(value, int) or math.isfinite(value)) or not least <= value <= most:
        span = f" of {least:g} or more" if math.isfinite(least) else ""
        raise wrong(name, value, f"a number{f' from {least:g} to {most:g}' if math.isfinite(most) else span}")


def check_callable(name: str, value: object) -> None:
    """Raise ConfigError unless the value is callable or None."""
    if value is not None and not callable(value):
        raise wrong(name, value, "a function")


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return an iterable of texts as a tuple; ConfigError for anything else, including a single text."""
    try:
        found = () if isinstance(value, str | bytes) else tuple(value)
    except TypeError:
        raise wrong(name, value, "several texts") from None
    if isinstance(value, str | bytes) or not all(isinstance(item, str) for item in found):
        raise wrong(name, value, "several texts")
    return found


def options_of(*groups: type, declared: type | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function name its options: a wrong one is a ConfigError with the name that was meant.

    `groups` are the declared structs and the typed dictionaries of its ``**options``.  Their keys are in the
    signature, for completion, and their texts take the place of the line ``options : …`` of the docstring.
    `declared` is the struct that has the texts of the typed dictionaries.
    """

    def named(function: Callable[P, T]) -> Callable[P, T]:
        own = inspect.signature(function)
        fixed = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        known = {one.name: one for one in fixed}
        told = ""
        for group in groups:
            keys, entries = _group(group, declared, known)
            told += entries
            for key, kind in keys.items():
                text = getattr(kind, "__forward_arg__", kind)
                default = None if str(text).endswith("None") else ...  # its value is in the text of the key
                known.setdefault(
                    key, Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=text)
                )

        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> T:
            for name in options:
                if name not in known:
                    meant = did_you_mean(name, known)
                    listed = "" if meant else ", ".join(option for option in known if option != "self")
                    raise ConfigError(f"unknown option {name!r}{meant}", expected=listed)
            return function(*args, **options)

        call.__signature__ = own.replace(parameters=list(known.values()))  # type: ignore[attr-defined]
        entry = re.compile(r"^options : .*\n(?: +.*\n)*", re.MULTILINE)
        call.__doc__ = entry.sub(lambda found: told or found[0], inspect.getdoc(function) or "") or None
        return call

    return named


def _group(group: Any, declared: Any, known: Container[str]) -> tuple[Mapping[str, Any], str]:
    """Return name → type of a group's options, and their entries in a docstring but for known names."""
    source = declared if is_typeddict(group) else group
    if source is None:
        return group.__annotations__, f"{re.split('-{4,}', inspect.getdoc(group) or '')[-1].strip()}\n"
    entries: Mapping[str, tuple[Any, str]] = source.entries()
    own = group.__annotations__ if source is declared else {name: kind for name, (kind, _) in entries.items()}
    texts = [f"{name} : {entries[name][1]}." for name in own if name not in known]
    lines = (fill(text, 106, subsequent_indent="    ", break_on_hyphens=False) for text in texts)
    return own, "".join(f"{line}\n" for line in lines)


options_named = options_of()
"""Let a function raise ConfigError for an option that it does not have, with the name that was meant."""
