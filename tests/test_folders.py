"""Folders of results: exchanged as a whole, recovered after kills, never at the cost of a user's files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from simsched import folders
from simsched.errors import RunError
from simsched.files import this_host
from simsched.folders import Layout, StagedFolder, recover, refuse_foreign, replace_folder
from tests import REPOSITORY


def strangers(folder):
    """A kind of folder for these tests: a record that says ``ours``, and a file ``data``."""
    record = folder / "record"
    if not record.is_file() or record.read_text() not in {"ours", "unfinished"}:
        return None
    return (path.name for path in sorted(folder.iterdir()) if path.name not in {"record", "data"})


THING = Layout("thing", strangers, lambda folder: (folder / "record").read_text() == "ours")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def made(folder, data, record="ours"):
    folder.mkdir()
    (folder / "data").write_text(data)
    (folder / "record").write_text(record)
    return folder


def write(path, data, **options):
    with StagedFolder(path, THING, **options) as staged:
        (staged.work / "data").write_text(data)
        (staged.work / "record").write_text("ours")
        staged.finish()
        return staged


@pytest.fixture(params=["at once", "by two renames"])
def way(request, monkeypatch):
    """How names are exchanged: in one step, or as where the system cannot."""
    if request.param == "by two renames":
        monkeypatch.setattr(folders, "_exchanged", lambda one, other: False)
    return request.param


def test_a_folder_takes_its_name_when_it_is_whole(tmp_path, way):
    out = tmp_path / "deep" / "out"
    assert not write(out, "first").replaced
    with StagedFolder(out, THING) as staged:
        (staged.work / "data").write_text("second")
        assert (out / "data").read_text() == "first"
        (staged.work / "record").write_text("ours")
        assert staged.finish() == out
    assert staged.replaced
    assert (out / "data").read_text() == "second"
    assert names(tmp_path / "deep") == ["out"]


def test_an_exchange_is_one_step_on_linux(tmp_path):
    """Whoever looks, at any time, finds one of the two whole."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs renameat2")
    out, seen, done = made(tmp_path / "out", "0"), set(), threading.Event()

    def look():
        while not done.is_set():
            seen.add((out / "record").exists())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for number in range(200):
            write(out, str(number), durable=False)
    finally:
        done.set()
        watcher.join()
    assert seen == {True}


def test_what_fails_leaves_the_earlier_results(tmp_path):
    out = made(tmp_path / "out", "first")

    def fail():
        with StagedFolder(out, THING) as staged:
            (staged.work / "data").write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (out / "data").read_text() == "first"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("number", [28, 122, 27, 5])
def test_a_full_disk_names_the_file_and_leaves_the_earlier_results(tmp_path, number):
    out = made(tmp_path / "out", "first")

    def fail(*file):
        with StagedFolder(out, THING) as staged:
            raise OSError(number, os.strerror(number), *(str(staged.work / name) for name in file))

    with pytest.raises(RunError) as found:
        fail("data")
    assert str(found.value) == f"{out}/data: cannot be written: {os.strerror(number)}"
    with pytest.raises(RunError) as found:
        fail()
    assert str(found.value) == f"{out}: cannot be written: {os.strerror(number)}"
    assert (out / "data").read_text() == "first"
    assert names(tmp_path) == ["out"]


def test_everything_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """Each file is synced, then the folder, then the exchange, then the folder that has the name."""
    synced, out = [], made(tmp_path / "out", "first")
    monkeypatch.setattr(folders, "sync", lambda path: synced.append((path, (out / "data").read_text())))
    write(out, "second")
    *files, folder, parent = synced
    work = folder[0]
    assert work.name.startswith(f".out.{this_host()}.{os.getpid()}-")
    assert sorted(files) == [(work / "data", "first"), (work / "record", "first")]
    assert (folder, parent) == ((work, "first"), (tmp_path, "second"))


# --- what is not ours -----------------------------------------------------------------------


