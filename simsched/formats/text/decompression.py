"""Open files as streams of plain bytes: compression is recognised by content, and sizes are bounded.

gzip, bzip2, xz, zstd and a zip archive of one file are decompressed on the way.  zstd needs Python 3.14
or the ``zstandard`` package.  Every fault is a `FormatError` that names the file; too much data is a
`LimitError`, raised while the data is read, so that no more than the limit is ever held.
"""

from __future__ import annotations

import io
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError, clip

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

MAX_TEXT = 4 * 2**30
"""The most bytes of a file after decompression."""

MAX_PIPED = 2**30
"""The most bytes of a pipe, which is held in memory."""

MAX_LINE = 64 * 2**20
"""The most bytes of a line, where a file is read line by line."""

MAX_PACKING = 400
"""The most bytes per compressed byte once the data has more than `PACKED_FREELY` bytes."""

PACKED_FREELY = 256 * 2**20

CHUNK = 1 << 24
_BUFFER = 1 << 18
_MEMORY = 256 * 2**20
_HEAD = 4096
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}


@contextmanager
def opened(
    source: str | os.PathLike[str] | bytes,
    *,
    where: str | None = None,
    limit: int | None = None,
    by_line: bool = False,
) -> Iterator[BinaryIO]:
    """Open a file (``-`` is standard input) or its content as a stream of decompressed bytes.

    `limit` bounds the decompressed bytes (default: `MAX_TEXT`); `by_line` bounds each line as well.

    Raises
    ------
    FormatError
        for a missing file, a directory, an unreadable file, binary data, damaged or unknown compression.
    LimitError
        for more than `limit` bytes, or an implausible ratio to the compressed size (`MAX_PACKING`).
    """
    name = where or ("data" if isinstance(source, bytes) else name_of(source))
    try:
        with _raw(source, name) as raw, _plain(raw, name) as (plain, kind):
            guard = _Guarded(plain, raw if kind else None, kind, name, limit or MAX_TEXT, by_line=by_line)
            stream = io.BufferedReader(guard, _BUFFER)
            refuse_binary(stream.peek(_HEAD)[:_HEAD], name)
            yield stream
    except FileNotFoundError:
        raise FormatError("no such file", where=name) from None
    except IsADirectoryError:
        raise FormatError("this is a directory", where=name, expected="a file") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise FormatError(f"cannot be read: {reason}", where=clip(name, 200)) from None


def name_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a file for messages; ``-`` is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def whole(stream: Any) -> bytes:
    """Read a stream to its end by chunks."""
    chunks = []
    while chunk := stream.read(CHUNK):
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def read_pipe(stream: Any, where: str) -> bytes:
    """Read a pipe or device to its end, as it is (compressed data is kept compressed).

    Raises
    ------
    FormatError
        for binary data that is not compressed.
    LimitError
        beyond `MAX_PIPED` bytes.
    """
    head = stream.read(_HEAD)
    if _kind(head) is None:
        refuse_binary(head, where)
    guard = _Guarded(stream, None, None, where, MAX_PIPED, seen=len(head))
    return bytes(head + whole(io.BufferedReader(guard, _BUFFER)))


def refuse_binary(head: bytes, where: str) -> None:
    """Raise `FormatError` for data that does not begin like text, before the rest of it is read."""
    if b"\0" not in head or head[:2] in _BYTE_ORDER_MARKS:
        return
    if head[257:262] == b"ustar":
        raise FormatError("this is a tar archive", where=where, expected="text: unpack the archive first")
    raise FormatError("this is a binary file", where=where, expected="text")


