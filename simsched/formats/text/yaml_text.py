"""Strict YAML: the values of JSON in the syntax of YAML, read and written.

Plain scalars follow one rule, so that no text silently becomes another value:

* ``null``, ``~`` and nothing are null; ``true`` and ``false`` (also capitalised) are booleans;
* decimal numbers as JSON writes them (also ``+1``, ``.5``, ``1.``) are numbers, ``1e3`` too;
* everything else is the string that was written.  So the words that YAML 1.1
  readers convert stay text: ``yes``, ``no``, ``on``, ``off``, ``y``, ``n``; ``010``, ``0x1F``
  and ``1_000``; ``22:22`` and ``1:30:00``; dates.

A reader that expects a number or a boolean and finds such a string adds the sentence of `yaml_hint` to its
message.  ``.inf`` and ``.nan`` are errors.  Keys are the text as written (``1:``
and ``yes:`` are the keys "1" and "yes") and occur once.  Anchors, aliases and ``<<`` merges
work as far as `MAX_ALIASED` nodes; tags other than those of JSON's types are errors.

A string is written without quotes only if no reader of YAML 1.1 or 1.2 could convert it.  PyYAML does not
write here because its import takes a third of the start-up of ``simsched shape``, and it leaves ``1e3``
without quotes.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.text.excerpts import MAX_DIGITS, Path, line_and_column, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import yaml


MAX_DEPTH = 200
"""The deepest nesting of a document."""

MAX_ALIASED = 100_000
"""The largest number of nodes that the aliases of one document may expand to."""

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_STARTS = frozenset("0123456789+-.")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_TAG = "tag:yaml.org,2002:"


def load_yaml(text: str, where: str | None = None) -> Any:
    """Read the one document of a YAML text, by the rule of the module's docstring.

    Raises
    ------
    FormatError
        Not YAML, no document or several, a key twice, a foreign tag, a number that is not finite.
    LimitError
        Deeper than `MAX_DEPTH`, aliases beyond `MAX_ALIASED`.

    >>> load_yaml("a: [yes, 010, 1e3, 22:22]")
    {'a': ['yes', '010', 1000.0, '22:22']}
    """
    loaded = documents(text, where)
    value = next(loaded, _NOTHING)
    if value is _NOTHING:
        raise FormatError("the document is empty", where=where, expected="YAML")
    if next(loaded, _NOTHING) is not _NOTHING:
        raise FormatError("the text has more than one document", where=where, expected="one document")
    return value


def load_yaml_all(text: str, where: str | None = None) -> list[Any]:
    r"""Read all documents of a YAML text; an empty text gives an empty list.

    >>> load_yaml_all("a: 1\n---\nb: 2\n")
    [{'a': 1}, {'b': 2}]
    """
    return list(documents(text, where))


def yaml_hint(value: object) -> str | None:
    """Return a hint for a string that other YAML readers convert to another value, or None.

    >>> yaml_hint("yes")
    "'yes' is text here: write true for the boolean"
    >>> yaml_hint("010")
    "'010' is text here: write 10, or 8 if octal was meant"
    """
    if not isinstance(value, str) or len(value) > 40:
        return None
    if (word := value.lower()) in _ANSWERS:
        return f"{value!r} is text here: write {_ANSWERS[word]} for the boolean"
    for pattern, advice in _TRAPS:
        if pattern.match(value):
            return f"{value!r} is {advice(value)}"
    return None


def _leading_zero(text: str) -> str:
    octal = f", or {int(text, 8)} if octal was meant" if not re.search("[89]", text) else ""
    return f"text here: write {int(text)}{octal}"


_ANSWERS = dict.fromkeys(("yes", "on", "y"), "true") | dict.fromkeys(("no", "off", "n"), "false")
_TRAPS: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (re.compile(r"[-+]?0[0-9]+\Z"), _leading_zero),
    (re.compile(r"[-+]?0[xob][0-9a-fA-F]+\Z"), lambda _: "text here: write the number in decimal digits"),
    (re.compile(r"[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?\Z"), lambda _: "text here, not a number in base 60"),
    (re.compile(r"[-+]?[0-9]+(?:_[0-9]+)+\Z"), lambda text: f"text here: write {text.replace('_', '')}"),
    (_FLOAT, lambda _: "in quotes: write it without them for the number"),
)


# -- from events to values -----------------------------------------------------------


_NOTHING: Any = object()
"""The mark for an absent value (None is a value)."""


class _Frame:
    """A collection that is being filled."""

    __slots__ = ("anchor", "key", "merges", "merging", "value", "weight")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str = _NOTHING
        self.weight = 1
        self.merges: list[dict[str, Any]] = []
        self.merging = False


def documents(
    text: str,
    where: str | None,
    values: dict[Path, tuple[int, int]] | None = None,
    keys: dict[Path, tuple[int, int]] | None = None,
) -> Iterator[Any]:
    """The documents of a YAML text, one by one.

    `values` and `keys`, if given, collect the line and column of each path of the current document; the
    caller empties them between documents.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from _built(yaml.parse(text, Loader=loader), where, values, keys)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise _yaml_fault(_first_fault(error, text, where), text, where) from None


