"""Folders of results that exist as a whole or not at all, and the folders that they may replace.

A folder is written under a hidden name (see `files`), synced to disk, and then exchanged with
the folder of its name.  Linux does that in one step.  Elsewhere two renames do it, and a process that
is killed between them leaves both folders whole under hidden names: the next process that writes
there first restores the newer one.

Only folders with our own content are replaced: a `Layout` defines the content of a folder of its kind.
Any other content is refused by name, before the work begins and once more at the exchange.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from simsched.errors import RunError
from simsched.files import (
    OLD,
    hidden_name,
    keep_rights,
    leftovers,
    lock,
    reason_of,
    sync,
    through_links,
    undone,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

PARTIAL = ".partial"
"""The ending of the name of interrupted results."""

_ATTEMPTS = 100
_NUMBERS = count()
"""Numbers of the hidden names of this process."""
_EXCHANGE = 2
_AT_FDCWD = -100


@dataclass(frozen=True, slots=True)
class Layout:
    """A kind of folder that we write, such as a run.

    Attributes
    ----------
    noun : its name in messages.
    strangers : yields the relative names in a folder that are not part of such results; None
        if the folder is not of this kind at all.
    is_whole : whether such a folder was finished.
    """

    noun: str
    strangers: Callable[[Path], Iterator[str] | None]
    is_whole: Callable[[Path], bool]


def refuse_foreign(folder: str | Path, layout: Layout, where: str | Path | None = None) -> bool:
    """Return whether there are earlier results of ours; false if the name is free or the folder is empty.

    Raises
    ------
    RunError
        If there is anything else, which then has to stay.
    """
    place, folder = str(folder if where is None else where), through_links(folder)
    if not os.path.lexists(folder):
        return False
    if not folder.is_dir():
        new = f"a new directory, or an earlier {layout.noun}'s"
        raise RunError("this is a file", where=place, expected=new)
    if not any(folder.iterdir()):
        return False
    strangers = layout.strangers(folder)
    if strangers is None:
        what = f"this directory holds something that is not {_a(layout.noun)}"
        raise RunError(what, where=place, expected=f"a new directory, or an earlier {layout.noun}'s")
    for name in strangers:
        what = f"{name!r} is not part of the {layout.noun} in this directory and would be lost"
        raise RunError(what, where=place, expected="another directory, or that file elsewhere")
    return True


def _refuse_settled(folder: Path, layout: Layout, where: str | Path) -> bool:
    """Do what `refuse_foreign` does; a refusal counts only if the folder was the same all the while.

    Where an exchange takes two renames, another process may swap the folder while its files are read.
    """
    for _ in range(_ATTEMPTS):
        before = _identity(folder)
        try:
            return refuse_foreign(folder, layout, where)
        except (RunError, FileNotFoundError):
            if before is not None and _identity(folder) == before:
                raise
    raise RunError("other processes keep replacing this", where=str(where))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


class StagedFolder:
    """An unfinished folder; as a context it removes the folder unless it was finished.

    Attributes
    ----------
    path : the final name, as the user gave it.
    work : the hidden folder to write into, within the context.
    replaced : whether `finish` replaced earlier results.
    recovered : whether results that a killed process had left under a hidden name were restored.

    Raises
    ------
    RunError
        On entry, if something that is not ours has the name already, or nothing can be written there.
    """

    def __init__(self, path: str | Path, layout: Layout, *, durable: bool = True) -> None:
        self.path = Path(path)
        self.work = Path()
        self.replaced = self.recovered = False
        self._to_remove = False  # whether there is anything under the hidden name that is ours to remove
        self._target = through_links(path)
        self._layout = layout
        self._durable = durable
        self._descriptor: int | None = None
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        if not self._target.name:
            what = f"this cannot be {_a(self._layout.noun)} directory"
            raise RunError(what, where=str(self.path), expected="a path to a new directory")
        try:
            _make_parents(self._target)
            if self._durable:
                self.recovered = recover(self._target, self._layout)
            _refuse_settled(self._target, self._layout, self.path)
            with suppress(FileNotFoundError):  # another process replaces it just now; `finish` looks again
                if self._target.is_dir() and not _may_write(self._target):
                    raise PermissionError("Permission denied")
            self.work = _make(self._target)
            self._to_remove = True
            self._lock()
            self._ends.enter_context(undone(self._remove))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise RunError(f"cannot be written: {reason_of(error)}", where=str(self.path)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._remove()
        self._ends.close()
        if isinstance(error, OSError) and self._is_about_writing(error):
            raise RunError(f"cannot be written: {reason_of(error)}", where=self._named(error)) from error

    def _remove(self) -> None:
        if self._to_remove:
            shutil.rmtree(self.work, ignore_errors=True)

    def _lock(self) -> None:
        with suppress(OSError):  # a system that does not open folders
            self._descriptor = os.open(self.work, os.O_RDONLY)
            lock(self._descriptor)

    def _is_about_writing(self, error: OSError) -> bool:
        full = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
        return error.errno in full or str(error.filename).startswith(str(self.work))

    def _named(self, error: OSError) -> str:
        """Return the final name of the file that could not be written, or that of the folder."""
        with suppress(ValueError, TypeError):
            return str(self.path / Path(error.filename).relative_to(self.work))
        return str(self.path)

    def finish(self, ending: str = "") -> Path:
        """Give the folder its name, with `ending` behind it, and return that name.

        Raises
        ------
        RunError
            If a file or folder that is not ours has taken the name: the message states where the
            folder is kept.
        """
        target = self._target.with_name(self._target.name + ending)
        shown = self.path if target == self._target else target
        if self._durable:
            nested = any(path.is_dir() for path in self.work.iterdir())
            (sync_disk if nested else sync_folder)(self.work)
        self._to_remove = False  # while the two are exchanged, `work` may be what was there before
        try:
            self.replaced = self._to_remove = _put(self.work, target, self._layout, shown)
        except OSError:
            self._to_remove = True
            raise
        except RunError as error:
            kept = _put_aside(self.work, target)
            noun = self._layout.noun
            raise RunError(f"{error.message}; the finished {noun} is in {kept}", where=str(shown)) from None
        if self._durable:
            sync(target.parent)
        return shown


def replace_folder(work: Path, path: Path, layout: Layout) -> None:
    """Let a finished folder take the place of earlier results of its kind.

    Raises
    ------
    RunError
        If `path` holds anything else; `work` is then left where it is.
    """
    target = through_links(path)
    if _put(work, target, layout, path):
        shutil.rmtree(work, ignore_errors=True)
    sync(target.parent)


def _may_write(folder: Path) -> bool:
    """Whether we may write in a folder; FileNotFoundError if its name has just become free."""
    descriptor = os.open(folder, os.O_RDONLY)  # of a name alone, access() cannot say "not there"
    try:
        return os.access(".", os.W_OK, dir_fd=descriptor)
    except NotImplementedError:  # pragma: no cover - a system whose access() takes names alone
        return os.access(folder, os.W_OK)
    finally:
        os.close(descriptor)


def _make_parents(target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # a file is where a directory would have to be
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None


def _make(target: Path) -> Path:
    # A number is used once: while an exchange by two renames has freed the name of a folder, another
    # thread must not make one of its own there.
    for number in _NUMBERS:
        work = hidden_name(target, number)
        with suppress(FileExistsError):
            work.mkdir()
            with suppress(FileNotFoundError):
                if target.is_dir():
                    keep_rights(work, target.stat())
            return work
    raise AssertionError("unreachable")


def sync_folder(folder: Path) -> None:
    """Have the files of a folder (not of folders in it) written to disk, and their names."""
    from concurrent.futures import ThreadPoolExecutor

    files = [path for path in folder.iterdir() if path.is_file()]
    with ThreadPoolExecutor(8) as pool:  # the disk combines files that are synced at the same time
        list(pool.map(sync, files))
    sync(folder)


def sync_disk(folder: Path) -> None:
    """Have everything on the file system of `folder` written to disk: for thousands of files at once."""
    try:
        import ctypes

        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError, ImportError, TypeError):  # not Linux
        os.sync() if hasattr(os, "sync") else None
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


# --- the exchange ---------------------------------------------------------------------------


def _put(work: Path, target: Path, layout: Layout, shown: Path) -> bool:
    """Give `work` the name `target`; `work` then holds what had it.  Return whether anything did."""
    for _ in range(_ATTEMPTS):
        try:
            if not _refuse_settled(target, layout, shown):
                work.rename(target)  # an empty folder is replaced
                return False
            exchange(work, target)
        except OSError as error:  # another process has put its own there, or taken it away, just now
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOENT} or not work.exists():
                raise
            continue
        with _back_if_refused(work, target):
            refuse_foreign(work, layout, shown)  # a file may have come to it since we looked
        return True
    raise RunError("other processes keep replacing this", where=str(shown))


@contextmanager
def _back_if_refused(work: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except RunError:
        exchange(work, target)
        raise


def exchange(one: Path, other: Path) -> None:
    """Let two folders swap their names, in one step where the system can."""
    if not _exchanged(one, other):
        _renamed_twice(one, other)


def _exchanged(one: Path, other: Path) -> bool:
    """Swap by Linux's renameat2; false if this system or file system cannot."""
    try:
        import ctypes

        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, ImportError, TypeError):
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _renamed_twice(one: Path, other: Path) -> None:
    """Swap by renames; a process that dies in between leaves both under hidden names, see `recover`."""
    old = next(path for n in _NUMBERS if not (path := hidden_name(other, n, OLD)).exists())
    other.rename(old)
    try:
        one.rename(other)
    except OSError as error:
        if error.errno in {errno.EEXIST, errno.ENOTEMPTY}:  # another process has put its own there
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(other)
        raise
    old.rename(one)


