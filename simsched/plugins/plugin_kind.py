"""`PluginKind`: one kind of plug-in; finds, makes and checks the values of other packages.

An entry point of the group of a kind names one of three things:

- a value that fits the protocol of the kind; it has no options;
- a class, or a function that returns such a value; its parameters are the options;
- where the protocol is a function: that function; its keyword-only parameters are the options.

``name:key=value,key=value`` gives options.  Texts are read as the annotations of the parameters say.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache, partial
from inspect import Parameter, isroutine, signature
from typing import TYPE_CHECKING, Any

from simsched.declare.kinds import ValueKind, text
from simsched.declare.table import fields_of, is_declared
from simsched.errors import ConfigError, did_you_mean
from simsched.plugins.plugin_errors import (
    called_with,
    load,
    misfit,
    name_of,
    named_in_errors,
    unknown,
)
from simsched.plugins.protocol_check import has_members, is_function_protocol, lack_of
from simsched.plugins.typed_options import typed_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from importlib.metadata import EntryPoint


def _named(value: Any, where: str) -> Any:
    plain = isinstance(value, str | bool | int | float | list | dict)
    return text().read(value, where) if plain else value


NAMED = ValueKind(_named, {"type": "string", "minLength": 1}, name_of)
"""The kind of a policy or an order, by name; a program may give an object, of which records have the name."""


@dataclass(frozen=True, slots=True)
class PluginKind:
    """One kind of plug-in.

    Attributes
    ----------
    word : its name in messages, such as ``match policy``.
    group : the entry-point group of other packages, such as ``simsched.match_policies``.
    protocol : the attributes and methods of a value (`typing.Protocol`).
    """

    word: str
    group: str
    protocol: type

    # -- installed plug-ins -----------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names that installed packages have for this kind."""
        return list(_points(self.group))

    def found(self, name: str) -> Any | None:
        """Return what the entry point of this name is, unmade; None if there is none.

        Raises
        ------
        PluginError
            If its module cannot be imported or lacks the object.
        """
        point = _points(self.group).get(name)
        return None if point is None else load(self.word, name, point)

    def unknown(self, name: str, known: Iterable[str], prefix: str = "") -> ConfigError:
        """Return the error for a name that is neither one of `known` nor installed."""
        return unknown(self.word, name, [*known, *self.names()], prefix)

    def installed(self, text: str) -> Any | None:
        """Return the value of ``name`` or ``name:key=value,…``, made and checked; None if none is installed.

        Raises
        ------
        ConfigError
            For an option that it does not have, or a value that the option does not take.
        PluginError
            If it cannot be loaded or made, or lacks what its protocol asks for.
        """
        found = self.found(text)
        if found is not None:
            return self.made(text, found, {})
        name, _, rest = text.partition(":")
        found = self.found(name)
        return None if found is None else self.made(name, found, self.read_options(name, rest))

    def read_options(self, name: str, text: str) -> dict[str, str]:
        """Return the options in ``key=value,key=value``; names may be spelt with ``-`` or ``_``."""
        options = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            key, equals, value = part.partition("=")
            if not equals or not key.strip():
                raise ConfigError(
                    f"{part!r} is not an option of the {self.word} {name!r}", expected=f"{name}:NAME=VALUE,…"
                )
            options[key.strip().replace("-", "_")] = value.strip()
        return options

    # -- making and checking ----------------------------------------------------------------------

    def made(self, name: str, found: Any, options: Mapping[str, Any]) -> Any:
        """Return the value that an entry point means, with these options; errors as `installed`."""
        if not isinstance(found, type) and self._is_value(found):
            if is_function_protocol(self.protocol) and options:
                bound = self.typed(name, found, options, keyword_only=True)
                return partial(self.checked(found, name), **bound)
            self.typed(name, None, options)
            return self.checked(found, name)
        if not callable(found):
            raise misfit(self.word, name, found, lack_of(found, self.protocol))
        arguments = self.typed(name, found, options)
        with called_with(self.word, found, name):
            value = found(**arguments)
        return self.checked(value, name)

    def checked(self, value: Any, name: str | None = None) -> Any:
        """Return a value that fits the protocol; otherwise PluginError with the missing part."""
        lack = lack_of(value, self.protocol)
        if lack is not None:
            raise misfit(self.word, name or name_of(value), value, lack)
        return value

    def fits(self, value: Any) -> bool:
        """Whether a value, not a class, has the attributes and methods of the protocol."""
        return not isinstance(value, type) and has_members(value, self.protocol)

    def named(self, value: Any, name: str | None = None) -> AbstractContextManager[None]:
        """Return a context in which an exception of another package's value becomes a `PluginError`."""
        return named_in_errors(self.word, value, name)

    def typed(
        self,
        name: str,
        maker: Callable[..., Any] | None,
        options: Mapping[str, Any],
        *,
        keyword_only: bool = False,
    ) -> dict[str, Any]:
        """Return options as the types of their parameters; ConfigError for one that `maker` does not have."""
        known = {} if maker is None else options_of(maker, keyword_only=keyword_only)
        for option in options:
            if option not in known and "**" not in known:
                shown = [key.replace("_", "-") for key in known]
                word = option.replace("_", "-")
                raise ConfigError(
                    f"the {self.word} {name!r} has no option {word!r}{did_you_mean(word, shown)}",
                    expected=", ".join(shown) or "no options",
                )
        if maker is None:
            return {}
        try:
            return typed_options(maker, options)
        except ConfigError as error:
            raise error.at(f"{self.word} {name!r}") from None

    def described(self, name: str) -> tuple[str, str]:
        """Return a sentence on an installed value and its options as text; errors as `found`."""
        found = self.found(name)
        text = getattr(found, "says", None) or getattr(found, "meaning", None)
        if not isinstance(text, str):
            own = found if isinstance(found, type) or isroutine(found) else type(found)
            text = (getattr(own, "__doc__", None) or "").partition("\n")[0].rstrip(". ")
        value = not isinstance(found, type) and self._is_value(found)
        function = value and is_function_protocol(self.protocol)
        options = {} if value and not function else options_of(found, keyword_only=function)
        return text or "of an installed package", options_text(options)

    def _is_value(self, found: Any) -> bool:
        """Whether what an entry point names is a value itself, not something that makes one."""
        if is_function_protocol(self.protocol) and isroutine(found):
            return lack_of(found, self.protocol) is None or not _makes_values(found)
        return has_members(found, self.protocol)


