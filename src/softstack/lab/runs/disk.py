"""Files that are whole or not there, and claims on work that end with the process that made them."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader
from pathlib import Path
from typing import Any

from softstack.errors import BadInput

LOCKS = ".locks"
OWN = getattr(fcntl, "F_OFD_SETLK", None)  # Linux: locks of an open file, and not of a process
BUSY = (errno.EAGAIN, errno.EACCES)


def write(path: Path, content: bytes | str) -> None:
    """A file, on disk when this returns, and whole or not there: written beside its place and renamed. Its
    folder is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_all({path: content.encode() if isinstance(content, str) else content})


def write_json(path: Path, content: Any) -> None:
    write(path, json.dumps(content, indent=1) + "\n")


def write_all(contents: dict[Path, bytes]) -> None:
    """Files, each whole or not there, and all of them on disk when this returns."""
    temporaries: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            temporaries[path] = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(name, 0o644)
        sync(temporaries.values())
        for path, temporary in temporaries.items():
            temporary.replace(path)
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def sync(paths: Iterable[Path]) -> None:
    """Bring files and directories to disk, at once: a journal takes many as quickly as one."""
    with ThreadPoolExecutor(16) as threads:
        for _ in threads.map(_sync, paths):
            pass  # an error is raised here


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _opened(path: Path, most: int) -> Iterator[BufferedReader]:
    """A file that is no larger than what can be expected of it."""
    with open(path, "rb", opener=_regular) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise BadInput(f"{path} has {size} bytes and should have {most} at most: it was damaged")
        yield file


def read(path: Path, most: int) -> bytes:
    """A file's content, of `most` bytes at most."""
    with _opened(path, most) as file:
        return file.read()


def digest_of(path: Path, most: int) -> str:
    """The SHA-256 of a file of `most` bytes at most, whose content need not fit into memory."""
    with _opened(path, most) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, most: int) -> dict[str, Any]:
    """What a file holds that should be a JSON object, or a sentence on why it does not."""
    try:
        return dict(json.loads(read(path, most)))
    except BadInput:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read as a JSON object ({error}): it was damaged") from None


def _regular(path: str, flags: int) -> int:
    """Opens files alone: a pipe would be waited for until somebody writes to it."""
    handle = os.open(path, flags | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{path} is not a file: remove it")
    return handle


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock of this file, and hold it."""
    with open(path, "ab", opener=_regular) as file:
        while not lock(file.fileno()):
            time.sleep(0.01)
        yield


def folders(root: Path) -> Iterator[Path]:
    """A directory, if it is one, and all in it that can hold run directories. Run directories themselves,
    hidden ones and links are not looked into, nor what cannot be read."""
    try:
        with os.scandir(root) as entries:
            inner = [e.name for e in entries if e.is_dir(follow_symlinks=False) and e.name[0] != "."]
    except OSError:
        return
    yield root
    for name in sorted(inner):
        if not name.startswith("seed-"):
            yield from folders(root / name)


@contextlib.contextmanager
def claimed(root: Path, names: Iterable[str]) -> Iterator[None]:
    """Work under `root` that is this caller's alone until it ends, by whatever means.

    A name's claim is the lock on one byte of one file, which the system lifts when the process dies. Such
    locks work over NFS.
    """
    root.mkdir(parents=True, exist_ok=True)
    with open(root / LOCKS, "ab", opener=_regular) as file:
        for name in names:
            if not _lock_soon(file.fileno(), _byte(name)):
                raise BadInput(
                    f"{root / name} is being trained by another softstack at this moment: "
                    "wait until it is done, or give another --out"
                )
        yield


def lock(handle: int, byte: int = 0, *, shared: bool = False) -> bool:
    """Lock one byte of an open file until the file is closed; False where someone else has it locked.

    Where the system has no locks of open files they are the process's: it loses them when it closes the file
    anywhere, and does not compete with itself.
    """
    try:
        if OWN is None:
            fcntl.lockf(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB, 1, byte)
        else:
            kind = fcntl.F_RDLCK if shared else fcntl.F_WRLCK
            fcntl.fcntl(handle, OWN, struct.pack("hhqqi", kind, os.SEEK_SET, byte, 1, 0))  # struct flock
    except OSError as error:
        if error.errno in BUSY:
            return False
        raise
    return True


def _lock_soon(handle: int, byte: int, patience: float = 1.0) -> bool:
    """Try a little longer than `is_claimed` holds on to what it looks at."""
    end = time.monotonic() + patience
    while not lock(handle, byte):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def is_claimed(root: Path, name: str) -> bool:
    """Whether some process has claimed work of this name."""
    try:
        with open(root / LOCKS, "rb", opener=_regular) as file:
            return not lock(file.fileno(), _byte(name), shared=True)
    except FileNotFoundError:
        return False


def _byte(name: str) -> int:
    """Names end in eight digits of a hash."""
    return int(name[-8:], 16)
