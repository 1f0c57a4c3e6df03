"""One mechanism opens every file: what is unpacked, what is refused, and how much is held."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import resource
import subprocess
import sys
import threading
import zipfile
from contextlib import suppress

import pytest

from simsched.errors import FormatError, LimitError
from simsched.formats.text import decompression
from simsched.formats.text.documents import read_bytes, read_text
from simsched.graph.cluster import load_cluster
from simsched.workload.load import load_workload
from simsched.workload.source import Source

RECIPE = b"groups: [{name: node, count: 2, cores: 4}]\n"
TRACE = b"; MaxProcs: 4\n1 0 5 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1\n"
DUMP = (
    b"JobID|Submit|Start|Elapsed|NCPUS|State\n1|2024-01-01T00:00:00|2024-01-01T00:00:01|00:01:00|4|FAILED\n"
)


def zipped(*members):
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder") if hasattr(archive, "mkdir") else archive.writestr("folder/", b"")
        for name, data in members:
            archive.writestr(name, data)
    return box.getvalue()


def zstd(data):
    if sys.version_info >= (3, 14):
        from compression import zstd as module

        return module.compress(data)
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


PACK = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda data: zipped(("inner/file", data), ("__MACOSX/inner/._file", b"\0")),
    "zstd": zstd,
}


@pytest.mark.parametrize("kind", PACK)
def test_every_reader_unpacks_every_compression(kind, tmp_path):
    for name, data in (("recipe", RECIPE), ("trace", TRACE), ("dump", DUMP)):
        (tmp_path / name).write_bytes(PACK[kind](data))
    assert read_bytes(tmp_path / "recipe") == RECIPE
    if kind != "zip":  # the others may hold several streams one after the other
        (tmp_path / "two").write_bytes(PACK[kind](RECIPE) + PACK[kind](TRACE))
        assert read_bytes(tmp_path / "two") == RECIPE + TRACE
    assert len(load_cluster(tmp_path / "recipe").index.hosts) == 2
    assert load_workload(tmp_path / "trace").kind == "swf"
    assert load_workload(tmp_path / "dump").kind == "sacct"


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_truncated_data_is_an_error_that_names_the_file(kind, keep, tmp_path):
    data = PACK[kind](json.dumps(list(range(5000))).encode())
    (tmp_path / "cut").write_bytes(data[: int(len(data) * keep)])
    for read in (read_text, load_workload, load_cluster):
        with pytest.raises(FormatError, match=rf"cut: the {kind} data is (truncated|damaged)"):
            read(tmp_path / "cut")


def test_a_zip_of_several_files_is_refused_with_their_names(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(("one", b"1"), ("two", b"2")))
    with pytest.raises(FormatError, match=r"has 2 files \(one, two\) \(expected an archive of one file\)"):
        load_workload(tmp_path / "a.zip")
    (tmp_path / "b.zip").write_bytes(zipped())
    with pytest.raises(FormatError, match="has 0 files"):
        load_cluster(tmp_path / "b.zip")


def test_what_begins_like_no_text_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(bytes(257) + b"ustar" + bytes(10_000)))
    with pytest.raises(FormatError, match="this is a tar archive"):
        load_workload(tmp_path / "a.tar.gz")
    for read in (read_text, load_workload, load_cluster):
        with pytest.raises(FormatError, match="this is a binary file"):
            read("/dev/zero")


@pytest.mark.parametrize("kind", sorted(PACK))
def test_no_reader_takes_more_than_the_limits(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(decompression, "PACKED_FREELY", 10**6)
    (tmp_path / "bomb").write_bytes(PACK[kind](b"1 0 0 5\n" * 10**6))
    for read in (read_bytes, load_workload, load_cluster, lambda path: list(Source.of(path).lines())):
        with pytest.raises(LimitError, match=rf"bytes of {kind} data unpack to more than"):
            read(tmp_path / "bomb")


def test_a_line_without_an_end_and_a_pipe_without_an_end_stop_early(tmp_path, monkeypatch):
    monkeypatch.setattr(decompression, "MAX_LINE", 10**6)
    (tmp_path / "long").write_bytes(b"JobID|Submit" + b"x" * (3 * 10**6))
    with pytest.raises(LimitError, match="a line has more than 1000000 bytes"):
        list(Source.of(tmp_path / "long").lines())
    monkeypatch.setattr(decompression, "MAX_PIPED", 10**6)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=_flood, args=(tmp_path / "pipe",))
    writer.start()
    with pytest.raises(LimitError, match="more than"):
        load_workload(tmp_path / "pipe")
    writer.join()


def _flood(path):
    with suppress(BrokenPipeError), path.open("wb") as stream:
        while True:
            stream.write(b"1 2 3\n" * 10_000)


def test_a_bomb_of_a_megabyte_takes_no_gigabytes(tmp_path):
    """A process that may have 1.5 GB refuses what would unpack to 4 GB, and all of `/dev/zero`."""
    (tmp_path / "bomb").write_bytes(gzip.compress(b"1 0 0 5\n" * 1_250_000) * 420)
    command = [sys.executable, "-m", "simsched", "workload", "show"]
    for path in (tmp_path / "bomb", "/dev/zero"):
        done = subprocess.run(
            [*command, path], capture_output=True, text=True, preexec_fn=_limited, check=False, timeout=120
        )
        assert done.returncode == 2, done.stderr
        assert "unpack to more than" in done.stderr or "binary file" in done.stderr


def _limited():
    resource.setrlimit(resource.RLIMIT_AS, (1500 * 10**6, 1500 * 10**6))
