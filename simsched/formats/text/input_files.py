"""Files as bytes and as text: standard input, compression, encodings, limits."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from simsched.arguments import check
from simsched.errors import FormatError
from simsched.formats.text.decompression import MAX_TEXT, opened, whole
from simsched.formats.text.xml_encoding import decode_xml

if TYPE_CHECKING:
    import os

__all__ = ["MAX_TEXT", "name_of", "read_bytes", "read_text", "text_of_bytes"]


def name_of(path: str | os.PathLike[str]) -> str:
    """Return how messages name a file; ``-`` is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def read_bytes(path: str | os.PathLike[str], *, limit: int | None = None) -> bytes:
    """Read a file whole; ``-`` is standard input, compression is recognised by content (see `opened`).

    Raises
    ------
    FormatError
        No such file, a directory, not readable, binary data, damaged or unknown compression.
    LimitError
        More than `limit` bytes (default: `MAX_TEXT`), counted after decompression.
    """
    check("path", path, str | PathLike, "the path of a file")
    with opened(path, limit=limit) as stream:
        return whole(stream)


def read_text(path: str | os.PathLike[str], *, limit: int | None = None, lenient: bool = False) -> str:
    """Read a text file whole, as `read_bytes` does, and decode it as `text_of_bytes` does."""
    return text_of_bytes(read_bytes(path, limit=limit), name_of(path), lenient=lenient)


def text_of_bytes(data: bytes, where: str, *, lenient: bool = False) -> str:
    """Decode the content of a file as UTF-8.

    `lenient` takes a file that is not UTF-8 as Latin-1 (old traces name people in their
    headers).  A byte order mark is dropped.  XML is decoded as it declares (see `decode_xml`).

    Raises
    ------
    FormatError
        for other encodings and binary data, with the line of the first wrong byte.
    """
    xml = decode_xml(data, where)
    if xml is not None:
        return xml
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("the text is UTF-16", where=where, expected="UTF-8")
    if b"\0" in data and not lenient:
        raise FormatError("this is a binary file", where=where, expected="text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if lenient:
            return data.decode("latin-1")
        line = data.count(b"\n", 0, error.start) + 1
        bad = data[error.start]
        raise FormatError(
            f"byte 0x{bad:02x} is not UTF-8", where=f"{where}:{line}", expected="text"
        ) from None