class _Guarded(io.RawIOBase):
    """A stream that counts its bytes and turns the exceptions of decompressors into our errors."""

    def __init__(
        self,
        plain: Any,
        raw: Any,
        kind: str | None,
        where: str,
        limit: int,
        *,
        by_line: bool = False,
        seen: int = 0,
    ) -> None:
        self._plain, self._raw, self._kind = plain, raw, kind
        self._where, self._limit, self._by_line = where, limit, by_line
        self._read, self._line = seen, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes, within the limits."""
        try:
            count: int = self._plain.readinto(buffer)
        except EOFError:
            raise FormatError(f"the {self._kind} data is truncated", where=self._where) from None
        except Exception as error:
            known = isinstance(error, OSError | zlib.error) or type(error).__name__ in _DAMAGE
            if self._kind is None or not known:
                raise
            raise FormatError(f"the {self._kind} data is damaged: {error}", where=self._where) from None
        self._read += count
        if self._read > self._limit:
            raise LimitError(f"the text has more than {self._limit} bytes", where=self._where)
        if self._raw is not None and self._read > PACKED_FREELY:
            packed = self._raw.tell()
            if self._read > MAX_PACKING * packed:
                message = f"{packed} bytes of {self._kind} data unpack to more than {self._read} bytes"
                raise LimitError(message, where=self._where, expected=f"at most {MAX_PACKING} times the size")
        if self._by_line:
            end = bytes(buffer[:count]).rfind(b"\n")
            self._line = self._line + count if end < 0 else count - end - 1
            if self._line > MAX_LINE:
                raise LimitError(f"a line has more than {MAX_LINE} bytes", where=self._where)
        return count


_DAMAGE = ("LZMAError", "ZstdError", "BadZipFile", "NotImplementedError", "RuntimeError")
"""The exceptions that decompressors raise for data that they cannot read, beside OSError and zlib.error."""


@contextmanager
def _raw(source: str | os.PathLike[str] | bytes, where: str) -> Iterator[BinaryIO]:
    """Open the bytes as they are, so that they can be read twice: a pipe is held in memory."""
    if isinstance(source, bytes):
        yield io.BytesIO(source)
    elif str(source) == "-":
        yield io.BytesIO(read_pipe(sys.stdin.buffer, where))
    elif "\0" in str(source):
        raise FormatError("cannot be read: the file name has a NUL character", where=clip(where, 200))
    else:
        with FilePath(source).open("rb") as file:
            yield file if FilePath(source).is_file() else io.BytesIO(read_pipe(file, where))


@contextmanager
def _plain(raw: BinaryIO, where: str) -> Iterator[tuple[Any, str | None]]:
    """Return the decompressed stream and the name of the compression, None for none."""
    kind = _kind(raw.read(_HEAD))
    raw.seek(0)
    if kind is None:
        yield raw, None
        return
    if kind == "gzip":
        import gzip

        stream: Any = gzip.GzipFile(fileobj=raw)
    elif kind == "bzip2":
        import bz2

        stream = bz2.BZ2File(raw)
    else:
        stream = {"xz": _xz, "zstd": _zstd, "zip": _zip}[kind](raw, where)
    try:
        yield stream, kind
    finally:
        stream.close()


def _kind(head: bytes) -> str | None:
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _xz(raw: BinaryIO, where: str) -> Any:
    import lzma

    # The header of xz data names the size of a dictionary; only a decompressor alone can refuse a huge one.
    try:
        lzma.LZMADecompressor(memlimit=_MEMORY).decompress(raw.read(_HEAD), 1)
    except lzma.LZMAError as error:
        raise FormatError(f"the xz data is damaged: {error}", where=where) from None
    raw.seek(0)
    return lzma.LZMAFile(raw)


def _zstd(raw: BinaryIO, where: str) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        pass
    else:
        return zstd.ZstdFile(raw)
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        hint = "plain text, gzip, bzip2 or xz; zstd needs Python 3.14 or 'pip install zstandard'"
        raise FormatError("this is zstd data", where=where, expected=hint) from None
    return _Frames(raw, zstandard.ZstdDecompressor().decompressobj)


class _Frames(io.RawIOBase):
    """The frames of zstd data one after the other; the package's own reader ignores a truncated end."""

    def __init__(self, raw: BinaryIO, frame: Callable[[], Any]) -> None:
        self._raw, self._new = raw, frame
        self._frame: Any = None
        self._packed = self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes; EOFError where the last frame is truncated."""
        while not self._ready:
            if not self._packed:
                self._packed = self._raw.read(_HEAD)
                if not self._packed:
                    if self._frame is not None:
                        raise EOFError
                    return 0
            # those after the end of a frame belong to the next one
            self._frame = self._frame or self._new()
            self._ready = self._frame.decompress(self._packed)
            self._packed = b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def _zip(raw: BinaryIO, where: str) -> Any:
    """Open the only file of a zip archive; folders and the files that macOS adds do not count."""
    import zipfile

    try:
        archive = zipfile.ZipFile(raw)
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        names = [name for name in names if not name.startswith("__MACOSX/")]
        if len(names) == 1:
            return archive.open(names[0])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise FormatError(f"the zip data is damaged: {error}", where=where) from None
    listed = ", ".join(clip(name, 40) for name in names[:3]) + (", …" if len(names) > 3 else "")
    message = f"this zip archive has {len(names)} files{f' ({listed})' if names else ''}"
    raise FormatError(message, where=where, expected="an archive of one file")