def test_a_foreign_file_is_named_and_stays(tmp_path):
    out = made(tmp_path / "out", "first")
    (out / "notes.txt").write_text("mine")
    with pytest.raises(RunError) as found:
        write(out, "second")
    assert str(found.value) == (
        f"{out}: 'notes.txt' is not part of the thing in this directory and would be lost "
        "(expected another directory, or that file elsewhere)"
    )
    assert (names(out), names(tmp_path)) == (["data", "notes.txt", "record"], ["out"])


@pytest.mark.parametrize("record", ["", "somebody's", None])
def test_another_kind_of_folder_stays(tmp_path, record):
    out = made(tmp_path / "out", "first", record or "")
    if record is None:
        (out / "record").unlink()
    with pytest.raises(RunError, match="this directory holds something that is not a thing"):
        write(out, "second")
    assert (out / "data").read_text() == "first"


def test_a_file_that_comes_while_we_write_stays_and_the_results_are_kept(tmp_path, way):
    out = made(tmp_path / "out", "first")
    made(tmp_path / "out-2", "taken")

    def interfered():
        with StagedFolder(out, THING) as staged:
            (staged.work / "data").write_text("second")
            (staged.work / "record").write_text("ours")
            (out / "notes.txt").write_text("mine")
            staged.finish()

    with pytest.raises(RunError, match=r"'notes\.txt' .*; the finished thing is in .*out-3"):
        interfered()
    assert (out / "notes.txt").read_text() == "mine"
    assert (tmp_path / "out-3" / "data").read_text() == "second"
    assert names(tmp_path) == ["out", "out-2", "out-3"]


def test_a_file_that_comes_at_the_very_exchange_stays(tmp_path, monkeypatch, way):
    """Between the last look and the exchange a user saves notes: the folders are exchanged back."""
    out, swap = made(tmp_path / "out", "first"), folders.exchange

    def late(one, other):
        if not (other / "notes.txt").exists() and not (one / "notes.txt").exists():
            (other / "notes.txt").write_text("mine")
        swap(one, other)

    monkeypatch.setattr(folders, "exchange", late)
    with pytest.raises(RunError, match=r"'notes\.txt' .*the finished thing is in .*out-2"):
        write(out, "second")
    assert names(out) == ["data", "notes.txt", "record"]
    assert (tmp_path / "out-2" / "data").read_text() == "second"
    assert names(tmp_path) == ["out", "out-2"]


def test_a_write_protected_folder_stays(tmp_path, monkeypatch):
    out = made(tmp_path / "out", "first")
    monkeypatch.setattr(os, "access", lambda path, mode, **_: False)  # root may write anything
    with pytest.raises(RunError, match="out: cannot be written: Permission denied"):
        write(out, "second")
    assert (out / "data").read_text() == "first"


def test_an_empty_folder_is_taken_and_a_file_is_not(tmp_path):
    (tmp_path / "empty").mkdir()
    assert not write(tmp_path / "empty", "first").replaced
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="file: this is a file"):
        write(tmp_path / "file", "first")
    assert (tmp_path / "file").read_text() == "mine"


# --- links ----------------------------------------------------------------------------------


def test_a_link_is_kept_and_the_folder_behind_it_replaced(tmp_path):
    (tmp_path / "disk").mkdir()
    made(tmp_path / "disk" / "real", "first")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "disk" / "real")
    assert write(link, "second").replaced
    assert link.is_symlink()
    assert (tmp_path / "disk" / "real" / "data").read_text() == "second"
    assert (names(tmp_path), names(tmp_path / "disk")) == (["disk", "link"], ["real"])
    assert refuse_foreign(link, THING)