def _built(
    events: Iterable[yaml.Event],
    where: str | None,
    values: dict[Path, tuple[int, int]] | None = None,
    keys: dict[Path, tuple[int, int]] | None = None,
) -> Iterator[Any]:
    """Yield the documents of a parser's events."""
    builder = _Builder(where, values, keys)
    for event in events:
        if builder.take(event):
            yield builder.root
            builder = _Builder(where, values, keys)


def _first_fault(error: Exception, text: str, where: str | None) -> Exception:
    """Return the first fault of a text, or raise it if it is one of ours.

    libyaml (of PyYAML 6.0.4) looks ahead, so it refuses a text that is nested more deeply than it reads
    before it gives the event at which our limit is exceeded. The parser in Python gives that event.
    """
    import yaml

    if "nesting depth" in str(error):
        try:
            for _ in _built(yaml.parse(text, Loader=yaml.SafeLoader), where):
                pass
        except (yaml.YAMLError, UnicodeEncodeError) as earlier:
            return earlier
    return error


class _Builder:
    """Builds the value of one document from the parser's events, without recursion."""

    def __init__(
        self,
        where: str | None,
        values: dict[Path, tuple[int, int]] | None,
        keys: dict[Path, tuple[int, int]] | None,
    ) -> None:
        self.where = where
        self.values, self.keys = values, keys
        self.root: Any = None
        self.frames: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.aliased = 0

    def take(self, event: yaml.Event) -> bool:
        """Take the next event; true if the document is complete."""
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, {} if kind == "MappingStartEvent" else [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close(event)
        elif kind == "AliasEvent":
            self._alias(event)
        return kind == "DocumentEndEvent"

    def _awaits_key(self) -> bool:
        """Whether the next event has to be the key of a mapping."""
        frame = self.frames[-1] if self.frames else None
        return frame is not None and frame.key is _NOTHING and isinstance(frame.value, dict)

    def _scalar(self, event: Any) -> None:
        if self._awaits_key():
            self._key(self.frames[-1], event)
            return
        if event.tag not in (None, "!"):
            value = self._tagged(event, event.tag.removeprefix(_TAG))
        else:
            value = self._plain(event) if event.implicit[0] else event.value
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self._note(event, self.values)
        self._put(value, 1, event)

    def _key(self, frame: _Frame, event: Any) -> None:
        """Begin a member of a mapping."""
        key = event.value
        if key in frame.value:
            raise self._fault(f"key {clip(key)!r} occurs twice in one mapping", event)
        frame.key = key
        frame.merging = key == "<<" and event.implicit[0]  # in quotes it is a key like any other
        if event.anchor:
            self.anchors[event.anchor] = (key, 1)
        self._note(event, self.keys)

    def _open(self, event: Any, value: dict[str, Any] | list[Any]) -> None:
        if self._awaits_key():
            raise self._fault("a key is not a string", event, "a string")
        wanted = "map" if isinstance(value, dict) else "seq"
        if event.tag not in (None, "!", _TAG + wanted):
            raise self._fault(f"tag {clip(event.tag)!r} is not one of JSON's types", event, "no tag")
        if len(self.frames) >= MAX_DEPTH:
            raise self._fault(f"nested deeper than {MAX_DEPTH} levels", event, kind=LimitError)
        self._note(event, self.values)
        self.frames.append(_Frame(value, event.anchor))

    def _close(self, event: Any) -> None:
        """End a collection and put it into the one around it."""
        frame = self.frames.pop()
        value = frame.value
        if frame.merges and isinstance(value, dict):
            own = dict(value)
            value.clear()
            for source in reversed(frame.merges):
                value.update(source)
            value.update(own)
        if frame.anchor:
            self.anchors[frame.anchor] = (value, frame.weight)
        self._put(value, frame.weight, event)

    def _alias(self, event: Any) -> None:
        """Put the value of an anchor."""
        if event.anchor not in self.anchors:
            loop = any(frame.anchor == event.anchor for frame in self.frames)
            reason = "refers to itself" if loop else "has no anchor"
            raise self._fault(f"alias *{clip(event.anchor)} {reason}", event)
        if self._awaits_key():
            raise self._fault("a key is an alias", event, "a string")
        value, weight = self.anchors[event.anchor]
        self.aliased += weight
        if self.aliased > MAX_ALIASED:
            raise self._fault(f"aliases expand to more than {MAX_ALIASED} nodes", event, kind=LimitError)
        self._note(event, self.values)
        self._put(value, weight, event)

    def _put(self, value: Any, weight: int, event: Any) -> None:
        """Put a complete value where it belongs."""
        if not self.frames:
            self.root = value
            return
        frame = self.frames[-1]
        frame.weight += weight
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        key, frame.key = frame.key, _NOTHING
        if frame.merging:
            frame.merging = False
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise self._fault("'<<' merges something that is not a mapping", event, "a mapping")
            frame.merges.extend(sources)
        else:
            frame.value[key] = value

    def _note(self, event: Any, spots: dict[Path, tuple[int, int]] | None) -> None:
        """Remember the location of a value or a key."""
        if spots is not None:
            path = tuple(
                len(frame.value) if isinstance(frame.value, list) else frame.key for frame in self.frames
            )
            spots[path] = (event.start_mark.line + 1, event.start_mark.column + 1)

    def _plain(self, event: Any) -> Any:
        """The value of a plain scalar, by the rule of the module's docstring."""
        text = event.value
        if text[:1] not in _STARTS:
            return _WORDS.get(text, text)
        if _INT.match(text):
            if len(text.lstrip("+-")) > MAX_DIGITS:
                expected = f"at most {MAX_DIGITS}"
                raise self._fault("the number has too many digits", event, expected, kind=LimitError)
            return int(text)
        if _FLOAT.match(text):
            value = float(text)
            if math.isinf(value):
                raise self._fault(f"{clip(text)} is too large for a number", event)
            return value
        if _NOT_FINITE.match(text):
            raise self._fault(f"{text} is not a finite number", event, "a finite number")
        return text

    def _tagged(self, event: Any, name: str) -> Any:
        """The value of a scalar with a tag."""
        if name == "str":
            return event.value
        kinds: dict[str, tuple[type, ...]] = {
            "int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),),
        }  # fmt: skip
        if name not in kinds:
            raise self._fault(f"tag {clip(name)!r} is not one of JSON's types", event, "no tag")
        value: Any = self._plain(event)
        if not isinstance(value, kinds[name]) or (isinstance(value, bool) and name != "bool"):
            raise self._fault(f"{clip(event.value)!r} is not of the type {name} that it claims", event)
        return float(event.value) if name == "float" else value

    def _fault(
        self, message: str, event: Any, expected: str | None = None, *, kind: type[FormatError] = FormatError
    ) -> FormatError:
        mark = event.start_mark
        return kind(message, where=place(self.where, mark.line + 1, mark.column + 1), expected=expected)


def _yaml_fault(error: Exception, text: str, where: str | None) -> FormatError:
    """Return the fault that the YAML scanner found, in our wording."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    if mark is None:
        found = _CONTROL.search(text)
        if found is None:
            return FormatError(f"not YAML: {clip(problem, 120)}", where=where)
        spot = place(where, *line_and_column(text, found.start()))
        return FormatError(f"not YAML: the control character {found.group()!a}", where=spot)
    spot = place(where, mark.line + 1, mark.column + 1)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: mark.column + 1] and not line[: mark.column + 1].strip():
        return FormatError("not YAML: a tab in the indentation", where=spot, expected="spaces")
    return FormatError(f"not YAML: {clip(problem, 120)}", where=spot)


_PLAIN = re.compile(
    r"""(?: [A-Za-z_/][\w./@%^-]*                # words and paths
        | [0-9]+[AC-DF-NP-WYZac-df-np-wyz][\w.-]* # 4GB-node; not 1e3, 0x1f, 0b1, 0o7
        | [0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)+  # 4,9,16
        | [+^]
        )\Z""",
    re.VERBOSE | re.ASCII,
)
_CONVERTED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})


def to_yaml(value: Any) -> str:
    r"""Return a JSON value as a YAML document.

    >>> print(to_yaml([{"type": "node", "count": {"min": 1}, "id": "010"}]), end="")
    - type: node
      count:
        min: 1
      id: "010"
    """
    if isinstance(value, (dict, list, tuple)) and value:
        return "\n".join(_lines(value, "")) + "\n"
    return _scalar(value) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a collection that is not empty; lists in dictionaries are not indented."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, (dict, list, tuple)) and item:
                yield f"{indent}{_string(key)}:"
                yield from _lines(item, indent + "  " if isinstance(item, dict) else indent)
            else:
                yield f"{indent}{_string(key)}: {_scalar(item)}"
        return
    for item in value:
        if isinstance(item, (dict, list, tuple)) and item:
            lines = _lines(item, indent + "  ")
            yield f"{indent}- {next(lines)[len(indent) + 2 :]}"
            yield from lines
        else:
            yield f"{indent}- {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 has no 1e+16
    return text


def _string(text: str) -> str:
    if _PLAIN.match(text) and text.lower() not in _CONVERTED:
        return text
    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _escaped(char: str) -> str:
    """Return a character of a JSON string as YAML accepts it in double quotes."""
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
