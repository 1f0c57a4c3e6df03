"""XML as an immutable tree of elements; the dangerous constructs of XML are refused.

Used for Job Objects, GRUG, hwloc topologies and SimGrid platforms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.text.excerpts import place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.parsers.expat import XMLParserType

MAX_BYTES = 256 * 2**20
"""The most bytes an XML text may have."""

MAX_DEPTH = 50
"""The deepest nesting of elements; a Job Object needs about 8, an hwloc topology about 15."""

MAX_TEXT = 2**20
"""The most characters of one element's own text or of one attribute."""

_QUOTES = re.compile("[\u201c\u201d\u2018\u2019]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_QUOTED = {**_ESCAPES, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its name, its attributes in order, and either text or elements inside.

    Equal if these are equal; its place in the text and its awareness policy are not compared.

    >>> e = Element("Processors", (("op", "GE"),), "8")
    >>> print(e)
    <Processors op="GE">8</Processors>
    """

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    text: str = ""
    children: tuple[Element, ...] = ()
    line: int = field(default=0, compare=False, repr=False)
    column: int = field(default=0, compare=False, repr=False)
    policy: str = field(default="Reject", compare=False, repr=False)

    def attribute(self, name: str, default: str | None = None) -> str | None:
        """The value of an attribute, or `default`."""
        return next((value for key, value in self.attributes if key == name), default)

    def all(self, *names: str) -> Iterator[Element]:
        """The children with one of these names, in order."""
        return (child for child in self.children if child.name in names)

    def first(self, name: str) -> Element | None:
        """The first child of this name, or None."""
        return next(self.all(name), None)

    def value(self, name: str) -> str | None:
        """The text of the first child of this name without the space around it, or None."""
        child = self.first(name)
        return None if child is None else child.text.strip()

    def at(self, where: str | None) -> str:
        """The place of the element in the text `where`, for messages."""
        return place(where, self.line, self.column)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all within it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def is_reference(self) -> bool:
        """Whether the element only names another one: text and nothing else."""
        return not self.children and bool(self.text.strip())

    def without(self, *names: str) -> Element:
        """The same element without the children of these names."""
        return replace(self, children=tuple(child for child in self.children if child.name not in names))

    def __str__(self) -> str:
        return "".join(_written(self, "")).rstrip("\n")


def local_name(tag: str) -> str:
    """Return a tag without its namespace prefix."""
    return tag.rpartition(":")[2]


def parse_xml(
    data: bytes | str, where: str | None = None, *, doctype: str | None = None, stray_text: bool = False
) -> Element:
    """Read an XML text into a tree.

    `doctype` is the one document type that may be declared: by its name and the address of its DTD,
    which is never opened.  A declaration with a part in brackets, where entities are defined, is refused,
    and so is every entity that XML does not define itself.  `stray_text` leaves out text between elements,
    which is a fault otherwise.

    Raises
    ------
    FormatError
        Not well formed, another DOCTYPE, text between elements; typographic quotation marks get a hint (R11).
    LimitError
        Beyond `MAX_BYTES`, `MAX_DEPTH` or `MAX_TEXT`.
    """
    from xml.parsers import expat

    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > MAX_BYTES:
        raise LimitError(f"the XML text has {len(raw)} bytes", where=where, expected=f"at most {MAX_BYTES}")
    if not raw.strip():
        raise FormatError("the document is empty", where=where, expected="XML")
    parser = expat.ParserCreate("utf-8" if isinstance(data, str) else None)
    builder = _Builder(parser, where, doctype, stray_text=stray_text)
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise _xml_fault(error.lineno, error.offset, expat.ErrorString(error.code), raw, where) from None
    except (LookupError, UnicodeError) as error:
        raise FormatError(f"an encoding that cannot be read: {clip(str(error))}", where=where) from None
    if builder.root is None:
        raise FormatError("the document is empty", where=where, expected="XML")
    return builder.root


def write_xml(element: Element) -> str:
    """Write a tree as an XML document, two spaces per level; `parse_xml` reads the same tree back."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + "".join(_written(element, ""))


@dataclass(slots=True)
class _Frame:
    """An element that is still open."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    line: int
    column: int
    text: list[str] = field(default_factory=list)
    size: int = 0
    children: list[Element] = field(default_factory=list)


class _Builder:
    """Builds the tree from the parser's events."""

    def __init__(
        self, parser: XMLParserType, where: str | None, accepted: str | None, *, stray_text: bool
    ) -> None:
        self.parser, self.where, self.accepted, self.stray_text = parser, where, accepted, stray_text
        self.root: Element | None = None
        self.frames: list[_Frame] = []
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self.doctype
        parser.SkippedEntityHandler = self.entity

    def at(self) -> str:
        return place(self.where, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def doctype(self, name: str, _system: str | None, _public: str | None, own: int) -> None:
        if self.accepted is None:
            raise FormatError("a DOCTYPE is not accepted", where=self.at(), expected="the root element")
        if name != self.accepted or own:
            reason = "with declarations of its own" if own else f"of {clip(name)!r}"
            expected = f'<!DOCTYPE {self.accepted} SYSTEM "…">, or none'
            raise FormatError(f"a DOCTYPE {reason} is not accepted", where=self.at(), expected=expected)

    def entity(self, name: str, _parameter: object) -> None:
        # Without a DOCTYPE expat itself refuses unknown entities; with one it would skip them silently.
        raise FormatError(f"the entity {clip(name)!r} is not defined", where=self.at(), expected="text")

    def start(self, name: str, attributes: list[str]) -> None:
        if len(self.frames) >= MAX_DEPTH:
            raise LimitError(f"elements nested deeper than {MAX_DEPTH} levels", where=self.at())
        if any(len(value) > MAX_TEXT for value in attributes):
            raise LimitError(f"an attribute of more than {MAX_TEXT} characters", where=self.at())
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        pairs = tuple(zip(attributes[::2], attributes[1::2], strict=True))
        self.frames.append(_Frame(name, pairs, line, column))

    def characters(self, data: str) -> None:
        frame = self.frames[-1]
        frame.size += len(data)
        if frame.size > MAX_TEXT:
            raise LimitError(f"more than {MAX_TEXT} characters in <{clip(frame.name)}>", where=self.at())
        frame.text.append(data)

    def end(self, name: str) -> None:
        frame = self.frames.pop()
        text = "".join(frame.text)
        if frame.children:
            if text.strip() and not self.stray_text:
                found = clip(text.strip(), 30)
                raise FormatError(f"text {found!r} between the elements of <{clip(name)}>", where=self.at())
            text = ""
        element = Element(name, frame.attributes, text, tuple(frame.children), frame.line, frame.column)
        if self.frames:
            self.frames[-1].children.append(element)
        else:
            self.root = element


def _xml_fault(line: int, offset: int, reason: str, raw: bytes, where: str | None) -> FormatError:
    """Return the fault that expat found, with a hint for the quotation marks of word processors."""
    spot = place(where, line, offset + 1)
    lines = raw.split(b"\n")
    near = lines[line - 1].decode("utf-8", "replace") if line <= len(lines) else ""
    if _QUOTES.search(near[: offset + 20]):
        return FormatError(
            "typographic quotation marks are not XML", where=spot, expected="plain ones, \" or '"
        )
    return FormatError(f"not XML: {reason}", where=spot, expected="a well-formed document")


def _written(element: Element, indent: str) -> Iterator[str]:
    head = f"{indent}<{element.name}"
    for key, value in element.attributes:
        head += f' {key}="{_escaped(value, _QUOTED)}"'
    if element.children:
        yield f"{head}>\n"
        for child in element.children:
            yield from _written(child, indent + "  ")
        yield f"{indent}</{element.name}>\n"
    elif element.text:
        yield f"{head}>{_escaped(element.text, _ESCAPES)}</{element.name}>\n"
    else:
        yield f"{head}/>\n"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    """Return text as XML; characters that XML does not allow become U+FFFD."""
    if any(character in text for character in escapes):
        text = "".join([escapes.get(character, character) for character in text])
    return _FORBIDDEN.sub("\ufffd", text)
