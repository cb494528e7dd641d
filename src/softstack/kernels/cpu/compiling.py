"""How functions are compiled here, and where their machine code is kept between processes.

numba looks only at a function's own file to decide whether what it kept is stale, not at the files of what it
calls. So machine code is kept in a directory named by a digest of all sources. What cannot be read or
written costs time and nothing else: it is compiled again.
"""

import contextlib
import fcntl
import gc
import hashlib
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
from numba.core import caching
from numba.core.registry import cpu_target

HERE = Path(__file__).parent
SOURCES = [*sorted(HERE.glob("*.py")), HERE.parent / "kinds.py", HERE.parent / "tuples.py"]
PREFIX = "softstack-kernels-"
KEPT = 4  # directories: this version's, and of those before it the last to be used
SECONDS = 10  # that a first call takes to compile, about
PATIENCE = 120  # seconds that a process waits for another, which may have been stopped

if numba.config.DISABLE_JIT:
    raise ImportError("numba is switched off by NUMBA_DISABLE_JIT")


def digest(sources: Iterable[Path]) -> str:
    """A digest of everything that machine code depends on and numba does not look at."""
    text = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for source in sources:
        text.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return text.hexdigest()[:16]


def parents() -> list[Path]:
    """Where the directory may be, the best place first."""
    places = [HERE / "__pycache__"]
    if numba.config.CACHE_DIR:
        places.insert(0, Path(numba.config.CACHE_DIR))
    if caches := os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"):
        places.append(Path(caches))
    return [place for place in places if place.is_absolute()]


def directory(places: Iterable[Path], name: str) -> Path | None:
    """The directory in the first of these places that can be written to. Older ones beside it go."""
    for place in places:
        path = place / f"{PREFIX}{name}"
        try:
            new = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
            os.utime(path)  # in use
        except OSError:
            continue
        if new:
            prune(place)
        return path
    return None


def prune(place: Path) -> None:
    """Remove all but the last directories to be used. A process that still uses one writes it again."""
    dated = []
    for path in place.glob(f"{PREFIX}*"):
        try:
            dated.append((path.stat().st_mtime, path))
        except OSError:
            continue  # another process was faster
    for _, path in sorted(dated, reverse=True)[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


class Locator(caching._CacheLocator):
    """Where numba finds a function's machine code."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._line = file, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Any, file: str) -> "Locator":
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(DIRECTORY)

    def get_source_stamp(self) -> str:
        """All sources, and the function's own where it is not among them."""
        own = Path(self._py_file)
        return DIGEST if own in SOURCES else digest([*SOURCES, own])

    def get_disambiguator(self) -> str:
        return str(self._line)


class Store(caching.CompileResultCacheImpl):
    _locator_classes = (Locator,)


class Cache(caching.FunctionCache):
    """numba's, which does not stop at a file that is damaged or a disk that is full."""

    _impl_class = Store

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            code = super().load_overload(signature, context)
        except Exception:  # whatever a damaged pickle raises
            code = None
            self._try(self.flush)
        if code is None:
            announce()
        return code

    def save_overload(self, signature: Any, result: Any) -> None:
        self._try(super().save_overload, signature, result)

    def _try(self, write: Callable[..., None], *arguments: Any) -> None:
        try:
            write(*arguments)
        except OSError as error:
            unkept(f"{DIRECTORY} cannot be written to ({error.strerror or error})")


@cache
def announce() -> None:
    """Say once, on a terminal, what the wait is for."""
    if sys.stderr is not None and sys.stderr.isatty():
        once = "" if DIRECTORY is None else ", once on this machine"
        print(f"softstack: compiling kernels, about {SECONDS} seconds{once}", file=sys.stderr, flush=True)


@cache  # once for each reason
def unkept(reason: str) -> None:
    warnings.warn(
        f"softstack compiles its kernels anew in every process, about {SECONDS} seconds: {reason}; "
        "name a directory that can be written to in NUMBA_CACHE_DIR",
        RuntimeWarning,
        stacklevel=2,
    )


# what the first function would wait for; processes that are forked from this one need not do it again
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
DIGEST = digest(SOURCES)
DIRECTORY = directory(parents(), DIGEST)
if DIRECTORY is None:
    unkept(f"none of {', '.join(map(str, parents()))} can be written to")


@contextlib.contextmanager
def claimed(name: str) -> Iterator[None]:
    """Within this block no other process compiles what has this name: it waits, and then finds it stored."""
    with contextlib.ExitStack() as stack:
        if DIRECTORY is not None:
            with contextlib.suppress(OSError):
                file = stack.enter_context(open(DIRECTORY / "locks", "ab"))
                byte = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
                end = time.monotonic() + PATIENCE
                while is_taken(file, byte) and time.monotonic() < end:
                    announce()
                    time.sleep(0.05)
        yield


def is_taken(file: IO[bytes], byte: int) -> bool:
    """Whether another process has locked this byte; if none has, we have, until the file is closed."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return True
    return False


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """The compiler makes little garbage, and looking for it takes a tenth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def compiled(function: Any) -> Any:
    """The function as machine code, made at its first call with arguments of some types.

    It may make views of arrays, but no arrays: references are not counted, which would take time at every
    view. What it works in it is given (`cpu/room.py`).
    """
    dispatcher = _dispatcher(function)
    compile_for = dispatcher.compile

    def compile_once(signature: Any) -> Any:
        with claimed(f"{function.__module__}.{function.__name__} {signature}"), uncollected():
            return compile_for(signature)

    dispatcher.compile = compile_once
    return dispatcher


def internal(function: Any, **options: Any) -> Any:
    """The same, for functions that only compiled code calls: a way in from Python takes long to compile."""
    return _dispatcher(function, no_cpython_wrapper=True, **options)


def inlined(function: Any) -> Any:
    """The same, and written out wherever it is called: for what costs less than a call does."""
    return internal(function, forceinline=True)


def _dispatcher(function: Any, **options: Any) -> Any:
    dispatcher = numba.njit(nogil=True, error_model="numpy", _nrt=False, no_cfunc_wrapper=True, **options)(
        function
    )
    if DIRECTORY is not None:
        dispatcher._cache = Cache(function)
    return dispatcher
