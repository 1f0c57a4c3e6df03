"""Files that are written as a whole or not at all, and the hidden names of unfinished ones.

A file (or folder, see `folders`) is written beside its final name, under
``.NAME.HOST.PID-N.writing``, synced to disk, and then renamed.  An existing file keeps its
content until the new one is whole.  A symbolic link is kept: the file that it leads to is
replaced.  Devices and pipes, which have no content to protect, are written directly.

Host and process are part of a hidden name, so that the remains of a killed process can
be distinguished from files that another process is writing now.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, NamedTuple

from simsched.errors import RunError, SimschedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

WRITING, OLD = "writing", "old"
"""The endings of hidden names: of new files, and of the old ones that they replace."""

_HIDDEN = re.compile(
    r"\.(?P<stem>.+)\.(?P<host>[A-Za-z0-9-]+)\.(?P<pid>\d{1,9})-\d+\.(?:writing|old)", re.DOTALL
)
_LONGEST = 150
"""Bytes of a name that are repeated in its hidden name: file systems allow 255 in all."""


class _Hidden(NamedTuple):
    stem: str
    host: str
    pid: int


# --- what a process leaves that ends at once --------------------------------------------------

_UNDO: dict[object, Callable[[], object]] = {}


@contextmanager
def undone(undo: Callable[[], object]) -> Iterator[None]:
    """Have `undo` called if a signal ends the process within the context, which is not left then.

    It is called in a thread of its own while all else stands still, so it must not wait for a lock.
    """
    key = object()
    _UNDO[key] = undo
    try:
        yield
    finally:
        del _UNDO[key]


def undo_all() -> None:
    """Call what is `undone`, the latest first."""
    for undo in reversed(list(_UNDO.values())):
        with suppress(Exception):
            undo()


@contextmanager
def scratch_folder(prefix: str = "simsched-") -> Iterator[Path]:
    """Make a temporary folder, and remove it in any case."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=prefix))

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    with undone(remove):
        try:
            yield folder
        finally:
            remove()


# --- writing --------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | Path, error: type[SimschedError] = RunError) -> Iterator[BinaryIO]:
    """Open a file that gets its name, and takes the place of what has it, once it is whole and on disk.

    Raises
    ------
    SimschedError
        Of the type `error`, with the path as it was given: the place cannot be written, or the disk
        is full.  Nothing of the new file is left then, and an existing one is as it was.
    """
    with _errors_named(path, error):
        if _is_direct(path):
            with Path(path).open("wb") as stream:
                yield stream
            return
        target = through_links(path)
        before = _replaceable(target)
        remove_leftover_files(target)
        hidden, descriptor = _create(target)
        try:
            with undone(hidden.unlink), os.fdopen(descriptor, "w+b") as stream:
                lock(descriptor)
                if before is not None:
                    keep_rights(hidden, before)
                yield stream
                stream.flush()
                sync(hidden)
            hidden.replace(target)
        except BaseException:
            with suppress(OSError):
                hidden.unlink()
            raise
        sync(target.parent)


def write_file(path: str | Path, data: bytes | str, error: type[SimschedError] = RunError) -> None:
    """Write a file as a whole or not at all, text as UTF-8; errors as `replacing`."""
    with replacing(path, error) as stream:
        stream.write(data.encode() if isinstance(data, str) else data)


def through_links(path: str | Path) -> Path:
    """Return the path that a symbolic link leads to, and any other path as it is."""
    given = Path(path)
    return Path(os.path.realpath(given)) if given.is_symlink() else given


def keep_rights(new: Path, before: os.stat_result) -> None:
    """Give a new file the mode and, where we may, the owner of the file that it replaces."""
    with suppress(OSError, AttributeError):
        mine = new.stat()
        if (mine.st_uid, mine.st_gid) != (before.st_uid, before.st_gid):
            os.chown(new, before.st_uid, before.st_gid)
    with suppress(OSError):
        new.chmod(S_IMODE(before.st_mode))


