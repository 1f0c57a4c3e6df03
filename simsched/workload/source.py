"""Where a workload's text comes from: a file, plain or compressed, read whole or by the line.

Compression is told by the magic number, never by the name.  Every fault (no such file, a
truncated gzip, bytes that are not text) is a `FormatError` that names the file.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from simsched.errors import FormatError, LimitError
from simsched.formats.xml_encoding import ENCODINGS, decode_xml, encoding_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

#: Bytes of text that one workload may hold once decompressed.
MAX_BYTES = 4 * 2**30
HEAD_BYTES = 64 * 1024

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Source:
    """One input file (or ``-`` for standard input, which is read at once and kept)."""

    path: Path
    name: str
    content: bytes | None = None

    @classmethod
    def of(cls, path: str | Path) -> Source:
        """Return the source of a path; FormatError when there is no such file."""
        if str(path) == "-":
            return cls(Path("-"), "stdin", sys.stdin.buffer.read())
        place = Path(path)
        if place.exists() and not place.is_file() and not place.is_dir():  # a pipe can be read only once
            return cls(place, place.name, _whole(place))
        if not place.is_file():
            what = "is a directory" if place.is_dir() else "no such file"
            raise FormatError(what, where=str(path), expected="a workload file or the name of a bundled one")
        return cls(place, place.name)

    @property
    def stem(self) -> str:
        """The name without its endings: ``a/KTH.swf.gz`` → ``KTH``."""
        name = self.name
        for ending in (
            ".gz",
            ".zst",
            ".swf",
            ".yaml",
            ".yml",
            ".jsonl",
            ".json",
            ".txt",
            ".csv",
            ".xml",
            ".log",
        ):
            name = name.removesuffix(ending)
        return name or self.name

    def head(self) -> str:
        """Return the first 64 KB as text, to tell what it is."""
        with self._open() as stream:
            head = stream.read(HEAD_BYTES)
        encoding = ENCODINGS.get(encoding_of(head) or "", "utf-8-sig")
        return head.decode(encoding, errors="replace")

    def text(self) -> str:
        """Return the whole text.

        XML is decoded as it declares; other bytes that are not UTF-8 are read as Latin-1 (old
        traces name people in their headers).
        """
        with self._open() as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise LimitError(f"more than {MAX_BYTES:,} bytes of text", where=self.name)
        xml = decode_xml(data, self.name)
        if xml is not None:
            return xml
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return data.decode("latin-1")

    def lines(self) -> Generator[str, None, None]:
        """Yield the lines without their ends, in constant memory; close it to stop early."""
        read = 0
        with self._open() as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace") as text:
            for line in text:
                read += len(line)
                if read > MAX_BYTES:
                    raise LimitError(f"more than {MAX_BYTES:,} bytes of text", where=self.name)
                yield line.rstrip("\r\n")

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """Open the decompressed bytes; its faults become FormatErrors that name the file."""
        try:
            with self._raw() as raw, _decompressed(raw, self.name) as stream:
                yield stream
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FormatError(f"damaged gzip data: {error}", where=self.name) from error
        except OSError as error:
            raise FormatError(error.strerror or str(error), where=self.name) from error

    def _raw(self) -> BinaryIO:
        return io.BytesIO(self.content) if self.content is not None else self.path.open("rb")


def _whole(pipe: Path) -> bytes:
    """Read a pipe or device to its end, within the limit."""
    try:
        with pipe.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise FormatError(error.strerror or str(error), where=str(pipe)) from error
    if len(data) > MAX_BYTES:
        raise LimitError(f"more than {MAX_BYTES:,} bytes of text", where=str(pipe))
    return data


def _decompressed(raw: BinaryIO, name: str) -> BinaryIO:
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]  # it is one in all but name
    if magic == _ZSTD:
        return _zstd(raw, name)
    return raw


def _zstd(raw: BinaryIO, name: str) -> BinaryIO:
    """Open zstd data with the standard library (3.14) or the ``zstandard`` package."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            import zstandard  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            hint = "gzip, or plain text (zstd needs Python 3.14 or the zstandard package)"
            raise FormatError("the file is zstd-compressed", where=name, expected=hint) from None
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw))
    stream: BinaryIO = zstd.ZstdFile(raw)
    return stream