def _makes_values(function: Any) -> bool:
    """Whether all arguments of a function may be left out: then it makes a value."""
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True


def options_of(maker: Any, *, keyword_only: bool = False) -> dict[str, Any]:
    """Return the options of a maker with their defaults; ``**`` is among them if it takes any."""
    if is_declared(maker):
        return {
            one.name: Parameter.empty if one.required else one.default for one in fields_of(maker).values()
        }
    try:
        parameters = signature(maker).parameters.values()
    except (TypeError, ValueError):
        return {}
    found: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_KEYWORD:
            found["**"] = None
        elif parameter.kind is Parameter.KEYWORD_ONLY or (
            not keyword_only and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
        ):
            found[parameter.name] = parameter.default
    return found


def options_text(options: Mapping[str, Any]) -> str:
    """Return options with their defaults as text."""
    return ", ".join(
        f"{key.replace('_', '-')}={_default(item)}" for key, item in options.items() if key != "**"
    )


def _default(value: Any) -> str:
    if value is Parameter.empty:
        return "…"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _points(group: str) -> Mapping[str, EntryPoint]:
    import importlib.metadata

    return _scanned(tuple(sys.path), importlib.metadata.entry_points).get(group, {})


@cache
def _scanned(_path: tuple[str, ...], entry_points: Any) -> dict[str, dict[str, EntryPoint]]:
    """Return our entry points by group; a search of all installed packages takes milliseconds."""
    points = entry_points()
    ours = [group for group in points.groups if group.startswith("simsched.")]
    return {group: {point.name: point for point in points.select(group=group)} for group in ours}