def sync(path: Path) -> None:
    """Have the content of a file, or the names in a folder, written to disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # a folder that cannot be read, or a system that does not open folders
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not _is_unsupported(error):
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _errors_named(path: str | Path, kind: type[SimschedError]) -> Iterator[None]:
    """Turn the system's errors into ones that name the file as the user did."""
    try:
        yield
    except BrokenPipeError:  # a pipe that was written to directly: its reader went away
        raise
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and "\0" not in str(path):
            raise
        raise kind(f"cannot be written: {reason_of(error)}", where=str(path)) from error


def reason_of(error: Exception) -> str:
    """Return why the system refused, without the name of a file."""
    return getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__


def _is_direct(path: str | Path) -> bool:
    """Whether a path is a device, a pipe or an open stream, which is written to and never replaced."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):  # noqa: PTH100 - resolves no link
        return True
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not S_ISREG(mode) and not S_ISDIR(mode)


def _replaceable(target: Path) -> os.stat_result | None:
    """Return the status of a file, None if it does not exist; OSError if it must not be replaced."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if S_ISDIR(found.st_mode):
        raise IsADirectoryError("this is a directory")
    if not os.access(target, os.W_OK):  # renaming would not ask
        raise PermissionError("Permission denied")
    return found


def _create(target: Path) -> tuple[Path, int]:
    """Create a hidden file for `target`; two threads of one process get two."""
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    for number in count():
        hidden = hidden_name(target, number)
        with suppress(FileExistsError):
            return hidden, os.open(hidden, flags, 0o666)
    raise AssertionError("unreachable")


def _is_unsupported(error: OSError) -> bool:
    import errno

    return error.errno in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}


# --- hidden names ---------------------------------------------------------------------------


def hidden_name(target: Path, number: int, ending: str = WRITING) -> Path:
    """Return the hidden name beside `target` of the `number`-th thing that this process writes there."""
    return target.with_name(f".{_stem(target.name)}.{this_host()}.{os.getpid()}-{number}.{ending}")


def _stem(name: str) -> str:
    raw = os.fsencode(name)
    if len(raw) <= _LONGEST:
        return name
    return f"{os.fsdecode(raw[:_LONGEST]).encode('utf-8', 'ignore').decode()}-{sha256(raw).hexdigest()[:16]}"


def this_host() -> str:
    """Return the name of this machine, of letters, digits and hyphens."""
    import platform

    return re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:60] or "host"


def _parsed(name: str) -> _Hidden | None:
    found = _HIDDEN.fullmatch(name)
    return None if found is None else _Hidden(found["stem"], found["host"], int(found["pid"]))


def leftovers(folder: Path, name: str | None = None) -> list[Path]:
    """Return the hidden files and folders in `folder` (for one name only) whose writer is dead.

    This is known only for processes of this machine; files of other hosts are never returned.
    """
    stem = None if name is None else _stem(name)
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") or (hidden := _parsed(entry.name)) is None:
                continue
            ours = hidden.host == this_host() and stem in (None, hidden.stem)
            if ours and _is_gone(hidden.pid) and not is_locked(Path(entry.path)):
                found.append(Path(entry.path))
    return sorted(found)


def remove_leftover_files(target: Path) -> None:
    """Remove the unfinished files that killed processes have left beside `target`."""
    for left in leftovers(target.parent, target.name):
        if left.is_file() and not left.is_symlink():
            with suppress(OSError):
                left.unlink()


def _is_gone(pid: int) -> bool:
    """Whether there is no such process on this machine; one that ended and waits for its parent is gone."""
    if os.name != "posix":  # elsewhere a signal of 0 is not a question
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # there is one, of another user
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):  # not Linux, or it ended meanwhile
        return False
    return state in {b"Z", b"X"}


def lock(descriptor: int) -> bool:
    """Take the lock of an open file or folder, which ends with its process; False if another process has it.

    Containers may share a host's name but not its processes, so a process number alone does not
    identify a process.  On systems without locks the process number decides.
    """
    try:
        import fcntl
    except ModuleNotFoundError:  # not on every system
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of a file or folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not lock(descriptor)
    finally:
        os.close(descriptor)


def glob_free(path: Path) -> str:
    """Return the path with ``* ? [`` escaped, which DuckDB would take for patterns.

    >>> from pathlib import Path
    >>> glob_free(Path("runs/a[1].parquet"))
    'runs/a[[]1].parquet'
    """
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
