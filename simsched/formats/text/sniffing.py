"""The form of a text by its beginning: JSON, JSON Lines, YAML, XML, shapes; the outline of a JSON text.

`formats.machines.recognition` decides which format of that form a text is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Kind: TypeAlias = Literal["json", "jsonl", "yaml", "xml", "text"]

_YAML_START = re.compile(
    r"---|%YAML|- |-\Z|\? |(?:[^\s:;#{}\[\],&*!|>'\"%@`-][^:#]*|\"[^\"]*\"|'[^']*'):(?:\s|\Z)"
)
_SHAPE = re.compile(r"""\[?\s*(?:[^\W\d][\w.-]*|"[^"]*"|'[^']*')\s*(?:[=/{;\]]|\Z)""")


def detect_kind(text: str) -> Kind:
    r"""Return the form of a text, recognised by its beginning.

    ``json`` is one document, ``jsonl`` one object per line, ``text`` anything
    else (an SWF trace, a shape, a table).

    >>> detect_kind('{"a": 1}\n{"a": 2}'), detect_kind("a: 1"), detect_kind("; Version: 2.2\n1 0 3")
    ('jsonl', 'yaml', 'text')
    """
    head = text[:65536].lstrip("\ufeff \t\r\n")
    if head[:1] == "<":
        return "xml"
    if head[:1] in ("{", "["):
        first, _, rest = head.partition("\n")
        several = rest.lstrip()[:1] == "{" and first.rstrip()[-1:] == "}" and head[0] == "{"
        return "jsonl" if several else "json"
    for line in head.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return "yaml" if _YAML_START.match(line.strip()) else "text"
    return "text"


def looks_like_shapes(text: str) -> bool:
    """Whether the first line (but blank ones and comments) begins like a shape, not like JSON or YAML.

    >>> looks_like_shapes("[core;gpu]"), looks_like_shapes("node{unit: GB}"), looks_like_shapes("a: 1")
    (True, True, False)
    """
    for line in text[:100_000].splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return _SHAPE.match(line.strip()) is not None
    return False


def read_shapes(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield (shape, place) of a text of one shape per line; blank lines and # lines are ignored."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip(), f"{where}:{number}"


def is_xml(text: str) -> bool:
    """Whether a text is XML; a request in XML is a document of Job Objects.

    >>> is_xml("  <Job/>"), is_xml("core=4")
    (True, False)
    """
    return re.match(r"[\ufeff \t\r\n]*<[?!\w]", text) is not None  # ``<<`` is a key of YAML


_OPERATOR = re.compile(
    r"""[\ufeff\s]*+\{?\s*+["']?(?:properties|hostlist|ranks|and|or|not)["']?:(?=[\s"'\[{]|\Z)"""
)


def begins_constraint(text: str) -> bool:
    """Whether the first key of a document is an operator of RFC 31."""
    return _OPERATOR.match(text) is not None


def is_constraint_document(text: str) -> bool:
    """Whether the text of a constraint is an RFC 31 object in JSON or YAML, and not the text of RFC 35."""
    return text.lstrip("\ufeff \t\r\n")[:1] == "{" or begins_constraint(text)


HEAD = 65_536
"""The characters at the beginning of a text in which the form of its records is looked for."""

Outline: TypeAlias = "Mapping[str, tuple[str, frozenset[str]]]"
"""Key at the top → how its value begins (``{``, ``[`` or nothing), and the keys of that object, or of the
objects of that list.  The key of a document that is a list is empty."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"(\s*+:)?)?|[\[\]{}]', re.DOTALL)


def outline(text: str) -> Outline:
    """Return the outline of a JSON text, or of the first line of JSON Lines.

    Texts that are damaged or cut short have the keys that their beginning shows.

    >>> found = outline('{"jobs": [{"id": 1, "at": {"x": 2}}], "n": {"deep": {"jobs": []}}}')
    >>> [(key, kind, sorted(inside)) for key, (kind, inside) in sorted(found.items())]
    [('jobs', '[', ['at', 'id']), ('n', '{', ['deep'])]
    """
    found = _outline_of_head(text[:HEAD])
    if len(text) <= HEAD or detect_kind(text) != "json" or text.lstrip()[:1] != "{":
        return found
    import msgspec

    try:
        whole = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return found
    for key, raw in whole.items():
        if key not in found:
            value = bytes(memoryview(raw)[:HEAD]).decode("utf-8", "replace")
            found |= _outline_of_head(f'{{"{key}": {value}')
    return found


def _outline_of_head(head: str) -> dict[str, tuple[str, frozenset[str]]]:
    found: dict[str, tuple[str, set[str]]] = {}
    top, open_ = "", ""
    for token in _TOKEN.finditer(head):
        mark = token[0]
        if mark in "{[":
            open_ += mark
            if len(open_) == (1 if open_[0] == "[" else 2):
                found[top] = (mark, found[top][1] if top in found else set())
        elif mark in "}]":
            open_ = open_[:-1]
            if not open_:
                break
        elif token[2] and open_ == "{":
            top = token[1]
            found.setdefault(top, ("", set()))
        elif token[2] and open_ in ("{{", "{[{", "[{"):
            found[top][1].add(token[1])
    return {key: (mark, frozenset(keys)) for key, (mark, keys) in found.items()}


MOST_PARTS = 100
"""The most JSON documents in one text; more are lines of JSON Lines."""
_DOCUMENT = re.compile(r'(?m)^\{(?=\s*(?:"|\}))')
_SEVERAL = re.compile(r"\}(?:\s*\{|[ \t\r]*\n\s*[^\s\]},])")
"""The end of a document before another, or before text of another kind."""


def json_parts(text: str) -> tuple[list[str], str]:
    r"""Return the JSON documents of a text, at their places, and the rest of it.

    Commands may have written several, and plain text before, between and after them.

    >>> json_parts('{"a": 1}\n{"b": 2}\nNodeName=x')
    (['{"a": 1}', '\n{"b": 2}'], '\n\nNodeName=x')
    """
    bare = text.lstrip()
    whole = ([text], "") if bare[:1] == "{" else ([], text)
    if _SEVERAL.search(text) is None if bare[:1] == "{" else _DOCUMENT.search(text) is None:
        return whole
    parts: list[str] = []
    rest: list[str] = []
    end = 0
    for begin in _DOCUMENT.finditer(text):
        if begin.start() < end:
            continue
        depth = 0
        for token in _TOKEN.finditer(text, begin.start()):
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
            if depth == 0:
                break
        else:
            return whole  # a document that is cut short
        parts.append("\n" * text.count("\n", 0, begin.start()) + text[begin.start() : token.end()])
        rest += text[end : begin.start()], "\n" * text.count("\n", begin.start(), token.end())
        end = token.end()
        if len(parts) > MOST_PARTS:
            return whole
    return parts, "".join([*rest, text[end:]])


def outline_of(document: Any) -> Outline:
    """Return the outline of a decoded document."""
    items = document.items() if isinstance(document, dict) else (("", document),)
    found = {}
    for key, value in items:
        mark = "{" if isinstance(value, dict) else "[" if isinstance(value, list) else ""
        inner = [value] if mark == "{" else value[:100] if mark else []
        found[str(key)] = (mark, frozenset(str(k) for one in inner if isinstance(one, dict) for k in one))
    return found
