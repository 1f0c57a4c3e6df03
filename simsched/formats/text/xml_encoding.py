"""The bytes of an XML file → text, by the encoding that the file declares (XML 1.0, 4.3.3 and appendix F)."""

from __future__ import annotations

import codecs
import re

from simsched.errors import FormatError
from simsched.formats.text.excerpts import clip

ENCODINGS = {"utf-8": "utf-8-sig", "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-16": "utf-16"}
"""Encodings that are read, those that expat knows: XML's name in lower case → Python's."""

_BYTE_ORDER = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml\s[^<>]*?\sencoding\s*=\s*["']([^"'<>]*)["']""")
_HEAD = 1024


def decode_xml(data: bytes, where: str | None = None) -> str | None:
    r"""Return the text of an XML file; None for what is no XML, or XML that declares no encoding.

    UTF-16 is told by its byte order mark, which XML demands of it; any other by the declaration.

    Raises
    ------
    FormatError
        for an encoding that is not in `ENCODINGS`, and for bytes that are none of its text.

    >>> decode_xml('<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1"))[-5:]
    'é</a>'
    >>> decode_xml(b"<a/>"), decode_xml(b"resources: []")
    (None, None)
    """
    name = encoding_of(data)
    if name is None:
        return None
    if name not in ENCODINGS or (name == "utf-16" and data[:2] not in _BYTE_ORDER):
        expected = "UTF-8, US-ASCII, ISO-8859-1, or UTF-16 with a byte order mark"
        raise FormatError(f"the XML says that it is {clip(name.upper(), 40)}", where=where, expected=expected)
    try:
        return data.decode(ENCODINGS[name])
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        spot = f"{where}:{line}" if where and name != "utf-16" else where
        message = f"byte 0x{data[error.start]:02x} is not {name.upper()}, which the XML says that it is"
        raise FormatError(message, where=spot, expected="text") from None


def encoding_of(data: bytes) -> str | None:
    """Return the encoding, in lower case, that the beginning of an XML file shows; None if it shows none."""
    if data[:2] in _BYTE_ORDER:
        return "utf-16" if data[:_HEAD].decode("utf-16", "replace").lstrip()[:1] == "<" else None
    found = _DECLARED.match(data[:_HEAD])
    return found[1].decode("latin-1").lower() if found else None
