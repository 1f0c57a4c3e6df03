"""The source of a workload's text: a file, plain or compressed, read whole or by the line.

Compression, limits and faults are those of `formats.unpack`.
"""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.text.decompression import opened, read_pipe, whole
from simsched.formats.text.documents import ENCODINGS, encoding_of, text_of_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import BinaryIO

HEAD_BYTES = 64 * 1024
_PACKED = (".gz", ".zst", ".xz", ".bz2", ".zip")
_PLAIN = (".swf", ".yaml", ".yml", ".jsonl", ".json", ".txt", ".csv", ".xml", ".log")


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
            return cls(Path("-"), "stdin", read_pipe(sys.stdin.buffer, "standard input"))
        place = Path(path)
        if place.exists() and not place.is_file() and not place.is_dir():  # a pipe can be read only once
            return cls(place, place.name, _piped(place))
        if not place.is_file():
            what = "is a directory" if place.is_dir() else "no such file"
            raise FormatError(what, where=str(path), expected="a workload file or the name of a bundled one")
        return cls(place, place.name)

    @property
    def stem(self) -> str:
        """The name without its endings: ``a/KTH.swf.gz`` → ``KTH``."""
        name = self.name
        for ending in (*_PACKED, *_PLAIN):
            name = name.removesuffix(ending)
        return name or self.name

    def first_bytes(self, number: int) -> bytes:
        """Return the first bytes of the file as it is, compressed or not."""
        if self.content is not None:
            return self.content[:number]
        with self.path.open("rb") as stream:
            return stream.read(number)

    def head(self) -> str:
        """Return the first 64 KB as text, from which the format is recognised."""
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
            data = whole(stream)
        return text_of_bytes(data, self.name, lenient=True)

    def lines(self) -> Generator[str, None, None]:
        """Yield the lines without their ends, in constant memory; close it to stop early."""
        with (
            self._open(by_line=True) as raw,
            io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace") as text,
        ):
            for line in text:
                yield line.rstrip("\r\n")

    @contextmanager
    def _open(self, *, by_line: bool = False) -> Iterator[BinaryIO]:
        given = self.path if self.content is None else self.content
        with opened(given, where=self.name, by_line=by_line) as stream:
            yield stream


def is_parquet(source: Source) -> bool:
    """Whether the content is Parquet, by its first bytes."""
    return source.first_bytes(4) == b"PAR1"


def _piped(pipe: Path) -> bytes:
    """Read a pipe or device to its end, within the limit."""
    try:
        with pipe.open("rb") as stream:
            return read_pipe(stream, str(pipe))
    except OSError as error:
        raise FormatError(error.strerror or str(error), where=str(pipe)) from error
