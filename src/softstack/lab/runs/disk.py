"""Files that are whole or not there, and claims on work that end with the process that made them."""

import contextlib
import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from softstack.errors import BadInput

LOCKS = ".locks"


def write(path: Path, content: bytes) -> None:
    """A file, on disk when this returns, and whole or not there: written beside its place and renamed."""
    write_all({path: content})


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


def read(path: Path, most: int) -> bytes:
    """A file's content, if it is no larger than what can be expected of it."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise BadInput(f"{path} has {size} bytes and should have {most} at most: it was damaged")
        return file.read(most)


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
    """Work under `root` that is this process's alone until it ends, by whatever means.

    A name's claim is the lock on one byte of one file, which the system lifts when the process dies. They are
    POSIX locks: they work over NFS, and a second claim within the same process is no conflict.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / LOCKS).open("ab") as file:
        for name in names:
            if not _lock(file.fileno(), name):
                raise BadInput(
                    f"{root / name} is being trained by another softstack at this moment: "
                    "wait until it is done, or give another --out"
                )
        yield


def _lock(handle: int, name: str, patience: float = 1.0) -> bool:
    """Try a little longer than `is_claimed` holds on to what it looks at."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name))
            return True
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        if time.monotonic() > end:
            return False
        time.sleep(0.05)


def is_claimed(root: Path, name: str) -> bool:
    """Whether another process has work of this name in hand."""
    try:
        with (root / LOCKS).open("rb") as file:
            fcntl.lockf(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB, 1, _byte(name))
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return True
        raise
    return False


def _byte(name: str) -> int:
    """Names end in eight digits of a hash."""
    return int(name[-8:], 16)