def _put_aside(work: Path, target: Path) -> Path:
    """Give finished results the first free name after `target`."""
    for number in count(2):
        kept = target.with_name(f"{target.name}-{number}")
        if not os.path.lexists(kept):
            with suppress(FileExistsError, OSError):
                work.rename(kept)
                return kept
        if number > _ATTEMPTS:
            break
    raise RunError("there is no free name for the finished results", where=str(target))


# --- what killed processes have left --------------------------------------------------------


def recover(target: Path, layout: Layout) -> bool:
    """Clear away what killed processes of this machine have left beside `target`.

    If the name is free and one of them was whole, it gets the name: its process was killed at the
    exchange.  Return whether that was so.
    """
    left = [path for path in leftovers(target.parent, target.name) if path.is_dir()]
    newest_first = sorted(left, key=lambda path: (path.suffix == f".{OLD}", -_changed(path)))
    recovered = False
    for path in newest_first:
        if not os.path.lexists(target) and layout.strangers(path) is not None and layout.is_whole(path):
            with suppress(OSError):  # another process may be faster
                path.rename(target)
                recovered = True
        else:
            remove_leftover(path, layout)
    return recovered


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process clears away, too
        return 0.0


def remove_leftover(path: Path, layout: Layout) -> None:
    """Remove the remains of a killed process, unless it is a folder with files that are not ours."""
    if not path.is_dir():
        with suppress(OSError):
            path.unlink()
        return
    strangers = layout.strangers(path)
    if strangers is None or not any(strangers):  # None: it had no record yet
        shutil.rmtree(path, ignore_errors=True)
