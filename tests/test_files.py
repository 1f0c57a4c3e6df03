"""Single files: as a whole or not at all, through links, and what killed processes leave."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import simsched as ss
from simsched.errors import ClusterError, ConfigError, RunError
from simsched.files import hidden_name, leftovers, replacing, this_host, write_file
from simsched.workload.save import save_workload

SIZE_LIMIT = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
from simsched.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def limited(limit, *words, cwd):
    """Run a command that may write files of so many bytes at most: to it the disk is full then."""
    # -B: a compiled module that is cut short would stay beside its source.
    command = [sys.executable, "-B", "-c", SIZE_LIMIT.format(limit=limit), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_an_existing_file_keeps_its_content_until_the_new_one_is_whole(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")
    with replacing(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_text() == "old"
        assert len(names(tmp_path)) == 2
    assert file.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError(), ValueError("odd")])
def test_what_fails_leaves_nothing_and_is_raised_as_it_is(tmp_path, error):
    def fail():
        with replacing(tmp_path / "a.txt") as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", [RunError, ClusterError, ConfigError])
def test_a_full_disk_is_named_as_the_caller_likes_and_leaves_the_old_file(tmp_path, monkeypatch, kind):
    file = tmp_path / "a.json"
    file.write_text("old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(kind, match=r"a\.json: cannot be written: No space left on device"):
        write_file(file, b"{}", kind)
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a.json"]


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("cluster", "convert", "flat240", "-o", "c.json", "--to", "jgf"), "c.json"),
        (("cluster", "show", "flat240", "--svg", "-o", "c.svg"), "c.svg"),
        (("cluster", "make", "--nodes", "5", "-o", "c.json"), "c.json"),
        (("workload", "convert", "first-steps", "-o", "w.jsonl"), "w.jsonl"),
        (("workload", "convert", "month", "-o", "w.jsonl.gz"), "w.jsonl.gz"),
        (("workload", "show", "first-steps", "--plot", "w.png"), "w.png"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_every_writer_of_files_names_the_file_when_the_disk_is_full(tmp_path, words, file, there):
    if there:
        (tmp_path / file).write_text("old")
    done = limited(100, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"simsched: error: {file}: cannot be written: File too large\n"
    assert names(tmp_path) == ([file] if there else [])
    assert not there or (tmp_path / file).read_text() == "old"


def test_python_writers_are_whole_too(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    cluster, workload = ss.load_cluster("tiny"), ss.load_workload("first-steps")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ClusterError, match="No space left"):
        cluster.save(tmp_path / "c.json")
    with pytest.raises(ConfigError, match="No space left"):
        save_workload(workload, tmp_path / "w.yaml")
    assert names(tmp_path) == []


def test_a_full_standard_output_is_named():
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "simsched", "cluster", "show", "tiny"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "simsched: error: standard output: cannot be written: No space left on device\n"


# --- what the name is already ---------------------------------------------------------------


def test_a_link_is_kept_and_what_it_leads_to_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "there" / "real.txt")
    write_file(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "there" / "real.txt").read_text() == "new"
    assert names(tmp_path / "there") == ["real.txt"]


def test_devices_and_pipes_are_written_to_and_not_replaced(tmp_path):
    write_file("/dev/null", "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(RunError, match="/dev/full: cannot be written: No space left on device"):
        write_file("/dev/full", "something")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    words = [sys.executable, "-m", "simsched", "cluster", "show", "tiny", "-o", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tiny: ")


def test_the_mode_of_a_file_stays(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")
    file.chmod(0o600)
    write_file(file, "new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    write_file(tmp_path / "b.txt", "new")
    (tmp_path / "c.txt").write_text("")
    assert (tmp_path / "b.txt").stat().st_mode == (tmp_path / "c.txt").stat().st_mode


def test_a_write_protected_file_stays(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anything
    with pytest.raises(RunError, match=r"a\.txt: cannot be written: Permission denied"):
        write_file(file, "new")
    assert file.read_text() == "old"


@pytest.mark.parametrize("name", ["", "x" * 300, "a\0b", "no/such/folder/x"])
def test_places_that_cannot_be(tmp_path, name):
    with pytest.raises(RunError, match="cannot be written"):
        write_file(f"{tmp_path}/{name}", "text")
    assert names(tmp_path) == []


def test_a_long_name_has_room_for_its_hidden_one(tmp_path):
    for name in ("x" * 255, "ü" * 127):
        write_file(tmp_path / name, name)
        assert (tmp_path / name).read_text() == name
    assert len(names(tmp_path)) == 2


# --- what killed processes leave ------------------------------------------------------------


KILLED = """\
import os
from simsched.files import replacing
with replacing("a.txt") as stream:
    stream.write(b"half")
    stream.flush()
    os._exit(9)
"""


def test_what_a_killed_process_left_goes_with_the_next_writer(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert len(names(tmp_path)) == 2
    assert (tmp_path / "a.txt").read_text() == "old"
    write_file(tmp_path / "b.txt", "another name")
    assert len(names(tmp_path)) == 3
    write_file(tmp_path / "a.txt", "new")
    assert names(tmp_path) == ["a.txt", "b.txt"]


def test_only_what_dead_processes_of_this_host_left_is_taken_for_a_leftover(tmp_path, gone_pid):
    host, living = this_host(), os.getppid()
    kept = [
        f".a.txt.other-host.{gone_pid}-0.writing",
        f".a.txt.{host}.{living}-0.writing",
        f".a.txt.{gone_pid}.writing",
        f".a.txt.{host}.{gone_pid}-0.writing.bak",
        f"a.txt.{host}.{gone_pid}-0.writing",
        f".b.a.txt.{host}.{gone_pid}-0.writing",
    ]
    for name in [*kept, f".a.txt.{host}.{gone_pid}-0.writing"]:
        (tmp_path / name).write_text("")
    assert [path.name for path in leftovers(tmp_path, "a.txt")] == [f".a.txt.{host}.{gone_pid}-0.writing"]
    write_file(tmp_path / "a.txt", "new")
    assert names(tmp_path) == sorted([*kept, "a.txt"])


def test_what_is_locked_is_being_written_whoever_says_that_its_process_is_gone(tmp_path, gone_pid):
    """A container may share the name of its host and not its processes."""
    fcntl = pytest.importorskip("fcntl")
    place = tmp_path / f".a.txt.{this_host()}.{gone_pid}-0.writing"
    with place.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert leftovers(tmp_path) == []
    assert leftovers(tmp_path) == [place]


def test_hidden_names_say_who_writes(tmp_path):
    assert hidden_name(tmp_path / "out", 3).name == f".out.{this_host()}.{os.getpid()}-3.writing"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_process_that_ended_and_was_not_waited_for_is_gone(tmp_path):
    """Where process 1 collects orphans slowly, a killed worker remains as a zombie for a while."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        record = Path(f"/proc/{process.pid}/stat")
        while b") Z " not in record.read_bytes():
            time.sleep(0.01)
        left = tmp_path / f".out.{this_host()}.{process.pid}-0.writing"
        left.touch()
        assert leftovers(tmp_path) == [left]
    mine = tmp_path / f".out.{this_host()}.{os.getpid()}-0.writing"
    mine.touch()
    assert leftovers(tmp_path) == [left]
