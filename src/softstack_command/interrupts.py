"""Ctrl-C where an exception would do harm.

Python raises KeyboardInterrupt wherever the main thread happens to be. Compiled modules swallow it or turn it
into other errors, locks are left half released, and half a cluster cannot be closed. So the command ends at
once, or, while it has workers, at a moment of its own choice. This module knows no other.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

SENTENCE = "softstack: stopped; trials that are finished are kept, and the same command goes on from there"
STOPPED = 130  # the exit code of what Ctrl-C ended


@contextmanager
def _handled(handler: Callable[..., Any]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers, and only it is interrupted
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(*_: Any) -> None:
    with suppress(Exception):  # in the middle of another print, say
        sys.stdout.flush()
    cursor = "\x1b[?25h" if os.isatty(2) else ""  # a bar of progress hides it
    os.write(2, f"{cursor}{SENTENCE}\n".encode())
    os._exit(STOPPED)


def at_once() -> AbstractContextManager[None]:
    """Within this block Ctrl-C ends the process at once. For where there is nothing to tidy up: files
    are written whole or not at all."""
    return _handled(_stop)


@contextmanager
def later() -> Iterator[Callable[[], None]]:
    """Ctrl-C takes effect where the function that this gives is called, and when this is over; pressed a
    second time, at once."""
    pressed = False

    def wait(*_: Any) -> None:
        nonlocal pressed
        if pressed:
            _stop()
        pressed = True

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    with _handled(wait):
        yield check
    check()


@contextmanager
def deaf() -> Iterator[None]:
    """Processes that are started meanwhile never hear Ctrl-C, which goes to everyone at a terminal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # if it was pressed, this process hears it now
