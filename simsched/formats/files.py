"""Files as bytes and as text: standard input, gzip, encodings, limits."""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from simsched.arguments import check
from simsched.errors import FormatError, LimitError
from simsched.formats.lexical import clip
from simsched.formats.xml_encoding import decode_xml

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

MAX_TEXT = 4 * 2**30
"""The most bytes a file may have, once decompressed."""

MAX_PACKING = 400
"""How many bytes a byte of gzip may stand for once the text has more than `PACKED_FREELY` bytes."""

PACKED_FREELY = 256 * 2**20

_CHUNK = 1 << 24
_COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip"}


def name_of(path: str | os.PathLike[str]) -> str:
    """Return how messages name a file; ``-`` is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def read_bytes(path: str | os.PathLike[str], *, limit: int = MAX_TEXT) -> bytes:
    """Read a file whole; ``-`` is standard input, gzip is recognised by its first bytes.

    Raises
    ------
    FormatError
        No such file, a directory, not readable, damaged or truncated gzip, another compression.
    LimitError
        More than `limit` bytes, counted after decompression.
    """
    check("path", path, str | PathLike, "the path of a file")
    name = str(path)
    try:
        if name == "-":
            return _unpacked(sys.stdin.buffer, "standard input", limit)
        with FilePath(path).open("rb") as file:
            return _unpacked(file, name, limit)
    except FileNotFoundError:
        raise FormatError("no such file", where=name) from None
    except IsADirectoryError:
        raise FormatError("this is a directory", where=name, expected="a file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"cannot be read: {reason}", where=clip(name, 200)) from None


def read_text(path: str | os.PathLike[str], *, limit: int = MAX_TEXT, lenient: bool = False) -> str:
    """Read a text file whole, as `read_bytes` does, and decode it as UTF-8.

    `lenient` takes a file that is not UTF-8 as Latin-1 (old traces name people in their
    headers).  A byte order mark is dropped.  XML is decoded as it declares (see `decode_xml`).
    """
    data = read_bytes(path, limit=limit)
    where = name_of(path)
    xml = decode_xml(data, where)
    if xml is not None:
        return xml
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("the text is UTF-16", where=where, expected="UTF-8")
    if b"\0" in data:
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


def _unpacked(file: BinaryIO, where: str, limit: int) -> bytes:
    """The contents of an open file, decompressed if they are gzip."""
    import io
    import zlib

    data = file.read(_CHUNK)
    if data[:2] != b"\x1f\x8b":
        for magic, name in _COMPRESSED.items():
            if data.startswith(magic):
                raise FormatError(
                    f"this is {name} data", where=where, expected="plain text or gzip: unpack it first"
                )
        _refuse_binary(data, where)
        return _capped(file, where, limit, data)
    import gzip

    try:
        packed = io.BytesIO(_capped(file, where, limit, data))
        size = packed.getbuffer().nbytes
        with gzip.GzipFile(fileobj=packed) as stream:
            head = stream.read(_CHUNK)
            _refuse_binary(head, where)
            return _capped(stream, where, min(limit, max(PACKED_FREELY, MAX_PACKING * size)), head)
    except EOFError:
        raise FormatError("the gzip data is truncated", where=where) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"the gzip data is damaged: {error}", where=where) from None


def _refuse_binary(head: bytes, where: str) -> None:
    """Refuse by its beginning what is no text, before the rest of it is read."""
    if b"\0" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("this is a binary file", where=where, expected="text")


def _capped(stream: Any, where: str, limit: int, head: bytes = b"") -> bytes:
    """Read a stream to its end, `head` before it; LimitError beyond `limit` bytes."""
    chunks = [head] if head else []
    total = len(head)
    while total <= limit and (chunk := stream.read(_CHUNK)):
        total += len(chunk)
        chunks.append(chunk)
    if total > limit:
        raise LimitError(f"the text has more than {limit} bytes", where=where)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
