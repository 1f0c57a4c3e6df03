"""Errors of plug-ins: they name the plug-in, and have its own part of the traceback."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, PluginError, SimschedError, first_line, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import EntryPoint
    from types import FrameType

    from simsched.plugins.protocol_check import Lack

OURS = "simsched"
MOST_FRAMES = 20
"""The most frames of a traceback in an error."""
WRAPPED = ("inner", "order", "keys", "compute")
"""Attributes of our own values that hold a policy or an ordering function of another package."""


def load(kind: str, name: str, point: EntryPoint) -> Any:
    """Return the object that an entry point names.

    Raises
    ------
    PluginError
        If its module cannot be imported or lacks the object.
    """
    try:
        return point.load()
    except Exception as error:
        where = getattr(point, "value", None)
        package = str(where or "").partition(":")[0].partition(".")[0]
        text = f"the {kind} {name!r} cannot be loaded: {first_line(error)}"
        raise _traced(PluginError(text, where=where), error, package) from error


def misfit(kind: str, name: str, value: Any, lack: Lack | None) -> PluginError:
    """Return the error for a value that lacks what its kind asks for."""
    if lack is None:
        return failed(kind, value, f"is a {type(value).__name__}", name)
    return PluginError(
        f"the {kind} {name!r} {lack.text}", where=lack.where or package_of(value), expected=lack.expected
    )


@contextmanager
def called_with(kind: str, maker: Any, name: str) -> Iterator[None]:
    """As `named_in_errors`, for the call that makes a plug-in of its options.

    Raises
    ------
    PluginError
        With the name, the exception and its place.
    ConfigError
        If an option is missing.
    """
    try:
        with named_in_errors(kind, maker, name):
            yield
    except TypeError as error:
        raise ConfigError(f"the {kind} {name!r} cannot be made: {error}") from error


class UnknownNameError(ConfigError):
    """A name that is neither built in nor installed; the message ends with the nearest known one."""

    hint = ""

    def at(self, where: str) -> UnknownNameError:
        """Return the same error with `where` before its own place."""
        found = type(self)(self.message, where=super().at(where).where, expected=self.expected)
        found.hint = self.hint
        return found

    def __str__(self) -> str:
        return super().__str__() + self.hint


def unknown(kind: str, name: str, known: Iterable[str], prefix: str = "") -> UnknownNameError:
    """Return the error for a name that is neither built in nor installed.

    >>> print(unknown("order", "fifi", ["fifo", "sjf"]).at("rules"))
    rules: unknown order 'fifi' (expected fifo, sjf); did you mean 'fifo'?
    >>> print(unknown("order", "fair-share", ["fifo", "fairshare[:HALF-LIFE]"]))
    unknown order 'fair-share' (expected fifo, fairshare[:HALF-LIFE]); did you mean 'fairshare'?
    """
    names = list(dict.fromkeys(known))
    error = UnknownNameError(f"unknown {kind} {name!r}", expected=prefix + ", ".join(names))
    bare = [one.partition("[")[0].partition("(")[0] for one in names]  # without their arguments
    meant = nearest(name, bare)
    error.hint = "" if meant is None else f"; did you mean {meant!r}?"
    return error


def name_of(value: Any) -> str:
    """Return the name of a policy or order that is given by name or as an object.

    >>> name_of(max), name_of(dict), name_of(5)
    ('max', 'dict', '5')
    """
    if isinstance(value, str):
        return value
    name = getattr(value, "name", None)
    if isinstance(name, str):
        return name
    if type(value).__module__ == "builtins":  # a function or a class has a name, a number has none
        return str(getattr(value, "__name__", value))
    return type(value).__name__


@contextmanager
def named_in_errors(kind: str, value: Any, name: str | None = None) -> Iterator[None]:
    """Turn an exception in a policy or order of another package into an error that names it.

    An exception from elsewhere is passed on: it is a defect of simsched.

    Raises
    ------
    PluginError
        With the name, the exception, and the file, line and function where it was raised.
    """
    try:
        yield
    except SimschedError:
        raise
    except Exception as error:
        found = _failure(kind, value, name or name_of(value), error)
        if found is None:
            raise
        raise found from error


def failed(kind: str, value: Any, problem: str, name: str | None = None) -> PluginError:
    """Return the error for a policy or order that returned an invalid result."""
    return PluginError(f"the {kind} {(name or name_of(value))!r} {problem}", where=package_of(value))


def number_of(value: Any) -> float | None:
    """Return the answer of a plug-in as a number; None for another value, and for one beyond all floats.

    >>> number_of(2), number_of(10**400), number_of("2"), number_of([2])
    (2.0, None, None, None)
    """
    if isinstance(value, str | bytes):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: Any) -> str:
    """Return an answer of a plug-in for a message, cut short."""
    try:
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:30]}...{text[-10:]}"
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"


def is_ours(value: Any) -> bool:
    """Whether a policy or order is part of simsched."""
    return package_of(value) == OURS


def package_of(value: Any) -> str:
    """Return the package that defines an object, or the object that it wraps if it is one of our own."""
    value = _unbound(value)
    module = getattr(value, "__module__", None) or type(value).__module__
    package = str(module).partition(".")[0]
    inner = next((getattr(value, name, None) for name in WRAPPED if getattr(value, name, None)), None)
    return package_of(inner) if package == OURS and inner is not None else package


def _unbound(value: Any) -> Any:
    """Return the function of another package in a `functools.partial`."""
    while isinstance(value, partial):
        value = value.func
    return value


def _failure(kind: str, value: Any, name: str, error: Exception) -> PluginError | None:
    package = package_of(value)
    if package == OURS:
        return None
    frames = [(frame, line) for frame, line in _frames(error) if _root(frame) == package]
    if not frames:
        return _wrong_signature(kind, value, name, error)
    frame, line = frames[-1]
    code = frame.f_code
    text = f"the {kind} {name!r} failed in {code.co_name}: {type(error).__name__}: {error}"
    return _traced(PluginError(text, where=f"{code.co_filename}:{line}"), error, package)


def _traced(found: PluginError, error: Exception, package: str) -> PluginError:
    """Return an error with the part of a traceback that begins in a package."""
    from traceback import TracebackException

    trace = error.__traceback__
    while trace is not None and _root(trace.tb_frame) != package:
        trace = trace.tb_next
    if trace is not None:
        lines = TracebackException(type(error), error, trace, limit=MOST_FRAMES).format()
        found.trace = "".join(lines).rstrip()
    return found


def _wrong_signature(kind: str, value: Any, name: str, error: Exception) -> PluginError | None:
    """Return the error for a function of the other package that does not take the arguments of its call."""
    function = _called(_unbound(value))
    code = getattr(function, "__code__", None)
    if code is None or not isinstance(error, TypeError):
        return None
    if not str(error).startswith(f"{function.__qualname__}()"):
        return None
    where = f"{code.co_filename}:{code.co_firstlineno}"
    return PluginError(f"the {kind} {name!r} cannot be called: {error}", where=where)


def _called(value: Any) -> Any:
    """Return the function that a policy or order is called by; None if it has no such function."""
    ours = (getattr(value, "__module__", None) or type(value).__module__).partition(".")[0] == OURS
    for name in WRAPPED if ours else ("run_pass", "ranked"):
        found = getattr(value, name, None)
        if found is not None:
            return _called(found) if name == "inner" else found
    return value if hasattr(value, "__code__") else None


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _frames(error: Exception) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames of a traceback with their lines, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
