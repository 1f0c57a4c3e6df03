"""The errors that a user can cause.

Each states the fault, its place (a file, a line and column, or a JSON path) and the expected input.  The
command line prints the message and exits with status 2.  `nearest` finds the known name for a mistyped one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_QUOTE = 60
"""The most characters of an input that a message quotes."""

MAX_MESSAGE = 600
"""The most characters of a message, of its place and of its expectation; enough for a list of names."""

_QUOTE = re.compile(rf"""(?<!\w)(?:'[^']{{{MAX_QUOTE},}}'|"[^"]{{{MAX_QUOTE},}}")(?!\w)""")


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def path_step(step: str | int) -> str:
    """Return one step of a JSON path as text, to be put after the steps before it.

    >>> path_step("count"), path_step(3), path_step("odd key")
    ('.count', '[3]', '["odd key"]')
    """
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_KEY.match(step := str(step)):
        return f".{step}"
    quoted = step.replace("\\", "\\\\").replace('"', '\\"')
    return f'["{quoted}"]'


def clip(text: str, width: int = MAX_QUOTE) -> str:
    """Return `text` without its middle if it is longer than `width` characters.

    >>> clip("abcdefghijkl", 9)
    'abc...jkl'
    """
    if len(text) <= width:
        return text
    side = (width - 3) // 2
    return f"{text[:side]}...{text[-side:]}"


def _readable(text: str) -> str:
    """Return a message with long quotations clipped, since an input may be as long as a file."""
    if len(text) <= MAX_QUOTE:
        return text
    return clip(_QUOTE.sub(lambda quote: clip(quote[0], MAX_QUOTE + 2), text), MAX_MESSAGE)


class SimschedError(Exception):
    """Base of every error that an input, a configuration or an argument can cause.

    Parameters
    ----------
    message : the fault, one sentence without a full stop.
    where : the place: ``"cluster.json"``, ``"jobs.yaml:12:5"``, ``"resources[0].count"`` …
    expected : a description of valid values.

    Each of them and its quotations are clipped, since a faulty value may be as long as a file.  `others` are
    the further faults of the same table, and `key` is a key that the table at `where` cannot have.

    >>> print(SimschedError("unknown key 'cuont'", where="job.yaml:3:1", expected="count"))
    job.yaml:3:1: unknown key 'cuont' (expected count)
    """

    def __init__(self, message: str, where: str | None = None, expected: str | None = None) -> None:
        # All three may be given by position: simpy and pickle copy an exception from its `args`.
        self.message = _readable(message)
        self.where = where and _readable(where)
        self.expected = expected and _readable(expected)
        self.others: tuple[SimschedError, ...] = ()
        self.key: str | None = None
        super().__init__(self.message, self.where, self.expected)

    def at(self, where: str) -> SimschedError:
        """Return the same error with `where` before its own place."""
        return self.retold(lambda one: one._placed(f"{where}: {one.where}" if one.where else where))

    def retold(self, tell: Callable[[SimschedError], SimschedError]) -> SimschedError:
        """Return what a function makes of the error, with what it makes of the `others`."""
        found, *others = map(tell, (self, *self.others))
        found.others = tuple(others)
        return found

    def renamed(self, name: str, given: str) -> SimschedError:
        """Return the same error with `given` for the file `name`, if its place is in that file.

        >>> str(SimschedError("no number", where="log.swf:3").renamed("log.swf", "logs/log.swf"))
        'logs/log.swf:3: no number'
        """

        def tell(one: SimschedError) -> SimschedError:
            rest = (one.where or "").removeprefix(name)
            return (
                one if rest == one.where or rest[:1] not in ("", ":", "/", " ") else one._placed(given + rest)
            )

        return self.retold(tell)

    def _placed(self, where: str) -> Self:
        found = type(self)(self.message, where=where, expected=self.expected)
        found.key = self.key
        return found

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} (expected {self.expected})" if self.expected else text


def first_line(error: BaseException) -> str:
    r"""Return the first line of an exception's message, or its type's name where it has no message.

    >>> first_line(ValueError("wrong here\nand there")), first_line(ValueError())
    ('wrong here', 'ValueError')
    """
    return str(error).strip().partition("\n")[0].rstrip() or type(error).__name__


class FormatError(SimschedError):
    """A text does not follow the standard it claims to follow."""


class LimitError(FormatError):
    """A text is well formed but exceeds a limit."""


class ClusterError(SimschedError):
    """The documents are well formed but do not describe a possible cluster."""


class RequestError(SimschedError):
    """A jobspec is well formed but requests something that can never be matched."""


class WorkloadError(SimschedError):
    """A workload cannot be read or simulated."""


class ConfigError(SimschedError):
    """An option, policy, configuration key or argument is unknown or not valid."""


class RunError(SimschedError):
    """A directory or file of results is missing, incomplete, foreign or cannot be written."""


class PluginError(ConfigError):
    """A plug-in of another package cannot be loaded, raised an exception or returned an invalid value.

    trace : the traceback from its first line in the plug-in on; empty if the plug-in raised nothing.
    """

    trace: str = ""

    def _placed(self, where: str) -> Self:
        found = super()._placed(where)
        found.trace = self.trace
        return found


class InputWarning(UserWarning):
    """An input is accepted, but parts of it were assumed, left out or not understood.

    lines : one sentence each, with its place.
    of_result : whether they are on a result and not on an input, so that ``--quiet`` does not hide them.
    """

    def __init__(self, source: str, lines: Iterable[str], *, of_result: bool = False) -> None:
        self.lines, self.of_result = tuple(lines), of_result
        super().__init__(f"{source}: " + "; ".join(self.lines))


MAX_COMPARED = 64
"""Number of characters that are compared for the nearest name; the cost is the square of the length."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to a word, or None if none is similar.

    >>> nearest("lonod", ["first", "lonode"]), nearest("xyz", ["first"]), nearest("tyni", ["tiny"])
    ('lonode', None, 'tiny')
    """
    from difflib import get_close_matches  # imported only for an error: it costs 5 ms

    names, asked = list(known), str(word)[:MAX_COMPARED]
    found = get_close_matches(asked, names, n=1, cutoff=cutoff)
    # difflib does not see that two letters changed places in a short word
    swapped = (
        n for n in names if len(n) == len(asked) > 2 and sorted(n) == sorted(asked) and n[0] == asked[0]
    )
    return found[0] if found else next(swapped, None)


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return ``"; did you mean NAME?"`` for the nearest known name, or nothing.

    >>> did_you_mean("lonod", ["first", "lonode"])
    '; did you mean lonode?'
    """
    meant = nearest(word, known, cutoff=cutoff)
    return f"; did you mean {meant}?" if meant else ""