def test_a_link_to_what_is_not_ours_is_refused(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    with pytest.raises(RunError, match="link: this directory holds something that is not a thing"):
        write(tmp_path / "link", "second")


# --- two at once, and kills -----------------------------------------------------------------


def test_two_writers_of_one_name_both_finish(tmp_path, way):
    """The later one replaces the earlier one; neither is lost before that, and nothing is left."""
    out = tmp_path / "out"
    with StagedFolder(out, THING) as one, StagedFolder(out, THING) as other:
        assert one.work != other.work
        for staged, text in ((one, "one"), (other, "other")):
            (staged.work / "data").write_text(text)
            (staged.work / "record").write_text("ours")
        one.finish()
        assert (out / "data").read_text() == "one"
        other.finish()
    assert (one.replaced, other.replaced) == (False, True)
    assert (out / "data").read_text() == "other"
    assert names(tmp_path) == ["out"]


@pytest.mark.integration
def test_many_writers_at_the_same_time(tmp_path, way):
    out, errors = tmp_path / "out", []

    def again(text):
        try:
            for _ in range(20):
                write(out, text, durable=False)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=again, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (out / "data").read_text() in {"0", "1", "2", "3"}
    assert names(tmp_path) == ["out"]


KILLED = """\
import os, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from tests import test_folders as here
from simsched import folders

def die(*_, **__):
    os._exit(9)

def exchanged_by_renames(one, other):
    renames = iter([Path.rename, die])
    real = Path.rename
    def rename(self, target):
        if not self.name.startswith(".") or {step!r} != "between":
            return real(self, target)
        die()
    Path.rename = rename
    return False

if {step!r} == "writing":
    folders.sync_folder = die
elif {step!r} == "before":
    folders.exchange = die
elif {step!r} == "between":
    folders._exchanged = exchanged_by_renames
else:
    folders.shutil.rmtree = die
here.write("out", "second")
"""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("step", "name", "after"),
    [("writing", "first", "first"), ("before", "first", "first"), ("between", None, "second"),
     ("after", "second", "second")],
)  # fmt: skip
def test_a_kill_at_any_step_leaves_one_of_the_two_whole(tmp_path, step, name, after):
    """`name`: whose data have the name then; `after`: whose have it once somebody has written there again."""
    made(tmp_path / "out", "first")
    script = KILLED.format(here=str(REPOSITORY), step=step)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 9, done.stderr.decode()
    assert len(names(tmp_path)) == 2
    out = tmp_path / "out"
    assert (out / "data").read_text() == name if name else not out.exists()
    with StagedFolder(out, THING) as staged:
        assert (out / "data").read_text() == after
        assert staged.recovered == (name is None)
    assert names(tmp_path) == ["out"]


def test_what_other_hosts_and_living_processes_write_is_left_alone(tmp_path, gone_pid):
    host = this_host()
    kept = [f".out.elsewhere.{gone_pid}-0.writing", f".out.{host}.{os.getppid()}-0.writing",
            f".other.{host}.{gone_pid}-0.writing"]  # fmt: skip
    for name in kept:
        made(tmp_path / name, "theirs")
    made(tmp_path / f".out.{host}.{gone_pid}-0.writing", "half", "unfinished")
    write(tmp_path / "out", "first")
    assert names(tmp_path) == sorted([*kept, "out"])


def test_a_leftover_that_holds_a_users_file_stays(tmp_path, gone_pid):
    left = made(tmp_path / f".out.{this_host()}.{gone_pid}-0.writing", "half", "unfinished")
    (left / "notes.txt").write_text("mine")
    write(tmp_path / "out", "first")
    assert (left / "notes.txt").read_text() == "mine"


def test_the_newer_of_two_leftovers_is_recovered(tmp_path, gone_pid):
    begin = f".out.{this_host()}.{gone_pid}-0"
    made(tmp_path / f"{begin}.old", "first")
    made(tmp_path / f"{begin}.writing", "second")
    assert recover(tmp_path / "out", THING)
    assert (tmp_path / "out" / "data").read_text() == "second"
    assert names(tmp_path) == ["out"]


def test_replacing_a_folder_by_another(tmp_path, way):
    made(tmp_path / "out", "first")
    replace_folder(made(tmp_path / "new", "second"), tmp_path / "out", THING)
    assert (tmp_path / "out" / "data").read_text() == "second"
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"notes\.txt"):
        replace_folder(made(tmp_path / "new", "third"), tmp_path / "out", THING)
    assert names(tmp_path) == ["new", "out"]


def test_the_mode_of_a_folder_stays(tmp_path):
    out = made(tmp_path / "out", "first")
    out.chmod(0o2750)
    write(out, "second")
    assert out.stat().st_mode & 0o7777 == 0o2750
